"""A plateau during the search: of one residue class, to leading order."""

from __future__ import annotations

from collections.abc import Iterable

from roofdsl.lang.record import Record, replace
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi

Hits = frozenset[int] | None
"""The pieces of reuse distances whose accesses hit on a plateau; None: all, in a cache without bound."""


class Row(Record):
    """A plateau of one class, to leading order. until: where it ends, if that is before the next one begins.

    lower_until: where the lower-order terms of `hits` stop holding, if that is before the plateau ends. blurred: they
    change all along the plateau.
    """

    start: Quasi
    leading: Quasi
    hits: Hits
    until: Quasi | None = None
    lower_until: Quasi | None = None
    blurred: bool = False

    @property
    def told(self) -> object:
        """The properties that plateaus reported together have in common."""
        return self.start, self.leading, self.until, self.hits is None


def union(hits: Iterable[Hits]) -> Hits:
    """All pieces of any of the rows; None if one of them has all pieces."""
    found = frozenset[int]()
    for each in hits:
        if each is None:
            return None
        found |= each
    return found


def with_consistent_end(row: Row, order: Growth) -> Row:
    """`row`, without the end of its lower-order terms if that is not before the end of the plateau."""
    if row.lower_until is None or row.until is None:
        return row
    over = order.key(row.lower_until) >= order.key(row.until)
    return replace(row, lower_until=None) if over else row
