"""Whether arrays and scalars are used as they are declared, for all sizes that the assumptions allow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from roofdsl.checks.execution_order import TooLong, Use, admissible, described, uses, walk, ways_before
from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.findings import listed
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import PlacedStatement, statements
from roofdsl.loops.integers import IntExpr
from roofdsl.loops.model import Array, For, Kernel
from roofdsl.sets.instances import Encoder, decide, variable
from roofdsl.sets.sizes import NotAffine

LONGEST = 50_000
"""The maximum number of iterations walked through to confirm that an element is read before it is written."""


class _Touch(Record):
    """A use and the statement that makes it."""

    placed: PlacedStatement
    use: Use


def check_intents(kernel: Kernel) -> list[Diagnostic]:
    """Errors for values read before they are written and for writes to an `in`.

    Warnings for an `inout` that is never read or never written, for an `out` that is never written, and where it is
    unknown whether a write comes before a read.
    """
    touched: dict[str, list[_Touch]] = {a.name: [] for a in kernel.arrays}
    for placed in statements(kernel.body):
        for use in uses(placed.statement):
            touched[use.array.name].append(_Touch(placed, use))
    found: list[Diagnostic] = []
    for array in kernel.arrays:
        if touched[array.name]:
            found += _check(kernel, array, touched[array.name])
    return found


def is_written_first(kernel: Kernel, name: str) -> bool:
    """Whether every read of an array or scalar provably comes after a write of the same place, for all sizes."""
    array = next(a for a in kernel.arrays if a.name == name)
    touches = [_Touch(p, use) for p in statements(kernel.body) for use in uses(p.statement) if use.array.name == name]
    reads = [t for t in touches if not t.use.is_write]
    return not _read_first(kernel, array, reads, [t for t in touches if t.use.is_write])


def _check(kernel: Kernel, array: Array, touches: list[_Touch]) -> list[Diagnostic]:
    writes = [t for t in touches if t.use.is_write]
    reads = [t for t in touches if not t.use.is_write]
    name = array.name
    if array.intent == "in":
        if not writes:
            return []
        message = f"`{name}` is declared `in` and cannot be written"
        return [Diagnostic("intent-write", message, writes[0].use.span, "declare it `inout` or `out`")]
    if array.intent == "inout":
        if all(_never(kernel, t) for t in writes):
            return [_wider(array, f"`{name}` is declared `inout` but never written", "declare it `in`")]
        if all(_never(kernel, t) for t in reads):
            return [_wider(array, f"`{name}` is declared `inout` but never read", "declare it `out`")]
        return []
    if array.intent == "out" and all(_never(kernel, t) for t in writes):
        message = f"`{name}` is declared `out` and never written: no allowed size reaches the assignment"
        return [_wider(array, message, "remove it, or change the bounds and conditions around it")]
    return _read_first(kernel, array, reads, writes)


def _wider(array: Array, message: str, help: str) -> Diagnostic:
    return Diagnostic("intent-unused", message, array.span, help, "warning")


def _never(kernel: Kernel, touch: _Touch) -> bool:
    """Whether the use is executed at no allowed size; False if that is unknown."""
    encoder = Encoder(kernel)
    constraints = encoder.domain(touch.placed, "x")
    dimensions = [variable("x", loop.var) for loop in touch.placed.loops]
    return bool(encoder.make(dimensions, constraints).is_empty())


# ---- read before written ----


class _Unwritten(Record):
    """The first read of a value that nothing has written, in the order of execution; `env` says where."""

    use: Use
    env: dict[str, int]
    loops: tuple[For, ...]


def _read_first(kernel: Kernel, array: Array, reads: list[_Touch], writes: list[_Touch]) -> list[Diagnostic]:
    reads, writes = _distinct(reads), _distinct(writes)
    told: set[tuple[str, int, int]] = set()
    found: list[Diagnostic] = []
    for read in reads:
        answer = decide(
            kernel,
            partial(_uncovered, read=read, writes=writes),
            partial(_confirm, kernel=kernel, array=array),
        )
        if answer.found is not None:
            span = answer.found.use.span
            if (array.name, span.line, span.column) not in told:
                told.add((array.name, span.line, span.column))
                found.append(_error(kernel, array, answer.found))
        elif not answer.proven:
            why = f"it is not affine in {listed(answer.hard, 'and')}" if answer.hard else "it has too many cases"
            message = f"whether `{read.use.text}` is written before this read is not known for all sizes: {why}"
            help = "at small sizes, it is"
            found.append(Diagnostic("unchecked", message, read.use.span, help, "warning"))
    return found


def _distinct(touches: list[_Touch]) -> list[_Touch]:
    """The first of the uses of one place under the same loops and guards: what holds for it holds for all of them."""
    first: dict[object, _Touch] = {}
    for t in touches:
        first.setdefault((tuple(id(loop) for loop in t.placed.loops), t.placed.guards, t.use.place), t)
    return list(first.values())


def _uncovered(encoder: Encoder, read: _Touch, writes: list[_Touch]) -> Iterator[Any]:
    """The executions of a read before which no write to the same place is known."""
    placed = read.placed
    names = {loop.var: variable("x", loop.var) for loop in placed.loops}
    constraints = encoder.domain(placed, "x")
    for subscript in read.use.subscripts:
        try:
            encoder.expression(subscript, names)
        except NotAffine:
            encoder.exact = False
    left = encoder.make(list(names.values()), constraints)
    for write in writes:
        for earlier in _earlier(encoder, read, write, names, constraints):
            left = left.subtract(earlier)
            if left.is_empty():
                return
    yield left.coalesce()


def _earlier(
    encoder: Encoder, read: _Touch, write: _Touch, names: dict[str, str], constraints: list[str]
) -> Iterator[Any]:
    """Sets of executions of the read, each of which comes after a write of the same place."""
    own = {loop.var: variable("y", loop.var) for loop in write.placed.loops}
    same = []
    try:
        for s, t in zip(read.use.subscripts, write.use.subscripts, strict=True):
            same.append(f"{encoder.expression(s, names)} = {encoder.expression(t, own)}")
    except NotAffine:
        return
    writing = _exactly(encoder, write.placed)
    if writing is None:
        return
    dimensions = [*names.values(), *own.values()]
    together = encoder.make(dimensions, [*constraints, *writing, *same])
    for choice in _choices(encoder, read.placed, write.placed, names, own):
        chosen = together.intersect(encoder.order(dimensions, choice)) if choice else together
        if chosen.is_empty():
            continue
        for way in ways_before(write.placed, read.placed):
            order = [f"{own[loop.var]} = {names[loop.var]}" for loop in way.same]
            if way.loop is not None:
                order.append(f"{own[way.loop.var]} < {names[way.loop.var]}")
            pairs = chosen.intersect(encoder.order(dimensions, order))
            if not pairs.is_empty():
                yield encoder.first(pairs, len(names))


def _exactly(encoder: Encoder, placed: PlacedStatement) -> list[str] | None:
    """Constraints that only executions `y` meet, if loops with steps of unknown size are at one of their steps. None if
    the constraints cannot be that exact.
    """
    strict = Encoder.like(encoder)
    constraints = strict.domain(placed, "y", steps_known=True)
    return constraints if strict.exact else None


def _choices(
    encoder: Encoder, read: PlacedStatement, write: PlacedStatement, names: dict[str, str], own: dict[str, str]
) -> list[list[str]]:
    """Iterations of the write's loops with steps of unknown size that are known to exist, one or more of each loop:
    its first, and that of a loop around the read with the same range.
    """
    each: list[list[str]] = []
    for loop in write.loops:
        if encoder.step(loop) is not None:
            continue
        options = [f"{own[loop.var]} = {encoder.expression(loop.start, own)}"]
        for other in read.loops:
            if _range(other) == _range(loop) and not _range_symbols(loop) & own.keys():
                options.append(f"{own[loop.var]} = {names[other.var]}")
        each.append(options)
    return [list(choice) for choice in product(*each)][:16]


def _range(loop: For) -> tuple[IntExpr, IntExpr, IntExpr]:
    return loop.start, loop.stop, loop.step


def _range_symbols(loop: For) -> frozenset[str]:
    return loop.start.symbols() | loop.stop.symbols()


def _confirm(point: dict[str, int], kernel: Kernel, array: Array) -> _Unwritten | None:
    """The first read of an element that nothing has written, by running through the kernel at the point's sizes; None
    if there is none, or if that takes too long.
    """
    sizes = {p.name: point[p.name] for p in kernel.parameters}
    if not admissible(kernel, sizes):
        return None
    try:
        return _first_unwritten(kernel, array, sizes)
    except TooLong:
        return None


def _first_unwritten(kernel: Kernel, array: Array, sizes: dict[str, int]) -> _Unwritten | None:
    written: set[tuple[int, ...]] = set()
    loops = {id(p.statement): p.loops for p in statements(kernel.body)}
    for statement, env in walk(kernel, sizes, LONGEST):
        for use in uses(statement):
            if use.array.name != array.name:
                continue
            if use.is_write:
                written.add(use.index(env))
            elif use.index(env) not in written:
                return _Unwritten(use, env, loops[id(statement)])
    return None


def _error(kernel: Kernel, array: Array, found: _Unwritten) -> Diagnostic:
    where = described(kernel, found.env, found.loops)
    what = "updated" if found.use.op else "read"
    at = f" at {where}" if where else ""
    message = f"`{found.use.text}` is {what} before it is written{at}, and `{array.name}` is declared `{array.intent}`"
    help = f"assign it first, or declare `{array.name}` `inout`"
    return Diagnostic("intent-order", message, found.use.span, help)
