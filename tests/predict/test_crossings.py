"""The largest of several closed forms over all integers, against evaluating them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import pytest

from roofdsl.predict.largest_of import Interval, NotExact, largest
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.quasi import Quasi, floor

N = Quasi.symbol("n")
ALWAYS = Quasi.constant(1)
LOOKED_AT = [*range(1, 60), 61, 97, 100, 119, 999, 1000, 1001, 10**6, 10**6 + 1, 10**9]


def one(value: Quasi) -> list[tuple[Quasi, Cases]]:
    return [(ALWAYS, Cases((Case((), value),)))]


def test_lines_and_parabolas() -> None:
    """4.2 n against 21, and n**2 against both."""
    terms = {"square": one(N * N), "line": one(N * Fraction(42, 10)), "constant": one(Quasi.constant(21))}
    assert largest(terms, "n") == (Interval(1, 4, ("constant",)), Interval(5, None, ("square",)))
    terms = {"line": one(N * Fraction(42, 10)), "constant": one(Quasi.constant(21))}
    assert largest(terms, "n") == (Interval(1, 4, ("constant",)), Interval(5, None, ("line",)))  # at 5 they are equal


def test_it_may_come_back() -> None:
    hill = N * 100 - N * N
    assert largest({"hill": one(hill), "flat": one(Quasi.constant(900))}, "n") == (
        Interval(1, 9, ("flat",)), Interval(10, 90, ("hill",)), Interval(91, None, ("flat",)),
    )  # fmt: skip


def test_floors_take_turns() -> None:
    even = floor(N * Fraction(1, 2)) * 2  # n or n - 1
    found = largest({"even": one(even), "whole": one(N)}, "n")
    assert found[-1].names in (("even", "whole"), ("whole", "even"))
    assert found[-1].last is None


def test_what_is_not_solved() -> None:
    other = Quasi.symbol("m")
    for value, why in ((other * N, "depends on m"), (floor(N * Fraction(1, 1009)), "only every 1009"), (N**-1, "quot")):
        with pytest.raises(NotExact, match=why):
            largest({"a": one(value), "b": one(N)}, "n")


def random_terms(rng: random.Random) -> list[tuple[Quasi, Cases]]:
    def polynomial() -> Quasi:
        value = Quasi.constant(rng.randint(-200, 200))
        for k in range(1, rng.randint(2, 4)):
            value = value + N**k * Fraction(rng.randint(-20, 20), rng.choice([1, 2, 3]))
        if rng.random() < 0.5:
            value = value + floor((N + rng.randint(0, 3)) * Fraction(1, rng.choice([2, 3, 4]))) * rng.randint(-9, 9)
        return value

    found = []
    for _ in range(rng.randint(1, 2)):
        cases = [Case((), polynomial())]
        if rng.random() < 0.5:
            cases = [Case((((N - rng.randint(2, 30), False),),), polynomial()), Case((((7 - N, True),),), polynomial())]
        found.append((rng.choice([ALWAYS, N, Quasi.constant(Fraction(1, 7))]), Cases(tuple(cases))))
    return found


def value_at(terms: Sequence[tuple[Quasi, Cases]], n: int) -> Fraction:
    return sum((f.evaluate({"n": n}) * c.evaluate({"n": n}) for f, c in terms), Fraction(0))


@pytest.mark.spread(6)
@pytest.mark.parametrize("seed", range(40))
def test_random_forms(seed: int) -> None:
    rng = random.Random(seed)
    terms = {name: random_terms(rng) for name in "abc"}
    found = largest(terms, "n")
    assert found[0].first == 1 and found[-1].last is None
    assert all(a.last is not None and a.last + 1 == b.first for a, b in pairwise(found))
    for n in {*LOOKED_AT, *(i.first for i in found), *(i.last for i in found if i.last)}:
        values = {name: value_at(pairs, n) for name, pairs in terms.items()}
        (interval,) = (i for i in found if i.first <= n and (i.last is None or n <= i.last))
        best = next(name for name in terms if values[name] == max(values.values()))
        assert best in interval.names
        if len(interval.names) == 1:
            assert interval.names == (best,)
