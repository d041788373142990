"""Quantities with units to exact plain numbers: bytes, bytes/s, seconds, operations/s, hertz, watts, joules per byte.

Used for machine blocks and for command-line options. Except for counts and plain numbers, a unit is required; one of
another kind is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

Kind = Literal[
    "size", "bandwidth", "time", "flop_rate", "op_rate", "frequency", "count", "number", "cycles", "bits", "power",
    "byte_energy", "operation_energy",
]  # fmt: skip

_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZES |= {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_SMALL = {"p": Fraction(1, 10**12), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}

UNITS: Mapping[Kind, Mapping[str, Fraction]] = {
    "size": {u: Fraction(f) for u, f in _SIZES.items()},
    "bandwidth": {f"{u}/s": Fraction(f) for u, f in _SIZES.items()},
    "time": {u: Fraction(1, 10**e) for u, e in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9), ("ps", 12))},
    "flop_rate": {f"{p}FLOP/s": Fraction(f) for p, f in _PREFIXES.items()},
    "op_rate": {f"{p}OP/s": Fraction(f) for p, f in _PREFIXES.items()},
    "frequency": {f"{p}Hz": Fraction(f) for p, f in list(_PREFIXES.items())[:5]},
    "count": {"": Fraction(1)},
    "cycles": {"cycles": Fraction(1), "cycle": Fraction(1)},
    "bits": {"bits": Fraction(1), "bit": Fraction(1)},
    "number": {"": Fraction(1)},
    "power": {"mW": _SMALL["m"], "W": Fraction(1), "kW": Fraction(1000), "MW": Fraction(10**6)},
    "byte_energy": {f"{p}J/B": f for p, f in _SMALL.items()} | {"J/B": Fraction(1)},
    "operation_energy": {f"{p}J/{of}": f for of in ("FLOP", "OP") for p, f in _SMALL.items()}
    | {"J/FLOP": Fraction(1), "J/OP": Fraction(1)},
}
WORDS: Mapping[Kind, str] = {
    "size": "a size",
    "bandwidth": "a bandwidth",
    "time": "a time",
    "flop_rate": "a rate of floating-point operations",
    "op_rate": "a rate of integer operations",
    "frequency": "a frequency",
    "count": "a plain number",
    "cycles": "a number of clock cycles",
    "bits": "a number of bits",
    "number": "a plain number",
    "power": "a power",
    "byte_energy": "the energy of a byte",
    "operation_energy": "the energy of an operation",
}
_SHOWN: Mapping[Kind, str] = {
    "size": " ".join(_SIZES),
    "bandwidth": " ".join(f"{u}/s" for u in _SIZES),
    "time": "s ms us ns ps",
    "flop_rate": "MFLOP/s GFLOP/s TFLOP/s PFLOP/s",
    "op_rate": "MOP/s GOP/s TOP/s POP/s",
    "frequency": "Hz kHz MHz GHz",
    "count": "",
    "cycles": "cycles",
    "bits": "bits",
    "number": "",
    "power": "mW W kW MW",
    "byte_energy": "pJ/B nJ/B uJ/B",
    "operation_energy": "pJ/FLOP nJ/FLOP pJ/OP nJ/OP",
}
_MORE = ("flop_rate", "op_rate", "frequency", "byte_energy", "operation_energy")
"""The kinds that have more units than those shown."""

_NUMBER = re.compile(r"(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d{1,3})?")
_QUANTITY = re.compile(rf"\s*({_NUMBER.pattern})\s*([A-Za-z]*(?:\s*/\s*[A-Za-z]+)?)\s*")
Rational = int | Fraction
_LARGEST = Fraction(10**36)
_LONGEST = 60


class UnitError(ValueError):
    """A quantity that is not accepted. `code` is the diagnostic's; `help` says what to write."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        self.code, self.message, self.help = code, message, help
        super().__init__(message + (f"; {help}" if help else ""))


def convert(number: str, unit: str, kind: Kind) -> Fraction:
    """`number` `unit` in the plain unit of `kind`, positive and exact. Raises UnitError."""
    factor = UNITS[kind].get(unit) or UNITS[kind].get(_respelt(unit))
    if factor is None:
        raise _unit_error(number, unit, kind)
    if len(number) > _LONGEST or not _NUMBER.fullmatch(number):
        raise UnitError("number-range", f"`{number[:20]}...` has too many digits")
    value = Fraction(number.replace("_", "")) * factor
    if value <= 0:
        what = "this number" if kind in ("count", "number") else WORDS[kind]
        raise UnitError("quantity-zero", f"{what} must be positive, but it is 0")
    if not 1 / _LARGEST <= value <= _LARGEST:
        raise UnitError("number-range", f"`{number} {unit}` is far beyond what any machine has")
    if kind == "size" and value.denominator != 1:
        raise UnitError("quantity-whole", f"`{number} {unit}` is not a whole number of bytes")
    return value


def _unit_error(number: str, unit: str, kind: Kind) -> UnitError:
    if kind in ("count", "number"):
        return UnitError("unit-kind", f"{WORDS[kind]} is expected, without the unit `{unit}`", f"write `{number}`")
    several = "units are" if " " in _SHOWN[kind] else "unit is"
    units = f"the {'usual ' if kind in _MORE else ''}{several} {_SHOWN[kind]}"
    if not unit:
        return UnitError("unit-missing", f"{WORDS[kind]} needs a unit, but `{number}` has none", units)
    other = next((WORDS[k] for k, table in UNITS.items() if unit in table), None)
    if other:
        return UnitError("unit-kind", f"{WORDS[kind]} is expected, but `{unit}` is the unit of {other}", units)
    if unit in {"size": ("KB",), "bandwidth": ("KB/s", "KBps")}.get(kind, ()):
        per = "/s" if kind == "bandwidth" else ""
        return UnitError(
            "unit-unknown", f"`{unit}` is not a unit of {WORDS[kind]}",
            f"write `KiB{per}` (1,024 B{per}) or `kB{per}` (1,000 B{per})",
        )  # fmt: skip
    meant = _meant(unit, kind)
    help = f"write `{meant}`" if meant else _converted(number, unit, kind) or units
    return UnitError("unit-unknown", f"`{unit}` is not a unit of {WORDS[kind]}", help)


def _respelt(unit: str) -> str:
    """Other spellings with only one meaning: GFLOPS and GFlop/s are GFLOP/s, GBps and GB/sec are GB/s."""
    operations = re.fullmatch(r"([kMGTPE]?)(FLOP|Flop|flop|OP|Op|op)(?:[Ss]|s?/s(?:ec)?)", unit)
    if operations is not None:
        return f"{operations[1]}{operations[2].upper()}/s"
    return re.sub(r"(?<=B)(?:ps|/sec)$", "/s", unit)


def _converted(number: str, unit: str, kind: Kind) -> str:
    """Help for bandwidths in words or bits (with the number converted), per cycle, and for intensities."""
    prefix = next((p for p in _PREFIXES if p and unit.startswith(p)), "")
    rest = unit.removeprefix(prefix).lower()
    if kind in ("bandwidth", "size") and rest.rstrip("/s").rstrip("s") in ("word", "element", "double"):
        per = "/s" if kind == "bandwidth" else ""
        return f"words have no fixed size; with words of 8 B it is `{_times(number, 8)} {prefix}B{per}`"
    if kind == "bandwidth" and rest in ("bit/s", "bits/s", "b/s", "bps") and "B" not in unit:
        return f"8 bits are a byte: `{_times(number, Fraction(1, 8))} {prefix}B/s`"
    per_cycle = re.search(r"/(cycle|clock|clk|cy)$", unit)
    if kind == "bandwidth" and per_cycle:
        return "multiply by the clock and by the number of copies: 64 B/cycle at 2 GHz in 8 cores are `1024 GB/s`"
    if kind in ("flop_rate", "op_rate") and per_cycle:
        return "multiply by the clock: 16 FLOP/cycle at 2 GHz are `32 GFLOP/s`"
    if kind in ("flop_rate", "op_rate") and re.search(r"/(word|b|byte)$", unit.lower()):
        return "operations per byte or word are an intensity; a rate is per second: `10 GFLOP/s`"
    return ""


def _times(number: str, factor: Rational) -> str:
    value = Fraction(number.replace("_", "")) * factor
    return str(value) if value.denominator == 1 else f"{float(value):g}"


def _meant(unit: str, kind: Kind) -> str:
    """The unit that another common spelling stands for: GFLOPS, KB, GBps, gb/s, usec."""
    if kind == "bandwidth" and re.search(r"[kMGT]b(ps|/s|it)?$", unit):
        return ""  # bits
    plain = re.sub(r"(?<=[Bb])ps$|/sec$", "/s", unit)
    plain = re.sub(r"(?i)flops$|flop/sec$|flops/s$", "FLOP/s", plain)
    plain = re.sub(r"(?i)(?<!fl)ops$|(?<!fl)ops/s$", "OP/s", plain)
    plain = re.sub(r"(?<=s)ecs?$", "", plain)
    matches = [u for u in UNITS[kind] if u.lower() == plain.lower()]
    return matches[0] if len(matches) == 1 else ""


def _split(text: str, kind: Kind) -> Fraction:
    match = _QUANTITY.fullmatch(text) if len(text) < 100 else None
    if match is None:
        example = {"size": "32 KiB", "time": "4 us", "power": "230 W"}.get(kind, "7 TFLOP/s")
        raise UnitError("number", f"`{text[:40]}` is not {WORDS[kind]}", f"write it like `{example}`")
    return convert(match[1], re.sub(r"\s", "", match[2]), kind)


_POWER = re.compile(r"(\d[\d_]{0,20})\s*(?:\*\*|\^)\s*(\d{1,3})")
_LONGEST_COUNT = 40


def parse_count(text: str) -> int:
    """A whole number as people write it: `4096`, `1_000_000`, `1e6`, `2^20`, `2**20`, `3*2^10`.

    Raises UnitError (a ValueError) for anything else, such as `4k`, which could mean several numbers.
    """
    text = text.strip()
    value = 1
    for factor in re.split(r"(?<!\*)\*(?!\*)", text[: _LONGEST_COUNT + 1]):
        found = _factor(factor.strip()) if len(text) <= _LONGEST_COUNT else None
        if found is None:
            raise UnitError("number", f"`{text[:40]}` is not an integer", _count_help(text))
        value *= found
    return value


def _factor(text: str) -> int | None:
    power = _POWER.fullmatch(text)
    if power is not None:
        raised: int = int(power[1]) ** int(power[2])
        return raised
    if re.fullmatch(r"[+-]?\d+(_\d+)*", text):
        return int(text)
    value = Fraction(text.replace("_", "")) if _NUMBER.fullmatch(text) and len(text) <= _LONGEST else None
    return int(value) if value is not None and value.denominator == 1 else None


def _count_help(text: str) -> str:
    scaled = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMG])(i?)", text)
    if scaled is None:
        return "write a whole number, such as 4096, 1e6 or 2^20"
    power = " kMG".index(scaled[2].replace("K", "k"))
    decimal, binary = (Fraction(scaled[1]) * base**power for base in (1000, 1024))
    choices = [str(v) for v in ((binary,) if scaled[3] else (decimal, binary)) if v.denominator == 1]
    return f"write {' or '.join(choices)}" if choices else "write a whole number"


def parse_size(text: str) -> int:
    """Bytes of `32KiB`, `6 MiB`, `64 B`. Raises UnitError (a ValueError) that says what is wrong."""
    return int(_split(text, "size"))


def parse_time(text: str) -> Fraction:
    """Seconds of `4.2 us`. Raises UnitError (a ValueError)."""
    return _split(text, "time")


def parse_power(text: str) -> Fraction:
    """Watts of `230 W`. Raises UnitError (a ValueError)."""
    return _split(text, "power")


def parse_rate(text: str) -> Fraction:
    """Operations per second of `7 TFLOP/s` or `3 TOP/s`. Raises UnitError (a ValueError)."""
    integer = re.search(r"(?<!FL)OP\s*/\s*s\s*$", text) is not None
    return _split(text, "op_rate" if integer else "flop_rate")
