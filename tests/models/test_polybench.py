"""PolyBench's 30 kernels: operations and accesses as published, and results as numpy has them."""

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sympy

from roofdsl.checks.deep import require_legal
from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.formulas.sympy_forms import expression, parameter
from roofdsl.lang.format import format_source
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.load import kernel, load_file, read_source
from roofdsl.loops.model import Assign, Kernel, Let
from roofdsl.loops.transform import apply
from roofdsl.machine.find import SIZES, models_folder, shipped, shipped_model, shipped_models, standard_sizes
from tests.counts.exact import cache_choices, check_numbers
from tests.models.execute import Arrays, execute, inputs

Array = npt.NDArray[Any]

REFERENCE = Path(__file__).parents[1] / "reference"
BOUNDS = {r["kernel"]: r for r in json.loads((REFERENCE / "polybench_bounds.json").read_text())["rows"]}
LARGE = json.loads((REFERENCE / "polybench_large_misses.json").read_text())["rows"]
NAMES = {"mm2": "2mm", "mm3": "3mm"}
KERNELS = list(shipped("polybench"))


def published(name: str) -> str:
    """PolyBench's own name of a kernel."""
    return NAMES.get(name, name.replace("_", "-"))


@cache
def model(name: str) -> Kernel:
    return apply(kernel(load_file(shipped("polybench")[name]), name))


@cache
def forms(name: str) -> ClosedForms:
    return ClosedForms(model(name), {})


def of_table(name: str, column: str) -> Any:
    """A column of the table in the kernel's parameters: T is the number of time steps, the others in small letters."""
    own = {p.name: parameter(p.name) for p in model(name).parameters}
    names = {
        s: own[s.lower()] if s != "T" else own.get("tsteps", own.get("tmax")) for s in BOUNDS[published(name)]["params"]
    }
    assert set(names.values()) == set(own.values())
    return sympy.sympify(BOUNDS[published(name)][column], locals=names)


def large(form: Any) -> Any:
    """The form where every size is beyond the small ones that have cases of their own."""
    if not form.has(sympy.Piecewise):
        return sympy.expand(form)
    return sympy.expand(form.replace(sympy.Piecewise, lambda *pieces: pieces[0][0]))


def test_all_thirty() -> None:
    assert {published(name) for name in KERNELS} == set(BOUNDS) == set(LARGE)
    assert len(KERNELS) == 30
    for path in shipped("polybench").values():
        checked, source = load_file(path), read_source(path)
        assert checked.own == (path.stem,)
        assert checked.warnings == ()
        assert format_source(source) == source.text, path


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", KERNELS)
def test_work_is_the_tables(name: str) -> None:
    difference = sympy.expand(expression(forms(name).work) - of_table(name, "W"))
    if name == "nussinov":  # of which the table has the leading term only: N^3/6 additions, N^3/6 comparisons
        n = parameter("n")
        in_loop, diagonal = n * (n - 1) * (n - 2) / 6, (n - 1) * (n - 2) / 2
        exact = 2 * in_loop + 4 * diagonal  # sums are formed twice; a pair's score is one more addition
        assert sympy.expand(difference - exact + n**3 / 3) == 0
        assert sympy.degree(difference, n) == 2
    else:
        assert difference == 0


@pytest.mark.spread(10)
@pytest.mark.parametrize("name", KERNELS)
def test_accesses_at_large_are_those_published(name: str) -> None:
    placed = [s.statement for s in statements(forms(name).kernel.body)]
    weights = [len(accesses(s)) if isinstance(s, Assign | Let) else 0 for s in placed]
    sizes = {parameter(p): value for p, value in standard_sizes()[name]["large"].items()}
    assert expression(forms(name).weighted(weights)).subs(sizes) == LARGE[published(name)]["accesses"]


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", KERNELS)
def test_elements_touched_and_read_first_are_the_tables(name: str) -> None:
    bytes_of = {a.name: a.type.bytes for a in model(name).arrays}
    touched = {a: large(expression(form)) / bytes_of[a] for a, form in forms(name).by_array().items()}
    loads = large(expression(forms(name).compulsory("load_store").loads))
    n = parameter("n")
    if name == "durbin":  # z is on the stack there, and not counted
        assert touched.pop("z") == n - 1
    if name == "nussinov":  # the table of scores is counted there, the sequence of bases is not
        assert touched.pop("seq") == n
        loads -= n
    (width,) = {bytes_of[a] for a in touched}
    assert sympy.expand(sum(touched.values()) - of_table(name, "touched")) == 0
    assert sympy.expand(loads / width - of_table(name, "input_size")) == 0


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", KERNELS)
def test_legal_and_as_executed(name: str) -> None:
    found = model(name)
    sizes = dict(zip((p.name for p in found.parameters), (5, 6, 4, 3, 7), strict=False))
    require_legal(found)
    done = execute(found, sizes, inputs(found, sizes))
    assert expression(forms(name).work).subs({parameter(p): v for p, v in sizes.items()}) == done.work


def test_sizes() -> None:
    sizes = standard_sizes()
    assert set(sizes) == set(KERNELS)
    for name, rows in sizes.items():
        assert tuple(rows) == SIZES
        for row in rows.values():
            assert set(row) == {p.name for p in model(name).parameters}
    assert sizes["gemm"]["large"] == {"ni": 1000, "nj": 1100, "nk": 1200}


def test_names() -> None:
    assert shipped_model("gemm") == shipped_model("polybench/gemm") == shipped_model("gemm:gemm")
    for name in ("cholesky", "floyd_warshall", "lu", "trmm"):
        first, second = shipped_model(name), shipped_model(f"polybench/{name}")
        assert first is not None and second is not None
        assert Path(first.path).parent == models_folder() / "kernels"
        assert Path(second.path).parent == models_folder() / "polybench"
    assert shipped_model("polybench/matmul") is shipped_model("elsewhere/gemm") is shipped_model("nothing") is None
    for text, target in shipped_models().items():
        assert shipped_model(text) == target


# ---- results ----


def ran(name: str, given: Arrays | None = None, **sizes: int) -> tuple[Arrays, Arrays]:
    """The arrays before and after; dominant diagonals where a matrix is to be divided by."""
    before = inputs(model(name), sizes) | (given or {})
    return before, execute(model(name), sizes, before).arrays


def test_products() -> None:
    a, b = ran("gemm", ni=3, nj=4, nk=5)
    np.testing.assert_allclose(b["C"], a["alpha"] * a["A"] @ a["B"] + a["beta"] * a["C"])
    a, b = ran("mm2", ni=3, nj=4, nk=5, nl=2)
    np.testing.assert_allclose(b["D"], a["alpha"] * a["A"] @ a["B"] @ a["C"] + a["beta"] * a["D"])
    a, b = ran("mm3", ni=3, nj=4, nk=5, nl=2, nm=6)
    np.testing.assert_allclose(b["G"], a["A"] @ a["B"] @ a["C"] @ a["D"])
    a, b = ran("atax", m=3, n=4)
    np.testing.assert_allclose(b["y"], a["A"].T @ (a["A"] @ a["x"]))
    a, b = ran("bicg", m=3, n=4)
    np.testing.assert_allclose(b["s"], a["A"].T @ a["r"])
    np.testing.assert_allclose(b["q"], a["A"] @ a["p"])
    a, b = ran("mvt", n=4)
    np.testing.assert_allclose(b["x1"], a["x1"] + a["A"] @ a["y1"])
    np.testing.assert_allclose(b["x2"], a["x2"] + a["A"].T @ a["y2"])
    a, b = ran("gesummv", n=4)
    np.testing.assert_allclose(b["y"], a["alpha"] * a["A"] @ a["x"] + a["beta"] * a["B"] @ a["x"])
    a, b = ran("doitgen", nq=2, nr=3, np=4)
    np.testing.assert_allclose(b["A"], a["A"] @ a["C4"])
    a, b = ran("gemver", n=4)
    updated = a["A"] + np.outer(a["u1"], a["v1"]) + np.outer(a["u2"], a["v2"])
    x = a["x"] + a["beta"] * updated.T @ a["y"] + a["z"]
    np.testing.assert_allclose(b["w"], a["w"] + a["alpha"] * updated @ x)


def test_symmetric_and_triangular_products() -> None:
    a, b = ran("symm", m=4, n=3)
    whole = np.tril(a["A"]) + np.tril(a["A"], -1).T
    np.testing.assert_allclose(b["C"], a["alpha"] * whole @ a["B"] + a["beta"] * a["C"])
    a, b = ran("syrk", m=3, n=4)
    np.testing.assert_allclose(np.tril(b["C"]), np.tril(a["alpha"] * a["A"] @ a["A"].T + a["beta"] * a["C"]))
    a, b = ran("syr2k", m=3, n=4)
    product = a["A"] @ a["B"].T
    np.testing.assert_allclose(np.tril(b["C"]), np.tril(a["alpha"] * (product + product.T) + a["beta"] * a["C"]))
    a, b = ran("trmm", m=4, n=3)
    unit = np.tril(a["A"], -1) + np.eye(4)
    np.testing.assert_allclose(b["B"], a["alpha"] * unit.T @ a["B"])


def test_solvers() -> None:
    n = 6
    dominant = {"A": inputs(model("lu"), {"n": n})["A"] + 2 * n * np.eye(n)}
    _, b = ran("lu", dominant, n=n)
    np.testing.assert_allclose((np.tril(b["A"], -1) + np.eye(n)) @ np.triu(b["A"]), dominant["A"])
    a, b = ran("ludcmp", dominant, n=n)
    np.testing.assert_allclose(b["x"], np.linalg.solve(dominant["A"], a["b"]))
    a, b = ran("trisolv", n=n)
    np.testing.assert_allclose(b["x"], np.linalg.solve(np.tril(a["L"]), a["b"]))
    definite: Arrays = {"A": dominant["A"] + dominant["A"].T}
    _, b = ran("cholesky", definite, n=n)
    np.testing.assert_allclose(np.tril(b["A"]), np.linalg.cholesky(definite["A"]))
    a, b = ran("durbin", {"r": np.array([0.4, 0.1, -0.2, 0.05, 0.3])}, n=5)
    column = np.array([1.0, *a["r"][:-1]])
    toeplitz = column[np.abs(np.subtract.outer(np.arange(5), np.arange(5)))]
    np.testing.assert_allclose(b["y"], np.linalg.solve(toeplitz, -a["r"]))
    a, b = ran("gramschmidt", m=5, n=4)
    np.testing.assert_allclose(b["Q"] @ np.triu(b["R"]), a["A"])
    np.testing.assert_allclose(b["Q"].T @ b["Q"], np.eye(4), atol=1e-10)


def test_statistics() -> None:
    given = {"float_n": np.array(6.0), "eps": np.array(0.01)}
    a, b = ran("correlation", given, m=4, n=6)
    np.testing.assert_allclose(b["corr"], np.corrcoef(a["data"].T), atol=1e-12)
    a, b = ran("covariance", {"float_n": np.array(6.0)}, m=4, n=6)
    np.testing.assert_allclose(b["cov"], np.cov(a["data"].T))


def test_stencils() -> None:
    a, b = ran("jacobi_1d", tsteps=1, n=7)
    middle = 0.33333 * (a["A"][:-2] + a["A"][1:-1] + a["A"][2:])
    np.testing.assert_allclose(b["B"][1:-1], middle)
    np.testing.assert_allclose(b["A"][2:-2], 0.33333 * (middle[:-2] + middle[1:-1] + middle[2:]))
    a, b = ran("jacobi_2d", tsteps=1, n=5)
    x = a["A"]
    faces = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    np.testing.assert_allclose(b["B"][1:-1, 1:-1], 0.2 * faces)
    a, b = ran("heat_3d", tsteps=1, n=4)
    c = a["A"][1:-1, 1:-1, 1:-1]
    expected = c.copy()
    for axis in range(3):
        expected += 0.125 * sum(np.roll(a["A"], s, axis)[1:-1, 1:-1, 1:-1] - c for s in (1, -1))
    np.testing.assert_allclose(b["B"][1:-1, 1:-1, 1:-1], expected)
    a, b = ran("seidel_2d", tsteps=1, n=3)
    np.testing.assert_allclose(b["A"][1, 1], a["A"].mean())
    a, b = ran("fdtd_2d", tmax=1, nx=4, ny=3)
    ey = a["ey"].copy()
    ey[0] = a["fict"][0]
    ey[1:] -= 0.5 * np.diff(a["hz"], axis=0)
    ex = a["ex"].copy()
    ex[:, 1:] -= 0.5 * np.diff(a["hz"], axis=1)
    hz = a["hz"].copy()
    hz[:-1, :-1] -= 0.7 * (np.diff(ex, axis=1)[:-1] + np.diff(ey, axis=0)[:, :-1])
    np.testing.assert_allclose(b["hz"], hz)


def test_adi_solves_each_line() -> None:
    """Each half step is a tridiagonal solve with ends 1: columns into v, then rows into u."""
    n, steps = 6, 1
    given = {"length": np.array(1.0), "duration": np.array(1.0)}
    a, b = ran("adi", given, tsteps=steps, n=n)
    half = (n * n / steps) / 2  # mul2 / 2; mul1 is twice that
    d, wide = -half, -2 * half
    inner = range(1, n - 1)

    def solve(side: float, right: Array) -> Array:
        matrix = np.diag(np.full(n - 2, 1 - 2 * side)) + side * (np.eye(n - 2, k=1) + np.eye(n - 2, k=-1))
        right[[0, -1]] -= side
        return np.array([1.0, *np.linalg.solve(matrix, right), 1.0])

    u, v = a["u"].copy(), a["v"].copy()
    for i in inner:
        v[:, i] = solve(wide, -d * u[1:-1, i - 1] + (1 + 2 * d) * u[1:-1, i] - d * u[1:-1, i + 1])
    for i in inner:
        u[i] = solve(d, -wide * v[i - 1, 1:-1] + (1 + 2 * wide) * v[i, 1:-1] - wide * v[i + 1, 1:-1])
    np.testing.assert_allclose(b["u"], u)


def test_deriche() -> None:
    """Both filters by their recurrences, with coefficients from powers of e and 2."""
    alpha = 0.25
    a, b = ran("deriche", {"alpha": np.array(alpha)}, w=5, h=4)
    e = np.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - np.exp(2 * alpha))
    b1, b2 = 2**-alpha, -np.exp(-2 * alpha)
    coefficients = [(k, k * e * (alpha - 1)), (k * e * (alpha + 1), -k * e * e)]

    def filtered(rows: Array) -> Array:
        def recur(x: Array, now: float, before: float, shift: int) -> Array:
            y = np.zeros(len(x) + 2)
            padded = np.concatenate([[0.0] * (shift + 1), x])
            for i in range(len(x)):
                y[i + 2] = now * padded[i + 1] + before * padded[i] + b1 * y[i + 1] + b2 * y[i]
            return y[2:]

        forth = np.array([recur(x, *coefficients[0], 0) for x in rows])
        back = np.array([recur(x[::-1], *coefficients[1], 1)[::-1] for x in rows])
        return np.asarray(forth + back)

    np.testing.assert_allclose(b["imgOut"], filtered(filtered(a["imgIn"]).T).T)


def test_paths_and_folding() -> None:
    a, b = ran("floyd_warshall", n=6)
    shortest = a["path"].copy()
    for k in range(6):
        shortest = np.minimum(shortest, shortest[:, k : k + 1] + shortest[k])
    np.testing.assert_allclose(b["path"], shortest)
    n = 8
    bases = np.array([0, 1, 2, 3, 3, 0, 2, 1])
    _, b = ran("nussinov", {"seq": bases, "table": np.zeros((n, n))}, n=n)

    @cache
    def best(i: int, j: int) -> int:
        if i >= j:
            return 0
        pair = best(i + 1, j - 1) + (bases[i] + bases[j] == 3 and i < j - 1)
        return int(max(best(i + 1, j), best(i, j - 1), pair, *(best(i, k) + best(k + 1, j) for k in range(i, j))))

    assert all(b["table"][i, j] == best(i, j) for i in range(n) for j in range(i, n))


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", KERNELS)
def test_traffic_at_sizes(name: str) -> None:
    """Loads and stores of a cache of elements and one of lines equal a brute-force LRU's."""
    found = model(name)
    sizes = dict(zip((p.name for p in found.parameters), (3, 4, 5, 3, 4), strict=False))
    for size, line in cache_choices(found, sizes, Random(1))[-2:]:
        check_numbers(found, sizes, size, line)
