"""Which of several functions of a positive integer is the largest, and at which integers that changes. The answer is
exact for all of them.

The functions are sums of closed forms (polynomials with floors, case by case). With n = L m + r, for every remainder r
of a common period L, the floors disappear. The integers m then fall into intervals on which every function is one
polynomial, and the signs of differences are those of integer polynomials (roofdsl.sets.roots).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm

from roofdsl.lang.record import Record
from roofdsl.sets.cases import Cases
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.roots import positive_intervals

MAX_PERIOD = 720
"""The longest common period of floors for which every remainder is examined."""

Summands = Sequence[tuple[Quasi, Cases]]
"""A sum of products, each of a polynomial and a closed form, in one symbol."""


class NotExact(Exception):
    """The functions have a form that this module cannot solve; the message says which."""


class Interval(Record):
    """The integers from `first` to `last` (None: no end), and the names of the largest functions there.

    There are several names if floors make the largest one depend on the remainder.
    """

    first: int
    last: int | None
    names: tuple[str, ...]


def largest(terms: Mapping[str, Summands], symbol: str) -> tuple[Interval, ...]:
    """The positive integers as intervals, each with its largest term; of equal terms, the first in order counts.

    Raises NotExact for another symbol, for a quotient, and for floors without a short common period.
    """
    forms = [f for summands in terms.values() for pair in summands for f in _parts(pair)]
    for form in forms:
        if form.names() - {symbol}:
            raise NotExact(f"it depends on {', '.join(sorted(form.names() - {symbol}))} too")
    period = lcm(*(_period(f) for f in forms))
    if period > MAX_PERIOD:
        raise NotExact(f"its floors repeat only every {period} values of {symbol}")
    rows: list[tuple[int, int | None, int, str]] = []  # first, last, remainder, name
    for remainder in range(period):
        start = 0 if remainder else 1
        at = Quasi.symbol(symbol) * period + remainder
        replaced = {name: [_replaced(pair, symbol, at) for pair in pairs] for name, pairs in terms.items()}
        for first, last, name in _by_polynomial(replaced, symbol, start):
            rows.append(
                (period * first + remainder, None if last is None else period * last + remainder, remainder, name)
            )
    return _merged(rows, period)


def _parts(pair: tuple[Quasi, Cases]) -> Iterable[Quasi]:
    factor, cases = pair
    yield factor
    for case in cases.cases:
        yield case.value
        for alternative in case.alternatives:
            yield from (value for value, _ in alternative)


def _period(form: Quasi) -> int:
    """A number such that all floors are polynomials in m for n = period m + r. Raises NotExact."""
    found = 1
    for monomial, _ in form:
        for atom, exponent in monomial:
            if exponent < 0:
                raise NotExact("it has a quotient of parameters")
            if not isinstance(atom, str):
                found = lcm(found, _period(atom.of) * lcm(*(c.denominator for _, c in atom.of)))
    return found


def _replaced(pair: tuple[Quasi, Cases], symbol: str, at: Quasi) -> tuple[Quasi, list[_Case]]:
    factor, cases = pair
    replacement = {symbol: at}

    def polynomial(value: Quasi) -> Quasi:
        value = value.substitute(replacement)
        if any(not isinstance(a, str) for a in value.atoms()):
            raise NotExact("a floor of a product remains")
        return value

    rows = [
        _Case(
            tuple(tuple((polynomial(v), zero) for v, zero in alternative) for alternative in case.alternatives),
            polynomial(case.value),
        )
        for case in cases.cases
    ]
    return polynomial(factor), rows


class _Case(Record):
    alternatives: tuple[tuple[tuple[Quasi, bool], ...], ...]
    value: Quasi

    def holds(self, env: Mapping[str, int]) -> bool:
        return not self.alternatives or any(
            all((v.evaluate(env) == 0) if zero else (v.evaluate(env) >= 0) for v, zero in alternative)
            for alternative in self.alternatives
        )


def _by_polynomial(
    terms: Mapping[str, list[tuple[Quasi, list[_Case]]]], symbol: str, start: int
) -> list[tuple[int, int | None, str]]:
    """(first, last, name of the largest) over the integers from `start`, where no floors are left."""
    every_row = [row for pairs in terms.values() for _, rows in pairs for row in rows]
    conditions = {value for row in every_row for alternative in row.alternatives for value, _ in alternative}
    found: list[tuple[int, int | None, str]] = []
    # Where no condition changes its sign, each term is one polynomial. Where no difference of two of these does, one of
    # them is the largest throughout. So it is enough to look at the first integer of each interval.
    for first, last in _between(_cuts(conditions, start), start):
        sums = {name: _polynomial_at(pairs, {symbol: first}) for name, pairs in terms.items()}
        names = list(sums)
        differences = {sums[a] - sums[b] for i, a in enumerate(names) for b in names[i + 1 :]}
        cuts = [c for c in _cuts(differences, first) if last is None or c <= last]
        for low, high in _between(cuts, first):
            values = {name: total.evaluate({symbol: low}) for name, total in sums.items()}
            best = max(values.values())
            end = last if high is None else high
            found.append((low, end, next(name for name in names if values[name] == best)))
    return found


def _polynomial_at(pairs: list[tuple[Quasi, list[_Case]]], env: Mapping[str, int]) -> Quasi:
    """The polynomial that a sum is at this integer, and wherever the same cases hold; no case: 0."""
    total = Quasi.constant(0)
    for factor, rows in pairs:
        row = next((row for row in rows if row.holds(env)), None)
        if row is not None:
            total = total + factor * row.value
    return total


def _cuts(values: Iterable[Quasi], start: int) -> list[int]:
    """The integers above `start` at which the sign (negative, zero, positive) of one of the polynomials changes."""
    cuts: set[int] = set()
    for value in values:
        for signed in (value, -value):
            for first, last in positive_intervals(_coefficients(signed), start):
                cuts.add(first)
                if last is not None:
                    cuts.add(last + 1)
    return sorted(c for c in cuts if c > start)


def _between(cuts: Sequence[int], start: int) -> list[tuple[int, int | None]]:
    begins = [start, *cuts]
    return [(a, b - 1) for a, b in pairwise(begins)] + [(begins[-1], None)]


def _coefficients(value: Quasi) -> list[int]:
    """Integer coefficients, constant first, of a positive multiple of a polynomial in one symbol."""
    scale = lcm(*(c.denominator for _, c in value)) if value else 1
    found: dict[int, Fraction] = {}
    for monomial, c in value:
        found[monomial[0][1] if monomial else 0] = c * scale
    return [int(found.get(k, 0)) for k in range(max(found, default=0) + 1)]


def _merged(rows: Sequence[tuple[int, int | None, int, str]], period: int) -> tuple[Interval, ...]:
    """One row of intervals over all integers from the rows of every remainder."""
    begins = sorted({first for first, _, _, _ in rows} | {1})
    found: list[Interval] = []
    for k, first in enumerate(begins):
        last = begins[k + 1] - 1 if k + 1 < len(begins) else None
        names: dict[str, None] = {}
        for a, b, remainder, name in rows:
            # the first integer of this remainder that is not before `first`
            at = first + (remainder - first) % period
            if a <= at and (b is None or at <= b) and (last is None or at <= last):
                names[name] = None
        if not names:
            continue
        if found and found[-1].names == tuple(names):
            found[-1] = Interval(found[-1].first, last, found[-1].names)
        else:
            found.append(Interval(first, last, tuple(names)))
    return tuple(found)
