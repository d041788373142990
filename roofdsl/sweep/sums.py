"""Sums of terms (`polyhedral.terms`) at many points at once, in numpy, and exact."""

from __future__ import annotations

from math import lcm
from typing import Any

from roofdsl.polyhedral.terms import Definition, Root, Terms
from roofdsl.sweep.assumed import NotUnderstood
from roofdsl.sweep.numeric import Points, Polynomial, any_of, combined, full


class SumForm:
    """A sum of terms made ready for arrays, as `numeric.Form` is for cases.

    Raises NotUnderstood for terms that are summed over a variable, and for negative powers.
    """

    def __init__(self, terms: Terms) -> None:
        if any(term.over is not None for term in terms.terms):
            raise NotUnderstood("a sum over a variable")
        self.definitions = terms.definitions
        self.terms = [
            ([[(Polynomial(v), zero) for v, zero in each] for each in term.where], Polynomial(term.value))
            for term in terms.terms
        ]
        if any(value.down for _, value in self.terms):
            raise NotUnderstood("a negative power")
        self.scale = lcm(*(value.scale for _, value in self.terms)) if self.terms else 1

    def values(self, points: Points) -> Any:
        """The values as an array of integers, to be read only. Raises TooLarge."""
        if id(self) not in points.values:
            points.values[id(self)] = self._values(points)
        return points.values[id(self)]

    def _values(self, points: Points) -> Any:
        import numpy as np

        for definition in self.definitions:
            points = points.adding(definition.name, _defined(definition, points))
        parts = []
        for alternatives, value in self.terms:
            top = full(value.parts(points)[0], points)
            if alternatives:
                top = np.where(any_of(alternatives, points), top, 0)
            parts.append((top, self.scale // value.scale))
        total = combined(parts, points)
        return total // self.scale if points.exact else total / self.scale


def _defined(definition: Definition, points: Points) -> Any:
    """What a name stands for, an array of integers. Raises TooLarge."""
    import numpy as np

    low, high = (_whole(Polynomial(v), points) for v in (definition.low, definition.high))
    if not isinstance(definition, Root):
        return np.maximum(low - 1, np.minimum(high, _whole(Polynomial(definition.of), points)))
    sign = 1 if definition.rises else -1
    first, last = (low, high) if definition.rises else (-high, -low)  # of sign * name
    below = first - 1
    above = np.maximum(last, below) + 1
    beyond = Polynomial(definition.of - definition.limit)
    while bool((open_ := above - below > 1).any()):
        middle = (above + below) // 2
        top, _ = beyond.parts(points.adding(definition.name, sign * middle))
        within = np.asarray(top <= 0, dtype=bool)
        below = np.where(open_ & within, middle, below)
        above = np.where(open_ & ~within, middle, above)
    return sign * below


def _whole(value: Polynomial, points: Points) -> Any:
    """Rounded down, which for bounds of integers is no change."""
    top, bottom = value.parts(points)
    return full(top, points) // bottom
