"""The block and the grid of a launch: how many threads a block has along each loop, and how many blocks there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

MOST_THREADS = (1024, 1024, 64)
"""The most threads of a block along x, y and z (CUDA C++ Programming Guide, Compute Capabilities)."""

MOST_DIMENSIONS = len(MOST_THREADS)
"""The most dimensions of a grid."""

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""The most blocks of a grid along x, y and z (CUDA C++ Programming Guide, Compute Capabilities)."""

USUAL_THREADS = 256
"""The threads of a block where nothing else states them."""

WARP = 32
"""Threads of a block along x if it has several dimensions: those of a warp, so that its accesses are contiguous."""


def usual_block(dimensions: int, threads: int = USUAL_THREADS) -> tuple[int, ...]:
    """A block of about `threads` threads, x first: whole warps along x."""
    if dimensions == 1:
        return (threads,)
    along, across = min(threads, WARP), max(1, threads // WARP)
    if dimensions == 2:
        return (along, across)
    return (along, across // 2, 2) if across >= 4 else (along, across, 1)


def block_of(
    usual: Sequence[int], trips: Sequence[int], tiles: Sequence[int | None], *, joins_sums: bool
) -> tuple[int, ...]:
    """Threads of a block in each dimension, x first, for loops with these numbers of iterations.

    tiles: for each dimension over tiles, the points of a tile (its `trips` then count tiles), otherwise None. Each
    point gets a thread if the block is then no larger than a usual one. If it would be larger, or if blocks join the
    parts of sums, the block has its usual size.
    """
    if all(points is None for points in tiles):
        return filled(usual, trips)
    whole, others = [], []
    for threads, n, points in zip(usual, trips, tiles, strict=True):
        covered = min(threads, covering(n))
        whole.append(covered if points is None else points)
        others.append(covered if points is None else threads)
    return tuple(whole if prod(whole) <= prod(usual) and not joins_sums else others)


def grid_of(
    block: Sequence[int], trips: Sequence[int], tiles: Sequence[int | None], most_blocks: int | None
) -> tuple[int, ...]:
    """Blocks of the grid in each dimension, x first: a tile each, or as many as cover the loop.

    There are no more than MOST_BLOCKS, and no more than `most_blocks` of all dimensions together. Where that is less
    than the loop needs, every thread runs several of its iterations.
    """
    found = []
    for threads, n, points, most in zip(block, trips, tiles, MOST_BLOCKS, strict=False):
        blocks = min(-(-n // threads) if points is None else n, most)
        if most_blocks is not None:
            blocks = min(blocks, most_blocks)
            most_blocks //= blocks
        found.append(blocks)
    return tuple(found)


def filled(shape: Sequence[int], trips: Sequence[int]) -> tuple[int, ...]:
    """`shape` adapted to loops with these numbers of iterations, with as many threads where they have work, x first.

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
