"""Sums of conditional terms: the form of Q(Z) if a partition into cases would be too long to read.

The misses in a cache of Z bytes are a sum over classes of accesses with one reuse distance, each counted if that is
greater than Z. A distance that grows along a loop exceeds Z beyond a certain iteration, an integer root, which gets a
name. This is plain Python, exact at any sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from roofdsl.lang.record import Record, replace
from roofdsl.sets.cases import Case, Constraint
from roofdsl.sets.facts import Fact
from roofdsl.sets.quasi import Quasi, Rational

Alternatives = tuple[tuple[Constraint, ...], ...]

MADE = "_made_"
"""The prefix of generated names."""


class Root(Record):
    """`name`: the last integer, coming from where `of` is small, at which `of` is at most `limit`.

    If `of` rises, this is the greatest one from `low` to `high`, or low - 1 if there is none. If it falls, it is the
    least one, or high + 1 if there is none. of: a polynomial in `name` and the sizes, monotone from `low` to `high`.
    """

    name: str
    of: Quasi
    limit: Quasi
    low: Quasi
    high: Quasi
    rises: bool = True

    def value(self, env: Mapping[str, Rational]) -> int:
        """The exact value, by bisection if `of` is not linear in `name`. Raises KeyError if a size is missing."""
        low, high = _whole(self.low, env), _whole(self.high, env)
        sign = 1 if self.rises else -1
        first, last = (low, high) if self.rises else (-high, -low)  # of sign * name
        known = {name: Fraction(env[name]) for name in (self.of.names() | self.limit.names()) - {self.name}}
        limit = self.limit.evaluate(known)
        below, above = first - 1, max(last, first - 1) + 1
        if above > first and self.linear is not None:
            constant, slope = (part.evaluate(known) for part in self.linear)
            if slope * sign > 0:
                below = max(below, min(last, (limit - constant) // (slope * sign)))
                above = below + 1
        while above - below > 1:
            middle = (below + above) // 2
            if self.of.evaluate({**known, self.name: sign * middle}) <= limit:
                below = middle
            else:
                above = middle
        return sign * below

    @property
    def linear(self) -> tuple[Quasi, Quasi] | None:
        """(constant, slope) in `name`, if `of` is linear in it."""
        constant, slope = {}, {}
        for monomial, c in self.of:
            powers = dict(monomial)
            if self.name not in powers:
                constant[monomial] = c
            elif powers[self.name] == 1:
                slope[tuple((a, e) for a, e in monomial if a != self.name)] = c
            else:
                return None
        if any(self.name in part.names() for part in map(Quasi.of, (constant, slope))):
            return None  # within a floor
        return Quasi.of(constant), Quasi.of(slope)


class Rest(Record):
    """`name`: the value of `of`, limited to the range from low - 1 to `high`."""

    name: str
    of: Quasi
    low: Quasi
    high: Quasi

    def value(self, env: Mapping[str, Rational]) -> int:
        """The exact value. Raises KeyError if a size is missing."""
        low, high = _whole(self.low, env) - 1, _whole(self.high, env)
        return max(low, min(high, self.of.evaluate(env) // 1))


Definition = Root | Rest


class Span(Record):
    """A variable that a term is summed over: all integers from `low` to `high`."""

    name: str
    low: Quasi
    high: Quasi


class Term(Record):
    """`value` if one of `where` holds (none: always), summed over `over` if there is one."""

    value: Quasi
    where: Alternatives = ()
    over: Span | None = None

    def names(self) -> frozenset[str]:
        """All names in the term: sizes, defined names, and the variable it is summed over."""
        found = self.value.names().union(*(v.names() for a in self.where for v, _ in a))
        return found if self.over is None else found | self.over.low.names() | self.over.high.names()


class Terms(Record):
    """The sum of the terms whose conditions hold.

    definitions: names used in terms and in later definitions, each after those that it uses. assumes: assumptions
    beyond the kernel's own.
    """

    terms: tuple[Term, ...]
    definitions: tuple[Definition, ...] = ()
    assumes: tuple[Fact, ...] = ()

    def only(self, terms: Sequence[Term]) -> Terms:
        """The sum of some of the terms, with the definitions that they use."""
        names = set[str]().union(*(t.names() for t in terms))
        kept: list[Definition] = []
        for d in reversed(self.definitions):
            if d.name in names:
                kept.append(d)
                names |= d.of.names() | d.low.names() | d.high.names()
        return Terms(tuple(terms), tuple(reversed(kept)), self.assumes)

    def evaluate(self, env: Mapping[str, Rational]) -> Fraction:
        """The exact value. Raises KeyError for a missing parameter."""
        outer = self._defined(env, frozenset())
        total = Fraction(0)
        for span, terms in self._by_span():
            if span is None:
                total += _sum(terms, outer)
                continue
            for at in range(_whole(span.low, outer), _whole(span.high, outer) + 1):
                total += _sum(terms, self._defined({**outer, span.name: at}, frozenset((span.name,))))
        return total

    def _by_span(self) -> Iterator[tuple[Span | None, list[Term]]]:
        groups: dict[Span | None, list[Term]] = {}
        for term in self.terms:
            groups.setdefault(term.over, []).append(term)
        yield from groups.items()

    def _defined(self, env: Mapping[str, Rational], inner: frozenset[str]) -> dict[str, Rational]:
        """`env` with the definitions that use one of `inner`; if `inner` is empty, with those that use no such
        variable.
        """
        found = dict(env)
        for definition in self.definitions:
            names = self._variables[definition.name]
            if names == inner:
                found[definition.name] = definition.value(found)
        return found

    @cached_property
    def _variables(self) -> Mapping[str, frozenset[str]]:
        """The variables of summation on which each definition depends, also through other definitions."""
        spans = {t.over.name for t in self.terms if t.over is not None}
        known: dict[str, frozenset[str]] = {}
        for d in self.definitions:
            names = d.of.names() | d.low.names() | d.high.names()
            known[d.name] = (names & spans).union(*(known[n] for n in names if n in known))
        return known

    def substitute(self, put: Mapping[str, Quasi]) -> Terms:
        """Every symbol in `put` replaced, definitions and summation variables only by other names; `assumes` stays as
        it is.
        """

        def name(old: str) -> str:
            return _only_name(put[old]) if old in put else old

        def definition(d: Definition) -> Definition:
            low, high, of = (v.substitute(put) for v in (d.low, d.high, d.of))
            if isinstance(d, Rest):
                return Rest(name(d.name), of, low, high)
            return Root(name(d.name), of, d.limit.substitute(put), low, high, d.rises)

        def term(t: Term) -> Term:
            over = t.over
            if over is not None:
                over = Span(name(over.name), over.low.substitute(put), over.high.substitute(put))
            where = tuple(tuple((v.substitute(put), zero) for v, zero in a) for a in t.where)
            return Term(t.value.substitute(put), where, over)

        return Terms(tuple(map(term, self.terms)), tuple(map(definition, self.definitions)), self.assumes)

    def assuming(self, assumes: tuple[Fact, ...]) -> Terms:
        return replace(self, assumes=assumes)


def _only_name(value: Quasi) -> str:
    (name,) = value.names()
    return name


def _whole(value: Quasi, env: Mapping[str, Rational]) -> int:
    found = value.evaluate(env)
    if found.denominator != 1:
        raise ArithmeticError(f"a bound came out as {found}")
    return int(found)


def _sum(terms: list[Term], env: Mapping[str, Rational]) -> Fraction:
    return sum((t.value.evaluate(env) for t in terms if Case(t.where, t.value).holds(env)), Fraction(0))
