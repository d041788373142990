"""Plateaus of kernels whose Q depends on remainders of the sizes: each row holds for every size it is told for."""

from __future__ import annotations

import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.loops.transform import apply
from roofdsl.page.count_forms import of_derivation
from roofdsl.plot.traffic_content import plateau_lines
from roofdsl.simulate.distances import miss_curve
from roofdsl.tell.derive_json import to_json
from roofdsl.tell.derive_text import to_text
from tests.oracle.loading import kernel_of
from tests.oracle.lru import traffic
from tests.oracle.residue_kernels import Compared, check_plateaus, residue_kernel

MIRRORED = """
kernel p(n):
    in A: f64[n]
    out y: f64[n]
    for j in range(0, n, 2):
        y[j] = A[j] + A[n - 1 - j]
"""

THIRDS = """
kernel g(n):
    assume n >= 4
    in A: f64[2*n + 3, n]
    out C: f64[n]
    for i in range(1, n - 1):
        for j in range(1, n, 3):
            C[j] = A[n - 1 - i, j] + A[i + 2, n - 1 - j] * 0.5
"""

COPY_BACK = """
kernel jacobi(n, T):
    inout A: f64[n, n]
    {} B: f64[n, n]
    for t in range(T):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j-1] + A[i, j+1] + A[i-1, j] + A[i+1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = {}
"""
BACK = COPY_BACK.format("temp", "B[i, j]")
PING_PONG = COPY_BACK.format("inout", "0.2 * (B[i, j] + B[i, j-1] + B[i, j+1] + B[i-1, j] + B[i+1, j])")


def test_a_remainder_that_an_assumption_fixes_is_no_condition() -> None:
    found = derive(
        kernel_of("""
kernel p(n, m):
    assume n % 2 == 1
    in A: f64[n]
    out y: f64[n]
    in B: f64[m]
    out z: f64[m]
    for j in range(0, n, 2):
        y[j] = A[j]
    for i in range(0, m, 2):
        z[i] = B[i] + B[m - 1 - i]
"""),
        {},
    ).plateaus
    # m decides whether elements of B are read twice; n decides nothing, since it is always odd
    assert {str(p.where) for p in found} == {"m % 2 == 0", "m % 4 == 1", "m % 4 == 3"}


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("n", "rows"), [(1000, ["8: 12*n"]), (1001, ["8: 12*n", "8*n: 8*n + 8"]), (1003, ["8: 12*n", "8*n: 8*n + 8"])]
)
def test_plateaus_are_those_of_the_remainder_of_the_size(n: int, rows: list[str]) -> None:
    found = derive(kernel_of(MIRRORED), {"n": n}).plateaus
    assert [f"{p.from_bytes.expr}: {p.bytes.expr}" for p in found] == rows
    assert all(p.where is not None and p.where.holds({"n": n}) and not p.where.holds({"n": n + 1}) for p in found)
    last = found[-1]
    assert last.exact and last.bytes.value == traffic(kernel_of(MIRRORED), {"n": n}, None, None, "load_store").bytes
    assert last.all_bytes.form is not None and last.bytes.value == last.all_bytes.form.evaluate({"n": n})
    assert last.intensity.value == (n + 1) // 2 / last.bytes.value


def test_without_sizes_every_class_has_its_rows_and_names_itself() -> None:
    d = derive(kernel_of(MIRRORED), {})
    regimes = to_json(d)["regimes"]
    assert [(r["assumes"], r["bytes"]["expr"]) for r in regimes] == [
        ("n % 2 == 0", "12*n"),
        *[(where, moved) for where in ("n % 4 == 1", "n % 4 == 3") for moved in ("12*n", "8*n + 8")],
    ]
    assert all(r["bytes"]["assumes"] == r["assumes"] for r in regimes)
    text = to_text(d)
    assert text.index("for n % 2 == 0") < text.index("12*n", text.index("for n % 2 == 0")) < text.index("n % 4 == 1")


@pytest.mark.parametrize(("n", "limit"), [(1000, "-> 1/24 for"), (1001, "-> 1/16 for")])
def test_a_limit_belongs_to_the_case_beside_it(n: int, limit: str) -> None:
    (line,) = [each for each in to_text(derive(kernel_of(MIRRORED), {"n": n})).splitlines() if "I = W/Q" in each]
    assert limit in line


@pytest.mark.spread(1)
@pytest.mark.parametrize("n", [300, 301, 302, 303])
def test_the_last_plateau_is_the_compulsory_traffic(n: int) -> None:
    """A of n = 300 is read twice at other distances than that of n = 301, of which half the elements are read once."""
    kernel = kernel_of(THIRDS)
    last = derive(kernel, {"n": n}).plateaus[-1]
    assert str(last.where) == ("n % 3 == 0" if n % 3 == 0 else "n % 3 != 0")
    moved = miss_curve(apply(kernel), {"n": n}, None).bytes(None, "load_store")
    assert last.bytes.value is not None and abs(last.bytes.value - moved) <= 20 * n
    assert last.all_bytes.form is not None and last.all_bytes.form.evaluate({"n": n}) == moved


@pytest.mark.thorough
@pytest.mark.parametrize("n", [300, 301])
def test_figures_and_the_page_have_the_same_rows(n: int) -> None:
    kernel = kernel_of(THIRDS)
    rows = derive(kernel, {"n": n}).plateaus
    lines, _ = plateau_lines(kernel, {"n": n}, "load_store", None)
    assert [line.start_bytes for line in lines] == [float(p.from_bytes.value or 0) for p in rows]
    shown = of_derivation(derive(kernel, {}, any_cache=True)).plateaus
    here = [p for p in shown if p.where is None or p.where.holds({"n": n})]
    assert [str(p.start) for p in here] == [
        p.from_bytes.expr.replace("8*n**2/3", "8/3*n**2") for p in rows if p.from_bytes.expr
    ]
    for p, line in zip(here, lines, strict=True):
        assert float(p.whole.form.evaluate({"n": n})) == line.traffic_bytes  # type: ignore[call-arg]


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize(("text", "last"), [(BACK, "16*n**2"), (PING_PONG, "24*n**2")])
def test_few_stores_at_the_end_do_not_hide_the_layer_condition(text: str, last: str) -> None:
    """The lines of a temporary array that leave at the end are fewer by T than what every plateau moves."""
    rows = derive(kernel_of(text), {}).plateaus
    assert [p.from_bytes.expr for p in rows] == ["8", "32", "48", "32*n", "16*n**2"]
    assert rows[-1].bytes.expr == last
    n, steps = 100, 40
    curve = miss_curve(apply(kernel_of(text)), {"n": n, "T": steps}, None)
    for p, cache in zip(rows, (8, 40, 300, 8 * n * n, 32 * n * n), strict=True):
        assert p.bytes.form is not None
        told = p.bytes.form.evaluate({"n": n, "T": steps})
        assert abs(curve.bytes(cache, "load_store") - told) <= 6 * told / n


@pytest.mark.thorough
def test_a_value_stands_beside_no_formula_that_does_not_give_it() -> None:
    d = derive(kernel_of(BACK), {"n": 1000, "T": 4}, cache_bytes=65536)
    lines = to_text(d).splitlines()
    start = next(k for k, line in enumerate(lines) if "Traffic through" in line)
    assert lines[start] == "Traffic through a cache of 64 KiB"
    assert lines[start + 1].split() == ["Q", "=", "127,616,256", "B", "at", "n", "=", "1000,", "T", "=", "4"]
    assert lines[start + 2].endswith("for n >= 10, T >= 10, n >= 4098")
    assert "127,616,256" not in lines[start + 2]
    assert not any("here" in line for line in lines)


def test_bounds_that_remainders_change_are_taken_class_by_class() -> None:
    """48*floor(n/2) - 24*n + 48 is 48 for even n and 24 for odd n."""
    kernel = kernel_of(
        "kernel k(n):\n    assume n >= 4\n    in A: f64[3*n + 9]\n    inout x: f64[3*n + 9]\n    for i in range(n):\n"
        "        x[2*i + 2] += x[(n + i) % 2] + A[2*n - 2*i] + A[i + i]\n"
    )
    found = {n: ClosedForms(kernel, {}).plateau_forms("load_store", {"n": n})[0] for n in (484, 485)}
    assert {n: str(r.end_bytes) for n, r in found.items()} == {484: "48", 485: "24"}


LARGER = """
kernel k(n, m):
    assume n >= 4, m >= 4
    inout A: f64[n + m]
    for i in range(n):
        A[i] = A[n + m - 1 - i]
"""


@pytest.mark.parametrize(("n", "m"), [(419, 416), (416, 419), (300, 100)])
def test_no_form_is_told_where_the_larger_of_two_sizes_decides_what_is_used_again(n: int, m: int) -> None:
    """For n >= m + 2 elements are used again, at distances that grow with n - m; otherwise none is."""
    curve = miss_curve(apply(kernel_of(LARGER)), {"n": n, "m": m}, None)
    for given in ({}, {"n": n, "m": m}):
        (row,) = derive(kernel_of(LARGER), given).plateaus
        assert row.bytes.form is not None
        assert 0 <= row.bytes.form.evaluate({"n": n, "m": m}) - curve.bytes(8, "load_store") <= 8
        assert row.all_bytes.form is None and not row.exact


def test_no_plateau_begins_at_a_difference_of_sizes() -> None:
    """Under sizes of about one size 8*m - 8*n may be anything, negative too."""
    kernel = kernel_of(
        "kernel k(n, m):\n    assume n >= 4, m >= 4\n    inout x: f64[n + m]\n"
        "    for i in range(2, n, 4):\n        for j in range(m):\n            x[j] = x[n + m - 1 - j]\n"
    )
    with pytest.raises(NoClosedForm, match="where a plateau begins depends on which of its sizes is larger"):
        ClosedForms(kernel, {}).plateau_forms("once")
    rows = derive(kernel, {"n": 60, "m": 56}).plateaus
    assert all(p.from_bytes.value is None or p.from_bytes.value > 0 for p in rows)


@pytest.mark.spread(1)
@pytest.mark.parametrize("n", [40, 41, 42, 43])
def test_classes_that_have_the_same_sizes_between_them_are_told_apart(n: int) -> None:
    """From one i to the next y[0] or y[1] is used again after 16 B where n is odd, and after 24 B where it is even."""
    kernel = kernel_of(
        "kernel k(n):\n    assume n >= 4\n    in B: f64[n, n]\n    inout y: f64[2]\n"
        "    for i in range(0, n, 2):\n        for j in range(n - 2):\n            y[(n + j) % 2] = B[n - 1 - i, i]\n"
    )
    for given in ({}, {"n": n}):
        rows = derive(kernel, given, traffic="once").plateaus
        here = [p for p in rows if p.where is None or p.where.holds({"n": n})]
        row = next(p for p in here if p.from_bytes.expr == "16")
        assert row.all_bytes.form is not None
        assert row.all_bytes.form.evaluate({"n": n}) == traffic(kernel, {"n": n}, 16, None, "once").bytes


@pytest.mark.spread(1)
@pytest.mark.parametrize("n", [40, 41])
def test_an_access_without_one_before_it_is_counted_once(n: int) -> None:
    """A distance of 24*d2 bytes was told of accesses with d2 = 0 too, which were counted as the first of their line."""
    kernel = kernel_of(
        "kernel k(n):\n    assume n >= 4\n    in A: f64[3*n + 9, 3*n + 9]\n    inout x: f64[3*n + 9]\n"
        "    for i in range(0, n):\n        for j in range(0, n - 1):\n"
        "            x[n - 1 - j] += A[j, (n - i) // 2] + A[i + 1, 2*n - 2*i]\n"
    )
    first = derive(kernel, {"n": n}, traffic="load_store").plateaus[0]
    assert first.all_bytes.form is not None
    assert first.all_bytes.form.evaluate({"n": n}) == traffic(kernel, {"n": n}, 8, None, "load_store").bytes


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("n", [40, 41, 42, 43])
def test_the_least_distance_is_that_of_the_class(n: int) -> None:
    """A[i + n % 2] was written at (i + n % 2 - 2)/2: which i there are with such a number depends on n % 2."""
    kernel = kernel_of(
        "kernel k(n):\n    assume n >= 4\n    inout A: f64[3*n + 9]\n"
        "    for i in range(2, n - 2):\n        A[2*i + 2] = A[i + n % 2]\n"
    )
    for given in ({}, {"n": n}):
        rows = derive(kernel, given).plateaus
        first = next(p for p in rows if p.where is None or p.where.holds({"n": n}))
        end = first.end_bytes
        assert end is not None and end.form is not None and first.all_bytes.form is not None
        cache = int(end.form.evaluate({"n": n})) - 1
        assert first.all_bytes.form.evaluate({"n": n}) == traffic(kernel, {"n": n}, cache, None, "load_store").bytes


def test_random_kernels_are_as_simulated(request: pytest.FixtureRequest) -> None:
    """In every residue class of every period that occurs; declined kernels must be the fewer."""
    first, count = request.config.getoption("--residue-seed"), request.config.getoption("--residue-kernels")
    found, declined = Compared(), 0
    for seed in range(first, first + count):
        try:
            found += check_plateaus(residue_kernel(seed))
        except NoClosedForm:
            declined += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{residue_kernel(seed).text}") from error
    assert count < 20 or 2 * declined <= count
    assert found.exact >= count


FILTERED = """
kernel f(n, m, r):
    {}
    in A: f64[n + r]
    inout y: f64[n]
    for i in range(n - r + 1):
        for j in range(r):
            y[i] += A[i + j]
"""


@pytest.mark.parametrize(
    ("assumption", "why"),
    [
        ("assume n >= r", "its assumptions do not allow large sizes"),
        ("assume n >= 1", "whether a statement is executed depends on which of its sizes is larger"),
    ],
)
def test_what_cannot_be_said_of_large_sizes_is_known_before_a_distance_is_counted(
    assumption: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roofdsl.counts.kernel_sets.reuse", lambda access_sets: pytest.fail("distances were counted"))
    with pytest.raises(NoClosedForm, match=why):
        ClosedForms(kernel_of(FILTERED.format(assumption)), {}).plateau_forms("load_store")
