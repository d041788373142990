"""Streams that data choose: twelve matrices through three hierarchies, against streams written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.matrices.attach import with_data
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.hierarchy import simulate
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.models.shipped import model
from tests.oracle import best
from tests.oracle.sparse import Access, csr_arrays, csr_stream, lru_bytes, places, through, write_market

COUNTS = ("hits", "misses", "loads", "stores", "passed", "passed_bytes")
HIERARCHIES = (
    [CacheLevel("L1", 512, 64)],
    [
        CacheLevel("L1", 256, 32, 2, write_miss="claim"),
        CacheLevel("L2", 1024, 64, 4, "fifo", write_miss="claim"),
    ],
    [
        CacheLevel("L1", 256, 32, 4, "plru"),
        CacheLevel("L2", 512, 32, 2),
        CacheLevel("L3", 1024, 32, 4, inclusion="exclusive"),
    ],
)
MATRICES = (
    "banded:n=1,w=0",
    "banded:n=40,w=1",
    "banded:n=37,w=6",
    "banded:n=20,m=33,w=4",
    "random:n=40,row=1,seed=0",
    "random:n=33,row=5,seed=1",
    "random:n=20,m=50,row=7,seed=2",
    "random:n=50,m=9,row=4,seed=3",
    "powerlaw:n=30,row=6,exponent=1.2,seed=4",
    "powerlaw:n=45,row=3,exponent=2,seed=5",
    "powerlaw:n=12,m=60,row=9,exponent=0.5,seed=6",
)


def csr(source: str) -> tuple[Kernel, dict[str, int]]:
    return with_data(model("spmv_csr"), [f"rowptr,col={source}"], {})


def agree(kernel: Kernel, sizes: dict[str, int], stream: list[Access], arrays: dict[str, tuple[int, int]]) -> None:
    for levels in HIERARCHIES:
        got = simulate(kernel, sizes, levels)
        assert got.accesses == len(stream)
        want = through(iter(stream), arrays, levels)
        for found, cache in zip(got.levels, want, strict=True):
            assert [getattr(found, c) for c in COUNTS] == [getattr(cache, c) for c in COUNTS], levels


@pytest.mark.parametrize("source", MATRICES)
def test_csr(source: str) -> None:
    dense = places(source)
    kernel, sizes = csr(source)
    assert sizes == {"n": dense.shape[0], "m": dense.shape[1], "nnz": int(dense.sum())}
    agree(kernel, sizes, list(csr_stream(dense)), csr_arrays(dense))


def test_csr_of_a_file_with_empty_rows(tmp_path: Path) -> None:
    dense = np.random.default_rng(7).random((31, 17)) < 0.08
    dense[[0, 5, 6, 30]] = False
    write_market(tmp_path / "A.mtx", dense)
    kernel, sizes = csr(str(tmp_path / "A.mtx"))
    agree(kernel, sizes, list(csr_stream(dense)), csr_arrays(dense))


@pytest.mark.parametrize("line", [None, 64])
@pytest.mark.parametrize("source", MATRICES[2:9:3])
def test_lru_and_stack_distances(source: str, line: int | None) -> None:
    dense = places(source)
    kernel, sizes = csr(source)
    curve = miss_curve(kernel, sizes, line)
    for cache_bytes in (64, 200, 1000):
        want = lru_bytes(csr_stream(dense), csr_arrays(dense), cache_bytes, line)
        found = simulate_lru(kernel, sizes, cache_bytes, line)
        assert {a.array.name: a.residencies * a.line_bytes for a in found.arrays} == want
        assert curve.bytes(cache_bytes, "write_allocate") == sum(want.values()) + want["y"]


@pytest.mark.parametrize("source", MATRICES[2:9:3])
def test_the_best_replacement(source: str) -> None:
    dense, line = places(source), 32
    kernel, sizes = csr(source)
    first, end = {}, 0
    for name, (elements, size) in csr_arrays(dense).items():
        first[name] = end
        end += -(-elements * size // line)
    accesses = [
        best.Access(first[name] + index * csr_arrays(dense)[name][1] // line, is_write, dropped=False)
        for name, index, is_write in csr_stream(dense)
    ]
    for lines in (1, 4, 9, 20):
        level = CacheLevel("Z", line * lines, line, None, "opt")
        (found,) = simulate(kernel, sizes, [level]).levels
        want = best.belady(accesses, lines)
        assert (found.hits + found.misses, found.misses, found.stores) == (len(accesses), want.misses, want.stored)


def ell_stream(dense: np.ndarray) -> list[Access]:
    wide = int(dense.sum(axis=1).max())
    columns = [np.nonzero(row)[0].tolist() for row in dense]
    padded = [own + [own[-1] if own else 0] * (wide - len(own)) for own in columns]
    stream: list[Access] = []
    for i, own in enumerate(padded):
        for j, column in enumerate(own):
            stream += [("val", i * wide + j, False), ("col", i * wide + j, False), ("x", column, False)]
        stream.append(("y", i, True))
    return stream


def test_ell() -> None:
    dense = places(MATRICES[8])
    kernel, sizes = with_data(model("spmv_ell"), [f"col={MATRICES[8]}"], {})
    n, m = dense.shape
    w = sizes["w"]
    agree(kernel, sizes, ell_stream(dense), {"col": (n * w, 4), "val": (n * w, 8), "x": (m, 8), "y": (n, 8)})


@pytest.mark.parametrize("sigma", [1, 8])
def test_sell(sigma: int) -> None:
    source, chunk = MATRICES[5], 4
    dense = places(source)
    kernel, sizes = with_data(model("spmv_sell"), [f"chunk,col={source}+sigma={sigma}"], {"C": chunk})
    n, m = dense.shape
    rows = [np.nonzero(row)[0].tolist() for row in dense]
    ordered = [r for first in range(0, n, sigma) for r in sorted(rows[first : first + sigma], key=len, reverse=True)]
    ordered += [[]] * (-n % chunk)
    stream: list[Access] = []
    at = 0
    for c in range(len(ordered) // chunk):
        own = ordered[c * chunk : (c + 1) * chunk]
        stream += [("chunk", c, False), ("chunk", c + 1, False)]
        for j in range(max(map(len, own))):
            for r, row in enumerate(own):
                column = (row + [row[-1] if row else 0] * 100)[j]
                stream += [("val", at, False), ("col", at, False), ("x", column, False)]
                stream += [("y", c * chunk + r, False), ("y", c * chunk + r, True)]
                at += 1
    rows_in_all = len(ordered)
    arrays = {
        "chunk": (rows_in_all // chunk + 1, 4),
        "col": (at, 4),
        "val": (at, 8),
        "x": (m, 8),
        "y": (rows_in_all, 8),
    }
    agree(kernel, sizes, stream, arrays)


def test_coo() -> None:
    dense = places(MATRICES[6])
    kernel, sizes = with_data(model("spmv_coo"), [f"row,col={MATRICES[6]}"], {})
    stream: list[Access] = []
    for k, (i, j) in enumerate(zip(*np.nonzero(dense), strict=True)):
        stream += [("val", k, False), ("col", k, False), ("x", int(j), False), ("row", k, False)]
        stream += [("y", int(i), False), ("y", int(i), True)]
    nnz, (n, m) = int(dense.sum()), dense.shape
    agree(kernel, sizes, stream, {"row": (nnz, 4), "col": (nnz, 4), "val": (nnz, 8), "x": (m, 8), "y": (n, 8)})


def test_histogram_and_embedding() -> None:
    draws = np.random.Generator(np.random.PCG64(3)).random(200)
    bins = [int(d * 20) for d in draws]
    kernel, sizes = with_data(model("histogram"), ["bin=random:n=20,count=200,seed=3"], {})
    assert sizes == {"n": 200, "bins": 20}
    stream: list[Access] = [("count_of", b, True) for b in range(20)]
    for i, b in enumerate(bins):
        stream += [("bin", i, False), ("count_of", b, False), ("count_of", b, True)]
    agree(kernel, sizes, stream, {"bin": (200, 4), "count_of": (20, 4)})

    kernel, sizes = with_data(model("embedding_lookup"), ["token=random:n=20,count=200,seed=3"], {"d": 5})
    stream = []
    for t, b in enumerate(bins):
        for e in range(5):
            stream += [("token", t, False), ("table", b * 5 + e, False), ("rows", t * 5 + e, True)]
    agree(kernel, sizes, stream, {"token": (200, 4), "table": (100, 4), "rows": (1000, 4)})


def test_no_data() -> None:
    with pytest.raises(CommandError, match="depends on the values of rowptr, col"):
        simulate(model("spmv_csr"), {"n": 3, "m": 3, "nnz": 9}, HIERARCHIES[0])
