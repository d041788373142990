"""What executions depend on and which of them use a value: the flow of values as relations that can be followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl

from roofdsl.bounds.flow import Flow, Read, Statement, sets
from roofdsl.loops.model import Assign, Element, ScalarRef

HOPS = 4
"""A dependence is followed through at most this many statements."""

BEHIND = 2
"""Like HOPS, for what lies behind a moment."""

PIECES = 64
"""A dependence is followed no further once it has more basic maps than this. Another hop would multiply them, and
simplifying them takes a time that grows with the square of their number.
"""

COPIES = 3
"""Chains of copies are followed to their original if they have at most this many copies beyond the first."""


@dataclass(frozen=True)
class Moments:
    """Moments of one kind and the values live at them. `bottleneck` turns them into a bound.

    kind: `turn`, `rounds`, `meeting`, `sweep`, or `whole` for a sweep with a single round (`bottleneck`). at: the
    statement whose executions are the moments (for `meeting`: the one that joins two chains); what: reads, statements
    or arrays that name the values live. moments: isl.UnionSet or isl.Set with one point for each; live: such sets, with
    a point for each value live at a moment. values: all of these values; already_loaded: those among them that are
    inputs and were surely loaded once before their moment.
    """

    kind: str
    at: str
    what: tuple[str, ...]
    moments: Any
    live: tuple[Any, ...]
    values: Any
    already_loaded: Any


class Dependences:
    """What executions depend on: directly, and through chains of one statement (each of them exact).

    If a value is a copy of another one (`xp1 = x[i]`), its readers count as readers of the original. Copies cannot
    help: wherever a run holds or loads a copy, a run without copies holds or loads the original.
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
        """For each statement, the isl.Map from its executions to themselves and to earlier ones of it that they depend
        on.
        """
        self.ends: dict[str, Any] = {}
        """For each statement, the isl.UnionSet of executions whose value no execution of the same statement reads."""
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
        """isl.UnionMap from every execution to (some of) the executions it depends on."""
        if self._everything is None:
            self._everything = self.on(self.chains.domain(), HOPS)
        return self._everything

    def on(self, executions: Any, hops: int) -> Any:
        """isl.UnionMap from the executions to themselves and to (some of) the executions they depend on."""
        at = self.chains.intersect_domain(executions)
        found = at
        for _ in range(hops):
            at = at.apply_range(self.direct).apply_range(self.chains).coalesce()
            if at.is_subset(found):  # then further hops add nothing either
                break
            found = found.union(at)
            if sum(part.n_basic_map() for part in sets(at)) > PIECES:
                break
        return found.coalesce()

    def behind(self, executions: Any) -> Any:
        """isl.UnionMap from the executions to values that are made, or are inputs and loaded, by the time they are
        done.
        """
        needed = self.on(executions, BEHIND)
        return needed.union(inputs_of(needed.apply_range(self.every))).coalesce()


def is_input(relation: Any) -> bool:
    """Whether an isl.Map leads to input values."""
    return bool(relation.get_tuple_name(isl.dim_type.out).startswith("IN_"))


def inputs_of(union: Any) -> Any:
    """The part of an isl.UnionMap that leads to input values."""
    found = isl.UnionMap("{ }")
    for part in sets(union):
        if is_input(part):
            found = found.union(isl.UnionMap.from_map(part))
    return found


def _chain(statement: Statement) -> Any:
    """isl.Map from executions to themselves and to those of the same statement that they surely depend on."""
    found = isl.Map.identity(statement.domain.get_space().map_from_set()).intersect_domain(statement.domain)
    for part in Dependences.to(statement, statement.name):
        # An inexact closure contains dependences that do not exist, so the bound would be too high. In that case we
        # close each part alone, or keep the direct dependences: fewer than there are, which is safe.
        closed, exact = part.transitive_closure()
        if exact:
            found = found.union(closed)
            continue
        for basic in part.get_basic_maps():
            closed, exact = isl.Map.from_basic_map(basic).transitive_closure()
            found = found.union(closed if exact else isl.Map.from_basic_map(basic))
    return found.coalesce()


def _without_copies(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements, with readers of copies reading the original; unchanged if chains of copies are too long."""
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
