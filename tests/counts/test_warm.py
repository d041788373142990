"""A launch right after another: what the caches keep from one to the next, against a brute-force LRU."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from roofdsl.counts.traffic_at import traffic_at
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply, repeated
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of

KERNELS = {
    "gemv": "kernel gemv(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
    "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n",
    "tiled": "kernel tiled(n):\n    tile i, j, k by 2\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n",
    "again0": "kernel add(again0):\n    out A: f64[again0]\n    in B, C: f64[again0]\n"
    "    for again1 in range(again0):\n        A[again1] = B[again1] + C[again1]\n",
}


def misses_of_second(kernel: Kernel, size: int, lines: int) -> int:
    """Misses of the second of two runs through an LRU cache of so many elements."""
    (name,) = (p.name for p in kernel.parameters)
    held: OrderedDict[object, None] = OrderedDict()
    misses = [0, 0]
    stream = [(a.array, a.index) for e in run(apply(kernel), {name: size}) for a in e.accesses]
    for again in (0, 1):
        for location in stream:
            misses[again] += location not in held
            held[location] = None
            held.move_to_end(location)
            if len(held) > lines:
                held.popitem(last=False)
    return misses[1]


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("lines", [2, 7, 19, 40, 1000])
def test_two_in_a_row_less_one(name: str, lines: int) -> None:
    kernel = kernel_of(KERNELS[name])
    size = {kernel.parameters[0].name: 6}
    one = traffic_at(kernel, size, 8 * lines, None, "write_allocate")
    two = traffic_at(repeated(kernel, 2), size, 8 * lines, None, "write_allocate")
    assert one.loads_bytes is not None
    assert two.loads_bytes is not None
    assert two.loads_bytes - one.loads_bytes == 8 * misses_of_second(kernel, 6, lines)
