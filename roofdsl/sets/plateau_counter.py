"""The lines of one array that miss and are written back on each plateau of Q(Z)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import islpy as isl

from roofdsl.sets.cardinality import Counted, by_domain, cardinality, total_of
from roofdsl.sets.reuse import ArrayReuse


@dataclass(frozen=True)
class PlateauLines:
    """Lines of one array on a plateau, as isl.PwQPolynomials in the parameters; None if there are none."""

    array: str
    bytes: int
    begun: Any
    begun_by_read: Any
    stored: Any


class PlateauCounter:
    """Counts one array on every plateau; counts that several plateaus share are computed once."""

    def __init__(self, reuse: ArrayReuse) -> None:
        self.reuse = reuse
        self.reads_only = reuse.reading.is_equal(reuse.all)
        self._cards: dict[tuple[int, str], Counted] = {}
        self._chosen: dict[tuple[int, str], Any] = {}
        self._shared: dict[frozenset[int], Any] = {}
        self._stored_of: dict[int, Any] = {}
        self._last: dict[frozenset[int], Any] = {}

    def lines(self, hits: frozenset[int]) -> PlateauLines:
        """The counts if the distance pieces in `hits` (ids of their domains) hit and all others miss."""
        missing = self._missing(hits)
        begun = self._total("all", [self.reuse.cold, *missing])
        by_read = begun if self.reads_only else self._total("reading", [self.reuse.cold, *missing])
        return PlateauLines(self.reuse.name, self.reuse.bytes, begun, by_read, self._stored(missing, hits))

    def counted(self, hits: frozenset[int]) -> Iterable[Any]:
        """The isl.Sets that `lines` counts."""
        missing = self._missing(hits)
        kinds = ("all",) if self.reads_only else ("all", "reading")
        yield from (self._part(kind, domain) for kind in kinds for domain in (self.reuse.cold, *missing))
        if not self.reuse.writes.is_empty():
            yield from (self._part("lone", domain) for domain in missing)
            yield from (s for s in (self._shared_set(missing), self._last_set(missing, hits)) if s is not None)

    def _missing(self, hits: frozenset[int]) -> list[Any]:
        return [domain for domain, _ in self.reuse.distances if id(domain) not in hits]

    def _part(self, kind: str, domain: Any) -> Any:
        """The accesses of `domain` that are counted."""
        key = (id(domain), kind)
        if key not in self._chosen:
            only = {"reading": self.reuse.reading, "lone": self.reuse.lone_writes}.get(kind)
            self._chosen[key] = domain if only is None else domain.intersect(only)
        return self._chosen[key]

    def _total(self, kind: str, domains: Iterable[Any]) -> Any:
        counts: list[Counted] = []
        for domain in domains:
            key = (id(domain), kind)
            if key not in self._cards:
                chosen = self._part(kind, domain)
                self._cards[key] = () if chosen.is_empty() else by_domain(cardinality(chosen))
            counts.append(self._cards[key])
        return total_of(counts)

    def _stored(self, missing: list[Any], hits: frozenset[int]) -> Any:
        if self.reuse.writes.is_empty():
            return None
        sets = (self._shared_set(missing), self._last_set(missing, hits))
        total = self._total("lone", missing)
        for part in (cardinality(each) for each in sets if each is not None):
            total = part if total is None else total.add(part)
        return total

    def _shared_set(self, missing: list[Any]) -> Any | None:
        """The writes that share their window, with a missing access in it."""
        inside = [d for d in (self.reuse.cold, *missing) if not self._stored_by(d).is_empty()]
        key = frozenset(id(d) for d in inside)
        if key not in self._shared:
            self._shared[key] = reduce(isl.Set.union, map(self._stored_by, inside)).coalesce() if inside else None
        return self._shared[key]

    def _stored_by(self, missing: Any) -> Any:
        """The writes that share their window, with an access of `missing` in it."""
        if id(missing) not in self._stored_of:
            self._stored_of[id(missing)] = self.reuse.shared_windows.intersect_range(missing).domain().coalesce()
        return self._stored_of[id(missing)]

    @cached_property
    def _written_lines(self) -> Any:
        return self.reuse.touch.intersect_domain(self.reuse.writes).range().coalesce()

    def _last_set(self, missing: list[Any], hits: frozenset[int]) -> Any | None:
        """The written lines that are stored after their last write; None if there are none."""
        if self.reuse.end_distances is None:
            return self._written_lines
        if hits not in self._last:
            written = self._written_lines
            evicted = isl.Set.empty(written.get_space())
            for d in missing:
                evicted = evicted.union(self.reuse.after_last_write.intersect_range(d).domain())
            for lines, _ in self.reuse.end_distances:
                if id(lines) not in hits:
                    evicted = evicted.union(lines)
            evicted = evicted.intersect(written).coalesce()
            self._last[hits] = None if evicted.is_empty() else evicted
        return self._last[hits]
