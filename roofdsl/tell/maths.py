"""Polynomials, quotients and names as formulas of a report."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.formulas.quotients import Quotient
from roofdsl.formulas.writing import LATEX, latex_name, neat_latex, neat_text
from roofdsl.sets.quasi import Quasi
from roofdsl.tell.blocks import Math


def math(value: Quasi | Quotient | Fraction | int) -> Math:
    """A polynomial, a quotient or a number."""
    if isinstance(value, Fraction):
        value = Quotient(Quasi.constant(value))
    if isinstance(value, int):
        return Math(str(value), str(value))
    return Math(neat_text(value), neat_latex(value))


def name(of: str) -> Math:
    """A parameter, an array, a loop variable."""
    return Math(of, latex_name(of))


def total(parts: Sequence[Math]) -> Math:
    """A sum before it is simplified."""
    if not parts:
        return math(0)
    if len(parts) > 1:
        parts = [bracketed(p) for p in parts]
    return Math(" + ".join(p.text for p in parts), " + ".join(p.latex for p in parts))


def bracketed(value: Math) -> Math:
    """`value`, in brackets if it is a sum."""
    if not _is_sum(value):
        return value
    return Math(f"({value.text})", f"\\left({value.latex}\\right)")


def _is_sum(value: Math) -> bool:
    depth = 0
    for k, character in enumerate(value.text):
        depth += (character == "(") - (character == ")")
        if not depth and character in "+-" and value.text[k - 1 : k] == " ":
            return True
    return False


def times(factor: int, value: Math) -> Math:
    """factor * value, in brackets if value is a sum."""
    if factor == 1:
        return value
    inner = bracketed(value)
    return Math(f"{factor}*{inner.text}", f"{factor} \\cdot {inner.latex}")


def ratio(top: Math, bottom: Math) -> Math:
    """top / bottom, as it is."""
    below = bottom.text if bottom.text.isalnum() else f"({bottom.text})"
    return Math(f"{bracketed(top).text}/{below}", LATEX.fraction(top.latex, bottom.latex, False, False))
