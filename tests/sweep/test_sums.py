"""Q(Z) as a sum of terms, at many points: against the terms one by one, and against `predict`."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import find_model
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Rest, Root, Span, Term, Terms
from roofdsl.simulate.lru_traffic import simulate_lru
from roofdsl.sweep.assumed import NotUnderstood
from roofdsl.sweep.exact_forms import KernelForms
from roofdsl.sweep.numeric import Points, TooLarge
from roofdsl.sweep.sums import SumForm
from tests.sweep.machines import machine
from tests.sweep.test_equal import assert_equal, known_places, swept, written

N, M, R, S, AT = (Quasi.symbol(n) for n in ("n", "m", "r1", "s1", "i1"))
ONE = Quasi.constant(1)
TO_N, TO_M = Span("i1", ONE * 3, N), Span("i1", M - 20, M - 4)

MADE = (
    Terms((Term(R * 3 + 7), Term(N * R, (((R - 4, False),),))), (Root("r1", R * R * 2 + R, N * 5, ONE, M),)),
    Terms((Term(R * R + N),), (Root("r1", N * 8 - R * R, M * 3, ONE - 1, N, rises=False),)),
    Terms((Term(R + S * 2), Term(S, (((S, True),),))), (Root("r1", R * N, M * 20, ONE, N), Rest("s1", R - 3, ONE, M))),
    Terms((Term(R * M**-1 + 2), Term(N - R * M**-1)), (Root("r1", R * -2, N * -3, ONE, N, rises=False),)),
    Terms(
        (
            Term(N),
            Term(S - AT * 2, (((S - 7, False),), ((N - AT, True),)), TO_N),
            Term(R * AT, (), TO_N),
            Term(S, (), TO_M),
        ),
        (Root("r1", R * R, M * 9, ONE, N), Root("s1", S * (N - 7) - AT * R, M * 4, ONE - 3, M), Rest("r2", R, ONE, M)),
    ),
    Terms(
        (Term((AT * AT - AT) * Fraction(1, 2) + S, (), Span("i1", R, N)),),
        (Root("r1", R, M, ONE, N), Rest("s1", AT * 2 - R, ONE, N)),
    ),
)


@pytest.mark.spread(3)
@pytest.mark.parametrize("terms", MADE)
@pytest.mark.parametrize("exact", [False, True])
def test_roots_and_rests(terms: Terms, exact: bool, count: int = 80) -> None:
    rng = random.Random(5)
    columns = {name: np.array([rng.randint(1, 40) for _ in range(count)]) for name in ("n", "m")}
    found = SumForm(terms).values(Points(columns, count, exact=exact))
    envs = [{name: int(column[k]) for name, column in columns.items()} for k in range(count)]
    assert [int(v) for v in found] == [terms.evaluate(env) for env in envs]


def test_what_is_not_evaluated() -> None:
    with pytest.raises(NotUnderstood):
        SumForm(Terms((Term(N * AT**-1, (), TO_N),)))
    with pytest.raises(TooLarge):
        SumForm(MADE[0]).values(Points({"n": np.array([2**52]), "m": np.array([2**40])}, 1))


def test_many_steps_are_added_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.sweep.sums.STEPS", 7)
    test_roots_and_rests(MADE[-1], exact=False, count=20)
    test_roots_and_rests(MADE[-2], exact=True, count=20)


def test_a_sum_beyond_exact_floats() -> None:
    """Each summand is below 2**53 and their sum is not."""
    form = SumForm(Terms((Term(N, (), Span("i1", ONE, M)),)))
    columns = {"n": np.array([2**50, 3]), "m": np.array([9, 4])}
    with pytest.raises(TooLarge):
        form.values(Points(columns, 2))
    assert list(form.values(Points(columns, 2, exact=True))) == [9 * 2**50, 12]


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["lu", "gramschmidt", "mvt"])
def test_every_cache_at_once_is_simulated_lru(name: str) -> None:
    target = find_model(name)
    of = kernel(load_file(target.path), target.name)
    form = SumForm(ClosedForms(of, {}).terms_at_any_cache("load_store").total)
    rng = random.Random(name)
    columns = {p.name: np.array([rng.randint(4, 18) for _ in range(25)]) for p in of.parameters}
    columns["Z"] = np.array([int(8 * 2 ** rng.uniform(0, 8)) for _ in range(25)])
    found = form.values(Points(columns, 25))
    for k in range(25):
        sizes = {n: int(c[k]) for n, c in columns.items()}
        run = simulate_lru(of, sizes, sizes.pop("Z"), None)
        assert found[k] == run.bytes("load_store"), (sizes, columns["Z"][k])


@pytest.mark.parametrize("cache_bytes", [2048, 32768])
def test_traffic_of_a_kernel(cache_bytes: int) -> None:
    terms = ClosedForms(written("matmul"), {}).terms_at_any_cache("load_store", cache_bytes).total
    sizes = np.arange(4, 400, 7)
    found = SumForm(terms).values(Points({"n": sizes}, len(sizes)))
    assert [int(v) for v in found] == [terms.evaluate({"n": int(n)}) for n in sizes]


def test_rows_are_those_of_predict() -> None:
    """A product of matrices behind a cache of single elements, smaller and larger than its matrices."""
    k, on = written("matmul"), machine("elements")
    found = swept(k, on, {"n": tuple(range(4, 300, 5))})
    assert found.counted == 0
    places = known_places(found.table)
    for place in (0, 10, len(places) - 1):
        assert_equal(k, found.table, places[place], on)


@pytest.mark.thorough
def test_terms_where_cases_end() -> None:
    """By cases Q(Z) of LU is known from n = 2049 on; below, its terms hold. One large point is enough."""
    target = find_model("lu")
    k, on = kernel(load_file(target.path), target.name), machine("elements")
    found = swept(k, on, {"n": tuple(range(66, 98))})
    assert found.counted == 0
    assert_equal(k, found.table, known_places(found.table)[3], on)
    assert swept(k, on, {"n": (100,)}).counted == 1
    assert swept(k, on, {"n": (900, 3000)}).counted == 0


def test_long_sums_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    target = find_model("lu")
    forms = KernelForms(kernel(load_file(target.path), target.name), {})
    columns = {"n": np.array([10, 600, 20])}
    known = forms.terms_at_any_cache(32768, None, "load_store")
    assert known is not None
    assert list(known.mask(Points(columns, 3), columns)) == [True, True, True]
    monkeypatch.setattr("roofdsl.sweep.exact_forms.MOST_STEPS", 300)
    assert list(known.mask(Points(columns, 3), columns)) == [True, False, True]
    only = known.values_at(Points(columns, 3), np.array([True, False, True]))
    assert list(only[[0, 2]]) == list(known.values(Points(columns, 3))[[0, 2]])
