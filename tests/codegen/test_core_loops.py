"""Loops that cores share although their iterations set scalars: results of several threads, and what is not shared."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_scalar_loops
from roofdsl.codegen.core_loops import core_loops
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.inputs import poisoned
from roofdsl.codegen.load import load_python
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.matrices.attach import with_data
from tests.checks.test_private_scalars import random_scalars
from tests.codegen.running import Case, CLibrary
from tests.models.shipped import model
from tests.oracle.loading import kernel_of

THREADS = 5
"""More than the cores of most machines that run the tests, so that threads are interrupted anywhere."""

REPEATS = 20
NO_GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile generated C with")
UNOPTIMIZED = ("-O0", "-fopenmp")
"""Every access to a scalar is one to memory, so that threads that share it see each other's values (`interleaved`)."""

SOFTMAX = """kernel softmax(n, m):
    in A: f64[n, m]
    out B: f64[n, m]
    temp top, total: f64
    for i in range(n):
        top = A[i, 0]
        for j in range(1, m):
            top max= A[i, j]
        total = 0
        for j in range(m):
            B[i, j] = exp(A[i, j] - top)
            total += B[i, j]
        for j in range(m):
            B[i, j] /= total
"""
LAYER_NORM = """kernel layer_norm(n, m):
    in X: f32[n, m], scale: f32[m]
    out Y: f32[n, m]
    temp mean, spread: f32
    for i in range(n):
        mean = 0
        for j in range(m):
            mean += X[i, j] / m
        spread = 0.00001
        for j in range(m):
            spread += (X[i, j] - mean) * (X[i, j] - mean) / m
        for j in range(m):
            Y[i, j] = (X[i, j] - mean) * rsqrt(spread) * scale[j]
"""
MATRIX = "powerlaw:n=203,m=41,row=6,exponent=1,seed=4"


def of(kernel: Kernel, target: str, variant: str = "parallel", name: str = "") -> Generated:
    """The code of a kernel with what is proven of its loops, as `measure` generates it."""
    named = replace(kernel, name=name or kernel.name)
    return generate(named, target, variant, free=parallel_loops(kernel), private=private_scalar_loops(kernel))


def interleaved(code: Generated) -> Generated:
    """C code that lets other threads run after each of its statements, so that a race shows in nearly every run."""
    first = code.source.index(f"void {code.function}(")  # helpers come before it
    body = re.sub(r"^( .*;)( *//.*)?$", r"\1 sched_yield();\2", code.source[first:], flags=re.MULTILINE)
    return replace(code, source="#include <sched.h>\n" + code.source[:first] + body)


def racing(code: Generated) -> Generated:
    """The code with its threads' scalars in common."""
    return replace(code, source=re.sub(r" private\([^)]*\)", "", code.source))


def numpy_softmax(arrays: dict[str, Any]) -> Any:
    e = np.exp(arrays["A"] - arrays["A"].max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def numpy_layer_norm(arrays: dict[str, Any]) -> Any:
    x = arrays["X"].astype(float)
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * arrays["scale"]


def numpy_spmv(arrays: dict[str, Any]) -> Any:
    products = arrays["val"] * arrays["x"][arrays["col"]]
    return np.array([products[a:b].sum() for a, b in zip(arrays["rowptr"], arrays["rowptr"][1:], strict=False)])


def cases() -> list[tuple[Case, str, Any]]:
    spmv, sizes = with_data(model("spmv_csr"), [f"rowptr,col={MATRIX}"], {})
    found = [(Case(spmv, sizes), "y", numpy_spmv)]
    for rows in (1, 7, 203):
        found.append((Case(kernel_of(SOFTMAX), {"n": rows, "m": 37}), "B", numpy_softmax))
        found.append((Case(kernel_of(LAYER_NORM), {"n": rows, "m": 19}), "Y", numpy_layer_norm))
    return found


def compare(case: Case, call: Any, code: Generated, result: str, expected: Any) -> None:
    arrays = poisoned(case.kernel, case.inputs)
    want = expected(arrays)
    for _ in range(REPEATS):
        case.check(call, code)
        again = {name: array.copy() for name, array in arrays.items()}
        call(code, again, case.params)
        assert np.allclose(again[result], want, rtol=1e-4 if result == "Y" else 1e-12, atol=1e-5)


@NO_GCC
@pytest.mark.parametrize("flags", [UNOPTIMIZED, ("-O2", "-fopenmp")])
def test_c(tmp_path: Path, flags: Sequence[str]) -> None:
    every = cases()
    codes = [of(case.kernel, "c", name=f"k{k}") for k, (case, _, _) in enumerate(every)]
    library = CLibrary([interleaved(c) if flags == UNOPTIMIZED else c for c in codes], tmp_path, flags)
    library.use_threads(THREADS)
    for code, (case, result, expected) in zip(codes, every, strict=True):
        assert code.parallel == ("i",)
        compare(case, library, code, result, expected)


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "spmv_csr"])
def test_python(name: str) -> None:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    try:
        for case, result, expected in cases():
            if case.kernel.name == name:
                code = of(case.kernel, "python")
                assert code.parallel == ("i",)
                compare(case, Compiled(code), code, result, expected)
    finally:
        numba.set_num_threads(before)


class Compiled:
    """Generated Python, compiled by numba."""

    def __init__(self, code: Generated) -> None:
        self.function = load_python(code)

    def __call__(self, code: Generated, arrays: dict[str, Any], params: dict[str, int]) -> None:
        self.function(*(params[a.name] if a.role == "parameter" else arrays[a.name] for a in code.arguments))


TYPES = """kernel {name}(n, m):
    in A: {type}[n, m]
    out y: {type}[n]
    temp s: {type}, double: {type}
    for i in range(0, n, {step}), h in range(i, min(n, i + {step})):
        s = 0
        double = A[h, 0]
        for j in range(m):
            s += A[h, j]
            double {update} A[h, j]
        y[h] = s + double
"""
STREAM = """kernel stream(n):
    in b: f64[n]
    out a: f64[n]
    temp s: f64
    for i in range(n):
        s = b[i]
        s += 1
        stream a[i] = s * 2
"""


def of_type(name: str, step: int) -> Case:
    update = "-=" if name.startswith("c") else "max="
    text = TYPES.format(name=f"{name}_{step}", type=name, step=step, update=update)
    return Case(kernel_of(text), {"n": 67, "m": 5})


@NO_GCC
def test_types_in_c(tmp_path: Path) -> None:
    """Scalars of all types, one of them with a name that C reserves, and steps that do not come out even."""
    names = ("f64", "f32", "f16", "bf16", "f8", "i64", "i32", "i16", "c128", "c64")
    every = [of_type(name, step) for name in names for step in (1, 3)]
    every.append(Case(kernel_of(STREAM), {"n": 1003}))
    codes = [of(case.kernel, "c") for case in every]
    library = CLibrary([interleaved(code) for code in codes], tmp_path, UNOPTIMIZED)
    library.use_threads(THREADS)
    for case, code in zip(every, codes, strict=True):
        assert code.parallel == ("i",)
        case.check(library, code, told=False)


@pytest.mark.spread(2)
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "f8", "i64", "i32", "i16", "c128"])
def test_types_in_python(name: str, step: int) -> None:
    case = of_type(name, step)
    code = of(case.kernel, "python")
    assert code.parallel == ("i",)
    case.check(Compiled(code), code, told=False)


# ---- random kernels ----


def drawn(number: int, *, data: bool = False) -> list[Kernel]:
    """Random kernels of which a loop is shared whose iterations set scalars, with different names."""
    found: list[Kernel] = []
    for seed in count():
        kernel = random_scalars(seed, data=data)
        shared = core_loops(kernel, parallel_loops(kernel), private_scalar_loops(kernel))
        if any(loop.own for loop in shared):
            found.append(replace(kernel, name=f"k{seed}"))
        if len(found) == number:
            break
    return found


def results(case: Case, call: Any, code: Generated) -> dict[str, Any]:
    arrays = {name: array.copy() for name, array in poisoned(case.kernel, case.inputs).items()}
    call(code, arrays, case.params)
    return arrays


@NO_GCC
@pytest.mark.parametrize("data", [False, True])
@pytest.mark.parametrize("sizes", [{"n": 23, "m": 9}, {"n": 2, "m": 1}])
def test_random_c_has_the_results_of_the_loops(tmp_path: Path, sizes: dict[str, int], data: bool) -> None:
    """To the last bit, since no iteration adds in another order. Where the same code has its scalars in common,
    nearly every kernel has other results, so races are seen.
    """
    kernels = drawn(15, data=data)
    shared = [of(k, "c") for k in kernels]
    wrong = [racing(of(k, "c", name=f"{k.name}_racing")) for k in kernels]
    alone = [of(k, "c", "loops", f"{k.name}_alone") for k in kernels]
    assert all("private(" in code.source for code in shared)
    library = CLibrary([*map(interleaved, (*shared, *wrong)), *alone], tmp_path, UNOPTIMIZED)
    library.use_threads(THREADS)
    seen = 0
    for kernel, several, race, one in zip(kernels, shared, wrong, alone, strict=True):
        case = Case(kernel, sizes)
        case.check(library, one, told=False)
        want = results(case, library, one)
        for _ in range(5):
            assert different(results(case, library, several), want) == [], kernel.name
        seen += any(different(results(case, library, race), want) for _ in range(5))
    assert seen > len(kernels) / 2 or sizes["n"] == 2


def different(found: dict[str, Any], want: dict[str, Any]) -> list[str]:
    """The arrays that differ in a bit."""
    return [name for name, array in want.items() if not np.array_equal(found[name], array, equal_nan=True)]


@pytest.mark.spread(3, 10)
@pytest.mark.parametrize("number", range(20))
def test_random_python_has_the_results_of_the_loops(number: int) -> None:
    """numba takes a variable that is not certainly set in an iteration for a sum; none is."""
    kernel = drawn(20)[number]
    case = Case(kernel, {"n": 41, "m": 17})
    several, one = (generate_strict(kernel, variant) for variant in ("parallel", "loops"))
    want = results(case, Compiled(one), one)
    call = Compiled(several)
    for _ in range(REPEATS):
        assert different(results(case, call, several), want) == []


def generate_strict(kernel: Kernel, variant: str) -> Generated:
    private = private_scalar_loops(kernel)
    return generate(kernel, "python", variant, free=parallel_loops(kernel), private=private, math="strict")


# ---- what is not shared ----

DATA = """kernel k(n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), to: i32[n] index(m), x: f64[m]
    out y: f64[n]
    inout z: f64[m + n], last: f64
    temp s: f64
    assume rowptr rises from 0 to nnz
"""
ROW = "        for k in range(rowptr[i], rowptr[i + 1]):\n"
ONE_CORE = {
    "a sum of all rows": f"""    s = 0
    for i in range(n):
{ROW}            s += x[col[k]]
        y[i] = s
""",
    "set in rows that may be empty": f"""    s = 0
    for i in range(n):
{ROW}            s = x[col[k]]
        y[i] = s
""",
    "needed after the loop": """    for i in range(n):
        s = x[to[i]]
        y[i] = s
    last += s
""",
    "needed after the loop, and set before it": """    for t in range(3):
        s = 0
        for i in range(n):
            s = x[to[i]]
            y[i] = s + t
        last += s
""",
    "a place that data choose": """    for i in range(n):
        s = x[to[i]]
        z[to[i]] = s
""",
    "sums at places that data choose": """    for i in range(n):
        s = x[to[i]]
        z[to[i]] += s
""",
    "declared, with a sum of all": """    s = 0
    parallel for i in range(n):
        s += x[to[i]]
        z[i] = s
""",
    "a result": """    for i in range(n):
        last = x[to[i]]
        y[i] = last
""",
}


@pytest.mark.parametrize("target", ["c", "python"])
@pytest.mark.parametrize("name", ONE_CORE)
def test_data_that_keep_a_loop_on_one_core(name: str, target: str) -> None:
    with pytest.raises(CommandError, match="no loop whose iterations are known to be independent"):
        of(kernel_of(DATA + ONE_CORE[name]), target)


SHARED = {
    "set in each row": f"""    for i in range(n):
        s = 0
{ROW}            s += x[col[k]]
        y[i] = s
""",
    "declared": """    parallel for i in range(n):
        s = x[to[i]]
        z[to[i]] = s
""",
    "set again in another loop": """    s = 3
    for i in range(n):
        s = x[to[i]]
        y[i] = s
    for j in range(m):
        s = x[j]
        z[j] += s
""",
}


@pytest.mark.parametrize("name", SHARED)
def test_data_that_allow_to_share_a_loop(name: str) -> None:
    code = of(kernel_of(DATA + SHARED[name]), "c")
    assert code.parallel[0] == "i" and "#pragma omp parallel for private(s)\n" in code.source


def test_affine_loops_that_stay_on_one_core() -> None:
    head = "kernel k(n, m):\n    in A: f64[n]\n    inout B: f64[n], last: f64\n    temp s: f64\n    s = 0\n"
    for body in (
        "    for i in range(n):\n        s += A[i]\n        B[i] = s\n",
        "    for i in range(n):\n        s = A[i]\n        B[i] = s\n    last = s\n",
        "    for i in range(n):\n        if i < m:\n            s = A[i]\n        B[i] = s\n",
        "    for i in range(n):\n        for j in range(i):\n            s = A[j]\n        B[i] = s\n",
        "    for i in range(1, n):\n        s = B[i - 1]\n        B[i] = s + A[i]\n",
    ):
        with pytest.raises(CommandError, match="no loop whose iterations are known to be independent"):
            of(kernel_of(head + body), "c")


def test_an_inner_loop_is_shared_where_the_outer_one_is_not() -> None:
    """Steps in time depend on each other; the rows in each of them do not."""
    text = """kernel steps(t, n, m):
    inout A: f64[n, m]
    temp s: f64
    for k in range(t):
        for i in range(n):
            s = 0
            for j in range(m):
                s += A[i, j]
            for j in range(m):
                A[i, j] -= s / m
"""
    code = of(kernel_of(text), "c")
    assert code.parallel == ("i",)
    pragma = code.source.splitlines().index("        #pragma omp parallel for private(s)")
    assert "for (int64_t i = 0" in code.source.splitlines()[pragma + 1]
