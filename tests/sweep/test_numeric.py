"""Arrays against Python's exact numbers: quasi-polynomials, closed forms, conditions, quotients, what bounds."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from roofdsl.counts.integers_at_many_points import holds, value_of
from roofdsl.loops.integers import Compare, Const, FloorDiv, Max, Min, Mod, Not, Or, Product, Sum, Sym
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.facts import CacheMultiple, Compared, LeadingTerms, Relation, Row, RowsAligned
from roofdsl.sets.quasi import Quasi, floor
from roofdsl.sweep.assumed import Assumed, NotUnderstood
from roofdsl.sweep.numeric import Form, Points, Polynomial, TooLarge
from roofdsl.sweep.rounding import ordered, quotient, ratio, total_time, words


def _random_quasi(rng: random.Random, depth: int = 1) -> Quasi:
    total = Quasi.constant(Fraction(rng.randint(-9, 9), rng.choice((1, 1, 2, 3, 8))))
    for _ in range(rng.randint(1, 4)):
        part = Quasi.constant(Fraction(rng.randint(-20, 20), rng.choice((1, 2, 3, 4, 8))))
        for name in rng.sample("nmk", rng.randint(1, 2)):
            part = part * Quasi.symbol(name, rng.randint(1, 3))
        if depth and rng.random() < 0.4:
            part = part * floor(_random_quasi(rng, depth - 1))
        total = total + part
    return total


def _columns(rng: random.Random, count: int, largest: int) -> dict[str, np.ndarray]:
    return {name: np.array([rng.randint(1, largest) for _ in range(count)]) for name in "nmk"}


@pytest.mark.parametrize("largest", [9, 3000, 2**40])
def test_polynomials_are_exact(largest: int) -> None:
    rng = random.Random(largest)
    for _ in range(60):
        value = _random_quasi(rng)
        columns = _columns(rng, 7, largest)
        try:
            points = Points(columns, 7)
            top, bottom = Polynomial(value).parts(points)
        except TooLarge:
            points = Points(columns, 7, exact=True)
            top, bottom = Polynomial(value).parts(points)
        tops, bottoms = (np.broadcast_to(np.asarray(a, dtype=object), 7) for a in (top, bottom))
        for k in range(7):
            exact = value.evaluate({n: int(c[k]) for n, c in columns.items()})
            assert Fraction(int(tops[k]), int(bottoms[k])) == exact


def test_large_numbers_are_not_rounded() -> None:
    cube = Form(Cases((Case((), Quasi.symbol("n", 3)),)))
    columns = {"n": np.array([3, 2**20 + 1])}
    with pytest.raises(TooLarge):
        cube.values(Points(columns, 2))
    assert list(cube.values(Points(columns, 2, exact=True))) == [27, (2**20 + 1) ** 3]


def test_cases_hold_where_they_say() -> None:
    n, m = Quasi.symbol("n"), Quasi.symbol("m")
    form = Cases(
        (
            Case((((n - m, False), (Quasi.constant(20) - n, False)), ((n - 50, True),)), n * m),
            Case((((n - 10, False),),), n + Fraction(1, 2) * m * (m + 1)),
        )
    )
    rng = random.Random(4)
    columns = {name: np.array([rng.randint(1, most) for _ in range(500)]) for name, most in (("n", 60), ("m", 30))}
    found = Form(form).values(Points(columns, 500))
    assert [int(v) for v in found] == [form.evaluate({k: int(c[i]) for k, c in columns.items()}) for i in range(500)]


def test_conditions() -> None:
    n, b = Sym("n"), Sym("b")
    conditions = (
        Compare("==", Mod(n, b), Const(0)),
        Or((Compare("<", Product((n, n)), Const(50)), Not(Compare(">=", FloorDiv(n, b), Const(3))))),
        Compare("!=", Max((n, Sum((b, Const(2))))), Min((Product((Const(2), b)), n))),
    )
    columns = {"n": np.arange(1, 200), "b": np.arange(1, 200) % 9 + 1}
    for condition in conditions:
        found = holds(condition, columns)
        assert [bool(v) for v in found] == [
            condition.holds({"n": int(x), "b": int(y)}) for x, y in zip(columns["n"], columns["b"], strict=True)
        ]
    large = value_of(Product((n, n, n)), {"n": np.array([2**40, 3])})
    assert list(large) == [2**120, 27]


@pytest.mark.thorough
def test_facts_hold_at_many_points_as_at_each() -> None:
    rng, relations = random.Random(8), get_args(Relation)
    points = {"n": np.arange(1, 200), "m": np.arange(1, 200) % 7 + 1, "k": np.arange(1, 200) % 9 + 1}
    rows = RowsAligned((Row("A", Product((Const(3), Sym("n"))), 8), Row("B", Sym("m"), 3)))
    for k in range(100):
        facts = [Compared(_random_quasi(rng), relations[k % len(relations)], _random_quasi(rng)), *[rows][: k % 2]]
        found = np.broadcast_to(Assumed(facts).mask(Points(points, 199, exact=True), points), 199)
        each = [{name: int(column[i]) for name, column in points.items()} for i in range(199)]
        assert list(found) == [all(fact.holds(at) for fact in facts) for at in each]
    for fact in (RowsAligned(), LeadingTerms(), CacheMultiple(8)):
        with pytest.raises(NotUnderstood):
            Assumed([fact])


# ---- rounding ----


def _integers(rng: random.Random, count: int, bits: int) -> np.ndarray:
    return np.array([float(rng.getrandbits(rng.randint(1, bits))) for _ in range(count)])


@pytest.mark.parametrize("factor", [1, 7_800_000_000_000, 2**53 - 1, 3 * 2**60])
def test_ratios_round_once(factor: int) -> None:
    rng = random.Random(factor)
    top, bottom = _integers(rng, 4000, 53), _integers(rng, 4000, 53)
    found = ratio(top, factor, bottom)
    for t, b, value in zip(top, bottom, found, strict=True):
        assert not b or value == float(Fraction(int(t) * factor, int(b)))


def test_ratios_on_the_edge_of_rounding() -> None:
    """Quotients that lie halfway between two floats, or next to it, where Python's integers decide."""
    odd = 2**52 + 1
    top = np.array([float(odd), float(odd), float(2**53 - 1), 3.0])
    bottom = np.array([2.0, 2.0, 2.0, 3.0])
    for factor in (2**51 + 3, 2**52 + 1, 6755399441055745):
        found = ratio(top, factor, bottom)
        assert list(found) == [float(Fraction(int(t) * factor, int(b))) for t, b in zip(top, bottom, strict=True)]


def test_quotients_and_sums_round_once() -> None:
    rng = random.Random(3)
    belows = (900_000_000_000, 4_969_200_000_000, 2_257_100_000_000, 5_000_000)
    terms = [(str(k), _integers(rng, 3000, 53 - 7 * k), below) for k, below in enumerate(belows)]
    for _, top, below in terms:
        assert list(quotient(top, below)) == [float(Fraction(int(t), below)) for t in top]
    sums = [sum(Fraction(int(top[k]), below) for _, top, below in terms) for k in range(3000)]
    assert list(total_time(terms)) == [float(s) for s in sums]
    # in several blocks, and with terms that have a common denominator
    more = [*((n, np.concatenate([top] * 3), b) for n, top, b in terms), ("more", _integers(rng, 9000, 30), 5_000_000)]
    of_more = [sum(Fraction(int(top[k]), below) for _, top, below in more) for k in range(9000)]
    assert list(total_time(more)) == [float(s) for s in of_more]
    exact = [(n, np.array([int(t) << 40 for t in top], dtype=object), b) for n, top, b in terms]
    assert list(total_time(exact)) == [float(s * 2**40) for s in sums]


def test_bounds_are_those_of_predictions() -> None:
    """Ties, terms at exactly nine tenths and zeros among them."""
    rng = random.Random(11)
    rows = [[rng.choice((0, 9, 10, 81, 90, 100, rng.randint(0, 10**6))) for _ in range(3)] for _ in range(3000)]
    names = ("compute", "L2", "HBM")
    terms = [(name, np.array([float(r[k]) for r in rows]), 10**9 * 3) for k, name in enumerate(names)]
    times = [quotient(top, below) for _, top, below in terms]
    most, largest, codes = ordered(terms, times)
    for k, (compute, second, memory) in enumerate(rows):
        fractions = [Fraction(v, 3 * 10**9) for v in (compute, second, memory)]
        levels = tuple(LevelTime(n, v, Fraction(3 * 10**9)) for n, v in (("L2", second), ("HBM", memory)))
        p = Prediction("k", "m", (), 0, None, fractions[0], levels, 1, Fraction(0), max(fractions), sum(fractions))
        assert words(int(codes[k]), names) == p.bound
        assert most[k] == float(max(fractions)) and fractions[largest[k]] == max(fractions)
