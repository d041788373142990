"""Stack distances as the result of an analysis: how many visits to a line come at each distance from the last one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from roofdsl.counts.lines.tied import Tied
from roofdsl.lang.record import Record

READ, WRITTEN, STORED, DROPPED = range(4)
"""Visits that begin with a read, with a write; visits that write, by the largest distance since the last that did; and
written lines of temp arrays when the execution ends, by the largest distance since the last visit that wrote."""

Steps = tuple[tuple[int, int], ...]
Spread = tuple[int, Steps]


class Distances(Record):
    """Visits of the lines of one array: of each kind those that are the first, and the others by their distance.

    cold[kind]; rest[kind]: (distance in bytes, its steps) -> weight: `weight` visits each at this distance and those
    beyond it by steps, each (step, count) taken 0 to count - 1 times.
    """

    name: str
    line_bytes: int
    temp: bool
    cold: tuple[int, ...]
    rest: tuple[dict[Spread, int], ...]
    tied: tuple[Tied, ...] = ()

    def beyond(self, kind: int, cache_bytes: int | None) -> int:
        """Visits of a kind that find more than `cache_bytes` touched since the last one; None: the first ones alone.

        Of STORED those that lead to a store: what a temp array still has in the cache at the end is dropped.
        """
        if self.temp and kind == STORED:
            if cache_bytes is None:
                return 0
            # lines that were never written are the first visits of this kind
            ended = sum(w * prod(n for _, n in steps) for (_, steps), w in self.rest[DROPPED].items())
            ended += self.cold[DROPPED]
            ended += sum(each.points for each in self.tied if each.kind == DROPPED)
            return self._beyond(STORED, cache_bytes) - (ended - self._beyond(DROPPED, cache_bytes))
        return self._beyond(kind, cache_bytes)

    def _beyond(self, kind: int, cache_bytes: int | None) -> int:
        if cache_bytes is None:
            return self.cold[kind]
        found = self.cold[kind] + sum(each.beyond(cache_bytes) for each in self.tied if each.kind == kind)
        return found + sum(
            weight * _above(first, steps, cache_bytes) for (first, steps), weight in self.rest[kind].items()
        )


class Between(Record):
    """Visits of one array and kind at distances from `low` to `high`, where numbers are symbols, and how many.

    beyond: finds how many exceed a limit, for sizes that are large enough; None where nothing does.
    """

    array: int
    kind: int
    low: Any
    high: Any
    count: Any
    beyond: Callable[[int], Any] | None = None


class Histogram(Record):
    """Stack distances of one execution. least_bytes: of smaller caches nothing is known.

    between: visits that are not among those of the arrays. There are some only where numbers are symbols: of the
    largest of two distances, one is larger here, the other there; or distances are not the same all over a part.
    """

    arrays: tuple[Distances, ...]
    least_bytes: int
    between: tuple[Between, ...] = ()


def _above(first: int, steps: Steps, limit: int) -> int:
    """How many of the distances exceed `limit`."""
    if not steps:
        return first > limit
    (step, count), *others = steps
    if others:
        return sum(_above(first + step * k, tuple(others), limit) for k in range(count))
    if step > 0:
        return count - max(0, min(count, (limit - first) // step + 1))
    return max(0, min(count, -((first - limit) // step)))
