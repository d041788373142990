"""Sweeps: a statement that needs all of what another makes in the same round, so that a whole round's values wait.

In a round t of the outermost loop let every execution b of a statement depend on all of some executions a of another
statement. Let paths lead from executions b to executions a, along which each execution reads a value of the next, and
no two with an execution in common. Just before the first b of a round every a is done and no b is: on every path there
is a value that is made and whose reader on the path is still to come. So as many values are alive as there are paths,
and none in two rounds: loads >= sum over rounds of (paths - S).

A turn (bottleneck.py) says more where S is below a row; this holds up to an S of the whole of a sweep (`adi`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import islpy as isl

from roofdsl.bounds.counting import count, degree
from roofdsl.bounds.dependences import HOPS, Dependences, Moments
from roofdsl.bounds.flow import Flow, Statement, sets


def sweeps(flow: Flow, depends: Dependences) -> Iterator[Moments]:
    """Every path between two statements of one outermost loop; only those that fill a round of two loops or more."""
    groups: dict[int, dict[str, Statement]] = {}
    for s in depends.statements:
        if len(s.loops) >= 3 and degree(flow, count(flow, s.domain)) == len(s.loops):
            groups.setdefault(id(s.placed.loops[0]), {})[s.name] = s
    for by_name in groups.values():
        for last in by_name.values() if len(by_name) > 1 else ():
            whole = _whole(last, by_name, depends)
            if whole:
                yield from _paths(last, by_name, whole)


def _whole(last: Statement, by_name: dict[str, Statement], depends: Dependences) -> dict[str, Any]:
    """Executions (isl.Set) of each other statement that are behind every `last` of their round; none for no name."""
    behind = depends.on(isl.UnionSet.from_set(last.domain), HOPS)
    found = {}
    for first in by_name.values():
        if first is last:
            continue
        known = isl.Map.empty(last.domain.get_space().map_from_domain_and_range(first.domain.get_space()))
        for part in sets(behind):
            if part.get_tuple_name(isl.dim_type.out) == first.name:
                known = known.union(part)
        missed = _same_round(isl.Map.from_domain_and_range(last.domain, first.domain)).subtract(known).range()
        needed = first.domain.subtract(missed).coalesce()
        if not needed.is_empty():
            found[first.name] = needed
    return found


def _paths(last: Statement, by_name: dict[str, Statement], whole: dict[str, Any]) -> Iterator[Moments]:
    """Moments of the paths from executions of `last` to those of a statement in `whole`, the shortest first."""
    n = last.domain.dim(isl.dim_type.set)
    rounds = last.domain.project_out(isl.dim_type.set, 1, n - 1).reset_tuple_id()
    itself = isl.Map.identity(last.domain.get_space().map_from_set()).intersect_domain(last.domain)
    paths: list[tuple[tuple[str, ...], Any]] = [((last.name,), itself)]
    while paths:
        names, path = paths.pop(0)
        if len(names) > HOPS:
            continue
        for part in (m for read in by_name[names[-1]].reads for m in sets(read.values)):
            to = part.get_tuple_name(isl.dim_type.out)
            if to in names or to not in by_name:
                continue
            step = _same_round(part)
            longer = path.apply_range(step)
            if longer.is_empty() or not (step.is_injective() and step.is_single_valued()):
                continue
            paths.append(((*names, to), longer))
            ends = longer.intersect_range(whole[to]).domain() if to in whole else None
            if ends is not None and not ends.is_empty():
                values = isl.UnionSet("{ }")
                for name in (*names[1:], to):
                    values = values.union(isl.UnionSet.from_set(by_name[name].domain))
                yield Moments("sweep", last.name, (to,), rounds, (ends,), values, isl.UnionSet("{ }"))


def _same_round(relation: Any) -> Any:
    return relation.equate(isl.dim_type.in_, 0, isl.dim_type.out, 0)
