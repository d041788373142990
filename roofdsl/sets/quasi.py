"""Quasi-polynomials: exact polynomials with floors in parameters and dimensions, outside the integer-set library.

This is plain Python, so numbers are available without sympy; `roofdsl.formulas.sympy_forms` prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm

Rational = int | Fraction


@dataclass(frozen=True)
class Floor:
    """The integer part of a quasi-polynomial, used as an atom of others."""

    of: Quasi

    @cached_property
    def _hash(self) -> int:
        return hash((Floor, self.of))

    def __hash__(self) -> int:  # hashing fractions is slow, and monomials are looked up very often
        return self._hash

    def __getstate__(self) -> dict[str, Quasi]:
        return {"of": self.of}  # a hash differs between processes

    @cached_property
    def _text(self) -> str:
        return f"floor({self.of})"

    def __str__(self) -> str:  # monomials are sorted by the texts of their atoms
        return self._text


Atom = str | Floor
Monomial = tuple[tuple[Atom, int], ...]  # sorted by name, exponents not 0 (negative ones come from n/b)


@dataclass(frozen=True)
class Quasi:
    """A sum of rational coefficients times monomials; built with `constant`, `symbol` and arithmetic."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @cached_property
    def _hash(self) -> int:
        return hash((Quasi, self.terms))

    def __hash__(self) -> int:  # as for floors
        return self._hash

    def __getstate__(self) -> dict[str, tuple[tuple[Monomial, Fraction], ...]]:
        return {"terms": self.terms}

    @staticmethod
    def of(terms: Mapping[Monomial, Rational]) -> Quasi:
        kept = [(m, c if isinstance(c, Fraction) else Fraction(c)) for m, c in terms.items() if c]
        return Quasi(tuple(sorted(kept, key=lambda t: _key(t[0])) if len(kept) > 1 else kept))

    @staticmethod
    def constant(value: Rational) -> Quasi:
        return Quasi.of({(): value})

    @staticmethod
    def symbol(atom: Atom, power: int = 1) -> Quasi:
        return Quasi.of({((atom, power),): 1})

    @cached_property
    def _map(self) -> dict[Monomial, Fraction]:
        return dict(self.terms)

    def __add__(self, other: Quasi | Rational) -> Quasi:
        more = _quasi(other)
        if not self.terms or not more.terms:
            return more if not self.terms else self
        out = dict(self.terms)
        for m, c in more.terms:
            out[m] = out[m] + c if m in out else c
        return Quasi.of(out)

    __radd__ = __add__

    def __neg__(self) -> Quasi:
        return Quasi(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Quasi | Rational) -> Quasi:
        return self + (-_quasi(other))

    def __rsub__(self, other: Quasi | Rational) -> Quasi:
        return _quasi(other) - self

    def __mul__(self, other: Quasi | Rational) -> Quasi:
        if not isinstance(other, Quasi):
            return Quasi(tuple((m, c * other) for m, c in self.terms) if other else ())
        for one, factor in ((self, other), (other, self)):
            if len(factor.terms) == 1 and not factor.terms[0][0]:
                number = factor.terms[0][1]
                return one if number == 1 else one * number
        out: dict[Monomial, Fraction] = {}
        for m, c in self.terms:
            for n, d in other.terms:
                k = _times(m, n)
                out[k] = out[k] + c * d if k in out else c * d
        return Quasi.of(out)

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Quasi:
        if power < 0:
            if len(self.terms) != 1:
                raise ValueError(f"cannot invert the sum {self}")
            (m, c), *_ = self.terms
            return Quasi.of({tuple((a, e * power) for a, e in m): Fraction(c) ** power})
        if not power:
            return Quasi.constant(1)
        result = self
        for _ in range(power - 1):
            result = result * self
        return result

    def __bool__(self) -> bool:
        return bool(self.terms)

    def is_constant(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and self.terms[0][0] == ())

    def constant_value(self) -> Fraction:
        """The constant term."""
        return self._map.get((), Fraction(0))

    def atoms(self) -> frozenset[Atom]:
        return frozenset(a for m, _ in self.terms for a, _ in m)

    def names(self) -> frozenset[str]:
        """All symbols, including those inside floors."""
        found: set[str] = set()
        for a in self.atoms():
            found |= {a} if isinstance(a, str) else a.of.names()
        return frozenset(found)

    def degree(self, names: frozenset[str]) -> int:
        """The total degree in `names`; a floor that contains such a name counts as one of them."""

        def has(a: Atom) -> bool:
            return a in names if isinstance(a, str) else bool(a.of.names() & names)

        return max((sum(e for a, e in m if has(a)) for m, _ in self.terms), default=0)

    @cached_property
    def _integral(self) -> tuple[int, tuple[int, ...]]:
        """The least common denominator of the coefficients, and the coefficients times it."""
        common = lcm(*(c.denominator for _, c in self.terms))
        return common, tuple(c.numerator * (common // c.denominator) for _, c in self.terms)

    def evaluate(self, env: Mapping[str, Rational]) -> Fraction:
        """The exact value. Raises KeyError if a symbol has none."""
        common, coefficients = self._integral
        total: Rational = 0
        # Arithmetic of integers is ten times as fast as that of fractions.
        for (m, _), coefficient in zip(self.terms, coefficients, strict=True):
            value: Rational = coefficient
            for a, e in m:
                base = env[a] if isinstance(a, str) else a.of.evaluate(env) // 1
                value *= base**e if e > 0 else Fraction(base) ** e
            total += value
        return Fraction(total, common)

    def substitute(self, replacement: Mapping[str, Quasi]) -> Quasi:
        """Every symbol in `replacement` replaced, inside floors too."""
        if not self.names() & replacement.keys():
            return self
        out: dict[Monomial, Fraction] = {}
        powers: dict[tuple[Atom, int], Quasi] = {}
        names = {a: _as_name(value) for a, value in replacement.items()}
        for m, c in self.terms:
            renamed = _renamed(m, names)
            if renamed is not None:
                out[renamed] = out[renamed] + c if renamed in out else c
                continue
            part = Quasi.constant(c)
            for a, e in m:
                if (a, e) not in powers:
                    if isinstance(a, str):
                        base = replacement.get(a, Quasi.symbol(a))
                    else:
                        base = floor(a.of.substitute(replacement))
                    powers[a, e] = base**e
                part = part * powers[a, e]
            for n, d in part.terms:
                out[n] = out[n] + d if n in out else d
        return Quasi.of(out)

    def split(self, names: frozenset[str]) -> tuple[Quasi, Quasi]:
        """(the terms that contain one of `names`, the other terms)."""
        inside: dict[Monomial, Fraction] = {}
        outside: dict[Monomial, Fraction] = {}
        for m, c in self.terms:
            has = any(a in names if isinstance(a, str) else bool(a.of.names() & names) for a, _ in m)
            (inside if has else outside)[m] = c
        return Quasi.of(inside), Quasi.of(outside)

    def __iter__(self) -> Iterator[tuple[Monomial, Fraction]]:
        return iter(self.terms)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts: list[str] = []
        for m, c in reversed(self.terms):
            factors = [f"{a}**{e}" if e != 1 else str(a) for a, e in m]
            if not factors or c not in (1, -1):
                factors.insert(0, str(abs(c)))
            text = "*".join(factors)
            sign = "-" if c < 0 else "+"
            first = f"-{text}" if c < 0 else text
            parts.append(f" {sign} {text}" if parts else first)
        return "".join(parts)


def floor(value: Quasi) -> Quasi:
    """The integer part as a quasi-polynomial; constants and integer terms come out of it."""
    whole: dict[Monomial, Fraction] = {}
    rest: dict[Monomial, Fraction] = {}
    for m, c in value.terms:
        integral = all(e > 0 for _, e in m)  # symbols are integers, quotients n/b need not be
        if not integral:
            rest[m] = c
            continue
        whole[m] = Fraction(c.numerator // c.denominator)
        rest[m] = c - whole[m]
    remainder = Quasi.of(rest)
    if not remainder:
        return Quasi.of(whole)
    if remainder.is_constant():
        return Quasi.of(whole) + (remainder.constant_value() // 1)
    return Quasi.of(whole) + Quasi.symbol(Floor(remainder))


def floors_of(value: Quasi) -> list[Floor]:
    """The floors among the atoms of a quasi-polynomial, without those inside other floors."""
    return [a for a in value.atoms() if isinstance(a, Floor)]


def _as_name(value: Quasi) -> str | None:
    """The symbol that `value` is; None if it is more than that."""
    if len(value.terms) != 1:
        return None
    ((monomial, c),) = value.terms
    if c != 1 or len(monomial) != 1 or monomial[0][1] != 1:
        return None
    atom = monomial[0][0]
    return atom if isinstance(atom, str) else None


def _renamed(monomial: Monomial, names: Mapping[str, str | None]) -> Monomial | None:
    """With new names for symbols; None if it contains a floor, if one becomes more than a name, or two get the same
    name.

    Most substitutions do no more, and need no products.
    """
    found: dict[Atom, int] = {}
    for atom, power in monomial:
        if not isinstance(atom, str):
            return None
        name = names.get(atom, atom)
        if name is None or name in found:
            return None
        found[name] = power
    return tuple(sorted(found.items(), key=lambda t: str(t[0])))


def _quasi(value: Quasi | Rational) -> Quasi:
    return value if isinstance(value, Quasi) else Quasi.constant(value)


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers: dict[Atom, int] = dict(a)
    for atom, e in b:
        powers[atom] = powers.get(atom, 0) + e
    return tuple(sorted(((x, e) for x, e in powers.items() if e), key=lambda t: str(t[0])))


@lru_cache(maxsize=1 << 16)
def _key(m: Monomial) -> tuple[int, str]:
    return (sum(e for _, e in m), str(m))
