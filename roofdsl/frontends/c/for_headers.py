"""`for` headers: the counter, its bounds and its step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import common, is_unsigned, steady
from roofdsl.frontends.c.context import Context
from roofdsl.frontends.c.header_text import require_alone, require_apart, require_order, require_steady
from roofdsl.frontends.c.static_types import static_type
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Pointer, Variable, assigned_names, parameters, walk
from roofdsl.frontends.integer_facts import Range
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_DATA = "run it for a number of iterations that is a parameter"
_WHILE = "write `for (i = lo; i < hi; i += step)` with bounds of loop variables and sizes"


class Header(Record):
    """`variable` runs from the largest of `starts` by `step` while it is below each of `stops` (above, if `step` is
    negative).

    `declares`: the header declares the counter. `before` and `after`: other parts of the header, to be executed before
    the loop and at the end of each iteration. `base`: where the counter points at first, if it is a pointer; it is then
    the last subscript that is counted.
    """

    variable: Variable
    starts: tuple[Poly, ...]
    stops: tuple[Poly, ...]
    step: Poly
    declares: bool
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    base: Pointer | None

    @property
    def name(self) -> str:
        """The name of the counter in the kernel; `i` for an array that is its own counter, as in `*a++`."""
        is_array = self.base is not None and self.base.array is self.variable
        return "i" if is_array else self.variable.name

    def state(self, counter: Poly) -> Poly | Pointer:
        """The value of the variable."""
        return counter if self.base is None else self.base.at(counter)


def counter_of(node: Any) -> str:
    """The name of the counter in the header of a `for`. Raises Refused if there is none."""
    if node.cond is None or node.next is None:
        raise Refused("c-loop", "this loop has no bounds, or no step in its header", node, _WHILE)
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
        self.starts: tuple[Poly, ...] = ()
        self.step = Poly.number(1)
        self.wraps = False  # the counter is compared as unsigned
        self.is_pointer = False
        self.base: Pointer | None = None  # where a pointer that counts points at first

    def read(self, node: Any) -> Header:
        """The header of a `for`, whose scope is already open. Raises Refused."""
        self.wraps = False
        name = counter_of(node)
        before, starts, declares = self._start(node, name)
        variable = self.context.scopes.find(name)
        if variable is None:
            raise Refused("c-name", f"`{name}` is not declared", node.cond)
        if self.base is None and int(variable.type.base[1:]) < 32:
            message = f"the counter `{name}` of type `{variable.type.words}` may overflow"
            raise Refused("c-loop", message, node.init or node.cond, "count with an `int`")
        steps = node.next.exprs if isinstance(node.next, c_ast.ExprList) else [node.next]
        own = next(s for s in steps if name in assigned_names(s))
        step = self._step(own, name)
        down = (step.value or 0) < 0
        steady(variable.type, node.init or node.cond, name)
        require_alone(node, name)
        self.starts, self.step = starts, step
        stops = self._stops(node.cond, name, down, variable)
        if self.wraps:
            self._stays_positive(starts, stops, step, name, node.cond)
        self.values.pointers.indices.bounds(starts, stops)
        after = tuple(s for s in steps if s is not own)
        for part in steps[steps.index(own) + 1 :]:
            require_apart(part, name, "its step")
        require_steady(node, own, name, after)
        self._affine(starts, node.init or node.cond)
        self._affine(stops, node.cond)
        return Header(variable, starts, stops, step, declares, before, after, self.base)

    def _start(self, node: Any, name: str) -> tuple[tuple[Any, ...], tuple[Poly, ...], bool]:
        init = node.init
        own = next((d for d in getattr(init, "decls", ()) if d.name == name), None)
        self._require_integer(own, name, init or node.cond)
        if init is None:
            return (), self._first_values(c_ast.ID(name, node.cond.coord)), False
        if isinstance(init, c_ast.DeclList):
            if own is None or own.init is None:
                raise Refused("c-loop", f"the loop does not set `{name}`", init, _WHILE)
            type_ = self.context.type_of(own.type)
            require_order(init.decls, own, own.init, name)
            starts = self._first_values(own.init)
            self.context.scopes.declare(self.context.variable(name, type_, own, "local"))
            return tuple(d for d in init.decls if d is not own), starts, True
        parts = init.exprs if isinstance(init, c_ast.ExprList) else [init]
        for part in parts:
            is_set = isinstance(part, c_ast.Assignment) and part.op == "=" and isinstance(part.lvalue, c_ast.ID)
            if is_set and part.lvalue.name == name:
                if self.context.scopes.find(name) is None:
                    raise Refused("c-name", f"`{name}` is not declared", part)
                require_order(parts, part, part.rvalue, name)
                return tuple(p for p in parts if p is not part), self._first_values(part.rvalue), False
        raise Refused("c-loop", f"the loop does not set `{name}`", init, _WHILE)

    def _affine(self, bounds: Sequence[Poly], node: Any) -> None:
        if any(len(m) > 1 for bound in bounds for m in bound.terms):
            message = "a bound of this loop multiplies sizes or loop variables"
            help = "write a loop for each factor, or make the product an argument of the function"
            raise Refused("c-loop", message, node, help)

    def _require_integer(self, own: Any, name: str, node: Any) -> None:
        """own: the declaration of the counter in the header; None if it is declared before the loop."""
        variable = self.context.scopes.find(name)
        type_ = None if variable is None else variable.type
        if own is not None:
            type_ = self.context.type_of(own.type)
        self.base, self.is_pointer = None, type_ is not None and type_.pointers == 1 and not type_.dims
        if not self.is_pointer and type_ is not None and not (type_.is_integer and type_.is_plain):
            message = f"the loop counts with `{name}`, which is not an integer"
            raise Refused("c-loop", message, node, "count with an `int`")

    def _first_values(self, node: Any) -> tuple[Poly, ...]:
        """The starts of a loop; of a pointer, its subscript."""
        if not self.is_pointer:
            return tuple(self.bounds(node, "max"))
        found = self.values.pointers.pointer(node)
        if found.inner is not None or not found.subscripts:
            message = "this pointer goes through members of a structure"
            raise Refused("c-pointer", message, node, "count with an `int`")
        self.base = found
        return (found.subscripts[-1],)

    def _ends(self, bound: Any, variable: Variable, down: bool) -> list[Poly]:
        """The bounds that the counter is compared with; of a pointer, their subscripts."""
        if self.base is None:
            return self.bounds(bound, "max" if down else "min")
        end = self.values.pointers.pointer(bound)
        if end.inner is not None or not end.subscripts or end.at(self.base.subscripts[-1]) != self.base:
            message = f"this does not point into `{self.base.array.name}`, as `{variable.name}` does at first"
            raise Refused("c-pointer", message, bound, "compare it with an end in the same array, such as `a + n`")
        return [end.subscripts[-1]]

    def _stays_positive(
        self, starts: tuple[Poly, ...], stops: tuple[Poly, ...], step: Poly, name: str, node: Any
    ) -> None:
        """Refuses a counter that is compared as unsigned and may be negative, which is a large number to C."""
        # By steps of -1 it reaches every value down to its stop, which is not negative itself.
        if (step.value or 0) < -1:
            self._lands(starts, stops, step.value or 0, name, node)
        if not all(map(self.context.facts.not_negative, starts)):
            message = f"`{name}` is compared as unsigned, and nothing shows that it does not begin below 0"
            raise Refused("c-integer", message, node, "use signed integers")

    def _lands(self, starts: tuple[Poly, ...], stops: tuple[Poly, ...], step: int, name: str, node: Any) -> None:
        """Refuses an unsigned counter that may step over 0."""
        for stop in stops:
            exact = all(c % step == 0 for start in starts for c in (start - stop).terms.values())
            if not exact and not self.context.facts.not_negative(stop + 1 + step):
                message = f"`{name}` is compared as unsigned, and may step over 0, where it wraps around"
                raise Refused("c-integer", message, node, "count with an `int`")

    def bounds(self, node: Any, kind: str) -> list[Poly]:
        """The bounds that one expression stands for: `a < b ? a : b` is two stops, `a > b ? a : b` two starts."""
        node = self._written_out(node)
        if isinstance(node, c_ast.FuncCall) and node.name.name == f"f{kind}":
            return [bound for part in node.args.exprs for bound in self.bounds(part, kind)]
        if isinstance(node, c_ast.TernaryOp) and isinstance(node.cond, c_ast.BinaryOp):
            op = node.cond.op
            sides = [self.values.integer(n, "a loop bound") for n in (node.cond.left, node.cond.right)]
            arms = [self.values.integer(n, "a loop bound") for n in (node.iftrue, node.iffalse)]
            least = (op in ("<", "<=") and arms == sides) or (op in (">", ">=") and arms == sides[::-1])
            most = (op in (">", ">=") and arms == sides) or (op in ("<", "<=") and arms == sides[::-1])
            if (least and kind == "min") or (most and kind == "max"):
                self.values.conditions.read(node.cond)  # refuses `k < n` with unsigned n, where k may be negative
                return [*self.bounds(node.iftrue, kind), *self.bounds(node.iffalse, kind)]
        return [self.values.integer(node, "a loop bound")]

    def _written_out(self, node: Any) -> Any:
        """The choice that a call of a function such as `imin` stands for; any other expression as it is."""
        called = node.name.name if isinstance(node, c_ast.FuncCall) and isinstance(node.name, c_ast.ID) else ""
        function = self.context.program.functions.get(called)
        if function is None or not self._keeps_values(function, node):
            return node
        return _choice(function, node) or node

    def _keeps_values(self, function: Any, call: Any) -> bool:
        """Whether arguments reach a function, and its result comes back, without losing digits or signs: `int` to
        `unsigned` does that only for what is not negative.
        """
        result = self.context.type_of(function.decl.type.type)
        types = [result, *(self.context.type_of(p.type) for p in parameters(function))]
        if any(not t.is_plain or t.base not in ("i32", "i64", "u32", "u64", "f64") for t in types):
            return False
        if not any(is_unsigned(t.base) for t in types):
            return True
        given = call.args.exprs if call.args is not None else []
        return all(self.context.facts.not_negative(self.values.integer(a, "a loop bound")) for a in given)

    def _first(self, bound: Any) -> Any:
        """One of the bounds that `a < b ? a : b` or `fmin(a, b)` stands for."""
        while True:
            bound = self._written_out(bound)
            if isinstance(bound, c_ast.TernaryOp):
                bound = bound.iftrue
            elif isinstance(bound, c_ast.FuncCall) and bound.name.name in ("fmin", "fmax"):
                bound = bound.args.exprs[0]
            else:
                return bound

    def _type(self, bound: Any) -> str:
        return static_type(bound, self.context) or self.values.value(bound).type

    def _step(self, node: Any, name: str) -> Poly:
        help = "step by a number or a size, up or down: `i++`, `i += 4`, `i -= 2`"
        match node:
            case c_ast.UnaryOp(op="++" | "p++"):
                return Poly.number(1)
            case c_ast.UnaryOp(op="--" | "p--"):
                return Poly.number(-1)
            case c_ast.Assignment(op="+=" | "-=" | "=" as op):
                # `i += i` and `i = 2 * i` double the counter: its value before the loop is not the step.
                by, counter = self._of_counter(node.rvalue, name)
                step = {"+=": by, "-=": -by, "=": by - counter}[op]
                if step.names & counter.names:
                    raise Refused("c-loop", "the step of this loop changes with its counter", node, help)
            case c_ast.Assignment(op="*=" | "/=" | "<<=" | ">>="):
                help = f"move the body into a function with `{name}` as an argument, and analyze one iteration"
                raise Refused("c-loop", "this loop multiplies or divides its counter", node, help)
            case _:
                raise Refused("c-loop", "the step of this loop is not affine", node, help)
        ranges = {r.var for r in self.context.facts.ranges}
        is_size = len(step.terms) == 1 and step == Poly.name(next(iter(step.names), "")) and not step.names & ranges
        if not step.value and not is_size:
            raise Refused("c-loop", "a step must be a number other than 0, or a size", node, help)
        return step

    def _of_counter(self, node: Any, name: str) -> tuple[Poly, Poly]:
        """The value of an expression in terms of the counter of this iteration, and the symbol that stands for it."""
        variable = self.context.scopes.find(name)
        assert variable is not None
        with self._as_symbol(variable) as symbol:
            return self.values.integer(node, "a step"), symbol

    @contextmanager
    def _as_symbol(self, variable: Variable) -> Iterator[Poly]:
        """A symbol, which stands for the counter's value in this iteration inside the context."""
        symbol, env = self.context.symbol(), self.context.env
        before = env.get(variable)
        env[variable] = symbol
        try:
            yield symbol
        finally:
            if before is None:
                del env[variable]
            else:
                env[variable] = before

    def _stops(self, node: Any, name: str, down: bool, variable: Variable) -> tuple[Poly, ...]:
        """The values below which the counter stays (above which, if it counts down)."""
        if isinstance(node, c_ast.BinaryOp) and node.op == "&&":
            left = self._stops(node.left, name, down, variable)
            return (*left, *self._stops(node.right, name, down, variable))
        if isinstance(node, c_ast.ID) and node.name == name:
            return (self._until(node, Poly.number(0), name),)
        if isinstance(node, c_ast.BinaryOp) and node.op == "!=":
            sides = [s for s in (node.left, node.right) if not self._is_counter(s, name)]
            if len(sides) == 1 and name not in {p.name for p in walk(sides[0]) if isinstance(p, c_ast.ID)}:
                if self.base is None:
                    return (self._until(node, self.values.integer(sides[0], "a loop bound"), name),)
                return (self._until(node, self._ends(sides[0], variable, down)[0], name),)
        if not isinstance(node, c_ast.BinaryOp) or node.op not in ("<", ">", "<=", ">="):
            message = "the condition of the loop is not a comparison with `<`, `<=`, `>` or `>=`"
            raise Refused("c-loop", message, node, _WHILE)
        op, tested, bound = node.op, node.left, node.right
        if not self._is_counter(tested, name):
            op, tested, bound = _TURNED[op], node.right, node.left
        if self.is_pointer and not self._is_counter(tested, name):
            raise Refused(
                "c-loop", f"the condition does not compare `{name}` with a pointer", node, "write `p < a + n`"
            )
        if not self._is_counter(tested, name) or name in {p.name for p in walk(bound) if isinstance(p, c_ast.ID)}:
            return self._solved(node, name, down, variable)
        _same_direction(op, down, node)
        found = self._ends(bound, variable, down)
        unsigned = not self.is_pointer and is_unsigned(common(variable.type.base, self._type(self._first(bound))))
        self.wraps = self.wraps or unsigned
        for stop in found:
            facts = self.context.facts
            # `i >= 0` ends only below 0, where an unsigned counter never is; `i >= 1` ends at 0.
            least = stop - 1 if down and op == ">=" else stop
            if unsigned and not facts.not_negative(least):
                message = f"`{name}` is compared as unsigned, which wraps around at 0"
                raise Refused("c-integer", message, node, "count with an `int`")
        if op in ("<=", ">="):
            found = [stop + (1 if op == "<=" else -1) for stop in found]
        return tuple(found)

    def _until(self, node: Any, stop: Poly, name: str) -> Poly:
        """The stop of `i != n` and of `i`, which means `i != 0`. Raises Refused if the counter may miss it."""
        sign = self.step.value
        ahead = sign in (1, -1) and all(self.context.facts.not_negative((stop - s) * sign) for s in self.starts)
        if not ahead:
            side = "below" if sign == 1 else "above"
            message = f"nothing shows that `{name}` begins {side} {stop} and reaches it, where this loop ends"
            raise Refused("c-loop", message, node, "compare with `<` or `>`")
        return stop

    def _solved(self, node: Any, name: str, down: bool, variable: Variable) -> tuple[Poly, ...]:
        """`_stops` of a condition such as `i + 1 < n`."""
        with self._as_symbol(variable) as symbol:
            least = Range(next(iter(symbol.names)), () if down else self.starts, ())
            try:
                with self.context.within(self.context.facts.inside(least)):
                    sides = (node.left, node.right)
                    left, right = (self.values.integer(side, "the condition of a loop") for side in sides)
            except Refused as refused:
                if refused.code in ("c-integer", "c-name"):
                    raise
                raise Refused("c-loop", "how often this loop runs depends on data", node, _DATA) from None
        parts = (left - right).split(next(iter(symbol.names)))
        sign = None if parts is None else parts[0].value
        if parts is None or sign is None or abs(sign) != 1:
            raise Refused("c-loop", f"the condition does not compare `{name}` with a bound", node, _WHILE)
        self.wraps = self.wraps or is_unsigned(variable.type.base)
        op = node.op if sign == 1 else _TURNED[node.op]
        _same_direction(op, down, node)
        stop = parts[1] * -sign
        return (stop + {"<=": 1, ">=": -1}.get(op, 0),)

    def _is_counter(self, node: Any, name: str) -> bool:
        """Whether an expression is the counter, in a type that holds it."""
        while isinstance(node, c_ast.Cast):
            to = self.context.type_of(node.to_type.type)
            if not to.is_plain or to.base not in ("i32", "i64"):
                return False
            node = node.expr
        return isinstance(node, c_ast.ID) and node.name == name


def _choice(function: Any, call: Any) -> Any:
    """What `static int imin(int a, int b) { return a < b ? a : b; }` returns for the arguments of a call; None for any
    other function.
    """
    items, declared = list(function.body.block_items or ()), parameters(function)
    given = call.args.exprs if call.args is not None else []
    if len(items) != 1 or not isinstance(items[0], c_ast.Return) or len(given) != len(declared):
        return None
    chosen = items[0].expr
    if not isinstance(chosen, c_ast.TernaryOp) or not isinstance(chosen.cond, c_ast.BinaryOp):
        return None
    values = {p.name: value for p, value in zip(declared, given, strict=True)}
    parts = (chosen.cond.left, chosen.cond.right, chosen.iftrue, chosen.iffalse)
    if not all(isinstance(p, c_ast.ID) and p.name in values for p in parts):
        return None
    left, right, yes, no = (values[p.name] for p in parts)
    return c_ast.TernaryOp(c_ast.BinaryOp(chosen.cond.op, left, right, call.coord), yes, no, call.coord)


def _same_direction(op: str, down: bool, node: Any) -> None:
    if (op in (">", ">=")) != down:
        message = f"the loop counts {'down' if down else 'up'}, but its condition compares with `{op}`"
        raise Refused("c-loop", message, node, "turn the comparison or the step around")
