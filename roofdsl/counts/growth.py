"""How a kernel's parameters compare in size: tile sizes are far below extents. Which case holds for large sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Condition, Const, Mod, Sym
from roofdsl.loops.model import Kernel, Tile
from roofdsl.loops.transform import apply
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.residues import Class, classes, how_many, joined, periods, resolved

FAR = 720720 << 24
"""A size at which the case for large sizes holds; a multiple of every small number and of `FAR_TILE`."""

FAR_TILE = 720720


def growth_of(kernel: Kernel) -> Growth:
    """How the parameters grow: tile sizes are far below the others."""
    return Growth(tile_names(kernel))


def tile_names(kernel: Kernel) -> frozenset[str]:
    """The tile sizes: parameters that are loop steps, sizes of a `tile`, or divisors in assumptions."""
    found = {s.name for d in kernel.directives if isinstance(d, Tile) for s in d.sizes if isinstance(s, Sym)}
    for placed in statements(apply(kernel).body):
        found |= {loop.step.name for loop in placed.loops if isinstance(loop.step, Sym)}
    for assumed in kernel.assumptions:
        found |= {m.divisor.name for m in _moduli(assumed) if isinstance(m.divisor, Sym)}
    return frozenset(found)


def _moduli(of: Condition) -> Iterator[Mod]:
    return (node for node in of.walk() if isinstance(node, Mod))


def large_case(form: Cases, order: Growth, rests: Class = ()) -> Case:
    """The case that holds for most large sizes of a residue class, whichever of them is the largest.

    A case of 0 if none does.
    """
    found: dict[int, int] = {}
    for far in _far_points(_names(form), order, rests):
        k = next((k for k, c in enumerate(form.cases) if c.holds(far)), None)
        if k is not None:
            found[k] = found.get(k, 0) + 1
    if not found:
        return Case((), Quasi.constant(0))
    return form.cases[max(found, key=lambda k: (found[k], -k))]


def value_of(form: Cases, order: Growth, at: Mapping[str, int], where: Condition | None) -> Quasi | None:
    """The polynomial of a form for large sizes that have the remainders of the sizes `at` and meet `where`.

    None if the polynomial depends on remainders that `at` and `where` do not fix.
    """
    found = _values(form, order, at, where)
    return found.pop() if len(found) == 1 else None


def leading_of(form: Cases, order: Growth, at: Mapping[str, int], where: Condition | None) -> Quasi | None:
    """The leading terms of `value_of`; these may agree even if `value_of` depends on open remainders."""
    found = {order.leading(value) for value in _values(form, order, at, where)}
    return found.pop() if len(found) == 1 else None


def _values(form: Cases, order: Growth, at: Mapping[str, int], where: Condition | None) -> set[Quasi]:
    return {
        resolved(large_case(form, order, rests).value, far_sizes(form, order, rests))
        for rests in classes_of(form, at, where)
    }


MOST_CLASSES = 4096
"""The maximum number of residue classes in which the leading terms of a form are compared."""


def classes_of(form: Cases, at: Mapping[str, int], where: Condition | None = None) -> list[Class]:
    """The residue classes in which each case of `form` is a polynomial, for sizes with the remainders of `at` that meet
    `where`.

    If there are very many, only one: sizes that `at` does not give are taken as multiples of their periods.
    """
    values = [v for c in form.cases for v in (c.value, *(v for a in c.alternatives for v, _ in a))]
    period = joined(periods(values), {} if where is None else _periods_of_condition(where))
    known = {n: v for n, v in at.items() if n in period}
    if how_many(period, known) > MOST_CLASSES:
        known = dict.fromkeys(period, 0) | known
    every = list(classes(period, known))
    return [c for c in every if where is None or where.holds({r.name: r.rest for r in c})]


def far_sizes(form: Cases, order: Growth, rests: Class) -> dict[str, int]:
    """Large sizes of a residue class, as close together as the class allows, with tile sizes far below the others."""
    return next(_far_points(_names(form), order, rests))


def _names(form: Cases) -> list[str]:
    return sorted(
        {n for c in form.cases for n in c.value.names()}
        | {n for c in form.cases for a in c.alternatives for v, _ in a for n in v.names()}
    )


def _far_points(names: list[str], order: Growth, rests: Class = ()) -> Iterator[dict[str, int]]:
    """Large sizes of a residue class: all equal, or nearly so, except that tile sizes are far smaller; then each name
    in turn is the largest.
    """

    def inside(sizes: dict[str, int]) -> dict[str, int]:
        return sizes | {r.name: r.nearest(sizes[r.name]) for r in rests if r.name in sizes}

    base = {n: FAR_TILE if n in order.tiles else FAR for n in names}
    yield inside(base)
    for shift in range(len(names) if len(names) > 1 else 0):
        yield inside({n: base[n] << (k + shift) % len(names) for k, n in enumerate(names)})
        yield inside({n: base[n] << (shift - k) % len(names) for k, n in enumerate(names)})


def _periods_of_condition(where: Condition) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in _moduli(where):
        if isinstance(each.divisor, Const):
            found = joined(found, dict.fromkeys(each.numerator.symbols(), each.divisor.value))
    return found


def smallest(case: Case, name: str, order: Growth) -> Fraction:
    """The least value of `name` for which the case holds, if all other parameters are large; 0 if none is stated."""
    far = {n: FAR_TILE if n in order.tiles else FAR for a in case.alternatives for v, _ in a for n in v.names()}
    found = []
    for alternative in case.alternatives:
        bounds = [Fraction(0)]
        for value, zero in alternative:
            at_none, at_one = value.evaluate({**far, name: 0}), value.evaluate({**far, name: 1})
            slope = at_one - at_none
            if slope > 0 or (zero and slope):
                bounds.append(-at_none / slope)
        found.append(max(bounds))
    return min(found, default=Fraction(0))
