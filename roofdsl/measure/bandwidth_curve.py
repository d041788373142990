"""Bandwidth against working set: what a sweep is, and what its patterns count as bytes.

All patterns touch arrays from one end to the other, again and again. Which bytes of an iteration take time is one of
three `Counts`: what is read and written; that with the line of a write-only array loaded first; or, where both
directions run at the same time, the larger of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Counts = Literal["no_write_allocate", "write_allocate", "duplex"]
"""How a level counts, in the words of a machine file. A duplex one loads what it stores as well."""


@dataclass(frozen=True)
class Pattern:
    """A streaming loop. `read`, `written` and `updated` are arrays only read, only written, and both."""

    name: str
    read: int
    written: int
    updated: int = 0

    @property
    def arrays(self) -> int:
        return self.read + self.written + self.updated

    def elements(self, counts: Counts = "no_write_allocate") -> int:
        """Elements that take time per iteration; on a duplex level the loads, of which there are never fewer."""
        loads = self.read + self.updated + (0 if counts == "no_write_allocate" else self.written)
        return loads if counts == "duplex" else loads + self.written + self.updated


LOAD = Pattern("load", 1, 0)
COPY = Pattern("copy", 1, 1)
TRIAD = Pattern("triad", 2, 1)
UPDATE = Pattern("update", 1, 0, 1)
PATTERNS = (LOAD, COPY, TRIAD, UPDATE)
STREAMS = (LOAD, COPY, TRIAD)
"""Those that a level's bandwidth is taken from. An update in place is measured beside them (see `Bandwidth`)."""


@dataclass(frozen=True)
class Point:
    """One pattern at one working set: bytes per core, and the median of elements' bytes moved per second in all.

    bytes_per_s counts what is read and written; `rate` gives it as a level counts.
    """

    pattern: Pattern
    working_set_bytes: int
    bytes_per_s: float
    spread: float

    def rate(self, counts: Counts) -> float:
        return self.bytes_per_s * self.pattern.elements(counts) / self.pattern.elements()


@dataclass(frozen=True)
class Sweep:
    """Points of several patterns; `cores` ran at once, each on a working set of its own."""

    cores: int
    points: tuple[Point, ...]

    def of(self, pattern: Pattern) -> tuple[Point, ...]:
        """One pattern's points, by ascending working set."""
        return tuple(sorted((p for p in self.points if p.pattern == pattern), key=lambda p: p.working_set_bytes))

    def fastest(self) -> tuple[list[int], list[float]]:
        """(working sets, bytes per second of the fastest stream at each): the curve that levels are read off.

        Of three numbers measured at different times one is rarely disturbed enough to hide a step.
        """
        sizes = sorted({p.working_set_bytes for p in self.points})
        rates = dict.fromkeys(sizes, 0.0)
        for p in self.points:
            if p.pattern in STREAMS:
                rates[p.working_set_bytes] = max(rates[p.working_set_bytes], p.bytes_per_s)
        return sizes, [rates[size] for size in sizes]

    def best(self, pattern: Pattern, low: float, high: float) -> Point | None:
        """The fastest point of a pattern with a working set from `low` to `high` bytes per core.

        Its spread is that of its samples, or the distance to the next fastest point where that is less: two numbers
        from different times that agree are no accident.
        """
        inside = [p for p in self.of(pattern) if low <= p.working_set_bytes <= high]
        inside.sort(key=lambda p: -p.bytes_per_s)
        if len(inside) < 2:
            return inside[0] if inside else None
        first, second = inside[:2]
        return replace(first, spread=min(first.spread, 1 - second.bytes_per_s / first.bytes_per_s))

    def merged(self, other: Sweep) -> Sweep:
        """Both, of points of the same pattern and working set the faster, or that of two equal ones that is calmer."""
        found: dict[tuple[Pattern, int], Point] = {}
        for p in (*self.points, *other.points):
            key = (p.pattern, p.working_set_bytes)
            found[key] = max(found.get(key, p), p, key=lambda p: (p.bytes_per_s, -p.spread))
        return Sweep(self.cores, tuple(found.values()))


@dataclass(frozen=True)
class Beside:
    """What a cache delivers while lines come through it from level `far`: `measured_per_s` bytes/s of its own.

    bytes_per_s: the same, but no less than it delivers alone, since one after the other always goes.
    """

    far: str
    bytes_per_s: float
    measured_per_s: float


@dataclass(frozen=True)
class Bandwidth:
    """A level's bandwidth, and how it counts.

    bytes_per_s: the fastest of load, copy, triad and, on a duplex level, an update in place.
    beside: what it delivers beside farther levels, None where that is as much as alone.
    working_set_bytes, spread: of the point that `fastest` was measured at, per core.
    """

    bytes_per_s: float
    fastest: str
    slowest: str
    counts: Counts
    by_pattern: tuple[tuple[str, float], ...]
    beside: Beside | None = None
    working_set_bytes: int = 0
    spread: float = 0.0


def bandwidth(points: Sequence[Point], counts: Counts | None = None, with_updates: bool = False) -> Bandwidth:
    """The bandwidth that points of one level show, one for each pattern; how they count where it is given, else found.

    `with_updates` takes updates in place as streams like the others: between registers and the nearest cache an
    access is an access. Raises ValueError without a point of a stream.
    """
    if not any(p.pattern in STREAMS for p in points):
        raise ValueError("no stream was measured in this level")
    if counts is None:
        counts = counts_of(points)
    rates = {
        p.pattern.name: p.rate(counts) for p in points if p.pattern in STREAMS or with_updates or counts == "duplex"
    }
    fastest, slowest = max(rates, key=lambda n: rates[n]), min(rates, key=lambda n: rates[n])
    at = next(p for p in points if p.pattern.name == fastest)
    return Bandwidth(
        rates[fastest], fastest, slowest, counts, tuple(rates.items()), None, at.working_set_bytes, at.spread
    )


def counts_of(points: Sequence[Point]) -> Counts:
    """How the times of one level count, of points one for each pattern.

    write_allocate: a line is loaded before it is stored to, and that shows: without counting these loads, both copy
    and triad would be slower than load by more than half of what they explain (2/3 and 3/4 of its rate).

    duplex: processors whose caches take lines from below and hand others down at the same time load them too, at no
    cost that shows in copy and triad, which then load as many lines as they read and write elements. An update in
    place gives it away: it reads and writes three elements in the time of two, so that it is up to 1.5 times as fast.
    """
    rates = {p.pattern: p.bytes_per_s for p in points}
    if not rates.keys() >= {LOAD, COPY, TRIAD}:
        return "no_write_allocate"
    shares = {p: (1 + p.elements() / p.elements("write_allocate")) / 2 for p in (COPY, TRIAD)}
    if all(rates[p] / rates[LOAD] < share for p, share in shares.items()):
        return "write_allocate"
    fastest = max(rates[p] for p in STREAMS)
    return "duplex" if rates.get(UPDATE, 0.0) > (1 + 1.5) / 2 * fastest else "no_write_allocate"
