"""How a kernel's parameters compare in size: tile sizes far below extents, and which case holds for large ones."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Condition, IntExpr, Mod, Sym
from roofdsl.loops.model import Kernel, Tile
from roofdsl.loops.transform import apply
from roofdsl.polyhedral.cases import Case, Cases
from roofdsl.polyhedral.plateaus import Growth
from roofdsl.polyhedral.quasi import Quasi

FAR = 720720 << 24
"""A size at which the case for large sizes holds; a multiple of every small number and of `FAR_TILE`."""

FAR_TILE = 720720


def growth_of(kernel: Kernel) -> Growth:
    """How the parameters grow: tile sizes far below the others."""
    return Growth(tile_names(kernel))


def tile_names(kernel: Kernel) -> frozenset[str]:
    """The tile sizes: what loops step by, tiles are cut to, and extents are multiples of."""
    found = {s.name for d in kernel.directives if isinstance(d, Tile) for s in d.sizes if isinstance(s, Sym)}
    for placed in statements(apply(kernel).body):
        found |= {loop.step.name for loop in placed.loops if isinstance(loop.step, Sym)}
    for assumed in kernel.assumptions:
        found |= {m.divisor.name for m in _moduli(assumed) if isinstance(m.divisor, Sym)}
    return frozenset(found)


def _moduli(node: Condition | IntExpr) -> Iterator[Mod]:
    if isinstance(node, Mod):
        yield node
    for value in vars(node).values():
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, (Condition, IntExpr)):
                yield from _moduli(child)


def large_case(form: Cases, order: Growth) -> Case:
    """The case that holds for most large sizes, whichever of them is the largest; a case of 0 where none does."""
    names = sorted(
        {n for c in form.cases for n in c.value.names()}
        | {n for c in form.cases for a in c.alternatives for v, _ in a for n in v.names()}
    )
    found: dict[int, int] = {}
    for far in _far_points(names, order):
        k = next((k for k, c in enumerate(form.cases) if c.holds(far)), None)
        if k is not None:
            found[k] = found.get(k, 0) + 1
    if not found:
        return Case((), Quasi.constant(0))
    return form.cases[max(found, key=lambda k: (found[k], -k))]


def _far_points(names: list[str], order: Growth) -> Iterator[dict[str, int]]:
    """Large sizes: all equal, then each name in turn the largest."""
    base = {n: FAR_TILE if n in order.tiles else FAR for n in names}
    yield base
    for shift in range(len(names) if len(names) > 1 else 0):
        yield {n: base[n] << (k + shift) % len(names) for k, n in enumerate(names)}
        yield {n: base[n] << (shift - k) % len(names) for k, n in enumerate(names)}


def smallest(case: Case, name: str, order: Growth) -> Fraction:
    """The least value of `name` at which the case holds, with all other parameters large; 0 where none is stated."""
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
