"""Records of the bound's terms that are bytes over a bandwidth: those of memory levels, and of links between devices.

`expected_level_times` has the expected times of levels, and how they combine.

`level_traffic` makes the records of caches and memories, `exchanges` those of links between devices. `time_model` has
the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.predict.time_model import larger_direction, level_seconds, link_seconds


class LevelTime(Record):
    """The bytes that one level exchanges with the nearer one, and their time at its bandwidth.

    kind: "cache", "memory", or "link" for a further memory that is reached over links. nearer: the nearer level.
    loads_bytes, stores_bytes: the two directions, if the convention distinguishes them.
    moved_bytes: bytes moved at a time, None for single elements.
    duplex_bytes: on a duplex level, which moves both directions at the same time, the larger of the two, which
    determines the time (for several launches, summed launch by launch).
    allocated_bytes: what ordinary stores load before they write, not included in `bytes`, if the machine states a share
    (`write_allocate 0.25`). Stores that bypass the cache avoid these loads, so only the expected time counts them
    (`with_allocated`).
    begun_bytes: the bytes of the lines that a store is the first to access, if the machine states how stored and loaded
    lines share its bandwidth (`written_loads`).
    streamed_bytes: the part of the memory's stores that bypasses the caches; streamed_bytes_per_s: their bandwidth, if
    the machine states one. Such stores may be faster than loads: the bound takes the faster of the two bandwidths for
    them.
    summed_s: the time if it does not follow from the bytes. That is so over links, which carry loads and stores at the
    same time, and for several launches if the sum of their times differs from the time of their summed bytes, as on a
    duplex level where the convention of one launch does not distinguish loads and stores.
    """

    name: str
    bytes: int
    bandwidth_bytes_per_s: Fraction
    kind: str = "memory"
    nearer: str = ""
    loads_bytes: int | None = None
    stores_bytes: int | None = None
    moved_bytes: int | None = None
    duplex_bytes: int | None = None
    allocated_bytes: int = 0
    begun_bytes: int = 0
    streamed_bytes: int = 0
    streamed_bytes_per_s: Fraction | None = None
    summed_s: Fraction | None = None

    def at_bandwidth(self, bandwidth_bytes_per_s: Fraction) -> LevelTime:
        """The level at another bandwidth; stores that bypass the caches change by the same factor."""
        past, summed_s = self.streamed_bytes_per_s, self.summed_s
        faster = bandwidth_bytes_per_s / self.bandwidth_bytes_per_s
        return replace(
            self,
            bandwidth_bytes_per_s=bandwidth_bytes_per_s,
            streamed_bytes_per_s=None if past is None else past * faster,
            summed_s=None if summed_s is None else summed_s / faster,
        )

    def with_allocated(self) -> LevelTime:
        """The level including the lines that ordinary stores load first."""
        if not self.allocated_bytes or self.loads_bytes is None:
            return self
        loads = self.loads_bytes + self.allocated_bytes
        duplex = None if self.duplex_bytes is None else max(loads, self.duplex_bytes)
        total = self.bytes + self.allocated_bytes
        found = replace(self, bytes=total, loads_bytes=loads, duplex_bytes=duplex, allocated_bytes=0, summed_s=None)
        if self.summed_s is None:
            return found
        more_s = 0 if duplex is not None else self.allocated_bytes / self.bandwidth_bytes_per_s
        return replace(found, summed_s=max(self.summed_s + more_s, found.time_s))

    @property
    def timed_bytes(self) -> int:
        """The bytes that determine the time."""
        return self.bytes if self.duplex_bytes is None else self.duplex_bytes

    @property
    def through_bytes(self) -> int:
        """The `timed_bytes` that pass through the nearer level."""
        if self.duplex_bytes is None:
            return self.bytes - self.streamed_bytes
        if not self.streamed_bytes:
            return self.duplex_bytes  # of several launches, this is more than the larger sum
        return max(self.loads_bytes or 0, (self.stores_bytes or 0) - self.streamed_bytes)

    @property
    def time_s(self) -> Fraction:
        if self.summed_s is not None:
            return self.summed_s
        if self.streamed_bytes:
            return self._streamed_s()
        of = level_seconds(self.name, self.bandwidth_bytes_per_s, duplex=False)
        return of.at({f"{self.name} bytes": self.timed_bytes})

    def _streamed_s(self) -> Fraction:
        rate = self.bandwidth_bytes_per_s
        past_s = self.streamed_bytes / max(rate, self.streamed_bytes_per_s or rate)
        if self.duplex_bytes is None:
            return (self.bytes - self.streamed_bytes) / rate + past_s
        others = (self.stores_bytes or 0) - self.streamed_bytes
        return max((self.loads_bytes or 0) / rate, others / rate + past_s)

    @property
    def rate_bytes_per_s(self) -> Fraction:
        """Loads and stores together over their time: the bandwidth, up to twice that on a duplex level."""
        if self.streamed_bytes or self.summed_s:
            return self.bytes / self.time_s
        if not self.duplex_bytes:
            return self.bandwidth_bytes_per_s
        return self.bandwidth_bytes_per_s * self.bytes / self.duplex_bytes

    def share(self, of_it: Fraction) -> LevelTime:
        """A part of the level's bytes, each number rounded up."""

        def part(number: int | None) -> int | None:
            return None if number is None else ceil(number * of_it)

        names = ("loads_bytes", "stores_bytes", "duplex_bytes", "allocated_bytes", "begun_bytes", "streamed_bytes")
        parts = {name: part(getattr(self, name)) for name in names}
        loads, stores = parts["loads_bytes"], parts["stores_bytes"]
        total = part(self.bytes) if loads is None or stores is None else loads + stores
        return replace(self, bytes=total, **parts, summed_s=None if self.summed_s is None else self.summed_s * of_it)

    def intensity(self, work: int) -> Fraction | None:
        """W over this level's bytes, in operations per byte; None if either is 0."""
        return Fraction(work, self.bytes) if work and self.bytes else None

    def __add__(self, other: LevelTime) -> LevelTime:
        both, time_s = self.bytes_of_both(other), self.time_s + other.time_s
        return both if both.time_s == time_s else replace(both, summed_s=time_s)

    def bytes_of_both(self, other: LevelTime) -> LevelTime:
        """The bytes of both levels together, at this one's bandwidth."""
        return replace(
            self,
            bytes=self.bytes + other.bytes,
            loads_bytes=_both(self.loads_bytes, other.loads_bytes),
            stores_bytes=_both(self.stores_bytes, other.stores_bytes),
            duplex_bytes=_both(self.duplex_bytes, other.duplex_bytes),
            allocated_bytes=self.allocated_bytes + other.allocated_bytes,
            begun_bytes=self.begun_bytes + other.begun_bytes,
            streamed_bytes=self.streamed_bytes + other.streamed_bytes,
            streamed_bytes_per_s=self.streamed_bytes_per_s or other.streamed_bytes_per_s,  # one of them may have none
            summed_s=None,
        )

    def beyond(self, other: LevelTime) -> LevelTime:
        """What this level moves in addition to `other`, which is the same level in the first part of the same accesses.
        On a duplex level, the larger direction is that of the additional bytes.
        """
        loads, stores = _less(self.loads_bytes, other.loads_bytes), _less(self.stores_bytes, other.stores_bytes)
        summed = self.summed_s is not None or other.summed_s is not None
        return replace(
            self,
            bytes=self.bytes - other.bytes,
            loads_bytes=loads,
            stores_bytes=stores,
            duplex_bytes=larger_direction(self.duplex_bytes is not None, loads, stores),
            allocated_bytes=self.allocated_bytes - other.allocated_bytes,
            begun_bytes=self.begun_bytes - other.begun_bytes,
            streamed_bytes=self.streamed_bytes - other.streamed_bytes,
            summed_s=self.time_s - other.time_s if summed else None,
        )

    def __mul__(self, times: int) -> LevelTime:
        return replace(
            self,
            bytes=self.bytes * times,
            loads_bytes=_times(self.loads_bytes, times),
            stores_bytes=_times(self.stores_bytes, times),
            duplex_bytes=_times(self.duplex_bytes, times),
            allocated_bytes=self.allocated_bytes * times,
            begun_bytes=self.begun_bytes * times,
            streamed_bytes=self.streamed_bytes * times,
            summed_s=None if self.summed_s is None else self.summed_s * times,
        )

    def divided(self, parts: int) -> LevelTime:
        """One of `parts` equal parts, in whole bytes."""
        return replace(
            self,
            bytes=round(Fraction(self.bytes, parts)),
            loads_bytes=_part(self.loads_bytes, parts),
            stores_bytes=_part(self.stores_bytes, parts),
            duplex_bytes=_part(self.duplex_bytes, parts),
            allocated_bytes=round(Fraction(self.allocated_bytes, parts)),
            begun_bytes=round(Fraction(self.begun_bytes, parts)),
            streamed_bytes=round(Fraction(self.streamed_bytes, parts)),
            summed_s=None if self.summed_s is None else self.summed_s / parts,
        )


def _part(a: int | None, parts: int) -> int | None:
    return None if a is None else round(Fraction(a, parts))


def _times(a: int | None, times: int) -> int | None:
    return None if a is None else a * times


def _less(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a - b


def _both(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


class LinkTime(Record):
    """The traffic of collectives over a machine's link to others like it: bytes one way over the busiest link, and
    time.

    bytes: exact; a fraction if the number of devices does not divide the array. collectives: their number. latency_s:
    of all their steps.
    """

    name: str
    bytes: Fraction
    bandwidth_bytes_per_s: Fraction
    collectives: int = 1
    latency_s: Fraction = Fraction(0)

    @property
    def time_s(self) -> Fraction:
        return link_seconds(self.bandwidth_bytes_per_s).at({"bytes": self.bytes, "latency": self.latency_s})

    def __add__(self, other: LinkTime) -> LinkTime:
        return replace(
            self,
            bytes=self.bytes + other.bytes,
            collectives=self.collectives + other.collectives,
            latency_s=self.latency_s + other.latency_s,
        )

    def __mul__(self, times: int) -> LinkTime:
        return replace(
            self,
            bytes=self.bytes * times,
            collectives=self.collectives * times,
            latency_s=self.latency_s * times,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain numbers in bytes, bytes per second, seconds."""
        return {
            "name": self.name,
            "collectives": self.collectives,
            "bytes": float(self.bytes),
            "bandwidth_bytes_per_s": float(self.bandwidth_bytes_per_s),
            "latency_s": float(self.latency_s),
            "time_s": float(self.time_s),
        }


def joined_links(links: Sequence[LinkTime]) -> tuple[LinkTime, ...]:
    """The times of the same link added together."""
    found: dict[tuple[str, Fraction], LinkTime] = {}
    for link in links:
        key = (link.name, link.bandwidth_bytes_per_s)
        before = found.get(key)
        found[key] = link if before is None else before + link
    return tuple(found.values())
