"""Integers that grow with the sizes: polynomials, compared as for large sizes.

Code that adds, multiplies and compares numbers also runs with these. Every comparison is decided for all sufficiently
large sizes, and recorded. The records determine which sizes are large enough: the results are proven for all sizes from
there on.
"""

from __future__ import annotations

from itertools import product
from math import comb, gcd, prod
from typing import Any

Monomial = tuple[int, ...]
"""The symbols that are multiplied, by number, ascending; empty for the constant term."""

FAR = 1 << 20
"""A lower bound of the symbols that is assumed while their actual least values are determined."""


class Undecided(Exception):
    """It depends on the sizes which of two numbers is larger; or a number is not an integer."""


class Sizes:
    """The symbols 0, ..., count - 1, integers from some least values on, and the decisions about them.

    comparisons: the number of comparisons that also depend on loop variables.
    """

    def __init__(self, count: int) -> None:
        self.count, self.comparisons = count, 0
        self.least = [0] * count
        self._positive: list[Growing] = []
        self._signs: dict[object, int] = {}

    def symbol(self, number: int) -> Growing:
        return Growing(self, {(number,): 1}, 0)

    def sign(self, terms: dict[Monomial, int], constant: int) -> int:
        """The sign of a number that is not constant, 1 or -1, for all sufficiently large sizes. Raises Undecided."""
        if len(terms) == 1:
            (monomial, factor), *_ = terms.items()
            if len(monomial) == 1 and abs(constant) < FAR * abs(factor):
                (k,) = monomial
                sign, over = (1, -constant // factor + 1) if factor > 0 else (-1, constant // -factor + 1)
                self.least[k] = max(self.least[k], over)
                return sign
        value = Growing(self, terms, constant)
        known = self._signs.get(value.key)
        if known is None:
            known = self._signs[value.key] = self._sign(value)
        return known

    def _sign(self, value: Growing) -> int:
        for sign in (1, -1):
            signed = value if sign > 0 else -value
            if is_positive(signed, [FAR] * self.count):
                self._positive.append(signed)
                return sign
        raise Undecided(f"which of the sizes is the larger decides whether {value} is positive")

    def mark(self) -> tuple[list[int], int]:
        """The current state of the decisions, for `back_to`."""
        return list(self.least), len(self._positive)

    def back_to(self, known: tuple[list[int], int]) -> list[int]:
        """Forgets the decisions made since `mark`; returns the least values of that time."""
        self.least = list(known[0])
        del self._positive[known[1] :]
        self._signs.clear()
        return self.least

    def settle(self) -> list[int]:
        """The least values of the symbols from which on all decisions hold. Raises Undecided."""
        for value in self._positive:
            involved = {k for monomial in value.terms for k in monomial}
            while not is_positive(value, self.least):
                for k in involved:
                    self.least[k] += max(1, self.least[k] // 8)
                if max(self.least) > FAR:
                    raise Undecided("what was decided holds for very large sizes only")
        return self.least


class Growing:
    """A polynomial in symbols, with integer coefficients wherever it is compared. Arithmetic returns plain numbers if
    no symbol is left.
    """

    __slots__ = ("_hash", "constant", "sizes", "terms")

    def __init__(self, sizes: Sizes, terms: dict[Monomial, int], constant: int) -> None:
        """terms: the terms that contain symbols; no coefficient is 0."""
        self.sizes, self.terms, self.constant = sizes, terms, constant
        self._hash: int | None = None

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Growing):
            return Growing(self.sizes, self.terms, self.constant + other)
        terms = dict(self.terms)
        for m, c in other.terms.items():
            left = terms.get(m, 0) + c
            if left:
                terms[m] = left
            else:
                del terms[m]
        return _number(self.sizes, terms, self.constant + other.constant)

    __radd__ = __add__

    def __neg__(self) -> Growing:
        return Growing(self.sizes, {m: -c for m, c in self.terms.items()}, -self.constant)

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, Growing):
            return Growing(self.sizes, self.terms, self.constant - other)
        if self.terms == other.terms:
            return self.constant - other.constant
        terms = dict(self.terms)
        for m, c in other.terms.items():
            left = terms.get(m, 0) - c
            if left:
                terms[m] = left
            else:
                del terms[m]
        return _number(self.sizes, terms, self.constant - other.constant)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Growing):
            if not other:
                return 0
            return Growing(self.sizes, {m: c * other for m, c in self.terms.items()}, self.constant * other)
        terms: dict[Monomial, int] = {}
        for (m, c), (n, d) in product(_all(self), _all(other)):
            k = tuple(sorted(m + n))
            terms[k] = terms.get(k, 0) + c * d
        constant = terms.pop((), 0)
        return _number(self.sizes, {m: c for m, c in terms.items() if c}, constant)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        """Rounded down. Raises Undecided where the symbols decide the remainder."""
        if isinstance(other, Growing):
            raise Undecided(f"how often {other} fits into {self}")
        if any(c % other for c in self.terms.values()):
            raise Undecided(f"the remainder of {self} by {other}")
        return Growing(self.sizes, {m: c // other for m, c in self.terms.items()}, self.constant // other)

    def __rfloordiv__(self, other: int) -> Any:
        raise Undecided(f"how often {self} fits into {other}")

    def __mod__(self, other: int) -> Any:
        return self - self // other * other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Growing) and self._less(other) == 0

    def __lt__(self, other: Any) -> bool:
        return self._less(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._less(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._less(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._less(other) >= 0

    def _less(self, other: Any) -> int:
        """The sign of the difference."""
        if isinstance(other, int):
            return self.sizes.sign(self.terms, self.constant - other)
        if self.terms == other.terms:
            return int(self.constant > other.constant) - int(self.constant < other.constant)
        difference = self - other
        return self.sizes.sign(difference.terms, difference.constant)

    def at(self, values: list[int]) -> int:
        """The value at these values of the symbols."""
        return self.constant + sum(c * prod(values[k] for k in m) for m, c in self.terms.items())

    def __bool__(self) -> bool:
        return self._less(0) != 0

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.key)
        return self._hash

    @property
    def key(self) -> object:
        """A key that is equal for equal numbers."""
        return self.constant, frozenset(self.terms.items())

    def __str__(self) -> str:
        return " + ".join("*".join([str(c), *(f"s{k}" for k in m)]) for m, c in _all(self))


def _all(value: Growing) -> list[tuple[Monomial, int]]:
    return [*value.terms.items(), ((), value.constant)]


def _number(sizes: Sizes, terms: dict[Monomial, int], constant: int) -> Growing | int:
    return Growing(sizes, terms, constant) if terms else constant


def is_positive(value: Growing, least: list[int]) -> bool:
    """Whether the coefficients show that a number is positive for all symbols of at least `least`."""
    if value.constant >= 0 and all(c > 0 for c in value.terms.values()):
        return value.constant > 0 or all(least[k] > 0 for m in value.terms for k in m)
    shifted: dict[Monomial, int] = {}
    for monomial, factor in _all(value):
        powers = [(k, monomial.count(k)) for k in dict.fromkeys(monomial)]
        for taken in product(*(range(p + 1) for _, p in powers)):
            rest = tuple(k for (k, _), t in zip(powers, taken, strict=True) for _ in range(t))
            weight = prod(comb(p, t) * least[k] ** (p - t) for (k, p), t in zip(powers, taken, strict=True))
            shifted[rest] = shifted.get(rest, 0) + factor * weight
    return shifted.pop((), 0) > 0 and all(c >= 0 for c in shifted.values())


def substituted(value: Any, u: int, by: Any) -> Any:
    """A form with another form in place of a coordinate."""
    if not isinstance(value, Growing) or not any(u in monomial for monomial in value.terms):
        return value
    total: Any = value.constant
    for monomial, factor in value.terms.items():
        if u not in monomial:
            total = total + Growing(value.sizes, {monomial: factor}, 0)
            continue
        term: Any = factor
        for v in monomial:
            term = term * (by if v == u else value.sizes.symbol(v))
        total = total + term
    return total


def same(a: Any, b: Any) -> bool:
    """Whether two numbers are the same polynomial."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return isinstance(a, Growing) and isinstance(b, Growing) and a.terms == b.terms and a.constant == b.constant


def divided(form: Growing) -> Growing:
    """A form that is at least 0 in the same places, without a common divisor of its coefficients."""
    common = gcd(*form.terms.values())
    if common == 1:
        return form
    return Growing(form.sizes, {m: c // common for m, c in form.terms.items()}, form.constant // common)
