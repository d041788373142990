"""Quantities: exact values, and errors that say what is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.units import (
    UnitError,
    convert,
    parse_rate,
    parse_size,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("6 MiB", 6 * 2**20),
        ("32KiB", 32768),
        (" 64 B ", 64),
        ("1.5 KiB", 1536),
        ("16 GB", 16 * 10**9),
        ("2 TiB", 2**41),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert type(parse_size(text)) is int


def test_rates_are_exact() -> None:
    assert convert("900", "GB/s", "bandwidth") == 9 * 10**11
    assert convert("2.44", "TB/s", "bandwidth") == 2_440_000_000_000
    assert convert("0.1", "GB/s", "bandwidth") == Fraction(10**8)
    assert parse_rate("0.1 GFLOP / s") == Fraction(10**8)
    assert parse_time("4.2 us") == Fraction(42, 10**7)
    assert parse_rate("7 TFLOP/s") == 7 * 10**12
    assert parse_rate("1.6 POP/s") == 16 * 10**14
    assert convert("1.38", "GHz", "frequency") == 138 * 10**7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("32", "has a unit, and `32` has none"),
        ("32 GB/s", "`GB/s` is the unit of a bandwidth"),
        ("32 kb", "write `kB`"),
        ("0 B", "is positive"),
        ("0.3 B", "no whole number of bytes"),
        ("-3 B", "is not a size"),
        ("", "is not a size"),
        ("many", "is not a size"),
        ("1e99999 B", "is not a size"),
        ("1e999 B", "out of every range"),
        ("9" * 99 + "B", "is not a size"),
        ("9" * 70 + "B", "everyday size"),
        ("3 parsecs", "is no unit of a size"),
    ],
)
def test_wrong_sizes(text: str, message: str) -> None:
    with pytest.raises(UnitError, match=message) as caught:
        parse_size(text)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "meant"), [("7 TFLOPS", "TFLOP/s"), ("7 tflop/s", "TFLOP/s"), ("7 GFlops/s", "GFLOP/s")]
)
def test_other_spellings(text: str, meant: str) -> None:
    with pytest.raises(UnitError, match=f"write `{meant}`"):
        parse_rate(text)
