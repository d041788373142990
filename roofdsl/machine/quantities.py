"""Exact quantities as people write them: rates, bandwidths, sizes, times, with a fitting prefix."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, log10

Number = int | float | Fraction

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_POWERS = (*((factor, f"{prefix}W") for factor, prefix in _DECIMAL), (1e-3, "mW"))
_ENERGIES = ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ"), (1e-9, "nJ"), (1e-12, "pJ"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps"))


def show_number(value: Number, digits: int = 4) -> str:
    """`value` with that many significant digits (or all of its whole part), without an exponent for everyday
    magnitudes.
    """
    x = float(value)
    if x == 0 or not 1e-4 <= abs(x) < 1e15:
        return f"{x:.{digits}g}"
    decimals = max(0, digits - 1 - floor(log10(abs(x))))
    text = f"{x:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _in_units(x: float, units: Sequence[tuple[float, str]], digits: int) -> tuple[str, str] | None:
    """`x` and its unit: the largest of `units`, each a thousand of the next, in which it is at least 1; None if there
    is none.
    """
    k = next((k for k, (factor, _) in enumerate(units) if abs(x) >= factor * (1 - 1e-12)), None)
    if k is None:
        return None
    if k and abs(float(show_number(x / units[k][0], digits))) >= 1000:
        k -= 1  # 999,960 B would be 1000 kB in four digits: it is 1 MB
    factor, unit = units[k]
    return show_number(x / factor, digits), unit


def _shown(x: float, units: Sequence[tuple[float, str]], digits: int, below: str) -> str:
    """`x` with its unit, or the text for a value below all units."""
    parts = _in_units(x, units, digits)
    return " ".join(parts) if parts else below


def _scaled(value: Number, unit: str, digits: int) -> str:
    return " ".join(_in_parts(value, unit, digits))


def _in_parts(value: Number, unit: str, digits: int) -> tuple[str, str]:
    """The number and its unit, with a prefix that suits the number."""
    x = float(value)
    units = [(factor, f"{prefix}{unit}") for factor, prefix in _DECIMAL]
    return _in_units(x, units, digits) or (show_number(x, digits), unit)


def show_rate(per_s: Number, unit: str = "FLOP", digits: int = 4) -> str:
    """Operations per second: `7 TFLOP/s`."""
    return _scaled(per_s, f"{unit}/s", digits)


def show_named_rates(rates: Sequence[tuple[str, Number]], unit: str = "FLOP", digits: int = 4) -> str:
    """Names with their rates, each unit once: `f64 FMA 7.8, f32 no FMA 7.85 TFLOP/s`."""
    parts = [(name, *_in_parts(per_s, f"{unit}/s", digits)) for name, per_s in rates]
    after = [following for *_, following in parts[1:]] + [""]
    return ", ".join(
        f"{name} {number}" if shown == following else f"{name} {number} {shown}"
        for (name, number, shown), following in zip(parts, after, strict=True)
    )


def show_operations(count: Number, unit: str = "FLOP", digits: int = 4) -> str:
    """A number of operations: `2.15 GFLOP`."""
    return _scaled(count, unit, digits)


def show_bandwidth(bytes_per_s: Number, digits: int = 4) -> str:
    """Bytes per second: `900 GB/s`."""
    return _scaled(bytes_per_s, "B/s", digits)


def show_bytes(count: Number, digits: int = 4) -> str:
    """A number of bytes moved, in decimal multiples: `134.3 MB`."""
    return _scaled(count, "B", digits)


def show_size(count: Number) -> str:
    """A capacity, in binary multiples if it is a whole number of quarters of one, `6 MiB`, or else in decimal ones."""
    x = Fraction(count)
    factor, unit = next(((f, u) for f, u in _BINARY if x >= f), (1, "B"))
    if (x / factor * 4).denominator == 1:
        return f"{show_number(x / factor, 6)} {unit}"
    return _scaled(count, "B", 6)


def show_percent(share: float, form: str = ".0%") -> str:
    """A fraction as a percentage: `12 %`."""
    text = format(share, form)
    if not any(digit in text for digit in "123456789"):
        text = format(0.0, form)  # not `-0.0%`
    return text.replace("%", " %")


def show_time(seconds: Number, digits: int = 4) -> str:
    """A time: `149.2 us`."""
    x = float(seconds)
    return _shown(x, _TIMES, digits, f"{x:.{digits}g} s" if x else "0 s")


def show_power(watts: Number, digits: int = 4) -> str:
    """A power: `105 W`, `12.5 kW`, `400 mW`."""
    x = float(watts)
    return _shown(x, _POWERS, digits, f"{show_number(1000 * x, digits)} mW" if x else "0 W")


def show_energy(joules: Number, digits: int = 4) -> str:
    """An energy: `3.2 mJ`."""
    x = float(joules)
    return _shown(x, _ENERGIES, digits, f"{x:.{digits}g} J" if x else "0 J")


def show_energy_per(joules: Number, of: str, digits: int = 4) -> str:
    """The energy of one of something, in pJ as the literature has it: `122.4 pJ/B`."""
    return f"{show_number(float(joules) * 1e12, digits)} pJ/{of}"


def group(count: int) -> str:
    """An exact count with thousands separators: `33,554,432`."""
    return f"{count:,}"
