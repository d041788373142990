"""What sparse kernels access, written by hand from the loops in models/kernels/sparse.roof, and matrices for them.

Nothing here uses roofdsl's loops, matrices or simulators: places of entries come from numpy, streams from Python loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate.cache_levels import CacheLevel
from tests.oracle.caches import Cache

Access = tuple[str, int, bool]
"""Array, flat element, whether it is written."""

Ints = NDArray[np.int64]


def places(text: str) -> NDArray[np.bool_]:
    """The matrix that a generator's text describes, dense, drawn as docs/sparse.md says."""
    kind, _, rest = text.partition(":")
    given = {k: v for k, _, v in (part.partition("=") for part in rest.split(","))}
    n = int(given["n"])
    m = int(given.get("m", n))
    dense = np.zeros((n, m), dtype=bool)
    if kind == "banded":
        w = int(given["w"])
        for i in range(n):
            for j in range(max(0, i - w), min(m, i + w + 1)):
                dense[i, j] = True
        return dense
    row = int(given["row"])
    draws = np.random.Generator(np.random.PCG64(int(given["seed"]))).random(n * row)
    weights = np.ones(m) if kind == "random" else np.array([(k + 1.0) ** -float(given["exponent"]) for k in range(m)])
    for place, draw in enumerate(draws):
        if kind == "random":
            column = int(draw * m)
        else:
            column = next(k for k, most in enumerate(np.cumsum(weights)) if draw * weights.sum() < most)
        dense[place // row, column] = True
    return dense


def write_market(path: Path, dense: NDArray[np.bool_]) -> None:
    """A matrix in the Matrix Market format."""
    entries = [f"{i + 1} {j + 1} 1.5" for i, j in zip(*np.nonzero(dense), strict=True)]
    head = [
        "%%MatrixMarket matrix coordinate real general",
        "% by hand",
        f"{dense.shape[0]} {dense.shape[1]} {len(entries)}",
    ]
    path.write_text("\n".join([*head, *entries]) + "\n", encoding="ascii")


def csr_stream(dense: NDArray[np.bool_]) -> Iterator[Access]:
    """`spmv_csr`, access by access."""
    k = 0
    for i, row in enumerate(dense):
        yield "rowptr", i, False
        yield "rowptr", i + 1, False
        for j in np.nonzero(row)[0]:
            yield "val", k, False
            yield "col", k, False
            yield "x", int(j), False
            k += 1
        yield "y", i, True


def csr_arrays(dense: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    """(elements, bytes of one) of each array of `spmv_csr`, as it declares them."""
    n, m = dense.shape
    nnz = int(dense.sum())
    return {"rowptr": (n + 1, 4), "col": (nnz, 4), "val": (nnz, 8), "x": (m, 8), "y": (n, 8)}


def through(stream: Iterator[Access], arrays: dict[str, tuple[int, int]], levels: list[CacheLevel]) -> list[Cache]:
    """The caches after a stream; each array begins at a line of the longest, and dirty data are written back."""
    caches: list[Cache] = []
    for level in levels:
        caches.append(Cache(level, list(caches)))
    for upper, lower in pairwise(caches):
        upper.below = lower
    longest = max(level.line_bytes for level in levels)
    bases, end = {}, 0
    for name, (count, size) in arrays.items():
        bases[name] = end
        end += -(-count * size // longest) * longest
    for name, element, is_write in stream:
        size = arrays[name][1]
        byte = bases[name] + element * size
        if is_write:
            caches[0].write(byte, size, evicted=False)
        else:
            caches[0].read(byte)
    dirty: set[int] = set()
    for cache in caches:
        for line in cache.everything():
            for sector in line.dirty:
                dirty |= set(range(sector, sector + cache.level.sector))
        cache.stores += len({cache.sector(b) for b in dirty})
    return caches


def lru_bytes(
    stream: Iterator[Access], arrays: dict[str, tuple[int, int]], cache_bytes: int, line: int | None
) -> dict[str, int]:
    """The bytes of the lines that begin a stay in a fully associative LRU cache, by array; elements are lines where
    `line` is None.
    """
    held: dict[tuple[str, int], int] = {}
    moved = dict.fromkeys(arrays, 0)
    for name, element, _ in stream:
        size = arrays[name][1]
        key = (name, element if line is None else element * size // line)
        length = size if line is None else line
        if key in held:
            del held[key]
        else:
            moved[name] += length
        held[key] = length
        while sum(held.values()) > cache_bytes:
            held.pop(next(iter(held)))
    return moved
