"""Misses and write-backs, counted from the reuse of every array.

See docs/rules.md, steps S4 and S5. A `Rule` decides for each piece of the reuse distance which accesses miss: those
whose distance exceeds the cache size. The accesses that miss are kept in parts: integer sets if the condition is
affine, and `Curved` parts otherwise, which are counted only at given sizes, over the values of the few dimensions that
make them nonlinear (Haystack, PLDI 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import islpy as isl

from roofdsl.sets.dimensions import dimensions, parameters, tuple_name
from roofdsl.sets.isl_text import affine_text
from roofdsl.sets.polynomial_bounds import growing_bounds
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.reuse import ArrayReuse
from roofdsl.sets.roots import positive_in_one_parameter

MAX_FRESH = 3
"""The maximum number of polynomials of several parameters that may become parameters themselves in one count."""


class CannotCount(Exception):
    """Integer sets cannot produce a count; the message says why."""


@dataclass(frozen=True)
class Curved:
    """Points of `domain` (isl.Set) with `excess` > 0, where `excess` is not affine in the dimensions d0, d1, ..."""

    domain: Any
    excess: Quasi


Rule = Callable[[Any, Quasi], "Any | Curved"]
"""(domain of a piece, its reuse distance in bytes) -> the part of the domain that misses."""


@dataclass(frozen=True)
class Part:
    """Points that miss: an isl.Set, and curved pieces disjoint from it."""

    flat: Any
    curved: tuple[Curved, ...] = ()

    def within(self, domain: Any) -> Part:
        return Part(
            self.flat.intersect(domain), tuple(Curved(c.domain.intersect(domain), c.excess) for c in self.curved)
        )


@dataclass(frozen=True)
class Residencies:
    """The traffic of one array: residencies begun, those begun by a read, and stores, each as parts to count.

    The unit is a line of `bytes` bytes.
    """

    array: str
    bytes: int
    begun: Part
    begun_by_read: Part
    stored: tuple[Part, ...]


def exceeding(cache: Quasi, fresh: Fresh, large: list[Quasi] | None = None) -> Rule:
    """The rule of an LRU cache of `cache` bytes: an access misses if its distance is greater.

    With `large`: a piece that is not affine but misses as a whole at large enough sizes is assumed to miss, and the
    polynomials that must be positive for that are appended to `large`. The rule raises CannotCount.
    """

    def rule(domain: Any, distance: Quasi) -> Any | Curved:
        excess = distance - cache
        if excess.is_constant():
            return domain if excess.constant_value() > 0 else isl.Set.empty(domain.get_space())
        found = positive_in_one_parameter(domain, excess)
        if found is None:
            found = where_positive(domain, excess, fresh)
        if found is None and large is not None:
            least = growing_bounds(domain, excess)
            if least:
                large.extend(v for v in least if v not in large)
                return domain
        return Curved(domain, excess) if found is None else found

    return rule


@dataclass
class Fresh:
    """Names for polynomials of parameters that become parameters themselves while sets are counted."""

    names: dict[Quasi, str] = field(default_factory=dict)

    def name(self, polynomial: Quasi) -> str:
        return self.names.setdefault(polynomial, f"M{len(self.names)}")

    def meaning(self) -> dict[str, Quasi]:
        return {name: polynomial for polynomial, name in self.names.items()}

    def context(self, least: int) -> Any:
        """The known facts about the names if every parameter is at least `least`, as an isl.Set of parameters.

        The names are at least the chords of their polynomials, which excludes most of the impossible cases.
        """
        known = isl.Set("{ : }")
        for name, polynomial in self.meaning().items():
            for start in (least, 2 * least, 4 * least):
                chord = _chord(polynomial, least, start)
                if chord is not None:
                    names = ", ".join(sorted({name, *polynomial.names()}))
                    known = known.intersect(isl.Set(f"[{names}] -> {{ : {name} >= {affine_text(chord)} }}"))
        return known


def _chord(polynomial: Quasi, least: int, start: int) -> Quasi | None:
    """An affine function nowhere above `polynomial` if its parameters are integers of at least `least`.

    Powers are convex, so the line through n**k at `start` and at start + 1 is nowhere above them at integer n; n*m >=
    a*n + a*m - a**2, because (n - a)*(m - a) >= 0 for a = `least`. None if there are other terms.
    """
    total = Quasi.constant(0)
    for monomial, c in polynomial:
        if c < 0 or any(not isinstance(atom, str) or power < 0 for atom, power in monomial):
            return None
        match monomial:
            case ((str() as n, k),):
                slope = (start + 1) ** k - start**k
                total += (Quasi.symbol(n) * slope + (start**k - slope * start)) * c
            case ((str() as n, 1), (str() as m, 1)):
                total += ((Quasi.symbol(n) + Quasi.symbol(m)) * least - least**2) * c
            case ():
                total += c
            case _:
                return None
    return total if all(c.denominator == 1 for _, c in total) else None


def where_positive(domain: Any, excess: Quasi, fresh: Fresh) -> Any | None:
    """The isl.Set of points of `domain` with excess > 0; None if it is not affine in dimensions. Raises CannotCount."""
    names = dimensions(domain)
    excess = excess * lcm(*(c.denominator for _, c in excess))
    in_dims, rest = excess.split(frozenset(names))
    text = affine_text(in_dims)
    if text is None:
        return None
    straight = affine_text(rest)
    if straight is None:
        affine = Quasi.of({m: c for m, c in rest if _is_affine(m)})
        content = gcd(*(int(c) for _, c in rest - affine))
        curved = (rest - affine) * Fraction(1, content)
        if len(fresh.names) >= MAX_FRESH and curved not in fresh.names:
            raise CannotCount("the reuse distances are products of several unknown sizes")
        straight = f"{affine_text(affine)} + {content}*{fresh.name(curved)}"
    params = set(parameters(domain)) | excess.names() - set(names) | set(fresh.names.values())
    head = f"[{', '.join(sorted(params))}] -> "
    return domain.intersect(isl.Set(f"{head}{{ {tuple_name(domain)}[{', '.join(names)}] : {text} + {straight} > 0 }}"))


def _is_affine(monomial: Any) -> bool:
    return affine_text(Quasi.of({monomial: 1})) is not None


def residencies(reuse: ArrayReuse, rule: Rule, *, stores: bool = True) -> Residencies:
    """The residencies of one array under a rule, optionally without its stores.

    Raises CannotCount if integer sets cannot count the write-backs; NotCertified and TooHard.
    """
    begun = missing(reuse.cold, reuse.distances, rule)
    reading = begun if reuse.reading.is_equal(reuse.all) else begun.within(reuse.reading)
    stored = _stored(reuse, rule, begun) if stores and not reuse.writes.is_empty() else ()
    return Residencies(reuse.name, reuse.bytes, begun, reading, stored)


def missing(start: Any, distances: tuple[tuple[Any, Quasi], ...], rule: Rule) -> Part:
    """`start` and the parts of the pieces of `distances` that miss under `rule`."""
    flat = start
    curved = []
    for domain, value in distances:
        part = rule(domain, value)
        if isinstance(part, Curved):
            curved.append(part)
        else:
            flat = flat.union(part)
    return Part(flat.coalesce(), tuple(curved))


def _stored(reuse: ArrayReuse, rule: Rule, begun: Part) -> tuple[Part, ...]:
    """The residencies with a write that end in a store, one point each.

    A write is the last one of its residency (which is then stored) exactly if some later access to its line, up to and
    including the next write, misses. After the last write, the line is stored when it is evicted, or by the flush at
    the end; a line of a `temp` array only if it is evicted before the end.
    """
    parts = [begun.within(reuse.lone_writes)]
    several = reuse.shared_windows
    if not several.is_empty():
        if any(not c.domain.intersect(several.range()).is_empty() for c in begun.curved):
            raise CannotCount(f"write-backs of {reuse.name} depend on distances that are not affine")
        parts.append(Part(several.intersect_range(begun.flat).domain()))
    written = reuse.touch.intersect_domain(reuse.writes).range()
    if reuse.end_distances is None:
        parts.append(Part(written))
        return tuple(parts)
    tail = reuse.after_last_write
    if any(not c.domain.intersect(tail.range()).is_empty() for c in begun.curved):
        raise CannotCount(f"write-backs of {reuse.name} depend on distances that are not affine")
    evicted = tail.intersect_range(begun.flat).domain()
    at_end = missing(isl.Set.empty(written.get_space()), reuse.end_distances, rule)
    if at_end.curved:
        raise CannotCount(f"write-backs of {reuse.name} depend on distances that are not affine")
    parts.append(Part(evicted.union(at_end.flat.intersect(written)).coalesce()))
    return tuple(parts)
