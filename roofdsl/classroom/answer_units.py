"""Units of numeric answers: operations, bytes and seconds, with their prefixes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.lang.units import UNITS as KINDS
from roofdsl.lang.units import Kind


class Dimension(Record):
    """The powers of operations, bytes and seconds in a quantity's unit."""

    operations: int = 0
    bytes: int = 0
    seconds: int = 0

    def __add__(self, other: Dimension) -> Dimension:
        return Dimension(self.operations + other.operations, self.bytes + other.bytes, self.seconds + other.seconds)

    def __mul__(self, times: int) -> Dimension:
        return Dimension(self.operations * times, self.bytes * times, self.seconds * times)

    def words(self) -> str:
        """What a quantity with this unit is called in messages: "a number of bytes"."""
        return _WORDS.get(self, f"something in {self.unit()}")

    def unit(self) -> str:
        """The plain unit: FLOP/s."""
        parts = ((self.operations, "FLOP"), (self.bytes, "B"), (self.seconds, "s"))
        above = "*".join(name for power, name in parts for _ in range(power))
        below = "/".join(name for power, name in parts for _ in range(-power))
        return (above or "1") + (f"/{below}" if below else "")


PLAIN = Dimension()
_WORDS = {
    PLAIN: "a plain number",
    Dimension(1): "a number of operations",
    Dimension(0, 1): "a number of bytes",
    Dimension(0, 0, 1): "a time",
    Dimension(1, 0, -1): "a rate of operations",
    Dimension(0, 1, -1): "a bandwidth",
    Dimension(1, -1): "an intensity",
    Dimension(-1, 1): "bytes per operation",
    Dimension(0, 0, -1): "a frequency",
}


def _table() -> dict[str, tuple[Fraction, Dimension]]:
    found: dict[str, tuple[Fraction, Dimension]] = {}
    for name, factor in KINDS["size"].items():
        found[name] = (factor, Dimension(0, 1))
    for name, factor in KINDS["time"].items():
        found[name] = (factor, Dimension(0, 0, 1))
    for name, factor in KINDS["frequency"].items():
        found[name] = (factor, Dimension(0, 0, -1))
    rates: tuple[Kind, ...] = ("flop_rate", "op_rate")
    for kind in rates:
        for name, factor in KINDS[kind].items():
            found[name.removesuffix("/s")] = (factor, Dimension(1))
    for prefix, power in (("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12)):
        found[f"{prefix}bit"] = (Fraction(10**power, 8), Dimension(0, 1))
    return found


UNITS: Mapping[str, tuple[Fraction, Dimension]] = _table()
"""The size of each unit in operations, bytes and seconds, and its dimension."""

_OTHER = {
    "KB": "kB", "kiB": "KiB", "operation": "OP", "operations": "OP",
    **{f"{p}Bps": f"{p}B/s" for p in ("", *"kMGT")}, **{f"{p}F": f"{p}FLOP" for p in ("", *"MGTP")},
}  # fmt: skip
_PREFIXES = {"kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "milli": "m", "micro": "u", "nano": "n"}
_BYTES = re.compile(r"(|[kKMGT]|[KMGT]i)[Bb]ytes?")
_OPERATIONS = re.compile(r"([kmgtpe]?)(flop|op)(s?)", re.IGNORECASE)
_TIMES = re.compile(r"([mun]?)(?:s|secs?|seconds?)")


def unit_named(word: str) -> str | None:
    """The unit that a word stands for; also understands common other spellings (`GFLOPs`, `gigabytes`, `GBytes`)."""
    if word in UNITS or word in _OTHER:
        return _OTHER.get(word, word)
    word = _with_letter(word)
    if match := _BYTES.fullmatch(word):
        return "kB" if match[1] == "K" else f"{match[1]}B"
    if word.endswith("bits") and word[:-1] in UNITS:
        return word[:-1]
    if match := _OPERATIONS.fullmatch(word):
        prefix = match[1].lower() if match[1] in ("k", "K") else match[1].upper()
        return f"{prefix}{match[2].upper()}"
    if match := _TIMES.fullmatch(word):
        return f"{match[1]}s"
    return None


def is_rate(word: str) -> bool:
    """Whether the final S of a word such as GFLOPS may mean "per second"."""
    match = _OPERATIONS.fullmatch(_with_letter(word))
    return match is not None and bool(match[3])


def _with_letter(word: str) -> str:
    """The word with its prefix as a letter: `Gbytes` for `gigabytes`."""
    for name, letter in _PREFIXES.items():
        if word.lower().startswith(name) and len(word) > len(name):
            return letter + word[len(name) :].lower()
    return word


def value_of(unit: str) -> tuple[Fraction, Dimension]:
    """The size and the dimension of a unit such as `GFLOP/s` or `B`; an empty unit is 1. Raises KeyError."""
    factor, dimension = Fraction(1), PLAIN
    for place, part in enumerate(unit.split("/") if unit else ()):
        if part == "1":
            continue
        own, kind = UNITS[part]
        factor = factor / own if place else factor * own
        dimension = dimension + kind * (-1 if place else 1)
    return factor, dimension
