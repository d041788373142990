"""Closed forms by stack distances in lines equal the histogram at sizes, wherever their facts hold."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from random import Random

import pytest

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.growth import growth_of
from roofdsl.counts.lines.distance_records import Histogram
from roofdsl.counts.lines.symbolic_distances import DistanceForms
from roofdsl.counts.lines.uniform import NotUniform, uniform
from roofdsl.counts.lines.uniform_histogram import histogram
from roofdsl.counts.lines_of_sets import ArrayLines
from roofdsl.counts.traffic_at import convention_totals
from roofdsl.counts.traffic_form_records import Bytes, TermBytes
from roofdsl.loops.model import Traffic
from roofdsl.loops.sized import Sized, sized
from roofdsl.sets.cases import Cases
from roofdsl.sets.facts import CACHE, RowsAligned
from roofdsl.sets.terms import Terms
from tests.oracle.loading import kernel_of
from tests.oracle.uniform_kernels import uniform_case

CONVENTIONS: tuple[Traffic, ...] = ("once", "load_store", "write_allocate")
ANSWERS = {"asked": 0, "answered": 0, "values": 0, "any cache": 0}

FIVE = """
kernel five(n, m):
    in A: f64[m, n]
    out B: f64[m, n]
    for j in range(1, m - 1), i in range(1, n - 1):
        B[j, i] = 0.2 * (A[j, i - 1] + A[j, i + 1] + A[j - 1, i] + A[j + 1, i] + A[j, i])
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--uniform-forms")))


def totals(at: Sized, found: Histogram, cache: int, convention: Traffic) -> tuple[int | None, int | None, int]:
    lines = []
    for a in found.arrays:
        read, written, stored = (a.beyond(kind, cache) for kind in range(3))
        lines.append(ArrayLines(a.name, a.line_bytes, read + written, read, stored))
    return convention_totals(at, tuple(lines), convention)


def holds(form: Cases | Terms, at: dict[str, int]) -> bool:
    """Whether the facts of a form hold; rows are padded here, so that they always are aligned."""
    return all(isinstance(fact, RowsAligned) or fact.holds(at) for fact in form.assumes)


@pytest.mark.parametrize("parts", [False, True])
def test_random_uniform_kernel(seed: int, parts: bool) -> None:
    case = uniform_case(seed, symbolic=True, parts=parts)
    if case.line_bytes is None:
        return
    kernel, rng = kernel_of(case.text), Random(seed)
    given = {name: rng.randint(40, 200) for name in case.parameters}
    ANSWERS["asked"] += 1
    try:
        forms = DistanceForms(kernel, given, case.line_bytes)
    except NoClosedForm:
        return
    ANSWERS["answered"] += 1
    any_cache = at_any_cache(forms)
    for _ in range(3):
        at = {name: value + forms.step * rng.randint(-5, 8) for name, value in given.items()}
        if any(value < 1 for value in at.values()):
            continue
        try:
            found = histogram(uniform(sized(kernel, at), case.line_bytes, padded=True))
        except NotUniform:
            continue
        ends = {first + e for a in found.arrays for each in a.rest for first, _ in each for e in (-1, 0)}
        for cache in [*rng.sample(sorted(ends), min(len(ends), 8)), 1 << 30]:
            for convention in CONVENTIONS:
                want = totals(sized(kernel, at), found, cache, convention)
                shown = f"{case.text}line {case.line_bytes}, {at}, cache {cache}, {convention}"
                in_symbols = any_cache.get(convention)
                if in_symbols is not None and holds(in_symbols.total, {**at, CACHE: cache}):
                    ANSWERS["any cache"] += 1
                    assert of(in_symbols, {**at, CACHE: cache}) == want, shown
                try:
                    told = forms.at_cache(cache, convention)
                except NoClosedForm:
                    continue
                if holds(told.total, at) and cache >= found.least_bytes:
                    ANSWERS["values"] += 1
                    assert of(told, at) == want, shown


def at_any_cache(forms: DistanceForms) -> dict[Traffic, TermBytes]:
    """Q(Z) with Z a symbol, in the conventions in which there is a form."""
    found = {}
    for convention in CONVENTIONS:
        with suppress(NoClosedForm):
            found[convention] = forms.at_any_cache(convention)
    return found


def of(told: Bytes | TermBytes, at: dict[str, int]) -> tuple[Fraction | None, ...]:
    return tuple(None if c is None else c.evaluate(at) for c in (told.loads, told.stores, told.total))


def test_most_were_answered() -> None:
    """The comparison above must not have rested on refusals."""
    if ANSWERS["asked"]:
        assert ANSWERS["answered"] > 0.4 * ANSWERS["asked"], ANSWERS
        assert ANSWERS["values"] > ANSWERS["answered"], ANSWERS
        assert ANSWERS["any cache"] > ANSWERS["answered"], ANSWERS


def test_five_points() -> None:
    kernel = kernel_of(FIVE)
    forms = DistanceForms(kernel, {}, 64)
    small, large = forms.at_cache(32 << 10, "load_store"), forms.at_cache(32 << 30, "load_store")
    assert str(small.loads.single if small.loads else None) == "24*m*n - 48*n"
    assert str(large.loads.single if large.loads else None) == "8*m*n"
    assert [fact.holds({"n": 1032, "m": 4}) for fact in small.total.assumes] == [True, True, True]
    assert not all(fact.holds({"n": 1024, "m": 4}) for fact in small.total.assumes)


def test_plateaus_of_five_points() -> None:
    kernel = kernel_of(FIVE)
    rows = DistanceForms(kernel, {}, 64).plateau_forms("load_store", growth_of(kernel))
    assert [(str(r.from_bytes), str(r.bytes), r.exact) for r in rows] == [
        ("768", "32*m*n", False),
        ("32*n", "16*m*n - 16*n", True),
    ]
    assert [str(r.end_bytes) for r in rows] == ["32*n - 128", "None"]
    assert [str(r.all_bytes.single) for r in rows if r.all_bytes] == ["32*m*n - 64*n", "16*m*n - 16*n"]


def test_sizes_given_decide_which_form_it_is() -> None:
    forms = DistanceForms(kernel_of(FIVE), {"n": 803, "m": 300}, 64)
    told = forms.at_cache(32 << 10, "load_store")
    assert holds(told.total, {"n": 803, "m": 300})
    assert not holds(told.total, {"n": 802, "m": 300})
    assert not holds(told.total, {"n": 8003, "m": 300})
