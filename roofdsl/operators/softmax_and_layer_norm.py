"""Layer normalization and softmax: one block for each row, which passes over the row several times.

The first pass loads the row from memory. A later pass finds it in a cache as far as the rows of all resident blocks fit
there. PyTorch's layer normalization (blocks of 128 threads) makes two passes: one for mean and variance, and one that
writes. Its softmax makes three passes over rows of more than 1024 elements (largest element, sum, result). It makes
only one over shorter rows, each of which a warp holds in its registers.
"""

from __future__ import annotations

from math import ceil, exp

from roofdsl.lang.record import Record
from roofdsl.machine.model import Cache, Machine
from roofdsl.operators.bandwidth import clock_hz
from roofdsl.operators.launch import multiprocessors, resident_blocks
from roofdsl.operators.operator import BYTES, Operator
from roofdsl.predict.bytes_in_flight import both_busy, latency_s, rate_of_flow
from roofdsl.predict.launch_time import instructions_per_s

NORM_THREADS = 128
IN_REGISTERS = 1024
"""The most elements of a row that PyTorch's softmax keeps in the registers of a warp."""

VECTOR = 4
REDUCTION_CYCLES = 3500
"""The cycles of a reduction over the threads of a block through shared memory, barriers included: each lane of one warp
adds up 32 values one after another, then one thread adds up those of all warps. This number and the next are from
softmax on a V100 and a T4."""

CHAIN_CYCLES = 300
"""The cycles from the arrival of a round's values in a later pass to the next round: an exponential and a division,
one after the other."""

INSTRUCTIONS = {"ln": (15, 5), "softmax": (3, 12, 30)}
"""Instructions per element in each pass, as NVIDIA's compiler generates them. Mean and variance take a division. The
second pass of softmax takes an exponential, the third an exponential and a division."""

WAYS = 16
"""The associativity of a cache: the number of lines in a set. Addresses are hashed to sets."""


def row_s(operator: Operator, machine: Machine) -> float:
    """Seconds of the kernel: the bytes of all passes that miss the caches, at the rate that resident blocks sustain,
    and at the same time the instructions of all elements.
    """
    units, _ = multiprocessors(machine)
    threads = _threads(operator)
    resident = resident_blocks(machine, threads)
    again = _passes(operator) - 1
    missed = _missing(operator, machine, resident) if again else NOTHING
    loads, stores = operator.loads_bytes * (1 + again * missed.memory), operator.stores_bytes
    row_bytes = (loads + stores) / operator.batch
    rows = resident * (threads // 32 if _in_registers(operator) else 1)
    flow = units * rows * row_bytes / _row_latency_s(operator, machine, threads, missed)
    moved = (loads + stores) / rate_of_flow(machine, loads, stores, flow)
    issued = operator.elements * sum(INSTRUCTIONS[operator.name]) / instructions_per_s(machine)
    return both_busy(machine, moved, issued)


def _row_latency_s(operator: Operator, machine: Machine, threads: int, missed: Missing) -> float:
    """Seconds of one row on a device that does nothing else: its rounds of accesses, and a reduction between passes.

    In a round, each thread loads one vector. Softmax loads what is left of a row beyond whole rounds element by
    element. The rounds of the first pass wait for the memory, those of later passes for the level that has their lines.
    """
    clock = clock_hz(machine)
    if _in_registers(operator):
        return latency_s(machine) + REDUCTION_CYCLES / clock
    whole, rest = divmod(operator.width, threads * VECTOR)
    rounds = whole + ceil(rest / threads if operator.name == "softmax" else rest / (threads * VECTOR))
    again = _passes(operator) - 1
    waits = latency_s(machine) + again * (missed.latency_s(machine) + CHAIN_CYCLES / clock)
    return rounds * waits + again * REDUCTION_CYCLES / clock


def _in_registers(operator: Operator) -> bool:
    """Whether a warp holds its whole row in registers."""
    return operator.name == "softmax" and operator.width <= IN_REGISTERS


def _passes(operator: Operator) -> int:
    if operator.name == "ln":
        return 2
    return 1 if _in_registers(operator) else 3


def _threads(operator: Operator) -> int:
    """Threads of a block; for softmax, the least power of two with at most two vectors per thread, but at least 32 and
    at most 512.
    """
    if operator.name == "ln" or _in_registers(operator):
        return NORM_THREADS
    most = min(operator.width // VECTOR, 1024)
    threads = 32
    while threads < most / 2:
        threads *= 2
    return threads


class Missing(Record):
    """The share of a later pass that misses the first cache, and the share that misses all caches."""

    first: float
    memory: float

    def latency_s(self, machine: Machine) -> float:
        """Seconds that a load of a later pass waits: the latencies of the levels, weighted by their shares.

        If the machine does not state a level's latency, that of a round to the memory is used.
        """
        stated = {level: float(seconds) for level, seconds in machine.latencies}
        far = latency_s(machine)
        levels = [stated.get(cache.name, far) for cache in machine.caches]
        near = levels[0] if len(levels) > 1 else far
        last = levels[-1] if levels else far
        return (1 - self.first) * near + (self.first - self.memory) * last + self.memory * far


NOTHING = Missing(0.0, 0.0)


def _missing(operator: Operator, machine: Machine, resident: int) -> Missing:
    """The shares that later passes no longer find in the caches, with `resident` blocks on a multiprocessor.

    Between two accesses to a line, about as many bytes pass through the first cache as the resident rows of its
    multiprocessor have. Through the last cache pass 1.4 times those of all multiprocessors (rows and results). Layer
    normalization also loads a scale and a shift for each column, which all rows share.
    """
    rows_bytes = resident * operator.width * BYTES
    columns_bytes = 2 * operator.width * BYTES if operator.name == "ln" else 0
    units, _ = multiprocessors(machine)
    first = 1.0
    if len(machine.caches) > 1:
        first = _evicted((rows_bytes + columns_bytes) / _beside_shared(machine, resident * _threads(operator) * BYTES))
    memory = first
    if machine.caches:
        memory *= _evicted((1.4 * units * rows_bytes + columns_bytes) / _seen(machine.caches[-1]))
    return Missing(first, memory)


def _beside_shared(machine: Machine, used_bytes: int) -> int:
    """The bytes that remain for the first cache if `used_bytes` of shared memory are in use.

    The two are one memory if the cache is larger than the most that can be shared (Volta, A100, Hopper). On Turing, 32
    KiB are left for sharing beside the largest cache, so the cache keeps its size.
    """
    first = machine.caches[0].size_bytes
    _, own = multiprocessors(machine)
    return first - used_bytes if first > (own.shared_bytes or 0) else first


def _seen(cache: Cache) -> int:
    """The bytes of a cache in which one multiprocessor finds its lines: those of one copy, whose size machines state.

    Each half of an A100's L2 serves half of the multiprocessors: as two copies of 20 MiB, it counts with 20 MiB here
    (`a100_40_pcie`), and as one cache of 40 MiB with all of them (`a100_40`).
    """
    return cache.size_bytes


def _evicted(filling: float) -> float:
    """The probability that a line has been evicted after `filling` times the capacity passed through a hashed cache.

    Lines fall into sets at random. So the number of lines that have since come into the line's set has a Poisson
    distribution with mean WAYS x filling. The line is gone if that number is at least the number of ways (Smith's model
    of set conflicts).
    """
    mean = WAYS * filling
    term = exp(-mean)
    below = 0.0
    for n in range(WAYS):
        below += term
        term *= mean / (n + 1)
    return max(0.0, 1.0 - below)
