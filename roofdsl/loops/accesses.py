"""Which elements a statement touches, in order, and where each statement stands in its kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.lang.record import Record
from roofdsl.loops.integers import Condition, Not, Tree
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


class Access(Record):
    """One read or write of an array element."""

    element: Element
    is_write: bool


LoopId = tuple[int, ...]
"""A loop of a kernel, usually with its directives applied: the sibling indices down to it (`PlacedStatement`)."""


class PlacedStatement(Record):
    """A statement with everything that surrounds it.

    guards: (number of loops outside it, condition); an else branch has the negated condition. position[d]: the place
    among the siblings at depth d; the branches of an `if` count one after the other, else after then.
    """

    statement: Assign | Let | Count
    loops: tuple[For, ...]
    guards: tuple[tuple[int, Condition], ...]
    position: tuple[int, ...]


def accesses(statement: Assign | Let) -> tuple[Access, ...]:
    """The accesses of one execution to the caches, in the order of docs/language.md, "Order of accesses".

    Scalars make none, and neither does a store that bypasses the caches (`roofdsl.loops.streams`).
    """
    reads = [Access(e, False) for element in elements(statement.value) for e in (*indices(element), element)]
    if isinstance(statement, Let) or not isinstance(statement.target, Element):
        return tuple(reads)
    reads += [Access(e, False) for e in indices(statement.target)]
    if statement.stream:
        return tuple(reads)
    if statement.op != "=":
        reads.append(Access(statement.target, False))
    return (*reads, Access(statement.target, True))


def indices(element: Element) -> Iterator[Element]:
    """The elements of index arrays that the subscripts of `element` read, from left to right, inner ones first."""
    return reads_in(*element.subscripts)


def bound_accesses(loop: For) -> tuple[Access, ...]:
    """What the start and the stop of a loop read, once each time the loop begins."""
    return tuple(Access(e, False) for e in reads_in(loop.start, loop.stop))


def reads_in(*expressions: Tree) -> Iterator[Element]:
    """The elements that integer expressions read, from left to right, inner ones first."""
    for e in expressions:
        yield from reads_in(*e.args())
        if isinstance(e, Read):
            yield e.element


def elements(expression: Expr | DataCompare) -> Iterator[Element]:
    """The array elements an expression reads, left to right."""
    return (e for e in operands(expression) if isinstance(e, Element))


def operands(expression: Expr | DataCompare) -> Iterator[Element | ScalarRef]:
    """The array elements and declared scalars that an expression reads, left to right."""
    return (e for e in leaves(expression) if isinstance(e, Element | ScalarRef))


def leaves(expression: Expr | DataCompare) -> Iterator[Number | IntValue | ScalarRef | LetRef | Element]:
    """What an expression computes with, left to right."""
    match expression:
        case Unary() | Binary() | DataCompare() | Call() | Select():
            for part in parts(expression):
                yield from leaves(part)
        case _:
            yield expression


def parts(expression: Expr | DataCompare) -> tuple[Expr | DataCompare, ...]:
    """The operands of the outermost operation of an expression, left to right; () for one without an operation."""
    match expression:
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right) | DataCompare(_, left, right):
            return left, right
        case Call(_, args):
            return args
        case Select(condition, if_true, if_false):
            return condition, if_true, if_false
        case _:
            return ()


def statements(body: Sequence[Node]) -> Iterator[PlacedStatement]:
    """Every statement of a body in textual order, with its loops, guards and position."""
    yield from _walk(body, (), (), (), [0])


def _walk(
    body: Sequence[Node],
    loops: tuple[For, ...],
    guards: tuple[tuple[int, Condition], ...],
    outer: tuple[int, ...],
    place: list[int],
) -> Iterator[PlacedStatement]:
    for node in body:
        if isinstance(node, If):
            yield from _walk(node.then, loops, (*guards, (len(loops), node.condition)), outer, place)
            yield from _walk(node.orelse, loops, (*guards, (len(loops), Not(node.condition))), outer, place)
            continue
        position = (*outer, place[0])
        place[0] += 1
        if isinstance(node, For):
            yield from _walk(node.body, (*loops, node), guards, position, [0])
        else:
            yield PlacedStatement(node, loops, guards, position)


def elements_of(nodes: Sequence[Node]) -> Iterator[Element]:
    """The elements of all accesses in loops and statements; not of those under conditions."""
    for node in nodes:
        if isinstance(node, For):
            yield from elements_of(node.body)
        elif isinstance(node, Assign | Let):
            yield from (a.element for a in accesses(node))


def scalar_bytes(kernel: Kernel) -> tuple[int, int]:
    """(loaded, stored) bytes of the scalars of one execution (docs/rules.md, rule 8)."""
    scalars = [a for a in kernel.arrays if a.is_scalar]
    loaded = sum(a.type.bytes for a in scalars if a.intent == "inout")
    return loaded, sum(a.type.bytes for a in scalars if a.intent in ("out", "inout"))
