"""Turns `a[i*n + j]` into `a[i, j]`: finds the inner dimensions, and proves that `j` stays in its row."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Entry, Monomial, Poly
from roofdsl.frontends.whole_steps import Steps, in_whole_steps, missing

Subscripts = Sequence[tuple[Poly, Facts]]
"""Linear subscripts of an array, each with the facts where it is used."""

_MOST_DIVISIONS = 64


def inner_dimensions(subscripts: Subscripts) -> tuple[Poly, ...]:
    """The inner dimensions of an array, from its linear subscripts: rows of `m` elements, or of `w + k - 1`. Of two
    forms, it is the one in which every subscript is proven to stay in its row; () if there is none of either.
    """
    products, sums = _products(subscripts) or (), _sums(subscripts) or ()
    if products and (_are_rows(subscripts, products) or not (sums and _are_rows(subscripts, sums))):
        return products
    return sums


def _are_rows(subscripts: Subscripts, inner: Sequence[Poly]) -> bool:
    return all(subscripts_of(s, inner, facts) or steps_for_rows(s, inner, facts) for s, facts in subscripts)


def _sums(subscripts: Subscripts) -> tuple[Poly, ...] | None:
    """The inner dimensions if the strides are what multiplies the loop variables, as a whole: `(n + 2)` in
    `(i + 1) * (n + 2) + j`. None if one stride does not divide the next one.
    """
    strides: set[Poly] = set()
    for subscript, facts in subscripts:
        variables = {r.var for r in facts.ranges}
        for variable in variables & subscript.names:
            parts = subscript.split(variable)
            if parts is None or parts[0].names & variables or subscript.entries:
                return None
            if parts[0].names:
                strides.add(-parts[0] if _lead(parts[0])[1] < 0 else parts[0])
    dims: list[Poly] = []
    before = Poly.number(1)
    for stride in sorted(strides, key=lambda s: (len(_lead(s)[0]), str(s))):
        dim, rest = _divided(stride, before)
        if rest.terms or not dim.names:
            return None
        dims.insert(0, dim)
        before = stride
    return tuple(dims)


def _lead(value: Poly) -> tuple[Monomial, int]:
    """The longest product in a polynomial, and its coefficient."""
    return min(value.terms.items(), key=lambda term: (-len(term[0]), str(term[0])))


def _products(subscripts: Subscripts) -> tuple[Poly, ...] | None:
    """The inner dimensions if they are products of parameters.

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
        for shift in (0, 1, -1, 2, -2):
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
    """`(a, b)` with value = a * by + b, where no term of b contains the longest product of names in `by`."""
    lead, factor = _lead(by)
    high = Poly({})
    for _ in range(_MOST_DIVISIONS):
        rests = [(_without(m, lead), c // factor) for m, c in value.terms.items() if c % factor == 0]
        part = Poly({m: c for m, c in rests if m is not None})
        if not part.terms:
            break
        high += part
        value -= part * by
    return high, value


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """A product without some of its factors; None if it does not contain them."""
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
