"""Polynomials as products: 2*k**2*(h - k + 1)*(w - k + 1) instead of nine terms.

This is plain Python with a limit on its work, so it needs no sympy, and its time is limited for any formula. If no
factors are found within the limit, the polynomial stays a sum. Floors count as symbols, so every form is equal for all
sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import gcd, isqrt, lcm

from roofdsl.lang.record import Record
from roofdsl.sets.quasi import Atom, Floor, Monomial, Quasi

Powers = tuple[int, ...]
Poly = dict[Powers, int]
"""Coefficients by the powers of the variables, in the order of `_Ring.atoms`; never a coefficient of 0."""

MOST_TERMS = 60
"""The maximum number of terms of a polynomial that is factored."""

MOST_WORK = 3_000
"""The maximum number of products of two terms for one polynomial: a few milliseconds."""


class Product(Record):
    """constant * monomial * the factors to their powers; the factors have few negative terms."""

    constant: Fraction
    monomial: Monomial
    factors: tuple[tuple[Quasi, int], ...]

    def value(self) -> Quasi:
        """The product multiplied out."""
        out = Quasi.of({self.monomial: self.constant})
        for factor, power in self.factors:
            out = out * factor**power
        return out


class _TooMuch(Exception):
    """The work exceeded the limit."""


def product_of(value: Quasi) -> Product:
    """`value` as a product of constant, monomial and factors; a single factor if no more are found.

    0 has no factors.
    """
    return _product(value, _Ring(value))


def products_of(value: Quasi) -> list[Product]:
    """Products whose sum is `value`, the largest groups first; a single product if `value` or no group is one."""
    ring = _Ring(value)
    whole = _product(value, ring)
    if _is_product(whole) or not 4 <= len(value.terms) <= MOST_TERMS // 2:
        return [whole]
    found = _best_group(value, ring)
    if found is None:
        return [whole]
    group, rest = found
    return [group, *products_of(rest)]


def without_common_factor(top: Quasi, bottom: Quasi) -> tuple[Quasi, Quasi] | None:
    """Both polynomials divided by their greatest common divisor (except numbers).

    None if that takes too much work. No power may be negative, and there must be no common monomial.
    """
    if len(top.terms) > MOST_TERMS or len(bottom.terms) > MOST_TERMS:
        return None
    ring = _Ring(top, bottom)
    scale = lcm(*(c.denominator for part in (top, bottom) for _, c in part))
    p, q = ring.poly(top * scale), ring.poly(bottom * scale)
    try:
        divisor = ring.gcd(p, q)
        if not _variables(divisor):
            return top, bottom
        over = [ring.quasi(ring.over(part, divisor)) for part in (p, q)]
    except _TooMuch:
        return None
    # `over` gives primitive polynomials, and the divisor is primitive: the numbers are those of top and bottom
    contents = [Fraction(_content(part), scale) for part in (p, q)]
    return over[0] * contents[0], over[1] * contents[1]


def _content(p: Poly) -> int:
    """The common integer factor of all coefficients, with the sign of the leading one."""
    return gcd(*p.values()) * (-1 if _leading(p)[1] < 0 else 1)


def _is_product(p: Product) -> bool:
    return sum(power for _, power in p.factors) != 1


def _best_group(value: Quasi, ring: _Ring) -> tuple[Product, Quasi] | None:
    """As many terms as possible that share a monomial and are a product of several sums, and the other terms."""
    shared: dict[Monomial, None] = {}
    for (a, _), (b, _) in combinations(value, 2):
        common = {x: min(e, dict(b)[x]) for x, e in a if e > 0 and dict(b).get(x, 0) > 0}
        shared.setdefault(tuple(common.items()))
    groups = {tuple((m, c) for m, c in value if _has(m, each)): None for each in shared}
    for terms in sorted(groups, key=len, reverse=True):
        if 4 <= len(terms) < len(value.terms):
            part = Quasi.of(dict(terms))
            product = _product(part, ring)
            if _is_product(product):
                return product, value - part
    return None


def _has(monomial: Monomial, part: Monomial) -> bool:
    powers = dict(monomial)
    return all(powers.get(a, 0) >= e for a, e in part)


def _product(value: Quasi, ring: _Ring) -> Product:
    if not value:
        return Product(Fraction(0), (), ())
    least = {a: min(dict(m).get(a, 0) for m, _ in value) for a in value.atoms()}
    monomial = tuple(sorted(((a, e) for a, e in least.items() if e), key=lambda t: str(t[0])))
    rest = value * Quasi.of({monomial: 1}) ** -1
    scale = lcm(*(c.denominator for _, c in rest))
    constant = Fraction(gcd(*(int(c * scale) for _, c in rest)), scale)
    poly = ring.poly(rest * (1 / constant))
    if _leading(poly)[1] < 0:
        constant, poly = -constant, {m: -c for m, c in poly.items()}
    if len(poly) == 1:
        return Product(constant, monomial, ())
    try:
        parts = ring.factors(poly) if len(poly) <= MOST_TERMS else [poly]
    except _TooMuch:
        parts = [poly]
    counted: list[tuple[Quasi, int]] = []
    for part in (ring.quasi(p) for p in parts):
        powers = [k for k, (known, _) in enumerate(counted) if known == part]
        if powers:
            counted[powers[0]] = (part, counted[powers[0]][1] + 1)
        else:
            counted.append((part, 1))
    counted.sort(key=lambda f: (any(isinstance(a, Floor) for a in f[0].atoms()), len(f[0].terms), str(f[0])))
    return _with_signs(Product(constant, monomial, tuple(counted)))


def _with_signs(p: Product) -> Product:
    """Signs moved: factors begin with a positive term, with few negative ones, and the constant is positive if it can.

    If n - k is as good as k - n, a name that occurs in several such factors is subtracted: (h - r)*(w - r).
    """
    constant = p.constant
    factors = list(p.factors)
    even = Counter(a for f, _ in factors if not _sign(f) for a in f.atoms())
    for k, (factor, power) in enumerate(factors):
        if _sign(factor) < 0 or (not _sign(factor) and _first(factor, even) < 0):
            factors[k] = (-factor, power)
            constant *= (-1) ** power
    turned = [k for k, (factor, power) in enumerate(factors) if power % 2 and _begins_well(-factor)]
    if constant < 0 and turned:
        k = min(turned, key=lambda k: (abs(_sign(factors[k][0])), k))
        factors[k] = (-factors[k][0], factors[k][1])
        constant = -constant
    return Product(constant, p.monomial, tuple(factors))


def _leading_terms(factor: Quasi) -> list[tuple[Monomial, Fraction]]:
    top = max(sum(e for _, e in m) for m, _ in factor)
    return [(m, c) for m, c in factor if sum(e for _, e in m) == top]


def _begins_well(factor: Quasi) -> bool:
    return any(c > 0 for _, c in _leading_terms(factor))


def _sign(factor: Quasi) -> int:
    """1 if the factor reads better as it is, -1 if its negative does, 0 if neither does."""
    if _begins_well(factor) != _begins_well(-factor):
        return 1 if _begins_well(factor) else -1
    total = sum(1 if c > 0 else -1 for _, c in factor)
    return (total > 0) - (total < 0)


def _first(factor: Quasi, often: Mapping[Atom, int]) -> Fraction:
    """The coefficient of the leading term whose names are rarest, then first in the alphabet."""
    return min((max((often[a] for a, _ in m), default=0), str(m), c) for m, c in _leading_terms(factor))[2]


class _Ring:
    """Polynomials with integer coefficients in the atoms of some values, and the work spent on them."""

    def __init__(self, *values: Quasi) -> None:
        self.atoms: list[Atom] = sorted(frozenset().union(*(v.atoms() for v in values)), key=str)
        self.work = 0

    def poly(self, value: Quasi) -> Poly:
        out: Poly = {}
        for monomial, c in value:
            powers = dict(monomial)
            out[tuple(powers.get(a, 0) for a in self.atoms)] = int(c)
        return out

    def quasi(self, p: Poly) -> Quasi:
        return Quasi.of({tuple((a, e) for a, e in zip(self.atoms, m, strict=True) if e): c for m, c in p.items()})

    # ---- factors ----

    def factors(self, p: Poly) -> list[Poly]:
        """The factors of a primitive polynomial. If it is not linear in any variable, repeated factors, rational roots
        (of one variable) and the factors of a quadratic are tried.
        """
        if not _variables(p):
            return []
        v = min(_variables(p), key=lambda k: (_degree(p, k), k))
        content = self._content(p, v)
        if _variables(content):
            return [*self.factors(content), *self.factors(self.over(p, content))]
        if _degree(p, v) == 1:
            return [p]  # its two coefficients have no common factor
        shared = self.gcd(p, _derivative(p, v))
        if _variables(shared):
            return [*self.factors(shared), *self.factors(self.over(p, shared))]
        split = self._by_root(p, v) if len(_variables(p)) == 1 else self._quadratic(p, v)
        return [p] if split is None else [*self.factors(split), *self.factors(self.over(p, split))]

    def _by_root(self, p: Poly, v: int) -> Poly | None:
        """A factor a*v + b of a polynomial in one variable with small coefficients."""
        by_degree = {m[v]: c for m, c in p.items()}
        top = max(by_degree)
        for a in _divisors(by_degree[top]):
            for b in _divisors(by_degree.get(0, 0)):
                for root in (Fraction(b, a), Fraction(-b, a)):
                    self._spend(len(p))
                    if not sum(c * root**e for e, c in by_degree.items()):
                        return _primitive({self._power(v, 1): root.denominator, self._power(v, 0): -root.numerator})
        return None

    def _quadratic(self, p: Poly, v: int) -> Poly | None:
        """A factor of a*v**2 + b*v + c whose discriminant is a square."""
        if _degree(p, v) != 2:
            return None
        c, b, a = (_coefficients(p, v).get(k, {}) for k in range(3))
        root = self._root(_minus(self._times(b, b), self._times({m: 4 * x for m, x in a.items()}, c)))
        if not root:
            return None
        linear = {_raised(m, v, 1): 2 * x for m, x in a.items()}
        return self.gcd(p, _minus(_plus(linear, b), root))

    def _root(self, p: Poly) -> Poly | None:
        """The square root of a polynomial that is a square, term by term as by hand; None for others."""
        root: Poly = {}
        rest = p
        while rest:
            m, c = _leading(rest)
            if not root:
                if c < 0 or isqrt(c) ** 2 != c or any(e % 2 for e in m):
                    return None
                term = {tuple(e // 2 for e in m): isqrt(c)}
            else:
                n, d = _leading(root)
                powers = tuple(x - y for x, y in zip(m, n, strict=True))
                if min(powers) < 0 or c % (2 * d):
                    return None
                term = {powers: c // (2 * d)}
            rest = _minus(rest, self._times(term, _plus(_plus(root, root), term)))
            root = _plus(root, term)
        return root

    # ---- arithmetic ----

    def gcd(self, p: Poly, q: Poly) -> Poly:
        """The primitive greatest common divisor, by primitive remainders in one variable after the other."""
        if not p or not q:
            return _primitive(p or q)
        mine, theirs = _variables(p), _variables(q)
        if not mine & theirs:
            return {self._power(0, 0): 1}
        for k in mine ^ theirs:
            return self.gcd(self._content(p, k), q) if k in mine else self.gcd(p, self._content(q, k))
        v = min(mine, key=lambda k: (_degree(p, k) + _degree(q, k), k))
        common = self.gcd(self._content(p, v), self._content(q, v))
        a, b = self.over(p, self._content(p, v)), self.over(q, self._content(q, v))
        while _degree(b, v):
            if _degree(a, v) < _degree(b, v):
                a, b = b, a
                continue
            rest = self._remainder(a, b, v)
            if not rest:
                return _primitive(self._times(common, b))
            a, b = b, self.over(rest, self._content(rest, v))
        return common

    def _content(self, p: Poly, v: int) -> Poly:
        """The primitive common divisor of the coefficients of all powers of v."""
        found: Poly = {}
        for coefficient in sorted(_coefficients(p, v).values(), key=len):
            found = self.gcd(found, coefficient) if found else _primitive(coefficient)
            if not _variables(found):
                break
        return found

    def _remainder(self, a: Poly, b: Poly, v: int) -> Poly:
        """a times a power of b's leading coefficient, modulo b, primitive."""
        degree = _degree(b, v)
        lead = _coefficients(b, v)[degree]
        while a and _degree(a, v) >= degree:
            shift = _degree(a, v) - degree
            top = {_raised(m, v, shift): c for m, c in _coefficients(a, v)[_degree(a, v)].items()}
            a = _primitive(_minus(self._times(a, lead), self._times(b, top)))
        return a

    def over(self, p: Poly, divisor: Poly) -> Poly:
        """p / divisor, which divides p up to a constant; primitive."""
        n, d = _leading(divisor)
        out: Poly = {}
        rest = p
        while rest:
            m, c = _leading(rest)
            if c % d:  # all of p is scaled, so that the next coefficient is an integer; the result is primitive anyway
                factor = d // gcd(c, d)
                rest, out = ({k: x * factor for k, x in part.items()} for part in (rest, out))
                continue
            term = {tuple(x - y for x, y in zip(m, n, strict=True)): c // d}
            out = _plus(out, term)
            rest = _minus(rest, self._times(term, divisor))
        return _primitive(out)

    def _times(self, p: Poly, q: Poly) -> Poly:
        self._spend(len(p) * len(q))
        out: Poly = {}
        for m, c in p.items():
            for n, d in q.items():
                k = tuple(map(int.__add__, m, n))
                out[k] = out.get(k, 0) + c * d
        return {m: c for m, c in out.items() if c}

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > MOST_WORK:
            raise _TooMuch

    def _power(self, v: int, power: int) -> Powers:
        return tuple(power if k == v else 0 for k in range(len(self.atoms)))


def _variables(p: Poly) -> set[int]:
    return {k for m in p for k, e in enumerate(m) if e}


def _degree(p: Poly, v: int) -> int:
    return max((m[v] for m in p), default=0)


def _leading(p: Poly) -> tuple[Powers, int]:
    """The first term by total degree, then by the order of names."""
    m = max(p, key=lambda m: (sum(m), m))
    return m, p[m]


def _raised(m: Powers, v: int, by: int) -> Powers:
    return (*m[:v], m[v] + by, *m[v + 1 :])


def _coefficients(p: Poly, v: int) -> dict[int, Poly]:
    out: dict[int, Poly] = {}
    for m, c in p.items():
        out.setdefault(m[v], {})[_raised(m, v, -m[v])] = c
    return out


def _derivative(p: Poly, v: int) -> Poly:
    return {_raised(m, v, -1): c * m[v] for m, c in p.items() if m[v]}


def _plus(p: Poly, q: Poly) -> Poly:
    out = dict(p)
    for m, c in q.items():
        out[m] = out.get(m, 0) + c
    return {m: c for m, c in out.items() if c}


def _minus(p: Poly, q: Poly) -> Poly:
    return _plus(p, {m: -c for m, c in q.items()})


def _primitive(p: Poly) -> Poly:
    """Without a common integer factor, and with a positive leading coefficient."""
    if not p:
        return p
    divisor = _content(p)
    return {m: c // divisor for m, c in p.items()}


def _divisors(value: int) -> list[int]:
    """The positive divisors of a small number; only 1 for a large one, since such roots are not looked for."""
    value = abs(value)
    return [k for k in range(1, value + 1) if value % k == 0] if value <= 1000 else [1]
