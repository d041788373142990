"""Walk the loops of a kernel and hand out every executed statement with its accesses, in the order of language.md.

Independent of the package's analyses: it reads `roofdsl.loops.model` and evaluates integer expressions, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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


class Access(NamedTuple):
    """One array element read or written."""

    array: str
    index: tuple[int, ...]
    is_write: bool


class Execution(NamedTuple):
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
    known: dict[int, list[_Place]] = {}
    for statement, env in walk(kernel.body, {**params, **(indices or {})}):
        places = known.get(id(statement))
        if places is None:
            places = known[id(statement)] = [_place(e, w, params) for e, w in accessed(statement)]
        yield Execution(statement, env, tuple([_access(p, env) for p in places]))


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
    for element, is_write in accessed(statement):
        yield element_access(element, env, is_write)


def accessed(statement: Statement) -> Iterator[tuple[Element, bool]]:
    """The elements that a statement accesses, in this order, and whether each is written."""
    if isinstance(statement, Count):
        return
    for element in _reads(statement.value):
        yield element, False
    if isinstance(statement, Assign) and isinstance(statement.target, Element):
        for element in _index_reads(statement.target):
            yield element, False
        if statement.op != "=":
            yield statement.target, False
        yield statement.target, True


def element_access(element: Element, env: Mapping[str, int], is_write: bool) -> Access:
    """The access an element stands for. Raises IndexError where it is out of bounds."""
    return _access(_place(element, is_write, env), env)


class _Place(NamedTuple):
    """An access of a statement, with what is the same in each of its executions."""

    array: str
    subscripts: tuple[IntExpr, ...]
    dims: tuple[int, ...]
    is_write: bool
    reads_indices: bool


def _place(element: Element, is_write: bool, params: Mapping[str, int]) -> _Place:
    dims = tuple([d.evaluate(params) for d in element.array.dims])
    return _Place(element.array.name, element.subscripts, dims, is_write, any(True for _ in _index_reads(element)))


def _access(place: _Place, env: Mapping[str, int]) -> Access:
    name, subscripts, dims, is_write, reads_indices = place
    index = tuple([value(s, env) if reads_indices else s.evaluate(env) for s in subscripts])
    if len(index) != len(dims):
        raise IndexError(f"{name} has {len(dims)} subscripts, not {len(index)}")
    for i, d in zip(index, dims, strict=True):
        if not 0 <= i < d:
            raise IndexError(f"{name}{list(index)} is outside {list(dims)} where {dict(env)}")
    return Access(name, index, is_write)


def _index_reads(element: Element) -> Iterator[Element]:
    """The elements of index arrays that the subscripts of an element read, the innermost first."""
    pending: list[Any] = list(element.subscripts)
    while pending:
        e = pending.pop(0)
        if isinstance(e, Read):
            yield from _reads(e.element)
        else:
            pending = [*e.args(), *pending]


def _reads(e: Expr | DataCompare) -> Iterator[Element]:
    match e:
        case Element():
            yield from _index_reads(e)
            yield e
        case Number() | IntValue() | ScalarRef() | LetRef():
            return
        case Unary():
            yield from _reads(e.operand)
        case Binary() | DataCompare():
            yield from _reads(e.left)
            yield from _reads(e.right)
        case Call():
            for argument in e.args:
                yield from _reads(argument)
        case Select():
            yield from _reads(e.condition)
            yield from _reads(e.if_true)
            yield from _reads(e.if_false)


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
