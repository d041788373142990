"""Products of matrices by a library: one tile of the result per block, waves of blocks, the best of the usual tiles.

A block computes one tile in steps along k. A multiprocessor works on its resident blocks at the rate of its fused
multiply-add units, so the time is that of the multiprocessor with the most tiles; during a last wave that is not full,
others are idle. The library chooses among tiles, and for small results among splits of k that fill the device. The
model takes the combination that it predicts to be the fastest.

A scheduler does not issue multiply-adds in every cycle. If its lanes take two cycles for those of a warp (Volta,
Turing, A100), loads and address calculations are issued in between. If they take one cycle (Pascal, Ada, Hopper), each
instruction that is not a multiply-add costs a cycle. In both cases, the operands of each step come from shared memory
through the port of the multiprocessor: 128 B per cycle, but 64 B on Turing. A thread with 4 x 4 results loads half as
many values as it makes multiply-adds, one with 8 x 8 results a quarter, so the port is what makes small tiles slow.
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
"""Steps along k in one pass of the loop, which also takes LOOP instructions: barrier, addresses, branch."""

LOOP = 6

REGISTERS = 16
"""Registers of a thread for each row of its results, operands and addresses included: 128 for 8 x 8 results."""

MOST_OF_A_WARP = 24
"""A scheduler with more multiply-add units than this needs one cycle for a warp of 32 threads, others two or more."""

DELIVERED = 2 / 3
"""The port of shared memory delivers this share of the bytes that the threads of a warp load. Threads in the same row
or column of a tile load the same values, and the groups of eight threads that load together share some of them."""

OVERLAP = 3
"""The exponent of the law by which port and multiply-add units overlap: as with bandwidths, they delay each other if
they are equally busy. From the rates of tiles of 128 x 128 and 128 x 32 on a V100."""

L2_BYTE = 7.5
"""The energy of moving a byte from the last cache to a multiprocessor, in operations in f32. On an A100, a byte from
memory takes 118 pJ and an operation 5.2 pJ (models/machines/a100.roof). The move from the last cache is assumed to take
a third of the energy of the move from memory."""


class Tile(Record):
    """A block's part of the result; each thread has `side` x `side` elements in registers.

    sliced: the number of groups of threads in a block that divide k among them, which makes small tiles worthwhile.
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
        """The instructions of a thread in one step, besides side^2 multiply-adds. It loads 2 side values from shared
        memory, four at a time. It loads its part of the operands from memory, four at a time, and stores them to shared
        memory, one by one. The rest is the loop.
        """
        threads = self.rows * self.columns / self.side**2
        operands = (self.rows + self.columns) / threads
        return 2 * self.side / VECTOR + operands / VECTOR + operands + LOOP / UNROLLED

    @property
    def energy(self) -> float:
        """The energy of an operation and of what it loads from the last cache, in units of an operation alone."""
        return 1 + L2_BYTE * BYTES * (1 / self.rows + 1 / self.columns) / 2

    def efficiency(self, lanes: float, lanes_together: float, port_bytes: float) -> float:
        """The share of the peak on schedulers with `lanes` multiply-add units each.

        lanes_together: the lanes of all schedulers of a multiprocessor; if they are unknown, 0, and nothing waits for
        the port. port_bytes: what the shared memory of a multiprocessor delivers per cycle.
        """
        multiplies = self.side**2
        issued = 1.0
        if lanes > MOST_OF_A_WARP:
            issued = multiplies / (multiplies + self.other_instructions)
        loading = DELIVERED * 2 * self.side * BYTES / port_bytes  # cycles for a thread's operands in one step
        waiting = loading * lanes_together / multiplies
        fed = float((1 + waiting**OVERLAP) ** (-1 / OVERLAP))
        return issued * fed * (0.9 if self.sliced > 1 else 1.0)


LARGE = Tile(128, 128, 8)
"""The tile with which products run at the clock that a machine states as throttled."""

TILES = (
    LARGE, Tile(64, 128, 8), Tile(128, 64, 8), Tile(64, 64, 8), Tile(128, 32, 4), Tile(32, 128, 4),
    Tile(64, 32, 4, 4), Tile(32, 64, 4, 4), Tile(32, 32, 4, 4),
)  # fmt: skip
"""The tiles of cuBLAS's kernels for f32 since Volta, as their names tell."""

OF_BATCHES = (Tile(64, 128, 8), Tile(64, 64, 8), Tile(32, 128, 4), Tile(128, 32, 4))
"""The tiles for batches on GPUs where the largest is not used, from the kernel names that a T4 and a V100 report."""

BEFORE_VOLTA = {"linear": (Tile(128, 32, 4),), "bmm": (Tile(64, 128, 8),)}
"""The tiles on a GPU without matrix units, from the kernel names of a P100 (`maxwell_sgemm_32x128_tn`, `128x64_nn`)."""

TWO_LARGEST_BYTES = 100 << 10
"""The shared memory that two blocks with tiles of 128 x 128 need, in three stages of 16 steps."""

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
FILL_STEPS = 8
"""The time that a block needs to fill and drain its pipeline and to write its tile, in steps along k."""


def product_s(operator: Operator, machine: Machine) -> float:
    """Seconds of the kernel with the fastest tile and split."""
    splits = SPLITS if operator.batch == 1 else (1,)
    return min(_with_tile(operator, machine, tile, split) for tile in _tiles(operator, machine) for split in splits)


def _tiles(operator: Operator, machine: Machine) -> tuple[Tile, ...]:
    """The tiles that the library may choose. Batches get the largest if shared memory holds two blocks with it."""
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
    """Seconds that a tile waits for addresses. `linear` walks along the rows of both operands; `bmm` walks along those
    of the first operand and down the columns of the second.
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
    """Bytes that the shared memory of a multiprocessor delivers per cycle.

    Since Volta, it is one memory with the first cache, whose bandwidth the machine states. The result is at most one
    word for each thread of a warp, and exactly that for a machine without a clock or without a first cache before its
    last one.
    """
    units, own = multiprocessors(machine)
    word = float(own.warp * BYTES)
    if machine.clock_hz is None or len(machine.caches) < 2:
        return word
    return min(word, float(machine.caches[0].bandwidth_bytes_per_s / (units * machine.clock_hz)))


def _lanes(machine: Machine) -> float:
    """Multiply-add units of a scheduler for f32; 0 if the machine states no clock."""
    units, own = multiprocessors(machine)
    if machine.clock_hz is None:
        return 0.0
    return float(machine.peak("f32").per_s / (2 * machine.clock_hz * units * own.schedulers))


def _rate(machine: Machine, tile: Tile) -> float:
    """Operations per second in f32 at the clock that the machine holds under load.

    Under a power limit, the clock is inversely proportional to the energy of an operation. Smaller tiles load more
    bytes per operation, so they run slower than the large ones, whose clock the machine states.
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
