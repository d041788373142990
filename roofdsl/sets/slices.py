"""Pieces that are thin in some dimension, cut into slices on which their polynomial is simpler.

Counting produces pieces such as n-5 <= d <= n-4 with polynomials of high degree in d. On each of the two slices, d is n
- 5 or n - 4, and the polynomial depends only on n.
"""

from __future__ import annotations

from typing import Any

import islpy as isl

from roofdsl.sets.dimensions import dimensions, where
from roofdsl.sets.library import affine_value
from roofdsl.sets.polynomial_bounds import polynomial_text
from roofdsl.sets.quasi import Quasi

MAX_WIDTH = 8
"""The maximum number of slices of a dimension."""


def sliced(domain: Any, value: Quasi) -> list[tuple[Any, Quasi]]:
    """The piece as disjoint pieces whose polynomials are of degree 1 in the dimensions, as far as slicing can do it."""
    names = dimensions(domain)
    out: list[tuple[Any, Quasi]] = []
    work = [(domain, value)]
    while work:
        here, polynomial = work.pop()
        bent = _bent(polynomial, frozenset(names))
        if not bent:
            out.append((here, polynomial))
            continue
        disjoint = here.make_disjoint().get_basic_sets()
        if len(disjoint) > 1:
            work += [(isl.Set.from_basic_set(b), polynomial) for b in disjoint]
            continue
        cut = next((c for name in sorted(bent) if (c := _thin(disjoint[0], name, names)) is not None), None)
        if cut is None:
            out.append((here, polynomial))
            continue
        name, low, width = cut
        for k in range(width + 1):
            at = low + k
            part = here.intersect(_equals(here, name, at))
            if not part.is_empty():
                work.append((part, polynomial.substitute({name: at})))
    return out


def _bent(value: Quasi, names: frozenset[str]) -> set[str]:
    """The dimensions with terms of degree 2 or more, or in products with another symbol."""
    found: set[str] = set()
    for monomial, _ in value:
        if sum(power for _, power in monomial) > 1:
            for atom, _ in monomial:
                found |= {atom} if isinstance(atom, str) else set(atom.of.names())
    return found & names


def _thin(basic: Any, name: str, names: list[str]) -> tuple[str, Quasi, int] | None:
    """(name, its least value, the number of further values) if constraints bound it with a constant width."""
    named = basic
    for i, n in enumerate(names):
        named = named.set_dim_name(isl.dim_type.set, i, n)
    low: list[Quasi] = []
    high: list[Quasi] = []
    at = names.index(name)
    for constraint in named.get_constraints():
        if not constraint.involves_dims(isl.dim_type.set, at, 1):
            continue
        value = affine_value(constraint.get_aff())
        c = dict(value.terms).get(((name, 1),))
        if c is None or abs(c) != 1 or any(not isinstance(a, str) for a in value.atoms()):
            continue
        rest = Quasi.symbol(name) - value * (1 / c)  # name = rest on the boundary
        if rest.names() & set(names[at:]):
            continue  # always towards outer dimensions, so that the cutting ends
        if constraint.is_equality():
            return name, rest, 0
        (low if c > 0 else high).append(rest)
    for a in low:
        for b in high:
            width = b - a
            if width.is_constant() and 0 <= width.constant_value() < MAX_WIDTH:
                return name, a, int(width.constant_value())
    return None


def _equals(domain: Any, name: str, value: Quasi) -> Any:
    return where(domain, f"{name} = {polynomial_text(value)}")
