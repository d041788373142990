"""Products of matrices by a library: tiles of the result for blocks, waves of blocks, and the best of the usual tiles.

A block computes one tile in steps along k. A multiprocessor works on its resident blocks at the rate of its fused
multiply-add units, so the time is that of the multiprocessor with the most tiles; a last wave that is not full leaves
others idle. The library chooses among tiles, and among splits of k that fill the device where the result is small; the
model takes the one that is fastest by its own time.
"""

from __future__ import annotations

from math import ceil

from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.operators.bandwidth import stream_rate
from roofdsl.operators.launch import multiprocessors
from roofdsl.operators.operator import BYTES, Operator


class Tile(Record):
    """A block's part of the result; each thread has `side` x `side` elements in registers.

    sliced: the threads of a block divide k among four groups, which makes small tiles worthwhile.
    """

    rows: int
    columns: int
    side: int
    sliced: int = 1

    @property
    def efficiency(self) -> float:
        """The share of issue slots that multiply: a step takes side^2 of them, and loads 2 side values from shared
        memory, four at a time, which issue beside them but occupy the ports of shared memory.
        """
        return self.side**2 / (self.side**2 + self.side / 4) * (0.9 if self.sliced > 1 else 1.0)


TILES = (
    Tile(128, 128, 8), Tile(64, 128, 8), Tile(128, 64, 8), Tile(64, 64, 8), Tile(128, 32, 4), Tile(32, 128, 4),
    Tile(64, 32, 4, 4), Tile(32, 64, 4, 4), Tile(32, 32, 4, 4),
)  # fmt: skip
"""The tiles of cuBLAS's kernels for f32, by their names since Volta."""

TWO_LARGEST_BYTES = 100 << 10
"""Shared memory of two blocks with tiles of 128 x 128, in three stages of 16 steps."""

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
FILL_STEPS = 8
"""Steps of k that a block takes to fill and to drain its pipeline and to write its tile."""


def product_s(operator: Operator, machine: Machine) -> float:
    """Seconds of the kernel with the fastest tile and split."""
    splits = SPLITS if operator.batch == 1 else (1,)
    return min(_with_tile(operator, machine, tile, split) for tile in _tiles(operator, machine) for split in splits)


def _tiles(operator: Operator, machine: Machine) -> tuple[Tile, ...]:
    """The tiles that the library may choose. Batches get the largest where shared memory holds two such blocks."""
    _, own = multiprocessors(machine)
    largest = operator.batch > 1 and (own.shared_bytes or 0) >= TWO_LARGEST_BYTES
    return TILES[:1] if largest else TILES


def _with_tile(operator: Operator, machine: Machine, tile: Tile, split: int) -> float:
    units, _ = multiprocessors(machine)
    steps = operator.k / split
    if split > 1 and steps < 64:
        return float("inf")
    tiles = operator.batch * ceil(operator.m / tile.rows) * ceil(operator.n / tile.columns) * split
    each = 2 * tile.rows * tile.columns * (steps + FILL_STEPS) / (_rate(machine) * tile.efficiency / units)
    moved = _moved(operator, machine)
    parts = 0.0 if split == 1 else BYTES * operator.elements * (split + 1) / _memory_rate(machine)
    return max(ceil(tiles / units) * each, moved) + parts


def _rate(machine: Machine) -> float:
    """Operations per second of f32 at the clock that the machine holds under load."""
    peak = float(machine.peak("f32").per_s)
    if machine.clock_hz is None or machine.throttled_clock_hz is None:
        return peak
    return peak * float(machine.throttled_clock_hz / machine.clock_hz)


def _moved(operator: Operator, machine: Machine) -> float:
    return (operator.loads_bytes + operator.stores_bytes) / _memory_rate(machine)


def _memory_rate(machine: Machine) -> float:
    units, _ = multiprocessors(machine)
    return stream_rate(machine, 1, 1, units * 512 * 32.0)
