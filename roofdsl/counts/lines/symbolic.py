"""Whole numbers that grow with sizes: polynomials that are compared as large sizes compare them.

Code that adds, multiplies and compares numbers runs with these in their place. Every comparison is decided as it comes
out for all sizes that are large enough, and noted, so that in the end one knows how large that is: then the run holds
for all these sizes, and what it computed is proven for them.
"""

from __future__ import annotations

from functools import total_ordering
from itertools import product
from math import comb, prod
from typing import Any

Monomial = tuple[int, ...]
"""Numbers of the symbols that are multiplied, ascending; none: the constant."""

FAR = 1 << 20
"""What symbols are taken to be at least while it is found out how large they must be."""


class Undecided(Exception):
    """Which of two numbers is the larger depends on which size is; or a number is no whole one."""


class Sizes:
    """The symbols 0, ..., count - 1, whole numbers from some least values on, and what was decided of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.least = [0] * count
        self._positive: set[Growing] = set()

    def symbol(self, number: int) -> Growing:
        return Growing(self, {(number,): 1}, 0)

    def sign(self, value: Growing) -> int:
        """Of a number that is not constant: 1 or -1, for all sizes large enough. Raises Undecided."""
        for sign in (1, -1):
            signed = value if sign > 0 else -value
            if is_positive(signed, [FAR] * self.count):
                self._note(signed)
                return sign
        raise Undecided(f"which of the sizes is the larger decides whether {value} is positive")

    def _note(self, value: Growing) -> None:
        """That a number is taken to be positive."""
        if len(value.terms) == 1:
            (monomial, factor), *_ = value.terms.items()
            if len(monomial) == 1:
                (k,) = monomial
                self.least[k] = max(self.least[k], -value.constant // factor + 1)
                return
        self._positive.add(value)

    def settle(self) -> list[int]:
        """Least values of the symbols from which on all that was decided holds. Raises Undecided."""
        for value in self._positive:
            involved = {k for monomial in value.terms for k in monomial}
            while not is_positive(value, self.least):
                for k in involved:
                    self.least[k] += max(1, self.least[k] // 8)
                if max(self.least) > FAR:
                    raise Undecided("what was decided holds for very large sizes only")
        return self.least


@total_ordering
class Growing:
    """A polynomial in symbols with whole coefficients. Arithmetic gives plain integers where nothing else is left."""

    __slots__ = ("_hash", "constant", "sizes", "terms")

    def __init__(self, sizes: Sizes, terms: dict[Monomial, int], constant: int) -> None:
        """terms: of the symbols, none of them 0."""
        self.sizes, self.terms, self.constant = sizes, terms, constant
        self._hash: int | None = None

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
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
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
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

    def __floordiv__(self, other: int) -> Any:
        """Rounded down. Raises Undecided where the symbols decide the remainder."""
        if any(c % other for c in self.terms.values()):
            raise Undecided(f"the remainder of {self} by {other}")
        return Growing(self.sizes, {m: c // other for m, c in self.terms.items()}, self.constant // other)

    def __mod__(self, other: int) -> Any:
        return self - self // other * other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Growing) and self.terms == other.terms:
            return self.constant == other.constant
        return isinstance(other, int | Growing) and self._less(other) == 0

    def __lt__(self, other: Any) -> bool:
        return self._less(other) < 0

    def _less(self, other: Any) -> int:
        """The sign of the difference."""
        difference = self - other
        if isinstance(difference, int):
            return (difference > 0) - (difference < 0)
        return self.sizes.sign(difference)

    def at(self, values: list[int]) -> int:
        """The value where the symbols have these."""
        return self.constant + sum(c * prod(values[k] for k in m) for m, c in self.terms.items())

    def __bool__(self) -> bool:
        return self._less(0) != 0

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.constant, frozenset(self.terms.items())))
        return self._hash

    def __str__(self) -> str:
        return " + ".join("*".join([str(c), *(f"s{k}" for k in m)]) for m, c in _all(self))


def _all(value: Growing) -> list[tuple[Monomial, int]]:
    return [*value.terms.items(), ((), value.constant)]


def _number(sizes: Sizes, terms: dict[Monomial, int], constant: int) -> Growing | int:
    return Growing(sizes, terms, constant) if terms else constant


def is_positive(value: Growing, least: list[int]) -> bool:
    """Whether a number is positive for all symbols that are at least `least`: its coefficients beyond them show it."""
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
