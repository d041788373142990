"""Quasi-polynomials as text that the integer-set library reads."""

from __future__ import annotations

from math import lcm

from roofdsl.sets.quasi import Quasi


def affine_text(value: Quasi) -> str | None:
    """isl text of a quasi-polynomial, whose coefficients outside floors must be integers; None if it is not affine."""
    parts = []
    for monomial, c in value:
        if not monomial:
            parts.append(str(c))
            continue
        if len(monomial) > 1 or monomial[0][1] != 1:
            return None
        atom = monomial[0][0]
        if isinstance(atom, str):
            parts.append(f"{c}*{atom}")
            continue
        denominator = lcm(*(k.denominator for _, k in atom.of))
        inner = affine_text(atom.of * denominator)
        if inner is None:
            return None
        parts.append(f"{c}*floor(({inner})/{denominator})")
    return " + ".join(parts) or "0"


def sign_text(value: Quasi) -> str | None:
    """As `affine_text`, of a positive multiple of `value` that has integer coefficients."""
    return affine_text(value * lcm(*(c.denominator for _, c in value)))
