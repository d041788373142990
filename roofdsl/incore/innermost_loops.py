"""The innermost loops of a kernel as a compiler sees them: how often they run, and how their accesses move.

Statements outside innermost loops (an initialization before one, for example) count as a loop without depth: they run
once for each iteration of the loops around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from roofdsl.counts.executions import statement_executions
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.registers import Kept, alone, kept_at
from roofdsl.counts.work_record import StatementOperations
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import PlacedStatement, statements
from roofdsl.loops.integers import Compare, Const, add, mul
from roofdsl.loops.model import Count, Element, For
from roofdsl.loops.sized import Sized
from roofdsl.loops.strides import Stride, stride_of


class Moved(Record):
    """An element that the loop's body loads, stores or both, and how it moves (`step`: by how many elements, if that is
    known).
    """

    element: Element
    stride: Stride
    step: int
    loaded: bool
    stored: bool


class Loop(Record):
    """One innermost loop, or statements outside innermost loops.

    loop: None for the latter. iterations, entries: of one launch. operations: of each statement, with its executions
    per iteration. moved: the loads and stores of every iteration; outside: the additional loads and stores of one
    entry, for values that the loop keeps in registers.
    """

    loop: For | None
    statements: tuple[PlacedStatement, ...]
    iterations: int
    entries: int
    operations: tuple[tuple[StatementOperations, float], ...]
    moved: tuple[Moved, ...]
    outside: float

    @property
    def var(self) -> str:
        return "" if self.loop is None else self.loop.var

    @property
    def length(self) -> float:
        """Iterations of one entry, on average."""
        return self.iterations / self.entries if self.entries else 0.0


def loops_of(at: Sized) -> tuple[Loop, ...]:
    """The loops of a kernel at these sizes, without those that never run. Raises TooHard."""
    from roofdsl.sets.library import limited

    placed = tuple(statements(at.kernel.body))
    costs = operation_counts(at.kernel)
    runs = statement_executions(at.kernel, at.values)
    kept = kept_at(at)
    innermost = _innermost(placed)
    found = []

    def body(k: int) -> tuple[bool, tuple[int, ...]]:
        return placed[k].position[:-1] in innermost, placed[k].position[:-1]

    for (inner, _), members in groupby(range(len(placed)), body):
        own = list(members)
        iterations = max(runs[k] for k in own)
        if not iterations:
            continue
        first = placed[own[0]]
        loop = first.loops[-1] if inner and first.loops else None
        with limited(f"the loops of kernel {at.name}"):
            entries = iterations if loop is None else _executions(at, _around(first))
        work = tuple((costs[k], runs[k] / iterations) for k in own)
        moved, outside = _moved(kept, [placed[k] for k in own], loop, iterations, entries)
        found.append(Loop(loop, tuple(placed[k] for k in own), iterations, entries, work, moved, outside))
    return tuple(found)


def _innermost(placed: Sequence[PlacedStatement]) -> set[tuple[int, ...]]:
    """The positions of loops without another loop inside."""
    bodies = {p.position[:-1] for p in placed if p.loops}
    return {b for b in bodies if not any(len(o) > len(b) and o[: len(b)] == b for o in bodies)}


def _executions(at: Sized, placed: PlacedStatement) -> int:
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number

    (domain,) = build(alone(at.kernel, placed), at.values, None).domains
    return number(cardinality(domain.executions))


def varies(loop: Loop, at: Sized) -> bool:
    """Whether the number of iterations differs from one entry to another. Raises TooHard.

    If it does not, every entry has the mean number of iterations, and no entry one more.
    """
    from roofdsl.sets.library import limited

    first, over = loop.statements[0], loop.loop
    if over is None:
        return False
    depth = len(first.loops) - 1
    own = replace(_around(first), loops=first.loops)
    with limited(f"the loops of kernel {at.name}"):
        mean, rest = divmod(_executions(at, own), loop.entries)
        beyond = [
            (depth, Compare("<", add(start, mul(Const(mean), over.step)), stop))
            for start in over.starts
            for stop in over.stops
        ]
        around = _around(first)
        return bool(rest or _executions(at, replace(around, guards=(*around.guards, *beyond))))


def _around(placed: PlacedStatement) -> PlacedStatement:
    """A statement that runs once for each entry of the innermost loop around `placed`."""
    depth = len(placed.loops) - 1
    guards = tuple((d, c) for d, c in placed.guards if d <= depth)
    marker = Count("entries", Const(1), placed.statement.span)
    return PlacedStatement(marker, placed.loops[:-1], guards, placed.position[:-1])


def _moved(
    kept: Sequence[Kept], members: Sequence[PlacedStatement], loop: For | None, iterations: int, entries: int
) -> tuple[tuple[Moved, ...], float]:
    moved, outside = [], 0.0
    for one in kept:
        if one.places[0] not in members:
            continue
        if loop is None or one.times > entries or one.depth == len(one.places[0].loops):
            stride, step = stride_of(one.element, loop)
            moved.append(Moved(one.element, stride, step, one.loaded, one.stored))
        else:
            outside += one.times / entries * (one.loaded + one.stored)
    return tuple(moved), outside
