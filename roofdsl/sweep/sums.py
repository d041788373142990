"""Sums of terms (`sets.terms`) at many points at once, in numpy, and exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm
from typing import Any

from roofdsl.lang.record import Record
from roofdsl.sets.cases import Constraint
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Definition, Root, Span, Terms
from roofdsl.sweep.assumed import NotUnderstood
from roofdsl.sweep.numeric import EXACT, Points, Polynomial, TooLarge, any_of, combined, floor_divide, full

STEPS = 1 << 15
"""Values of a summation variable, over all points, that are processed at a time: arrays that fit into the processor's
cache.
"""

MOST_STEPS = 10_000_000
"""A point whose sums take more steps than this (seconds) is not evaluated."""

Tests = list[list[tuple[Polynomial, bool]]]


class _Name:
    """A definition prepared for arrays."""

    def __init__(self, of: Definition) -> None:
        self.name, self.low, self.high = of.name, Polynomial(of.low), Polynomial(of.high)
        self.sign = 0
        if not isinstance(of, Root):
            self.of = Polynomial(of.of)
            return
        self.sign = 1 if of.rises else -1
        self.of = Polynomial(of.of - of.limit)
        self.linear: tuple[Polynomial, Polynomial] | None = None
        if of.linear is not None:
            constant, slope = of.linear
            room, step = of.limit - constant, slope * self.sign
            scale = lcm(*(c.denominator for part in (room, step) for _, c in part))
            both = Polynomial(room * scale), Polynomial(step * scale)
            self.linear = both if not any(p.down for p in both) else None

    def values(self, points: Points) -> Any:
        """The value of the name, an array of integers. Raises TooLarge."""
        import numpy as np

        low, high = _whole(self.low, points), _whole(self.high, points)
        if not self.sign:
            return np.maximum(low - 1, np.minimum(high, _whole(self.of, points)))
        # A falling form rises in -name: from here on, sign * name is sought, the last place of a form that rises.
        first, last = (low, high) if self.sign > 0 else (-high, -low)
        # The form is at most 0 at `below`, or there is no such place, and above 0 at `above`, or it is past the end.
        below = first - 1
        above = np.maximum(last, below) + 1
        # A linear form needs no search where its slope, which parameters may decide, is positive.
        if self.linear is not None:
            room, step = (full(p.parts(points)[0], points) for p in self.linear)
            rising = np.asarray(step > 0, dtype=bool)
            root = np.maximum(below, np.minimum(last, floor_divide(room, np.where(rising, step, 1))))
            below = np.where(rising, root, below)
            above = np.where(rising, root + 1, above)
        while bool((open_ := above - below > 1).any()):
            middle = (above + below) // 2
            top, _ = self.of.parts(points.adding(self.name, self.sign * middle))
            within = np.asarray(top <= 0, dtype=bool)
            below = np.where(open_ & within, middle, below)
            above = np.where(open_ & ~within, middle, above)
        return self.sign * below


class _Group(Record):
    """Terms summed over one variable, or over none, with the names that only they need.

    uses: the columns that occur in any of these.
    """

    span: tuple[str, Polynomial, Polynomial] | None
    names: tuple[_Name, ...]
    terms: tuple[tuple[Tests, Polynomial], ...]
    uses: frozenset[str]

    def named(self, points: Points) -> Points:
        """The points with the values of the group's names. Raises TooLarge."""
        for name in self.names:
            points = points.adding(name.name, name.values(points))
        return points

    def total(self, points: Points) -> Any:
        """The sum at every point, for a group without a variable. Raises TooLarge."""
        import numpy as np

        parts = []
        for alternatives, value in self.terms:
            top = full(value.parts(points)[0], points)
            parts.append((np.where(any_of(alternatives, points), top, 0) if alternatives else top, 1))
        return combined(parts, points)


class SumForm:
    """A sum of terms prepared for arrays, like `numeric.Form` for cases.

    Raises NotUnderstood for a division by a summation variable or a name.
    """

    def __init__(self, terms: Terms) -> None:
        spans = tuple(dict.fromkeys(t.over for t in terms.terms))
        made = {d.name for d in terms.definitions} | {s.name for s in spans if s is not None}
        below = common_denominator([t.value for t in terms.terms])
        if below.names() & made:
            raise NotUnderstood("a quotient by a variable")
        self.below = Polynomial(below)
        inside = inner_variables(terms)
        self.groups = []
        for span in (None, *(s for s in spans if s is not None)):
            variable = frozenset() if span is None else frozenset((span.name,))
            own = [d for d in terms.definitions if inside[d.name] == variable]
            ready = [(_ready(t.where), t.value * below) for t in terms.terms if t.over == span]
            of_terms = [v for t in terms.terms if t.over == span for v in (t.value, *_values(t.where))]
            of_names = [v for d in own for v in _quasis(d)]
            self.groups.append(
                _Group(
                    None if span is None else (span.name, Polynomial(span.low), Polynomial(span.high)),
                    tuple(map(_Name, own)),
                    tuple((where, Polynomial(value)) for where, value in ready),
                    frozenset[str]().union(*(v.names() for v in (*of_terms, *of_names))),
                )
            )

    @property
    def summed(self) -> bool:
        """Whether terms are summed over a variable, so that each point takes time."""
        return len(self.groups) > 1

    def steps(self, points: Points) -> Any:
        """The number of values of variables to step through at each point. Raises TooLarge."""
        return sum((_lengths(g, points)[1] for g in self.groups if g.span is not None), start=full(0, points))

    def values(self, points: Points) -> Any:
        """The values as an array of integers, which must not be changed. Raises TooLarge."""
        if id(self) not in points.values:
            points.values[id(self)] = self._values(points)
        return points.values[id(self)]

    def _values(self, points: Points) -> Any:
        outer, *summed = self.groups
        points = outer.named(points)
        parts = [(outer.total(points), 1), *((_summed(group, points), 1) for group in summed)]
        below = full(self.below.parts(points)[0], points)
        total = combined(parts, points)
        return total // below if points.exact else total / below


def _summed(group: _Group, points: Points) -> Any:
    """The terms of a group added over their variable, at every point. Raises TooLarge."""
    import numpy as np

    assert group.span is not None
    total, reach = full(0, points), full(0, points)
    for owner, at in _steps(*_lengths(group, points)):
        inner = points.only(owner, len(at), group.uses).adding(group.span[0], at)
        found = group.total(group.named(inner))
        begins = np.flatnonzero(np.diff(owner, prepend=-1))
        total[owner[begins]] += np.add.reduceat(found, begins)
        if not points.exact:
            reach[owner[begins]] += np.add.reduceat(abs(found), begins)
            if reach.max() >= EXACT:
                raise TooLarge
    return total


def _lengths(group: _Group, points: Points) -> tuple[Any, Any]:
    """(the first value of the variable, its number of values) at every point. Raises TooLarge."""
    import numpy as np

    assert group.span is not None
    _, low, high = group.span
    first = _whole(low, points)
    return first, np.maximum(_whole(high, points) - first + 1, 0)


def _steps(first: Any, lengths: Any) -> Iterator[tuple[Any, Any]]:
    """(numbers of points, ascending, with a value of the variable for each), STEPS at a time."""
    import numpy as np

    ends = np.cumsum(lengths.astype(np.int64))
    count = int(ends[-1]) if len(ends) else 0
    for start in range(0, count, STEPS):
        place = np.arange(start, min(start + STEPS, count))
        owner = np.searchsorted(ends, place, side="right")
        before = (ends - lengths.astype(np.int64))[owner]
        yield owner, first[owner] + (place - before)


def _whole(value: Polynomial, points: Points) -> Any:
    """The values rounded down. Lower bounds are integers; for integers below an upper bound, rounding makes no
    difference.
    """
    top, bottom = value.parts(points)
    return full(top, points) // bottom


def _ready(alternatives: Sequence[Sequence[Constraint]]) -> Tests:
    return [[(Polynomial(v), zero) for v, zero in each] for each in alternatives]


def _values(alternatives: Sequence[Sequence[Constraint]]) -> list[Quasi]:
    return [v for each in alternatives for v, _ in each]


def _quasis(d: Definition) -> list[Quasi]:
    return [d.of, d.low, d.high, *([d.limit] if isinstance(d, Root) else [])]


def common_denominator(values: Sequence[Quasi]) -> Quasi:
    """The factor that gives all `values` integer coefficients and no negative powers."""
    ready = [Polynomial(v) for v in values]
    powers: dict[Any, int] = {}
    for value in ready:
        for atom, e in value.down:
            powers[atom] = max(powers.get(atom, 0), e)
    found = Quasi.constant(lcm(*(v.scale for v in ready)))
    for atom, e in powers.items():
        found = found * Quasi.symbol(atom, e)
    return found


def inner_variables(terms: Terms) -> Mapping[str, frozenset[str]]:
    """The summation variables that each definition depends on, directly or indirectly."""
    spans: set[Span] = {t.over for t in terms.terms if t.over is not None}
    known = {s.name: frozenset((s.name,)) for s in spans}
    for d in terms.definitions:
        names = frozenset[str]().union(*(v.names() for v in _quasis(d))) - {d.name}
        known[d.name] = frozenset[str]().union(*(known.get(n, frozenset()) for n in names))
    return known
