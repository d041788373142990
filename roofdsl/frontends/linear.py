"""Turns `a[i*n + j]` into `a[i, j]`: finds the inner dimensions, and proves that `j` stays in its row."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Entry, Monomial, Poly
from roofdsl.frontends.whole_steps import Steps, in_whole_steps, missing


def inner_dimensions(subscripts: Sequence[tuple[Poly, Facts]]) -> tuple[Poly, ...] | None:
    """The inner dimensions of an array, from its linear subscripts: () if it has one dimension.

    The strides are the products of parameters that multiply loop variables and elements of index arrays; each must
    divide the next one. None if they do not.
    """
    strides: list[Monomial] = []
    for subscript, facts in subscripts:
        variables = {r.var for r in facts.ranges}
        for m in subscript.terms:
            stride: Monomial = tuple(a for a in m if a not in variables and not isinstance(a, Entry))
            if stride and len(stride) < len(m) and stride not in strides:
                strides.append(stride)
    strides.sort(key=len)
    dims: list[Poly] = []
    before: Monomial = ()
    for stride in strides:
        rest = list(stride)
        for atom in before:
            if atom not in rest:
                return None
            rest.remove(atom)
        if not rest:
            return None
        dims.insert(0, Poly({tuple(rest): 1}))
        before = stride
    return tuple(dims)


def subscripts_of(subscript: Poly, inner: Sequence[Poly], facts: Facts) -> tuple[Poly, ...] | None:
    """The subscripts of a linear one, with the inner ones proven to lie within their dimensions; None without proof."""
    found: list[Poly] = []
    rest = subscript
    for dim in reversed(inner):
        high, low = _divided(rest, dim)
        for shift in (0, 1, -1):
            within = low - dim * shift
            if facts.not_negative(within) and facts.not_negative(dim - 1 - within):
                found.insert(0, within)
                rest = high + shift
                break
        else:
            return None
    return (rest, *found)


def steps_for_rows(subscript: Poly, inner: Sequence[Poly], facts: Facts) -> tuple[Steps, ...]:
    """The loops whose lengths have to be multiples of their steps for `subscripts_of` to find subscripts; () if such
    multiples do not suffice.
    """
    split = subscripts_of(subscript, inner, in_whole_steps(facts))
    if split is None:
        return ()
    within = [p for s, dim in zip(split[1:], inner, strict=True) for p in (s, dim - 1 - s)]
    return tuple(dict.fromkeys(steps for p in within for steps in missing(facts, p) or ()))


def rows_need(subscript: Poly, inner: Sequence[Poly], facts: Facts) -> Poly | None:
    """What has to be nonnegative for the first subscript, from the right, that is not proven to lie in its row; None if
    its range is not known.
    """
    rest = subscript
    for dim in reversed(inner):
        high, low = _divided(rest, dim)
        if not (facts.not_negative(low) and facts.not_negative(dim - 1 - low)):
            top = facts.greatest(low) if facts.not_negative(low) else None
            return None if top is None else dim - 1 - top
        rest = high
    return None


def _divided(value: Poly, by: Poly) -> tuple[Poly, Poly]:
    """`(a, b)` with value = a * by + b, for a product of names."""
    (divisor,) = by.terms
    high: dict[Monomial, int] = {}
    low: dict[Monomial, int] = {}
    for m, c in value.terms.items():
        rest = list(m)
        for atom in divisor:
            if atom not in rest:
                low[m] = c
                break
            rest.remove(atom)
        else:
            key = tuple(rest)
            high[key] = high.get(key, 0) + c
    return Poly(high), Poly(low)
