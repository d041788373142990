"""Sums of conditional terms while they are added up, and readable names for what they define."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import count

from roofdsl.counts.growth import FAR
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import MADE, Alternatives, Definition, Rest, Root, Span, Term, Terms

_Key = tuple[Alternatives, Span | None, frozenset[str]]
"""Condition, variable of summation, and the names of roots: terms that share these are added up."""


class TermSum:
    """Terms that are added up if they have the same condition and the same roots."""

    def __init__(self, constant: int) -> None:
        self.values: dict[_Key, Quasi] = {((), None, frozenset()): Quasi.constant(constant)}

    def add(self, terms: Iterable[Term], factor: int) -> None:
        for term in terms:
            made = frozenset(n for n in term.value.names() if n.startswith(MADE))
            key = term.where, term.over, made
            self.values[key] = self.values.get(key, Quasi.constant(0)) + term.value * factor


class Names:
    """Replaces the generated names by readable ones that the kernel does not use, consistently in all sums."""

    def __init__(self, sizes: Mapping[str, Quasi], limit: Quasi) -> None:
        self.sizes, self.limit = sizes, limit
        self.taken = {n for value in sizes.values() for n in value.names()} | limit.names()
        self.numbers: dict[str, Iterator[int]] = {}
        self.put: dict[str, Quasi] = {}

    def terms(self, sums: tuple[TermSum, ...], definitions: tuple[Definition, ...]) -> Terms:
        """The sums added up, in the kernel's parameters, ordered by the cache size up to which their terms hold."""
        values: dict[_Key, Quasi] = {}
        for one in sums:
            for key, value in one.values.items():
                values[key] = values.get(key, Quasi.constant(0)) + value
        terms = tuple(Term(value, where, over) for (where, over, _), value in values.items() if value)
        found = Terms((), definitions).only(terms).substitute(self.sizes)
        meaning = {d.name: d for d in found.definitions}
        ordered = tuple(sorted(found.terms, key=lambda term: _reach(term, meaning, self.limit)))
        for term in ordered:
            if term.over is not None:
                self._give(term.over.name, "i")
            for name in sorted(_made(term), key=lambda n: (n not in meaning, isinstance(meaning.get(n), Rest), n)):
                if name in meaning:
                    self._name(name, meaning)
        place = {n: k for k, n in enumerate(self.put)}
        defined = tuple(sorted(found.definitions, key=lambda d: place[d.name]))
        return Terms(ordered, defined).substitute(self.put)

    def _name(self, name: str, meaning: Mapping[str, Definition]) -> None:
        d = meaning[name]
        for other in sorted(d.of.names() | d.low.names() | d.high.names()):
            if other in meaning and other != name:
                self._name(other, meaning)
        self._give(name, "s" if isinstance(d, Rest) else "r")

    def _give(self, name: str, prefix: str) -> None:
        if name not in self.put:
            numbers = self.numbers.setdefault(prefix, count(1))
            found = next(f"{prefix}{k}" for k in numbers if f"{prefix}{k}" not in self.taken)
            self.put[name] = Quasi.symbol(found)


def _made(term: Term) -> set[str]:
    """The generated names in a term."""
    return {n for n in term.names() if n.startswith(MADE)}


class _Far(dict[str, int]):
    """Large values for all sizes; names that are made of sizes get half of that."""

    def __missing__(self, name: str) -> int:
        return FAR // 2 if name.startswith(MADE) else FAR


def _reach(term: Term, meaning: Mapping[str, Definition], limit: Quasi) -> tuple[bool, Fraction]:
    """A sort key: terms that always hold come first, then by the cache size up to which they hold, for large sizes."""
    reached: list[Fraction] = []
    (cache,) = limit.names() or {""}
    for value, _ in (c for alternative in term.where for c in alternative):
        slope = dict(value.terms).get(((cache, 1),), Fraction(0))
        if slope < 0:
            reached.append(value.evaluate(_Far({cache: 0})) / -slope)
    for name in _made(term):
        root = meaning.get(name)
        if isinstance(root, Root):
            ends = (root.low.evaluate(_Far()), root.high.evaluate(_Far()))
            reached += [root.of.evaluate(_Far({name: int(end)})) for end in ends]
    return bool(reached or term.where or term.over), max(reached, default=Fraction(0))
