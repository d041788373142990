"""How a kernel's parameters compare in size: tile sizes are far below extents. Which case holds for large sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Condition, Const, FloorDiv, Mod, Sym
from roofdsl.loops.model import Kernel, Tile
from roofdsl.loops.transform import apply
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Floor, Quasi, floors_of
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
    for far in _far_points(sorted(form.names()), order, rests):
        k = next((k for k, c in enumerate(form.cases) if c.holds(far)), None)
        if k is not None:
            found[k] = found.get(k, 0) + 1
    if not found:
        return Case((), Quasi.constant(0))
    return form.cases[max(found, key=lambda k: (found[k], -k))]


def value_of(form: Cases, order: Growth, at: Mapping[str, int], where: Condition | None) -> Quasi | None:
    """The polynomial of a form for large sizes that have the remainders of the sizes `at` and meet `where`.

    None if the polynomial depends on remainders that `at` and `where` do not fix, or if the classes are too many.
    """
    every = classes_of(form, at, where)
    found = {_value(form, order, rests) for rests in every or ()}
    return found.pop() if len(found) == 1 else None


def leading_of(form: Cases, order: Growth, at: Mapping[str, int], where: Condition | None) -> Quasi | None:
    """The leading terms of `value_of`; these may agree even if `value_of` depends on open remainders."""
    every = classes_of(form, at, where)
    if every is None:
        return None if remainders_decide(form) else leading_anywhere(large_case(form, order).value, order)
    found = {order.leading(_value(form, order, rests)) for rests in every}
    return found.pop() if len(found) == 1 else None


def _value(form: Cases, order: Growth, rests: Class) -> Quasi:
    return resolved(large_case(form, order, rests).value, far_sizes(form, order, rests))


def remainders_decide(form: Cases) -> bool:
    """Whether conditions of the cases contain floors."""
    return any(floors_of(v) for c in form.cases for a in c.alternatives for v, _ in a)


def leading_anywhere(value: Quasi, order: Growth) -> Quasi | None:
    """The leading terms of a polynomial with floors, whatever the remainders; None if these may decide them.

    Each floor is its argument less a rest between 0 and 1: terms with rests have to be of lower order.
    """
    rests: set[str] = set()

    def rest(floor: Floor) -> Quasi:
        rests.add(str(floor))
        return Quasi.symbol(str(floor))

    try:
        whole = order.open(value, rest)
    except ValueError:  # a division by a floor
        return None
    without = {m: tuple((a, p) for a, p in m if a not in rests) for m, _ in whole}
    lead = order.leading(Quasi.of({m: c for m, c in whole if without[m] == m}))
    below = [order.weight(without[m]) for m, _ in whole if without[m] != m]
    return None if below and (not lead or max(below) >= order.leading_weight(lead)) else lead


MOST_CLASSES = 4096
"""The maximum number of residue classes in which the leading terms of a form are compared."""


def classes_of(form: Cases, at: Mapping[str, int], where: Condition | None = None) -> list[Class] | None:
    """The residue classes in which each case of `form` is a polynomial, for sizes with the remainders of `at` that meet
    `where`; None if there are very many, or if `where` is about a number of tiles, n // b.
    """
    if where is not None and any(isinstance(e, FloorDiv) and e.divisor.symbols() for e in where.walk()):
        return None
    period = joined(periods(form.polynomials()), {} if where is None else _periods_of_condition(where))
    known = {n: v for n, v in at.items() if n in period}
    if how_many(period, known) > MOST_CLASSES:
        return None
    every = list(classes(period, known))
    return [c for c in every if where is None or where.holds({r.name: r.rest for r in c})]


def far_sizes(form: Cases, order: Growth, rests: Class) -> dict[str, int]:
    """Large sizes of a residue class, as close together as the class allows, with tile sizes far below the others."""
    return next(_far_points(sorted(form.names()), order, rests))


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
    # A constraint is affine in `name`: its values at 0 and 1 show its slope, and a rising one holds from its zero on.
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
