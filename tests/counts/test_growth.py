"""Forms for large sizes, where remainders matter: leading terms that all classes share, and those that differ."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.counts.derive import derive
from roofdsl.counts.growth import leading_anywhere, leading_of, value_of
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi, floor
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.oracle.loading import kernel_of

ORDER = Growth(frozenset("b"))
N, M, B = map(Quasi.symbol, ("n", "m", "b"))


def rounded_down(period: int) -> Quasi:
    """n, less its remainder."""
    return period * floor(N * Fraction(1, period))


def test_leading_terms_beyond_the_classes_that_are_compared() -> None:
    """5000 classes: their leading terms are known only if remainders cannot decide them."""
    shared = Cases((Case((), rounded_down(5000) + M),))
    assert leading_of(shared, ORDER, {}, None) == N + M
    assert value_of(shared, ORDER, {}, None) is None
    remainder = Cases((Case((), (N - rounded_down(5000)) * M + N),))
    assert leading_of(remainder, ORDER, {}, None) is None
    assert leading_of(remainder, ORDER, {"n": 5003}, None) == 3 * M + N


def test_leading_terms_whatever_the_remainders() -> None:
    assert leading_anywhere(rounded_down(8) ** 2 + 5 * N, ORDER) == N**2
    assert leading_anywhere(N - rounded_down(8), ORDER) is None
    tiles = floor(N * B**-1 * Fraction(1, 2)) * B
    assert leading_anywhere(tiles, ORDER) == N * Fraction(1, 2)
    assert leading_anywhere(N * tiles - N**2 * Fraction(1, 2), ORDER) is None


EVERY_SECOND_TILE = """kernel second(n, b):
    assume n % b == 0
    in A: f64[n]
    inout B: f64[n]
    for ii in range(0, n, b), j in range(b):
        if 2*ii < n:
            B[ii + j] += A[2*ii + j] + A[n - b - 2*ii + j]
"""


def test_plateaus_for_an_even_or_odd_number_of_tiles() -> None:
    kernel = kernel_of(EVERY_SECOND_TILE)
    for size in ({"n": 48, "b": 4}, {"n": 44, "b": 4}):
        rows = derive(kernel, size).plateaus
        assert [str(row.where) for row in rows] == [f"(n//b) % 2 == {size['n'] // 4 % 2}"] * len(rows)
        assert rows[-1].bytes.value == simulate_lru(kernel, size, 1 << 20).bytes("load_store")
