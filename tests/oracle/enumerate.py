"""Walk the loops of a kernel and hand out every executed statement with its accesses, in the order of language.md.

Independent of the package's analyses: it reads `roofdsl.loops.model` and evaluates integer expressions, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roofdsl.loops.integers import Const, IntExpr
from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    Count,
    DataCompare,
    Element,
    Expr,
    For,
    If,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Node,
    Number,
    Read,
    ScalarRef,
    Select,
    Unary,
)

Statement = Assign | Let | Count


@dataclass(frozen=True)
class Access:
    """One array element read or written."""

    array: str
    index: tuple[int, ...]
    is_write: bool


@dataclass(frozen=True)
class Execution:
    """One execution of a statement: the values of parameters and loop variables, and the accesses in order."""

    statement: Statement
    env: Mapping[str, int]
    accesses: tuple[Access, ...]


def run(kernel: Kernel, params: Mapping[str, int], indices: Mapping[str, Any] | None = None) -> Iterator[Execution]:
    """Every executed statement in execution order. indices: the values of index arrays, as numpy arrays.

    The reads of index arrays in loop bounds are not among the accesses.

    Raises ValueError where directives are left or an assumption fails, IndexError where a subscript is out of bounds.
    """
    if kernel.directives:
        raise ValueError("apply the directives first (roofdsl.loops.transform.apply)")
    if not admissible(kernel, params):
        raise ValueError(f"an assumption of {kernel.name} does not hold for {dict(params)}")
    for statement, env in walk(kernel.body, {**params, **(indices or {})}):
        yield Execution(statement, env, tuple(accesses(statement, env)))


def admissible(kernel: Kernel, params: Mapping[str, int]) -> bool:
    """Whether the parameters are positive and meet every `assume`."""
    return all(v > 0 for v in params.values()) and all(c.holds(params) for c in kernel.assumptions)


def value(e: IntExpr, env: Mapping[str, Any]) -> int:
    """The value of an integer expression, which may read index arrays."""
    if isinstance(e, Read):
        return int(env[e.element.array.name][tuple(value(s, env) for s in e.element.subscripts)])
    if not e.args():
        return e.evaluate(env)
    return e.rebuild(tuple(Const(value(a, env)) for a in e.args())).evaluate({})


def walk(body: tuple[Node, ...], env: dict[str, int]) -> Iterator[tuple[Statement, dict[str, int]]]:
    """The executed statements of a block, each with the environment it sees."""
    for node in body:
        if isinstance(node, For):
            start, stop, step = (value(e, env) for e in (node.start, node.stop, node.step))
            for now in range(start, stop, step):
                yield from walk(node.body, {**env, node.var: now})
        elif isinstance(node, If):
            yield from walk(node.then if node.condition.holds(env) else node.orelse, env)
        else:
            yield node, env


def accesses(statement: Statement, env: Mapping[str, int]) -> Iterator[Access]:
    """The accesses of one statement: the right-hand side left to right, an update's read, the write."""
    if isinstance(statement, Count):
        return
    yield from _reads(statement.value, env)
    if isinstance(statement, Assign) and isinstance(statement.target, Element):
        yield from _index_reads(statement.target, env)
        if statement.op != "=":
            yield element_access(statement.target, env, is_write=False)
        yield element_access(statement.target, env, is_write=True)


def element_access(element: Element, env: Mapping[str, int], is_write: bool) -> Access:
    """The access an element stands for. Raises IndexError where it is out of bounds."""
    index = tuple(value(s, env) for s in element.subscripts)
    dims = tuple(d.evaluate(env) for d in element.array.dims)
    if len(index) != len(dims) or any(not 0 <= i < d for i, d in zip(index, dims, strict=True)):
        raise IndexError(f"{element.array.name}{list(index)} is outside {list(dims)} where {dict(env)}")
    return Access(element.array.name, index, is_write)


def _index_reads(element: Element, env: Mapping[str, int]) -> Iterator[Access]:
    """The reads of index arrays in the subscripts of an element, the innermost first."""
    pending: list[Any] = list(element.subscripts)
    while pending:
        e = pending.pop(0)
        if isinstance(e, Read):
            yield from _reads(e.element, env)
        else:
            pending = [*e.args(), *pending]


def _reads(e: Expr | DataCompare, env: Mapping[str, int]) -> Iterator[Access]:
    match e:
        case Element():
            yield from _index_reads(e, env)
            yield element_access(e, env, is_write=False)
        case Number() | IntValue() | ScalarRef() | LetRef():
            return
        case Unary():
            yield from _reads(e.operand, env)
        case Binary() | DataCompare():
            yield from _reads(e.left, env)
            yield from _reads(e.right, env)
        case Call():
            for argument in e.args:
                yield from _reads(argument, env)
        case Select():
            yield from _reads(e.condition, env)
            yield from _reads(e.if_true, env)
            yield from _reads(e.if_false, env)


def counters(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """The total of every counter."""
    totals: dict[str, int] = {}
    for e in run(kernel, params):
        if isinstance(e.statement, Count):
            totals[e.statement.name] = totals.get(e.statement.name, 0) + e.statement.amount.evaluate(e.env)
    return totals


def executions(kernel: Kernel, params: Mapping[str, int]) -> dict[int, int]:
    """How often each statement runs, by its position in a depth-first walk of the text (then before else)."""
    position = {id(s): k for k, s in enumerate(textual(kernel.body))}
    counts = dict.fromkeys(range(len(position)), 0)
    for e in run(kernel, params):
        counts[position[id(e.statement)]] += 1
    return counts


def textual(body: tuple[Node, ...]) -> Iterator[Statement]:
    """The statements of a block in textual order."""
    for node in body:
        if isinstance(node, For):
            yield from textual(node.body)
        elif isinstance(node, If):
            yield from textual(node.then)
            yield from textual(node.orelse)
        else:
            yield node
