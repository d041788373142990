"""Exponents and growth against known inequalities and against all small sets."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
import sympy

from roofdsl.bounds.exponents import exponents, null_space
from roofdsl.bounds.lattice_growth import growth

HALF = Fraction(1, 2)


def coordinates(*kept: int, of: int = 3) -> tuple[tuple[Fraction, ...], ...]:
    return null_space([[int(c == d) for d in range(of)] for c in kept], of)


@pytest.mark.thorough
def test_loomis_whitney() -> None:
    assert exponents([coordinates(0, 1), coordinates(0, 2), coordinates(1, 2)], 3) == [(HALF, HALF, HALF)]
    four = [coordinates(*(c for c in range(4) if c != d), of=4) for d in range(4)]
    assert exponents(four, 4) == [(Fraction(1, 3),) * 4]


def test_subscripts_that_are_sums() -> None:
    """x[i], y[j], z[i + j]: any two of the three lines bound a set of the plane."""
    found = exponents([null_space([row], 2) for row in ([1, 0], [0, 1], [1, 1])], 2)
    assert sorted(map(sum, found)) == [2, 2, 2]


def test_a_direction_that_nothing_keeps_has_no_bound() -> None:
    assert exponents([coordinates(0, 1)], 3) == []


def test_random_sets_keep_the_inequality() -> None:
    rng = random.Random(6)
    maps = [[[1, 0, 0], [0, 1, 0]], [[0, 1, 1]], [[1, 0, 1], [0, 1, 0]]]
    for point in exponents([null_space(m, 3) for m in maps], 3):
        for _ in range(60):
            points = {tuple(rng.randrange(4) for _ in range(3)) for _ in range(rng.randint(1, 40))}
            bound = 1.0
            for m, s in zip(maps, point, strict=True):
                shadow = {tuple(sum(a * x for a, x in zip(row, p, strict=True)) for row in m) for p in points}
                bound *= len(shadow) ** float(s)
            assert len(points) <= bound * (1 + 1e-12)


def grown(points: frozenset[tuple[int, ...]], offsets: frozenset[tuple[int, ...]]) -> int:
    return len({tuple(a + b for a, b in zip(p, k, strict=True)) for p in points for k in offsets})


CROSS = frozenset({(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)})
SQUARE = frozenset(product((0, 1), repeat=2))
SEIDEL = frozenset({(0, 0), (0, 1), (1, -1), (1, 0), (1, 1)})


@pytest.mark.thorough
def test_growth_of_every_set_in_a_small_square() -> None:
    """|A + K| >= |A| + c sqrt(|A|) for all 2^12 - 1 sets in 3 x 4 points; diamonds attain c = 2 sqrt(2)."""
    cells = list(product(range(3), range(4)))
    for offsets, expected in ((CROSS, 2 * sympy.sqrt(2)), (SQUARE, 2), (SEIDEL, sympy.sqrt(6))):
        c = growth(offsets, 2)
        assert c == expected
        for mask in range(1, 1 << len(cells)):
            points = frozenset(p for k, p in enumerate(cells) if mask >> k & 1)
            assert grown(points, offsets) >= len(points) + float(c) * len(points) ** 0.5 - 1e-9
    diamond = frozenset((a, b) for a in range(-9, 10) for b in range(-9, 10) if abs(a) + abs(b) <= 9)
    assert grown(diamond, CROSS) <= len(diamond) + 2 * (2 * len(diamond)) ** 0.5 + 2.1
    trapezoid = frozenset((k, j) for k in range(12) for j in range(-k, 13))  # SEIDEL's hull, twelve times
    assert grown(trapezoid, SEIDEL) <= len(trapezoid) + (6 * len(trapezoid)) ** 0.5 + 2.6


@pytest.mark.thorough
def test_growth_of_rows_of_any_length() -> None:
    """Two rows of points, of different lengths and apart, in random directions: c = sqrt(2 (l + k)) at least."""
    rng = random.Random(7)
    for _ in range(60):
        one, two, far = rng.randint(0, 3), rng.randint(0, 3), rng.choice((1, 2))
        (a, b), (e, f) = rng.choice((((0, 1), (1, 0)), ((1, 1), (0, -1)), ((1, 0), (2, 1)), ((1, -1), (1, 1))))
        rows = {(a * i, b * i) for i in range(one + 1)} | {(a * i + far * e, b * i + far * f) for i in range(two + 1)}
        c = growth(frozenset(rows), 2)
        assert float(c) >= (2 * (one + two)) ** 0.5 - 1e-9
        for _ in range(30):
            side = rng.randint(1, 7)
            points = frozenset((rng.randrange(side), rng.randrange(side)) for _ in range(rng.randint(1, side**2)))
            assert grown(points, frozenset(rows)) >= len(points) + float(c) * len(points) ** 0.5 - 1e-9


def test_growth_on_a_line_and_in_space() -> None:
    assert growth(frozenset({(-1,), (0,), (1,)}), 1) == 2
    star = frozenset(
        {(0, 0, 0), *((s * a, s * b, s * c) for s in (1, -1) for a, b, c in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))}
    )
    c = growth(star, 3)
    assert c == 2 * sympy.root(sympy.Rational(9, 2), 3)
    rng = random.Random(1)
    for _ in range(400):
        points = frozenset(tuple(rng.randrange(3) for _ in range(3)) for _ in range(rng.randint(1, 27)))
        assert grown(points, star) >= len(points) + float(c) * len(points) ** (2 / 3) - 1e-9
    around = range(-8, 9)
    octahedron = frozenset(p for p in product(around, repeat=3) if sum(map(abs, p)) <= 8)
    assert grown(octahedron, star) <= len(octahedron) + 1.12 * float(c) * len(octahedron) ** (2 / 3)
