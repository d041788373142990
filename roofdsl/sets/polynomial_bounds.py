"""Bounds of a polynomial over a parametric set, in the parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import lcm, prod
from typing import Any

import islpy as isl

from roofdsl.sets.dimensions import dimensions, parameters, tuple_name, where
from roofdsl.sets.library import quasi_value
from roofdsl.sets.native_calls import bound
from roofdsl.sets.native_calls import bounds as bounds_of_all
from roofdsl.sets.quasi import Floor, Quasi, floors_of

MOST_PARTS = 128
_DIMENSION = re.compile(r"d\d+")


def bounds(domain: Any, value: Quasi, at: Any | None = None) -> tuple[Quasi, Quasi] | None:
    """(lower, upper) bounds of `value` over `domain`, valid wherever `domain` is not empty.

    `value` is in d0, d1, ... and parameters. With `at`, an isl parameter set of one point: the bounds of the chamber
    around that point, tight in their leading terms. None if the library gives no bound, or several that do not reduce
    to one. Raises TooHard, like all functions here that ask for bounds.
    """
    polynomial = _polynomial(domain, value)
    found = []
    for fold in bound(polynomial, isl.fold.min, isl.fold.max):
        candidates = _candidates(fold, at)
        if len(set(candidates)) != 1:
            return None
        found.append(candidates[0])
    return found[0], found[1]


Candidates = tuple[list[Quasi], list[Quasi], list[Any]]
"""A value lies between the least of the first and the largest of the second. Third: the parts of its domain, if it was
split, including those that are empty at the sizes in question.
"""


def candidate_bounds(asked: Sequence[tuple[Any, Quasi, Any]]) -> list[Candidates]:
    """For each (domain, value, at): as `bounds`, with all candidates. No candidates if the library gives none for a
    part.

    isl gives no bounds for floors, so floors are split by residues; parameters have their residues at `at`.
    """
    split = [_split(*each) for each in asked]
    folds = iter(bounds_of_all([p for polynomials, _ in split for p in polynomials], isl.fold.min, isl.fold.max))
    found: list[Candidates] = []
    for (domain, value, at), (polynomials, parts) in zip(asked, split, strict=True):
        if not _varies(domain, value):
            found.append(([value], [value], []))  # the same at every point
            continue
        pairs = [[_candidates(fold, at) for fold in next(folds)] for _ in polynomials]
        lows, highs = ([v for pair in pairs for v in pair[k]] for k in (0, 1))
        found.append((lows, highs, parts) if all(low and high for low, high in pairs) else ([], [], parts))
    return found


def _varies(domain: Any, value: Quasi) -> bool:
    return bool(value.names() & set(dimensions(domain)) or floors_of(value))


def _split(domain: Any, value: Quasi, at: Any) -> tuple[list[Any], list[Any]]:
    """(isl.PwQPolynomials of `value` on the parts of `domain` that are not empty at `at`, all parts if there are
    several).
    """
    polynomials: list[Any] = []
    parts: list[Any] = []
    if not _varies(domain, value):
        return polynomials, parts
    point, space = at.sample_point(), at.get_space()
    fixed = {
        space.get_dim_name(isl.dim_type.param, i): int(point.get_coordinate_val(isl.dim_type.param, i).to_python())
        for i in range(space.dim(isl.dim_type.param))
    }
    for part, whole in by_residues(domain, value, fixed):
        parts += [part] if part is not domain else []
        if part.params().is_disjoint(at):
            continue
        # without its residues, which isl's bounds do not support; the leading terms are the same
        polynomials.append(_polynomial(part.remove_divs() if part is not domain else domain, whole))
    return polynomials, parts


def by_residues(domain: Any, value: Quasi, fixed: Mapping[str, int]) -> Iterator[tuple[Any, Quasi]]:
    """Parts of `domain` on which floors in `value` are polynomials, and the form of `value` on each.

    On the part where every variable in floor(E) is r modulo the denominator of its coefficient, floor(E) is E minus the
    fractional part of E at r. Parameters have the residues of their values in `fixed`; floors of other parameters stay.
    Yields all of `domain` unchanged if a floor contains a floor or a product, or if there would be more than MOST_PARTS
    parts.
    """
    periods: dict[str, int] = {}
    apart = set()
    for atom in sorted(value.atoms(), key=str):  # the order of the parts must be the same in every process
        if isinstance(atom, str) or any(n not in fixed and not _DIMENSION.fullmatch(n) for n in atom.of.names()):
            continue
        if not _is_affine(atom.of):
            yield domain, value
            return
        apart.add(atom)
        # floor((2*i + j)/6): i counts modulo 3 and j modulo 6, since a step of these adds a whole number.
        for monomial, c in atom.of:
            for name, _ in monomial:
                periods[str(name)] = lcm(periods.get(str(name), 1), c.denominator)
    names = [name for name, period in periods.items() if period > 1]
    choices = [[fixed[n] % periods[n]] if n in fixed else range(periods[n]) for n in names]
    if not names or prod(map(len, choices)) > MOST_PARTS:
        yield domain, value
        return
    for residues in product(*choices):
        # Names of period 1 have integer coefficients, so any value does for the fractional part.
        env = dict.fromkeys(periods, 0) | dict(zip(names, residues, strict=True))
        text = " and ".join(f"{n} mod {periods[n]} = {r}" for n, r in zip(names, residues, strict=True))
        total = Quasi.constant(0)
        for monomial, c in value:
            part = Quasi.constant(c)
            for atom, power in monomial:
                base = Quasi.symbol(atom)
                if isinstance(atom, Floor) and atom in apart:
                    base = atom.of - atom.of.evaluate(env) % 1
                part = part * base**power
            total = total + part
        yield domain.intersect(where(domain, text)), total


def _is_affine(value: Quasi) -> bool:
    """Whether every term is a number, or a number times one symbol."""
    return all(len(m) <= 1 and all(isinstance(a, str) and power == 1 for a, power in m) for m, _ in value)


def growing_bounds(domain: Any, value: Quasi) -> list[Quasi]:
    """Lower bounds of `value` over `domain` in the parameters: the least of them holds. Empty if one does not grow.

    A bound grows if it has no floors and its only negative term is the constant, apart from terms that others outweigh.
    """
    low = list(dict.fromkeys(_candidates(bound(_polynomial(domain, value), isl.fold.min)[0], None)))
    grows = all(
        not v.is_constant() and all(c > 0 for m, c in _straight(v) if m) and all(isinstance(a, str) for a in v.atoms())
        for v in low
    )
    return low if grows else []


def lower_bounds(domain: Any, value: Quasi) -> list[tuple[Any, Quasi]] | None:
    """(isl parameter set, a lower bound of `value` over `domain` on that set, in the parameters).

    Where several sets overlap, the least value is a bound. None if the library gives none for some parameters.
    """
    found: list[tuple[Any, Any]] = []
    bound(_polynomial(domain, value), isl.fold.min)[0].foreach_piece(lambda sizes, here: found.append((sizes, here)))
    chambers = [(sizes.params(), quasi_value(each, [])) for sizes, here in found for each in _each(here)]
    covered = isl.Set.empty(domain.params().get_space())
    for sizes, _ in chambers:
        covered = covered.union(sizes)
    return chambers if domain.params().is_subset(covered) else None


def _straight(value: Quasi) -> Quasi:
    """`value` without negative terms that a term of the same or a higher power outweighs: n**2 - n is at least 0.

    Sizes are at least 1. So n*m - n is at least 0, too, and is dropped.
    """
    total = value
    for monomial, c in value:
        if c >= 0 or not monomial:
            continue
        for other, d in total:
            if d >= -c and other != monomial and _divides(monomial, other):
                total = total - Quasi.of({monomial: c}) - Quasi.of({other: -c})
                break
    return total


def _divides(small: Any, large: Any) -> bool:
    powers = dict(large)
    return all(powers.get(atom, 0) >= power for atom, power in small)


def _candidates(fold: Any, at: Any | None) -> list[Quasi]:
    found: list[tuple[Any, Any]] = []
    fold.foreach_piece(lambda domain, here: found.append((domain, here)))
    # the callback computes nothing, since isl prints any exception raised in it, even at the end of a budget
    pieces = [here for domain, here in found if at is None or not domain.params().is_disjoint(at)]
    return [quasi_value(polynomial, []) for here in pieces for polynomial in _each(here)]


def _each(fold: Any) -> list[Any]:
    found: list[Any] = []
    fold.foreach_qpolynomial(found.append)
    return found


def _polynomial(domain: Any, value: Quasi) -> Any:
    """`value` on `domain` as isl.PwQPolynomial, in the dimensions on which it depends.

    It is constant along the others, and each makes a bound more expensive. All are kept if removing some would leave
    floors, which isl's bounds do not support.
    """
    names = dimensions(domain)
    used = [name for name in names if name in value.names()]
    shadow = domain
    for k in reversed([k for k, name in enumerate(names) if name not in used]):
        shadow = shadow.project_out(isl.dim_type.set, k, 1)
    if any(b.dim(isl.dim_type.div) for b in shadow.get_basic_sets()):
        used, shadow = names, domain
    point = f"{tuple_name(shadow)}[{', '.join(used)}]"
    text = f"[{', '.join(parameters(shadow))}] -> {{ {point} -> ({polynomial_text(value)}) }}"
    return isl.PwQPolynomial(text).intersect_domain(shadow)


def polynomial_text(value: Quasi) -> str:
    """isl text of a quasi-polynomial; powers are written as products."""
    parts = []
    for monomial, c in value:
        factors = [str(c) if c.denominator == 1 else f"({c})"]
        for atom, power in monomial:
            factors += [atom if isinstance(atom, str) else _floor_text(atom)] * power
        parts.append(" * ".join(factors))
    return " + ".join(parts) or "0"


def _floor_text(atom: Floor) -> str:
    denominator = lcm(*(c.denominator for _, c in atom.of))  # isl cannot read fractions within a floor
    return f"floor(({polynomial_text(atom.of * denominator)})/{denominator})"
