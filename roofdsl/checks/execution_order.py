"""What statements touch, scalars included, and the order of their executions: as written, and at given values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.lang.record import Record
from roofdsl.lang.source import Span
from roofdsl.loops.accesses import PlacedStatement, operands
from roofdsl.loops.integers import IntExpr
from roofdsl.loops.model import (
    Array,
    Assign,
    Count,
    Element,
    For,
    If,
    Kernel,
    Let,
    Node,
    ScalarRef,
)


class Use(Record):
    """A read or write of an array element or a scalar; `op` is the operator of an assignment to it, otherwise ""."""

    array: Array
    subscripts: tuple[IntExpr, ...]
    is_write: bool
    op: str
    span: Span

    @property
    def text(self) -> str:
        """The element as it may be written."""
        return f"{self.array.name}[{', '.join(map(str, self.subscripts))}]" if self.subscripts else self.array.name

    @property
    def verb(self) -> str:
        """What it does to the element."""
        if not self.is_write:
            return "reads"
        return "writes" if self.op == "=" else "updates"

    @property
    def place(self) -> tuple[str, tuple[IntExpr, ...]]:
        """The array and the subscripts."""
        return self.array.name, self.subscripts

    def index(self, env: Mapping[str, int]) -> tuple[int, ...]:
        """The values of the subscripts."""
        return tuple(s.evaluate(env) for s in self.subscripts)


def uses(statement: Assign | Let | Count) -> tuple[Use, ...]:
    """The uses of one execution in order: the right-hand side, the read of an update, the write."""
    if isinstance(statement, Count):
        return ()
    found = [_use(e, False, "") for e in operands(statement.value)]
    if isinstance(statement, Assign):
        if statement.op != "=":
            found.append(_use(statement.target, False, statement.op))
        found.append(_use(statement.target, True, statement.op))
    return tuple(found)


def _use(e: Element | ScalarRef, is_write: bool, op: str) -> Use:
    return Use(e.array, e.subscripts if isinstance(e, Element) else (), is_write, op, e.span)


def conflicting(statement: Assign | Let | Count) -> tuple[Use, ...]:
    """The uses that matter for dependences: one for each place, the write if there is one."""
    found: dict[object, Use] = {}
    for use in uses(statement):
        if use.is_write or use.place not in found:
            found[use.place] = use
    return tuple(found.values())


_REGROUPED = {"+=": "+", "-=": "+", "*=": "*", "/=": "*", "min=": "min", "max=": "max"}


def reduction(statement: Assign | Let | Count) -> str:
    """The operator by which the target is reduced (`+`, `*`, `min`, `max`): updates by the same one commute, except for
    rounding.

    Empty for anything but an update, and for an update by a value that reads the target itself.
    """
    if not isinstance(statement, Assign):
        return ""
    *others, target = uses(statement)
    read = sum(use.place == target.place for use in others)
    return _REGROUPED.get(statement.op, "") if read == 1 else ""


class Earlier(Record):
    """One way for an execution to come before another: equal iterations of the loops `same`, an earlier one of `loop`.

    Without a loop, the order of the text decides. The loops are common to both statements.
    """

    same: tuple[For, ...]
    loop: For | None


def ways_before(first: PlacedStatement, second: PlacedStatement) -> Iterator[Earlier]:
    """The ways, all disjoint, in which an execution of `first` can precede one of `second`, outermost loop first."""
    same: tuple[For, ...] = ()
    for depth, (a, b) in enumerate(zip(first.position, second.position, strict=False)):
        if a != b:
            if a < b:
                yield Earlier(same, None)
            return
        if depth >= len(first.loops) or depth >= len(second.loops):
            return
        loop = first.loops[depth]
        yield Earlier(same, loop)
        same = (*same, loop)


# ---- at given values ----


def admissible(kernel: Kernel, env: Mapping[str, int]) -> bool:
    """Whether the parameters are positive and meet the assumptions."""
    return all(env[p.name] > 0 for p in kernel.parameters) and all(c.holds(env) for c in kernel.assumptions)


def executed(kernel: Kernel, placed: PlacedStatement, env: Mapping[str, int]) -> bool:
    """Whether the statement is executed at these values of parameters and of its loop variables."""
    if not admissible(kernel, env):
        return False
    for loop in placed.loops:
        start, stop, step = (e.evaluate(env) for e in (loop.start, loop.stop, loop.step))
        if env[loop.var] not in range(start, stop, step):
            return False
    return all(guard.holds(env) for _, guard in placed.guards)


def moment(placed: PlacedStatement, env: Mapping[str, int]) -> tuple[int, ...]:
    """The time of an execution: positions in the text and loop variables in turn; compares like time."""
    values = [env[loop.var] for loop in placed.loops]
    return tuple(v for pair in zip(placed.position, [*values, 0], strict=True) for v in pair)


def environment(point: Mapping[str, int], kernel: Kernel, placed: PlacedStatement, execution: str) -> dict[str, int]:
    """The parameters and loop variables of one execution, from a point of a set (`sets.instances`)."""
    env = {p.name: point[p.name] for p in kernel.parameters}
    return env | {loop.var: point[f"{execution}_{loop.var}"] for loop in placed.loops}


class TooLong(Exception):
    """A walk through a kernel takes more iterations than allowed."""


def walk(kernel: Kernel, sizes: Mapping[str, int], most: int) -> Iterator[tuple[Assign | Let | Count, dict[str, int]]]:
    """Every execution in order, with the values of parameters and loop variables.

    Raises TooLong after `most` iterations of loops.
    """
    yield from _walk(kernel.body, dict(sizes), [most])


def _walk(
    body: Sequence[Node], env: dict[str, int], left: list[int]
) -> Iterator[tuple[Assign | Let | Count, dict[str, int]]]:
    for node in body:
        if isinstance(node, For):
            start, stop, step = (e.evaluate(env) for e in (node.start, node.stop, node.step))
            for value in range(start, stop, step):
                left[0] -= 1
                if left[0] < 0:
                    raise TooLong
                yield from _walk(node.body, {**env, node.var: value}, left)
        elif isinstance(node, If):
            yield from _walk(node.then if node.condition.holds(env) else node.orelse, env, left)
        else:
            yield node, env


def described(kernel: Kernel, env: Mapping[str, int], loops: Sequence[For] = ()) -> str:
    """`n = 4, i = 0`: the parameters, then the loop variables."""
    names = [p.name for p in kernel.parameters] + [loop.var for loop in loops]
    return ", ".join(f"{name} = {env[name]}" for name in names)
