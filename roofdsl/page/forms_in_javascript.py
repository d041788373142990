"""The engine's expressions as JavaScript: exact functions over BigInt.

A quasi-polynomial becomes `[numerator, denominator]`, two integer expressions with a positive denominator, so that
nothing is rounded before the page computes the quotient. A parameter `n` has the JavaScript name `$n`, which is neither
a reserved word of that language nor a name in the page. `exact.js` defines the helpers used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import lcm

from roofdsl.loops.integers import (
    And,
    Compare,
    Condition,
    Const,
    FloorDiv,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Product,
    Sum,
    Sym,
    Tree,
    fold,
)
from roofdsl.sets.cases import Cases, Constraint
from roofdsl.sets.facts import Compared
from roofdsl.sets.quasi import Atom, Quasi


def function(form: Cases) -> str:
    """A closed form as a function of an object of BigInts by parameter; 0 if no case applies."""
    floors: Floors = {}
    out = "[0n, 1n]"
    for case in reversed(form.cases):
        value = "[{}, {}]".format(*fraction(case.value, floors))
        out = f"{any_of(case.alternatives, floors)} ? {value} : {out}" if case.alternatives else value
    return f"{parameters(form.names())} => {_with_floors(out, floors)}"


def _with_floors(out: str, floors: Floors) -> str:
    """The body of a function that returns `out`, with names for the floors in it."""
    known = ", ".join(f"{symbol} = {text}" for text, symbol in floors.items())
    return f"{{ const {known}; return {out}; }}" if floors else out


def truth(conditions: Iterable[Condition | Compared]) -> str:
    """Whether all conditions hold, as a function of an object of BigInts by parameter."""
    every, floors = list(conditions), Floors()
    names = frozenset[str]().union(*(c.symbols() for c in every))
    tests = [_compared(c, floors) if isinstance(c, Compared) else condition(c) for c in every]
    return f"{parameters(names)} => {_with_floors(' && '.join(tests) or 'true', floors)}"


def parameters(names: frozenset[str]) -> str:
    """A function's parameter list, which takes these values out of an object of BigInts."""
    if not names:
        return "()"
    return f"({{{', '.join(f'{n}: {name(n)}' for n in sorted(names))}}})"


def name(parameter: str) -> str:
    """The JavaScript name of a parameter."""
    return f"${parameter}"


# ---- quasi-polynomials ----

Floors = dict[str, str]
"""The floors met so far, as JavaScript, with the constant for each; an inner floor comes before the outer one."""


def fraction(value: Quasi, floors: Floors) -> tuple[str, str]:
    """(numerator, denominator) as JavaScript; the denominator is positive, a number times powers of parameters.

    Floors are replaced by the constants named in `floors`, to which new ones are added. Raises ValueError for a floor
    in a denominator.
    """
    number = lcm(*(c.denominator for _, c in value)) if value else 1
    lowest: dict[Atom, int] = {}
    for monomial, _ in value:
        for atom, power in monomial:
            lowest[atom] = min(lowest.get(atom, 0), power)
    below = {atom: -power for atom, power in lowest.items() if power < 0}
    if any(not isinstance(atom, str) for atom in below):
        raise ValueError(f"a floor in a denominator: {value}")
    terms = []
    for monomial, c in reversed(value.terms):
        powers = dict(monomial)
        raised = {atom: powers.get(atom, 0) + below.get(atom, 0) for atom in (*powers, *(a for a in below))}
        terms.append(_product(int(c * number), raised, floors))
    return _sum(terms), _product(number, below, floors)


def _product(coefficient: int, powers: Mapping[Atom, int], floors: Floors) -> str:
    bases = [(_atom(a, floors), e) for a, e in powers.items() if e]
    factors = [f"{base} ** {e}n" if e > 1 else base for base, e in bases]
    if coefficient != 1 or not factors:
        factors.insert(0, f"{coefficient}n")
    return " * ".join(factors)


def _atom(atom: Atom, floors: Floors) -> str:
    if isinstance(atom, str):
        return name(atom)
    text = "floorDiv({}, {})".format(*fraction(atom.of, floors))
    return floors.setdefault(text, f"floor{len(floors)}")


def _sum(terms: Sequence[str]) -> str:
    text = ""
    for term in terms:
        part = f" - {term[1:].removeprefix('1n * ')}" if term.startswith("-") else f" + {term}"
        text += part if text else term
    return text or "0n"


# ---- conditions ----


def any_of(alternatives: Sequence[Sequence[Constraint]], floors: Floors) -> str:
    """A disjunction of conjunctions of `value == 0` and `value >= 0`."""
    return f"({' || '.join(_all_of(each, floors) for each in alternatives)})"


def _all_of(constraints: Sequence[Constraint], floors: Floors) -> str:
    tests = [f"{fraction(v, floors)[0]} {'===' if zero else '>='} 0n" for v, zero in constraints]
    return " && ".join(tests) or "true"


def _compared(of: Compared, floors: Floors) -> str:
    """A comparison of polynomials."""
    return f"{fraction(of.left - of.right, floors)[0]} {'===' if of.relation == '=' else of.relation} 0n"


def condition(of: Condition) -> str:
    """A condition over integer expressions."""
    return fold(of, _EXACT)


_EXACT: dict[type[Tree], Callable[..., str]] = {
    Const: lambda node: f"{node.value}n" if node.value >= 0 else f"({node.value}n)",
    Sym: lambda node: name(node.name),
    Sum: lambda _, *terms: f"({' + '.join(terms)})",
    Product: lambda _, *terms: f"({' * '.join(terms)})",
    Min: lambda _, *terms: f"least({', '.join(terms)})",
    Max: lambda _, *terms: f"greatest({', '.join(terms)})",
    FloorDiv: lambda _, numerator, divisor: f"floorDiv({numerator}, {divisor})",
    Mod: lambda _, numerator, divisor: f"modulo({numerator}, {divisor})",
    Compare: lambda node, left, right: f"{left} {({'==': '===', '!=': '!=='}).get(node.op, node.op)} {right}",
    And: lambda _, *parts: f"({' && '.join(parts)})",
    Or: lambda _, *parts: f"({' || '.join(parts)})",
    Not: lambda _, part: f"!({part})",
}
