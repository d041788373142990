"""Lower bounds from moments at which much must be alive: bottlenecks in the flow of values.

A value that was made (or was there) before a moment and is used after it is in fast memory at that moment, S of them
at most, or is loaded after it. Three kinds of moments:

- `fan`: an execution b whose value many executions use (a sum that then scales every term). What those use besides,
  if b depends on it or it is an input, is alive at b. Where no value is alive so at two of the b, the loads are
  different ones: loads >= sum over b of (|L_b| - S).
- `rounds`: executions b_1, b_2, ... each of which depends on the one before, one for every round of a loop. What the
  executions between b_k and b_(k+1) use that was there before b_k is loaded in between, but for S of it.
- `sweeps`: every execution of a statement b in round t depends on every execution of a statement a in round t, and
  paths of direct dependences that do not meet lead from a to b. At the first b of a round every path has its a behind
  it and its b before it, so that one value of each path is alive; loads >= sum over rounds of (paths - S).

Elango et al. 2014 and Olivry et al. PLDI 2020 call the first and last kind wavefronts; the first for Gram-Schmidt is
the hourglass of Olivry et al., SPAA 2024, in its simplest form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import islpy as isl

from roofdsl.analysis.expressions import expression, polynomial
from roofdsl.bounds.counting import count, degree, far, top_terms
from roofdsl.bounds.flow import Flow, Statement, sets

HOPS = 4
"""Statements that a dependence is followed through, at most."""


@dataclass(frozen=True)
class Bottleneck:
    """loads >= value = alive - moments * (S + registers), in sympy; kind: fan, rounds or sweeps.

    at: the statement whose executions are the moments; what: the reads or statements that say what is alive.
    """

    kind: str
    at: str
    what: tuple[str, ...]
    alive: Any
    moments: Any
    value: Any
    leading: Any


def bottleneck(flow: Flow, size: Any) -> Bottleneck | None:
    """The best of the bottleneck bounds that are found, by its leading term; `size` is the symbol of S."""
    depends = _Dependences(flow)
    best: tuple[tuple[int, float], Bottleneck] | None = None
    for kind, at, what, alive, moments in (*_fans(flow, depends), *_rounds(flow, depends), *_sweeps(flow, depends)):
        total, often = count(flow, alive), count(flow, moments)
        if degree(flow, total) <= max(degree(flow, often), 1):
            continue
        value = expression(total) - expression(often) * (size + flow.registers)
        leading = top_terms(polynomial(far(flow, total)))
        weight = (degree(flow, total), float(leading.subs(dict.fromkeys(leading.free_symbols, 1))))
        if best is None or weight > best[0]:
            found = Bottleneck(kind, at, what, expression(total), expression(often), value, leading)
            best = weight, found
    return None if best is None else best[1]


class _Dependences:
    """What executions depend on: directly, and through chains of one statement (each of them exact)."""

    def __init__(self, flow: Flow) -> None:
        self.direct = isl.UnionMap("{ }")
        self.every = isl.UnionMap("{ }")
        for statement in flow.statements:
            for read in statement.reads:
                self.every = self.every.union(read.values)
                for part in sets(read.values):
                    if not part.get_tuple_name(isl.dim_type.out).startswith("IN_"):
                        self.direct = self.direct.union(isl.UnionMap.from_map(part))
        self.direct = self.direct.coalesce()
        self.chains = isl.UnionMap("{ }")
        self._everything: Any = None
        for statement in flow.statements:
            self.chains = self.chains.union(
                isl.UnionMap.from_map(
                    isl.Map.identity(statement.domain.get_space().map_from_set()).intersect_domain(statement.domain)
                )
            )
        for part in sets(self.direct):
            if part.get_tuple_name(isl.dim_type.in_) == part.get_tuple_name(isl.dim_type.out):
                closed, exact = part.transitive_closure()
                self.chains = self.chains.union(isl.UnionMap.from_map(closed if exact else part))

    def everything(self) -> Any:
        """isl.UnionMap from every execution to (some of) those it depends on."""
        if self._everything is None:
            self._everything = self.on(self.chains.domain(), HOPS)
        return self._everything

    def on(self, executions: Any, hops: int) -> Any:
        """isl.UnionMap from the executions to (some of) those they depend on."""
        at = self.chains.intersect_domain(executions)
        found = at
        for _ in range(hops):
            at = at.apply_range(self.direct).apply_range(self.chains).coalesce()
            if at.is_empty():
                break
            found = found.union(at)
        return found.coalesce()


def _fans(flow: Flow, depends: _Dependences) -> Iterator[tuple[str, str, tuple[str, ...], Any, Any]]:
    for statement in flow.statements:
        for wide in statement.reads:
            for source in sets(wide.values):
                maker = source.get_tuple_name(isl.dim_type.out)
                if maker.startswith("IN_") or source.is_injective() or maker == statement.name:
                    continue
                users = isl.UnionMap.from_map(source.reverse())  # b -> executions that use it
                behind = depends.on(users.domain(), 2)  # b -> what b depends on
                alive = isl.UnionMap("{ }")
                names = []
                for other in statement.reads:
                    used = users.apply_range(other.values)
                    sure = used.intersect(behind)
                    for part in sets(used):
                        if part.get_tuple_name(isl.dim_type.out).startswith("IN_"):
                            sure = sure.union(isl.UnionMap.from_map(part))
                    if not sure.is_empty() and other is not wide and sure.is_injective():
                        joined = alive.union(sure)
                        if joined.is_injective():
                            alive = joined
                            names.append(other.text)
                if names:
                    yield "fan", maker, tuple(names), alive.wrap(), alive.domain()


def _rounds(flow: Flow, depends: _Dependences) -> Iterator[tuple[str, str, tuple[str, ...], Any, Any]]:
    for statement in flow.statements:
        if len(statement.loops) != 1:
            continue
        moments = isl.UnionSet.from_set(statement.domain)
        behind = depends.on(moments, HOPS)
        following = isl.UnionMap(f"{{ {statement.name}[k] -> {statement.name}[k + 1] }}")
        following = following.intersect_domain(moments).intersect_range(moments)
        if following.is_empty() or not following.reverse().is_subset(behind):
            continue
        # between: b_k -> executions that depend on b_k and that b_(k+1) depends on
        after = depends.everything().intersect_range(moments).reverse()
        between = after.intersect(following.apply_range(behind)).subtract(
            isl.UnionMap(f"{{ {statement.name}[k] -> {statement.name}[l] }}")
        )
        used = between.apply_range(depends.every)
        sure = used.intersect(behind)
        for part in sets(used):
            if part.get_tuple_name(isl.dim_type.out).startswith("IN_"):
                sure = sure.union(isl.UnionMap.from_map(part))
        if not sure.is_empty():
            yield "rounds", statement.name, (), sure.coalesce().wrap(), sure.domain()


def _sweeps(flow: Flow, depends: _Dependences) -> Iterator[tuple[str, str, tuple[str, ...], Any, Any]]:
    groups: dict[int, list[Statement]] = {}
    for s in flow.statements:
        if len(s.loops) >= 3 and degree(flow, count(flow, s.domain)) == len(s.loops):
            groups.setdefault(id(s.placed.loops[0]), []).append(s)
    for group in groups.values():
        by_name = {s.name: s for s in group}
        for last in group:
            behind = depends.on(isl.UnionSet.from_set(last.domain), HOPS)
            paths: list[tuple[tuple[str, ...], Any]] = [((last.name,), _identity(last.domain))]
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
                    if _swept(last, by_name[to], behind, longer, depends):
                        ends = longer.domain()
                        rounds = ends.project_out(isl.dim_type.set, 1, ends.dim(isl.dim_type.set) - 1)
                        yield "sweeps", last.name, (*names, to), ends, rounds.reset_tuple_id()


def _identity(domain: Any) -> Any:
    return isl.Map.identity(domain.get_space().map_from_set()).intersect_domain(domain)


def _same_round(relation: Any) -> Any:
    return relation.equate(isl.dim_type.in_, 0, isl.dim_type.out, 0)


def _swept(last: Statement, first: Statement, behind: Any, path: Any, depends: _Dependences) -> bool:
    """Whether every `last` depends on every `first` of its round, and every end of a path on the way of the next round.

    An end that some `first` of the next round reads comes before all `last` of the next round.
    """
    every = _same_round(isl.Map.from_domain_and_range(last.domain, first.domain))
    if not isl.UnionMap.from_map(every).is_subset(behind):
        return False
    ends = path.domain()
    n = ends.dim(isl.dim_type.set)
    used = isl.UnionSet("{ }")
    for part in sets(depends.direct):
        if part.get_tuple_name(isl.dim_type.in_) == first.name and part.get_tuple_name(isl.dim_type.out) == last.name:
            one = ", ".join(f"a{i}" for i in range(part.dim(isl.dim_type.in_)))
            other = ", ".join(f"b{i}" for i in range(n))
            next_round = isl.Map(f"{{ {first.name}[{one}] -> {last.name}[{other}] : a0 = b0 + 1 }}")
            used = used.union(isl.UnionSet.from_set(part.intersect(next_round).range()))
    times = isl.UnionSet.from_set(ends)
    one, other = (", ".join(f"{v}{i}" for i in range(n)) for v in "bc")
    later = isl.UnionMap(f"{{ {last.name}[{one}] -> {last.name}[{other}] : c0 > b0 }}")
    with_next = later.intersect_range(isl.UnionSet.from_set(last.domain)).domain().intersect(times)
    return bool(with_next.is_subset(used))
