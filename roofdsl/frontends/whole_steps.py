"""Loops in steps of more than 1 that stay in their arrays only if their length is a multiple of the step.

`for i in range(0, n, b)` over `A[i:i+b]` is within `A[n]` if n % b == 0. Front ends assume that where it is needed.
"""

from __future__ import annotations

from collections.abc import Container

from roofdsl.frontends.integer_facts import Facts, Range
from roofdsl.frontends.poly import Monomial, Poly, Quotient, quotient

Steps = tuple[Poly, Poly]
"""(length, step): how far it is from a loop's start to its stop, and its step."""


def stepped(var: str, lowers: tuple[Poly, ...], stops: tuple[Poly, ...], step: Poly, known: Container[Steps]) -> Range:
    """The values of a loop that counts up; `known`: lengths that are multiples of their steps."""
    uppers = tuple(stop - 1 for stop in stops)
    if step.value == 1 or not len(lowers) == len(stops) == 1:
        return Range(var, lowers, uppers)
    steps = reduced(stops[0] - lowers[0], step)
    length, each = steps[0].value, step.value
    if length is not None and each is not None:
        return Range(var, lowers, (lowers[0] + (length - 1) // each * each,), None, uppers[0])
    found = Range(var, lowers, uppers, (stops[0] - lowers[0], step))
    return found.in_whole_steps() if steps in known or _is_multiple(*steps) else found


def needed(
    facts: Facts, lowers: tuple[Poly, ...], stops: tuple[Poly, ...]
) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
    """The starts and stops of a loop without those that others make superfluous at every iteration around it: `n` of
    `min(i + b, n)`, if the blocks divide n. What remains says the same in a form that more derivations can use.
    """
    greatest = facts.smallest_of([-lower for lower in lowers])
    return tuple(-lower for lower in greatest), facts.smallest_of(stops)


def reduced(length: Poly, step: Poly) -> Steps:
    """The same condition without multiples of the step: (n - b, b) is (n, b)."""
    if length.value is not None or len(step.terms) != 1:
        return length, step
    ((divisor, by),) = step.terms.items()
    rest = {m: c for m, c in length.terms.items() if m != divisor or c % by}
    return (Poly(rest) if rest else length), step


def iterations(facts: Facts, length: Poly, step: int) -> Poly | None:
    """How often a loop runs whose stop is `length` from its start; None if that may be negative."""
    plain = Poly({})
    for m, c in length.terms.items():
        plain += _without_remainders(m) * c
    rest = Poly({m: c for m, c in plain.terms.items() if c % step})
    if not facts.not_negative(plain + step - 1):
        return None
    return quotient("//", plain - rest, step) + quotient("//", rest + step - 1, step)


def missing(facts: Facts, value: Poly) -> tuple[Steps, ...] | None:
    """The loops around a place whose lengths have to be multiples of their steps so that `value` >= 0 there: () if it
    always is, None if such multiples do not suffice. No loop is named without need.
    """
    if facts.not_negative(value):
        return ()
    places = [k for k, r in enumerate(facts.ranges) if r.steps is not None]
    if not places or not _whole(facts, places).not_negative(value):
        return None
    for k in list(places):
        fewer = [p for p in places if p != k]
        if _whole(facts, fewer).not_negative(value):
            places = fewer
    return tuple(dict.fromkeys(reduced(*s) for k in places if (s := facts.ranges[k].steps) is not None))


def fills_blocks(facts: Facts, value: Poly, place: int) -> tuple[bool, bool] | None:
    """How a subscript lies in the blocks that the loop at `place` begins: (whether it never leaves the block, whether
    it takes the last element of every block, even if that is beyond the loop's stop). None if it does not move with the
    blocks.
    """
    outer, inner = facts.ranges[place], Facts(facts.ranges[place + 1 :], facts.known)
    assert outer.steps is not None
    offset = value - Poly.name(outer.var)
    last = outer.steps[1] - 1
    stops = facts.not_negative(outer.lowers[0] + outer.steps[0] - 1 - value)
    top, bottom = inner.greatest(offset), inner.greatest(-offset)
    if top is None or bottom is None or outer.var in top.names | bottom.names:
        return None
    plain = Facts()
    return plain.not_negative(last - top) and plain.not_negative(-bottom), top == last and not stops


def in_whole_steps(facts: Facts) -> Facts:
    """The facts if the lengths of all loops are multiples of their steps."""
    return _whole(facts, range(len(facts.ranges)))


def extent(facts: Facts, value: Poly) -> Poly | None:
    """One more than what a subscript never exceeds; None if that is not known. The last block of a loop in whole steps
    counts in full: `for (i = 0; i < n; i += 4) y[i]` gives n rather than n - 3.
    """
    top = facts.greatest(value)
    for k, r in enumerate(facts.ranges):
        if r.end is None or top is None:
            continue
        full = Facts([*facts.ranges[:k], Range(r.var, r.lowers, (r.end,)), *facts.ranges[k + 1 :]], facts.known)
        longer, end = full.greatest(value), full.greatest(r.end)
        if longer is None or end is None or longer == top or not facts.not_negative(end - top):
            continue
        top = longer if facts.not_negative(end - longer) else end
    return None if top is None else top + 1


def _whole(facts: Facts, places: Container[int]) -> Facts:
    """The facts if the lengths of these loops are multiples of their steps."""
    return Facts([r.in_whole_steps() if k in places else r for k, r in enumerate(facts.ranges)], facts.known)


def _is_multiple(length: Poly, step: Poly) -> bool:
    """Whether a length is a multiple of its step at all sizes, as 4 * (n // 4) and n - n % 4 are of 4."""
    by = step.value
    if by is None:
        return False
    total = Poly({})
    for m, c in length.terms.items():
        total += _without_remainders(m) * c
    return all(c % by == 0 for c in total.terms.values())


def _without_remainders(monomial: Monomial) -> Poly:
    """A product with a - b * (a // b) in place of a % b."""
    product = Poly.number(1)
    for atom in monomial:
        if isinstance(atom, Quotient) and atom.op == "%":
            product *= atom.of - quotient("//", atom.of, atom.by) * atom.by
        else:
            product *= Poly.name(atom)
    return product
