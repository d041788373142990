"""Assumptions about sizes that front ends write: `assume n >= m, n % b == 0`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.whole_steps import Steps
from roofdsl.lang import tree
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span


def assumption(
    differences: Mapping[Poly, Any], multiples: Mapping[Steps, Any], spans: Callable[[Any], Span]
) -> list[tree.Item]:
    """`assume` for differences that are >= 0 and lengths that are multiples, without weaker ones; [] if nothing needs
    to be assumed. The values are the nodes that need it; `spans` places them.
    """
    needed = _strongest(list(differences))
    if not needed and not multiples:
        return []
    span = spans(differences[needed[0]] if needed else next(iter(multiples.values())))
    conditions: list[tree.Expr] = []
    for p in needed:
        if -p not in needed:
            conditions.append(at_least(p, span))
        elif needed.index(p) < needed.index(-p):
            conditions.append(_equal(p, span))
    conditions += [_multiple(*pair, span) for pair in multiples]
    return [tree.Assume(tuple(conditions), span)]


def names_in(items: Any) -> set[str]:
    """Every name in statements and declarations."""
    found: set[str] = set()
    pending: list[Any] = list(items)
    while pending:
        item = pending.pop()
        match item:
            case tuple() | list():
                pending += item
            case tree.Ref(name):
                found.add(name)
            case Record() if not isinstance(item, tree.Name):
                pending += [getattr(item, field) for field in item.__match_args__ if field != "span"]
    return found


def _strongest(polys: Sequence[Poly]) -> list[Poly]:
    """Differences that do not follow from another one, or from sizes being positive."""
    facts = Facts()
    polys = [p for p in polys if not facts.not_negative(p)]
    needed: list[Poly] = []
    for k, p in enumerate(polys):
        others = [q for j, q in enumerate(polys) if j != k and facts.not_negative(p - q)]
        if not any(not facts.not_negative(q - p) or polys.index(q) < k for q in others):
            needed.append(p)
    return needed


def at_least(p: Poly, span: Span) -> tree.Expr:
    """`n >= 2` for n - 2 >= 0, `n <= 8` for 8 - n >= 0."""
    left = Poly({m: c for m, c in p.terms.items() if c > 0 and m})
    if left.terms:
        return tree.Compare(left.tree(span), ((">=", (left - p).tree(span)),), span)
    right = Poly({(): p.terms.get((), 0)})
    return tree.Compare((right - p).tree(span), (("<=", right.tree(span)),), span)


def _equal(p: Poly, span: Span) -> tree.Expr:
    """`n == m` for n - m."""
    left = Poly({m: c for m, c in p.terms.items() if c > 0})
    return tree.Compare(left.tree(span), (("==", (left - p).tree(span)),), span)


def _multiple(length: Poly, step: Poly, span: Span) -> tree.Expr:
    """`n % b == 0`, `(n - 2) % 4 == 0`."""
    parts = (p.tree(span) for p in (length, step))
    whole, each = (p if isinstance(p, tree.Ref | tree.Number) else tree.Group(p, span) for p in parts)
    left = tree.Binary("%", whole, each, span)
    return tree.Compare(left, (("==", tree.Number("0", 0, span)),), span)
