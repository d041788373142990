"""The number of accesses with a reuse distance greater than Z, for symbolic Z and sizes: terms with integer roots.

See docs/rules.md, step S4. If all accesses of a piece have the same distance, their count gets the condition Z <
distance, whatever its degree in the sizes. If the distance grows along one affine form of the loop variables, it passes
Z at an integer root, which becomes an ordinary parameter of the count. A smaller part that depends on other variables
(16*n*i + 8*j with 8*j < 16*n) matters only at the root itself; there, the rest of Z becomes another parameter. A
distance that is nonlinear in two variables is summed over one of them (Haystack, PLDI 2019, counts the values of that
variable one by one). That the distance grows, and that the smaller part is small, is proven first.
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
from roofdsl.sets.terms import Alternatives, Definition, Rest, Root, Span, Term

MOST_AT_ROOT = 3
"""Values of the main variable, from the root down, at which the rest of a distance may decide, at most."""

Longest = tuple[Quasi, ...]
"""Distances of which the longest counts; none: infinite."""

MADE = "_made_"
"""Begins names that are made here."""

_AT = "_at"
"""Stands for the variable of a root until it has a name."""


class Region(Record):
    """A part of a domain: the disjoint isl.Sets of its points beyond the limit, the isl parameters of roots and rests
    in them, what is known of these (isl text), and the condition for all this.
    """

    here: Any
    beyond: tuple[Any, ...]
    names: tuple[str, ...] = ()
    known: str = "true"
    threshold: Alternatives = ()


class Course(Record):
    """`of` (in _AT) rises or falls with `along`, affine in the dimensions, from `low` to `high`, in the parameters."""

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

        Without any distance, it is infinite. Raises CannotCount if the distances are nonlinear in too many variables.
        """
        domain = domain.intersect_params(self.context)
        if domain.is_empty():
            return []
        if not distances:
            return self._counted(domain, Region(domain, (domain,)), None)
        try:
            return self._all_counted(domain, distances, None)
        except CannotCount:
            # At each value of one variable, which then is a parameter like a size, the others are counted as before:
            # what was bent in two variables is bent in one of them there.
            dims = frozenset(dimensions(domain))
            inside = dims & frozenset[str]().union(*(d.names() for d in distances))
            bent = {n: not all(_is_straight(d.split(dims - {n})[0]) for d in distances) for n in inside}
            # a sum over one variable; first over those that leave a distance affine with numbers as coefficients
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
            # The longest exceeds the limit where one of them does: the parts of each are laid over those of the others,
            # and what is beyond in either is beyond.
            more = self._regions(domain, other, alone=alone)
            regions = [joined for a in regions for b in more if (joined := _joined(a, b)) is not None]
        return [term for region in regions for beyond in region.beyond for term in self._counted(beyond, region, span)]

    # ---- shapes of distances ----

    def _regions(self, domain: Any, distance: Quasi, *, alone: bool) -> list[Region]:
        """`domain` in parts, with what of each exceeds the limit. alone: no other distance is asked for.

        Raises CannotCount.
        """
        dims = frozenset(dimensions(domain)) & distance.names()
        inside, outside = distance.split(dims)
        # A floor of loop variables jumps: along them the distance is no polynomial, and has no one root.
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
        """`domain`, which exceeds the limit as a whole or not at all."""
        # Distances and limits are whole, so that greater means at least 1 more. And no limit is below `least`: what is
        # no farther never misses, and need not be parted from the rest.
        excess = distance - self.limit - 1
        if distance.is_constant() and distance.constant_value() <= self.least:
            return Region(domain, ())
        if excess.is_constant():
            return Region(domain, (domain,) if excess.constant_value() >= 0 else ())
        # Alone, the condition stands beside the term; among several, it is a parameter, 0 or 1, of the set counted.
        if alone:
            intervals = _intervals(excess, self.context)
            if intervals is None:
                return Region(domain, (domain,), threshold=(((excess, False),),))
            return Region(domain, (domain,) if intervals else (), threshold=intervals if any(intervals) else ())
        one = Quasi.constant(1)
        # A Rest of which low and high are 1 has two values left.
        name = self._name(Rest("", distance - self.limit, one, one))  # 1 where it exceeds the limit, else 0
        exceeds = domain.intersect(where(domain, f"{name} = 1", [name]))
        return Region(domain, (exceeds,), (name,), f"0 <= {name} <= 1")

    def _straight(self, domain: Any, inside: Quasi, outside: Quasi, *, alone: bool) -> list[Region]:
        """The parts where the distance is `inside`, affine in the dimensions with numbers, plus `outside`."""
        if not inside:
            return [self._level(domain, outside, alone=alone)]
        # 16*i + 8*j takes multiples of 8 only. The root is one of 2*i + j, which takes every value between its ends.
        # Where all variables make the distance shorter it is turned round: the root is a value of 2*i + j then, too,
        # which the distance falls along, and not of -2*i - j.
        scale, sign = gcd(*(int(c) for _, c in inside)), -1 if all(c < 0 for _, c in inside) else 1
        along, of = inside * _inverse(scale * sign), Quasi.symbol(_AT) * (scale * sign) + outside
        return [
            self._from(here, Course(along, of, low, high, sign), alone=alone)
            for here, low, high in extents(domain, along)
        ]

    def _along(self, domain: Any, distance: Quasi, name: str, *, alone: bool) -> list[Region]:
        """The parts where the distance is bent along dimension `name` only. Raises CannotCount."""
        dims = frozenset(dimensions(domain))
        # bent: all terms with `name`, products such as i*j among them; straight: those of other variables; outside: of
        # sizes.
        bent, others = distance.split(frozenset((name,)))
        straight, outside = others.split(dims)
        if bent.names() & (dims - {name}) or not _is_straight(straight):
            raise CannotCount(f"the reuse distance mixes {name} with others")
        found: list[Region] = []
        variable, of = Quasi.symbol(name), bent.substitute({name: Quasi.symbol(_AT)}) + outside
        for part, sign, low, high in _monotone(domain, bent, name):
            # Where it grows along `name` and has a straight rest, the rest may tip the balance at the root.
            if not sign:
                found += self._straight(part, straight, outside, alone=alone)
            elif low == high:
                found += self._straight(part, straight, of.substitute({_AT: low}), alone=alone)
            elif not straight:
                found.append(self._from(part, Course(variable, of, low, high, sign), alone=alone))
            else:
                # The least value of the rest is given to the course. Then the rest is nowhere negative, and where the
                # course alone exceeds the limit the distance does.
                for here, least, most in extents(part, straight):
                    course = Course(variable, of + least, low, high, sign)
                    found.append(self._with_rest(here, course, straight - least, most - least))
        return found

    def _from(self, here: Any, course: Course, *, alone: bool) -> Region:
        """The points of `here` beyond the root."""
        # One value is passed as a whole or not at all: no root is needed.
        if course.low == course.high:
            return self._level(here, course.of.substitute({_AT: course.low}), alone=alone)
        # The library takes the root for a parameter like any other. That it lies between the ends of the course, or
        # just before them, is told it as `known`: else it would count cases that there are not.
        root = self._name(Root(_AT, course.of, self.limit, course.low, course.high, course.sign > 0))
        beyond = here.intersect(where(here, course.beyond(root), [root]))
        return Region(here, (beyond,), (root,), course.known(root))

    def _with_rest(self, here: Any, course: Course, rest: Quasi, most: Quasi) -> Region:
        """What is beyond the root, and what is near it where the `rest`, from 0 to `most`, decides."""
        # Past the root the limit is exceeded whatever the rest is. At the root, and at few values before it, the rest
        # has to be larger than what is left of the limit there: a parameter of its own.
        region = self._from(here, course, alone=True)
        beyond, names, known = region.beyond, region.names, region.known
        (root,) = names
        scale = gcd(*(int(c) for _, c in (*rest, *most)))
        rest_text, most_text = (affine_text(value * _inverse(scale)) for value in (rest, most))
        for k in range(_window(here, course, rest) + 1):
            at = Quasi.symbol(root) - k * course.sign
            left = (self.limit - course.of.substitute({_AT: at})) * _inverse(scale)
            # Clamped to what can decide: a rest from 0 to `most` is always greater than -1 and never than `most`. So
            # the parameter lies between two ends, whatever the limit is.
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
        # What holds wherever the region is not empty is said once, as `outer`, and taken for granted in the count.
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
    """Where `excess` is at least 0, as bounds of its one isl parameter; None where it has another form."""
    if (
        len(excess.names()) != 1
        or not excess.names() <= set(parameters(context))
        or any(not isinstance(a, str) for a in excess.atoms())
    ):
        return None
    (name,) = excess.names()
    least = least_value(context, name) or 1
    size = Quasi.symbol(name)
    return tuple(
        (*([(size - a, False)] if a > least else []), *([] if b is None else [(b - size, False)]))
        for a, b in intervals_of(excess + 1, least)
    )


def _joined(a: Region, b: Region) -> Region | None:
    """What two regions have in common, with what exceeds the limit in either; None where it is nothing."""
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
    """Whether `value` is affine with whole numbers as coefficients."""
    return all(len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], str) and c.denominator == 1 for m, c in value if m)


def _inverse(scale: int) -> Quasi:
    return Quasi.constant(scale) ** -1


def _monotone(domain: Any, bent: Quasi, name: str) -> Iterator[tuple[Any, int, Quasi, Quasi]]:
    """(part of `domain`, sign, low, high): on the part `bent` does not fall (sign 1) or not rise (-1) along dimension
    `name`, which runs from low to high there, or does not depend on it (0). Raises CannotCount where none is shown.
    """
    variable = Quasi.symbol(name)
    # One step of `name`, from any value `_v` but the last: on the part it is nowhere negative, or nowhere positive.
    growth = bent.substitute({name: variable + 1}) - bent
    steps = growth.substitute({name: Quasi.symbol("_v")})
    for here, low, high in extents(domain, variable):
        inner = of_parameters(here.params(), ("_v",), f"{affine_text(low)} <= _v <= {affine_text(high)} - 1")
        if nowhere_negative(inner, steps):
            yield here, 1, low, high
        elif nowhere_negative(inner, -steps):
            yield here, -1, low, high
        else:
            # Neither everywhere: where its sign is that of an affine form, the part is cut by it. Such a form has one
            # sign on either side of one value of `name`, so that each cut is again an interval along it.
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

    From k + 1 before the root on, of + rest is at most `of` at the root: no access exceeds the limit there.
    """
    along, text = course.along, affine_text(course.along)
    for k in range(MOST_AT_ROOT):
        # Only where the step of k + 1 stays between low and high, since the course is known to rise there alone.
        end = course.high - (k + 1) if course.sign > 0 else course.low + (k + 1)
        inner = where(here, f"{text} {'<=' if course.sign > 0 else '>='} {affine_text(end)}")
        growth = course.of.substitute({_AT: along + (k + 1) * course.sign}) - course.of.substitute({_AT: along})
        if nowhere_negative(here.intersect(inner), growth - rest):
            return k
    raise CannotCount("a reuse distance is nonlinear in several loop variables")
