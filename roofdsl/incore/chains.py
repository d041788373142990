"""The values that one iteration of an innermost loop passes to a later one, and the time of the chain of such values.

A value that an iteration computes from a value of an earlier iteration waits for it. The latencies of the operations in
between add up. The slowest closed chain of such steps, in cycles per iteration, bounds the loop however many units a
core has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.lang.types import ElementType
from roofdsl.loops.accesses import PlacedStatement, operands
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, IntExpr, sub
from roofdsl.loops.lower_values import type_of
from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    Element,
    Expr,
    For,
    Let,
    LetRef,
    ScalarRef,
    Select,
    Unary,
)

Latency = Callable[[str, str], float]
"""Cycles of an operation from its operands to its result, by class (or special function) and type."""

Fuses = Callable[[str], bool]
"""Whether a product and a sum of this type become one instruction, an `fma`."""

Place = tuple[tuple[object, ...], tuple[int, ...]]
"""A scalar, or an element as it moves along the loop: what it is up to a shift, and the shift."""

Start = tuple[Place, int]
"""A place, and the number of iterations since its value was left there."""

CLASSES = {"+": "add", "-": "add", "*": "mul", "/": "div", "min": "min", "max": "min"}

CHAINED = {"add": "adds", "mul": "products", "fma": "fused adds", "div": "divisions", "min": "minima", "max": "maxima"}
"""What the operations of a chain are called, by class."""


class Step(Record):
    """`end` is computed from the value that `start` had `distance` iterations before. It is ready `latency` cycles
    after that value. operations: the classes on the way, in order.
    """

    start: Place
    end: Place
    distance: int
    latency: float
    operations: tuple[str, ...]


class Chain(Record):
    """The slowest closed chain of a loop: its clock cycles per iteration, and its operations in order.

    iterations: the number of iterations after which it returns to the same place. shortest: the fewest iterations that
    a value is passed on over in any closed chain of the loop.
    """

    cycles: float
    operations: tuple[str, ...]
    iterations: int = 1
    shortest: int = 1


def no_fusing(type_name: str) -> bool:
    """Products and sums stay separate instructions, as with strict math."""
    return False


def chain(statements: Sequence[PlacedStatement], loop: For, latency: Latency, fuses: Fuses = no_fusing) -> Chain | None:
    """The slowest chain from iteration to iteration; None if there is no closed chain that takes time."""
    steps = steps_of(statements, loop, latency, fuses)
    slowest = _slowest(steps)
    if not slowest:
        return None
    operations = tuple(cls for s in slowest for cls in s.operations)
    iterations = sum(s.distance for s in slowest)
    return Chain(float(_cycles(slowest)), operations, iterations, min(s.distance for s in _closed(steps)))


def _cycles(closed: Sequence[Step]) -> Fraction:
    """Clock cycles per iteration of a closed chain."""
    return sum((Fraction(s.latency) for s in closed), Fraction(0)) / sum(s.distance for s in closed)


def _slowest(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The closed chain with the greatest ratio of latency to distance; empty if none takes time.

    Each chain found is slower than the one before, until there is no slower one.
    """
    found: tuple[Step, ...] = ()
    cycles = Fraction(0)
    while slower := _slower(steps, cycles):
        found, cycles = slower, _cycles(slower)
    return found


def _slower(steps: Sequence[Step], cycles: Fraction) -> tuple[Step, ...]:
    """A closed chain that takes more cycles per iteration, its steps in order; empty if there is none (Bellman-Ford).

    A step is worth its latency beyond `cycles` for each iteration. A path of as many steps as there are places that is
    worth more than all shorter ones contains a closed chain that is worth something.
    """
    worth = {place: Fraction(0) for s in steps for place in (s.start, s.end)}
    last: dict[Place, Step] = {}
    at: Place | None = None
    for _ in worth:
        at = None
        for s in steps:
            through = worth[s.start] + Fraction(s.latency) - cycles * s.distance
            if through > worth[s.end]:
                worth[s.end], last[s.end], at = through, s, s.end
        if at is None:
            return ()
    if at is None:  # no steps at all
        return ()
    for _ in worth:
        at = last[at].start  # at the end, surely a place of the closed chain
    back = [last[at]]
    while back[-1].start != at:
        back.append(last[back[-1].start])
    return tuple(reversed(back))


def _closed(steps: Sequence[Step]) -> list[Step]:
    """The steps that belong to some closed chain: their start can be reached again from their end."""
    reached = {place: {place} for s in steps for place in (s.start, s.end)}
    for _ in reached:
        for s in steps:
            reached[s.start] |= reached[s.end]
    return [s for s in steps if s.start in reached[s.end]]


def reductions(statements: Sequence[PlacedStatement], loop: For) -> tuple[Assign, ...]:
    """Updates of an element or scalar that stays the same, in an array that nothing else in the loop reads or writes:
    sums that could be reordered.
    """
    found = []
    for p in statements:
        s = p.statement
        if not isinstance(s, Assign) or s.op == "=" or _moves(s.target, loop):
            continue
        others = [q.statement for q in statements if q.statement is not s and isinstance(q.statement, (Assign, Let))]
        touched = [o for q in others for o in operands(q.value)] + list(operands(s.value))
        touched += [q.target for q in others if isinstance(q, Assign)]
        if all(t.array.name != s.target.array.name for t in touched):
            found.append(s)
    return tuple(found)


def _moves(target: Element | ScalarRef, loop: For) -> bool:
    return isinstance(target, Element) and any(loop.var in e.symbols() for e in target.subscripts)


def overwritten_in(statements: Sequence[PlacedStatement], loop: For) -> str:
    """The array of an element that stays the same while the loop runs, and that the loop may write; "" if there is
    none.

    In `A[i, j] = min(A[i, j], A[i, k] + A[k, j])` over j, it is A, because of A[i, k], unless k is known to be outside
    the loop's range. A compiler has to reload such an element in every iteration, and cannot combine several
    iterations.
    """
    written = [p.statement.target for p in statements if isinstance(p.statement, Assign)]
    read = [e for p in statements if isinstance(p.statement, (Assign, Let)) for e in operands(p.statement.value)]
    for target in written:
        for e in read:
            if isinstance(target, Element) and isinstance(e, Element) and e.array.name == target.array.name:
                pairs = [(t, r) for t, r in zip(target.subscripts, e.subscripts, strict=True) if str(t) != str(r)]
                if len(pairs) == 1 and _may_meet(*pairs[0], loop):
                    return e.array.name
    return ""


def _may_meet(moving: IntExpr, fixed: IntExpr, loop: For) -> bool:
    """Whether a subscript that moves with the loop's variable may equal one that does not depend on it."""
    if loop.var not in moving.symbols() or loop.var in fixed.symbols():
        return False
    form = affine(moving)
    if loop.var in form.hidden():
        return True
    # The distance between the two grows or falls steadily. They do not meet if it has passed 0 at the start of the
    # loop, if it has not gone beyond 0 at the stop, which is not reached, or if its steps miss 0.
    coefficient = form.coefficients()[loop.var]
    sign = 1 if coefficient > 0 else -1
    stride = coefficient * (loop.step.value if isinstance(loop.step, Const) else 1)
    apart = sub(moving, fixed)
    first, end = (affine(apart.substitute({loop.var: bound})) for bound in (loop.start, loop.stop))
    has_passed = not first.terms and sign * first.constant > 0
    stays_before = not end.terms and sign * end.constant <= 0
    steps_over = not first.terms and first.constant % stride != 0
    return not (has_passed or stays_before or steps_over)


def steps_of(
    statements: Sequence[PlacedStatement], loop: For, latency: Latency, fuses: Fuses = no_fusing
) -> tuple[Step, ...]:
    """For every place that the loop writes, the values of earlier iterations from which it is computed."""
    walk = _Walk(statements, loop, latency, fuses)
    for p in statements:
        walk.statement(p.statement)
    return tuple(
        Step(start, end, distance, path[0], path[1])
        for end, value in walk.now.items()
        for (start, distance), path in value.items()
    )


Value = Mapping[Start, tuple[float, tuple[str, ...]]]
"""The origins of a value: the longest path from each start, in cycles, with its operations."""


class _Walk:
    """One iteration, statement by statement. now: the current value of each written place."""

    def __init__(self, statements: Sequence[PlacedStatement], loop: For, latency: Latency, fuses: Fuses) -> None:
        self.loop, self.latency, self.fuses = loop, latency, fuses
        self.step = loop.step.value if isinstance(loop.step, Const) else 1
        targets = [p.statement.target for p in statements if isinstance(p.statement, Assign)]
        self.written = list(dict.fromkeys(map(self.place, targets)))
        self.now: dict[Place, Value] = {}
        self.lets: dict[str, Value] = {}

    def statement(self, node: object) -> None:
        if isinstance(node, Let):
            self.lets[node.name] = self.value(node.value)
        if not isinstance(node, Assign):
            return
        if node.op == "=":
            value = self.value(node.value)
        else:
            value = self.operation(node.op[:-1], (node.target, node.value), node.target.array.type)
        self.now[self.place(node.target)] = value

    def place(self, e: Element | ScalarRef) -> Place:
        """What the place is up to a shift along the loop, and the shift: the constants of its moving subscripts.

        A[2*i] and A[2*i + 1] differ in the shift alone.
        """
        if isinstance(e, ScalarRef):
            return (e.array.name,), ()
        rest: list[object] = [e.array.name]
        shifts = []
        for subscript in e.subscripts:
            form = affine(subscript)
            step = form.coefficients().get(self.loop.var, 0)
            if step:
                shifts.append(form.constant)
                rest.append((step, frozenset(form.terms)))
            else:
                rest.append(str(form.expression()))
        return tuple(rest), tuple(shifts)

    def leaf(self, e: Element | ScalarRef) -> Value:
        """The origins of a value read: the value of this iteration if it has been written, otherwise that of an earlier
        one, if any wrote it.
        """
        name, shifts = self.place(e)
        earlier: dict[int, Place] = {}
        for written in self.written:
            if written[0] != name:
                continue
            distance = self.distance(name, written[1], shifts)
            if distance == 0 and written in self.now:
                return self.now[written]
            if distance == 0 and not shifts:
                distance = 1  # a place that stays the same, and that this iteration has not written yet
            if distance is not None and distance > 0:
                earlier[distance] = written
        # Several statements may write the element, in different iterations: the last of these counts.
        return {(earlier[least], least): (0.0, ()) for least in sorted(earlier)[:1]}

    def distance(self, name: tuple[object, ...], written: tuple[int, ...], read: tuple[int, ...]) -> int | None:
        """The number of iterations since the element was written, negative if it is written later; None if never."""
        steps = [part[0] * self.step for part in name[1:] if isinstance(part, tuple)]
        apart = {(w - r) / s for w, r, s in zip(written, read, steps, strict=True)}
        if not apart:
            return 0
        found = apart.pop()
        return int(found) if not apart and found == int(found) else None

    def value(self, e: Expr) -> Value:
        match e:
            case Element() | ScalarRef():
                return self.leaf(e)
            case LetRef():
                return self.lets.get(e.name, {})
            case Unary():
                return self.value(e.operand)
            case Binary(op="**"):
                return self.after(self.value(e.left), "mul", type_of(e))
            case Binary():
                return self.operation(e.op, (e.left, e.right), type_of(e))
            case Call():
                row = FUNCTIONS[e.function]
                cls = e.function if row.cls == "special" else row.cls
                inner = _joined(*(self.value(a) for a in e.args))
                return self.after(inner, cls, type_of(e)) if cls else inner
            case Select():
                parts = (e.condition.left, e.condition.right, e.if_true, e.if_false)
                return self.after(_joined(*(self.value(p) for p in parts)), "min", type_of(e))
            case _:
                return {}

    def operation(self, op: str, operands_: tuple[Expr, Expr], type_: ElementType | None) -> Value:
        """The result of one operation. A sum may be fused with one product in it (rule 5), the left one of two."""
        if CLASSES[op] == "add" and type_ is not None and self.fuses(type_.component.name):
            for k, product in enumerate(map(_without_sign, operands_)):
                if isinstance(product, Binary) and product.op in ("*", "**") and type_of(product) == type_:
                    waits_for = (product.left, product.right, operands_[1 - k])
                    return self.after(_joined(*map(self.value, waits_for)), "fma", type_)
        return self.after(_joined(*map(self.value, operands_)), CLASSES[op], type_)

    def after(self, value: Value, cls: str, type_: ElementType | None) -> Value:
        if not value:
            return value
        cycles = self.latency(cls, "f64" if type_ is None else type_.component.name)
        return {start: (sofar + cycles, (*on_the_way, cls)) for start, (sofar, on_the_way) in value.items()}


def _without_sign(e: Expr) -> Expr:
    return _without_sign(e.operand) if isinstance(e, Unary) else e


def _joined(*values: Value) -> Value:
    found: dict[Start, tuple[float, tuple[str, ...]]] = {}
    for value in values:
        for start, path in value.items():
            found[start] = max(found.get(start, (-1.0, ())), path)
    return found
