"""Cores share what the generated code shares: rows with sums of their own, and rows whose lengths are data."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_scalar_loops
from roofdsl.cli.emit import generated_for
from roofdsl.codegen.generate import generate
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.matrices.attach import with_data
from roofdsl.measure.by_numba import generate_for
from roofdsl.predict.divided_loops import division, in_words, loops_for_cores, undivided
from tests.checks.test_private_scalars import random_scalars
from tests.models.shipped import model
from tests.oracle.loading import kernel_of

MATRICES = [
    "powerlaw:n=70,m=41,row=6,exponent=1,seed=4",
    "powerlaw:n=7,m=41,row=9,exponent=1,seed=2",
    "random:n=70,row=3,seed=1",
    "routing:n=90,m=8,row=2,exponent=1,seed=1+transposed",
]


def most(each: list[int], cores: int) -> Fraction:
    """The largest share of a core, if each gets one run of iterations, the first ones one more than the others."""
    short, more = divmod(len(each), cores)
    dealt = iter(each)
    shares = [sum(next(dealt) for _ in range(short + (core < more))) for core in range(cores)]
    return Fraction(max(shares), sum(each))


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("cores", [2, 3, 7, 100])
def test_rows_of_a_matrix(matrix: str, cores: int) -> None:
    """A row reads two offsets, and a column, a value and an element of x for each entry; it stores one element."""
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={matrix}"], {})
    divided = division(kernel, sizes)
    assert divided is not None and not divided.alone and kernel.data is not None
    offsets = kernel.data.values["rowptr"].tolist()
    assert divided.busiest(cores) == most([2 + 3 * (b - a) + 1 for a, b in pairwise(offsets)], cores)


@pytest.mark.parametrize("cores", [2, 3, 7])
def test_chunks_of_rows(cores: int) -> None:
    """A chunk reads two offsets; each of its columns has 32 entries, with three reads and an update."""
    matrix = f"{MATRICES[0]}+sigma=8"
    kernel, sizes = with_data(model("spmv_sell"), [f"chunk,col={matrix}"], {"C": 32})
    divided = division(kernel, sizes)
    assert divided is not None and not divided.alone and kernel.data is not None
    offsets = kernel.data.values["chunk"].tolist()
    assert divided.busiest(cores) == most([2 + 32 * 5 * (b - a) for a, b in pairwise(offsets)], cores)


def test_rows_of_one_length_are_alike() -> None:
    kernel, sizes = with_data(model("spmv_ell"), [f"col={MATRICES[0]}"], {})
    divided = division(kernel, sizes)
    assert divided is not None and divided.busiest(3) == Fraction(24, 70)


IN_STEPS = """kernel steps(t, n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), val: f64[nnz]
    inout x: f64[m], y: f64[n]
    temp s: f64
    assume rowptr rises from 0 to nnz
    for k in range(t):
        x[0] += 1
        for i in range(1, n):
            s = 0
            if i < m:
                for j in range(rowptr[i], rowptr[i + 1]):
                    s += val[j] * x[col[j]]
            y[i] += s
"""


@pytest.mark.parametrize("cores", [2, 3, 7])
def test_rows_in_steps(cores: int) -> None:
    """Every step is divided anew; one core makes the two accesses before the rows."""
    kernel, sizes = with_data(kernel_of(IN_STEPS), [f"rowptr,col={MATRICES[0]}"], {"t": 3})
    divided = division(kernel, sizes)
    assert divided is not None and kernel.data is not None
    offsets = kernel.data.values["rowptr"].tolist()
    rows = [2 + (2 + 3 * (b - a)) * (i < sizes["m"]) for i, (a, b) in enumerate(pairwise(offsets))][1:]
    every = 2 + sum(rows)
    assert divided.alone == Fraction(2, every)
    assert divided.busiest(cores) == Fraction(2, every) + most(rows, cores) * Fraction(sum(rows), every)


TWICE = """kernel twice(n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), val: f64[nnz], x: f64[m]
    inout y: f64[n]
    assume rowptr rises from 0 to nnz
    for i in range(n):
        for k in range(rowptr[i], rowptr[i + 1]):
            y[i] += val[k] * x[col[k]]
    for i in range(n):
        for k in range(rowptr[i], rowptr[i + 1]):
            y[i] += val[k] * x[col[k]]
"""


def test_loops_that_look_the_same_count_once_each() -> None:
    kernel, sizes = with_data(kernel_of(TWICE), [f"rowptr,col={MATRICES[3]}"], {})
    divided = division(kernel, sizes)
    assert divided is not None and kernel.data is not None
    rows = [2 + 5 * (b - a) for a, b in pairwise(kernel.data.values["rowptr"].tolist())]
    assert [loop.part for loop in divided.loops] == [Fraction(1, 2)] * 2
    assert all(loop.first is not None and loop.first(3) == sum(rows[:3]) for loop in divided.loops)


def test_a_long_row_is_told() -> None:
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={MATRICES[3]}"], {})
    (told,) = in_words(division(kernel, sizes), 4)
    assert told.endswith("since the iterations that they share are not alike")


def test_without_values_rows_count_as_alike() -> None:
    divided = division(model("spmv_csr"), {"n": 10, "m": 10, "nnz": 30})
    assert divided is not None and divided.busiest(5) == Fraction(1, 5)


def test_sums_at_places_that_data_choose_are_not_divided() -> None:
    kernel, sizes = with_data(model("spmv_coo"), [f"row,col={MATRICES[0]}"], {})
    assert division(kernel, sizes) is None
    assert "the data decide whether iterations of spmv_coo are independent" in undivided(kernel)


# ---- the code and the prediction ----


def shared_by_code(kernel: Kernel, target: str) -> tuple[str, ...]:
    try:
        code = generate(kernel, target, "parallel", free=parallel_loops(kernel), private=private_scalar_loops(kernel))
    except CommandError:
        return ()
    assert generate_for(kernel, target, "parallel").source == code.source  # what `measure` runs
    return code.parallel


@pytest.mark.parametrize("data", [False, True])
def test_the_prediction_divides_what_the_code_shares(data: bool) -> None:
    found = {True: 0, False: 0}
    for seed in range(40):
        kernel = random_scalars(seed, data=data)
        divided = tuple(dict.fromkeys(loop.var for loop in loops_for_cores(kernel, apply(kernel))))
        for target in ("c", "python"):
            assert shared_by_code(kernel, target) == divided, seed
        found[bool(divided)] += 1
    assert min(found.values()) > 3, found


@pytest.mark.parametrize("name", ["spmv_csr", "spmv_sell", "histogram", "embedding_lookup", "bfs_pull", "moe_by_token"])
def test_it_divides_what_emit_shows(name: str) -> None:
    kernel = model(name)
    divided = tuple(dict.fromkeys(loop.var for loop in loops_for_cores(kernel, apply(kernel))))
    assert divided and generated_for(kernel, "c", "parallel", {}).parallel == divided
