"""Stack distances as the result of an analysis: the number of visits to a line at each distance from the previous
visit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from roofdsl.counts.lines.tied import Tied
from roofdsl.lang.record import Record, replace

KINDS = READ, WRITTEN, STORED, DROPPED = range(4)
"""Visits that begin with a read, with a write; visits that write, by the largest distance since the last that did; and
written lines of temp arrays when the execution ends, by the largest distance since the last visit that wrote."""

Steps = tuple[tuple[int, int], ...]
Spread = tuple[int, Steps]


class Distances(Record):
    """The visits to the lines of one array, by kind: first visits, and the others by their distance.

    cold[kind]: first visits. rest[kind]: (distance in bytes, its steps) -> weight. There are `weight` visits at this
    distance, and at each distance that the steps add to it; a step (step, count) is taken 0 to count - 1 times. tied:
    visits whose distances are linear in coordinates that depend on each other.
    """

    name: str
    line_bytes: int
    temp: bool
    cold: tuple[int, ...]
    rest: tuple[dict[Spread, int], ...]
    tied: tuple[Tied, ...] = ()

    def beyond(self, kind: int, cache_bytes: int | None) -> int:
        """The visits of a kind with more than `cache_bytes` touched since the previous one; None: only the first
        visits.

        For STORED, the visits that lead to a store: lines of a temp array that are still in the cache at the end are
        dropped.
        """
        if self.temp and kind == STORED:
            if cache_bytes is None:
                return 0
            # lines that were never written count as first visits of this kind
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
    """A number of visits of one array and kind at distances from `low` to `high`, for symbolic sizes.

    beyond: finds how many exceed a limit, for large enough sizes; None if no method does.
    """

    array: int
    kind: int
    low: Any
    high: Any
    count: Any
    beyond: Callable[[int], Any] | None = None


class Histogram(Record):
    """The stack distances of one execution. least_bytes: nothing is known about smaller caches.

    between: visits that are not counted in those of the arrays. They occur only for symbolic sizes, if the larger of
    two distances differs from place to place, or if distances vary within a part.
    """

    arrays: tuple[Distances, ...]
    least_bytes: int
    between: tuple[Between, ...] = ()


def of_whole_arrays(found: Histogram) -> Histogram:
    """The histogram with all parts of an array (the `Distances` with its name) added up."""
    parts: dict[str, list[Distances]] = {}
    for each in found.arrays:
        parts.setdefault(each.name, []).append(each)
    if len(parts) == len(found.arrays):
        return found
    number = {name: k for k, name in enumerate(parts)}
    between = tuple(replace(b, array=number[found.arrays[b.array].name]) for b in found.between)
    return Histogram(tuple(map(_added, parts.values())), found.least_bytes, between)


def _added(parts: list[Distances]) -> Distances:
    cold = [sum(each.cold[kind] for each in parts) for kind in KINDS]
    rest: tuple[dict[Spread, int], ...] = tuple({} for _ in KINDS)
    for each in parts:
        for into, of_kind in zip(rest, each.rest, strict=True):
            for key, weight in of_kind.items():
                into[key] = into.get(key, 0) + weight
    return replace(parts[0], cold=tuple(cold), rest=rest, tied=tuple(t for each in parts for t in each.tied))


def _above(first: int, steps: Steps, limit: int) -> int:
    """The number of distances that exceed `limit`."""
    if not steps:
        return first > limit
    (step, count), *others = steps
    if others:
        return sum(_above(first + step * k, tuple(others), limit) for k in range(count))
    if step > 0:
        return count - max(0, min(count, (limit - first) // step + 1))
    return max(0, min(count, -((first - limit) // step)))
