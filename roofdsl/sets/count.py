"""From sets to numbers and polynomials: the cardinality of parts, at given sizes or symbolically."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.library import pieces
from roofdsl.sets.misses import CannotCount, Part

MAX_GRID = 60_000_000
"""The maximum number of points at which a curved condition is evaluated."""


def number(piecewise: Any) -> int:
    """The value of an isl.PwQPolynomial without parameters and dimensions."""
    total = sum((q.evaluate({}) for _, q in pieces(piecewise)), Fraction(0))
    if total.denominator != 1:
        raise ArithmeticError(f"a count came out as {total}")
    return int(total)


def count_number(parts: Iterable[Part], most: int = MAX_GRID) -> int:
    """The number of points of the parts, if all sizes are numbers.

    Raises TooHard, and CannotCount if a curved condition needs more than `most` points or more than 64 bits.
    """
    total = 0
    for part in parts:
        total += number(cardinality(part.flat))
        for curved in part.curved:
            if not curved.domain.is_empty():
                from roofdsl.sets.curved_points import count_positive

                total += count_positive(curved.domain, curved.excess, most)
    return total


def count_symbolic(parts: Iterable[Part]) -> Any:
    """The number of points as an isl.PwQPolynomial in the parameters; None if there are no parts.

    Raises TooHard, and CannotCount if a condition is curved.
    """
    total: Any = None
    for part in parts:
        if any(not c.domain.is_empty() for c in part.curved):
            raise CannotCount("a reuse distance is not affine in the loop variables")
        count = cardinality(part.flat)
        total = count if total is None else total.add(count)
    return total
