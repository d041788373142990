"""Quotients of polynomials in several variables in lowest terms, by sympy's greatest common divisor."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy

from roofdsl.sets.quasi import Atom, Quasi


def cancelled(top: Quasi, bottom: Quasi) -> tuple[Quasi, Quasi]:
    """Numerator and denominator of top / bottom in lowest terms, with floors as symbols; both are polynomials."""
    atoms = sorted(top.atoms() | bottom.atoms(), key=str)
    symbols = [sympy.Symbol(f"x{k}") for k in range(len(atoms))]
    which: dict[Atom, int] = {atom: k for k, atom in enumerate(atoms)}

    def poly(value: Quasi) -> Any:
        powers = {}
        for monomial, c in value:
            exponents = [0] * len(atoms)
            for atom, power in monomial:
                exponents[which[atom]] = power
            powers[tuple(exponents)] = sympy.Rational(c.numerator, c.denominator)
        return sympy.Poly(powers, *symbols, domain=sympy.QQ)

    def quasi(value: Any) -> Quasi:
        return Quasi.of(
            {
                tuple((atoms[k], e) for k, e in enumerate(exponents) if e): Fraction(int(c.p), int(c.q))
                for exponents, c in value.terms()
            }
        )

    above, below = poly(top), poly(bottom)
    divisor = above.gcd(below)
    return quasi(above.quo(divisor)), quasi(below.quo(divisor))
