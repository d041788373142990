"""`for` headers: the counter, its bounds and its step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import common, is_unsigned, steady
from roofdsl.frontends.c.context import Context
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Variable, assigned_names, walk
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_WHILE = "write `for (i = lo; i < hi; i += step)` with bounds of loop variables and sizes"


class Header(Record):
    """`variable` runs from the largest of `starts` by `step` while it is below each of `stops` (above, if `step` is
    negative).

    `declares`: the header declares the counter. `before` and `after`: other parts of the header, to be executed before
    the loop and at the end of each iteration.
    """

    variable: Variable
    starts: tuple[Poly, ...]
    stops: tuple[Poly, ...]
    step: Poly
    declares: bool
    before: tuple[Any, ...]
    after: tuple[Any, ...]


def counter_of(node: Any) -> str:
    """The name of the counter in the header of a `for`. Raises Refused if there is none."""
    if node.cond is None or node.next is None or node.init is None:
        raise Refused("c-loop", "this loop has no bounds, or no step", node, _WHILE)
    steps = node.next.exprs if isinstance(node.next, c_ast.ExprList) else [node.next]
    tested = {part.name for part in walk(node.cond) if isinstance(part, c_ast.ID)}
    changed = [next(iter(assigned_names(s)), "") for s in steps]
    for name in changed:
        if name in tested:
            return name
    raise Refused("c-loop", "the step of this loop changes nothing that its condition tests", node.next, _WHILE)


class Headers:
    """Reads the headers of loops."""

    def __init__(self, context: Context, values: Values) -> None:
        self.context, self.values = context, values
        self.wraps = False  # the counter is compared as unsigned

    def read(self, node: Any) -> Header:
        """The header of a `for`, whose scope is already open. Raises Refused."""
        self.wraps = False
        name = counter_of(node)
        before, starts, declares = self._start(node, name)
        variable = self.context.scopes.find(name)
        assert variable is not None
        if not variable.type.is_integer or not variable.type.is_plain:
            message = f"the loop counts with `{name}`, which is not an integer"
            raise Refused("c-loop", message, node.init, "count with an `int`")
        if int(variable.type.base[1:]) < 32:
            message = f"the counter `{name}` of type `{variable.type.words}` may overflow"
            raise Refused("c-loop", message, node.init, "count with an `int`")
        steps = node.next.exprs if isinstance(node.next, c_ast.ExprList) else [node.next]
        own = next(s for s in steps if name in assigned_names(s))
        step = self._step(own, name)
        down = (step.value or 0) < 0
        steady(variable.type, node.init, name)
        stops = self._stops(node.cond, name, down, variable)
        if self.wraps and down and step.value != -1:
            self._lands(starts, stops, step.value or 0, name, node.cond)
        if self.wraps and not all(map(self.context.facts.not_negative, starts)):
            message = f"`{name}` is compared as unsigned, and nothing shows that it does not begin below 0"
            raise Refused("c-integer", message, node.cond, "use signed integers")
        after = tuple(s for s in steps if s is not own)
        for part in steps[steps.index(own) + 1 :]:
            self._apart(part, name, "its step")
        self._steady(node, own, name, after)
        return Header(variable, starts, stops, step, declares, before, after)

    def _start(self, node: Any, name: str) -> tuple[tuple[Any, ...], tuple[Poly, ...], bool]:
        init = node.init
        if isinstance(init, c_ast.DeclList):
            own = next((d for d in init.decls if d.name == name), None)
            if own is None or own.init is None:
                raise Refused("c-loop", f"the loop does not set `{name}`", init, _WHILE)
            type_ = self.context.type_of(own.type)
            self._in_order(init.decls, own, own.init, name)
            starts = tuple(self.bounds(own.init, "max"))
            self.context.scopes.declare(self.context.variable(name, type_, own, "local"))
            return tuple(d for d in init.decls if d is not own), starts, True
        parts = init.exprs if isinstance(init, c_ast.ExprList) else [init]
        for part in parts:
            is_set = isinstance(part, c_ast.Assignment) and part.op == "=" and isinstance(part.lvalue, c_ast.ID)
            if is_set and part.lvalue.name == name:
                if self.context.scopes.find(name) is None:
                    raise Refused("c-name", f"`{name}` is not declared", part)
                self._in_order(parts, part, part.rvalue, name)
                return tuple(p for p in parts if p is not part), tuple(self.bounds(part.rvalue, "max")), False
        raise Refused("c-loop", f"the loop does not set `{name}`", init, _WHILE)

    def _in_order(self, parts: Sequence[Any], own: Any, value: Any, name: str) -> None:
        """Refuses parts of a header that use each other, since all are read as if they were simultaneous."""
        place = next(k for k, part in enumerate(parts) if part is own)
        used = {p.name for p in walk(value) if isinstance(p, c_ast.ID)}
        for part in parts[:place]:
            if (assigned_names(part) | {getattr(part, "name", "")}) & used:
                message = f"`{name}` begins with a value that the same header sets first"
                raise Refused("c-loop", message, part, "set it before the loop")
        for part in parts[place + 1 :]:
            self._apart(part, name, "it is set")

    def _apart(self, part: Any, name: str, what: str) -> None:
        if name in {p.name for p in walk(part) if isinstance(p, c_ast.ID)}:
            message = f"this uses the counter `{name}` after {what}, inside the header"
            raise Refused("c-loop", message, part, "write it as a statement before the loop, or in its body")

    def _lands(self, starts: tuple[Poly, ...], stops: tuple[Poly, ...], step: int, name: str, node: Any) -> None:
        """Refuses an unsigned counter that may step over 0."""
        for stop in stops:
            exact = all(c % step == 0 for start in starts for c in (start - stop).terms.values())
            if not exact and not self.context.facts.not_negative(stop + 1 + step):
                message = f"`{name}` is compared as unsigned, and may step over 0, where it wraps around"
                raise Refused("c-integer", message, node, "count with an `int`")

    def bounds(self, node: Any, kind: str) -> list[Poly]:
        """The bounds that one expression stands for: `a < b ? a : b` is two stops, `a > b ? a : b` two starts."""
        if isinstance(node, c_ast.TernaryOp) and isinstance(node.cond, c_ast.BinaryOp):
            op = node.cond.op
            sides = [self.values.integer(n, "a loop bound") for n in (node.cond.left, node.cond.right)]
            arms = [self.values.integer(n, "a loop bound") for n in (node.iftrue, node.iffalse)]
            least = (op in ("<", "<=") and arms == sides) or (op in (">", ">=") and arms == sides[::-1])
            most = (op in (">", ">=") and arms == sides) or (op in ("<", "<=") and arms == sides[::-1])
            if (least and kind == "min") or (most and kind == "max"):
                return [*self.bounds(node.iftrue, kind), *self.bounds(node.iffalse, kind)]
        return [self.values.integer(node, "a loop bound")]

    def _step(self, node: Any, name: str) -> Poly:
        help = "step by a positive number or a size: `i++`, `i += 4`, `i -= 2`"
        match node:
            case c_ast.UnaryOp(op="++" | "p++"):
                return Poly.number(1)
            case c_ast.UnaryOp(op="--" | "p--"):
                return Poly.number(-1)
            case c_ast.Assignment(op="+=" | "-=" as op):
                by = self.values.integer(node.rvalue, "a step")
                step = by if op == "+=" else -by
            case c_ast.Assignment(op="="):
                symbol = self.context.symbol()
                variable = self.context.scopes.find(name)
                assert variable is not None
                before = self.context.env.get(variable)
                self.context.env[variable] = symbol
                step = self.values.integer(node.rvalue, "a step") - symbol
                if before is None:
                    del self.context.env[variable]
                else:
                    self.context.env[variable] = before
            case _:
                raise Refused("c-loop", "the step of this loop is not affine", node, help)
        ranges = {r.var for r in self.context.facts.ranges}
        is_size = len(step.terms) == 1 and step == Poly.name(next(iter(step.names), "")) and not step.names & ranges
        if not step.value and not is_size:
            raise Refused("c-loop", "a step must be a number other than 0, or a size", node, help)
        return step

    def _stops(self, node: Any, name: str, down: bool, variable: Variable) -> tuple[Poly, ...]:
        """The values below which the counter stays (above which, if it counts down)."""
        if isinstance(node, c_ast.BinaryOp) and node.op == "&&":
            left = self._stops(node.left, name, down, variable)
            return (*left, *self._stops(node.right, name, down, variable))
        if not isinstance(node, c_ast.BinaryOp) or node.op not in ("<", ">", "<=", ">="):
            message = "the condition of the loop is not a comparison with `<`, `<=`, `>` or `>=`"
            raise Refused("c-loop", message, node, _WHILE)
        op, tested, bound = node.op, node.left, node.right
        if not self._is_counter(tested, name):
            op, tested, bound = _TURNED[op], node.right, node.left
        if not self._is_counter(tested, name) or name in {p.name for p in walk(bound) if isinstance(p, c_ast.ID)}:
            raise Refused("c-loop", f"the condition does not compare `{name}` with a bound", node, _WHILE)
        if (op in (">", ">=")) != down:
            message = f"the loop counts {'down' if down else 'up'}, but its condition compares with `{op}`"
            raise Refused("c-loop", message, node, "turn the comparison or the step around")
        found = self.bounds(bound, "max" if down else "min")
        unsigned = is_unsigned(common(variable.type.base, self.values.value(_first(bound)).type))
        self.wraps = self.wraps or unsigned
        for stop in found:
            facts = self.context.facts
            least = stop - 1 if down and op == ">=" else stop
            if unsigned and not facts.not_negative(least):
                message = f"`{name}` is compared as unsigned, which wraps around at 0"
                raise Refused("c-integer", message, node, "count with an `int`")
        if op in ("<=", ">="):
            found = [stop + (1 if op == "<=" else -1) for stop in found]
        return tuple(found)

    def _is_counter(self, node: Any, name: str) -> bool:
        """Whether an expression is the counter, in a type that holds it."""
        while isinstance(node, c_ast.Cast):
            to = self.context.type_of(node.to_type.type)
            if not to.is_plain or to.base not in ("i32", "i64"):
                return False
            node = node.expr
        return isinstance(node, c_ast.ID) and node.name == name

    def _steady(self, node: Any, step: Any, name: str, after: tuple[Any, ...]) -> None:
        """Checks that nothing in the body changes the counter, or the variables in the bounds and the step."""
        parts = {p.name for n in (node.cond, step) for p in walk(n) if isinstance(p, c_ast.ID)}
        for body in (node.stmt, *after):
            for part in walk(body):
                changed = assigned_names(part) & parts if not list(part.children()) or _changes(part) else set()
                if changed:
                    other = f"`{min(changed)}`, on which its bounds or its step depend"
                    message = f"the body of the loop changes {'the counter' if name in changed else other}"
                    raise Refused("c-loop", message, part, "leave counters and bounds as they are in the body")


def _changes(part: Any) -> bool:
    return isinstance(part, c_ast.Assignment | c_ast.UnaryOp)


def _first(bound: Any) -> Any:
    """One of the bounds that `a < b ? a : b` stands for."""
    while isinstance(bound, c_ast.TernaryOp):
        bound = bound.iftrue
    return bound
