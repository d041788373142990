"""Where a polynomial in one parameter is positive, exactly, over the integers.

A condition such as 8*n**2 + 16*n + 8*k > Z is not affine in n. But if Z is a number, it holds for all k if n is large
enough, and for no k if n is small enough. The few n in between can be listed, each with an affine condition on k.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

import islpy as isl

from roofdsl.sets.dimensions import dimensions, where
from roofdsl.sets.facts import Compared, Fact
from roofdsl.sets.isl_text import sign_text
from roofdsl.sets.polynomial_bounds import bounds
from roofdsl.sets.quasi import Quasi

MAX_LISTED = 40
"""The maximum number of values of the parameter that are listed one by one."""

Interval = tuple[int, int | None]
"""First and last integer; None for no end."""


def positive_in_one_parameter(domain: Any, excess: Quasi) -> Any | None:
    """The isl.Set of points of `domain` with excess > 0, if excess is not affine in its one parameter.

    None if excess has another form or no known bounds, or if too many values of the parameter would have to be listed.
    """
    dims = set(dimensions(domain))
    symbols = excess.names() - dims
    if len(symbols) != 1 or any(not isinstance(a, str) for a in excess.atoms()):
        return None
    (name,) = symbols
    if excess.degree(frozenset((name,))) < 2 and not _mixed(excess, name, dims):
        return None
    if excess.names() == symbols:
        return _where(domain, name, positive_intervals(_coefficients(excess, name), 1))
    limits = bounds(domain, excess)
    if limits is None:
        return None
    lowest, highest = limits
    if lowest.names() - symbols or highest.names() - symbols:
        return None
    surely = positive_intervals(_coefficients(lowest, name), 1)
    possibly = positive_intervals(_coefficients(highest, name), 1)
    listed = _difference(possibly, surely)
    if listed is None or len(listed) > MAX_LISTED:
        return None
    total = _where(domain, name, surely)
    for value in listed:
        at = domain.intersect_params(isl.Set(f"[{name}] -> {{ : {name} = {value} }}"))
        here = excess.substitute({name: Quasi.constant(value)})
        text = sign_text(here)
        if text is None:
            return None
        total = total.union(at.intersect(where(domain, f"{text} > 0")))
    return total


def first_positive(value: Quasi) -> int | None:
    """The least positive integer such that a polynomial in one parameter is positive there and at all larger ones.

    None for another form, and if it does not stay positive.
    """
    if len(value.names()) != 1 or any(not isinstance(a, str) for a in value.atoms()):
        return None
    (name,) = value.names()
    intervals = positive_intervals(_coefficients(value, name), 1)
    return intervals[-1][0] if intervals and intervals[-1][1] is None else None


def _mixed(excess: Quasi, name: str, dims: set[str]) -> bool:
    return any(len(m) > 1 and any(a == name for a, _ in m) and any(a in dims for a, _ in m) for m, _ in excess)


def _coefficients(value: Quasi, name: str) -> list[int]:
    """Integer coefficients, constant first, of a positive multiple of `value`."""
    scale = lcm(*(c.denominator for _, c in value)) if value else 1
    out: dict[int, Fraction] = {}
    for m, c in value:
        out[m[0][1] if m else 0] = c * scale
    return [int(out.get(k, 0)) for k in range(max(out, default=0) + 1)]


def _value(coefficients: list[int], x: int) -> int:
    total = 0
    for c in reversed(coefficients):
        total = total * x + c
    return total


def intervals_of(value: Quasi, start: int) -> list[Interval]:
    """The maximal intervals of integers >= `start` in which a polynomial in one name is positive."""
    (name,) = value.names()
    return positive_intervals(_coefficients(value, name), start)


def positive_intervals(coefficients: list[int], start: int) -> list[Interval]:
    """The maximal intervals of integers >= `start` in which the polynomial (constant first) is positive."""
    signs = _segments(coefficients, start)
    return [(a, b) for a, b, positive in signs if positive]


def _segments(coefficients: list[int], start: int) -> list[tuple[int, int | None, bool]]:
    """(first, last, whether positive) over the integers from `start`, by the sign of the difference p(x+1) - p(x)."""
    while coefficients and coefficients[-1] == 0:
        coefficients = coefficients[:-1]
    if len(coefficients) <= 1:
        return [(start, None, bool(coefficients) and coefficients[0] > 0)]
    cuts: list[tuple[int, int | None, bool]] = []
    # The difference is a polynomial of one degree less, whose signs are found in the same way. Between its changes of
    # sign, p is monotone and changes its own sign at most once; bisection over the integers finds the place.
    for first, last, _ in _segments(_forward_difference(coefficients), start):
        # p is monotone on first..last+1
        cuts += _monotone(coefficients, first, None if last is None else last + 1)
    merged: list[tuple[int, int | None, bool]] = []
    for start_of_cut, last, positive in cuts:
        first = start_of_cut
        if merged:
            a, b, p = merged[-1]
            if b is not None and first <= b:  # the segments share one point
                first = b + 1
                if last is not None and first > last:
                    continue
            if p == positive:  # p may turn without a change of sign, as x**2 does
                merged[-1] = (a, last, p)
                continue
        merged.append((first, last, positive))
    return merged


def _forward_difference(coefficients: list[int]) -> list[int]:
    """Coefficients of p(x+1) - p(x)."""
    shifted = [0] * len(coefficients)
    row = [1]
    for k, c in enumerate(coefficients):
        for j, binomial in enumerate(row):
            shifted[j] += c * binomial
        row = [1, *(row[j] + row[j + 1] for j in range(k)), 1]
    return [s - c for s, c in zip(shifted, coefficients, strict=True)][:-1]


def _monotone(p: list[int], first: int, last: int | None) -> list[tuple[int, int | None, bool]]:
    """The segments of first..last, on which p is monotone."""
    if last is None:
        # Far enough, p has the sign of its leading coefficient; doubling the distance finds such a place.
        last_positive = p[-1] > 0
        width = 1
        while (_value(p, first + width) > 0) != last_positive:
            width *= 2
        high = first + width
    else:
        high = last
        last_positive = _value(p, high) > 0
    if (_value(p, first) > 0) == last_positive:
        return [(first, last, last_positive)]
    low = first
    while high - low > 1:
        middle = (low + high) // 2
        if (_value(p, middle) > 0) == last_positive:
            high = middle
        else:
            low = middle
    return [(first, low, not last_positive), (high, last, last_positive)]


def _difference(outer: list[Interval], inner: list[Interval]) -> list[int] | None:
    """The integers in `outer` but not in `inner`; None if there are too many."""
    out: list[int] = []
    for a, b in outer:
        x = a
        while b is None or x <= b:
            around = next(((c, d) for c, d in inner if c <= x and (d is None or x <= d)), None)
            if around is not None:
                if around[1] is None:
                    break
                x = around[1] + 1
                continue
            out.append(x)
            if len(out) > MAX_LISTED:
                return None
            x += 1
    return out


def _where(domain: Any, name: str, intervals: list[Interval]) -> Any:
    parts = [f"{name} >= {a}" + ("" if b is None else f" and {name} <= {b}") for a, b in intervals]
    return domain.intersect_params(isl.Set(f"[{name}] -> {{ : {' or '.join(parts) or 'false'} }}"))


def large_sizes(values: list[Quasi], context: Any, meaning: Mapping[str, Quasi]) -> tuple[Any, tuple[Fact, ...]]:
    """(`context` narrowed to where those of `values` in one parameter stay positive; facts that state where all are).

    context: isl.Set of parameters; meaning: the isl parameters in terms of the kernel's parameters.
    """
    facts: list[Fact] = []
    first: dict[str, int] = {}
    for value in values:
        start = first_positive(value)
        if start is not None:
            (name,) = value.names()
            first[name] = max(first.get(name, 1), start)
        else:
            facts.append(Compared(value.substitute(meaning), ">", Quasi.constant(0)))
    for name, start in first.items():
        context = context.intersect(isl.Set(f"[{name}] -> {{ : {name} >= {start} }}"))
        facts.append(Compared(meaning[name], ">=", Quasi.constant(start)))
    return context, tuple(facts)
