"""Proofs that a polynomial is nowhere negative on a set, from its bounds and its coefficients after a shift of sizes.

If there is no proof here, the statement may still be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import islpy as isl

from roofdsl.sets.dimensions import dimensions
from roofdsl.sets.library import affine_value
from roofdsl.sets.polynomial_bounds import lower_bounds
from roofdsl.sets.quasi import Quasi

MOST_SLACKS = 3
"""The maximum number of constraints between sizes that are inserted into a polynomial at a time."""


def nowhere_negative(domain: Any, value: Quasi) -> bool:
    """Whether `value` (in d0, d1, ... and parameters) is proven to be at least 0 on the isl.Set `domain`."""
    dims = frozenset(dimensions(domain))
    if value.is_constant():
        return value.constant_value() >= 0 or bool(domain.is_empty())
    if not value.names() & dims:
        return _in_sizes(domain.params(), value)
    bounds = lower_bounds(domain, value)
    return bounds is not None and all(_in_sizes(chamber, low) for chamber, low in bounds)


def _in_sizes(where: Any, value: Quasi) -> bool:
    """Whether a polynomial of parameters is proven to be at least 0 on an isl.Set of them."""
    if value.is_constant():
        return value.constant_value() >= 0 or bool(where.is_empty())
    if any(not isinstance(a, str) for a in value.atoms()):
        return False
    wider = where.remove_divs()
    return all(any(_all_positive(shifted) for shifted in _shifts(basic, value)) for basic in wider.get_basic_sets())


def _all_positive(value: Quasi) -> bool:
    return all(c >= 0 for _, c in value)


def _shifts(basic: Any, value: Quasi) -> Iterator[Quasi]:
    """`value` in variables that are at least 0 on `basic`: sizes minus their least value or lower bound."""
    bounds: list[tuple[str, Quasi]] = []
    least: dict[str, Quasi] = {}
    for constraint in basic.get_constraints():
        bound = affine_value(constraint.get_aff())
        if any(not isinstance(a, str) for a in bound.atoms()):
            continue
        signs = (1, -1) if constraint.is_equality() else (1,)
        for sign in signs:
            for monomial, c in bound:
                if monomial and c * sign == 1:  # name + rest >= 0
                    name = str(monomial[0][0])
                    rest = Quasi.symbol(name) - bound * sign
                    bounds.append((name, rest))
    as_set = isl.Set.from_basic_set(basic)
    for name in value.names().union(*(rest.names() for _, rest in bounds)):
        low = least_value(as_set, name)
        if low is not None:
            least[name] = Quasi.symbol(name) + low
    relations = [(name, rest) for name, rest in bounds if rest.names()]
    # Up to MOST_SLACKS names, in any choice, become a lower bound plus a slack of at least 0. The names left are
    # counted from their least value.
    work: list[tuple[Quasi, dict[str, Quasi], int]] = [(value, {}, 0)]
    while work:
        here, gone, first = work.pop(0)
        if here.names() <= least.keys():
            yield here.substitute(least)
        if len(gone) == MOST_SLACKS:
            continue
        for k, (name, bound) in enumerate(relations[first:], first + 1):
            rest = bound.substitute(gone)
            if name in here.names() and name not in rest.names():
                slack = f"_slack{len(gone)}"
                least.setdefault(slack, Quasi.symbol(slack))
                put = {name: rest + Quasi.symbol(slack)}
                work.append((here.substitute(put), {**{n: v.substitute(put) for n, v in gone.items()}, **put}, k))


def least_value(where: Any, name: str) -> int | None:
    """The least value of a parameter on an isl.Set of parameters; None if it has none."""
    at = where.find_dim_by_name(isl.dim_type.param, name)
    if at < 0:
        return None
    one = where.move_dims(isl.dim_type.set, 0, isl.dim_type.param, at, 1)
    one = one.project_out(isl.dim_type.param, 0, one.dim(isl.dim_type.param))
    if one.is_empty() or not one.dim_has_lower_bound(isl.dim_type.set, 0):
        return None
    found = one.dim_min_val(0)
    return int(found.to_python()) if found.is_int() else None
