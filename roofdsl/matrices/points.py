"""All executions of a statement, whose loops may read index arrays, as columns of numbers. Imports numpy.

Where the data are given, every iteration of every loop is known. The loops are unfolded from the outside in: each
iteration of the outer loops becomes as many rows as the loop inside has iterations there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import Access, PlacedStatement, accesses, bound_accesses, statements
from roofdsl.loops.integers import (
    COMPARISONS,
    And,
    Compare,
    Const,
    FloorDiv,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Product,
    Sum,
    Sym,
    Tree,
)
from roofdsl.loops.model import Count, Element, For, Kernel, Read
from roofdsl.loops.sized import Sized
from roofdsl.matrices.matrix import different

MOST_POINTS = 50_000_000
"""The most executions of one statement that are unfolded; each takes 16 bytes for every loop around it."""


class Points(Record):
    """The executions of one statement, in order.

    values: parameters, and for each loop variable an array of its value in each execution. turns: for each loop
    variable, an array of the number of the iteration, from 0. number: of executions.
    """

    placed: PlacedStatement
    values: Mapping[str, Any]
    turns: Mapping[str, Any]
    number: int

    def flat(self, element: Element, kernel: Kernel, sizes: Mapping[str, int]) -> Any:
        """The number of the accessed element in its array, in the order in memory, in each execution."""
        strides = element.array.strides(sizes)
        parts = [s * at(e, self.values, kernel) for s, e in zip(strides, element.subscripts, strict=True)]
        return np.broadcast_to(np.asarray(sum(parts)), (self.number,))


class Touching(Record):
    """A statement with its loops, or (`is_bound`) what the bounds of a loop read before it begins; and the accesses."""

    placed: PlacedStatement
    accesses: tuple[Access, ...]
    is_bound: bool


def touching(kernel: Kernel) -> Iterator[Touching]:
    """Everything that a kernel executes, in the order of the text."""
    seen: set[int] = set()
    for placed in statements(kernel.body):
        for d, loop in enumerate(placed.loops):
            if id(loop) not in seen and bound_accesses(loop):
                guards = tuple((depth, condition) for depth, condition in placed.guards if depth <= d)
                yield Touching(replace(placed, loops=placed.loops[:d], guards=guards), bound_accesses(loop), True)
            seen.add(id(loop))
        own = () if isinstance(placed.statement, Count) else accesses(placed.statement)
        yield Touching(placed, own, False)


def at(tree: Tree, values: Mapping[str, Any], kernel: Kernel) -> Any:
    """The values of an integer expression, or the truth of a condition, in all executions at once.

    Raises CommandError for an index array without values.
    """
    match tree:
        case Const(value):
            return value
        case Sym(name):
            return values[name]
        case Read(element):
            return _read(element, values, kernel)
        case Compare(op, left, right):
            return COMPARISONS[op](at(left, values, kernel), at(right, values, kernel))
        case Not():
            return np.logical_not(at(tree.args()[0], values, kernel))
    parts = [at(part, values, kernel) for part in tree.args()]
    joined = {Sum: np.add, Product: np.multiply, Min: np.minimum, Max: np.maximum, FloorDiv: np.floor_divide,
              Mod: np.mod, And: np.logical_and, Or: np.logical_or}[type(tree)]  # fmt: skip
    found = parts[0]
    for part in parts[1:]:
        found = joined(found, part)
    return found


def _read(element: Element, values: Mapping[str, Any], kernel: Kernel) -> Any:
    given = {} if kernel.data is None else kernel.data.values
    if element.array.name not in given:
        raise CommandError(f"the values of {element.array.name} are not known")
    return given[element.array.name][tuple(at(s, values, kernel) for s in element.subscripts)]


def unfolded(kernel: Sized, placed: PlacedStatement) -> Points:
    """The executions of a statement. Raises CommandError if they are too many, or for index arrays without values."""
    values: dict[str, Any] = dict(kernel.values)
    turns: dict[str, Any] = {}
    number = 1
    for depth, loop in enumerate(placed.loops):
        number = _kept(kernel, placed, depth, values, turns, number)
        start, stop = (np.broadcast_to(at(e, values, kernel.kernel), (number,)) for e in (loop.start, loop.stop))
        step = loop.step.evaluate(kernel.values)
        trips = np.maximum(0, -(-(stop - start) // step))
        if trips.sum(dtype=np.float64) > MOST_POINTS:  # the sum as an integer may be beyond 2**63
            raise CommandError(f"kernel {kernel.name} runs too long at these sizes for its executions to be counted")
        number = int(trips.sum())
        _spread(values, turns, placed.loops[:depth], trips)
        turn = np.arange(number) - np.repeat(np.cumsum(trips) - trips, trips)
        turns[loop.var] = turn
        values[loop.var] = np.repeat(start, trips) + step * turn
    number = _kept(kernel, placed, len(placed.loops), values, turns, number)
    return Points(placed, values, turns, number)


def iterations_of(kernel: Sized, placed: PlacedStatement, loop: For) -> Any:
    """How often a statement runs in each iteration of one of its loops, an array. Raises as `unfolded`.

    The innermost loop is only counted, not unfolded, so that millions of executions take no memory.
    """
    inner = placed.loops[-1]
    if inner is loop or any(depth == len(placed.loops) for depth, _ in placed.guards):
        found = unfolded(kernel, placed)
        return np.bincount(found.turns[loop.var])
    around = unfolded(kernel, replace(placed, loops=placed.loops[:-1]))
    start, stop = (at(bound, around.values, kernel.kernel) for bound in (inner.start, inner.stop))
    trips = np.broadcast_to(np.maximum(0, -(-(stop - start) // inner.step.evaluate(kernel.values))), (around.number,))
    turns = around.turns[loop.var]
    counts = np.zeros(int(turns.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(counts, turns, trips)
    return counts


def _spread(values: dict[str, Any], turns: dict[str, Any], loops: Sequence[For], trips: Any) -> None:
    """Repeats each row as often as the next loop runs there."""
    for loop in loops:
        values[loop.var], turns[loop.var] = np.repeat(values[loop.var], trips), np.repeat(turns[loop.var], trips)


def _kept(  # noqa: PLR0917
    kernel: Sized, placed: PlacedStatement, depth: int, values: dict[str, Any], turns: dict[str, Any], number: int
) -> int:
    """Keeps only the rows for which the conditions at this depth hold; returns their number."""
    guards = [condition for d, condition in placed.guards if d == depth]
    for condition in guards:
        holds = np.broadcast_to(np.asarray(at(condition, values, kernel.kernel)), (number,))
        for loop in placed.loops[:depth]:
            values[loop.var], turns[loop.var] = values[loop.var][holds], turns[loop.var][holds]
        number = int(np.count_nonzero(holds))
    return number


def distinct(columns: Sequence[Any], number: int) -> int:
    """How many different rows these columns of integers, none below 0, have."""
    key, size = np.zeros(number, dtype=np.int64), 1
    for column in columns:
        extent = int(column.max(initial=0)) + 1
        if size * extent > 1 << 62:  # numbered anew, so that keys stay below 2**63
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = number
        key, size = key * extent + column, size * extent
    return len(different(key))
