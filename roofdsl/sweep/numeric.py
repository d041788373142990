"""Quasi-polynomials and closed forms at many points at once: in numpy, and exact.

Integers are float64 arrays while every intermediate is an integer below 2**53, so that nothing is ever rounded. Bounds
on the magnitudes, from the largest parameters or summands, say whether this is so. If it may not be, `TooLarge` is
raised, and the same code runs on arrays of Python integers (`exact=True`), which have no bound.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import lcm
from typing import Any

from roofdsl.sets.cases import Cases
from roofdsl.sets.quasi import Atom, Floor, Quasi

EXACT = 2.0**53
"""Integers below this have an exact float64."""


class TooLarge(Exception):
    """An intermediate integer may reach 2**53."""


class Points:
    """Parameters at many points, as arrays of one length; `exact` makes them Python integers.

    columns: name -> numpy array of integers, or a number that all points share.
    """

    def __init__(self, columns: Mapping[str, Any], count: int, *, exact: bool = False) -> None:
        import numpy as np

        self.count, self.exact = count, exact
        self.columns: dict[str, Any] = {}
        self.largest: dict[Atom, float] = {}
        for name, column in columns.items():
            if isinstance(column, int):
                self.columns[name] = column if exact else float(column)
                self.largest[name] = float(abs(column))
            else:
                self.columns[name] = _python_integers(column) if exact else np.asarray(column, dtype=np.float64)
                self.largest[name] = float(max(column.max(), -column.min())) if count else 1.0
            if not exact and self.largest[name] >= EXACT:
                raise TooLarge
        self._powers: dict[tuple[Atom, int], Any] = {}
        self._floors: dict[Floor, Any] = {}
        self.values: dict[int, Any] = {}
        """Values of forms, by identity: the work, the time and the traffic of several levels share forms."""

    def adding(self, name: str, column: Any) -> Points:
        """The same points with one more column, of integers. Raises TooLarge."""
        found = Points({name: column}, self.count, exact=self.exact)
        found.columns = {**self.columns, **found.columns}
        found.largest = {**self.largest, **found.largest}
        if name not in self.columns:  # nothing known so far depends on it then
            found._powers, found._floors = dict(self._powers), dict(self._floors)
        return found

    def only(self, places: Any, count: int, names: Container[str] | None = None) -> Points:
        """The points at `places` (a mask or indices), `count` of them, with the columns in `names` (None: all)."""
        import numpy as np

        own = {n: c for n, c in self.columns.items() if names is None or n in names}
        return Points({n: c[places] if np.ndim(c) else int(c) for n, c in own.items()}, count, exact=self.exact)

    def power(self, atom: Atom, exponent: int) -> Any:
        """atom ** exponent for a positive exponent; computed once."""
        key = (atom, exponent)
        if key not in self._powers:
            if exponent == 1:
                self._powers[key] = self.columns[atom] if isinstance(atom, str) else self._floor(atom)
            else:
                half = self.power(atom, exponent // 2)
                square = half * half
                self._powers[key] = square * self.power(atom, 1) if exponent % 2 else square
        return self._powers[key]

    def bound(self, atom: Atom) -> float:
        """An upper bound on the magnitude of the atom."""
        if atom not in self.largest:
            assert isinstance(atom, Floor)
            terms = (abs(c) * _product(self.bound(a) ** max(e, 0) for a, e in m) for m, c in atom.of)
            self.largest[atom] = float(sum(terms)) + 1
        return self.largest[atom]

    def _floor(self, atom: Floor) -> Any:
        if atom not in self._floors:
            top, bottom = Polynomial(atom.of).parts(self)
            self._floors[atom] = floor_divide(top, bottom)
        return self._floors[atom]


def _python_integers(column: Any) -> Any:
    return column.astype(object) if column.dtype != object else column


def _product(values: Any) -> float:
    total = 1.0
    for v in values:
        total *= v
    return total


def floor_divide(top: Any, bottom: Any) -> Any:
    """Division rounded down. In float64, the quotient of two integers below 2**53 never rounds up to a whole number."""
    import numpy as np

    # A quotient between q and q + 1 is at least 1/bottom below q + 1. If 2**k <= q < 2**(k + 1), floats below q + 1 are
    # 2**(k - 52) apart. It would round up only if 1/bottom were at most half of that: then q*bottom, which is at most
    # `top`, would be at least 2**53.

    if (isinstance(top, np.ndarray) and top.dtype == object) or isinstance(top, int):
        return top // bottom
    return np.floor(top / bottom)


class Polynomial:
    """A quasi-polynomial prepared for arrays: integer coefficients over one denominator."""

    def __init__(self, value: Quasi) -> None:
        self.value = value
        scale = lcm(*(c.denominator for _, c in value)) if value else 1
        down: dict[Atom, int] = {}
        for monomial, _ in value:
            for atom, e in monomial:
                if e < 0:
                    down[atom] = max(down.get(atom, 0), -e)
        self.scale, self.down = scale, tuple(sorted(down.items(), key=lambda t: str(t[0])))
        self.terms: list[tuple[int, tuple[tuple[Atom, int], ...]]] = []
        for monomial, c in value:
            powers = dict(monomial)
            for atom, e in self.down:
                powers[atom] = powers.get(atom, 0) + e
            self.terms.append((int(c * scale), tuple((a, e) for a, e in powers.items() if e)))

    def names(self) -> frozenset[str]:
        return self.value.names()

    def parts(self, points: Points) -> tuple[Any, Any]:
        """(numerator, positive denominator), integers at every point. Raises TooLarge, KeyError."""
        if not points.exact:
            reach = sum(abs(c) * _product(points.bound(a) ** e for a, e in m) for c, m in self.terms)
            below = self.scale * _product(points.bound(a) ** e for a, e in self.down)
            if reach >= EXACT or below >= EXACT:
                raise TooLarge
        total: Any = 0
        for c, monomial in self.terms:
            part: Any = c
            for k, (atom, e) in enumerate(monomial):
                factor = points.power(atom, e)
                part = factor if k == 0 and c == 1 else part * factor
            total = total + part
        bottom: Any = self.scale
        for atom, e in self.down:
            bottom = bottom * points.power(atom, e)
        return total, bottom

    def whole(self, points: Points) -> Any:
        """The values, if they are integers; elsewhere the results are meaningless. Raises TooLarge."""
        top, bottom = self.parts(points)
        if isinstance(bottom, int) and bottom == 1:
            return top
        return top // bottom if points.exact else top / bottom


class Form:
    """A closed form prepared for arrays."""

    def __init__(self, cases: Cases) -> None:
        self.cases = [
            ([[(Polynomial(v), zero) for v, zero in each] for each in case.alternatives], Polynomial(case.value))
            for case in cases.cases
        ]

    def values(self, points: Points) -> Any:
        """The values as an array of integers (see the module), 0 if no case holds. Raises TooLarge.

        They are computed once for the same points and must not be changed.
        """
        if id(self) not in points.values:
            points.values[id(self)] = self._values(points)
        return points.values[id(self)]

    def _values(self, points: Points) -> Any:
        import numpy as np

        if len(self.cases) == 1 and not self.cases[0][0]:
            return full(self.cases[0][1].whole(points), points)
        result = full(0, points)
        left = np.ones(points.count, dtype=bool)
        for alternatives, value in self.cases:
            here = left if not alternatives else left & any_of(alternatives, points)
            if here.any():
                result = np.where(here, value.whole(points), result)
                left = left & ~here
        return result


def any_of(alternatives: Sequence[Sequence[tuple[Polynomial, bool]]], points: Points) -> Any:
    """Where one of the alternatives has all its values at least 0, or exactly 0 where it says so."""
    import numpy as np

    found = np.zeros(points.count, dtype=bool)
    for constraints in alternatives:
        here = np.ones(points.count, dtype=bool)
        for value, zero in constraints:
            top, _ = value.parts(points)
            here &= np.asarray(top == 0 if zero else top >= 0, dtype=bool)
        found |= here
    return found


def full(value: Any, points: Points) -> Any:
    """`value` as an array over the points; an array is returned as it is."""
    import numpy as np

    kind = object if points.exact else np.float64
    return np.full(points.count, value, dtype=kind) if not isinstance(value, np.ndarray) else value


def combined(parts: Sequence[tuple[Any, int]], points: Points) -> Any:
    """The sum of arrays times integers. Raises TooLarge if an intermediate may reach 2**53."""
    kept = [(a, w) for a, w in parts if w]
    if not points.exact:
        reach = sum(max(float(a.max(initial=0)), -float(a.min(initial=0))) * abs(w) for a, w in kept)
        if reach >= EXACT:
            raise TooLarge
    total: Any = None
    for array, weight in kept:
        part = array if weight == 1 else array * weight
        total = part if total is None else total + part
    return full(0, points) if total is None else total
