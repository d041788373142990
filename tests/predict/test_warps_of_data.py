"""Sectors that warps touch where data choose them, against warps and threads run one by one here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np
import pytest

from roofdsl.counts.work_at import work_at
from roofdsl.counts.work_record import WorkAt
from roofdsl.machine.find import load_machine
from roofdsl.matrices.attach import with_data
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.kernel_launches import BY_DATA
from roofdsl.predict.options import Options
from roofdsl.predict.warps_of_data import warp_bytes_of_data
from tests.models.shipped import model
from tests.oracle.loading import kernel_of
from tests.oracle.sparse import places

Touch = tuple[str, int, bool]
SIZES = {"rowptr": 4, "row": 4, "col": 4, "val": 8, "x": 8, "y": 8, "bin": 4, "count_of": 4}


def sectors(threads: list[list[list[Touch]]], warp: int, sector: int) -> tuple[int, int]:
    """(loaded, stored) bytes of threads, each a list of steps of accesses; a warp's threads take steps together."""
    loaded = stored = 0
    for start in range(0, len(threads), warp):
        for step in zip_longest(*threads[start : start + warp], fillvalue=[]):
            for access in zip_longest(*step):
                touched = {(n, k * SIZES[n] // sector, w) for n, k, w in (a for a in access if a is not None)}
                loaded += sector * sum(not w for _, _, w in touched)
                stored += sector * sum(w for _, _, w in touched)
    return loaded, stored


def rows_of(dense: np.ndarray) -> Iterator[tuple[int, int, list[int]]]:
    k = 0
    for i, row in enumerate(dense):
        columns = [int(j) for j in np.nonzero(row)[0]]
        yield i, k, columns
        k += len(columns)


@pytest.mark.parametrize("source", ["random:n=70,m=50,row=5,seed=2", "powerlaw:n=40,m=90,row=9,exponent=1,seed=3"])
@pytest.mark.parametrize(("warp", "sector"), [(32, 32), (8, 64), (1, 32)])
def test_a_row_for_each_thread(source: str, warp: int, sector: int) -> None:
    threads: list[list[list[Touch]]] = []
    for i, first, columns in rows_of(places(source)):
        steps: list[list[Touch]] = [[("rowptr", i, False)], [("rowptr", i + 1, False)]]
        for k, j in enumerate(columns, first):
            steps.append([("val", k, False), ("col", k, False), ("x", j, False)])
        threads.append(steps)
    loaded, _ = sectors(threads, warp, sector)
    written, stored = sectors([[[("y", i, True)]] for i in range(len(threads))], warp, sector)
    assert written == 0
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={source}"], {})
    assert warp_bytes_of_data(kernel, sizes, warp, sector) == (loaded, stored)


def test_an_entry_for_each_thread() -> None:
    source = "random:n=30,m=50,row=5,seed=2"
    threads = []
    for i, first, columns in rows_of(places(source)):
        for k, j in enumerate(columns, first):
            threads.append([[("val", k, False), ("col", k, False), ("x", j, False), ("row", k, False), ("y", i, False),
                             ("row", k, False), ("y", i, True)]])  # fmt: skip
    kernel, sizes = with_data(model("spmv_coo"), [f"row,col={source}"], {})
    loaded, stored = warp_bytes_of_data(kernel, sizes, 32, 32)
    want = sectors(threads, 32, 32)
    once = sectors([[[("row", k, False)]] for k in range(len(threads))], 32, 32)[0]
    assert stored == want[1] and loaded in (want[0], want[0] - once)  # an update reads its place once


def test_a_gpu_is_predicted() -> None:
    """The nearest level has the sectors of warps, and the assumptions say what is not that of blocks."""
    v100 = load_machine("v100")
    for name, data in (("spmv_csr", "rowptr,col=random:n=500,row=6,seed=1"),
                       ("spmv_coo", "row,col=random:n=500,row=6,seed=1")):  # fmt: skip
        kernel, sizes = with_data(model(name), [data], {})
        found = predict(kernel, sizes, v100)
        l1 = next(level for level in found.levels if level.name == "L1")
        assert (l1.loads_bytes, l1.stores_bytes) == warp_bytes_of_data(kernel, sizes, 32, 32)
        assert any("data choose the accesses" in note for note in found.assumptions)


def test_loops_without_a_known_sum_are_gone_through() -> None:
    """The rows of a frontier: what `derive` cannot know, the data tell."""
    graph = "rowptr,neighbor=powerlaw:n=60,row=5,exponent=1,seed=2"
    kernel, sizes = with_data(model("bfs_push"), [graph, "frontier=random:n=60,count=25,seed=5"], {})
    assert kernel.data is not None
    rowptr, frontier = kernel.data.values["rowptr"], kernel.data.values["frontier"]
    found: WorkAt = work_at(kernel, sizes)
    assert found.total == int((rowptr[frontier + 1] - rowptr[frontier]).sum())


def test_data_choose_the_size_of_launches() -> None:
    """The loop over the entries of a row is spread over threads, and the host goes from row to row."""
    text = (
        "kernel k(n, m, nnz):\n    in ptr: i32[n + 1], idx: i32[nnz] index(m)\n    in x: f64[m]\n    out y: f64[nnz]\n"
        "    assume ptr rises from 0 to nnz\n    for i in range(n), k in range(ptr[i], ptr[i + 1]):\n"
        "        y[k] = 2 * x[idx[k]]\n"
    )
    kernel, sizes = with_data(kernel_of(text), ["ptr,idx=random:n=300,row=5,seed=1"], {})
    found = predict(kernel, sizes, load_machine("h200"), Options(code=Code()))
    assert BY_DATA in found.warnings and found.no_expected == BY_DATA
    assert found.levels[0].loads_bytes is not None and found.levels[0].loads_bytes > 16 * sizes["nnz"]
