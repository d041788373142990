"""Ranges as people write them: what is taken, and what is refused and how."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.sweep.ranges import parse_ranges, parse_sizes, points_of

GOOD = {
    "n=64": {"n": (64,)},
    "n=1..4096:*2": {"n": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)},
    "n=3..20:*2": {"n": (3, 6, 12)},
    "n=8..40:+16": {"n": (8, 24, 40)},
    "n=5..8": {"n": (5, 6, 7, 8)},
    "n=1..6:*1.5": {"n": (1, 2, 3, 5)},
    "n=1..6:*5/4": {"n": (1, 2, 3, 4, 5)},
    "n=64,100,b=8..32:*2,7": {"n": (64, 100), "b": (8, 16, 32, 7)},
    " n = 1 .. 4 , m = 2": {"n": (1, 2, 3, 4), "m": (2,)},
    "n=7,7,7": {"n": (7,)},
}

BAD = {
    "n": "not of the form",
    "=3": "not of the form",
    "3n=4": "not of the form",
    "n=": "not an integer",
    "n=x": "not an integer",
    "n=1.5": "not an integer",
    "n=0": "positive",
    "n=-4": "positive",
    "n=8..4": "ends before it begins",
    "n=1..8:2": "not a step",
    "n=1..8:+x": "not an integer",
    "n=1..8:+0": "positive",
    "n=1..8:*1": "greater than 1",
    "n=1..8:*x": "not a factor",
    "n=1..8:*1.00000000000000000001": "more than 20 characters",
    "n=1..8:*1/0": "not a factor",
    "n=1..8:*-2": "greater than 1",
    "n=1..100000000": "more than 10,000,000",
    "n=4611686018427387904..4611686018427387905": "at most 2**62",
    "n=1,n=2": "twice",
}


@pytest.mark.parametrize("text", GOOD)
def test_taken(text: str) -> None:
    assert {name: tuple(values) for name, values in parse_ranges(text).items()} == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_refused(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_ranges(text)
    assert BAD[text] in str(refused.value)


@pytest.mark.parametrize(
    ("low", "high", "factor"),
    [
        (1, 4096, "1.01"), (1, 10**6, "1.05"), (1, 2**62, "1.05"), (1, 2**62, "1.01"), (1, 100_000, "1.001"),
        (7, 5000, "1.0003"), (1, 9000, "1.0001"), (100, 101, "1.01"), (100, 103, "1.01"), (1000, 10**6, "1.1"),
        (10**9, 10**9 + 5000, "1.0000001"), (3**20, 4**20, "4/3"), (6, 6, "1.5"), (64, 4096, "3"),
    ],
)  # fmt: skip
def test_a_factor_near_1_meets_the_values_of_exact_powers(low: int, high: int, factor: str) -> None:
    """Against powers with 300 digits, and exact ones as long as they are short."""
    exact, found, k = Fraction(factor), list[int](), 0
    with localcontext(Context(prec=300)):
        power = Decimal(low)
        while (value := low * exact**k if k < 60 else power) <= high:
            if not found or found[-1] != int(value):
                found.append(int(value))
            power, k = power * exact.numerator / exact.denominator, k + 1
    assert parse_ranges(f"n={low}..{high}:*{factor}")["n"] == tuple(found)


@pytest.mark.parametrize("factor", ["1.00000000000000001", "100000001/100000000"])
def test_a_factor_that_hardly_grows_meets_every_value(factor: str) -> None:
    assert parse_ranges(f"n=5..9000:*{factor}")["n"] == tuple(range(5, 9000))
    for high in ("20000", "2^62"):
        with pytest.raises(CommandError, match="a geometric range has more than 10,000 values"):
            parse_ranges(f"n=1..{high}:*{factor}")


def test_sizes_carry_units() -> None:
    assert parse_sizes("32KiB..256KiB:*2,1MiB") == (32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20)
    for wrong in ("32", "1MiB..2", "x", "", "1KiB..2KiB:*0.5"):
        with pytest.raises(CommandError):
            parse_sizes(wrong)
    with pytest.raises(CommandError, match=r"a cache has at most 2\*\*62 B, and 10000000TiB is given"):
        parse_sizes("1MiB..10000000TiB:*2")


def test_points() -> None:
    assert points_of(parse_ranges("n=1..10,b=1,2,3")) == 30
    assert points_of({}) == 1


def test_a_sweep_that_is_refused_costs_nothing() -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(CommandError, match="limit is 50,000,000"):
            parse_ranges("n=1..9000000,m=1..9000000,k=1..9000000")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
