"""The reference: what a kernel computes, in numpy and higher precision, with a bound on rounding in its own types.

It interprets the kernel as written (before `tile` and `order`), independently of the emitters. A loop whose iterations
touch separate elements becomes an array axis, a large sum of products becomes a matrix product, and another sum over a
loop becomes a cumulative sum. Other loops run in pieces that are arrays, if possible, or one iteration after another.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen import error_bounds
from roofdsl.codegen.computed_types import computed, join, kind_of, settled
from roofdsl.codegen.error_bounds import Ball
from roofdsl.codegen.independent_loops import independent, single_update
from roofdsl.codegen.inputs import all_parameters
from roofdsl.codegen.matrix_products import contract, contraction
from roofdsl.codegen.reference_values import Grid, Numbers, Values
from roofdsl.loops.accesses import elements
from roofdsl.loops.model import (
    Assign,
    Count,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
)

AXES = 2**20
"""The most points of a grid of independent iterations, or of a sum, that are computed at once."""


@dataclass(frozen=True)
class Outcome:
    """The results of a kernel: for each `out` and `inout` array and scalar, by name.

    values: float64, longdouble, complex or int64, in the array's shape; errors: by how much code in the kernel's types
    may differ; written: the elements it assigned. counters: totals of `count`.
    """

    values: Mapping[str, Numbers]
    errors: Mapping[str, Numbers]
    written: Mapping[str, NDArray[np.bool_]]
    counters: Mapping[str, int]


class TakesTooLong(Exception):
    """The evaluation was given up because it exceeded its time limit."""


def reference(
    kernel: Kernel,
    params: Mapping[str, int],
    inputs: Mapping[str, Numbers],
    compute: str | None = None,
    limit_s: float | None = None,
) -> Outcome:
    """Run a kernel on `inputs` (from `inputs.random_inputs`; they are not changed), ignoring its directives.

    compute: an element type such as tf32 in which code under test may round single-precision operations (default: the
    one that the kernel states by `compute`). Raises CommandError for missing sizes or sizes that the kernel excludes,
    IndexError for an access outside an array, and TakesTooLong if serial iterations go on after `limit_s` seconds.
    """
    values = all_parameters(kernel, params)
    named = compute or (kernel.compute_type.name if kernel.compute_type else None)
    run = _Run(kernel, values, inputs, {"f32": named} if named else {})
    run.end = None if limit_s is None else time.monotonic() + limit_s
    run.block(kernel.body, Grid((1,) * run.depth, dict(values), {}))
    results = [a for a in kernel.arrays if a.intent in ("out", "inout")]
    return Outcome(
        {a.name: run.memory[a.name].value for a in results},
        {a.name: run.memory[a.name].error for a in results},
        {a.name: run.memory[a.name].written for a in results},
        run.counters,
    )


class _Run(Values):
    """One run of a kernel."""

    def __init__(
        self, kernel: Kernel, params: Mapping[str, int], inputs: Mapping[str, Numbers], renamed: Mapping[str, str]
    ) -> None:
        super().__init__(kernel, params, inputs, renamed)
        self.counters: dict[str, int] = {}
        self.end: float | None = None
        self.depth = max(1, _depth(kernel.body))
        self.independent: dict[int, bool] = {}

    # ---- statements ----

    def block(self, nodes: Sequence[Node], grid: Grid) -> None:
        """Run a block at all points of a grid."""
        for node in nodes:
            match node:
                case For():
                    self.loop(node, grid)
                case If(condition, then, orelse):
                    self._branch(self.holds(condition, grid.env), then, orelse, grid)
                case Let(name, type_, value):
                    grid.lets[name] = self.value(value, grid, computed(type_))
                case Assign():
                    self.assign(node, grid)
                case Count(name, amount):
                    amounts = np.broadcast_to(self.integer(amount, grid.env), grid.shape)
                    self.counters[name] = self.counters.get(name, 0) + int(amounts.sum())

    def _branch(self, condition: Any, then: Sequence[Node], orelse: Sequence[Node], grid: Grid) -> None:
        for nodes, mask in ((then, np.asarray(condition)), (orelse, ~np.asarray(condition))):
            if not nodes or not mask.any():
                continue
            inner = Grid(grid.shape, grid.env, dict(grid.lets)) if mask.all() else grid.where(mask)
            self.block(nodes, inner)

    def assign(self, node: Assign, grid: Grid) -> None:
        array = node.target.array
        index = self.index(node.target, grid) if isinstance(node.target, Element) else ()
        if node.op == "=":
            kind: str = computed(array.type)
            own = kind_of(node.value)
            ball = self.value(node.value, grid, kind if own in ("whole", "plain") else settled(own))
        else:
            ball = self._updated(node, grid, index)
        self.store(node.target, ball, index)

    def _updated(self, node: Assign, grid: Grid, index: tuple[Any, ...]) -> Ball:
        array = node.target.array
        own = computed(array.type)
        kind = settled(join((own, kind_of(node.value))))
        value = self.value(node.value, grid, self._side(node.value, kind))
        memory = self.memory[array.name]
        held = Ball(memory.value[index], memory.error[index])
        if own in ("i32", "i64") and kind not in ("i32", "i64"):
            held = Ball(np.asarray(held.value).astype(self._float), held.error)
        if node.op in ("min=", "max="):
            return error_bounds.extremum(node.op[:-1], held, value)
        return error_bounds.arithmetic(node.op[0], held, value, self.renamed.get(kind, kind))

    # ---- loops ----

    def loop(self, node: For, grid: Grid) -> None:
        """Run a loop at all points of a grid: as a product, an axis, a sum or pieces, else iteration by iteration."""
        start, stop, step = (self.integer(e, grid.env) for e in (node.start, node.stop, node.step))
        if any(np.ndim(b) for b in (start, stop, step)):
            self._ragged(node, grid, start, stop, step)
            return
        values = range(start, stop, step)
        if not values:
            return
        if grid.size == 1 and self._product(node, grid):
            return
        if self._is_independent(node):
            most = max(1, AXES // grid.size)
            for k in range(0, len(values), most):
                axis = self._axis(values[k : k + most], grid)
                self.block(node.body, grid.having(node.var, axis, _joint(grid.shape, axis.shape)))
            return
        update = single_update(node)
        if update is not None and len(values) > 1 and self._sum(node, update, values, grid):
            return
        if grid.size == 1 and self._pieces(node, values, grid):
            return
        for value in values:
            if self.end is not None and time.monotonic() > self.end:
                raise TakesTooLong
            self.block(node.body, grid.having(node.var, value))

    def _product(self, node: For, grid: Grid) -> bool:
        """Tries to run a nest as one large sum of products; returns whether it did."""
        found = contraction(node)
        if found is None:
            return False
        stops = {var: int(self.integer(stop, grid.env)) for var, stop in found.stops}
        kind = computed(found.target.array.type)
        return all(n > 0 for n in stops.values()) and contract(found, self.memory, stops, self.renamed.get(kind, kind))

    def _is_independent(self, node: For) -> bool:
        known = self.independent.get(id(node))
        if known is None:
            known = self.independent[id(node)] = independent(node)
        return known

    def _axis(self, values: range, grid: Grid) -> Numbers:
        """The values along a free dimension of the grid."""
        free = next(d for d, extent in enumerate(grid.shape) if extent == 1)
        shape = [1] * len(grid.shape)
        shape[free] = len(values)
        return np.arange(values.start, values.stop, values.step).reshape(shape)

    def _ragged(self, node: For, grid: Grid, start: Any, stop: Any, step: Any) -> None:
        """Run a loop whose bounds differ between points: each value of the variable, at the points that have it."""
        stride = int(np.min(step))
        if np.ndim(step) and np.ptp(step):
            stride = 1
        for value in range(int(np.min(start)), int(np.max(stop)), stride if np.ndim(start) == 0 else 1):
            mask = np.broadcast_to((start <= value) & (value < stop) & ((value - start) % step == 0), grid.shape)
            if mask.all():
                self.block(node.body, grid.having(node.var, value))
            elif mask.any():
                self.block(node.body, grid.where(mask).having(node.var, value))

    def _sum(self, node: For, update: Assign, values: range, grid: Grid) -> bool:
        """Tries to run a loop that only adds to one element per point, or takes an extremum there, as one operation;
        returns whether it did.
        """
        array = update.target.array
        own = computed(array.type)
        kind = settled(join((own, kind_of(update.value))))
        if kind != own or grid.size * len(values) > AXES or own in ("i32", "i64"):
            return False
        axis = self._axis(values, grid)
        inner = grid.having(node.var, axis, _joint(grid.shape, axis.shape))
        index = self.index(update.target, grid) if isinstance(update.target, Element) else ()
        if isinstance(update.target, Element) and not self._apart(update, grid, inner):
            return False
        along = next(d for d, extent in enumerate(axis.shape) if extent != 1)
        for statement in node.body[:-1]:
            if isinstance(statement, Let):
                inner.lets[statement.name] = self.value(statement.value, inner, computed(statement.type))
        terms = self.value(update.value, inner, self._side(update.value, kind))
        full = tuple(inner.shape)
        value, error, size = (np.broadcast_to(x, full) for x in (terms.value, terms.error, terms.size))
        memory = self.memory[array.name]
        held = Ball(_as_grid(memory.value[index], grid), _as_grid(memory.error[index], grid))
        if update.op in ("+=", "-="):
            signed = Ball(value if update.op == "+=" else -value, error, size)
            ball = error_bounds.summed(held, signed, along, self.renamed.get(kind, kind), array.type.name)
        else:
            best = error_bounds.extremum_along(update.op[:-1], Ball(value, error), along)
            ball = error_bounds.extremum(update.op[:-1], held, best)
        if np.ndim(memory.value[index]) == 0:
            ball = Ball(np.reshape(ball.value, ())[()], np.reshape(ball.error, ())[()])
        self.store(update.target, ball, index)
        return True

    def _flat(self, e: Element, grid: Grid) -> Numbers:
        index = [np.broadcast_to(i, grid.shape).ravel() for i in self.index(e, grid)]
        if any((i < 0).any() for i in index):
            raise IndexError(f"{e.array.name} on line {e.span.line} is read or written outside its bounds")
        return np.ravel_multi_index(index, self.memory[e.array.name].value.shape)

    def _apart(self, update: Assign, grid: Grid, inner: Grid) -> bool:
        """Whether no term reads an element that is an accumulator of the sum."""
        if not isinstance(update.target, Element):
            return True
        same = [e for e in elements(update.value) if e.array.name == update.target.array.name]
        return all(not np.isin(self._flat(e, inner), self._flat(update.target, grid)).any() for e in same)

    def _pieces(self, node: For, values: range, grid: Grid) -> bool:
        """Tries to run a loop of one assignment in pieces that read nothing that they have written; returns whether it
        did. Short pieces are not worthwhile.
        """
        if len(node.body) != 1 or not isinstance(node.body[0], Assign) or len(values) < 8:
            return False
        statement = node.body[0]
        if not isinstance(statement.target, Element):
            return False
        axis = self._axis(values, grid)
        inner = grid.having(node.var, axis, _joint(grid.shape, axis.shape))
        targets = self._flat(statement.target, inner)
        order = np.argsort(targets, kind="stable")
        ordered = targets[order]
        if (ordered[1:] == ordered[:-1]).any():
            return False
        moments = np.arange(len(targets))
        written = np.full(len(targets), -1)  # when the operand of an iteration was last written, if before it
        for e in elements(statement.value):
            if e.array.name == statement.target.array.name:
                read = self._flat(e, inner)
                at = np.searchsorted(ordered, read).clip(0, len(ordered) - 1)
                when = np.where(ordered[at] == read, order[at], -1)
                written = np.maximum(written, np.where(when < moments, when, -1))
        pieces: list[range] = []
        first = 0
        while first < len(values) and len(pieces) <= len(values) // 4:
            # a piece ends before the first iteration that reads what an earlier one of the same piece writes
            bad = np.nonzero(written[first:] >= first)[0]
            last = first + int(bad[0]) if len(bad) else len(values)
            pieces.append(values[first:last])
            first = last
        if first < len(values):
            return False
        for piece in pieces:
            part = self._axis(piece, grid)
            self.assign(statement, grid.having(node.var, part, _joint(grid.shape, part.shape)))
        return True


def _joint(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def _as_grid(a: Any, grid: Grid) -> Any:
    return np.broadcast_to(a, grid.shape) if np.ndim(a) or grid.size == 1 else np.full(grid.shape, a)


def _depth(nodes: Sequence[Node]) -> int:
    """The largest nesting depth of loops."""
    deepest = 0
    for node in nodes:
        if isinstance(node, For):
            deepest = max(deepest, 1 + _depth(node.body))
        elif isinstance(node, If):
            deepest = max(deepest, _depth(node.then), _depth(node.orelse))
    return deepest
