"""Products of matrices by a library: tiles of the result for blocks, waves of blocks, and the best of the usual tiles.

A block computes one tile in steps along k. A multiprocessor works on its resident blocks at the rate of its fused
multiply-add units, so the time is that of the multiprocessor with the most tiles; a last wave that is not full leaves
others idle. The library chooses among tiles, and among splits of k that fill the device where the result is small; the
model takes the one that is fastest by its own time.

Not every cycle of a scheduler multiplies. Where its lanes take two cycles for the fused multiply-adds of a warp (Volta,
Turing, A100), loads and addresses are issued in between. Where they take one cycle (Pascal, Ada, Hopper), every other
instruction costs a cycle.
"""

from __future__ import annotations

from math import ceil

from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.operators.bandwidth import stream_rate
from roofdsl.operators.launch import multiprocessors
from roofdsl.operators.operator import BYTES, Operator

VECTOR = 4
"""Elements of f32 in one access of a thread."""

UNROLLED = 8
"""Steps of k in one pass of the loop, which also takes LOOP instructions: barrier, addresses, branch."""

LOOP = 6

MOST_OF_A_WARP = 24
"""Multiply-add units of a scheduler: with more, it needs one cycle for a warp of 32 threads, otherwise two or more."""


class Tile(Record):
    """A block's part of the result; each thread has `side` x `side` elements in registers.

    sliced: the threads of a block divide k among four groups, which makes small tiles worthwhile.
    """

    rows: int
    columns: int
    side: int
    sliced: int = 1

    @property
    def other_instructions(self) -> float:
        """Of a thread in one step, besides side^2 multiply-adds: 2 side values from shared memory, four at a time; its
        part of the operands from memory, four at a time, and into shared memory, one by one; and the loop.
        """
        threads = self.rows * self.columns / self.side**2
        operands = (self.rows + self.columns) / threads
        return 2 * self.side / VECTOR + operands / VECTOR + operands + LOOP / UNROLLED

    def efficiency(self, lanes: float) -> float:
        """The share of the peak on schedulers with `lanes` multiply-add units each.

        With half a warp of them, other instructions issue in between; loads from shared memory still occupy its ports.
        """
        multiplies = self.side**2
        if lanes > MOST_OF_A_WARP:
            return multiplies / (multiplies + self.other_instructions)
        return multiplies / (multiplies + self.side / VECTOR) * (0.9 if self.sliced > 1 else 1.0)


TILES = (
    Tile(128, 128, 8), Tile(64, 128, 8), Tile(128, 64, 8), Tile(64, 64, 8), Tile(128, 32, 4), Tile(32, 128, 4),
    Tile(64, 32, 4, 4), Tile(32, 64, 4, 4), Tile(32, 32, 4, 4),
)  # fmt: skip
"""The tiles of cuBLAS's kernels for f32, by their names since Volta."""

BEFORE_VOLTA = {"linear": (Tile(128, 32, 4),), "bmm": (Tile(64, 128, 8),)}
"""The same on a GPU without matrix units, by the names that a P100 reports (`maxwell_sgemm_32x128_tn`, `128x64_nn`)."""

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
    if not any(peak.cls == "tensor" for peak in machine.peaks):
        return BEFORE_VOLTA[operator.name]
    largest = operator.batch > 1 and (own.shared_bytes or 0) >= TWO_LARGEST_BYTES
    return TILES[:1] if largest else TILES


def _with_tile(operator: Operator, machine: Machine, tile: Tile, split: int) -> float:
    units, _ = multiprocessors(machine)
    steps = operator.k / split
    if split > 1 and steps < 64:
        return float("inf")
    tiles = operator.batch * ceil(operator.m / tile.rows) * ceil(operator.n / tile.columns) * split
    rate = _rate(machine) * tile.efficiency(_lanes(machine)) / units
    each = 2 * tile.rows * tile.columns * (steps + FILL_STEPS) / rate
    moved = _moved(operator, machine)
    parts = 0.0 if split == 1 else BYTES * operator.elements * (split + 1) / _memory_rate(machine)
    return max(ceil(tiles / units) * each, moved) + parts


def _lanes(machine: Machine) -> float:
    """Multiply-add units for f32 of a scheduler; 0 where the machine states no clock."""
    units, own = multiprocessors(machine)
    if machine.clock_hz is None:
        return 0.0
    return float(machine.peak("f32").per_s / (2 * machine.clock_hz * units * own.schedulers))


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
