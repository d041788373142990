"""Sizes of parametric sets as closed forms, and their growth."""

from __future__ import annotations

from typing import Any

import islpy as isl
import sympy

from roofdsl.bounds.flow import Flow, sets
from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.cases import Case, Cases, closed_form
from roofdsl.sets.quasi import Quasi

FAR = 1 << 20
"""A value of the parameters at which the case for large sizes holds."""


def count(flow: Flow, union: Any) -> Cases:
    """The number of points of an isl.UnionSet (or isl.Set), in the kernel's parameters. Raises TooHard."""
    return flow.counts.of(union, lambda: _count(flow, union))


def _count(flow: Flow, union: Any) -> Cases:
    total: Any = None
    for part in [union] if isinstance(union, isl.Set) else sets(union):
        number = cardinality(part.intersect_params(flow.context).make_disjoint().coalesce())
        total = number if total is None else total.add(number)
    return Cases(()) if total is None else closed_form(total, flow.context, flow.meaning)


def at_large_sizes(flow: Flow, cases: Cases) -> Quasi:
    """The value for large sizes when all parameters are of the same order."""
    env = {name: FAR for q in flow.meaning.values() for name in q.names()}
    found: Case | None = next((c for c in cases.cases if c.holds(env)), None)
    return Quasi.constant(0) if found is None else found.value


def degree(flow: Flow, cases: Cases) -> int:
    """The total degree for large sizes; -1 for zero."""
    value = at_large_sizes(flow, cases)
    return value.degree(value.names()) if value else -1


def top_terms(value: Any) -> Any:
    """The terms of the highest total degree of a polynomial in the parameters."""
    terms = sympy.Add.make_args(sympy.expand(value))
    degrees = [total_degree(t) for t in terms]
    return sympy.Add(*(t for t, d in zip(terms, degrees, strict=True) if d == max(degrees)))


def total_degree(term: Any) -> int:
    """The total degree of a product of powers of parameters and of floors, each of which grows like a parameter."""
    return int(sum(e for base, e in term.as_powers_dict().items() if base.free_symbols))
