"""Bandwidth against working set: the data of a sweep (`bandwidth_sweep` makes it), and which bytes its patterns count.

All patterns stream through arrays from one end to the other, again and again. `Counts` says which bytes of an iteration
take time: what is read and written; the same plus the lines of a write-only array, which are loaded first; or, if both
directions run at the same time, the larger of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Counts = Literal["no_write_allocate", "write_allocate", "duplex"]
"""How a level counts, in the terms of a machine file. A duplex level also loads what it stores."""


@dataclass(frozen=True)
class Pattern:
    """A streaming loop. `read`, `written` and `updated` are the numbers of arrays that are only read, only written, or
    both.
    """

    name: str
    read: int
    written: int
    updated: int = 0

    @property
    def arrays(self) -> int:
        return self.read + self.written + self.updated

    def elements(self, counts: Counts = "no_write_allocate", allocated: float = 1.0) -> float:
        """The elements that take time per iteration; on a duplex level the loads, which are never fewer than the
        stores. allocated: the share of the written lines that are loaded first, if the level counts these.
        """
        loads = self.read + self.updated + (0 if counts == "no_write_allocate" else allocated * self.written)
        return loads if counts == "duplex" else loads + self.written + self.updated


LOAD = Pattern("load", 1, 0)
COPY = Pattern("copy", 1, 1)
TRIAD = Pattern("triad", 2, 1)
UPDATE = Pattern("update", 1, 0, 1)
PATTERNS = (LOAD, COPY, TRIAD, UPDATE)
STREAMS = (LOAD, COPY, TRIAD)
"""The patterns that always count for a level's bandwidth; for the others, see `Bandwidth`."""

LOADS = Pattern("load of four arrays", 4, 0)
UPDATES = Pattern("update of three arrays", 0, 0, 3)
MANY = (LOADS, UPDATES)
"""Patterns of many streams, for the memory: a core fetches only a few lines of each stream ahead, so that several
streams together may get more from it than one.
"""


@dataclass(frozen=True)
class Point:
    """One pattern at one working set: bytes per core, and the total rate at which elements' bytes move (median).

    bytes_per_s counts what is read and written; `rate` converts it to what a level counts.
    """

    pattern: Pattern
    working_set_bytes: int
    bytes_per_s: float
    spread: float

    def rate(self, counts: Counts, allocated: float = 1.0) -> float:
        return self.bytes_per_s * self.pattern.elements(counts, allocated) / self.pattern.elements()


@dataclass(frozen=True)
class Sweep:
    """Points of several patterns; `cores` cores ran at once, each on a working set of its own."""

    cores: int
    points: tuple[Point, ...]

    def of(self, pattern: Pattern) -> tuple[Point, ...]:
        """One pattern's points, by ascending working set."""
        return tuple(sorted((p for p in self.points if p.pattern == pattern), key=lambda p: p.working_set_bytes))

    def fastest(self) -> tuple[list[int], list[float]]:
        """(working sets, bytes per second of the fastest stream at each): the curve from which levels are read off.

        Three numbers measured at different times are rarely all disturbed enough to hide a step.
        """
        sizes = sorted({p.working_set_bytes for p in self.points})
        rates = dict.fromkeys(sizes, 0.0)
        for p in self.points:
            if p.pattern in STREAMS:
                rates[p.working_set_bytes] = max(rates[p.working_set_bytes], p.bytes_per_s)
        return sizes, [rates[size] for size in sizes]

    def best(self, pattern: Pattern, low: float, high: float) -> Point | None:
        """The fastest point of a pattern with a working set from `low` to `high` bytes per core.

        Its spread is that of its samples, or the distance to the next fastest point if that is less: two numbers from
        different times hardly agree by coincidence.
        """
        inside = [p for p in self.of(pattern) if low <= p.working_set_bytes <= high]
        inside.sort(key=lambda p: -p.bytes_per_s)
        if len(inside) < 2:
            return inside[0] if inside else None
        first, second = inside[:2]
        return replace(first, spread=min(first.spread, 1 - second.bytes_per_s / first.bytes_per_s))

    def merged(self, other: Sweep) -> Sweep:
        """Both sweeps combined: of two points with the same pattern and working set, the faster one, or if equal the
        one with less spread.
        """
        found: dict[tuple[Pattern, int], Point] = {}
        for p in (*self.points, *other.points):
            key = (p.pattern, p.working_set_bytes)
            found[key] = max(found.get(key, p), p, key=lambda p: (p.bytes_per_s, -p.spread))
        return Sweep(self.cores, tuple(found.values()))


@dataclass(frozen=True)
class Beside:
    """The rate of a cache while lines from level `far` pass through it: `measured_per_s` bytes/s of its own data.

    bytes_per_s: the same, but at least its rate alone, because serving both streams in turn is always possible.
    """

    far: str
    bytes_per_s: float
    measured_per_s: float


@dataclass(frozen=True)
class Bandwidth:
    """A level's bandwidth, and how it counts.

    bytes_per_s: the fastest of load, copy, triad and, on a CPU or a duplex level, all other patterns (an update in
    place, several arrays). beside: its rate while lines from farther levels pass through, None if that is as high as
    alone; `beside_far`: the same for levels behind the next one, if it was measured separately. allocated: the share of
    the written lines that are loaded first, if it is clearly neither none nor all of them; `counts` then counts such
    loads. update_per_s: the rate of an update in place, counted the same way; None if there is none. one_stream_per_s:
    the rate of a load of one array if more streams are clearly faster; `streams`: the number of streams of the fastest
    pattern, a load and a store of an array being one each. working_set_bytes, spread: of the point at which `fastest`
    was measured, per core.
    """

    bytes_per_s: float
    fastest: str
    slowest: str
    counts: Counts
    by_pattern: tuple[tuple[str, float], ...]
    beside: Beside | None = None
    beside_far: Beside | None = None
    allocated: float | None = None
    update_per_s: float | None = None
    one_stream_per_s: float | None = None
    streams: int | None = None
    working_set_bytes: int = 0
    spread: float = 0.0


def bandwidth(
    points: Sequence[Point], counts: Counts | None = None, with_updates: bool = False, allocated: float | None = None
) -> Bandwidth:
    """The bandwidth that the points of one level show, one point per pattern. Bytes are counted as given, or else as
    `counts_of` and `allocated_share` find.

    `with_updates`: the other patterns, such as an update in place, count like the streams, and may be the fastest of
    all. Raises ValueError without a point of a stream.
    """
    if not any(p.pattern in STREAMS for p in points):
        raise ValueError("no stream was measured in this level")
    if counts is None:
        counts, allocated = counts_of(points), allocated_share(points)
        if allocated is not None and counts == "no_write_allocate":
            counts = "write_allocate"
    share = 1.0 if allocated is None else allocated
    rates = {
        p.pattern.name: p.rate(counts, share)
        for p in points
        if p.pattern in STREAMS or with_updates or counts == "duplex"
    }
    fastest, slowest = max(rates, key=lambda n: rates[n]), min(rates, key=lambda n: rates[n])
    at = next(p for p in points if p.pattern.name == fastest)
    updates = [p.rate(counts, share) for p in points if p.pattern in (UPDATE, UPDATES)]
    # One stream may not have enough lines under way to reach the bandwidth of a level.
    one = rates.get(LOAD.name, rates[fastest])
    several = one < FEWER * rates[fastest]
    return Bandwidth(
        rates[fastest], fastest, slowest, counts, tuple(rates.items()),
        allocated=allocated,
        update_per_s=max(updates, default=None),
        one_stream_per_s=one if several else None,
        streams=round(at.pattern.elements("write_allocate")) if several else None,
        working_set_bytes=at.working_set_bytes,
        spread=at.spread,
    )  # fmt: skip


FEWER = 0.95
"""One stream counts as slower than many if it has less than this share of their bandwidth."""


NO_SLOWER = 0.9
"""Stores at this share of a level's bandwidth, or faster, count as being as fast as loads."""


def stores_per_s(width: Bandwidth) -> float | None:
    """The rate of stores if an update in place shows that they are slower than the level's bandwidth, or, without an
    update, copy and triad do; else None.

    The loads of an iteration take their bytes over the bandwidth, and its store takes the rest. On a duplex level
    stores take no time beside the loads.
    """
    if width.counts == "duplex":
        return None
    each = _stores_s(width)
    return 1 / each if each > 1 / (NO_SLOWER * width.bytes_per_s) else None


def _stores_s(width: Bandwidth) -> float:
    """Seconds per byte stored, derived in the same way."""
    if width.update_per_s is not None:
        return UPDATE.elements(width.counts) / width.update_per_s - 2 / width.bytes_per_s
    rest = []
    for pattern, rate in _stored(width):
        counted = pattern.elements(width.counts, 1.0 if width.allocated is None else width.allocated)
        rest.append(counted / rate - (counted - pattern.written) / width.bytes_per_s)
    return sum(rest) / len(rest) if rest else 0.0


def _stored(width: Bandwidth) -> list[tuple[Pattern, float]]:
    """Copy and triad with their rates."""
    rates = dict(width.by_pattern)
    return [(pattern, rates[pattern.name]) for pattern in (COPY, TRIAD) if pattern.name in rates]


def written_per_s(width: Bandwidth) -> float | None:
    """The highest rate of stored lines, even if little else is loaded; None if the transfers alone explain a copy.

    A line that is stored to comes in, is changed and goes out again. On some processors, that takes as long in a copy
    as in an update in place, which loads another line: such loads overlap with it. So an iteration takes the longer of
    two times: that of its transfers, and, for its stored line, the shorter of the copy's and the triad's times.
    """
    if width.counts == "duplex" or width.update_per_s is None:
        return None
    allocated = 1.0 if width.allocated is None else width.allocated
    each = {pattern: pattern.elements(width.counts, allocated) / rate for pattern, rate in _stored(width)}
    loaded = COPY.elements(width.counts, allocated) - COPY.written
    stores_s = max(_stores_s(width), 1 / width.bytes_per_s)
    if len(each) < 2 or each[COPY] <= (loaded / width.bytes_per_s + stores_s) / NO_SLOWER:
        return None
    return 1 / min(each.values())


SAME = 0.1
"""The times of copy and update in place count as equal if they differ by at most this part: both load two lines and
store one.
"""

SEEN = 0.03
"""Stored lines have rates of their own if a copy or triad exceeds the time of its transfers by more than this share."""


def written_rates(width: Bandwidth) -> tuple[float | None, float | None]:
    """(rate of stored lines, rate at which loaded lines add to their time); the second is None if the first alone
    holds, as `written_per_s` finds it; both are None if the transfers alone explain the streams.

    A copy and an update in place take equally long if a line whose first access is a store is loaded first: each
    loads two lines and stores one. A triad loads one more, so its extra time is that of a loaded line beside a stored
    one. It is less than that of a line in a stream of loads, since loads overlap with stores in part. The rest of a
    copy's time is that of its stored line.
    """
    before = written_per_s(width)
    times = {p: p.elements(width.counts) / rate for p, rate in _stored(width)}
    if len(times) < 2 or width.update_per_s is None or width.allocated is not None:
        return before, None
    updated = UPDATE.elements(width.counts) / width.update_per_s
    if abs(times[COPY] - updated) > SAME * updated:
        return before, None
    loaded = max(times[TRIAD] - times[COPY], 0.0)
    stored = (times[COPY] + updated) / 2 - 2 * min(loaded, LOAD.elements() / width.bytes_per_s)
    seen = any(t > (1 + SEEN) * p.elements(width.counts) / width.bytes_per_s for p, t in times.items())
    if not seen or stored <= 0 or loaded <= 0:
        return before, None
    return 1 / stored, 1 / loaded


LEAST_PART, ALIKE = 0.2, 0.2
"""A share of loaded lines that is closer than LEAST_PART to none or all counts as none or all. Two estimates of a share
may differ by ALIKE. Rates of patterns are known to several percent, and a share is the difference of two times that are
three loads long.
"""


def allocated_share(points: Sequence[Point]) -> float | None:
    """The share of the written lines that are loaded before they are stored to.

    None if it is none or all of them, or if the patterns do not agree on it. A triad and an update in place load two
    arrays and store one, and differ only in this: the update has loaded its line. So an iteration of the triad takes
    longer by that share of a load. A copy takes longer than its load and the update's store (the update without two
    loads) by the same share. On a duplex level this holds too, since stores take no time beside the loads.
    """
    times = {p.pattern: p.pattern.elements() / p.bytes_per_s for p in points if p.bytes_per_s}
    if not times.keys() >= {LOAD, COPY, TRIAD, UPDATE}:
        return None
    one = 1 / _loads_per_s(points)
    by_triad = (times[TRIAD] - times[UPDATE]) / one
    by_copy = (times[COPY] - times[UPDATE]) / one + 1
    share = (by_triad + by_copy) / 2
    return share if abs(by_triad - by_copy) <= ALIKE and LEAST_PART < share < 1 - LEAST_PART else None


def counts_of(points: Sequence[Point]) -> Counts:
    """How one level counts, found from the times of its points, one per pattern.

    write_allocate: a line is loaded before it is stored to, and the times show it: without counting these loads, both
    copy and triad would be slower than load by more than half of what they explain (2/3 and 3/4 of its rate).

    duplex: processors whose caches receive lines from below and write others back at the same time also load the
    written lines, but copy and triad show no cost for it: the lines that they load are as many as those that
    they read and write. An update in place reveals it: it reads and writes three elements in the time of two, so it is
    up to 1.5 times as fast.
    """
    rates = {p.pattern: p.bytes_per_s for p in points}
    if not rates.keys() >= {LOAD, COPY, TRIAD}:
        return "no_write_allocate"
    shares = {p: (1 + p.elements() / p.elements("write_allocate")) / 2 for p in (COPY, TRIAD)}
    loads = _loads_per_s(points)
    if all(rates[p] / loads < share for p, share in shares.items()):
        return "write_allocate"
    fastest = max(rates[p] for p in STREAMS)
    return "duplex" if rates.get(UPDATE, 0.0) > (1 + 1.5) / 2 * fastest else "no_write_allocate"


def _loads_per_s(points: Sequence[Point]) -> float:
    """Bytes per second of loads alone, of one array or of several at once, whichever are faster."""
    return max(p.bytes_per_s for p in points if p.pattern in (LOAD, LOADS))
