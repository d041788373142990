"""What executions depend on, and which of them use a value: the flow of values as relations to follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl

from roofdsl.bounds.flow import Flow, Read, Statement, sets
from roofdsl.loops.model import Assign, Element, ScalarRef

HOPS = 4
"""Statements that a dependence is followed through, at most."""

BEHIND = 2
"""As HOPS, for what is behind a moment."""

COPIES = 3
"""Copies of copies that are followed to their original, at most."""


@dataclass(frozen=True)
class Moments:
    """Moments at which values are alive, of one kind, and of which values. See `bottleneck` for what follows.

    at: the statement whose executions are the moments (of `meeting`: that joins two chains); what: reads, statements or
    arrays that say what is alive. moments: isl.UnionSet or isl.Set, one point for each; alive: such sets, with a point
    for each pair of a moment and a value. values: all of these values; before: those of them that are there from the
    beginning and were surely loaded before their moment, once.
    """

    kind: str
    at: str
    what: tuple[str, ...]
    moments: Any
    alive: tuple[Any, ...]
    values: Any
    before: Any


class Dependences:
    """What executions depend on: directly, and through chains of one statement (each of them exact).

    Where a value is a copy of another (`xp1 = x[i]`), its readers count as readers of that other. A run with copies can
    do no better: where it holds or loads a copy, one without copies holds or loads the original.
    """

    def __init__(self, flow: Flow) -> None:
        self.statements = _without_copies(flow.statements)
        self.direct = isl.UnionMap("{ }")
        self.every = isl.UnionMap("{ }")
        for statement in self.statements:
            for read in statement.reads:
                self.every = self.every.union(read.values)
                for part in sets(read.values):
                    if not is_input(part):
                        self.direct = self.direct.union(isl.UnionMap.from_map(part))
        self.direct = self.direct.coalesce()
        self.own: dict[str, Any] = {}
        """isl.Map of each statement from its executions to themselves and those of the same statement before them."""
        self.ends: dict[str, Any] = {}
        """isl.UnionSet of the executions of each statement that no other of its own needs directly."""
        self.chains = isl.UnionMap("{ }")
        for statement in self.statements:
            own = _chain(statement)
            self.own[statement.name] = own
            self.chains = self.chains.union(isl.UnionMap.from_map(own))
            needed = isl.UnionSet("{ }")
            for part in self.to(statement, statement.name):
                needed = needed.union(isl.UnionSet.from_set(part.range()))
            self.ends[statement.name] = isl.UnionSet.from_set(statement.domain).subtract(needed).coalesce()
        self._everything: Any = None

    @staticmethod
    def to(statement: Statement, name: str) -> list[Any]:
        """The isl.Maps from executions of `statement` to values of the statement or array `name` that they read."""
        parts = [m for read in statement.reads for m in sets(read.values)]
        return [m for m in parts if m.get_tuple_name(isl.dim_type.out) == name]

    def everything(self) -> Any:
        """isl.UnionMap from every execution to (some of) those it depends on."""
        if self._everything is None:
            self._everything = self.on(self.chains.domain(), HOPS)
        return self._everything

    def on(self, executions: Any, hops: int) -> Any:
        """isl.UnionMap from the executions to themselves and (some of) those they depend on."""
        at = self.chains.intersect_domain(executions)
        found = at
        for _ in range(hops):
            at = at.apply_range(self.direct).apply_range(self.chains).coalesce()
            if at.is_empty():
                break
            found = found.union(at)
        return found.coalesce()

    def behind(self, executions: Any) -> Any:
        """isl.UnionMap from the executions to values made, or there and loaded, before they are done or by them."""
        needed = self.on(executions, BEHIND)
        return needed.union(inputs_of(needed.apply_range(self.every))).coalesce()


def is_input(relation: Any) -> bool:
    """Whether an isl.Map goes to values that are there before."""
    return bool(relation.get_tuple_name(isl.dim_type.out).startswith("IN_"))


def inputs_of(union: Any) -> Any:
    """The part of an isl.UnionMap that goes to values that are there before."""
    found = isl.UnionMap("{ }")
    for part in sets(union):
        if is_input(part):
            found = found.union(isl.UnionMap.from_map(part))
    return found


def _chain(statement: Statement) -> Any:
    """isl.Map from executions to themselves and those of the same statement they surely depend on."""
    found = isl.Map.identity(statement.domain.get_space().map_from_set()).intersect_domain(statement.domain)
    for part in Dependences.to(statement, statement.name):
        # A closure that is not exact holds dependences that there are not, and with them a bound that is too high. Then
        # those of one part alone are closed, or the direct ones stand: fewer than there are, which is safe.
        closed, exact = part.transitive_closure()
        if exact:
            found = found.union(closed)
            continue
        for basic in part.get_basic_maps():
            closed, exact = isl.Map.from_basic_map(basic).transitive_closure()
            found = found.union(closed if exact else isl.Map.from_basic_map(basic))
    return found.coalesce()


def _without_copies(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements, with readers of copies reading the original; as they are where copies have no end."""
    copies = isl.UnionMap("{ }")
    for statement in statements:
        if _is_copy(statement):
            copies = copies.union(statement.reads[0].values)
    if copies.is_empty():
        return tuple(statements)
    original = copies
    for _ in range(COPIES):
        again = original.intersect_range(copies.domain())
        original = original.subtract(again).union(again.apply_range(copies))
    if not original.range().intersect(copies.domain()).is_empty():
        return tuple(statements)
    return tuple(replace(s, reads=tuple(_original(r, original) for r in s.reads)) for s in statements)


def _is_copy(statement: Statement) -> bool:
    placed = statement.placed.statement
    assert isinstance(placed, Assign)
    return placed.op == "=" and isinstance(placed.value, Element | ScalarRef) and len(statement.reads) == 1


def _original(read: Read, original: Any) -> Read:
    copied = read.values.intersect_range(original.domain())
    return replace(read, values=read.values.subtract(copied).union(copied.apply_range(original)).coalesce())
