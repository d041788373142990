"""Layer normalization and softmax: one block for each row, which passes over the row several times.

The first pass loads the row from memory. A later pass finds it in a cache as far as the rows of all resident blocks fit
there. PyTorch's layer normalization (blocks of 128 threads) makes two passes, one for mean and variance and one that
writes; its softmax makes three beyond rows of 1024 elements (largest element, sum, result), and one for shorter rows,
which a warp holds in its registers.
"""

from __future__ import annotations

from math import ceil, exp

from roofdsl.machine.model import Cache, Machine
from roofdsl.operators.bandwidth import latency_s, rate_of_flow
from roofdsl.operators.launch import multiprocessors, resident_blocks
from roofdsl.operators.operator import BYTES, Operator

NORM_THREADS = 128
IN_REGISTERS = 1024
"""The most elements of a row that PyTorch's softmax keeps in the registers of a warp."""

VECTOR = 4
REDUCTION_S = 1.9e-6
"""Of the threads of a block through shared memory, with its barriers: about 2,600 cycles in PyTorch's kernels."""

WAYS = 16
"""Lines that compete for one place in a cache whose sets are hashed."""


def row_s(operator: Operator, machine: Machine) -> float:
    """Seconds of the kernel: the bytes of all passes that miss the caches, at the rate that resident blocks sustain."""
    units, _ = multiprocessors(machine)
    threads = _threads(operator)
    resident = resident_blocks(machine, threads)
    again = _passes(operator) - 1
    missed = again * missing(machine, resident * operator.width * BYTES) if again else 0.0
    loads, stores = operator.loads_bytes * (1 + missed), operator.stores_bytes
    row_bytes = (loads + stores) / operator.batch
    rows = resident * (threads // 32 if _in_registers(operator) else 1)
    flow = units * rows * row_bytes / _row_latency_s(operator, machine, threads)
    return (loads + stores) / rate_of_flow(machine, loads, stores, flow)


def _row_latency_s(operator: Operator, machine: Machine, threads: int) -> float:
    """Seconds of one row in a device that does nothing else: its rounds of accesses, and a reduction between passes.

    A round is one vector a thread. What is left of a row beyond whole rounds is loaded element by element.
    """
    if _in_registers(operator):
        return latency_s(machine) + REDUCTION_S
    whole, rest = divmod(operator.width, threads * VECTOR)
    rounds = whole + ceil(rest / threads if operator.name == "softmax" else rest / (threads * VECTOR))
    passes = _passes(operator)
    return passes * rounds * latency_s(machine) + (passes - 1) * REDUCTION_S


def _in_registers(operator: Operator) -> bool:
    """Whether a warp holds its row in registers."""
    return operator.name == "softmax" and operator.width <= IN_REGISTERS


def _passes(operator: Operator) -> int:
    if operator.name == "ln":
        return 2
    return 1 if _in_registers(operator) else 3


def _threads(operator: Operator) -> int:
    """Of a block. Softmax takes the power of two that leaves each thread two to four vectors, at most 512 threads."""
    if operator.name == "ln" or _in_registers(operator):
        return NORM_THREADS
    most = min(operator.width // VECTOR, 1024)
    threads = 32
    while threads < most / 2:
        threads *= 2
    return threads


def missing(machine: Machine, rows_bytes: float) -> float:
    """The share of a later pass that comes from memory.

    rows_bytes: of the rows in work on one multiprocessor. Between two accesses to a line, about all of them pass
    through the multiprocessor's first cache, and 1.4 times as much (rows and results) through the last one.
    """
    units, _ = multiprocessors(machine)
    share = 1.0
    if len(machine.caches) > 1:
        share *= _evicted(rows_bytes / machine.caches[0].size_bytes)
    if machine.caches:
        share *= _evicted(1.4 * units * rows_bytes / _seen(machine.caches[-1]))
    return share


def _seen(cache: Cache) -> int:
    """The bytes of a cache that one multiprocessor finds its lines in: a cache in several parts copies lines."""
    return cache.size_bytes


def _evicted(filling: float) -> float:
    """The chance that a line is gone after `filling` times the capacity passed through a hashed cache.

    Lines fall into sets at random, so that Poisson-many of them, WAYS x filling in the mean, have come into a line's
    set meanwhile; it is gone if they are at least as many as the set has ways (Smith's model of set conflicts).
    """
    mean = WAYS * filling
    term = exp(-mean)
    below = 0.0
    for n in range(WAYS):
        below += term
        term *= mean / (n + 1)
    return max(0.0, 1.0 - below)
