"""What is proven of integers in loops holds at every iteration, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from roofdsl.frontends.integer_facts import Facts, Range
from roofdsl.frontends.poly import Poly, quotient

N, OUTER, INNER = (Poly.name(name) for name in "nij")
FACTS = Facts((Range("i", (Poly.number(0),), (N - 1,)), Range("j", (OUTER,), (N + 1,))))
"""`for i in range(n), j in range(i, n + 2)`."""


def iterations(n: int) -> Iterator[dict[str, Poly]]:
    for i in range(n):
        for j in range(i, n + 2):
            yield {"n": Poly.number(n), "i": Poly.number(i), "j": Poly.number(j)}


def test_nothing_exceeds_its_greatest_value(pytestconfig: pytest.Config) -> None:
    """With quotients and remainders of what may be negative, added and subtracted."""
    random, bounded = Random(1), 0
    tried = 600 if pytestconfig.option.thorough else 120
    for _ in range(tried):
        value = OUTER * random.choice((-1, 0, 1)) + INNER * random.choice((-1, 0, 1)) + random.randint(-3, 3)
        for _ in range(random.randint(1, 2)):
            dividend = random.choice((OUTER, INNER, OUTER - INNER)) * random.choice((-1, 1, 2)) + random.randint(-6, 6)
            value += quotient(random.choice(("//", "//", "%")), dividend, random.randint(2, 3)) * random.choice((-1, 1))
        greatest = FACTS.greatest(value)
        if greatest is None:
            continue
        bounded += 1
        assert greatest.names <= {"n"}
        for n in range(1, 9):
            top = greatest.put({"n": Poly.number(n)}).value
            for at in iterations(n):
                seen = value.put(at).value
                assert seen is not None and top is not None and seen <= top, (value, greatest, at)
        if FACTS.not_negative(value):
            assert all((value.put(at).value or 0) >= 0 for n in range(1, 9) for at in iterations(n)), value
    assert bounded > tried // 2


def test_quotients_and_remainders_of_loop_variables_are_compared() -> None:
    """What is proven holds at every iteration; what an unsigned subscript needs is proven."""
    random, proven = Random(2), 0
    for _ in range(400):
        value = OUTER * random.randint(-1, 2) + INNER * random.randint(-1, 2) + random.randint(-2, 6)
        for _ in range(random.randint(1, 2)):
            dividend = random.choice((OUTER, INNER, INNER - OUTER)) * random.choice((1, 2)) + random.randint(-3, 4)
            value += quotient(random.choice(("//", "%")), dividend, random.randint(2, 5)) * random.choice((-1, 1, 3))
        if FACTS.not_negative(value):
            proven += 1
            assert all((value.put(at).value or 0) >= 0 for n in range(1, 7) for at in iterations(n)), value
    assert proven > 100
    remainder, half, quarter = quotient("%", OUTER + 4, 3), quotient("//", OUTER, 2), quotient("//", OUTER, 4)
    for value in (remainder, -remainder + 2, N - 1 - half, OUTER - quarter * 4, quarter * 4 - OUTER + 3):
        assert FACTS.not_negative(value), value
    assert not FACTS.not_negative(quotient("%", OUTER, 3) - 1)


def test_the_smaller_of_two_bounds_is_found_where_a_loop_runs() -> None:
    """`i <= n - 2` and `i <= 0`: an iteration exists only if n >= 2, so that 0 is the smaller bound."""
    facts = Facts((Range("i", (Poly.number(0),), (N - 2, Poly.number(0))),))
    assert facts.greatest(OUTER + N - 1) == N - 1
    assert facts.greatest(OUTER) == Poly.number(0)
