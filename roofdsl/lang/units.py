"""Quantities with units to exact plain numbers: bytes, bytes/s, seconds, operations/s, hertz.

Used for machine blocks and for command-line options. A unit is required; one of another kind is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

Kind = Literal["size", "bandwidth", "time", "flop_rate", "op_rate", "frequency", "count"]

_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZES |= {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}

UNITS: Mapping[Kind, Mapping[str, Fraction]] = {
    "size": {u: Fraction(f) for u, f in _SIZES.items()},
    "bandwidth": {f"{u}/s": Fraction(f) for u, f in _SIZES.items()},
    "time": {u: Fraction(1, 10**e) for u, e in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9))},
    "flop_rate": {f"{p}FLOP/s": Fraction(f) for p, f in _PREFIXES.items()},
    "op_rate": {f"{p}OP/s": Fraction(f) for p, f in _PREFIXES.items()},
    "frequency": {f"{p}Hz": Fraction(f) for p, f in list(_PREFIXES.items())[:5]},
    "count": {"": Fraction(1)},
}
WORDS: Mapping[Kind, str] = {
    "size": "a size",
    "bandwidth": "a bandwidth",
    "time": "a time",
    "flop_rate": "a rate of floating-point operations",
    "op_rate": "a rate of integer operations",
    "frequency": "a frequency",
    "count": "a plain number",
}
_SHOWN: Mapping[Kind, str] = {
    "size": "B KiB MiB GiB TiB kB MB GB TB",
    "bandwidth": "B/s KiB/s MiB/s GiB/s TiB/s kB/s MB/s GB/s TB/s",
    "time": "s ms us ns",
    "flop_rate": "MFLOP/s GFLOP/s TFLOP/s PFLOP/s",
    "op_rate": "MOP/s GOP/s TOP/s POP/s",
    "frequency": "Hz kHz MHz GHz",
    "count": "",
}
_NUMBER = re.compile(r"(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d{1,3})?")
_QUANTITY = re.compile(rf"\s*({_NUMBER.pattern})\s*([A-Za-z]*(?:\s*/\s*[A-Za-z]+)?)\s*")
_LARGEST = Fraction(10**36)
_LONGEST = 60


class UnitError(ValueError):
    """A quantity that is not what is asked for. `code` is the diagnostic's; `help` says what to write."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        self.code, self.message, self.help = code, message, help
        super().__init__(message + (f"; {help}" if help else ""))


def convert(number: str, unit: str, kind: Kind) -> Fraction:
    """`number` `unit` in the plain unit of `kind`, positive and exact. Raises UnitError."""
    factor = UNITS[kind].get(unit)
    if factor is None:
        raise _unit_error(number, unit, kind)
    if len(number) > _LONGEST or not _NUMBER.fullmatch(number):
        raise UnitError("number-range", f"`{number[:20]}...` is no number of everyday size")
    value = Fraction(number.replace("_", "")) * factor
    if value <= 0:
        raise UnitError("quantity-zero", f"{WORDS[kind]} is positive, and this is 0")
    if not 1 / _LARGEST <= value <= _LARGEST:
        raise UnitError("number-range", f"`{number} {unit}` is out of every range that a machine could have")
    if kind == "size" and value.denominator != 1:
        raise UnitError("quantity-whole", f"`{number} {unit}` is no whole number of bytes")
    return value


def _unit_error(number: str, unit: str, kind: Kind) -> UnitError:
    if kind == "count":
        return UnitError("unit-kind", f"{WORDS[kind]} is expected, without the unit `{unit}`", f"write `{number}`")
    units = f"the units are {_SHOWN[kind]}"
    if not unit:
        return UnitError("unit-missing", f"{WORDS[kind]} has a unit, and `{number}` has none", units)
    other = next((WORDS[k] for k, table in UNITS.items() if unit in table), None)
    if other:
        return UnitError("unit-kind", f"{WORDS[kind]} is expected, and `{unit}` is the unit of {other}", units)
    meant = _meant(unit, kind)
    help = f"write `{meant}`" if meant else units
    return UnitError("unit-unknown", f"`{unit}` is no unit of {WORDS[kind]}", help)


def _meant(unit: str, kind: Kind) -> str:
    """The unit that a common other spelling stands for: GFLOPS, KB, GBps, gb/s, usec."""
    plain = re.sub(r"(?<=[Bb])ps$|/sec$", "/s", unit)
    plain = re.sub(r"(?i)flops$|flop/sec$|flops/s$", "FLOP/s", plain)
    plain = re.sub(r"(?i)(?<!fl)ops$|(?<!fl)ops/s$", "OP/s", plain)
    plain = re.sub(r"(?<=s)ecs?$", "", plain)
    matches = [u for u in UNITS[kind] if u.lower() == plain.lower()]
    return matches[0] if len(matches) == 1 else ""


def _split(text: str, kind: Kind) -> Fraction:
    match = _QUANTITY.fullmatch(text) if len(text) < 100 else None
    if match is None:
        example = {"size": "32 KiB", "time": "4 us"}.get(kind, "7 TFLOP/s")
        raise UnitError("number", f"`{text[:40]}` is not {WORDS[kind]}", f"write it like `{example}`")
    return convert(match[1], re.sub(r"\s", "", match[2]), kind)


def parse_size(text: str) -> int:
    """Bytes of `32KiB`, `6 MiB`, `64 B`. Raises UnitError (a ValueError) that says what is wrong."""
    return int(_split(text, "size"))


def parse_time(text: str) -> Fraction:
    """Seconds of `4.2 us`. Raises UnitError (a ValueError)."""
    return _split(text, "time")


def parse_rate(text: str) -> Fraction:
    """Operations per second of `7 TFLOP/s` or `3 TOP/s`. Raises UnitError (a ValueError)."""
    integer = re.search(r"(?<!FL)OP\s*/\s*s\s*$", text) is not None
    return _split(text, "op_rate" if integer else "flop_rate")
