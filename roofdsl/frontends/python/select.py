"""Choices on data as `select`s."""

from __future__ import annotations

from roofdsl.frontends.python.context import Context
from roofdsl.lang import tree
from roofdsl.lang.source import Span


def chosen(context: Context, condition: tree.Expr, a: tree.Expr, b: tree.Expr, span: Span) -> tree.Expr:
    """`select(condition, a, b)`; for a condition of several parts, nested `select`s."""
    match condition:
        case tree.Group(inner):
            return chosen(context, inner, a, b, span)
        case tree.Unary("not", inner):
            return chosen(context, inner, b, a, span)
        case tree.Logic("and", left, right):
            b = _twice(context, b, span)
            return chosen(context, left, chosen(context, right, a, b, span), b, span)
        case tree.Logic(_, left, right):
            a = _twice(context, a, span)
            return chosen(context, left, a, chosen(context, right, a, b, span), span)
        case _:
            return tree.Call(tree.Name("select", span), (condition, a, b), span)


def _twice(context: Context, e: tree.Expr, span: Span) -> tree.Expr:
    """The value in a form that can be used twice: a name for it, unless evaluating it costs nothing."""
    if isinstance(e, tree.Number | tree.Ref | tree.Index):
        return e
    name = context.inner_name("c")
    context.emit(tree.Let(tree.Name(name, span), e, span))
    return tree.Ref(name, span)
