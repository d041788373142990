"""Products of matrices by a library: tiles of the result for blocks, waves of blocks, and the best of the usual tiles.

A block computes one tile in steps along k. A multiprocessor works on its resident blocks at the rate of its fused
multiply-add units, so the time is that of the multiprocessor with the most tiles; a last wave that is not full leaves
others idle. The library chooses among tiles, and among splits of k that fill the device where the result is small; the
model takes the one that is fastest by its own time.

Not every cycle of a scheduler multiplies. Where its lanes take two cycles for the fused multiply-adds of a warp (Volta,
Turing, A100), loads and addresses are issued in between. Where they take one cycle (Pascal, Ada, Hopper), every other
instruction costs a cycle. In both cases, the operands of each step come from shared memory through the port of the
multiprocessor: 128 B in a cycle, but 64 B on Turing. A thread with 4 x 4 results loads half as many values as it
multiplies, one with 8 x 8 results a quarter, so the port is what makes small tiles slow.
"""

from __future__ import annotations

from math import ceil

from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.machine.multiprocessor import Multiprocessor
from roofdsl.operators.bandwidth import stream_rate
from roofdsl.operators.launch import multiprocessors, resident_blocks
from roofdsl.operators.operator import BYTES, Operator
from roofdsl.operators.pages import pages_of, waiting_s

VECTOR = 4
"""Elements of f32 in one access of a thread."""

UNROLLED = 8
"""Steps of k in one pass of the loop, which also takes LOOP instructions: barrier, addresses, branch."""

LOOP = 6

REGISTERS = 16
"""Of a thread, for each row of its results: 128 for 8 x 8 of them, with operands and addresses."""

MOST_OF_A_WARP = 24
"""Multiply-add units of a scheduler: with more, it needs one cycle for a warp of 32 threads, otherwise two or more."""

DELIVERED = 2 / 3
"""Of the bytes that the threads of a warp load from shared memory, the share that its port delivers: threads in the
same row or column of a tile load the same values, and the groups of eight threads that load together share some."""

OVERLAP = 3
"""The exponent of the law by which port and multiply-add units overlap; as for bandwidths, two that are equally busy
delay each other. From the rates of tiles of 128 x 128 and 128 x 32 on a V100."""

L2_BYTE = 7.5
"""Operations in f32 that take the energy of a byte on its way from the last cache to a multiprocessor. On an A100, a
byte from memory takes 118 pJ and an operation 5.2 pJ (models/machines/a100.roof); the last cache is taken to be at a
third of the way."""


class Tile(Record):
    """A block's part of the result; each thread has `side` x `side` elements in registers.

    sliced: the threads of a block divide k among four groups, which makes small tiles worthwhile.
    """

    rows: int
    columns: int
    side: int
    sliced: int = 1

    @property
    def threads(self) -> int:
        return self.rows * self.columns // self.side**2 * self.sliced

    @property
    def other_instructions(self) -> float:
        """Of a thread in one step, besides side^2 multiply-adds: 2 side values from shared memory, four at a time; its
        part of the operands from memory, four at a time, and into shared memory, one by one; and the loop.
        """
        threads = self.rows * self.columns / self.side**2
        operands = (self.rows + self.columns) / threads
        return 2 * self.side / VECTOR + operands / VECTOR + operands + LOOP / UNROLLED

    @property
    def energy(self) -> float:
        """Energy of an operation and of what it loads through the last cache, in operations alone."""
        return 1 + L2_BYTE * BYTES * (1 / self.rows + 1 / self.columns) / 2

    def efficiency(self, lanes: float, lanes_together: float, port_bytes: float) -> float:
        """The share of the peak on schedulers with `lanes` multiply-add units each.

        lanes_together: of all schedulers of a multiprocessor, 0 where they are not known; then nothing waits for the
        port. port_bytes: what the shared memory of a multiprocessor delivers in a cycle.
        """
        multiplies = self.side**2
        issued = 1.0
        if lanes > MOST_OF_A_WARP:
            issued = multiplies / (multiplies + self.other_instructions)
        loading = DELIVERED * 2 * self.side * BYTES / port_bytes  # cycles of a thread's operands in one step
        waiting = loading * lanes_together / multiplies
        fed = float((1 + waiting**OVERLAP) ** (-1 / OVERLAP))
        return issued * fed * (0.9 if self.sliced > 1 else 1.0)


LARGE = Tile(128, 128, 8)
"""The tile whose products hold the clock that a machine states as throttled."""

TILES = (
    LARGE, Tile(64, 128, 8), Tile(128, 64, 8), Tile(64, 64, 8), Tile(128, 32, 4), Tile(32, 128, 4),
    Tile(64, 32, 4, 4), Tile(32, 64, 4, 4), Tile(32, 32, 4, 4),
)  # fmt: skip
"""The tiles of cuBLAS's kernels for f32, by their names since Volta."""

OF_BATCHES = (Tile(64, 128, 8), Tile(64, 64, 8), Tile(32, 128, 4), Tile(128, 32, 4))
"""Those of batches where the largest is not used, by the names that a T4 and a V100 report."""

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
    if operator.batch == 1:
        return TILES
    return TILES[:1] if (own.shared_bytes or 0) >= TWO_LARGEST_BYTES else OF_BATCHES


def _with_tile(operator: Operator, machine: Machine, tile: Tile, split: int) -> float:
    units, _ = multiprocessors(machine)
    steps = operator.k / split
    if split > 1 and steps < 64:
        return float("inf")
    tiles = operator.batch * ceil(operator.m / tile.rows) * ceil(operator.n / tile.columns) * split
    lanes = _lanes(machine)
    together = lanes * _own(machine).schedulers
    rate = _rate(machine, tile) * tile.efficiency(lanes, together, _port_bytes(machine)) / units
    each = 2 * tile.rows * tile.columns * (steps + FILL_STEPS) / rate
    each += _waiting_s(operator, machine, tile, steps, tiles)
    moved = _moved(operator, machine)
    parts = 0.0 if split == 1 else BYTES * operator.elements * (split + 1) / _memory_rate(machine)
    return max(ceil(tiles / units) * each, moved) + parts


def _waiting_s(operator: Operator, machine: Machine, tile: Tile, steps: float, tiles: int) -> float:
    """Seconds that a tile waits for addresses: `linear` walks along the rows of both operands, `bmm` along those of the
    first and down those of the second.
    """
    resident = resident_blocks(machine, tile.threads, REGISTERS * tile.side)
    pages = pages_of(tile.rows, operator.k * BYTES)
    if operator.name == "linear":
        pages += pages_of(tile.columns, operator.k * BYTES)
    else:
        pages += pages_of(UNROLLED, operator.n * BYTES)
    loaded = (tile.rows + tile.columns) * steps * BYTES
    return waiting_s(machine, pages, loaded, resident, tiles / (resident * multiprocessors(machine)[0]))


def _own(machine: Machine) -> Multiprocessor:
    return multiprocessors(machine)[1]


def _port_bytes(machine: Machine) -> float:
    """Bytes that the shared memory of a multiprocessor delivers in a cycle.

    Since Volta, it is one memory with the first cache, whose bandwidth the machine states. Before, and where nothing is
    stated, it is a word for each thread of a warp.
    """
    units, own = multiprocessors(machine)
    word = float(own.warp * BYTES)
    if machine.clock_hz is None or len(machine.caches) < 2:
        return word
    return min(word, float(machine.caches[0].bandwidth_bytes_per_s / (units * machine.clock_hz)))


def _lanes(machine: Machine) -> float:
    """Multiply-add units for f32 of a scheduler; 0 where the machine states no clock."""
    units, own = multiprocessors(machine)
    if machine.clock_hz is None:
        return 0.0
    return float(machine.peak("f32").per_s / (2 * machine.clock_hz * units * own.schedulers))


def _rate(machine: Machine, tile: Tile) -> float:
    """Operations per second of f32 at the clock that the machine holds under load.

    Within a power limit, the clock falls as far as the energy of an operation rises. Smaller tiles load more bytes for
    each operation, so they run slower than the large ones whose clock the machine states.
    """
    peak = float(machine.peak("f32").per_s)
    if machine.clock_hz is None or machine.throttled_clock_hz is None:
        return peak
    return min(peak, peak * float(machine.throttled_clock_hz / machine.clock_hz) * LARGE.energy / tile.energy)


def _moved(operator: Operator, machine: Machine) -> float:
    return (operator.loads_bytes + operator.stores_bytes) / _memory_rate(machine)


def _memory_rate(machine: Machine) -> float:
    units, _ = multiprocessors(machine)
    return stream_rate(machine, 1, 1, units * 512 * 32.0)
