"""Closed forms as sympy expressions in positive integer symbols."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import sympy

from roofdsl.polyhedral.cases import Cases, Constraint
from roofdsl.polyhedral.quasi import Quasi


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


def condition(alternatives: tuple[tuple[Constraint, ...], ...]) -> Any:
    """A disjunction of conjunctions of constraints as a sympy boolean."""
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
    """A closed form as a sympy expression, a Piecewise where several cases hold."""
    single = form.single
    if single is not None:
        return polynomial(single)
    branches = [(polynomial(c.value), condition(c.alternatives) if c.alternatives else True) for c in form.cases]
    return sympy.Piecewise(*branches, (0, True))


def ratio(numerator: Cases, denominator: Cases) -> Any:
    """numerator / denominator, reduced to lowest terms where both are single polynomials."""
    top, bottom = numerator.single, denominator.single
    if top is not None and bottom is not None:
        return quotient(top, bottom)
    if top is not None:
        branches = [
            (quotient(top, c.value), condition(c.alternatives) if c.alternatives else True) for c in denominator.cases
        ]
        return sympy.Piecewise(*branches, (sympy.zoo, True))
    return expression(numerator) / expression(denominator)


def quotient(top: Quasi, bottom: Quasi) -> Any:
    """top / bottom in lowest terms; None where bottom is 0."""
    if not bottom:
        return None
    return sympy.cancel(polynomial(top) / polynomial(bottom))


def number(value: Fraction | int) -> int | float:
    """A JSON number: an integer where it is one."""
    value = Fraction(value)
    return int(value) if value.denominator == 1 else float(value)
