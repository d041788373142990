"""Numbers that are the same in float and in double, so that it does not matter where C rounds them."""

from __future__ import annotations

import struct

from roofdsl.lang import tree


def is_float(number: float) -> bool:
    """Whether a number is the same in float and in double."""
    return abs(number) < 1e38 and struct.unpack("f", struct.pack("f", number))[0] == number


def is_exact(e: tree.Expr | None) -> bool:
    """Whether an expression of numbers and loop variables has the same value in float and in double, as long as its
    integers stay below 2**24.
    """
    match e:
        case tree.Number(_, value):
            return is_float(float(value))
        case tree.Group(inner) | tree.Unary(_, inner):
            return is_exact(inner)
        case tree.Binary("+" | "-" | "*", left, right):
            return is_exact(left) and is_exact(right) and not _has_fraction(left) and not _has_fraction(right)
        case _:
            return isinstance(e, tree.Ref)


def _has_fraction(e: tree.Expr) -> bool:
    match e:
        case tree.Number(_, value):
            return not float(value).is_integer()
        case tree.Group(inner) | tree.Unary(_, inner):
            return _has_fraction(inner)
        case tree.Binary(_, left, right):
            return _has_fraction(left) or _has_fraction(right)
        case _:
            return False
