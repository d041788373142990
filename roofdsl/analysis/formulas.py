"""Closed forms as quotients in lowest terms, and how they are written: as text that sympy can read, and as LaTeX.

Plain Python, so that a report needs no sympy; `roofdsl.analysis.expressions` makes sympy expressions of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from roofdsl.lang.record import Record
from roofdsl.polyhedral.cases import Cases, Constraint
from roofdsl.polyhedral.quasi import Atom, Floor, Monomial, Quasi

Alternatives = tuple[tuple[Constraint, ...], ...]
"""A condition: one of several conjunctions of constraints; none at all: always."""


ONE = Quasi.constant(1)


class Quotient(Record):
    """top / bottom, in lowest terms as `quotient` makes it; bottom is 1 for a polynomial."""

    top: Quasi
    bottom: Quasi = ONE

    def __str__(self) -> str:
        return text(self)

    def names(self) -> frozenset[str]:
        return self.top.names() | self.bottom.names()

    def constant(self) -> Fraction | None:
        """The value of a constant."""
        if self.top.is_constant() and self.bottom.is_constant():
            return self.top.constant_value() / self.bottom.constant_value()
        return None

    def replaced(self, replace: Callable[[Quasi], Quasi]) -> Quotient:
        """The quotient with both parts rewritten, in lowest terms again."""
        return quotient(replace(self.top), replace(self.bottom)) or self


# ---- lowest terms ----


def quotient(top: Quasi, bottom: Quasi) -> Quotient | None:
    """top / bottom in lowest terms, a polynomial where bottom divides into every term; None where bottom is 0."""
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
    """Whether `atom` stands below a fraction bar in `top` itself, as b does in n/b."""
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
    """Divided by the greatest common divisor of two polynomials of several terms; floors count as symbols."""
    atoms = top.atoms() | bottom.atoms()
    if len(atoms) == 1:
        (atom,) = atoms
        a, b = _coefficients(top, atom), _coefficients(bottom, atom)
        divisor, rest = a, b
        while rest:
            divisor, rest = rest, _divided(divisor, rest)[1]
        if len(divisor) == 1:
            return top, bottom
        return _polynomial(_divided(a, divisor)[0], atom), _polynomial(_divided(b, divisor)[0], atom)
    ratio = _proportion(top, bottom)
    if ratio is not None:
        return Quasi.constant(ratio), Quasi.constant(1)
    from roofdsl.analysis.expressions import cancelled

    return cancelled(top, bottom)


def _proportion(top: Quasi, bottom: Quasi) -> Fraction | None:
    ratios = {c / d for (_, c), (_, d) in zip(top, bottom, strict=False)}
    same = [m for m, _ in top] == [m for m, _ in bottom]
    return ratios.pop() if same and len(ratios) == 1 else None


def _coefficients(value: Quasi, atom: Atom) -> list[Fraction]:
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


# ---- ratios of closed forms ----


class RatioCase(Record):
    """top / bottom, of full forms (`quotient` gives lowest terms), where a condition holds."""

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
    """The cases of top / bottom in which bottom is not 0, in the order in which they are to be tried.

    of_work: top is W, and where that is 0 there is no ratio either (counting_and_time.md, rule 16).
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


# ---- writing ----


def degree(monomial: Monomial) -> int:
    return sum(e for _, e in monomial)


def ordered(value: Quasi) -> list[tuple[Monomial, Fraction]]:
    """The terms from the greatest degree down, within a degree by the names' powers."""
    names = sorted({str(a) for m, _ in value for a, _ in m})

    def key(term: tuple[Monomial, Fraction]) -> tuple[int, list[int]]:
        powers = {str(a): e for a, e in term[0]}
        return -degree(term[0]), [-powers.get(n, 0) for n in names]

    return sorted(value, key=key)


class Style(Record):
    """How the pieces of an expression are put down."""

    atom: Callable[[Atom], str]
    power: Callable[[str, int], str]
    product: Callable[[list[str]], str]
    fraction: Callable[[str, str, bool, bool], str]  # (top, bottom, whether each is a single factor)


def _written(value: Quasi, style: Style) -> str:
    parts: list[str] = []
    for monomial, c in ordered(value):
        body = _term(monomial, abs(c), style)
        sign = "-" if c < 0 else "+"
        parts.append(f" {sign} {body}" if parts else (f"-{body}" if c < 0 else body))
    return "".join(parts) or "0"


def _term(monomial: Monomial, c: Fraction, style: Style) -> str:
    above = [style.power(style.atom(a), e) for a, e in monomial if e > 0]
    below = [style.power(style.atom(a), -e) for a, e in monomial if e < 0]
    if c.numerator != 1 or not above:
        above.insert(0, str(c.numerator))
    if c.denominator != 1:
        below.insert(0, str(c.denominator))
    if not below:
        return style.product(above)
    return style.fraction(style.product(above), style.product(below), len(above) == 1, len(below) == 1)


def _quotient(value: Quotient, style: Style) -> str:
    top, bottom = _written(value.top, style), _written(value.bottom, style)
    if bottom == "1":
        return top
    single = len(value.bottom.terms) == 1 and len(value.bottom.terms[0][0]) + (value.bottom.terms[0][1] != 1) == 1
    return style.fraction(top, bottom, len(value.top.terms) == 1, single and len(value.bottom.terms) == 1)


def _text_fraction(top: str, bottom: str, top_single: bool, bottom_single: bool) -> str:
    # a product above the bar needs no brackets, only a sum does
    above = f"({top})" if " " in _outside_brackets(top) else top
    return f"{above}/{bottom if bottom_single else f'({bottom})'}"


def _outside_brackets(expression: str) -> str:
    out, depth = [], 0
    for character in expression:
        depth += character == "("
        if not depth:
            out.append(character)
        depth -= character == ")"
    return "".join(out)


TEXT = Style(
    lambda a: a if isinstance(a, str) else f"floor({text(whole(a))})",
    lambda base, power: base if power == 1 else f"{base}**{power}",
    "*".join,
    _text_fraction,
)


def whole(atom: Floor) -> Quotient:
    """What a floor rounds, as one fraction: (h + r)/2 for h/2 + r/2."""
    denominator = lcm(*(c.denominator for _, c in atom.of))
    return Quotient(atom.of * denominator, Quasi.constant(denominator))


def text(value: Quasi | Quotient) -> str:
    """`8*n**2 + 16*n`, `n/(4*n + 8)`: readable, and read by sympy."""
    return _quotient(value, TEXT) if isinstance(value, Quotient) else _written(value, TEXT)


def latex_name(name: str) -> str:
    """A parameter or array: one letter as it is, a longer name upright, as words are set."""
    return name if len(name) == 1 else f"\\mathrm{{{name.replace('_', chr(92) + '_')}}}"


LATEX = Style(
    lambda a: latex_name(a) if isinstance(a, str) else f"\\left\\lfloor {latex(whole(a))} \\right\\rfloor",
    lambda base, power: base if power == 1 else f"{base}^{{{power}}}",
    " ".join,
    lambda top, bottom, top_single, bottom_single: f"\\frac{{{top}}}{{{bottom}}}",
)


def latex(value: Quasi | Quotient) -> str:
    """`8 n^{2} + 16 n`, `\\frac{n}{4 n + 8}`: for math mode."""
    return _quotient(value, LATEX) if isinstance(value, Quotient) else _written(value, LATEX)


# ---- conditions ----


def sympy_condition(where: Alternatives) -> str:
    """A condition in sympy's own notation: `(n >= 3) & (m >= 2)`, `Eq(n, 2)`, alternatives joined by `|`."""
    each = [" & ".join(_bracketed([_relation(v, zero) for v, zero in one])) for one in where]
    return " | ".join(_bracketed(each))


def _bracketed(parts: list[str]) -> list[str]:
    return [f"({p})" for p in parts] if len(parts) > 1 else parts


def _relation(value: Quasi, zero: bool) -> str:
    left, right = sides(value)
    return f"Eq({text(left)}, {text(right)})" if zero else f"{text(left)} >= {text(right)}"


def sides(value: Quasi) -> tuple[Quasi, Quasi]:
    """(a, b) with a - b a positive multiple of `value`, both with whole positive coefficients and powers."""
    value = _cleared(value)
    return Quasi.of({m: c for m, c in value if c > 0}), -Quasi.of({m: c for m, c in value if c < 0})


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


def piecewise(branches: list[tuple[str, Alternatives]], otherwise: str) -> str:
    """Text that sympy reads as a Piecewise."""
    parts = [f"({value}, {sympy_condition(where) if where else True})" for value, where in branches]
    return f"Piecewise({', '.join([*parts, f'({otherwise}, True)'])})"


def form_text(form: Cases) -> str:
    """A whole closed form as text that sympy reads."""
    if form.single is not None:
        return text(form.single)
    return piecewise([(text(c.value), c.alternatives) for c in form.cases], "0")


def ratio_text(rows: list[RatioCase], *, otherwise: str) -> str:
    """A whole ratio as text that sympy reads; `otherwise` is its value where no row holds."""
    if len(rows) == 1 and not rows[0].where:
        return text(rows[0].value)
    return piecewise([(text(row.value), row.where) for row in rows], otherwise)


# ---- names for floors ----


class Shorthand(Record):
    """A name for a floor of the kernel's own, plus a whole number of other terms, so that products stay products."""

    name: str
    meaning: str  # as the kernel writes it
    floor: Floor
    rest: Quasi  # name = floor + rest


def shortened(value: Quasi, names: Mapping[Floor, Shorthand]) -> Quasi:
    """`value` with every floor that has a name written by that name."""
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
