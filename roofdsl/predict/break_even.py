"""The size from which compute takes as long as a level or a link: the break-even of two terms, in closed form.

T_math >= T_comms, with polynomials T_math = seconds(p) and T_comms = bytes(p) / bandwidth, is an inequality in one
parameter. If it is linear in that parameter (without common powers), its solution is a quotient in the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import Any

from roofdsl.formulas.quotients import Quotient, quotient
from roofdsl.formulas.writing import text
from roofdsl.lang.record import Record
from roofdsl.sets.quasi import Monomial, Quasi
from roofdsl.sets.roots import Interval, positive_intervals


class BreakEven(Record):
    """Where compute takes as long as `term`, over `parameter`.

    form: the value of the parameter at which both take equally long, in the other parameters; above it, compute takes
    longer if `slope` is positive. None if the difference of the two, without common powers of the parameter, is not
    linear in it. slope: the coefficient of the parameter in this difference; if it does not depend on the parameter,
    the difference itself. limit: the limit of the form as all other parameters grow together; None if there is none, or
    if it is 0. intervals: at the given numbers, the sizes at which compute takes at least as long, from first to last
    (None: no end); None if some other parameter has no number, or if the terms are not polynomials.
    """

    term: str
    parameter: str
    form: Quotient | None
    slope: Quasi
    limit: Fraction | None
    intervals: tuple[Interval, ...] | None

    @property
    def first(self) -> int | None:
        """The least size from which compute always takes at least as long; None if there is none, or if it is
        undecided.
        """
        return self.intervals[-1][0] if self.intervals and self.intervals[-1][1] is None else None

    def to_json(self) -> dict[str, Any]:
        """The form as text, its limit as a float, and the sizes as integers."""
        return {
            "term": self.term,
            "parameter": self.parameter,
            "expr": None if self.form is None else text(self.form),
            "limit": None if self.limit is None else float(self.limit),
            "from": self.first,
            "intervals": None if self.intervals is None else [list(i) for i in self.intervals],
        }


def break_even(
    term: str,
    terms: tuple[Quasi, Quasi],
    parameter: str,
    values: Mapping[str, int] | None = None,
    *,
    within: Iterable[Quasi] = (),
) -> BreakEven:
    """Where the first of `terms`, compute, is at least the second. Both are polynomials in `parameter` and others, in
    seconds.

    values: numbers of the others. within: polynomials that are not negative at valid sizes; an interval that reaches
    the last valid size has no end, and one that contains the first begins at 1.
    """
    given = {n: Quasi.constant(v) for n, v in (values or {}).items() if n != parameter}
    excess = _reduced(terms[0] - terms[1], parameter)
    powers = _powers(excess, parameter)
    form = limit = None
    slope = powers.get(1, Quasi.constant(0))
    if powers.keys() <= {0, 1} and 1 in powers and 0 in powers:
        form = quotient(-powers[0], powers[1])
        limit = _limit(-powers[0], powers[1])
    elif not powers.keys() - {0}:
        slope = powers.get(0, Quasi.constant(0))
    sizes = _intervals(excess.substitute(given), parameter)
    if sizes is not None:
        sizes = _counting(sizes, [_intervals(q.substitute(given), parameter) for q in within])
    return BreakEven(term, parameter, form, slope, limit, sizes)


def _powers(value: Quasi, parameter: str) -> dict[int, Quasi]:
    """The coefficients of the powers of `parameter`; -1 stands for any power of a floor that contains it."""
    found: dict[int, dict[Monomial, Fraction]] = {}
    for monomial, c in value:
        power = dict(monomial).get(parameter, 0)
        rest = tuple((a, e) for a, e in monomial if a != parameter)
        if any(not isinstance(a, str) and parameter in a.of.names() for a, _ in rest):
            power = -1
        found.setdefault(power, {})[rest] = c
    return {power: Quasi.of(terms) for power, terms in found.items()}


def _reduced(value: Quasi, parameter: str) -> Quasi:
    """The polynomial without the power that all terms share, since the parameter is positive."""
    least = min((dict(m).get(parameter, 0) for m, _ in value), default=0)
    return value * Quasi.symbol(parameter, -least) if least else value


def _limit(top: Quasi, bottom: Quasi) -> Fraction | None:
    """The limit of top / bottom as all parameters grow in proportion; None if it depends on the proportion, is 0, or
    does not exist.
    """
    highest = [_highest(part) for part in (top, bottom)]
    if highest[0].degree(highest[0].names()) != highest[1].degree(highest[1].names()):
        return None
    found = quotient(*highest)
    return None if found is None else found.constant()


def _highest(value: Quasi) -> Quasi:
    degree = max(sum(e for _, e in m) for m, _ in value)
    return Quasi.of({m: c for m, c in value if sum(e for _, e in m) == degree})


def _intervals(excess: Quasi, parameter: str) -> tuple[Interval, ...] | None:
    """The sizes at which excess >= 0; None if it contains other names or floors."""
    powers = _powers(excess, parameter)
    if excess.names() - {parameter} or -1 in powers:
        return None
    exact = {k: q.constant_value() for k, q in powers.items()}
    scale = lcm(*(c.denominator for c in exact.values()))
    coefficients = [int(exact.get(k, 0) * scale) for k in range(max(exact, default=0) + 1)]
    coefficients[0] += 1  # for integers, p >= 0 is p + 1 > 0
    return tuple(positive_intervals(coefficients, 1))


def _counting(sizes: tuple[Interval, ...], limits: Iterable[tuple[Interval, ...] | None]) -> tuple[Interval, ...]:
    """The part of `sizes` that every one of `limits` allows; only limits of exactly one interval count."""
    low, high = 1, None
    for limit in limits:
        if limit is not None and len(limit) == 1:
            low = max(low, limit[0][0])
            high = min((h for h in (high, limit[0][1]) if h is not None), default=None)
    found: list[Interval] = []
    for first, last in sizes:
        if (last is None or last >= low) and (high is None or first <= high):
            # No size outside the limits is valid, so an interval has an end only where a valid size follows. "From 1"
            # and "from the least valid size" say the same.
            ends = last is not None and (high is None or last < high)
            found.append((1 if first <= low else first, last if ends else None))
    return tuple(found)
