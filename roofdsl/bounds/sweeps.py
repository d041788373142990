"""Sweeps: a statement that needs everything another one makes in the same round, so that a whole round's values wait.

In a round t of the outermost loop, let every execution b of one statement depend on all of certain executions a of
another statement. Let paths lead from executions b to executions a such that each execution reads a value of the next,
and no two paths share an execution. Just before the first b of a round every a is done and no b is. So on every path
there is a value that has been made and whose reader on the path is still to come. At least as many values are live as
there are paths, and no value is live in two rounds: loads >= sum over rounds of (paths - S). Statements of two loops
are all in one round (`deriche`). A path may also end in an input that is loaded before any b: those loads are
distinct from the loads after that moment.

If S is smaller than a row, turns (`bottleneck.py`) and meetings (`opposing_chains.py`) give larger bounds. A sweep
gives one up to an S as large as a whole sweep (`adi`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import islpy as isl

from roofdsl.bounds.counting import count, degree
from roofdsl.bounds.flow import Flow, Statement, sets
from roofdsl.bounds.flow_relations import HOPS, Dependences, Moments, inputs_of

Same = Callable[[Any], Any]


def sweeps(flow: Flow, depends: Dependences) -> Iterator[Moments]:
    """Moments of the sweeps: between statements of one outermost loop with two or more loops in it, one round for each
    of its iterations; and between statements of two loops, which are one round.
    """
    inside: dict[int, dict[str, Statement]] = {}
    once: dict[str, Statement] = {}
    for s in depends.statements:
        if len(s.loops) >= 2 and degree(flow, count(flow, s.domain)) == len(s.loops):
            group = once if len(s.loops) == 2 else inside.setdefault(id(s.placed.loops[0]), {})
            group[s.name] = s
    inputs = {values.get_tuple_name(): values for values in flow.inputs().values()}
    for group in inside.values():
        yield from _group(group, {}, depends, _same_round, 1)
    yield from _group(once, inputs, depends, lambda relation: relation, 0)


def _group(
    by_name: dict[str, Statement], inputs: dict[str, Any], depends: Dependences, same: Same, outer: int
) -> Iterator[Moments]:
    """Sweeps of statements whose rounds are the `outer` outermost loops; `same` relates what is in one round."""
    for last in by_name.values() if len(by_name) > 1 else ():
        whole = _whole(last, by_name, inputs, depends, same)
        if whole:
            yield from _paths(last, by_name, whole, same, outer)


def _whole(
    last: Statement, by_name: dict[str, Statement], inputs: dict[str, Any], depends: Dependences, same: Same
) -> dict[str, Any]:
    """Executions (isl.Set) of each other statement, and inputs, that every `last` of their round depends on.

    An execution of another statement reads these inputs, so it does so before the first `last`.
    """
    behind = depends.on(isl.UnionSet.from_set(last.domain), HOPS)
    others = behind.subtract_range(isl.UnionSet.from_set(last.domain))
    known = others.union(inputs_of(others.apply_range(depends.every))) if inputs else others
    found = {}
    for name, values in ({n: s.domain for n, s in by_name.items()} | inputs).items():
        if name == last.name:
            continue
        every = isl.UnionMap.from_map(same(isl.Map.from_domain_and_range(last.domain, values)))
        # Anything missing behind one `last` of its round is not behind all of them, so a value with such a pair is left
        # out.
        needed = isl.UnionSet.from_set(values).subtract(every.subtract(known).range()).coalesce()
        if not needed.is_empty():
            found[name] = isl.Set.from_union_set(needed)
    return found


def _paths(
    last: Statement, by_name: dict[str, Statement], whole: dict[str, Any], same: Same, outer: int
) -> Iterator[Moments]:
    """Moments of the paths from executions of `last` to those in `whole`, shortest first."""
    n = last.domain.dim(isl.dim_type.set)
    rounds = last.domain.project_out(isl.dim_type.set, outer, n - outer).reset_tuple_id()
    itself = isl.Map.identity(last.domain.get_space().map_from_set()).intersect_domain(last.domain)
    paths: list[tuple[tuple[str, ...], Any]] = [((last.name,), itself)]
    while paths:
        names, path = paths.pop(0)
        if len(names) > HOPS:
            continue
        for part in (m for read in by_name[names[-1]].reads for m in sets(read.values)):
            to = part.get_tuple_name(isl.dim_type.out)
            if to in names or not (to in by_name or to in whole):
                continue
            step = same(part)
            longer = path.apply_range(step)
            # One value for each reader and one reader for each value, so no two paths share an execution.
            if longer.is_empty() or not (step.is_injective() and step.is_single_valued()):
                continue
            if to in by_name:
                paths.append(((*names, to), longer))
            if to not in whole:
                continue
            ends = longer.intersect_range(whole[to]).domain()
            if not ends.is_empty():
                # Inputs have been loaded before the moment; what a statement makes need not have been.
                loaded = isl.UnionSet("{ }") if to in by_name else isl.UnionSet.from_set(whole[to])
                values = isl.UnionSet.from_set(whole[to])
                for name in names[1:]:
                    values = values.union(isl.UnionSet.from_set(by_name[name].domain))
                yield Moments("sweep" if outer else "whole", last.name, (to,), rounds, (ends,), values, loaded)


def _same_round(relation: Any) -> Any:
    return relation.equate(isl.dim_type.in_, 0, isl.dim_type.out, 0)
