"""Products instead of long sums: equal at all sizes, found for what a textbook factors, and never slow."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import sympy

from roofdsl.formulas import factoring
from roofdsl.formulas.cancel import cancelled
from roofdsl.formulas.factoring import product_of, products_of, without_common_factor
from roofdsl.formulas.writing import neat_latex, neat_text
from roofdsl.sets.quasi import Quasi, floor

b, c, f, h, k, m, n, p, q, r, w = map(Quasi.symbol, "bcfhkmnpqrw")
LINES = floor(n * Fraction(1, 8) + Fraction(7, 8))

NEAT = [
    (2 * k**2 * (h - k + 1) * (w - k + 1), "2*k**2*(h - k + 1)*(w - k + 1)"),
    (c * r**2 * (h - r) * (w - r), "c*r**2*(h - r)*(w - r)"),
    (5 * m * (n - k + 1) ** 2, "5*m*(n - k + 1)**2"),
    ((n - k) * (n - k + 1), "(n - k)*(n - k + 1)"),
    (
        2 * b * c * (2 * p + r - 2) * (2 * q + r - 2) + 2 * c * f * r**2 + 2 * b * f * p * q,
        "2*b*c*(2*p + r - 2)*(2*q + r - 2) + 2*b*f*p*q + 2*c*f*r**2",
    ),
    (64 * n * (n - 1) * (LINES - 2), "64*n*(n - 1)*(ceiling(n/8) - 2)"),
    (b * h * w * (3 * c + f * Fraction(1, 2)), "b*h*w*(6*c + f)/2"),
    (-3 * n * (m - 2), "-3*n*(m - 2)"),
    ((n**2 + m**2 + k) * (n**2 - m), "(n**2 - m)*(m**2 + n**2 + k)"),
    (10 * (n - 2) ** 2, "10*(n - 2)**2"),
    # a sum whose leading term one wants to see
    (8 * n**2 + 16 * n, "8*n**2 + 16*n"),
    (n * (n - 1) * (4 * n + 1) * Fraction(1, 6), "2*n**3/3 - n**2/2 - n/6"),
    (3 * n**2 + 2 * n**3 * b**-1, "2*n**3/b + 3*n**2"),
    (h * w - h * k - k * w + k * 5, "h*w - h*k - k*w + 5*k"),
    (floor(n * Fraction(1, 8) + Fraction(3, 8)), "floor((n + 3)/8)"),
]


@pytest.mark.parametrize(("value", "expected"), NEAT)
def test_what_people_read(value: Quasi, expected: str) -> None:
    assert neat_text(value) == expected


def test_latex_is_factored_too() -> None:
    assert neat_latex(2 * k**2 * (h - k + 1) * (w - k + 1)) == "2 k^{2} (h - k + 1) (w - k + 1)"
    assert neat_latex(64 * n * LINES) == "64 n \\left\\lceil \\frac{n}{8} \\right\\rceil"


def _random_value(chance: random.Random, factors: int) -> Quasi:
    names = chance.sample("abcd", chance.randint(1, 4))
    value = Quasi.constant(Fraction(chance.randint(1, 9), chance.randint(1, 5)))
    for _ in range(factors):
        part = Quasi.constant(chance.randint(-3, 3))
        for _ in range(chance.randint(1, 4)):
            first, second = chance.choice(names), chance.choice(names)
            power = Quasi.symbol(first) ** chance.randint(0, 2) * Quasi.symbol(second) ** chance.randint(0, 1)
            part = part + chance.randint(-5, 5) * power
        value = value * part
    return value


@pytest.fixture
def some(pytestconfig: pytest.Config) -> int:
    """How many random values are tried."""
    return 100 if pytestconfig.option.thorough else 30


def test_products_are_equal_to_what_they_are_products_of(some: int) -> None:
    chance = random.Random(12)
    for _ in range(3 * some):
        value = _random_value(chance, chance.randint(1, 3))
        assert product_of(value).value() == value
        assert sum((part.value() for part in products_of(value)), Quasi.constant(0)) == value


def test_told_text_is_read_by_sympy_and_equal(some: int) -> None:
    chance = random.Random(13)
    for _ in range(some):
        value = _random_value(chance, 2) + chance.choice([Quasi.constant(0), LINES * LINES * 3, m * LINES])
        at = {name: chance.randint(1, 50) for name in value.names()}
        told = sympy.sympify(neat_text(value), locals={name: sympy.Symbol(name) for name in at})
        assert sympy.Rational(str(value.evaluate(at))) == told.subs(at)


def test_common_factors_are_those_that_sympy_finds(some: int) -> None:
    chance = random.Random(14)
    checked = 0
    for _ in range(2 * some):
        shared = _random_value(chance, 1)
        top, bottom = shared * _random_value(chance, 1), shared * _random_value(chance, 1)
        if any(not part or part.is_constant() for part in (top, bottom)):
            continue
        found, known = without_common_factor(top, bottom), cancelled(top, bottom)
        assert found is not None
        assert found[0] * bottom == found[1] * top
        assert found[0] * known[1] == found[1] * known[0]
        assert len(found[0].terms) == len(known[0].terms)
        checked += 1
    assert checked > some


def test_what_is_too_much_work_stays_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factoring, "MOST_WORK", 5)
    value = (h - k + 1) * (w - k + 1) * (m - k + 1)
    assert product_of(value).value() == value
    assert len(product_of(value).factors) == 1
    assert without_common_factor(value, (h - k + 1) * (m + 2)) is None


def test_work_is_limited() -> None:
    chance = random.Random(15)
    names = [Quasi.symbol(name) for name in "abcdef"]
    value = Quasi.constant(1)
    for _ in range(4):
        value = value * sum((chance.randint(1, 9) * name ** chance.randint(1, 3) for name in names), names[0])
    ring = factoring._Ring(value)
    assert factoring._product(value, ring).value() == value
    assert ring.work <= factoring.MOST_WORK + len(value.terms) ** 2
