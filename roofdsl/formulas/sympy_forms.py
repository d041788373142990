"""Closed forms as sympy expressions in positive integer symbols."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy

from roofdsl.formulas.quotients import Alternatives, Quotient, RatioCase
from roofdsl.sets.cases import Cases
from roofdsl.sets.quasi import Quasi


@cache
def parameter(name: str) -> Any:
    """The symbol of a parameter: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)


def polynomial(value: Quasi) -> Any:
    """A quasi-polynomial as a sympy expression."""
    terms = []
    for monomial, c in value:
        factors = [sympy.Rational(c.numerator, c.denominator)]
        for atom, power in monomial:
            base = parameter(atom) if isinstance(atom, str) else sympy.floor(polynomial(atom.of))
            factors.append(base**power)
        terms.append(sympy.Mul(*factors))
    return sympy.Add(*terms)


def fraction(value: Quotient) -> Any:
    """A quotient as a sympy expression."""
    return polynomial(value.top) / polynomial(value.bottom)


def condition(alternatives: Alternatives) -> Any:
    """A disjunction of conjunctions of constraints as a sympy boolean; without alternatives, which stand for "always",
    it would be false.
    """
    return sympy.Or(*(sympy.And(*(_relation(v, zero) for v, zero in each)) for each in alternatives))


def _relation(value: Quasi, zero: bool) -> Any:
    """value == 0, or value >= 0 with the terms on the side where they are positive."""
    left = Quasi.of({m: c for m, c in value if c > 0 and m})
    right = -Quasi.of({m: c for m, c in value if c < 0 and m})
    constant = value.constant_value()
    if not right:
        a, b = left, Quasi.constant(-constant)
    elif not left:
        a, b = Quasi.constant(constant), right
    else:
        a, b = left + (constant if constant > 0 else 0), right - (constant if constant < 0 else 0)
    return (sympy.Eq if zero else sympy.Ge)(polynomial(a), polynomial(b))


def expression(form: Cases) -> Any:
    """A closed form as a sympy expression; a Piecewise if it has conditions."""
    single = form.single
    if single is not None:
        return polynomial(single)
    branches = [(polynomial(c.value), condition(c.alternatives) if c.alternatives else True) for c in form.cases]
    return sympy.Piecewise(*branches, (0, True))


def ratio(rows: list[RatioCase]) -> Any:
    """The cases of a ratio (`quotients.ratio_cases`) as one sympy expression, nan if none holds."""
    if len(rows) == 1 and not rows[0].where:
        return fraction(rows[0].value)
    branches = [(fraction(row.value), condition(row.where) if row.where else True) for row in rows]
    return sympy.Piecewise(*branches, (sympy.nan, True))
