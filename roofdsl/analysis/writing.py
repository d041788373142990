"""How closed forms are written: as text that sympy reads, and as LaTeX for math mode."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import lcm

from roofdsl.analysis.formulas import Alternatives, Quotient, RatioCase, coefficients_of, ordered
from roofdsl.lang.record import Record
from roofdsl.polyhedral.cases import Cases
from roofdsl.polyhedral.quasi import Atom, Floor, Monomial, Quasi


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
    monomial = tuple(sorted(monomial, key=lambda factor: isinstance(factor[0], Floor)))  # names before floors
    above = [style.power(style.atom(a), e) for a, e in monomial if e > 0]
    below = [style.power(style.atom(a), -e) for a, e in monomial if e < 0]
    if c.numerator != 1 or not above:
        above.insert(0, str(c.numerator))
    if c.denominator != 1:
        below.insert(0, str(c.denominator))
    if not below:
        return style.product(above)
    return style.fraction(style.product(above), style.product(below), len(above) == 1, len(below) == 1)


def _neat(value: Quasi, style: Style) -> str:
    """As `_written`, with factors that are no variable of the rest taken out, and powers: 5*m*(n - 2)**2."""
    common = [a for a in sorted(value.atoms(), key=str) if all(dict(m).get(a, 0) == 1 for m, _ in value)]
    rest = value
    for atom in common if len(value.terms) > 1 else []:
        rest = rest * Quasi.symbol(atom, -1)
    power = _power(rest)
    if power is None and (rest is value or len(rest.terms) < 2):
        return _written(value, style)
    factor, body = Fraction(1), f"({_written(rest, style)})"
    if power is not None:
        factor, base, exponent = power
        body = style.power(f"({_written(base, style)})", exponent)
    outer = Quasi.of({tuple((a, 1) for a in common) if rest is not value else (): factor})
    shown = _written(outer, style)
    return body if shown == "1" else style.product([shown, body])


def _power(value: Quasi) -> tuple[Fraction, Quasi, int] | None:
    """(c, x + a, k) where `value` is c*(x + a)**k with k > 1."""
    atoms = value.atoms()
    k = len(value.terms) - 1
    if len(atoms) != 1 or k < 2:
        return None
    (atom,) = atoms
    coefficients = coefficients_of(value, atom) if all(e > 0 for m, _ in value for _, e in m) else []
    if len(coefficients) != k + 1:
        return None
    c = coefficients[k]
    base = Quasi.symbol(atom) + coefficients[k - 1] / (c * k)
    return (c, base, k) if base**k * c == value else None


def _quotient(value: Quotient, style: Style, write: Callable[[Quasi, Style], str] = _written) -> str:
    top, bottom = write(value.top, style), write(value.bottom, style)
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


def neat_text(value: Quasi | Quotient) -> str:
    """As `text`, with the factors that a textbook would leave: `10*steps*(n - 2)**2`."""
    return _quotient(value if isinstance(value, Quotient) else Quotient(value), TEXT, _neat)


def neat_latex(value: Quasi | Quotient) -> str:
    """As `latex`, with the factors that a textbook would leave."""
    return _quotient(value if isinstance(value, Quotient) else Quotient(value), LATEX, _neat)


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
