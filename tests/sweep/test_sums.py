"""Q(Z) as a sum of terms, at many points: against the terms one by one, and against `predict`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from roofdsl.analysis.closed import ClosedForms
from roofdsl.polyhedral.quasi import Quasi
from roofdsl.polyhedral.terms import Rest, Root, Span, Term, Terms
from roofdsl.sweep.assumed import NotUnderstood
from roofdsl.sweep.numeric import Points, TooLarge
from roofdsl.sweep.sums import SumForm
from tests.sweep.machines import machine
from tests.sweep.test_equal import assert_equal, known_places, swept, written

N, M, R, S = (Quasi.symbol(n) for n in ("n", "m", "r1", "s1"))
ONE = Quasi.constant(1)

MADE = (
    Terms((Term(R * 3 + 7), Term(N * R, (((R - 4, False),),))), (Root("r1", R * R * 2 + R, N * 5, ONE, M),)),
    Terms((Term(R * R + N),), (Root("r1", N * 8 - R * R, M * 3, ONE - 1, N, rises=False),)),
    Terms((Term(R + S * 2), Term(S, (((S, True),),))), (Root("r1", R * N, M * 20, ONE, N), Rest("s1", R - 3, ONE, M))),
)


@pytest.mark.parametrize("terms", MADE)
@pytest.mark.parametrize("exact", [False, True])
def test_roots_and_rests(terms: Terms, exact: bool) -> None:
    rng = random.Random(5)
    columns = {name: np.array([rng.randint(1, 90) for _ in range(300)]) for name in ("n", "m")}
    found = SumForm(terms).values(Points(columns, 300, exact=exact))
    envs = [{name: int(column[k]) for name, column in columns.items()} for k in range(300)]
    assert [int(v) for v in found] == [terms.evaluate(env) for env in envs]


def test_what_is_not_evaluated() -> None:
    with pytest.raises(NotUnderstood):
        SumForm(Terms((Term(N, (), Span("i1", ONE, N)),)))
    with pytest.raises(TooLarge):
        SumForm(MADE[0]).values(Points({"n": np.array([2**52]), "m": np.array([2**40])}, 1))


@pytest.mark.parametrize("cache_bytes", [2048, 32768])
def test_traffic_of_a_kernel(cache_bytes: int) -> None:
    terms = ClosedForms(written("matmul"), {}).at_every_cache("load_store", cache_bytes).total
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
