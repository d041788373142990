"""CUDA of kernels with index arrays: run on the host, against the reference, and what stays in one thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.codegen.generate import generate
from roofdsl.lang.diagnostics import CommandError
from roofdsl.matrices.attach import with_data
from tests.codegen.running import Case, CudaLibrary
from tests.models.shipped import model
from tests.oracle.loading import kernel_of

MATRIX = "powerlaw:n=70,m=41,row=6,exponent=1,seed=4"
GRAPH = "rowptr,neighbor=powerlaw:n=90,row=5,exponent=1,seed=2"

SHIPPED = {
    "spmv_csr": ([f"rowptr,col={MATRIX}"], {}),
    "spmv_ell": ([f"col={MATRIX}"], {}),
    "spmv_sell": ([f"chunk,col={MATRIX}+sigma=8"], {"C": 32}),
    "spmv_coo": ([f"row,col={MATRIX}"], {}),
    "histogram": (["bin=powerlaw:n=9,count=700,exponent=1,seed=1"], {}),
    "embedding_lookup": (["token=random:n=11,count=40,seed=3"], {"d": 37}),
    "moe_by_token": (["expert=routing:n=7,m=5,row=2,seed=1"], {"d": 6, "f": 33}),
    "moe_by_expert": (["first,token=routing:n=7,m=5,row=2,seed=1+transposed"], {"d": 6, "f": 33}),
    "bfs_pull": ([GRAPH], {}),
    "bfs_push": ([GRAPH, "frontier=random:n=90,count=20,seed=5"], {}),
}

WRITTEN = {
    # the transposed product scatters from a loop over rows: threads of different rows meet in y
    "scatter": """kernel scatter(n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m)
    in val: f64[nnz], x: f64[n]
    inout y: f64[m]
    assume rowptr rises from 0 to nnz
    for i in range(n):
        for k in range(rowptr[i], rowptr[i + 1]):
            y[col[k]] -= val[k] * x[i]
""",
    # integers of 64 bits, the least and the most
    "extremes": """kernel extremes(n, m, nnz):
    in row: i32[nnz] index(n), col: i32[nnz] index(m)
    in a: i64[nnz]
    inout low: i64[n], high: i64[m], total: i64[n]
    for k in range(nnz):
        low[row[k]] min= a[k]
        high[col[k]] max= a[k]
        total[row[k]] += a[k]
""",
    # a row at a place that data choose, with a sum that each thread has for itself
    "gathered": """kernel gathered(n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m)
    in val: f64[nnz], x: f64[m]
    inout y: f64[n]
    assume rowptr rises from 0 to nnz
    for i in range(n):
        for k in range(rowptr[i], rowptr[i + 1]):
            y[i] += val[k] * x[col[k]]
""",
}
DATA = {"scatter": "rowptr,col", "extremes": "row,col", "gathered": "rowptr,col"}


def cases() -> dict[str, Case]:
    found = {}
    for name, (data, sizes) in SHIPPED.items():
        found[name] = Case(*with_data(model(name), data, sizes))
    for name, text in WRITTEN.items():
        found[name] = Case(*with_data(kernel_of(text), [f"{DATA[name]}={MATRIX}"], {}))
    return found


@pytest.mark.thorough
def test_threads_compute_what_the_loops_do(tmp_path: Path) -> None:
    every = cases()
    generated = {name: generate(case.kernel, "cuda") for name, case in every.items()}
    library = CudaLibrary(list(generated.values()), tmp_path)
    for name, case in every.items():
        assert generated[name].parallel, name
        assert not generated[name].notes, name  # nothing runs on one thread
        case.check(library, generated[name])


@pytest.mark.parametrize(
    ("name", "parallel", "atomic"),
    [
        ("spmv_csr", ("i",), False), ("spmv_ell", ("i",), False), ("spmv_sell", ("r", "c"), False),
        ("spmv_coo", ("k",), True), ("embedding_lookup", ("e", "t"), False), ("bfs_push", ("q",), True),
        ("moe_by_token", ("j", "t"), False), ("moe_by_expert", ("j", "e"), True),
    ],
)  # fmt: skip
def test_what_becomes_threads(name: str, parallel: tuple[str, ...], atomic: bool) -> None:
    found = generate(model(name), "cuda")
    assert found.parallel == parallel
    assert ("atomic" in found.source) == atomic


ONE_THREAD = {
    "what another iteration wrote is read": """kernel k(n, m):
    in to: i32[n] index(m)
    inout y: f64[m]
    for i in range(n):
        y[to[i]] += y[0]
""",
    "the last one wins": """kernel k(n, m):
    in to: i32[n] index(m), x: f64[n]
    inout y: f64[m]
    for i in range(n):
        y[to[i]] = x[i]
""",
    "no atomic product": """kernel k(n, m):
    in to: i32[n] index(m), x: f64[n]
    inout y: f64[m]
    for i in range(n):
        y[to[i]] *= x[i]
""",
    "no atomic operation on f16": """kernel k(n, m):
    in to: i32[n] index(m), x: f16[n]
    inout y: f16[m]
    for i in range(n):
        y[to[i]] += x[i]
""",
    "sums and minima of one element": """kernel k(n, m):
    in to: i32[n] index(m), x: i32[n]
    inout y: i32[m]
    for i in range(n):
        y[to[i]] += x[i]
        y[to[i]] min= 3
""",
    "a scalar goes from one iteration to the next": """kernel k(n, m):
    in to: i32[n] index(m), x: f64[m]
    out y: f64[n]
    temp s: f64
    s = 0
    for i in range(n):
        s += x[to[i]]
        y[i] = s
""",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("text", ONE_THREAD.values(), ids=ONE_THREAD)
def test_what_stays_in_one_thread(text: str, tmp_path: Path) -> None:
    """It is generated all the same, says so, and computes what the loops do."""
    kernel = kernel_of(text)
    found = generate(kernel, "cuda")
    assert any("runs on one thread" in note for note in found.notes)
    if "f16" not in text:
        case = Case(kernel, {"n": 30, "m": 7})
        case.check(CudaLibrary([found], tmp_path), found, told=False)


def test_a_place_that_two_iterations_share(tmp_path: Path) -> None:
    """The threads of one launch do not meet there; the host goes through the loop whose iterations do."""
    kernel = kernel_of("""kernel k(n, m):
    in to: i32[n] index(m), x: f64[m]
    inout y: f64[2 * n]
    for i in range(n), j in range(2):
        y[i + j] = x[to[i]] * y[i + j]
""")
    found = generate(kernel, "cuda")
    assert found.parallel == ("j",) and len(list(found.launches({"n": 30, "m": 7}))) == 30
    Case(kernel, {"n": 30, "m": 7}).check(CudaLibrary([found], tmp_path), found, told=False)


def test_declared_parallel_without_an_atomic_operation() -> None:
    text = ONE_THREAD["no atomic operation on f16"].replace("for i", "parallel for i")
    with pytest.raises(CommandError, match="CUDA has no such atomic operation on f16"):
        generate(kernel_of(text), "cuda")


@pytest.mark.parametrize(("target", "variant"), [("cuda", "tiled"), ("c", "grouped"), ("python", "grouped")])
def test_what_is_not_available(target: str, variant: str) -> None:
    with pytest.raises(CommandError, match=f"the variant `{variant}` in {target} is not available"):
        generate(model("spmv_csr"), target, variant)


STEPS = {
    # the last value of a thread's scalar is needed after the threads
    "leaves": """kernel leaves(n, m):
    in to: i32[n] index(m), x: f64[m]
    inout y: f64[n], z: f64[n + 3]
    temp s: f64
    for t in range(3):
        s = 0
        for i in range(n):
            s = x[to[i]]
            y[i] = s + t
        z[t] += s
""",
    # and here a value from before the threads
    "enters": """kernel enters(n, m):
    in to: i32[n] index(m), x: f64[m]
    inout y: f64[n], z: f64[m]
    temp s: f64
    for t in range(3):
        s = t
        for j in range(m):
            z[j] += s
        for i in range(n):
            s = x[to[i]]
            y[i] = s + t
""",
    # a loop of one iteration, which the host runs
    "once": """kernel once(n, m):
    in to: i32[n] index(m), x: f64[m]
    inout y: f64[1, n], z: f64[1]
    temp s: f64
    for t in range(1):
        s = 0
        for i in range(n):
            s = x[to[i]]
            y[t, i] = s
        z[t] += s
""",
}


def test_scalars_that_threads_pass_on_are_not_their_own(tmp_path: Path) -> None:
    every = [Case(kernel_of(text), {"n": 17, "m": 23}) for text in STEPS.values()]
    codes = [generate(case.kernel, "cuda") for case in every]
    library = CudaLibrary(codes, tmp_path)
    for case, code in zip(every, codes, strict=True):
        assert "i" not in code.parallel
        case.check(library, code)
