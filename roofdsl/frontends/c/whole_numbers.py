"""Arithmetic of integers that are known: `/` and `%` as C rounds them."""

from __future__ import annotations

from typing import Any

from roofdsl.frontends.assumptions import at_least
from roofdsl.frontends.c.conditions import differences
from roofdsl.frontends.c.context import Context, Known
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.format_text import expression
from roofdsl.lang.source import Span

_MOST_TIMES = 4
_NOWHERE = Span(1, 1, 1, 1)


def divided(context: Context, op: str, a: Poly, b: Poly, node: Any) -> Poly:
    """`a / b` or `a % b`. Raises Refused if the language would round differently, and Split if the statement has to be
    written for each of two results.
    """
    by = b.value
    if by is None:
        return _by_size(context, op, a, b, node)
    if by <= 0:
        if op == "/" and by < 0 and a.value is not None:
            return Poly.number(-(abs(a.value) // -by) if a.value > 0 else abs(a.value) // -by)
        raise Refused("c-integer", f"`{op}` of integers is read only with a positive divisor", node)
    if a.value is not None:
        whole = abs(a.value) // by * (1 if a.value >= 0 else -1)
        return Poly.number(whole if op == "/" else a.value - whole * by)
    exact = all(c % by == 0 for c in a.terms.values())
    if not exact and not a.is_affine_in(r.var for r in context.facts.ranges):
        message = f"`{op}` of a product of loop variables is not read"
        raise Refused("c-index", message, node, "use an array with two dimensions")
    if not exact and not context.facts.not_negative(a):
        raise _perhaps_negative(op, node, "divide only what cannot be negative")
    return quotient("//" if op == "/" else "%", a, by)


def _by_size(context: Context, op: str, a: Poly, b: Poly, node: Any) -> Poly:
    """`(i + 1) % n`: where k * n <= a < (k + 2) * n, it is a - k * n or a - (k + 1) * n, and `/` is k or k + 1."""
    facts = context.facts
    if not facts.not_negative(b - 1):
        raise Refused("c-integer", f"nothing shows that the divisor of this `{op}` is positive", node)
    if not facts.not_negative(a):
        raise _perhaps_negative(op, node, "add the divisor first, as in `(i + n - 1) % n` for `(i - 1) % n`")
    times = max(k for k in range(_MOST_TIMES) if facts.not_negative(a - b * k))
    rest = a - b * times
    variables = {r.var for r in facts.ranges}
    if not facts.not_negative(b * 2 - 1 - rest) or a.entries or not (rest - b).is_affine_in(variables):
        message = f"nothing shows how often this `{op}` subtracts `{context.in_c(b)}`"
        raise Refused("c-integer", message, node, _condition_for(context, rest, b))
    if not facts.not_negative(b - 1 - rest):
        holds, fails = differences("<", rest - b)
        own = Poly({m: c for m, c in rest.terms.items() if Poly({m: c}).names & variables})  # `i < n - 1`
        span = context.spans(node)
        written = tree.Compare(own.tree(span), (("<", (own - rest + b).tree(span)),), span)
        times += not context.chosen(node, Known(written, None, holds, fails))
    return Poly.number(times) if op == "/" else a - b * times


def _perhaps_negative(op: str, node: Any, help: str) -> Refused:
    message = f"`{op}` rounds towards zero, and nothing shows that this is not negative"
    return Refused("c-integer", message, node, help)


def _condition_for(context: Context, rest: Poly, b: Poly) -> str:
    """What to write so that a dividend is less than twice its divisor: an assertion, if one about sizes suffices."""
    top = context.facts.greatest(rest)
    need = None if top is None else b * 2 - 1 - top
    if need is None or not need.names or not context.is_size(need):
        return "write the index as a choice, as in `i + 1 < n ? i + 1 : 0` for `(i + 1) % n`"
    return f"write `assert({expression(at_least(context.in_c(need), _NOWHERE))});` at the beginning of the function"
