"""What the words beside a closed form ("n >= 8", "n*m - 32704 > 0", "rows aligned") mean at many points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from roofdsl.counts.vectorized import value_of
from roofdsl.loops.integers import Const, mul
from roofdsl.loops.model import Kernel
from roofdsl.sets.quasi import Quasi, floor
from roofdsl.sweep.numeric import Points, Polynomial

ALIGNED = "rows aligned"
_TOKEN = re.compile(r"\s*(\*\*|[-+*/()]|\d+|[A-Za-z_][A-Za-z_0-9]*)")


class NotUnderstood(Exception):
    """An assumption in other words than these; what rests on it is not used."""


class Assumed:
    """The conditions of `texts`, for the arrays named in `rows_aligned` in lines of `line_bytes`.

    Raises NotUnderstood.
    """

    def __init__(
        self, texts: Iterable[str], kernel: Kernel, rows_aligned: Sequence[str] = (), line_bytes: int | None = None
    ) -> None:
        self.constraints: list[tuple[Polynomial, str]] = []
        self.rows = []
        for text in dict.fromkeys(texts):
            if text == ALIGNED:
                self.rows = [_row(kernel, name, line_bytes or 1) for name in rows_aligned]
            else:
                self.constraints.append(_constraint(text))

    def mask(self, points: Points, columns: Mapping[str, Any]) -> Any:
        """Where all of them hold: an array, or True where that is everywhere. Raises TooLarge.

        columns: the same points as arrays of int64 or Python integers, or numbers.
        """
        found: Any = True
        for value, relation in self.constraints:
            top, _ = value.parts(points)
            found = found & _compared(top, relation)
        for length, unit in self.rows:
            if unit > 1:
                found = found & _compared(_remainder(value_of(length, columns), unit), "=")
        return found


def _compared(top: Any, relation: str) -> Any:
    import numpy as np

    found = top >= 0 if relation == ">=" else top > 0 if relation == ">" else top == 0
    return np.asarray(found, dtype=bool)


def _remainder(length: Any, unit: int) -> Any:
    """length % unit; lines hold a power of two of elements, mostly, and a mask is quicker than a division."""
    return length & (unit - 1) if unit & (unit - 1) == 0 else length % unit


def _row(kernel: Kernel, name: str, line_bytes: int) -> tuple[Any, int]:
    """(length of the array's rows, the multiple that it has to be so that each begins on a line), in elements.

    Innermost extents that are numbers, and no whole lines, are one row with the next, as in `stream`.
    """
    array = next(a for a in kernel.arrays if a.name == name)
    unit = line_bytes // array.type.bytes
    extents = list(array.dims) if array.column_major else list(reversed(array.dims))
    length = extents[0]
    for following in extents[1:-1]:
        if not isinstance(length, Const) or length.value % unit == 0:
            break
        length = mul(following, length)
    return length, unit


def _constraint(text: str) -> tuple[Polynomial, str]:
    """`left RELATION right` as left - right and the relation to 0."""
    for relation in (">=", ">", "="):
        left, sign, right = text.partition(f" {relation} ")
        if sign:
            return Polynomial(parse_polynomial(left) - parse_polynomial(right)), relation
    raise NotUnderstood(text)


def parse_polynomial(text: str) -> Quasi:
    """A quasi-polynomial as `str` writes it. Raises NotUnderstood."""
    tokens = _tokens(text)
    value = _sum(tokens)
    if tokens:
        raise NotUnderstood(text)
    return value


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstood(text)
        found.append(match.group(1))
        place = match.end()
    return found[::-1]  # taken from the end


def _sum(tokens: list[str]) -> Quasi:
    sign = -1 if tokens and tokens[-1] == "-" else 1
    if sign < 0:
        tokens.pop()
    total = _product(tokens) * sign
    while tokens and tokens[-1] in "+-":
        sign = 1 if tokens.pop() == "+" else -1
        total = total + _product(tokens) * sign
    return total


def _product(tokens: list[str]) -> Quasi:
    total = _power(tokens)
    while tokens and tokens[-1] in ("*", "/"):
        if tokens.pop() == "*":
            total = total * _power(tokens)
        else:
            divisor = _power(tokens)
            if not divisor:
                raise NotUnderstood("a division by 0")
            total = total * divisor**-1
    return total


def _power(tokens: list[str]) -> Quasi:
    base = _atom(tokens)
    if tokens and tokens[-1] == "**":
        tokens.pop()
        sign = -1 if tokens and tokens[-1] == "-" else 1
        if sign < 0:
            tokens.pop()
        if not tokens or not tokens[-1].isdigit():
            raise NotUnderstood("a power that is no number")
        return base ** (sign * int(tokens.pop()))
    return base


def _atom(tokens: list[str]) -> Quasi:
    token = tokens.pop() if tokens else ""
    if token.isdigit():
        return Quasi.constant(Fraction(int(token)))
    if token in ("floor", "("):
        if token == "floor" and (not tokens or tokens.pop() != "("):
            raise NotUnderstood("floor without a bracket")
        inside = _sum(tokens)
        if not tokens or tokens.pop() != ")":
            raise NotUnderstood("a bracket that is not closed")
        return floor(inside) if token == "floor" else inside
    if token.isidentifier():
        return Quasi.symbol(token)
    raise NotUnderstood(token)
