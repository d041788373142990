"""Closed forms prepared for printing: the case that holds for large sizes first, conditions as people write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm
from typing import Any

from roofdsl.analysis.derive import Quantity, Ratio
from roofdsl.analysis.expressions import condition, polynomial, quotient
from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Condition, IntExpr, Mod, Sym
from roofdsl.loops.model import Kernel, Tile
from roofdsl.loops.transform import apply
from roofdsl.polyhedral.cases import Case, Cases, Constraint
from roofdsl.polyhedral.plateaus import Growth
from roofdsl.polyhedral.quasi import Quasi

Alternatives = tuple[tuple[Constraint, ...], ...]

FAR = 720720 << 24
"""A size at which the case for large sizes holds; a multiple of every small number and of `FAR_TILE`."""

FAR_TILE = 720720


@dataclass(frozen=True)
class Branch:
    """`expr` (sympy) where `where` holds; no alternatives: everywhere."""

    expr: Any
    where: Alternatives


@dataclass(frozen=True)
class Form:
    """A closed form: what holds for large sizes, and the other cases. 0 (undefined for a ratio) where none holds."""

    main: Branch
    others: tuple[Branch, ...]

    @property
    def branches(self) -> tuple[Branch, ...]:
        return (self.main, *self.others)


def growth_of(kernel: Kernel) -> Growth:
    """Which parameters are tile sizes: what loops step by, tiles are cut to, and extents are multiples of."""
    found = {s.name for d in kernel.directives if isinstance(d, Tile) for s in d.sizes if isinstance(s, Sym)}
    for placed in statements(apply(kernel).body):
        found |= {loop.step.name for loop in placed.loops if isinstance(loop.step, Sym)}
    for assumed in kernel.assumptions:
        found |= {m.divisor.name for m in _moduli(assumed) if isinstance(m.divisor, Sym)}
    return Growth(frozenset(found))


def _moduli(node: Condition | IntExpr) -> Iterator[Mod]:
    if isinstance(node, Mod):
        yield node
    for value in vars(node).values():
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, (Condition, IntExpr)):
                yield from _moduli(child)


def large_case(form: Cases, order: Growth) -> Case:
    """The case that holds for all large sizes; a case of 0 where none does."""
    names = {n for c in form.cases for n in c.value.names()}
    names |= {n for c in form.cases for a in c.alternatives for v, _ in a for n in v.names()}
    env = {n: FAR_TILE if n in order.tiles else FAR for n in names}
    return next((c for c in form.cases if c.holds(env)), Case((), Quasi.constant(0)))


def of_quantity(q: Quantity, order: Growth) -> Form | None:
    """The form of a quantity; None where there is none."""
    if q.form is None:
        return None
    main = large_case(q.form, order)
    others = tuple(Branch(polynomial(c.value), c.alternatives) for c in q.form.cases if c is not main)
    return Form(Branch(polynomial(main.value), main.alternatives), others)


def of_ratio(r: Ratio, order: Growth) -> Form | None:
    """The form of a ratio, case by case; None where there is none or its cases are not those of one of the two."""
    rows = ratio_cases(r)
    if not rows:
        return None
    whole = Cases(tuple(Case(where, top) for top, _, where in rows))
    main = large_case(whole, order)
    branches = [(w, Branch(quotient(top, bottom), w)) for top, bottom, w in rows]
    chosen = next((b for w, b in branches if w == main.alternatives), branches[0][1])
    return Form(chosen, tuple(b for _, b in branches if b is not chosen))


def ratio_cases(r: Ratio) -> list[tuple[Quasi, Quasi, Alternatives]]:
    """(numerator, denominator, where) of every case in which the ratio is defined. Empty where there is no form."""
    top, bottom = r.numerator.form, r.denominator.form
    if top is None or bottom is None or (r.of_work and not top.cases):
        return []
    above = top.cases or (Case((), Quasi.constant(0)),)
    rows = []
    for below in bottom.cases:
        for case in above:
            same = case.alternatives == below.alternatives
            if same or not case.alternatives or not below.alternatives:
                rows.append((case.value, below.value, below.alternatives or case.alternatives))
            elif not any(c.alternatives == below.alternatives for c in above):
                rows.append((case.value, below.value, _both(case.alternatives, below.alternatives)))
    return [row for row in rows if row[1] and (row[0] or not r.of_work)]


def _both(a: Alternatives, b: Alternatives) -> Alternatives:
    return tuple(tuple(dict.fromkeys((*x, *y))) for x in a for y in b)


def expression_of(q: Quantity | Ratio) -> Any:
    """The whole form as one sympy expression, a Piecewise where it has cases; None where there is none."""
    if isinstance(q, Quantity):
        return q.sympy()
    import sympy

    rows = ratio_cases(q)
    if not rows:
        return None
    if len(rows) == 1 and not rows[0][2]:
        return quotient(rows[0][0], rows[0][1])
    branches = [(quotient(top, bottom), condition(where) if where else True) for top, bottom, where in rows]
    whole = q.denominator.form is not None and q.denominator.form.single is not None
    return sympy.Piecewise(*branches, (0 if whole and not q.of_work else sympy.nan, True))


def limit_of(r: Ratio, order: Growth) -> Any:
    """The ratio of the leading terms for large sizes, as a sympy expression; None where there is no form."""
    if not ratio_cases(r) or r.numerator.form is None or r.denominator.form is None:
        return None
    top = large_case(r.numerator.form, order).value
    bottom = order.leading(large_case(r.denominator.form, order).value)
    return quotient(order.leading(top), bottom) if bottom and top else None


# ---- conditions ----


def condition_text(where: Alternatives) -> str:
    """A condition as one writes it by hand: `n >= 3`, `9 <= n <= 56 and m >= 2`, alternatives joined by `or`."""
    return " or ".join(" and ".join(_conjunction(each)) for each in where)


def _conjunction(constraints: tuple[Constraint, ...]) -> list[str]:
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    rest: list[str] = []
    for value, zero in constraints:
        bound = None if zero else _bound(value)
        if bound is None:
            rest.append(_relation(value, zero))
        elif bound[1]:
            low[bound[0]] = bound[2]
        else:
            high[bound[0]] = bound[2]
    out = []
    for name in sorted({*low, *high}):
        if name in low and name in high:
            out.append(f"{name} = {low[name]}" if low[name] == high[name] else f"{low[name]} <= {name} <= {high[name]}")
        else:
            out.append(f"{name} >= {low[name]}" if name in low else f"{name} <= {high[name]}")
    return out + sorted(rest)


def _bound(value: Quasi) -> tuple[str, bool, int] | None:
    """(name, whether from below, bound) of `value >= 0` in one parameter to the first power."""
    linear = [(m, c) for m, c in value if m]
    if len(linear) != 1:
        return None
    ((monomial, c),) = linear
    if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], str):
        return None
    edge = -value.constant_value() / c
    return monomial[0][0], c > 0, -(-edge // 1) if c > 0 else edge // 1


def _relation(value: Quasi, zero: bool) -> str:
    value = _cleared(value)
    positive = Quasi.of({m: c for m, c in value if c > 0})
    negative = -Quasi.of({m: c for m, c in value if c < 0})
    return f"{polynomial(positive)} {'=' if zero else '>='} {polynomial(negative)}"


def _cleared(value: Quasi) -> Quasi:
    """`value` times what makes its coefficients and exponents whole and positive; parameters are positive."""
    factor = Quasi.constant(lcm(*(c.denominator for _, c in value)) if value else 1)
    lowest: dict[str, int] = {}
    for monomial, _ in value:
        for atom, power in monomial:
            if isinstance(atom, str):
                lowest[atom] = min(lowest.get(atom, 0), power)
    for atom, power in lowest.items():
        factor = factor * Quasi.symbol(atom, -power)
    return value * factor
