"""Stores that bypass the caches, `stream A[i] = e`: which statements make them, and what caches see of a kernel.

Such a store (a non-temporal store) collects a whole line in a buffer of the core and hands it to the main memory. It
loads nothing first, and takes no place in a cache. Nothing else touches its array (`roofdsl.lang.check_kernel`), so the
caches behave as if the stores were not there, and the memory gets every stored element once for each time it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import PlacedStatement, accesses, statements
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const
from roofdsl.loops.model import Assign, Count, Element, For, If, Kernel, Let, Node


def stores_past_caches(statement: Node) -> bool:
    """Whether a statement is a store that bypasses the caches."""
    return isinstance(statement, Assign) and statement.stream


def has_streams(kernel: Kernel) -> bool:
    """Whether a kernel has stores that bypass the caches."""
    return _any(kernel.body)


def _any(body: Sequence[Node]) -> bool:
    for node in body:
        inner: Sequence[Node] = ()
        if isinstance(node, For):
            inner = node.body
        elif isinstance(node, If):
            inner = (*node.then, *node.orelse)
        if stores_past_caches(node) or _any(inner):
            return True
    return False


def arrays_past_caches(kernel: Kernel) -> frozenset[str]:
    """The names of the arrays that such stores fill."""
    placed = (p.statement for p in statements(kernel.body))
    return frozenset(s.target.array.name for s in placed if isinstance(s, Assign) and s.stream)


def require_ordinary(kernel: Kernel, what: str) -> None:
    """Raises CommandError for a kernel with stores that bypass the caches; `what` cannot count them."""
    if has_streams(kernel):
        message = f"{what} does not count stores that bypass the caches, and kernel {kernel.name} has some"
        raise CommandError(message, "write `A[i] = ...` without `stream`")


def ordinary(kernel: Kernel) -> Kernel:
    """The kernel with ordinary stores in their place, as processors without such stores execute it."""
    return _with(kernel, lambda statement: replace(statement, stream=False))


def why_not_past_caches(kernel: Kernel) -> str:
    """Why the plain stores of a kernel with its directives applied cannot all bypass the caches; empty if they can."""
    placed = [p.statement for p in statements(kernel.body) if not isinstance(p.statement, Count)]
    times = Counter(a.element.array.name for s in placed for a in accesses(s))
    stores = [s for s in placed if isinstance(s, Assign) and isinstance(s.target, Element) and s.op == "="]
    for store in stores:
        if times[store.target.array.name] > 1:
            return f"`{store.target.array.name}` is also accessed elsewhere"
    past = _marked(kernel)
    return next((f"the stores to `{a.target.array.name}` fill no lines: {a.why}" for a in apart(past)), "")


def within_caches(kernel: Kernel) -> Kernel:
    """The kernel as its caches see it: what such a statement computes goes nowhere."""

    def computed(statement: Assign) -> Node:
        return Let(f"stream at {statement.span.line}", statement.target.array.type, statement.value, statement.span)

    return _with(kernel, computed)


def _marked(kernel: Kernel) -> Kernel:
    """All plain stores to elements as ones that bypass the caches."""

    def marked(statement: Assign) -> Node:
        plain = statement.op == "=" and isinstance(statement.target, Element)
        return replace(statement, stream=True) if plain else statement

    return _changed(kernel, lambda statement: True, marked)


def _with(kernel: Kernel, change: Callable[[Assign], Node]) -> Kernel:
    return _changed(kernel, stores_past_caches, change) if has_streams(kernel) else kernel


def _changed(kernel: Kernel, which: Callable[[Assign], bool], change: Callable[[Assign], Node]) -> Kernel:
    """The kernel with `change` made to the assignments that `which` selects."""

    def changed(body: Sequence[Node]) -> tuple[Node, ...]:
        return tuple(map(each, body))

    def each(node: Node) -> Node:
        match node:
            case For():
                return replace(node, body=changed(node.body))
            case If():
                return replace(node, then=changed(node.then), orelse=changed(node.orelse))
            case Assign() if which(node):
                return change(node)
        return node

    return replace(kernel, body=changed(kernel.body))


def walks_along(target: Element, loop: For) -> bool:
    """Whether an element moves to its neighbor in memory from one iteration of the loop to the next."""
    subscripts = target.subscripts[::-1] if target.array.column_major else target.subscripts
    *outer, last = subscripts
    form = affine(last)
    along = form.coefficients().get(loop.var) == 1 and loop.var not in form.hidden()
    return along and loop.step == Const(1) and not any(loop.var in s.symbols() for s in outer)


class Apart(Record):
    """A store that bypasses the caches and does not fill whole lines: its element, and the reason."""

    target: Element
    why: str


def apart(kernel: Kernel) -> tuple[Apart, ...]:
    """The stores past the caches that do not fill line after line, in a kernel with its directives applied."""
    streams = [p for p in statements(kernel.body) if isinstance(p.statement, Assign) and p.statement.stream]
    found = []
    for placed in streams:
        why = _why_apart(placed, [other for other in streams if other is not placed])
        if why:
            found.append(Apart(_target(placed), why))
    return tuple(found)


def require_lines(kernel: Kernel) -> None:
    """Raises CommandError for the first of the `apart` stores."""
    for each in apart(kernel)[:1]:
        message = f"the stores to `{each.target.array.name}` that bypass the caches fill no lines: {each.why}"
        raise CommandError(message, "write `A[i] = ...` without `stream`")


def _target(placed: PlacedStatement) -> Element:
    """The element that is stored; the language allows no other `stream`."""
    if not isinstance(placed.statement, Assign) or not isinstance(placed.statement.target, Element):
        raise TypeError("`stream` stores an element")
    return placed.statement.target


def _why_apart(placed: PlacedStatement, others: Sequence[PlacedStatement]) -> str:
    target, body = _target(placed), placed.position[:-1]
    if not placed.loops:
        return "the statement is in no loop"
    inner = placed.loops[-1]
    if not walks_along(target, inner):
        return f"the innermost loop, over `{inner.var}`, does not run along neighboring elements"
    if any(depth == len(placed.loops) for depth, _ in placed.guards):
        return f"a condition in the loop over `{inner.var}` leaves some out"
    # A line waits until all of its elements are known. Another store to one of them must not come in between.
    if any(_target(o).array.name == target.array.name and o.position[: len(body)] == body for o in others):
        return f"another statement in the loop over `{inner.var}` stores to the same array"
    return ""


def streamed_bytes_at(kernel: Kernel, values: Mapping[str, int]) -> int:
    """The bytes that such stores move, by running through the loops, of a kernel with its directives applied.

    An iteration is run through by itself only where bounds or conditions inside depend on it.
    """
    return _bytes(kernel.body, dict(values)) if has_streams(kernel) else 0


def _bytes(body: Sequence[Node], values: dict[str, int]) -> int:
    total = 0
    for node in body:
        match node:
            case Assign() if node.stream:
                total += node.target.array.type.bytes
            case If(condition, then, orelse):
                total += _bytes(then if condition.holds(values) else orelse, values)
            case For():
                start, stop, step = (e.evaluate(values) for e in (node.start, node.stop, node.step))
                each = range(start, stop, step)
                if node.var not in deciding(node.body):
                    total += len(each) * _bytes(node.body, values) if each else 0
                else:
                    total += sum(_bytes(node.body, {**values, node.var: value}) for value in each)
            case Assign() | Let() | Count():
                continue
    return total


def deciding(body: Sequence[Node]) -> frozenset[str]:
    """The names in the bounds and conditions of a body, which decide how often its statements run."""
    found: frozenset[str] = frozenset()
    for node in body:
        match node:
            case For():
                found |= node.start.symbols() | node.stop.symbols() | node.step.symbols() | deciding(node.body)
            case If(condition, then, orelse):
                found |= condition.symbols() | deciding((*then, *orelse))
    return found
