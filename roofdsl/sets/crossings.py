"""The number of accesses with a reuse distance greater than Z, for symbolic Z and sizes: terms with integer roots.

See docs/rules.md, step S4. If all accesses of a piece have the same distance, their count gets the condition Z <
distance, whatever its degree in the sizes. If the distance grows along one affine form of the loop variables, it passes
Z at an integer root, which becomes an ordinary parameter of the count. A smaller part that depends on other variables
(16*n*i + 8*j with 8*j < 16*n) matters only at the root itself. There, the part of Z that is left becomes another
parameter. A distance that is nonlinear in two variables is summed over one of them (Haystack, PLDI 2019, counts the
values of that variable one by one).

It is proven first that the distance grows or falls, and that the smaller part is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

import islpy as isl

from roofdsl.lang.record import Record
from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.cases import conditions, merge
from roofdsl.sets.dimensions import dimensions, of_parameters, parameters, where
from roofdsl.sets.extents import as_parameter, extents
from roofdsl.sets.isl_text import affine_text, sign_text
from roofdsl.sets.library import pieces
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.roots import intervals_of
from roofdsl.sets.signs import least_value, nowhere_negative
from roofdsl.sets.terms import MADE, Alternatives, Definition, Rest, Root, Span, Term

MOST_AT_ROOT = 3
"""The maximum number of values of the main variable, from the root down, at which the rest of a distance may decide."""

Longest = tuple[Quasi, ...]
"""Distances of which the longest counts; none: infinite."""

_AT = "_at"
"""Stands for the variable of a root until it has a name."""


class Region(Record):
    """A part of a domain.

    here: its points. beyond: the disjoint isl.Sets of its points that exceed the limit. names: the isl parameters of
    roots and rests in them; known: isl text of what holds for these. threshold: the condition on sizes and limit under
    which `beyond` counts; empty if always.
    """

    here: Any
    beyond: tuple[Any, ...]
    names: tuple[str, ...] = ()
    known: str = "true"
    threshold: Alternatives = ()


class Course(Record):
    """The part of a distance that rises or falls with `along`.

    of: that part, as a function of _AT, the value of `along`. along: an affine form of the dimensions. low, high: its
    range, in the parameters. sign: 1 if that part does not fall, -1 if it does not rise.
    """

    along: Quasi
    of: Quasi
    low: Quasi
    high: Quasi
    sign: int = 1

    def beyond(self, root: str) -> str:
        text = affine_text(self.along)
        return f"{text} >= {root} + 1" if self.sign > 0 else f"{text} <= {root} - 1"

    def known(self, root: str) -> str:
        low, high = affine_text(self.low), affine_text(self.high)
        return f"{low} - 1 <= {root} <= {high}" if self.sign > 0 else f"{low} <= {root} <= {high} + 1"


class Crossings:
    """Counts the accesses that exceed `limit` (a quasi-polynomial without isl parameters) on `context`.

    context: isl parameter set. The limit is at least `least`. Names that this class creates begin with MADE, and are
    isl parameters as well.
    """

    def __init__(self, context: Any, limit: Quasi, least: int) -> None:
        self.context, self.limit, self.least = context, limit, least
        self._definitions: dict[Definition, str] = {}
        self._spans: dict[tuple[Quasi, Quasi], Span] = {}

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions of the names in terms, each after those that it uses."""
        return tuple(_named(d, name) for d, name in self._definitions.items())

    def terms(self, domain: Any, distances: Longest) -> list[Term]:
        """The number of points of `domain` (isl.Set) at which the longest of `distances` exceeds the limit.

        Without any distances, the distance counts as infinite. Raises TooHard, and CannotCount for distances of a form
        that this class does not count, such as one nonlinear in several variables.
        """
        domain = domain.intersect_params(self.context)
        if domain.is_empty():
            return []
        if not distances:
            return self._counted(domain, Region(domain, (domain,)), None)
        try:
            return self._all_counted(domain, distances, None)
        except CannotCount:
            # For each value of one variable, which is then a parameter like a size, the others are counted as before. A
            # distance that was nonlinear in two variables is then nonlinear in one.
            dims = frozenset(dimensions(domain))
            inside = dims & frozenset[str]().union(*(d.names() for d in distances))
            bent = {n: not all(_is_straight(d.split(dims - {n})[0]) for d in distances) for n in inside}
            # a sum over one variable; first those that leave a distance affine with numbers as coefficients
            for name in sorted(inside, key=lambda n: (bent[n], n)):
                try:
                    return self._summed(domain, distances, name)
                except CannotCount:
                    continue
            if any(not isinstance(a, str) and a.of.names() & dims for d in distances for a in d.atoms()):
                raise CannotCount(
                    "reuse distances round loop variables down, as with lines of several elements"
                ) from None
            raise CannotCount("a reuse distance is nonlinear in several loop variables") from None

    def _summed(self, domain: Any, distances: Longest, name: str) -> list[Term]:
        """The terms as sums over dimension `name`. Raises CannotCount."""
        found: list[Term] = []
        for here, low, high in extents(domain, Quasi.symbol(name)):
            # Equal extents share a span, so that all their terms are added up in one pass over it.
            span = self._spans.setdefault((low, high), Span(f"{MADE}i{len(self._spans)}", low, high))
            fixed, renamed = as_parameter(here, name, span.name)
            found += self._all_counted(fixed, tuple(d.substitute(renamed) for d in distances), span)
        return found

    def _all_counted(self, domain: Any, distances: Longest, span: Span | None) -> list[Term]:
        alone = len(distances) == 1
        regions = self._regions(domain, distances[0], alone=alone)
        for other in distances[1:]:
            # The longest distance exceeds the limit where one of them does. The parts of each are intersected with
            # those of the others, and a point is beyond if it is beyond in either.
            more = self._regions(domain, other, alone=alone)
            regions = [joined for a in regions for b in more if (joined := _joined(a, b)) is not None]
        return [term for region in regions for beyond in region.beyond for term in self._counted(beyond, region, span)]

    # ---- shapes of distances ----

    def _regions(self, domain: Any, distance: Quasi, *, alone: bool) -> list[Region]:
        """`domain` in parts, each with its points that exceed the limit. alone: there is no other distance.

        Raises CannotCount.
        """
        dims = frozenset(dimensions(domain)) & distance.names()
        inside, outside = distance.split(dims)
        # A floor of loop variables jumps. Along these variables, the distance is not a polynomial and may have several
        # roots.
        if any(not isinstance(a, str) for a in inside.atoms()):
            raise CannotCount("a reuse distance has a floor of loop variables")
        if _is_straight(inside):
            return self._straight(domain, inside, outside, alone=alone)
        for name in sorted(dims):
            try:
                return self._along(domain, distance, name, alone=alone)
            except CannotCount:
                continue
        raise CannotCount("a reuse distance is nonlinear in several loop variables")

    def _level(self, domain: Any, distance: Quasi, *, alone: bool) -> Region:
        """`domain`, all of whose points exceed the limit, or none."""
        # Distances and limits are integers, so greater means at least 1 more. No limit is below `least`, so distances
        # up to `least` never miss, and need no separate parts.
        excess = distance - self.limit - 1
        if distance.is_constant() and distance.constant_value() <= self.least:
            return Region(domain, ())
        if excess.is_constant():
            return Region(domain, (domain,) if excess.constant_value() >= 0 else ())
        # A single distance has its condition beside the term; one of several has a parameter, 0 or 1, in the counted
        # set.
        if alone:
            intervals = _intervals(excess, self.context)
            if intervals is None:
                return Region(domain, (domain,), threshold=(((excess, False),),))
            return Region(domain, (domain,) if intervals else (), threshold=intervals if any(intervals) else ())
        one = Quasi.constant(1)
        # A Rest with low = high = 1 has only two possible values.
        name = self._name(Rest("", distance - self.limit, one, one))  # 1 if it exceeds the limit, otherwise 0
        exceeds = domain.intersect(where(domain, f"{name} = 1", [name]))
        return Region(domain, (exceeds,), (name,), f"0 <= {name} <= 1")

    def _straight(self, domain: Any, inside: Quasi, outside: Quasi, *, alone: bool) -> list[Region]:
        """The parts for a distance of `inside`, affine in the dimensions with plain numbers, plus `outside`."""
        if not inside:
            return [self._level(domain, outside, alone=alone)]
        # 16*i + 8*j has only multiples of 8 as values. The root is a value of 2*i + j, which takes every value between
        # its ends. If all variables make the distance shorter, the root is a value of 2*i + j, too, and not of -2*i -
        # j; the distance then falls along it.
        scale, sign = gcd(*(int(c) for _, c in inside)), -1 if all(c < 0 for _, c in inside) else 1
        along, of = inside * _inverse(scale * sign), Quasi.symbol(_AT) * (scale * sign) + outside
        return [
            self._from(here, Course(along, of, low, high, sign), alone=alone)
            for here, low, high in extents(domain, along)
        ]

    def _along(self, domain: Any, distance: Quasi, name: str, *, alone: bool) -> list[Region]:
        """The parts for a distance that is nonlinear along dimension `name` only. Raises CannotCount."""
        dims = frozenset(dimensions(domain))
        # bent: all terms with `name`, including products such as i*j; straight: terms of other variables; outside:
        # terms of sizes.
        bent, others = distance.split(frozenset((name,)))
        straight, outside = others.split(dims)
        if bent.names() & (dims - {name}) or not _is_straight(straight):
            raise CannotCount(f"the reuse distance mixes {name} with others")
        found: list[Region] = []
        variable, of = Quasi.symbol(name), bent.substitute({name: Quasi.symbol(_AT)}) + outside
        for part, sign, low, high in _monotone(domain, bent, name):
            # If it grows along `name` and has a straight rest, the rest may decide at the root.
            if not sign:
                found += self._straight(part, straight, outside, alone=alone)
            elif low == high:
                found += self._straight(part, straight, of.substitute({_AT: low}), alone=alone)
            elif not straight:
                found.append(self._from(part, Course(variable, of, low, high, sign), alone=alone))
            else:
                # The course gets the least value of the rest. The rest is then nowhere negative, and the distance
                # exceeds the limit wherever the course alone does.
                for here, least, most in extents(part, straight):
                    course = Course(variable, of + least, low, high, sign)
                    found.append(self._with_rest(here, course, straight - least, most - least))
        return found

    def _from(self, here: Any, course: Course, *, alone: bool) -> Region:
        """The points of `here` beyond the root."""
        # With a single value, all points exceed the limit or none does, so no root is needed.
        if course.low == course.high:
            return self._level(here, course.of.substitute({_AT: course.low}), alone=alone)
        # For the library, the root is a parameter like any other. `known` says that it lies between the ends of the
        # course, or just outside them; otherwise the library would count impossible cases.
        root = self._name(Root(_AT, course.of, self.limit, course.low, course.high, course.sign > 0))
        beyond = here.intersect(where(here, course.beyond(root), [root]))
        return Region(here, (beyond,), (root,), course.known(root))

    def _with_rest(self, here: Any, course: Course, rest: Quasi, most: Quasi) -> Region:
        """The points beyond the root, and those near it at which the `rest`, from 0 to `most`, decides."""
        # Past the root, the limit is exceeded whatever the rest is. At the root, and at a few values before it, the
        # rest must exceed the remainder of the limit there, which becomes another parameter.
        region = self._from(here, course, alone=True)
        beyond, names, known = region.beyond, region.names, region.known
        (root,) = names
        scale = gcd(*(int(c) for _, c in (*rest, *most)))
        rest_text, most_text = (affine_text(value * _inverse(scale)) for value in (rest, most))
        for k in range(_window(here, course, rest) + 1):
            at = Quasi.symbol(root) - k * course.sign
            left = (self.limit - course.of.substitute({_AT: at})) * _inverse(scale)
            # The remainder is clamped to the range that matters: a rest from 0 to `most` always exceeds -1 and never
            # `most`. So the parameter is bounded, whatever the limit is.
            name = self._name(Rest("", left, Quasi.constant(0), most * _inverse(scale)))
            text = f"{affine_text(course.along)} = {affine_text(at)} and {rest_text} > {name}"
            beyond += (here.intersect(where(here, text, [root, name])),)
            names += (name,)
            known += f" and -1 <= {name} <= {most_text}"
        return Region(here, beyond, names, known)

    # ---- definitions and counts ----

    def _name(self, definition: Definition) -> str:
        prefix = "r" if isinstance(definition, Root) else "s"
        return self._definitions.setdefault(definition, f"{MADE}{prefix}{len(self._definitions)}")

    def _counted(self, counted: Any, among: Region, span: Span | None) -> list[Term]:
        """The number of points of `counted`, a subset of the region."""
        if counted.is_empty():
            return []
        # `outer` states once what holds wherever the region is not empty; the count then assumes it.
        context, gate = self.context, among.here.params()
        if span is not None:
            text = f"{affine_text(span.low)} <= {span.name} <= {affine_text(span.high)}"
            context = of_parameters(context, (span.name,), text)
        here = of_parameters(context.intersect(gate), among.names, among.known)
        outer = () if context.is_subset(gate) else conditions(gate.gist_params(context))
        found = []
        for part, value in merge([(d.params(), v) for d, v in pieces(cardinality(counted))], here):
            inner = () if here.is_subset(part) else conditions(part.gist_params(here))
            found.append(Term(value, both(both(outer, inner), among.threshold), span))
        return found


def _intervals(excess: Quasi, context: Any) -> Alternatives | None:
    """Where `excess` is at least 0, as bounds of its only isl parameter; None for another form."""
    if (
        len(excess.names()) != 1
        or not excess.names() <= set(parameters(context))
        or any(not isinstance(a, str) for a in excess.atoms())
    ):
        return None
    (name,) = excess.names()
    least = least_value(context, name)
    if least is None:
        least = 1  # as of all sizes
    size = Quasi.symbol(name)
    return tuple(
        (*([(size - first, False)] if first > least else []), *([] if last is None else [(last - size, False)]))
        for first, last in intervals_of(excess + 1, least)  # for integers, e >= 0 is e + 1 > 0
    )


def _joined(a: Region, b: Region) -> Region | None:
    """The intersection of two regions, with the points that exceed the limit in either; None if it is empty."""
    here = a.here.intersect(b.here)
    if here.is_empty():
        return None
    beyond = isl.Set.empty(here.get_space())
    for part in (*a.beyond, *b.beyond):
        beyond = beyond.union(part)
    names = tuple(dict.fromkeys((*a.names, *b.names)))
    return Region(here, (beyond.intersect(here),), names, f"{a.known} and {b.known}")


def both(a: Alternatives, b: Alternatives) -> Alternatives:
    """The conjunction of two conditions."""
    if not a or not b:
        return a or b
    return tuple(tuple(dict.fromkeys((*x, *y))) for x in a for y in b)


def _named(definition: Definition, name: str) -> Definition:
    if isinstance(definition, Rest):
        return Rest(name, definition.of, definition.low, definition.high)
    of = definition.of.substitute({_AT: Quasi.symbol(name)})
    return Root(name, of, definition.limit, definition.low, definition.high, definition.rises)


def _is_straight(value: Quasi) -> bool:
    """Whether `value` is affine with integer coefficients."""
    return all(len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], str) and c.denominator == 1 for m, c in value if m)


def _inverse(scale: int) -> Quasi:
    return Quasi.constant(scale) ** -1


def _monotone(domain: Any, bent: Quasi, name: str) -> Iterator[tuple[Any, int, Quasi, Quasi]]:
    """(part of `domain`, sign, low, high) for the parts on which `bent` is monotone along dimension `name`.

    The dimension runs from low to high there. Sign 1: it does not fall; -1: it does not rise; 0: it does not depend on
    the dimension. Raises CannotCount if monotonicity is not proven.
    """
    variable = Quasi.symbol(name)
    # The change in one step of `name`, from any value `_v` except the last, is nowhere negative or nowhere positive on
    # the part.
    growth = bent.substitute({name: variable + 1}) - bent
    steps = growth.substitute({name: Quasi.symbol("_v")})
    for here, low, high in extents(domain, variable):
        inner = of_parameters(here.params(), ("_v",), f"{affine_text(low)} <= _v <= {affine_text(high)} - 1")
        if nowhere_negative(inner, steps):
            yield here, 1, low, high
        elif nowhere_negative(inner, -steps):
            yield here, -1, low, high
        else:
            # Neither holds everywhere. If the sign is that of an affine form, the part is cut along the form. The form
            # has one sign on either side of some value of `name`, so that each piece is again an interval along it.
            text = sign_text(growth)
            if text is None:
                raise CannotCount("it is not known in which direction a reuse distance grows")
            falls = here.intersect(where(here, f"{text} < 0"))
            if name in growth.names():
                parts = [(falls, -1), (here.subtract(falls), 1)]
            else:
                level = here.intersect(where(here, f"{text} = 0"))
                parts = [(falls, -1), (level, 0), (here.subtract(falls).subtract(level), 1)]
            for part, sign in parts:
                for again, low_again, high_again in extents(part, variable):
                    yield again, sign, low_again, high_again


def _window(here: Any, course: Course, rest: Quasi) -> int:
    """How far before the root the rest of a distance, which is not negative, may still decide. Raises CannotCount.

    At k + 1 or more before the root, of + rest is at most the value of `of` at the root, so no access exceeds the limit
    there.
    """
    along, text = course.along, affine_text(course.along)
    for k in range(MOST_AT_ROOT):
        # Only where a step of k + 1 stays between low and high, since the course is known to rise only there.
        end = course.high - (k + 1) if course.sign > 0 else course.low + (k + 1)
        inner = where(here, f"{text} {'<=' if course.sign > 0 else '>='} {affine_text(end)}")
        growth = course.of.substitute({_AT: along + (k + 1) * course.sign}) - course.of.substitute({_AT: along})
        if nowhere_negative(here.intersect(inner), growth - rest):
            return k
    raise CannotCount("a reuse distance is nonlinear in several loop variables")
