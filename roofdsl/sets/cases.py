"""Closed forms: piecewise quasi-polynomials in the kernel's parameters, merged to as few pieces as possible.

The main polynomial absorbs that of a small piece if the two agree on the piece. So the result is `2*n**2`, not a
Piecewise, if one polynomial is seen to hold for every size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import islpy as isl

from roofdsl.sets.facts import Fact
from roofdsl.sets.library import affine_value, pieces
from roofdsl.sets.quasi import Quasi, Rational

Constraint = tuple[Quasi, bool]
"""(value, True for value == 0, False for value >= 0)."""


@dataclass(frozen=True)
class Case:
    """`value` if one of `alternatives` holds, each a conjunction of constraints; without alternatives, everywhere."""

    alternatives: tuple[tuple[Constraint, ...], ...]
    value: Quasi

    def holds(self, env: Mapping[str, Rational]) -> bool:
        return not self.alternatives or any(
            all((v.evaluate(env) == 0) if zero else (v.evaluate(env) >= 0) for v, zero in alternative)
            for alternative in self.alternatives
        )


@dataclass(frozen=True)
class Cases:
    """A closed form: disjoint cases, and 0 where none holds. assumes: assumptions beyond the kernel's own."""

    cases: tuple[Case, ...]
    assumes: tuple[Fact, ...] = ()

    def evaluate(self, env: Mapping[str, Rational]) -> Fraction:
        """The exact value. Raises KeyError for a missing parameter."""
        for case in self.cases:
            if case.holds(env):
                return case.value.evaluate(env)
        return Fraction(0)

    def polynomials(self) -> Iterator[Quasi]:
        """The values of all cases, and the sides of their conditions."""
        for case in self.cases:
            yield case.value
            for alternative in case.alternatives:
                yield from (value for value, _ in alternative)

    def names(self) -> frozenset[str]:
        """All symbols of the form, including those of its conditions."""
        return frozenset[str]().union(*(value.names() for value in self.polynomials()))

    @property
    def single(self) -> Quasi | None:
        """The one quasi-polynomial that holds for all sizes, if there is one."""
        if not self.cases:
            return Quasi.constant(0)
        return self.cases[0].value if len(self.cases) == 1 and not self.cases[0].alternatives else None


def constant(value: Rational) -> Cases:
    return Cases((Case((), Quasi.constant(value)),))


def closed_form(piecewise: Any, context: Any, meaning: Mapping[str, Quasi], assumes: tuple[Fact, ...] = ()) -> Cases:
    """The cases of an isl.PwQPolynomial over parameters, on `context` (isl parameter set), in the kernel's parameters.

    `meaning` maps the isl parameters to polynomials (`Sizes.meaning`, `Fresh.meaning`).
    """
    return closed_form_of([(d.params(), v) for d, v in pieces(piecewise)], context, meaning, assumes)


def closed_form_of(
    parts: list[tuple[Any, Quasi]], context: Any, meaning: Mapping[str, Quasi], assumes: tuple[Fact, ...] = ()
) -> Cases:
    """As `closed_form`, for a form given by `parts`: (isl parameter set, its value there), disjoint; 0 elsewhere."""
    merged = merge(parts, context)
    cases = []
    for domain, value in merged:
        everywhere = context.is_subset(domain)
        alternatives = () if everywhere else conditions(domain.gist_params(context), meaning)
        cases.append(Case(alternatives, value.substitute(meaning)))
    return Cases(tuple(cases), assumes)


def merge(parts: list[tuple[Any, Quasi]], context: Any) -> list[tuple[Any, Quasi]]:
    """The pieces, merged where the polynomial of another has the same values. Outside them, the value is 0; these
    places may be absorbed, too.
    """
    groups: dict[Quasi, Any] = {}
    for anywhere, value in parts:
        domain = anywhere.intersect(context)
        groups[value] = groups[value].union(domain) if value in groups else domain
    groups = {v: d for v, d in groups.items() if v}
    covered = None
    for d in groups.values():
        covered = d if covered is None else covered.union(d)
    rest = context if covered is None else context.subtract(covered)
    zero = Quasi.constant(0)
    if not rest.is_empty():
        groups[zero] = rest
    # The polynomial of the widest piece first, with the most sizes that have no upper bound and the fewest equalities.
    # Narrow pieces, such as n = 1, are then absorbed by it where it has their values.
    order = sorted(groups, key=lambda v: (-_freedom(groups[v]), len(str(v))))
    result: list[tuple[Any, Quasi]] = []
    for value in order:
        leftover = None
        for basic in groups[value].coalesce().get_basic_sets():
            piece = isl.Set.from_basic_set(basic)
            point = _sample(piece) if result else None
            here = None if point is None else value.evaluate(point)
            for i, (domain, main) in enumerate(result):
                # Most polynomials differ at the first point that one looks at, and then nothing has to be proven.
                if point is not None and main.evaluate(point) != here:
                    continue
                if equal_on(value, main, piece):
                    result[i] = (domain.union(piece), main)
                    break
            else:
                leftover = piece if leftover is None else leftover.union(piece)
        if leftover is not None:
            result.append((leftover, value))
    return [(d.coalesce(), v) for d, v in result if v]


def _sample(domain: Any) -> dict[str, int] | None:
    """The parameters at one point of an isl parameter set; None if it is empty."""
    point = domain.sample_point()
    if point.is_void():
        return None
    count = domain.dim(isl.dim_type.param)
    values = [point.get_coordinate_val(isl.dim_type.param, i) for i in range(count)]
    return {domain.get_dim_name(isl.dim_type.param, i): v.to_python() for i, v in enumerate(values)}


FEW = 32
"""The maximum number of values of a parameter at which two polynomials are compared one by one."""


def equal_on(a: Quasi, b: Quasi, domain: Any) -> bool:
    """Whether a == b is shown on all of `domain` (isl parameter set): by its equalities, or at each of a few values."""
    difference = a - b
    if not difference:
        return True
    for substitution in _equalities(domain):
        difference = difference.substitute(substitution)
        if not difference:
            return True
    names = difference.names()
    if len(names) != 1:
        return False
    (name,) = names
    values = _few_values(domain, name)
    return bool(values) and all(difference.evaluate({name: v}) == 0 for v in values)


def _few_values(domain: Any, name: str) -> range:
    """All values of parameter `name` on `domain` if there are few of them; otherwise an empty result."""
    where = domain.find_dim_by_name(isl.dim_type.param, name)
    if where < 0:
        return range(0)
    one = domain.move_dims(isl.dim_type.set, 0, isl.dim_type.param, where, 1)
    one = one.project_out(isl.dim_type.param, 0, one.dim(isl.dim_type.param))
    if not (one.dim_has_lower_bound(isl.dim_type.set, 0) and one.dim_has_upper_bound(isl.dim_type.set, 0)):
        return range(0)
    least, most = one.dim_min_val(0), one.dim_max_val(0)
    if not (least.is_int() and most.is_int()):  # an empty set has no minimum and no maximum
        return range(0)
    low, high = int(least.to_python()), int(most.to_python())
    return range(low, high + 1) if high - low < FEW else range(0)


def _equalities(domain: Any) -> list[dict[str, Quasi]]:
    """Substitutions of parameters that the affine hull of `domain` implies, to be applied in turn."""
    found: list[dict[str, Quasi]] = []
    for constraint in domain.affine_hull().get_constraints():
        if not constraint.is_equality():
            continue
        value = affine_value(constraint.get_aff())
        for earlier in found:
            value = value.substitute(earlier)
        for monomial, c in value:
            if len(monomial) == 1 and isinstance(monomial[0][0], str) and abs(c) == 1:
                name = monomial[0][0]
                others = value - Quasi.symbol(name) * c
                if name not in others.names():
                    found.append({name: others * (-1 / c)})
                    break
    return found


def _freedom(domain: Any) -> int:
    hull = domain.affine_hull()
    equalities = sum(1 for c in hull.get_constraints() if c.is_equality())
    unbounded = 0
    size = domain.dim(isl.dim_type.param)
    as_set = domain.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, size) if size else domain
    for i in range(size):
        unbounded += not as_set.dim_has_upper_bound(isl.dim_type.set, i)
    return 100 * unbounded - equalities


def conditions(domain: Any, meaning: Mapping[str, Quasi] | None = None) -> tuple[tuple[Constraint, ...], ...]:
    """The basic sets of an isl parameter set as constraints, in terms of the meaning of the isl parameters.

    The constraints that only say what a floor is, such as n - 7 <= 8*floor(n/8) <= n, are left out.
    """
    meaning = meaning or {}
    out = []
    for basic in domain.coalesce().get_basic_sets():
        constraints = []
        for c in basic.get_constraints():
            if c.is_div_constraint():
                continue
            constraints.append((affine_value(c.get_aff()).substitute(meaning), bool(c.is_equality())))
        out.append(tuple(constraints))
    return tuple(out)
