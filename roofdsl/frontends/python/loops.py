"""Loops over `range` and over arrays; integers are followed from iteration to iteration."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from roofdsl.frontends.integer_facts import Range
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.python.bindings import Bindings
from roofdsl.frontends.python.context import Again, Carried, Context, assigned_names
from roofdsl.frontends.python.expressions import Expressions
from roofdsl.frontends.python.indexing import Part
from roofdsl.frontends.python.values import ZERO, Extremum, Items, Named, Unknown, Value, Whole
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.whole_steps import needed, stepped
from roofdsl.lang import tree
from roofdsl.lang.record import Record

_RANGES = ("range", "numba.prange")


class Header(Record):
    """`for target in range(start, stop, step)`: the largest of the starts and the smallest of the stops count; if the
    loop counts down, there is one start, and the largest of the stops counts.
    """

    starts: tuple[Poly, ...]
    stops: tuple[Poly, ...]
    step: Poly
    parallel: bool
    over: Value | None = None  # the array whose elements the loop takes
    counts: bool = True  # whether the loop has a counter: `range` and `enumerate`


class _Followed(Record):
    """A followed loop: what names meant before it, arrays that have had their names since before the loop (`carried`),
    integers at the beginning of an iteration, what each iteration adds to them, and the loop's targets.
    """

    before: dict[str, Any]
    carried: dict[str, Carried]
    starts: dict[str, Any]
    adds: dict[str, Any]
    targets: tuple[str, ...]


class Loops:
    """Translates `for` loops."""

    def __init__(
        self,
        context: Context,
        expressions: Expressions,
        bindings: Bindings,
        block: Callable[[Sequence[ast.stmt]], None],
    ) -> None:
        self.context, self.expressions, self.bindings, self.block = context, expressions, bindings, block

    def loop(self, node: ast.For) -> None:
        """Translates a Python `for` to loops of the kernel. Raises Refused."""
        context = self.context
        if node.orelse:
            context.refuse("py-statement", "`else` of a loop is not supported", node.orelse[0], "leave it out")
        header = self._header(node)
        span = context.span(node)
        up = (header.step.value or 1) > 0
        assigned = assigned_names(node.body)
        targets = _names(node.target)
        row = targets[-1] if header.over is not None and len(header.over.shape) > 1 else None
        if row in assigned and _only_in_place(node.body, row):
            del assigned[row]  # `row += x` changes the array, and `row` remains the name of its part
        for name in targets:
            if name in assigned:
                help = f"write `{name}[:] = ...` to change the array" if name == row else "use another name"
                context.refuse("py-loop", f"the body of the loop changes `{name}`", assigned[name], help)
        self.bindings.settle(assigned, node)
        with context.visible():
            name = self._name(node, header, up)
            counter, lowers, stops = self._upwards(header, name, up, node)
            lowers, stops = needed(context.facts, lowers, stops)
            facts = context.facts.inside(self._values(name, lowers, stops, header.step if up else -header.step))
            before = dict(context.frame.env)
            with context.within(facts):
                changing = [n for n in assigned if isinstance(before.get(n), Whole)]
                starts, adds = self._integers(node, header, changing, counter, name)
                carried = {n: _carried(before[n]) for n in assigned if _is_array(before.get(n))}
                context.frame.env.update(starts | carried | self.bindings.changing(assigned, before))
                with context.visible(), context.collected() as items:
                    self._body(node, header, counter)
        for n, mark in carried.items():
            self._rebound(n, mark, node)
        self._afterwards(header, name, _Followed(before, carried, starts, adds, tuple(targets)))
        if items:
            step = header.step if up else -header.step
            clause = self._clause(name, lowers, stops, step, span)
            parallel = header.parallel and not self._keeps(items)
            self.context.exact &= parallel or not header.parallel  # numba adds up in an order of its own
            if parallel:
                context.emit(tree.For((clause,), True, tuple(items), span))
            else:
                self.expressions.nests.around([clause], items, node)

    # ---- the head ----

    def _header(self, node: ast.For) -> Header:
        context, call = self.context, node.iter
        one = Poly.number(1)
        if isinstance(call, ast.Call):
            function = self.expressions.read(call.func)
            if isinstance(function, Named) and function.name in _RANGES:
                return self._range(call, function.name != "range")
            if function == Named("enumerate") and len(call.args) == 1 and not call.keywords:
                over = self.expressions.value(call.args[0])
                if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2 and not over.is_scalar:
                    return Header((ZERO,), (over.shape[0],), one, False, over)
            if isinstance(function, Named) and function.name in ("enumerate", "zip", "reversed", "numpy.ndenumerate"):
                message = f"a loop over `{function.name}` is not supported"
                instead = "range(n - 1, -1, -1)" if function.name == "reversed" else "range(n)"
                context.refuse("py-loop", message, call, f"write `for i in {instead}:`")
        found = self.expressions.read(call)
        if isinstance(found, Items):
            context.refuse(
                "py-loop", "a loop over a tuple or list is not supported", call, "write `for i in range(n):`"
            )
        if not isinstance(found, Value):
            context.refuse("py-loop", "a loop runs over `range(...)` or an array", call, "write `for i in range(n):`")
        if found.is_scalar:
            over = self.expressions.arithmetic.shaped(found, call)
            context.refuse("py-loop", "a number cannot be looped over", call, "write `for i in range(n):`")
        over = found if found.simple else self.expressions.nests.materialized(found, call, "t", ("over",))
        return Header((ZERO,), (over.shape[0],), one, False, over, False)

    def _range(self, call: ast.Call, parallel: bool) -> Header:
        context = self.context
        if call.keywords or not 1 <= len(call.args) <= 3 or any(isinstance(a, ast.Starred) for a in call.args):
            context.refuse("py-loop", "`range` takes a start, a stop and a step", call)
        nodes = call.args if len(call.args) > 1 else [None, call.args[0]]
        start = nodes[0]
        starts = (ZERO,) if start is None else self._bound(start)
        stop = nodes[1]
        assert stop is not None
        stops = self._bound(stop)
        step = Poly.number(1)
        if len(call.args) == 3:
            step = self.expressions.integer(call.args[2], "a step")
            if step.value == 0:
                context.refuse("py-loop", "a step of 0 never ends", call.args[2])
            size = min(step.names, default="")
            if step.value is None and (step != Poly.name(size) or not context.is_size(step)):
                message = "a step is a number or a size"
                context.refuse("py-loop", message, call.args[2], "make the step an argument of the function")
        up = (step.value or 1) > 0
        for part, polys, op in ((start, starts, "max"), (stop, stops, "min")):
            if part is not None:
                self._check_bound(part, polys, op if up else {"max": "min", "min": "max"}[op])
        return Header(starts, stops, step, parallel)

    def _check_bound(self, node: ast.expr, polys: Sequence[Poly], op: str) -> None:
        """Refuses the bound of a loop that is not affine, or of several values unless all of them bound the loop, as in
        `range(max(a, b), min(c, d))`. op: the function of which that is true here: a loop that counts down to
        `max(c, d)` stops at both.
        """
        found = self.expressions.read(node) if len(polys) > 1 else None
        if isinstance(found, Extremum) and found.op != op:
            which = "larger" if found.op == "max" else "smaller"
            message = f"a bound that is the {which} of two is not supported here"
            self.context.refuse("py-loop", message, node, "split the loop")
        if not all(p.is_affine_in(r.var for r in self.context.facts.ranges) for p in polys):
            message = "a bound of a loop is affine in the loops around it, and this is not"
            self.context.refuse("py-loop", message, node, "one factor is a number or a size")

    def _bound(self, node: ast.expr) -> tuple[Poly, ...]:
        found = self.expressions.read(node)
        if isinstance(found, Extremum):
            return found.polys
        return (self.expressions.arithmetic.integer(found, node, "a bound of a loop"),)

    def _name(self, node: ast.For, header: Header, up: bool) -> str:
        target = node.target
        if header.over is not None:
            first = target.elts[0] if isinstance(target, ast.Tuple) and header.counts else None
            if isinstance(first, ast.Name):
                return self.context.inner_name(first.id, own=True)
            return self.context.index_name()
        if not isinstance(target, ast.Name):
            self.context.refuse("py-loop", "the counter of a loop is a name", target)
        if target.id == "_" or not up:
            return self.context.inner_name("r")
        return self.context.inner_name(target.id, own=True)

    def _upwards(
        self, header: Header, name: str, up: bool, node: ast.For
    ) -> tuple[Poly, tuple[Poly, ...], tuple[Poly, ...]]:
        """The counter in terms of a loop `name` that counts up, and the starts and stops of that loop."""
        if up:
            return Poly.name(name), header.starts, header.stops
        if len(header.starts) != 1:
            self.context.refuse("py-loop", "a loop that counts down starts at one value", node.iter, "turn it around")
        start = header.starts[0]
        return start - Poly.name(name), (ZERO,), tuple(start - stop for stop in header.stops)

    def _values(self, name: str, lowers: tuple[Poly, ...], stops: tuple[Poly, ...], step: Poly) -> Range:
        """The values of a loop that counts up."""
        return stepped(name, lowers, stops, step, self.context.learnt.whole_steps)

    def _clause(
        self, name: str, lowers: tuple[Poly, ...], stops: tuple[Poly, ...], step: Poly, span: tree.Span
    ) -> tree.Clause:
        start, stop = _extremum("max", lowers, span), _extremum("min", stops, span)
        args: tuple[tree.Expr, ...] = (start, stop)
        if step.value != 1:
            args = (start, stop, step.tree(span))
        elif lowers == (ZERO,):
            args = (stop,)
        return tree.Clause(tree.Name(name, span), tree.Name("range", span), args, span)

    # ---- the body ----

    def _body(self, node: ast.For, header: Header, counter: Poly) -> None:
        env, target = self.context.frame.env, node.target
        if header.over is None:
            assert isinstance(target, ast.Name)
            env[target.id] = Whole(counter)
        else:
            if header.counts:
                assert isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name)
                env[target.elts[0].id] = Whole(counter)
                target = target.elts[1]
            rest = [Part(ZERO, e) for e in header.over.shape[1:]]
            found = self.expressions.indexing.taken(header.over, [Part(counter), *rest], node.iter)
            if not isinstance(target, ast.Name):
                self.context.refuse("py-loop", "an element of an array gets one name", target)
            self.bindings.bind(target.id, found, target)
        self.block(node.body)

    def _integers(
        self, node: ast.For, header: Header, names: Sequence[str], counter: Poly, loop: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The values of integers at the beginning of an iteration, and the amounts that each iteration adds."""
        context = self.context
        if not names:
            return {}, {}
        before = dict(context.frame.env)
        symbols = {n: context.symbol() for n in names}
        context.frame.env.update({n: Whole(s) for n, s in symbols.items()})
        state = list(context.written), context.top
        context.dry += 1
        try:
            with context.visible(), context.collected():
                self._body(node, header, counter)
            ends = {n: context.frame.env[n] for n in names}  # branches put a new table there
        except Refused:
            ends = {}
        finally:
            context.dry -= 1
            context.written, context.top = state
            context.frame.env.clear()
            context.frame.env.update(before)
        moving = {next(iter(s.names)) for s in symbols.values()} | {loop}
        starts: dict[str, Any] = {}
        adds: dict[str, Any] = {}
        passed = counter - header.starts[0] if len(header.starts) == 1 else None
        step = header.step.value
        for n in names:
            key = context.frame.key(n)
            end, own = ends.get(n), before[n].poly
            by = end.poly - symbols[n] if isinstance(end, Whole) else None
            if by is None or by.names & moving or passed is None or step is None:
                starts[n] = Unknown(f"`{n}` still has its value from the iteration before", key)
                continue
            count = quotient("//", passed if step > 0 else -passed, abs(step))
            starts[n] = Whole(own + by * count)
            adds[n] = by
        return starts, adds

    def _rebound(self, name: str, mark: Carried, node: ast.For) -> None:
        """Checks a name that the body gives to a new array after reading the old one. Raises Again if the new array can
        be stored in the old one, otherwise Refused.
        """
        context = self.context
        final = context.frame.env.get(name)
        if final is mark or not mark.read or (isinstance(final, Value) and final.view == mark.value.view is not None):
            return
        old = mark.value.view.buffer if mark.value.view is not None else None
        new = final.view.buffer if isinstance(final, Value) and final.view is not None else None
        keys = {b: k for k, b in context.buffers.items()}
        matches = old is not None and new is not None and (old.type, old.dims) == (new.type, new.dims)
        if old is not None and new is not None and matches and old.place == "local" and "bound" in keys.get(new, ()):
            place = keys[new]
            if mark.value.shape == old.dims and place not in context.learnt.homes:
                context.learnt.homes[place] = keys[old]
                raise Again
        message = f"`{name}` is a new array in every iteration, made from the old one"
        help = f"write `{name}[:] = ...`, which changes the array itself"
        if new is not None and "bound" not in keys.get(new, ()):
            message = f"`{name}` means another array in every iteration"
            help = f"copy the elements by `{name}[:] = ...`, or write two steps in one iteration"
        context.refuse("py-loop", message, _where(node.body, name), help)

    # ---- after the loop ----

    def _afterwards(self, header: Header, name: str, loop: _Followed) -> None:
        before, starts, adds, targets = loop.before, loop.starts, loop.adds, loop.targets
        context = self.context
        env = context.frame.env
        # In other steps, the last value depends on a remainder: `range(0, n, 3)` ends with n - 1, n - 2 or n - 3.
        simple = len(header.starts) == len(header.stops) == 1 and header.step.value in (1, -1)
        up = header.step.value != -1
        trips = (header.stops[0] - header.starts[0]) * (1 if up else -1)
        runs = simple and context.facts.not_negative(trips - 1)
        last = {name: (header.stops[0] - 1 if up else trips - 1)}
        for n in list(env):
            found = env[n]
            if isinstance(found, Carried):
                env[n] = (found.outer or found.value) if found is loop.carried.get(n) else found
            elif n in targets:
                env[n] = self._last(found, "it was the counter of a loop", last, trips - 1 if simple else None, None)
            elif n in adds:
                total = Whole(before[n].poly + adds[n] * trips)
                key = context.frame.key(n)
                env[n] = self._last(total, f"`{n}` is changed by a loop", {}, trips if simple else None, key)
            elif n in starts or (isinstance(found, Whole) and found != before.get(n)):
                key = context.frame.key(n)
                env[n] = self._last(found, f"`{n}` is set in a loop", last, trips - 1 if simple else None, key)
            elif _is_array(found) and found != before.get(n) and not runs:
                env[n] = Unknown(f"`{n}` is set in a loop that may not run") if n in before else found

    def _last(self, found: Any, why: str, last: dict[str, Poly], needs: Poly | None, key: Any) -> Any:
        """An integer after a loop, which is known if `needs` is nonnegative."""
        if not isinstance(found, Whole) or needs is None:
            return Unknown(why, key)
        value = Whole(found.poly.put(last))
        return value if self.context.facts.not_negative(needs) else Unknown(why, key, value, needs)

    def _keeps(self, items: Sequence[tree.Item]) -> bool:
        """Whether iterations have scalars or arrays of their own; in the kernel, all iterations would share them."""
        local = {b.name for b in self.context.buffers.values() if b.place == "local"}
        pending = list(items)
        while pending:
            item = pending.pop()
            match item:
                case tree.Assign(tree.Ref(), _, _):
                    return True
                case tree.Assign(tree.Index(tree.Name(text)), _, _) if text in local:
                    return True
                case tree.For(body=inner):
                    pending += inner
                case tree.If(branches, orelse):
                    pending += [i for b in branches for i in b.body] + list(orelse)
        return False


def _is_array(found: Any) -> bool:
    return isinstance(found, Carried) or (isinstance(found, Value) and not found.is_scalar)


def _carried(found: Value | Carried) -> Carried:
    return Carried(found.value, found) if isinstance(found, Carried) else Carried(found)


def _names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _only_in_place(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether all assignments to a name are of the form `name += value`."""
    parts = [part for item in body for part in ast.walk(item)]
    stored = [p for p in parts if isinstance(p, ast.Name) and p.id == name and isinstance(p.ctx, ast.Store)]
    changed = [p.target for p in parts if isinstance(p, ast.AugAssign)]
    return all(p in changed for p in stored)


def _where(body: Sequence[ast.stmt], name: str) -> ast.AST:
    """The last statement that assigns a name."""
    found: ast.AST = body[0]
    for item in body:
        for part in ast.walk(item):
            if isinstance(part, ast.Assign) and any(name in _names(t) for t in part.targets):
                found = part
    return found


def _extremum(name: str, terms: tuple[Poly, ...], span: tree.Span) -> tree.Expr:
    written = tuple(t.tree(span) for t in dict.fromkeys(terms))
    return written[0] if len(written) == 1 else tree.Call(tree.Name(name, span), written, span)
