"""Conditions on sizes and loop variables: whether they are decided, and how they are joined and turned around."""

from __future__ import annotations

from typing import Any

from roofdsl.frontends.python.values import Constant, Items, Known, Whole
from roofdsl.lang import tree
from roofdsl.lang.source import Span


def decided(found: Any) -> bool | None:
    """The value of a condition, if it is known."""
    match found:
        case Constant(value):
            return bool(value)
        case Known(_, value):
            return value
        case Whole(poly) if poly.value is not None:
            return bool(poly.value)
        case Items(values):
            return bool(values)
        case _:
            return None


def joined(op: str, a: Known, b: Known, span: Span) -> Known:
    """`and` or `or` of two conditions on sizes and loop variables."""

    def inside(e: tree.Expr) -> tree.Expr:
        return tree.Group(e, e.span) if isinstance(e, tree.Logic) and e.op != op else e

    right = tree.Group(b.written, span) if isinstance(b.written, tree.Logic) else b.written
    written = tree.Logic(op, inside(a.written), right, span)
    both = op == "and"
    return Known(written, None, (*a.holds, *b.holds) if both else (), () if both else (*a.fails, *b.fails))


def inverted(e: tree.Expr, span: Span) -> tree.Expr:
    """The opposite of a condition."""
    turned = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
    if isinstance(e, tree.Compare) and len(e.rest) == 1:
        ((op, right),) = e.rest
        return tree.Compare(e.first, ((turned[op], right),), span)
    return tree.Unary("not", tree.Group(e, span), span)
