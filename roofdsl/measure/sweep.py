"""Bandwidth against working set: what a sweep is, and what its patterns count as bytes.

All patterns touch arrays from one end to the other, again and again. The bytes of an element are counted in both
conventions of the language: what is read and written, and with the line of a write-only array loaded first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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

    def elements(self, write_allocate: bool) -> int:
        """Elements moved per iteration: loads and stores, and under write_allocate the loads before stores."""
        return self.read + self.written * (2 if write_allocate else 1) + 2 * self.updated


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

    bytes_per_s counts loads and stores alone (load_store); `rate` gives it in either convention.
    """

    pattern: Pattern
    working_set_bytes: int
    bytes_per_s: float
    spread: float

    def rate(self, write_allocate: bool) -> float:
        return self.bytes_per_s * self.pattern.elements(write_allocate) / self.pattern.elements(False)


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
        """The fastest point of a pattern with a working set from `low` to `high` bytes per core."""
        inside = [p for p in self.of(pattern) if low <= p.working_set_bytes <= high]
        return max(inside, key=lambda p: p.bytes_per_s, default=None)


@dataclass(frozen=True)
class Bandwidth:
    """A level's bandwidth, and by what convention it counts.

    bytes_per_s: the fastest of load, copy and triad; `slowest` of them stands beside it. write_allocate: whether the
    loads before stores are counted, which is so where copy and triad are slower than load by what these would cost.
    update_bytes_per_s: an update in place in the same convention. Where that is far above `bytes_per_s`, lines
    written back travel beside lines loaded, and loads alone limit a stream; one bandwidth cannot say that.
    """

    bytes_per_s: float
    fastest: str
    slowest_bytes_per_s: float
    slowest: str
    write_allocate: bool
    by_pattern: tuple[tuple[str, float], ...]
    update_bytes_per_s: float | None

    @property
    def duplex(self) -> bool:
        """Whether updates in place go clearly beyond the bandwidth."""
        return self.update_bytes_per_s is not None and self.update_bytes_per_s > 1.15 * self.bytes_per_s


def bandwidth(points: Sequence[Point], write_allocate: bool | None = None, with_updates: bool = False) -> Bandwidth:
    """The bandwidth that points of one level show, one for each pattern; the convention where it is given, else found.

    `with_updates` takes updates in place as streams like the others: between registers and the nearest cache an
    access is an access. Raises ValueError without a point of a stream.
    """
    streams = [p for p in points if p.pattern in STREAMS or with_updates]
    if not streams:
        raise ValueError("no stream was measured in this level")
    if write_allocate is None:
        write_allocate = loads_before_stores(streams)
    rates = {p.pattern.name: p.rate(write_allocate) for p in streams}
    fastest, slowest = max(rates, key=lambda n: rates[n]), min(rates, key=lambda n: rates[n])
    updates = [p.rate(write_allocate) for p in points if p.pattern == UPDATE]
    return Bandwidth(
        rates[fastest],
        fastest,
        rates[slowest],
        slowest,
        write_allocate,
        tuple(rates.items()),
        max(updates, default=None),
    )


def loads_before_stores(points: Sequence[Point]) -> bool:
    """Whether times show that a line is loaded before it is stored to: without counting these loads, both copy and
    triad would be slower than load by more than half of what they explain (2/3 and 3/4 of its rate).

    Processors whose caches take lines from below and hand others down at the same time load them too, but at no cost
    that a bandwidth of loads and stores together could show.
    """
    rates = {p.pattern: p.bytes_per_s for p in points}
    if not {LOAD, COPY, TRIAD} <= rates.keys():
        return False
    return all(rates[p] / rates[LOAD] < (1 + p.elements(False) / p.elements(True)) / 2 for p in (COPY, TRIAD))
