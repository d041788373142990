"""Two chains that run towards each other and are joined: when they meet, one value is live for each place.

Let each execution p of a statement, on a line, read a value a(p) of one chain, which runs along the line, and a value
b(p) of another chain, which runs the opposite way. If a(p) is made before b(p), the same holds for all p' further back,
because a(p') comes before a(p), and b(p) before b(p'). So in any order there is one place m on the line where the
chains meet. At the moment when both have reached it, exactly one of a(p) and b(p) has been made for every p, so that
their join is still to come: as many values are live as there are p. The values x(p) that both chains use are live,
too: those that a(p) reads, and that b(p) or a later value of its chain reads, and vice versa beyond m. All but S of
them are loaded after that moment.

A recursive filter in both directions (`deriche`) is the example: two loads of every element in addition to the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import islpy as isl

from roofdsl.bounds.flow import Read, Statement, sets
from roofdsl.bounds.flow_relations import Dependences, Moments, is_input


def meetings(depends: Dependences) -> Iterator[Moments]:
    """Every pair of chains, of two statements, that a third statement joins."""
    by_name = {s.name: s for s in depends.statements}
    for join in depends.statements:
        made = [m for read in join.reads for m in sets(read.values) if not is_input(m)]
        for k, a in enumerate(made):
            for b in made[:k]:
                found = _meeting(depends, by_name, join, a, b)
                if found is not None:
                    yield found


def _meeting(depends: Dependences, by_name: dict[str, Statement], join: Statement, a: Any, b: Any) -> Moments | None:
    """`a`, `b`: isl.Map from executions of `join` to values of two statements that they read."""
    names = [m.get_tuple_name(isl.dim_type.out) for m in (a, b)]
    if len({join.name, *names}) < 3 or not all(m.is_injective() and m.is_single_valued() for m in (a, b)):
        return None
    both = a.domain().intersect(b.domain())
    a, b = a.intersect_domain(both), b.intersect_domain(both)
    # p -> p': one chain reaches p' before p (or they are the same), and the other reaches p before p'.
    further = _along(a, depends.own[names[0]]).intersect(_along(b, depends.own[names[1]]).reverse())
    line = further.union(further.reverse()).coalesce()
    # Places that such a relation joins form a line. If it is not transitive, nothing tells where one line ends.
    if further.is_subset(isl.Map.identity(further.get_space())) or not line.apply_range(line).is_subset(line):
        return None
    one, other = by_name[names[0]], by_name[names[1]]
    beyond = isl.UnionMap.from_map(further.subtract(isl.Map.identity(further.get_space())))
    apart = isl.UnionMap.from_map(line).subtract(beyond.reverse())
    live: list[Any] = [both]
    values = isl.UnionSet.from_set(a.range()).union(isl.UnionSet.from_set(b.range()))
    before = isl.UnionSet("{ }")
    what = [one.name, other.name]
    for mine in one.reads:
        for its in other.reads:
            shared = _shared(depends, (a, one, mine), (b, other, its), apart)
            if shared is None or not shared[1].is_disjoint(values):
                continue
            live.append(shared[0])
            values = values.union(shared[1])
            before = before.union(shared[2])
            what.append(_called(by_name, shared[1]))
            break
    moments = line.lexmin().range()
    return Moments("meeting", join.name, tuple(what), moments, tuple(live), values, before.coalesce())


def _called(by_name: dict[str, Statement], values: Any) -> str:
    """The arrays that the values belong to."""
    names = [part.get_tuple_name() for part in sets(values)]
    return ", ".join(sorted({by_name[n].array.name if n in by_name else n.removeprefix("IN_") for n in names}))


def _along(value: Any, own: Any) -> Any:
    """From places on a line to the places whose value comes before theirs, or is the same."""
    return value.apply_range(own).apply_range(value.reverse())


Side = tuple[Any, Statement, Read]


def _shared(depends: Dependences, first: Side, second: Side, apart: Any) -> tuple[Any, Any, Any] | None:
    """(places, values, inputs among them) that both chains use, for one read of each; None if there are none.

    One value is live for every place: the one that the first chain reads there, if that chain arrives first, else the
    one that the second chain reads there. No value is counted twice: if the first chain reads a value at p and the
    second reads it at p', they are on one line, and p is no nearer to the start of the first chain than p' (`apart`: p,
    p').
    """
    mine, its = _used(depends, first, second), _used(depends, second, first)
    if mine is None or its is None:
        return None
    places = mine.domain().intersect(its.domain())
    mine, its = mine.intersect_domain(places), its.intersect_domain(places)
    if places.is_empty() or not mine.apply_range(its.reverse()).is_subset(apart):
        return None
    values = mine.range().union(its.range())
    found = isl.UnionSet("{ }")
    for part in sets(values):
        if part.get_tuple_name().startswith("IN_"):
            found = found.union(isl.UnionSet.from_set(part))
    return places.coalesce(), values.coalesce(), found


def _used(depends: Dependences, side: Side, other: Side) -> Any:
    """isl.UnionMap from places to the value that `side` reads there and `other` reads there or later; None if there is
    none.
    """
    (value, _, read), (far, statement, _) = side, other
    here = isl.UnionMap.from_map(value).apply_range(read.values)
    later = isl.UnionMap.from_map(far.apply_range(depends.own[statement.name].reverse()))
    there = isl.UnionMap("{ }")
    for each in statement.reads:
        there = there.union(later.apply_range(each.values))
    used = here.intersect(there)
    return used if not used.is_empty() and used.is_injective() and used.is_single_valued() else None
