"""Operators of the language: how tightly they bind, and where parentheses are needed."""

from __future__ import annotations

from roofdsl.lang import tree

LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 4}


def grouped(e: tree.Expr, level: int) -> tree.Expr:
    """The expression, in parentheses if it binds less tightly than `level`."""
    return e if level_of(e) >= level else tree.Group(e, e.span)


def binary(op: str, left: tree.Expr, right: tree.Expr, span: tree.Span) -> tree.Expr:
    """`left op right`, with the parentheses that it needs."""
    level = LEVELS[op]
    if op == "**":  # its base is a name, an element, a call or in parentheses
        return tree.Binary(op, grouped(left, 5), right, span)
    return tree.Binary(op, grouped(left, level), grouped(right, level + 1), span)


def level_of(e: tree.Expr) -> int:
    match e:
        case tree.Binary(op):
            return LEVELS[op]
        case tree.Unary():
            return 3
        case _:
            return 9
