"""The shape of a thread block: how many threads it has along each loop of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

MOST_THREADS = (1024, 1024, 64)
"""The most threads of a block along x, y and z (CUDA C++ Programming Guide, Compute Capabilities)."""

MOST_DIMENSIONS = len(MOST_THREADS)
"""Of a grid."""


def filled(shape: Sequence[int], trips: Sequence[int]) -> tuple[int, ...]:
    """`shape` with as many threads, x first, for loops with these numbers of iterations.

    A loop with fewer iterations than threads gets the least power of two that covers them. The threads that this leaves
    go to the other loops, x first, as far as these have iterations for them.
    """
    found = [min(threads, covering(n)) for threads, n in zip(shape, trips, strict=True)]
    for d, n in enumerate(trips):
        while 2 * prod(found) <= prod(shape) and found[d] < min(covering(n), MOST_THREADS[d]):
            found[d] *= 2
    return tuple(found)


def lanes(shape: Sequence[int], warp: int) -> tuple[int, ...]:
    """Threads of a warp along each dimension of a block, x first: a warp is `warp` consecutive threads of the block.

    Exact for powers of two, as `filled` gives them.
    """
    found, left = [], warp
    for threads in shape:
        found.append(min(threads, left))
        left = max(1, left // threads)
    return tuple(found)


def covering(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()
