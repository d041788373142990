"""Assumptions of closed forms (`n >= 8`, `n*m - 32704 > 0`, rows aligned), evaluated at many points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roofdsl.counts.integers_at_many_points import value_of
from roofdsl.sets.facts import Compared, Fact, RowsAligned
from roofdsl.sweep.numeric import Points, Polynomial


class NotUnderstood(Exception):
    """A fact or form that cannot be evaluated for arrays of numbers; results that rest on it are not used."""


class Assumed:
    """Facts about sizes, ready for arrays. Raises NotUnderstood for anything but comparisons and aligned rows."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.compared: list[tuple[Polynomial, str]] = []
        self.rows: list[tuple[Any, int]] = []
        for fact in dict.fromkeys(facts):
            match fact:
                case Compared(left, relation, right):
                    self.compared.append((Polynomial(left - right), relation))
                case RowsAligned(rows) if rows:
                    self.rows += [(row.length, row.per_line) for row in rows]
                case _:
                    raise NotUnderstood(fact)

    def mask(self, points: Points, columns: Mapping[str, Any]) -> Any:
        """Where all facts hold: an array, or True if they hold everywhere. Raises TooLarge.

        columns: the same points as arrays of int64 or Python integers, or numbers.
        """
        found: Any = True
        for value, relation in self.compared:
            top, _ = value.parts(points)
            found = found & _related(top, relation)
        for length, unit in self.rows:
            if unit > 1:
                found = found & _related(_remainder(value_of(length, columns), unit), "=")
        return found


def _related(top: Any, relation: str) -> Any:
    """Where `top` has this relation to 0."""
    import numpy as np

    found = {">=": np.greater_equal, ">": np.greater, "<": np.less, "=": np.equal}[relation](top, 0)
    return np.asarray(found, dtype=bool)


def _remainder(length: Any, unit: int) -> Any:
    """length % unit; the unit is mostly a power of two, and a mask is faster than a division."""
    return length & (unit - 1) if unit & (unit - 1) == 0 else length % unit
