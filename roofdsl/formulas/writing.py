"""How closed forms are written: as text that sympy reads, and as LaTeX for math mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, floor, lcm

from roofdsl.formulas.factoring import Product, products_of
from roofdsl.formulas.quotients import Alternatives, Quotient, RatioCase, degree, ordered
from roofdsl.lang.record import Record
from roofdsl.sets.cases import Cases
from roofdsl.sets.quasi import Atom, Floor, Monomial, Quasi


class Style(Record):
    """How the pieces of an expression are written."""

    atom: Callable[[Atom], str]
    power: Callable[[str, int], str]
    product: Callable[[list[str]], str]
    fraction: Callable[[str, str, bool, bool], str]  # (top, bottom, whether each is a single factor)


def _written(value: Quasi, style: Style, *, leading: bool = False) -> str:
    return _sum(_terms(value, style, leading=leading))


def _terms(value: Quasi, style: Style, *, leading: bool) -> list[tuple[bool, str]]:
    """(whether it is negative, the term without its sign) for each term; leading: in reading order, the greatest first.

    n**3/b comes before n**2, and the first term is positive if any of its degree is: h*w - k*w.
    """
    terms = ordered(value)
    if leading and terms:
        above = {m: sum(e for _, e in m if e > 0) for m, _ in terms}
        terms.sort(key=lambda t: -above[t[0]])
        top = terms[0][0]
        same = [k for k, (m, _) in enumerate(terms) if (above[m], degree(m)) == (above[top], degree(top))]
        first = next((k for k in same if terms[k][1] > 0), 0)
        terms.insert(0, terms.pop(first))
    return [(c < 0, _term(monomial, abs(c), style)) for monomial, c in terms]


def _term(monomial: Monomial, c: Fraction, style: Style) -> str:
    above, below = _factors(monomial, c, style)
    if not below:
        return style.product(above)
    return style.fraction(style.product(above), style.product(below), len(above) == 1, len(below) == 1)


def _factors(monomial: Monomial, c: Fraction, style: Style) -> tuple[list[str], list[str]]:
    """The factors above and below the bar in c * monomial; at least 1 above it."""
    monomial = tuple(sorted(monomial, key=lambda factor: isinstance(factor[0], Floor)))  # names before floors
    above = [style.power(style.atom(a), e) for a, e in monomial if e > 0]
    below = [style.power(style.atom(a), -e) for a, e in monomial if e < 0]
    if c.numerator != 1 or not above:
        above.insert(0, str(c.numerator))
    if c.denominator != 1:
        below.insert(0, str(c.denominator))
    return above, below


@lru_cache(maxsize=4096)
def _neat(value: Quasi, style: Style) -> str:
    """As `_written`, or with the factors that a textbook would show if that is not longer: 5*m*(n - 2)**2."""
    plain = _written(value, style, leading=True)
    if len(value.terms) < 2:
        return plain
    products = products_of(value)
    if len(products) == 1 and not _worth_it(value, products[0]):
        return plain
    signed: list[tuple[bool, str]] = []
    for product in products:
        single = len(products) > 1 and sum(power for _, power in product.factors) == 1
        signed += _terms(product.value(), style, leading=True) if single else [_product(product, style)]
    neat = _sum(signed)
    most = 1 if len(products) == 1 else MUCH_SHORTER
    return neat if len(neat) <= most * len(plain) else plain


def _rounded_up(value: Quasi | Quotient) -> Quotient:
    """The value with a half rounded up if that is shorter: 16*ceiling(n/2) for 16*n - 16*floor(n/2)."""
    value = value if isinstance(value, Quotient) else Quotient(value)
    halves = sorted((a for a in value.top.atoms() | value.bottom.atoms() if _is_half(a)), key=str)
    for half in halves:
        assert isinstance(half, Floor)
        up = half.of * 2 - Quasi.symbol(Floor(half.of + Fraction(1, 2)))  # p - ceiling(p/2) is floor(p/2)
        told = value.replaced(partial(_put, old=half, new=up))
        if _count(told) < _count(value):
            value = told
    return value


def _is_half(atom: Atom) -> bool:
    if not isinstance(atom, Floor) or whole(atom).bottom != Quasi.constant(2):
        return False
    return all(e > 0 for m, _ in atom.of for _, e in m)  # so that twice what is rounded is a whole number


def _count(value: Quotient) -> int:
    return len(value.top.terms) + len(value.bottom.terms)


def _put(value: Quasi, old: Floor, new: Quasi) -> Quasi:
    """`value` with `new` for every `old` that is not part of another floor; unchanged if one is in a denominator."""
    total = Quasi.constant(0)
    for monomial, c in value:
        power = dict(monomial).get(old, 0)
        if power < 0:
            return value
        rest = Quasi.of({tuple((a, e) for a, e in monomial if a != old): c})
        total += rest * new**power
    return total


MUCH_SHORTER = Fraction(4, 5)
"""The maximum length of a sum of products, relative to the sum with the leading term first."""


def _worth_it(value: Quasi, product: Product) -> bool:
    """Whether a product shows more than the sum that it equals. It does if it contains several sums, or a factor that
    occurs nowhere else; with a single variable, only if it is a power of one sum.

    8*n**2 + 16*n stays as it is, since its leading term is read first.
    """
    sums = sum(power for _, power in product.factors)
    if len(value.atoms()) == 1:
        return len(product.factors) == 1 and sums > 1 and not product.monomial
    inside = {a for factor, _ in product.factors for a in factor.atoms()}
    return sums > 1 or any(e == 1 and a not in inside for a, e in product.monomial)


def _product(product: Product, style: Style) -> tuple[bool, str]:
    """(whether negative, the product without its sign)."""
    c = abs(product.constant)
    above, below = _factors(product.monomial, c, style)
    brackets = [style.power(f"({_written(f, style, leading=True)})", power) for f, power in product.factors]
    if brackets and above == ["1"]:
        above = []
    above += brackets
    if not below:
        body = style.product(above)
    else:
        body = style.fraction(style.product(above), style.product(below), len(above) == 1, len(below) == 1)
    return product.constant < 0, body


def _sum(signed: Iterable[tuple[bool, str]]) -> str:
    parts: list[str] = []
    for negative, body in signed:
        if parts:
            parts.append(f" {'-' if negative else '+'} {body}")
        else:
            parts.append(f"-{body}" if negative else body)
    return "".join(parts) or "0"


def _quotient(value: Quotient, style: Style, write: Callable[[Quasi, Style], str] = _written) -> str:
    top, bottom = write(value.top, style), write(value.bottom, style)
    if bottom == "1":
        return top
    single = len(value.bottom.terms) == 1 and len(value.bottom.terms[0][0]) + (value.bottom.terms[0][1] != 1) == 1
    return style.fraction(top, bottom, len(value.top.terms) == 1, single and len(value.bottom.terms) == 1)


def _text_fraction(top: str, bottom: str, top_single: bool, bottom_single: bool) -> str:
    # above the bar, only a sum needs brackets, not a product
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
    """The argument of a floor as one fraction: (h + r)/2 for h/2 + r/2."""
    denominator = lcm(*(c.denominator for _, c in atom.of))
    return Quotient(atom.of * denominator, Quasi.constant(denominator))


def _rounded(atom: Floor) -> tuple[bool, Quotient]:
    """(whether it is rounded up, what is rounded): n/8 rounded up for floor((n + 7)/8), since sizes are integers."""
    inside = whole(atom)
    denominator = inside.bottom.constant_value()
    if inside.top.constant_value() == denominator - 1 and all(e > 0 for m, _ in inside.top for _, e in m):
        return True, Quotient(inside.top - (denominator - 1), inside.bottom)
    return False, inside


def _neat_atom(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    up, inside = _rounded(atom)
    return f"{'ceiling' if up else 'floor'}({neat_text(inside)})"


NEAT = Style(_neat_atom, TEXT.power, TEXT.product, TEXT.fraction)
"""As TEXT, with ceilings if these are shorter: for people, but sympy can read it, too."""


def text(value: Quasi | Quotient) -> str:
    """`8*n**2 + 16*n`, `n/(4*n + 8)`: readable text that sympy can also read."""
    return _quotient(value, TEXT) if isinstance(value, Quotient) else _written(value, TEXT)


def neat_text(value: Quasi | Quotient) -> str:
    """As `text`, but factored as in a textbook: `10*steps*(n - 2)**2`."""
    return _quotient(_rounded_up(value), NEAT, _neat)


def neat_latex(value: Quasi | Quotient) -> str:
    """As `latex`, but factored as in a textbook."""
    return _quotient(_rounded_up(value), LATEX, _neat)


def latex_name(name: str) -> str:
    """A parameter or array: a single letter as it is, a longer name upright."""
    return name if len(name) == 1 else f"\\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def _latex_atom(atom: Atom) -> str:
    if isinstance(atom, str):
        return latex_name(atom)
    up, inside = _rounded(atom)
    sign = "ceil" if up else "floor"
    return f"\\left\\l{sign} {latex(inside)} \\right\\r{sign}"


LATEX = Style(
    _latex_atom,
    lambda base, power: base if power == 1 else f"{base}^{{{power}}}",
    " ".join,
    lambda top, bottom, top_single, bottom_single: f"\\frac{{{top}}}{{{bottom}}}",
)


def latex(value: Quasi | Quotient) -> str:
    """`8 n^{2} + 16 n`, `\\frac{n}{4 n + 8}`: for math mode."""
    return _quotient(value, LATEX) if isinstance(value, Quotient) else _written(value, LATEX)


# ---- conditions ----

LATEX_RELATIONS = {">=": "\\geq", "<=": "\\leq", "=": "=", "!=": "\\neq", ">": ">", "<": "<"}


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


class Remainder(Record):
    """A condition on a remainder: of % modulus `relation` number; the relation is one of =, !=, >= and <=."""

    of: Quasi
    modulus: int
    relation: str
    number: int


def remainder(value: Quasi, zero: bool) -> Remainder | None:
    """What `value` = 0 (zero) or `value` >= 0 means if that is a condition on a remainder: 8*floor((n + 7)/8) = n + 7
    says n % 8 = 1, and 8*floor((n + 7)/8) <= n + 6 says n % 8 != 1. None for other conditions, and for those on
    remainders that always or never hold.
    """
    floors = [(a, c) for m, c in value for a, e in m if isinstance(a, Floor) and len(m) == 1 and e == 1]
    if len(floors) != 1:
        return None
    ((atom, c),) = floors
    modulus = lcm(*(x.denominator for _, x in atom.of))
    # value / -c = (y mod modulus) / modulus - edge / modulus, for the whole number y that the floor divides by modulus.
    beyond = value * (-1 / c) + Quasi.symbol(atom) - atom.of
    if modulus < 2 or not beyond.is_constant():
        return None
    edge = -beyond.constant_value() * modulus
    y = atom.of * modulus
    if zero:
        low = high = edge
    else:
        low, high = (Fraction(ceil(edge)), Fraction(modulus - 1)) if c < 0 else (Fraction(0), Fraction(floor(edge)))
    if low.denominator != 1 or not 0 <= low <= high < modulus or high - low == modulus - 1:
        return None
    return _of_admitted(y, modulus, int(low), int(high))


def _of_admitted(y: Quasi, modulus: int, low: int, high: int) -> Remainder:
    """low <= y % modulus <= high as one comparison: of y without its constant and sign if possible, otherwise of y."""
    x = y - y.constant_value()
    if x and all(c < 0 for _, c in x):  # -x - 1 leaves the remainder that is left of modulus - 1
        x, y, low, high = -x, -y - 1, modulus - 1 - high, modulus - 1 - low
    offset = int(y.constant_value())
    first, last = (low - offset) % modulus, (high - offset) % modulus
    if low == high:
        return Remainder(x, modulus, "=", first)
    if high - low == modulus - 2:
        return Remainder(x, modulus, "!=", (last + 1) % modulus)
    if not first:
        return Remainder(x, modulus, "<=", last)
    if last == modulus - 1:
        return Remainder(x, modulus, ">=", first)
    return Remainder(y, modulus, "<=", high) if not low else Remainder(y, modulus, ">=", low)


def _cleared(value: Quasi) -> Quasi:
    """`value` times the factor that makes its coefficients integers and the powers of its names nonnegative. Names
    stand for positive numbers, so the sign stays.
    """
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
    """A whole ratio as text that sympy reads; `otherwise` is its value if no row holds."""
    if len(rows) == 1 and not rows[0].where:
        return text(rows[0].value)
    return piecewise([(text(row.value), row.where) for row in rows], otherwise)
