"""Closed forms as quotients in lowest terms, and ratios of them case by case.

This is plain Python. Only common divisors that take much work are left to sympy (`roofdsl.formulas.cancel`).
`roofdsl.formulas.sympy_forms` turns the results into sympy expressions, and `roofdsl.formulas.writing` into text and
LaTeX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from roofdsl.formulas.factoring import without_common_factor
from roofdsl.lang.record import Record
from roofdsl.sets.cases import Cases, Constraint
from roofdsl.sets.quasi import Atom, Floor, Monomial, Quasi

Alternatives = tuple[tuple[Constraint, ...], ...]
"""A condition: one of several conjunctions of constraints holds; without any, it always holds."""


ONE = Quasi.constant(1)


class Quotient(Record):
    """top / bottom, in lowest terms as returned by `quotient`; bottom is 1 for a polynomial."""

    top: Quasi
    bottom: Quasi = ONE

    def names(self) -> frozenset[str]:
        return self.top.names() | self.bottom.names()

    def constant(self) -> Fraction | None:
        """The value of a constant; None for others."""
        if self.top.is_constant() and self.bottom.is_constant():
            return self.top.constant_value() / self.bottom.constant_value()
        return None

    def replaced(self, replace: Callable[[Quasi], Quasi]) -> Quotient:
        """The quotient with both parts rewritten, again in lowest terms; unchanged if the new bottom is 0."""
        return quotient(replace(self.top), replace(self.bottom)) or self


# ---- lowest terms ----


def quotient(top: Quasi, bottom: Quasi) -> Quotient | None:
    """top / bottom in lowest terms; a polynomial if bottom divides every term. None if bottom is 0."""
    if not bottom:
        return None
    if not top:
        return Quotient(Quasi.constant(0))
    if len(bottom.terms) == 1:
        whole = top * bottom**-1
        if all(e > 0 or _is_tile_quotient(top, a) for m, _ in whole for a, e in m):
            return Quotient(whole)
    top, bottom = _without_common_monomial(top, bottom)
    if len(top.terms) > 1 and len(bottom.terms) > 1:
        top, bottom = _without_common_factor(top, bottom)
    if bottom.is_constant():
        return Quotient(top * (1 / bottom.constant_value()))
    scale = Fraction(lcm(*(c.denominator for part in (top, bottom) for _, c in part)))
    scale /= gcd(*(int(c * scale) for part in (top, bottom) for _, c in part))
    if ordered(bottom)[0][1] < 0:
        scale = -scale
    return Quotient(top * scale, bottom * scale)


def _is_tile_quotient(top: Quasi, atom: Atom) -> bool:
    """Whether `atom` is in a denominator in `top` itself, like b in n/b."""
    return any(a == atom and e < 0 for m, _ in top for a, e in m)


def _without_common_monomial(top: Quasi, bottom: Quasi) -> tuple[Quasi, Quasi]:
    atoms = top.atoms() | bottom.atoms()
    for atom in sorted(atoms, key=str):
        least = min(dict(m).get(atom, 0) for part in (top, bottom) for m, _ in part)
        if least:
            factor = Quasi.symbol(atom, -least)
            top, bottom = top * factor, bottom * factor
    return top, bottom


def _without_common_factor(top: Quasi, bottom: Quasi) -> tuple[Quasi, Quasi]:
    """Both polynomials of several terms, divided by their greatest common divisor; floors count as symbols."""
    atoms = top.atoms() | bottom.atoms()
    if len(atoms) == 1:
        (atom,) = atoms
        a, b = coefficients_of(top, atom), coefficients_of(bottom, atom)
        divisor, rest = a, b
        while rest:
            divisor, rest = rest, _divided(divisor, rest)[1]
        if len(divisor) == 1:
            return top, bottom
        return _polynomial(_divided(a, divisor)[0], atom), _polynomial(_divided(b, divisor)[0], atom)
    ratio = _proportion(top, bottom)
    if ratio is not None:
        return Quasi.constant(ratio), Quasi.constant(1)
    found = without_common_factor(top, bottom)
    if found is not None:
        return found
    from roofdsl.formulas.cancel import cancelled

    return cancelled(top, bottom)


def _proportion(top: Quasi, bottom: Quasi) -> Fraction | None:
    ratios = {c / d for (_, c), (_, d) in zip(top, bottom, strict=False)}
    same = [m for m, _ in top] == [m for m, _ in bottom]
    return ratios.pop() if same and len(ratios) == 1 else None


def coefficients_of(value: Quasi, atom: Atom) -> list[Fraction]:
    """Coefficients of a polynomial in one atom, from the constant up."""
    found = {(m[0][1] if m else 0): c for m, c in value}
    return [found.get(k, Fraction(0)) for k in range(max(found) + 1)]


def _polynomial(coefficients: list[Fraction], atom: Atom) -> Quasi:
    return Quasi.of({((atom, k),) if k else (): c for k, c in enumerate(coefficients)})


def _divided(a: list[Fraction], b: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """(quotient, remainder) of two polynomials, without leading zeros."""
    rest, whole = list(a), [Fraction(0)] * max(1, len(a) - len(b) + 1)
    while len(rest) >= len(b):
        factor, shift = rest[-1] / b[-1], len(rest) - len(b)
        whole[shift] = factor
        for k, c in enumerate(b):
            rest[shift + k] -= factor * c
        while rest and not rest[-1]:
            rest.pop()
    return whole, rest


def degree(monomial: Monomial) -> int:
    return sum(e for _, e in monomial)


def ordered(value: Quasi) -> list[tuple[Monomial, Fraction]]:
    """The terms by descending degree; within a degree, by the powers of the names."""
    names = sorted({str(a) for m, _ in value for a, _ in m})

    def key(term: tuple[Monomial, Fraction]) -> tuple[int, list[int]]:
        powers = {str(a): e for a, e in term[0]}
        return -degree(term[0]), [-powers.get(n, 0) for n in names]

    return sorted(value, key=key)


# ---- ratios of closed forms ----


class RatioCase(Record):
    """top / bottom of complete forms, if a condition holds (`quotient` gives lowest terms)."""

    top: Quasi
    bottom: Quasi
    where: Alternatives

    @property
    def value(self) -> Quotient:
        found = quotient(self.top, self.bottom)
        if found is None:
            raise ZeroDivisionError("a case of a ratio whose denominator is 0")
        return found


def ratio_cases(top: Cases, bottom: Cases, *, of_work: bool = False) -> list[RatioCase]:
    """The cases of top / bottom in which bottom is not 0, in the order in which to try them.

    of_work: top is W, so there is no ratio if it is 0, either (docs/rules.md, rule 16).
    """
    if of_work and not top.cases:
        return []
    zero = Quasi.constant(0)
    rows = []
    for below in bottom.cases:
        matching = [c for c in top.cases if c.alternatives == below.alternatives]
        whole = matching or [c for c in top.cases if not c.alternatives]
        if whole:
            rows.append(RatioCase(whole[0].value, below.value, below.alternatives))
            continue
        for above in top.cases:
            rows.append(RatioCase(above.value, below.value, _both(above.alternatives, below.alternatives)))
        rows.append(RatioCase(zero, below.value, below.alternatives))
    return [row for row in rows if row.bottom and (row.top or not of_work)]


def _both(a: Alternatives, b: Alternatives) -> Alternatives:
    if not a or not b:
        return a or b
    return tuple(tuple(dict.fromkeys((*x, *y))) for x in a for y in b)


class Shorthand(Record):
    """A name for one of the kernel's floors plus an integer combination of other terms; it keeps products intact."""

    name: str
    meaning: str  # as the kernel writes it
    floor: Floor
    rest: Quasi  # name = floor + rest


def shortened(value: Quasi, names: Mapping[Floor, Shorthand]) -> Quasi:
    """`value` with every named floor written by its name."""
    if not names or not any(isinstance(a, Floor) and a in names for a in value.atoms()):
        return value

    def base(atom: Atom) -> Quasi:
        short = names.get(atom) if isinstance(atom, Floor) else None
        return Quasi.symbol(atom) if short is None else Quasi.symbol(short.name) - short.rest

    return reduce(
        lambda total, term: (
            total
            + reduce(
                lambda part, factor: part * (base(factor[0]) ** factor[1]),
                term[0],
                Quasi.constant(term[1]),
            )
        ),
        value,
        Quasi.constant(0),
    )
