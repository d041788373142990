"""A lower bound at given sizes: exact arithmetic without sympy, on records that can be kept on disk.

`bounds.bound` finds the bound. Its arguments have three forms here: counts of input elements; `Segments`, for arguments
that cut the run into segments; and `Live`, for arguments with values that are live at certain moments. Roots are
rounded such that a bound may be too low, by less than one part in 10^15, and never too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

from roofdsl.lang.record import Record
from roofdsl.sets.cases import Cases

COMPULSORY = "compulsory"

DIGITS = 10**30
"""Irrational constants are rounded up to a multiple of one over this number."""

ROOT = 10**20
"""The same for roots at given sizes."""


class Power(Record):
    """`constant` * X^`exponent`; the constant is at least the true one."""

    constant: Fraction
    exponent: Fraction

    def at(self, x: Fraction) -> Fraction:
        """An upper bound of the value for x >= 1, as close as ROOT allows."""
        a, b = self.exponent.numerator, self.exponent.denominator
        if b == 1:
            return self.constant * x**a
        scaled = x.numerator**a * ROOT**b // x.denominator**a
        return self.constant * Fraction(root(scaled, b) + 1, ROOT)


class Share(Record):
    """Executions of which a segment with X objects holds at most the sum of `allowed` at X."""

    executions: tuple[Cases, ...]
    allowed: tuple[Power, ...]


class Segments(Record):
    """loads >= T (sum over shares of |executions| / allowed(X) - 1) - made, with X = room + T + more.

    room = S + `registers`; T = `ratio` room, rounded up if `whole`. made: arrivals that are no loads, each count with a
    factor. apart: the argument also holds for each of several fast memories alone (`loads`). In elements, or all of it
    in bytes.
    """

    shares: tuple[Share, ...]
    ratio: Fraction
    whole: bool
    registers: int
    more: int
    made: tuple[tuple[int, Cases], ...]
    apart: bool

    def loads(self, sizes: Mapping[str, int], size: int, memories: int = 1) -> Fraction:
        """The loads into `memories` fast memories of `size` each, whatever executions each of them serves.

        A segment belongs to one memory, and what another one computed arrives in it by a load. Each memory may have one
        segment that is not whole: T (sum of |executions| / allowed(X) - memories) - made. If several memories begin
        partial sums of one result, those of all but one are loaded to be added: what is saved at first is paid then.
        """
        room = Fraction(size + self.registers)
        arrivals = self.ratio * room
        if self.whole:
            arrivals = Fraction(ceil(arrivals))
        held = room + arrivals + self.more
        found = Fraction(-memories)
        for share in self.shares:
            executions = sum((c.evaluate(sizes) for c in share.executions), Fraction(0))
            found += executions / sum((p.at(held) for p in share.allowed), Fraction(0))
        return arrivals * found - sum((n * c.evaluate(sizes) for n, c in self.made), Fraction(0))


class Live(Record):
    """loads >= inputs + the sum over parts of max(0, live - moments * (S + registers)); of one part, without the max.

    parts: (values live at all moments together, moments).
    """

    inputs: Cases
    parts: tuple[tuple[tuple[Cases, ...], Cases], ...]
    registers: int

    def loads(self, sizes: Mapping[str, int], size: int) -> Fraction:
        """The loads into a fast memory of `size` elements."""
        terms = [
            sum((c.evaluate(sizes) for c in live), Fraction(0)) - moments.evaluate(sizes) * (size + self.registers)
            for live, moments in self.parts
        ]
        if len(terms) > 1:
            terms = [max(Fraction(0), term) for term in terms]
        return self.inputs.evaluate(sizes) + sum(terms, Fraction(0))


class LowerBound(Record):
    """A lower bound that can be evaluated at given sizes.

    arrays: (name, bytes of an element, input elements that are read) of each array. arguments: by name, in elements.
    in_bytes: by name, arguments that count each element by its own size; empty if all elements have the same size, or
    no argument does. element_bytes: of the smallest element. notes: arguments that gave nothing, and why.
    """

    arrays: tuple[tuple[str, int, Cases], ...]
    arguments: tuple[tuple[str, Segments | Live], ...]
    in_bytes: tuple[tuple[str, Segments], ...]
    element_bytes: int
    notes: tuple[str, ...] = ()

    def at(self, sizes: Mapping[str, int], elements: int, memories: int = 1) -> tuple[int, str]:
        """(whole loads, the argument that gives them) into a fast memory of so many elements.

        memories: the number of such fast memories, whose loads are added; what a memory needs may be in another one,
        and is loaded all the same. Arguments that do not hold for each memory alone treat all of them as one memory of
        their total size.
        """
        once = sum((count.evaluate(sizes) for _, _, count in self.arrays), Fraction(0))
        found = [(once, COMPULSORY)]
        for name, argument in self.arguments:
            found.append((argument.loads(sizes, elements * memories), name))
            if memories > 1 and isinstance(argument, Segments) and argument.apart:
                found.append((argument.loads(sizes, elements, memories), name))
        return _largest(found)

    def bytes_at(self, sizes: Mapping[str, int], cache_bytes: int, memories: int = 1) -> tuple[int, str]:
        """As `at`, in bytes of loads into fast memories of `cache_bytes`.

        All elements are taken to be of the smallest size: fast memory then holds the most of them, and each load moves
        the fewest bytes, so this is a lower bound even if sizes differ. Then the first loads of the inputs and the
        partition argument also count in bytes, and the larger value counts.
        """
        loads, argument = self.at(sizes, cache_bytes // self.element_bytes, memories)
        best = loads * self.element_bytes, argument
        if len({size for _, size, _ in self.arrays} | {self.element_bytes}) > 1 or self.in_bytes:
            best = max(best, _largest(self._in_bytes(sizes, cache_bytes, memories)))
        return best

    def _in_bytes(self, sizes: Mapping[str, int], cache_bytes: int, memories: int) -> Iterator[tuple[Fraction, str]]:
        yield sum((size * count.evaluate(sizes) for _, size, count in self.arrays), Fraction(0)), COMPULSORY
        for name, argument in self.in_bytes:
            yield argument.loads(sizes, cache_bytes * memories), name
            if memories > 1 and argument.apart:
                yield argument.loads(sizes, cache_bytes, memories), name


def _largest(found: Iterable[tuple[Fraction, str]]) -> tuple[int, str]:
    """The first of the largest, in whole loads."""
    best = (0, COMPULSORY)
    for value, name in found:
        if ceil(value) > best[0]:
            best = (ceil(value), name)
    return best


def root(n: int, k: int) -> int:
    """The integer part of the k-th root of n >= 0 (Newton's method from above)."""
    if k == 2 or n < 2:
        return isqrt(n) if k == 2 else n
    x = 1 << -(-n.bit_length() // k)
    while True:
        y = ((k - 1) * x + n // x ** (k - 1)) // k
        if y >= x:
            return x
        x = y


def rounded_up(value: Any) -> Fraction:
    """A positive number of sympy as a fraction, at least as large."""
    import sympy

    if value.is_Rational:
        return Fraction(int(value.p), int(value.q))
    return Fraction(int(sympy.ceiling(value * DIGITS)), DIGITS)
