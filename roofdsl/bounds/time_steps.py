"""Steps of a time loop: the statements of one step, the distance from producer to reader, what the first step reads.

Distances are vectors (time, place): reader minus producer, if that is the same for all reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import islpy as isl

from roofdsl.bounds.counting import count, degree
from roofdsl.bounds.flow import Flow, Read, Statement, sets
from roofdsl.bounds.lattice_growth import Point
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const


def of_one_loop(flow: Flow) -> Iterator[list[Statement]]:
    """The statements of full depth in each outermost loop."""
    by_loop: dict[int, list[Statement]] = {}
    for s in flow.statements:
        loops = s.placed.loops
        if len(loops) >= 2 and loops[0].step == Const(1) and degree(flow, count(flow, s.domain)) == len(loops):
            by_loop.setdefault(id(loops[0]), []).append(s)
    for group in by_loop.values():
        yield [s for s in group if len(s.loops) == max(len(g.loops) for g in group)]


def distance(relation: Any) -> Point | None:
    """Reader minus maker, if that is a single vector."""
    plain = relation.reverse().reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
    if plain.dim(isl.dim_type.in_) != plain.dim(isl.dim_type.out):
        return None
    apart = plain.deltas()
    values = [apart.plain_get_val_if_fixed(isl.dim_type.set, i) for i in range(apart.dim(isl.dim_type.set))]
    return None if any(v.is_nan() for v in values) else tuple(v.to_python() for v in values)


def origin(statement: Statement, read: Read, offset: Point) -> tuple[object, ...] | None:
    """Where the step before the first one lies in the array that is read; reads that agree on it return the same.

    None if different points would not read different elements.
    """
    places: list[tuple[object, ...]] = []
    loops: list[str] = []
    for subscript, o in zip(read.subscripts, offset, strict=False):
        form = affine(subscript)
        by = [(v, c) for v, c in form.coefficients().items() if v in statement.loops]
        if form.hidden() & set(statement.loops) or len(by) != 1 or by[0][1] != 1:
            return None
        loops.append(by[0][0])
        rest = tuple(sorted((str(t), c) for t, c in form.terms if str(t) != by[0][0]))
        places.append((form.constant - o, rest))
    if tuple(loops) != statement.loops[1:] or len(read.subscripts) != len(offset):
        return None
    return (read.array.name, *places)


def initial(statement: Statement, read: Read, group: Sequence[Statement] = ()) -> Any:
    """The executions of the first step that read initial values; of the first step of a group, if one is given."""
    space = statement.domain.reset_tuple_id()
    n = space.dim(isl.dim_type.set)
    names = ", ".join(f"x{i}" for i in range(n))
    later = isl.Map(f"{{ [{names}] -> [{names.replace('x', 'y')}] : y0 > x0 }}")
    first = space
    for other in group or (statement,):
        first = first.subtract(other.domain.reset_tuple_id().apply(later))
    found = isl.Set.empty(space.get_space())
    for relation in sets(read.values):
        if relation.get_tuple_name(isl.dim_type.out).startswith("IN_"):
            found = found.union(relation.domain().reset_tuple_id().intersect(first))
    return found
