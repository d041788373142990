"""Stack distances of operands with loops in any order equal brute force and simulation, as numbers and as forms."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.growth import growth_of
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.lines.distance_records import Histogram
from roofdsl.counts.lines.operand_histogram import Operands
from roofdsl.counts.lines.symbolic import Undecided
from roofdsl.counts.lines.symbolic_distances import DistanceForms
from roofdsl.counts.lines.uniform import NotUniform
from roofdsl.counts.traffic_at import convention_totals, lines_by_distances
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized, sized
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.codegen.shipped import shipped
from tests.counts.test_line_forms import holds, totals
from tests.counts.test_line_histogram import Walked
from tests.counts.test_sectors import CONVENTIONS
from tests.oracle.loading import kernel_of
from tests.oracle.operand_kernels import operand_case
from tests.oracle.uniform_kernels import uniform_case

FORMS = {"asked": 0, "answered": 0, "values": 0}

SQUARE = """
kernel square(n):
    in A: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * A[k, j]
"""

MATMUL = """
kernel matmul(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""

TRANSPOSED = """
kernel transposed(n):
    in A: f64[n, n], x: f64[n]
    inout y: f64[n]
    for i in range(n), j in range(n):
        y[i] += A[j, i] * x[j]
"""

COEFFICIENTS = """
kernel vector_coefficients(m, n):
    in A: f64[m, n, n], u: f64[n], v: f64[n], w: f64[m]
    out B: f64[m, n, n]
    for k in range(1, m - 1), j in range(1, n - 1), i in range(1, n - 1):
        let x = u[i] * (A[k, j, i - 1] + A[k, j, i + 1])
        let y = v[j] * (A[k, j - 1, i] + A[k, j + 1, i])
        let z = w[k] * (A[k - 1, j, i] + A[k + 1, j, i])
        B[k, j, i] = x + y + z
"""

COMPENSATED = """
kernel compensated(n):
    in a, b: f64[n]
    inout s, c: f64[1]
    for i in range(n):
        let y = a[i] * b[i] - c[0]
        let t = s[0] + y
        c[0] = (t - s[0]) - y
        s[0] = t
"""

PIPELINE = """
kernel pipeline(n, T):
    in A: f64[n, n], x: f64[n], w: f32[n]
    inout y: f64[n]
    temp z: f64[n]
    for t in range(T):
        for i in range(n):
            y[i] = 0.0
            for j in range(n):
                y[i] += A[i, j] * x[j]
        for i in range(n):
            z[i] = y[i] * w[i]
            y[i] = 2.0 * z[i]
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--operand-kernels")))
    if "form" in metafunc.fixturenames:
        metafunc.parametrize("form", range(metafunc.config.getoption("--operand-forms")))


def found(at: Sized, line_bytes: int | None, *, every: bool, padded: bool = False) -> Histogram | None:
    try:
        return Operands(at, line_bytes, padded=padded).histogram(every=every)
    except (NotUniform, Undecided):
        return None


def test_random_kernel(seed: int) -> None:
    case = operand_case(seed)
    at = sized(kernel_of(case.text), {})
    got = found(at, case.line_bytes, every=seed % 2 == 0)
    if got is None:
        return
    want = Walked(at, case.line_bytes)
    firsts = Operands(at, case.line_bytes).histogram(first=True)
    assert [a.cold[:3] for a in firsts.arrays] == [want.at(a.name, 1 << 60) for a in got.arrays]
    sizes = sorted({d + e for d in want.distances() for e in (-1, 0) if d + e >= got.least_bytes} | {1 << 40})
    for cache in (*Random(seed).sample(sizes, min(len(sizes), 60)), got.least_bytes):
        for array in got.arrays:
            told = array.beyond(0, cache), array.beyond(1, cache), array.beyond(2, cache)
            assert told == want.at(array.name, cache), f"{case.text}line {case.line_bytes}, cache {cache}, {array.name}"


def test_most_are_answered() -> None:
    """The comparison above does not rest on refusals. Asks again, so that it holds in any process."""
    cases = [operand_case(k) for k in range(30)]
    answers = [found(sized(kernel_of(case.text), {}), case.line_bytes, every=True) for case in cases]
    assert sum(answer is not None for answer in answers) >= 0.5 * len(answers)


def simulated(kernel: Kernel, sizes: dict[str, int], caches: tuple[int, ...]) -> None:
    """Asserts that stack distances answer, and as a simulation does."""
    at = sized(kernel, sizes)
    for cache in caches:
        lines = lines_by_distances(at, cache, 64)
        run_through = simulate_lru(at.kernel, at.values, cache, 64)
        for convention in CONVENTIONS:
            want = run_through.loads(convention), run_through.stores(convention), run_through.bytes(convention)
            assert convention_totals(at, lines, convention) == want, (kernel.name, sizes, cache, convention)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (SQUARE, {"n": 96}),
        (SQUARE, {"n": 152}),
        (MATMUL, {"n": 136}),
        (TRANSPOSED, {"n": 1200}),
        (COEFFICIENTS, {"m": 21, "n": 72}),
        (COMPENSATED, {"n": 5003}),
        (PIPELINE, {"n": 240, "T": 3}),
    ],
)
def test_as_simulated(text: str, sizes: dict[str, int]) -> None:
    """Caches of a few lines too, of some rows, and of all the data."""
    simulated(kernel_of(text), sizes, (192, 512, 1000, 4 << 10, 20_000, 32 << 10, 100_000, 256 << 10, 25 << 20))


@pytest.mark.spread(4)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("gemv", {"n": 1000}),
        ("matmul", {"n": 80}),
        ("matmul_ikj", {"n": 80}),
        ("matmul_jik", {"n": 80}),
        ("matmul_jki", {"n": 80}),
        ("matmul_kji", {"n": 80}),
        ("transpose", {"n": 800}),
        ("triad", {"n": 10_007}),
        ("jacobi3d", {"n": 24}),
    ],
)
def test_shipped_kernels_are_as_simulated(name: str, sizes: dict[str, int]) -> None:
    simulated(shipped()[name], sizes, (600, 8 << 10, 32 << 10, 300_000))


def test_random_forms(form: int) -> None:
    case = operand_case(form, symbolic=True)
    if case.line_bytes is None:
        return
    kernel, rng = kernel_of(case.text), Random(form)
    given = {name: rng.randint(40, 120) for name in case.parameters}
    FORMS["asked"] += 1
    try:
        forms = DistanceForms(kernel, given, case.line_bytes)
    except NoClosedForm:
        return
    FORMS["answered"] += 1
    for _ in range(3):
        at = {name: value + forms.step * rng.randint(-4, 6) for name, value in given.items()}
        if any(value < 1 for value in at.values()):
            continue
        got = found(sized(kernel, at), case.line_bytes, every=True, padded=True)
        if got is None:
            continue
        ends = {first + e for a in got.arrays for each in a.rest for first, _ in each for e in (-1, 0)}
        for cache in [*rng.sample(sorted(ends), min(len(ends), 8)), 1 << 30]:
            for convention in CONVENTIONS:
                try:
                    told = forms.at_cache(cache, convention)
                except NoClosedForm:
                    continue
                if holds(told.total, at) and cache >= got.least_bytes:
                    FORMS["values"] += 1
                    value = tuple(None if c is None else c.evaluate(at) for c in (told.loads, told.stores, told.total))
                    want = totals(sized(kernel, at), got, cache, convention)
                    assert value == want, f"{case.text}line {case.line_bytes}, {at}, cache {cache}, {convention}"


def test_most_forms_were_found() -> None:
    """The comparison above must not have rested on refusals."""
    if FORMS["asked"]:
        assert FORMS["answered"] > 0.4 * FORMS["asked"], FORMS
        assert FORMS["values"] > FORMS["answered"], FORMS


@pytest.mark.spread(8, 150)
@pytest.mark.parametrize("number", range(300))
def test_temp_arrays_are_as_simulated(number: int) -> None:
    """What the cache still has of them at the end is dropped, what left it before was stored."""
    case = (operand_case if number % 2 else uniform_case)(number)
    try:
        kernel = kernel_of(case.text.replace("inout", "temp"))
    except InputError:  # an array that is updated before it is assigned cannot be temp
        return
    at, rng = sized(kernel, {}), Random(number)
    for cache in (*(rng.randint(4, 300) * (case.line_bytes or 16) for _ in range(4)), 1 << 30):
        try:
            lines = lines_by_distances(at, cache, case.line_bytes)
        except NoAnswer:
            return
        walked = simulate_lru(at.kernel, at.values, cache, case.line_bytes)
        want = {a.array.name: (a.residencies, a.residencies - a.begun_with_write, a.stored) for a in walked.arrays}
        assert {a.name: (a.begun, a.begun_by_read, a.stored) for a in lines} == want, f"{case}, cache {cache}"


@pytest.mark.thorough
def test_a_matrix_square_has_a_closed_form() -> None:
    """Its distances grow along loops, and some of them fit: the form says from which size on it holds."""
    kernel = kernel_of(SQUARE)
    forms = DistanceForms(kernel, {}, 64)
    told = forms.at_cache(4 << 10, "load_store")
    sizes = [{"n": n} for n in (64, 72, 96, 136)]
    assert any(holds(told.total, at) for at in sizes)
    for at in sizes:
        if holds(told.total, at):
            assert told.total.evaluate(at) == simulate_lru(kernel, at, 4 << 10, 64).bytes("load_store"), at
    assert not holds(told.total, {"n": 16})


@pytest.mark.thorough
def test_plateaus_of_a_matrix_square() -> None:
    """From textbooks: four lines for each product, then lines of a column, then one in eight, then all at once."""
    kernel = kernel_of(SQUARE)
    rows = DistanceForms(kernel, {}, 64).plateau_forms("load_store", growth_of(kernel))
    assert [(str(r.from_bytes), str(r.bytes), r.exact) for r in rows] == [
        ("64", "256*n**3", False),
        ("192", "72*n**3", False),
        ("72*n", "8*n**3", False),
        ("8*n**2", "24*n**2", True),
    ]


def test_plateaus_of_a_transpose() -> None:
    kernel = shipped()["transpose"]
    rows = DistanceForms(kernel, {}, 64).plateau_forms("load_store", growth_of(kernel))
    assert [(str(r.from_bytes), str(r.bytes), r.exact) for r in rows] == [
        ("64", "128*n**2", False),
        ("128", "72*n**2", False),
        ("72*n", "16*n**2", True),
    ]


def test_what_is_not_taken() -> None:
    head = "kernel k(n):\n    in A: f64[n, n]\n    out B: f64[n]\n"
    for body, why in (
        ("    for i in range(n):\n        B[i] = A[i, i]\n", "two subscripts of A"),
        ("    for i in range(n), j in range(i, n):\n        B[i] = A[i, j]\n", "depends on a loop"),
        ("    for i in range(0, n, 2):\n        B[i] = A[0, i]\n", "a step"),
        ("    for i in range(n // 2):\n        B[2 * i] = A[0, i]\n", "is not a loop variable and a number"),
    ):
        with pytest.raises(NotUniform, match=why):
            Operands(sized(kernel_of(head + body), {"n": 24}), 64)
