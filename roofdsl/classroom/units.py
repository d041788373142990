"""Units of numeric answers: operations, bytes and seconds, with their prefixes."""

from __future__ import annotations

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
        """What has this unit, for a message."""
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
"""What a unit is worth in operations, bytes and seconds, and its dimension."""

_OTHER = {"sec": "s", "usec": "us", "msec": "ms", "nsec": "ns", "KB": "kB", "byte": "B", "bytes": "B", "ops": "OP"}


def unit_named(word: str) -> str | None:
    """The unit that a word stands for: itself, or a common other spelling of it (`GFLOPs`, `bytes`)."""
    if word in UNITS:
        return word
    if word in _OTHER:
        return _OTHER[word]
    if word[-1:] == "F" and f"{word}LOP" in UNITS and len(word) == 2:  # GF/s
        return f"{word}LOP"
    stem = word[:-1] if word[-1:] in "sS" and word[:-1].upper().endswith("OP") else word
    if stem.upper().endswith("FLOP") and f"{stem[:-4]}FLOP" in UNITS:
        return f"{stem[:-4]}FLOP"
    return None


def value_of(unit: str) -> tuple[Fraction, Dimension]:
    """What `GFLOP/s` or `B` is worth, and its dimension; an empty unit is 1. Raises KeyError."""
    factor, dimension = Fraction(1), PLAIN
    for place, part in enumerate(unit.split("/") if unit else ()):
        if part == "1":
            continue
        own, kind = UNITS[part]
        factor = factor / own if place else factor * own
        dimension = dimension + kind * (-1 if place else 1)
    return factor, dimension
