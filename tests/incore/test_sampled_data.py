"""The data that a walk through compiled code follows: all of them, or pieces with rows as they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from roofdsl.incore import sampled_data as module
from roofdsl.incore.compiled import walked_through
from roofdsl.incore.native import by_numba
from roofdsl.incore.result import InCore, NoInCore, Step
from roofdsl.incore.sampled_data import SampledData, numbers_at, sampled_data, scaled
from roofdsl.incore.state import State
from roofdsl.loops.parameter_values import numbers
from roofdsl.matrices.attach import with_data
from tests.incore.machines import rates
from tests.models.shipped import model
from tests.oracle.loading import kernel_of

POWERLAW = "powerlaw:n=4000,row=9,exponent=1.1,seed=3"


def test_short_launches_are_followed_as_a_whole() -> None:
    kernel, sizes = with_data(model("spmv_csr"), ["rowptr,col=random:n=30,row=4,seed=1"], {})
    found = sampled_data(kernel, sizes)
    assert kernel.data is not None
    assert (found.values, found.scale, found.assumptions) == (sizes, 1, ())
    assert (found.numbers["col"] == kernel.data.values["col"]).all()
    state = State({})
    state.numbers += numbers_at(found, kernel, {"rowptr": 4096, "col": 8192})
    rows = kernel.data.values["rowptr"]
    assert [state.load(4096 + 4 * i, 4) for i in range(32)] == [*rows, None]
    assert state.load(4096, 8) is None and state.looked_up == 32  # two of them at once are no integer
    assert sampled_data(model("gemv"), {"n": 5}) == SampledData({"n": 5}, {})


def test_pieces_are_rows_of_the_matrix() -> None:
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={POWERLAW}"], {})
    assert kernel.data is not None
    rowptr, col = kernel.data.values["rowptr"], kernel.data.values["col"]
    own = {tuple(col[a:b]) for a, b in pairwise(rowptr)}
    found = sampled_data(kernel, sizes)
    ends, columns = found.numbers["rowptr"], found.numbers["col"]
    rows = [tuple(columns[a:b]) for a, b in pairwise(ends)]
    assert found.values == {"n": len(rows), "m": 4000, "nnz": len(columns)} and set(rows) <= own
    done = sum(1 + len(r) for r in rows)
    assert module.MOST / 2 < done < 2 * module.MOST
    assert found.scale == pytest.approx((4000 + len(col)) / done)
    assert "iterations of the loop over i stand for the others" in found.assumptions[0]


@pytest.mark.parametrize(
    ("name", "data", "extent"),
    [
        ("spmv_ell", "col=random:n=9000,row=6,seed=1", "n"),
        ("spmv_coo", "row,col=random:n=9000,row=6,seed=1", "nnz"),
        ("spmv_sell", "chunk,col=random:n=9000,row=6,seed=1", "chunks"),
        ("histogram", "bin=random:n=256,count=90000,seed=1", "n"),
        ("embedding_lookup", "token=random:n=256,count=9000,seed=1", "words"),
    ],
)
def test_other_formats(name: str, data: str, extent: str) -> None:
    kernel, sizes = with_data(model(name), [data], {})
    found = sampled_data(kernel, numbers(kernel, sizes))
    assert found.scale > 1 and not found.whole
    for array in kernel.arrays:
        if array.name in found.numbers:
            shape = [d.evaluate(found.values) for d in array.dims]
            assert found.numbers[array.name].size == np.prod(shape)
            assert found.numbers[array.name].max() < (array.below.evaluate(sizes) if array.below else 1 << 31)
    assert found.values[extent] < sizes[extent]


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["spmv_csr", "spmv_coo"])
def test_pieces_take_the_time_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch walked as a whole, and in pieces of a fifth of it."""
    arrays = "rowptr,col" if name == "spmv_csr" else "row,col"
    kernel, sizes = with_data(model(name), [f"{arrays}=powerlaw:n=1500,row=7,exponent=1.1,seed=3"], {})
    native = by_numba(kernel)
    whole = walked_through(native, kernel, sizes, rates()).cycles
    monkeypatch.setattr(module, "MOST", 2400)
    pieces = sampled_data(kernel, sizes)
    assert pieces.scale > 3
    found = walked_through(native, kernel, sizes, rates(), pieces)
    assert found.cycles == pytest.approx(whole, rel=0.05)


def test_updates_of_one_element_wait_for_each_other() -> None:
    """All bins alike: a chain of stores that hand their data to the next load, 5 cycles and an addition each. Bins that
    lie next to each other do not wait.
    """
    text = """kernel counted(n, bins):
    in bin: i32[n] index(bins)
    inout count_of: i32[bins]
    for i in range(n):
        count_of[bin[i]] += 1
"""
    each = {}
    for bins in (1, 2, 5000):
        kernel, sizes = with_data(kernel_of(text), [f"bin=random:n={bins},count=3000,seed=1"], {})
        each[bins] = walked_through(by_numba(kernel), kernel, sizes, rates()).cycles / 3000
    assert each[1] == pytest.approx(6, abs=0.1)
    assert each[2] == pytest.approx(3, rel=0.2)  # two chains side by side
    assert each[5000] < 1.5


def test_all_loops_may_be_as_long_as_the_data() -> None:
    text = """kernel k(n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), val: f64[nnz], x: f64[m]
    out y: f64[n]
    assume rowptr rises from 0 to nnz
    for i in range(n):
        y[i] = 0
    for i in range(n):
        for k in range(rowptr[i], rowptr[i + 1]):
            y[i] += val[k] * x[col[k]]
"""
    kernel, sizes = with_data(kernel_of(text), [f"rowptr,col={POWERLAW}"], {})
    found = sampled_data(kernel, sizes)
    assert found.whole and found.scale > 1
    walked = InCore("m", (Step("", "", 2.0, 1.0), Step("chain", "", 3.0, 1.5)), None, ("a",))
    longer = scaled(walked, found)
    assert [s.overlapping_s for s in longer.steps] == [2 * found.scale, 3 * found.scale]
    assert longer.assumptions == ("a", *found.assumptions)


def test_what_cannot_be_cut() -> None:
    text = """kernel k(n, m):
    in first: i32[n] index(m), x: f64[m]
    inout y: f64[n]
    for i in range(n):
        y[i] += x[first[i]]
    for i in range(n):
        y[i] += 2 * x[first[i]]
"""
    kernel, sizes = with_data(kernel_of(text), ["first=random:n=50,count=100000,seed=1"], {})
    with pytest.raises(NoInCore, match="cannot be cut into pieces"):
        sampled_data(kernel, sizes)
