"""Residue classes of parameters, on which quasi-polynomials are polynomials and sets have no floors of parameters.

A count of integer points is a quasi-polynomial, with floors of the parameters such as floor(n/2). On a class of sizes
with the same remainders (n % 2 == 1), it is a polynomial. Results for one class need not hold for another: if `A[n - 1
- j]` is read for every second j, it is the element `A[j']` of another j' only if n is odd.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import Any

import islpy as isl

from roofdsl.lang.record import Record
from roofdsl.sets.cases import conditions
from roofdsl.sets.quasi import Quasi, floors_of


class Residue(Record):
    """The sizes at which `name`, an isl parameter, leaves remainder `rest` modulo `period`."""

    name: str
    period: int
    rest: int

    def holds(self, value: int) -> bool:
        return value % self.period == self.rest

    def nearest(self, value: int) -> int:
        """The least size of the class that is at least `value`."""
        return value + (self.rest - value) % self.period


Class = tuple[Residue, ...]
"""A residue of each parameter that has a period; none at all: every size."""


def periods(values: Iterable[Quasi]) -> dict[str, int]:
    """Periods of the names in floors: if these remainders are known, each of `values` is a polynomial."""
    found: dict[str, int] = {}
    for value in values:
        for atom in floors_of(value):
            whole = lcm(*(c.denominator for _, c in atom.of))
            inner = periods([atom.of])
            for name in atom.of.names():
                found[name] = lcm(found.get(name, 1), whole * inner.get(name, 1))
    return {name: period for name, period in found.items() if period > 1}


def periods_of_sets(sets: Iterable[Any]) -> dict[str, int]:
    """Periods of the parameters of isl sets: no other remainders decide which basic sets are empty.

    The periods are those of single basic sets: of two, one may be non-empty at some sizes and the other at the rest.
    """
    found: dict[str, int] = {}
    for basic in (b for each in sets for b in each.get_basic_sets()):
        where = isl.Set(basic).params().compute_divs()
        found = joined(found, periods(v for constraints in conditions(where) for v, _ in constraints))
    return found


def joined(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    """Periods that are multiples of both."""
    return {n: lcm(a.get(n, 1), b.get(n, 1)) for n in sorted(a.keys() | b.keys())}


def classes(period: Mapping[str, int], at: Mapping[str, int]) -> Iterator[Class]:
    """All residue classes of these periods that contain the sizes `at`, as far as those are given."""
    names = sorted(n for n, p in period.items() if p > 1)
    rests = [[at[n] % period[n]] if n in at else range(period[n]) for n in names]
    for each in product(*rests):
        yield tuple(Residue(n, period[n], r) for n, r in zip(names, each, strict=True))


def agrees(residues: Class, at: Mapping[str, int]) -> bool:
    """Whether the sizes `at`, of which some may be missing, belong to the class."""
    return all(r.holds(at[r.name]) for r in residues if r.name in at)


def only(names: frozenset[str], period: Mapping[str, int]) -> dict[str, int]:
    """The periods of these names only."""
    return {n: p for n, p in period.items() if n in names}


def how_many(period: Mapping[str, int], at: Mapping[str, int]) -> int:
    """The number of classes that `classes` returns."""
    return prod(p for n, p in period.items() if n not in at)


def classes_set(members: Iterable[Class]) -> Any:
    """The sizes of all the classes, as an isl parameter set."""
    found = None
    for residues in members:
        text = " and ".join(f"{r.name} mod {r.period} = {r.rest}" for r in residues) or "true"
        one = isl.Set(f"[{', '.join(r.name for r in residues)}] -> {{ : {text} }}")
        found = one if found is None else found.union(one)
    return found if found is not None else isl.Set("{ : false }")


def resolved(value: Quasi, at: Mapping[str, int]) -> Quasi:
    """The polynomial that equals `value` on the residue class of the sizes `at`.

    floor(E) is E minus its fractional part there. Raises KeyError if a name in a floor has no size.
    """
    if not floors_of(value):
        return value
    total = Quasi.constant(0)
    for monomial, c in value:
        part = Quasi.constant(c)
        for atom, power in monomial:
            if isinstance(atom, str):
                part = part * Quasi.symbol(atom, power)
            else:
                part = part * (resolved(atom.of, at) - atom.of.evaluate(at) % 1) ** power
        total = total + part
    return total


class Substitution:
    """n = period*n' + rest for the parameters of a class; n' takes the name of n from there on.

    Sets then have no floors of these parameters, so isl gives tighter bounds.
    """

    def __init__(self, residues: Class) -> None:
        self.residues = residues
        self.put = {r.name: Quasi.symbol(r.name) * r.period + r.rest for r in residues}
        self.back = {r.name: (Quasi.symbol(r.name) - r.rest) * Fraction(1, r.period) for r in residues}

    def set(self, of: Any) -> Any:
        """An isl.Set (of parameters or of instances) on the class."""
        for r in self.residues:
            where = of.find_dim_by_name(isl.dim_type.param, r.name)
            if where < 0:
                continue
            inner = f"{r.name}_in_class"
            equal = f"{r.name} = {r.period}*{inner} + {r.rest}"
            of = of.intersect_params(isl.Set(f"[{r.name}, {inner}] -> {{ : {equal} }}"))
            of = of.project_out(isl.dim_type.param, of.find_dim_by_name(isl.dim_type.param, r.name), 1)
            of = of.set_dim_name(isl.dim_type.param, of.find_dim_by_name(isl.dim_type.param, inner), r.name)
        return of.coalesce().detect_equalities() if self.residues else of

    def value(self, of: Quasi) -> Quasi:
        """A quasi-polynomial on the class."""
        return of.substitute(self.put)

    def meaning(self, of: Mapping[str, Quasi]) -> dict[str, Quasi]:
        """The meaning of the isl parameters on the class, given their meaning `of` for all sizes."""
        return {n: self.back[n].substitute({n: v}) if n in self.back else v for n, v in of.items()}
