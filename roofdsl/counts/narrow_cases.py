"""Which cases of Q(Z) a person reads: those that hold on areas of sizes and cache sizes, not on single lines of them.

Between two plateaus, the reuse distances of the first and the last rows and columns are passed one after another. Each
step is a case of its own, such as `Z = 32*w - 88`, which holds at a few cache sizes for every h and w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

from roofdsl.formulas.writing import remainder
from roofdsl.sets.cases import Case, Constraint
from roofdsl.sets.facts import CACHE, Fact, whole_units
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Term, Terms

NARROW = 8
"""The most values of Z, or of a difference of sizes, that a narrow case has room for."""

FEW, MANY = 3, 5
"""So few narrow cases are listed with the others; more cases than `MANY` are shown without those on strips."""

MANY_TERMS = 12
"""A sum with more terms than this is shown by those of the highest order."""


def apart(cases: Sequence[Case], assumes: Sequence[Fact], order: Growth) -> tuple[list[Case], list[Case]]:
    """The cases to show, and those that hold only on single lines or narrow strips of sizes and cache sizes.

    A strip is narrow if it has room for a few values of Z. If many cases are left, one is narrow also if it vanishes
    beside Z for large sizes, as from 16*h*w - 32*h to 16*h*w - 16*h.
    """
    unit_bytes = whole_units(assumes)
    narrow = [c for c in cases if _every(c, lambda a, b: _few_values(a, b, unit_bytes))]
    if len(cases) - len(narrow) > MANY:
        narrow = [c for c in cases if c in narrow or _every(c, lambda a, b: _vanishes(a, b, order))]
    if len(narrow) <= FEW or len(narrow) == len(cases):
        return list(cases), []
    return [c for c in cases if c not in narrow], narrow


def _every(case: Case, narrow: Callable[[Quasi, Quasi], bool]) -> bool:
    """Whether each alternative is an equation with sizes, or lies between two bounds with sizes that are `narrow`.

    A case with plain numbers for Z, as 24 <= Z <= 32, is no strip of sizes: it may be a plateau. A condition on
    remainders, such as n % 8 = 0, is none either.
    """

    def on_strip(constraints: tuple[Constraint, ...]) -> bool:
        of_sizes = [(v, zero) for v, zero in constraints if v.names() - {CACHE} and remainder(v, zero) is None]
        pairs = combinations([value for value, _ in of_sizes], 2)
        return any(zero for _, zero in of_sizes) or any(narrow(a, b) for a, b in pairs)

    return bool(case.alternatives) and all(map(on_strip, case.alternatives))


def _few_values(a: Quasi, b: Quasi, unit_bytes: int) -> bool:
    """Whether a few values of Z, or of sizes, lie between a >= 0 and b >= 0, for all sizes."""
    slopes = dict(b.terms)
    opposite = next((m for m, c in a if m and c * slopes.get(m, Fraction(0)) < 0), None)
    if opposite is None:
        return False
    width = a + b * (-dict(a.terms)[opposite] / slopes[opposite])
    slope = abs(_slope(a))
    step = slope * unit_bytes if slope else min(abs(c) for m, c in a if m)
    return width.is_constant() and width.constant_value() / step < NARROW


def _vanishes(a: Quasi, b: Quasi, order: Growth) -> bool:
    """Whether the distance in Z of a >= 0 and b >= 0 is of lower order in the sizes than Z itself is there."""
    up, down = _slope(a), _slope(b)
    if up * down >= 0:
        return False
    width = a * (1 / abs(up)) + b * (1 / abs(down))
    return order.leading_weight(width) < order.leading_weight(a - Quasi.symbol(CACHE) * up)


def _slope(value: Quasi) -> Fraction:
    return dict(value.terms).get(((CACHE, 1),), Fraction(0))


def leading_part(form: Terms, order: Growth) -> Terms:
    """The terms without a condition and those of the highest order in the sizes; all of them unless they are many.

    A name that is defined for an iteration, such as r1, counts as a size, and so does the variable of a sum. Such a
    term may be smaller than it seems. So the highest order is that of the other terms.
    """
    if len(form.terms) <= MANY_TERMS:
        return form
    defined = {d.name for d in form.definitions}
    plain = [t for t in form.terms if t.over is None and not t.names() & defined]

    def weight(term: Term) -> tuple[int, int]:
        extents, tiles = order.leading_weight(order.leading(term.value))
        return extents + (term.over is not None), tiles

    top = max(map(weight, plain), default=(0, 0))
    kept = [t for t in form.terms if weight(t) >= top or (t in plain and not t.where)]
    return form.only(kept) if len(kept) < len(form.terms) - FEW else form
