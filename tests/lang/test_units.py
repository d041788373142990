"""Quantities: exact values, and errors that say what is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.units import Kind, UnitError, convert, parse_count, parse_power, parse_rate, parse_size, parse_time


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


def test_powers_and_energies() -> None:
    assert parse_power("12.5 kW") == 12_500 and parse_power("400 mW") == Fraction(2, 5)
    assert convert("5.81", "pJ/FLOP", "operation_energy") == Fraction(581, 10**14)
    assert convert("2", "nJ/OP", "operation_energy") == Fraction(2, 10**9)
    assert convert("122.4", "pJ/B", "byte_energy") == Fraction(1224, 10**13)
    with pytest.raises(UnitError, match=r"`pJ/B` is the unit of the energy of a byte"):
        convert("1", "pJ/B", "operation_energy")
    with pytest.raises(UnitError, match="is not a power"):
        parse_power("much")


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
        ("32", "needs a unit, but `32` has none"),
        ("32 GB/s", "`GB/s` is the unit of a bandwidth"),
        ("32 kb", "write `kB`"),
        ("32 KB", r"write `KiB` \(1,024 B\) or `kB` \(1,000 B\)"),
        ("0 B", "must be positive"),
        ("0.3 B", "not a whole number of bytes"),
        ("-3 B", "is not a size"),
        ("", "is not a size"),
        ("many", "is not a size"),
        ("1e99999 B", "is not a size"),
        ("1e999 B", "far beyond what any machine has"),
        ("9" * 99 + "B", "is not a size"),
        ("9" * 70 + "B", "has too many digits"),
        ("3 parsecs", "is not a unit of a size"),
    ],
)
def test_wrong_sizes(text: str, message: str) -> None:
    with pytest.raises(UnitError, match=message) as caught:
        parse_size(text)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("text", ["7 TFLOPS", "7 TFLOPs", "7 TFlop/s", "7 Tflops", "7 TFLOP/sec", "7000 GFlops/s"])
def test_spellings_that_mean_one_unit(text: str) -> None:
    assert parse_rate(text) == 7 * 10**12


@pytest.mark.parametrize("unit", ["GB/sec", "GBps", "GB/s"])
def test_spellings_of_bandwidths(unit: str) -> None:
    assert convert("9", unit, "bandwidth") == 9 * 10**9


@pytest.mark.parametrize(
    ("number", "unit", "kind", "help"),
    [
        ("2", "Gword/s", "bandwidth", "with words of 8 B it is `16 GB/s`"),
        ("100", "Gbit/s", "bandwidth", "8 bits are a byte: `12.5 GB/s`"),
        ("100", "Gb/s", "bandwidth", "`12.5 GB/s`"),
        ("4", "FLOP/word", "flop_rate", "are an intensity"),
        ("16", "FLOP/cycle", "flop_rate", "multiply by the clock"),
        ("8", "GB", "count", "write `8`"),
        ("2", "ns", "number", "write `2`"),
        ("2", "parsecs", "number", "write `2`"),
    ],
)
def test_units_that_need_more_than_another_spelling(number: str, unit: str, kind: Kind, help: str) -> None:
    with pytest.raises(UnitError) as caught:
        convert(number, unit, kind)
    assert help in caught.value.help


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4096", 4096), ("1_000_000", 10**6), ("1e6", 10**6), ("1.5e3", 1500), ("4096.0", 4096), ("2^20", 2**20),
        ("2**20", 2**20), ("2 ^ 20", 2**20), ("3*2^10", 3072), ("2*1024", 2048), ("-3", -3),
    ],
)  # fmt: skip
def test_counts(text: str, value: int) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("4k", "write 4000 or 4096"), ("4Ki", "write 4096"), ("1.5k", "write 1500 or 1536"), ("1.5", "a whole number"),
        ("big", "such as 4096, 1e6 or 2^20"), ("", "whole number"), ("2^", "whole number"), ("1e-3", "whole number"),
        ("9" * 50, "whole number"), ("2^2^2", "whole number"), ("0x10", "whole number"), ("n", "whole number"),
    ],
)  # fmt: skip
def test_what_is_no_count(text: str, help: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_count(text)
    assert help in caught.value.help


@pytest.mark.parametrize(("text", "meant"), [("7 tflop/s", "TFLOP/s"), ("7 TFLOPS/s", "TFLOP/s")])
def test_other_spellings(text: str, meant: str) -> None:
    with pytest.raises(UnitError, match=f"write `{meant}`"):
        parse_rate(text)
