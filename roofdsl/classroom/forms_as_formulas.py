"""The engine's closed forms as formulas of the answers' language."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.classroom.answer_language import Binary, Call, Name, Negative, Node, Number
from roofdsl.lang.diagnostics import CommandError
from roofdsl.sets.quasi import Floor, Quasi


def number(value: Fraction | int) -> Node:
    """A number as a formula."""
    exact = Fraction(value)
    return Negative(Number(-exact)) if exact < 0 else Number(exact)


def formula_of(value: Quasi) -> Node:
    """A polynomial with floors as a formula, with its terms in descending order of degree."""
    from roofdsl.formulas.quotients import ordered

    total: Node | None = None
    for monomial, c in ordered(value):
        above: list[Node] = []
        below: list[Node] = []
        for atom, power in monomial:
            base = _atom(atom)
            raised: Node = base if abs(power) == 1 else Binary("**", base, Number(Fraction(abs(power))))
            (above if power > 0 else below).append(raised)
        if abs(c.numerator) != 1 or not above:
            above.insert(0, Number(Fraction(abs(c.numerator))))
        if c.denominator != 1:
            below.insert(0, Number(Fraction(c.denominator)))
        term = above[0]
        for factor in above[1:]:
            term = Binary("*", term, factor)
        for factor in below:
            term = Binary("/", term, factor)
        if total is not None:
            term = Binary("-" if c < 0 else "+", total, term)
        elif c < 0:
            term = Negative(term)
        total = term
    return total if total is not None else Number(Fraction(0))


def _atom(atom: str | Floor) -> Node:
    return Name(atom) if isinstance(atom, str) else Call("floor", (formula_of(atom.of),))


def ratio(top: Quasi, bottom: Quasi) -> Node:
    """top / bottom in lowest terms. Raises CommandError if bottom is 0."""
    from roofdsl.formulas.quotients import quotient

    found = quotient(top, bottom)
    if found is None:
        raise CommandError("a ratio of an exercise divides by zero")
    above = formula_of(found.top)
    if found.bottom.is_constant() and found.bottom.constant_value() == 1:
        return above
    return Binary("/", above, formula_of(found.bottom))
