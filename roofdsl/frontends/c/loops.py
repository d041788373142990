"""Loops: integers followed from iteration to iteration, loops that count down, first iterations on their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pycparser import c_ast

from roofdsl.frontends.c import rotations
from roofdsl.frontends.c.context import Context, Split
from roofdsl.frontends.c.follow import Follower
from roofdsl.frontends.c.for_headers import Header, Headers
from roofdsl.frontends.c.pointers import Peel
from roofdsl.frontends.c.rewritten_loops import Repeated
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Pointer, State, Swapped, Unknown, Variable, Wrapped, walk
from roofdsl.frontends.integer_facts import Range
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.whole_steps import iterations, needed, stepped
from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.lang.source import Span

_COUNTED = "a loop has counted with it, and nothing shows that it did not begin beyond its end"


class Writer(Protocol):
    """Reads statements and writes those of the kernel."""

    def block(self, items: Sequence[Any]) -> None: ...

    def statement(self, node: Any, parallel: int = 0) -> None: ...

    def branches(self, split: Split, node: Any, then: Callable[[], None], otherwise: Callable[[], None]) -> None: ...


class Loops:
    """Reads `for` loops."""

    def __init__(self, context: Context, values: Values, follower: Follower, statements: Writer) -> None:
        self.context, self.values, self.follower, self.statements = context, values, follower, statements
        self.headers = Headers(context, values)

    def loop(self, node: Any, parallel: int) -> None:
        """Writes a `for`. Raises Refused."""
        context = self.context
        with context.scopes.block():
            header = self._header(node)
            for part in header.before:
                self.statements.statement(part)
            mark = dict(context.env), len(context.out), len(context.accesses), set(context.active[-1])
            try:
                self._written(node, header, parallel)
            except Peel as peel:
                if peel.loop is not node:
                    raise
                context.env, context.active[-1] = mark[0], mark[3]
                del context.out[mark[1] :], context.accesses[mark[2] :]
                self._peeled(node, header, peel.variable)

    def _header(self, node: Any) -> Header:
        """The header of a loop. Raises Refused, also for a `do` that might run once more than its condition says."""
        header = self.headers.read(node)
        if isinstance(node, Repeated) and not self._runs(header):
            message = "nothing shows that the condition of this `do` holds before its first iteration"
            raise Refused("c-loop", message, node.cond, "state it, as in `assert(n > 1)`, or write a `for` loop")
        return header

    def followed(self, node: Any) -> None:
        """The effect of a loop on integers and pointers, without writing anything. Raises Refused."""
        context = self.context
        with context.scopes.block():
            header = self._header(node)
            for part in header.before:
                self.follower.follow(part)
            counter = context.symbol()
            name = next(iter(counter.names))
            up = (header.step.value or 1) > 0
            ends = tuple(s - 1 if up else s + 1 for s in header.stops)
            inside = Range(name, header.starts if up else ends, ends if up else header.starts)
            with context.within(context.facts.inside(inside)):
                last, first = self._states(node, header, counter)
            self._afterwards(header, last, first, name)

    def _peeled(self, node: Any, header: Header, variable: Variable) -> None:
        """The first iteration by itself, then the others."""
        context = self.context
        (start,) = header.starts if len(header.starts) == 1 else (None,)
        if start is None or not self._runs(header):
            held = f"`{variable.name}` still has its value from the iteration before"
            message = f"{held}, and nothing shows that the loop runs at all"
            raise Refused("c-loop", message, node, "write the first iteration before the loop")
        # What an iteration hands to the next one is known only before the first one is written: `last = i` is `i - 1`
        # in the loop over the others. `@i` stands for the counter, whose name the loop does not have yet.
        ends, starts = self._states(node, header, Poly.name("@i"))
        context.env[header.variable] = header.state(start)
        self._body(node, header, {})
        rest = replace(header, starts=(start + header.step,))
        given: dict[Variable, State] = {
            v: end.put({"@i": Poly.name("@i") - header.step})
            for v, end in ends.items()
            if isinstance(end, Poly) and isinstance(starts[v], Wrapped)
        }
        self._written(node, rest, 0, given)

    def _runs(self, header: Header) -> bool:
        """Whether the loop is known to run at least once."""
        sign = -1 if (header.step.value or 1) < 0 else 1
        ends = [(stop - start) * sign for start in header.starts for stop in header.stops]
        return all(self.context.facts.not_negative(d - 1) for d in ends)

    def _written(self, node: Any, header: Header, parallel: int, given: dict[Variable, State] | None = None) -> None:
        """Writes the loop. given: the values that come from the previous iteration, in terms of the counter `@i`."""
        context = self.context
        span = context.spans(node)
        with context.visible():
            name = context.inner_name("r" if (header.step.value or 0) < 0 else header.name)
            counter, lowers, stops, step = self._upwards(header, name, node)
            lowers, stops = needed(context.facts, lowers, stops)
            inside = context.facts.inside(stepped(name, lowers, stops, step, context.learnt.whole_steps))
            with context.within(inside):
                ends, starts = self._states(node, header, counter)
                if given:
                    starts.update({v: s.put({"@i": counter}) for v, s in given.items() if isinstance(s, Poly)})
                before = dict(context.env)
                turns = rotations.turns(starts, {v: context.state(v) for v in starts})
                context.env[header.variable] = header.state(counter)
                count = self._count(header, counter)
                with context.block() as body:
                    if turns and count is not None:
                        self._in_turns(node, header, starts, turns, count)
                    else:
                        self._body(node, header, starts)
        context.env = before
        self._afterwards(header, ends, starts, name)
        total = self._iterations(header)
        if turns and total is not None:
            context.env.update(rotations.after(context, turns, total, node, span))
        if body:
            clause = self._clause(name, lowers, stops, step, span)
            context.emit(nested(clause, body, 0 if _keeps(body, node) else parallel, span), node)

    def _upwards(self, header: Header, name: str, node: Any) -> tuple[Poly, tuple[Poly, ...], tuple[Poly, ...], Poly]:
        """The counter in terms of a loop `name` that counts up, and the starts, stops and step of that loop."""
        if header.step.value == 1 and (by := self.values.pointers.indices.offset(header.starts, header.stops)).terms:
            return Poly.name(name) - by, (by,), (header.stops[0] + by,), header.step
        if (header.step.value or 0) >= 0:
            return Poly.name(name), header.starts, header.stops, header.step
        if len(header.starts) != 1:
            raise Refused(
                "c-loop", "a loop that counts down must start at a single value", node, "turn the loop around"
            )
        start = header.starts[0]
        stops = tuple(start - stop for stop in header.stops)
        return start - Poly.name(name), (Poly.number(0),), stops, -header.step

    def _body(self, node: Any, header: Header, starts: dict[Variable, State]) -> None:
        self.context.env.update(starts)
        with self.context.scopes.block():
            stmt = node.stmt
            self.statements.block(stmt.block_items or () if isinstance(stmt, c_ast.Compound) else [stmt])
        for part in header.after:
            self.statements.statement(part)

    def _in_turns(
        self, node: Any, header: Header, starts: dict[Variable, State], turns: list[rotations.Turn], count: Poly
    ) -> None:
        """Writes the body once for each order of the arrays that it swaps."""

        def write(turn: int) -> None:
            if turn == len(turns) - 1:
                self._body(node, header, {**starts, **turns[turn]})
                return
            known = rotations.is_turn(count, len(turns), turn, self.context.spans(node))
            split = Split(self.context.choice_at(node, known), known)
            way = {**starts, **turns[turn]}
            self.statements.branches(split, node, lambda: self._body(node, header, way), lambda: write(turn + 1))

        write(0)

    def _clause(
        self, name: str, lowers: tuple[Poly, ...], stops: tuple[Poly, ...], step: Poly, span: Span
    ) -> tree.Clause:
        start, stop = _extremum("max", lowers, span), _extremum("min", stops, span)
        args: tuple[tree.Expr, ...] = (start, stop)
        if step.value != 1:
            args = (start, stop, step.tree(span))
        elif len(lowers) == 1 and lowers[0].value == 0:
            args = (stop,)
        return tree.Clause(tree.Name(name, span), tree.Name("range", span), args, span)

    # ---- integers and pointers from iteration to iteration ----

    def _states(
        self, node: Any, header: Header, counter: Poly
    ) -> tuple[dict[Variable, State | None], dict[Variable, State]]:
        """The values at the end of an iteration in terms of its counter, and those at its beginning."""
        context = self.context
        nodes = [node.stmt, *header.after]
        changed = [v for v in self.follower.changed(nodes) if v is not header.variable]
        if not changed:
            return {}, {}
        symbols = {v: context.symbol() for v in changed}
        own = context.env.get(header.variable)
        context.env[header.variable] = header.state(counter)
        ends = self.follower.iteration(nodes, symbols)
        if own is not None:
            context.env[header.variable] = own
        else:
            context.env.pop(header.variable, None)
        fresh = frozenset(next(iter(s.names)) for s in symbols.values())
        count = self._count(header, counter)
        # The count of `for (j = i; ...)` is `j - i`: j changes from iteration to iteration, the start i does not.
        counts = frozenset() if count is None else count.names - header.starts[0].names
        starts: dict[Variable, State] = {}
        befores = {v: context.state(v) for v in changed}
        for v in changed:
            begin = self._begins(v, ends[v], symbols[v], fresh | counts, count)
            end, before = ends[v], befores[v]
            if isinstance(begin, Swapped) and isinstance(end, Pointer):
                begin = Swapped(rotations.source(end, befores, symbols))
            # `last = i`: no sum over the iterations, but the iteration before tells it.
            is_last = isinstance(end, Poly) and not end.names & fresh and isinstance(before, Poly)
            starts[v] = Wrapped(node, v) if is_last and isinstance(begin, Unknown) else begin
        put = {next(iter(symbols[v].names)): b for v, b in starts.items() if isinstance(b, Poly)}
        found: dict[Variable, State | None] = {v: e.put(put) if isinstance(e, Poly) else e for v, e in ends.items()}
        for v, end in found.items():
            if isinstance(end, Poly) and end.names & fresh:
                found[v] = Unknown("a loop changes it")
        return found, starts

    def _begins(
        self, v: Variable, end: State | None, symbol: Poly, moving: frozenset[str], count: Poly | None
    ) -> State:
        """The value at the beginning of an iteration, if each iteration adds the same amount. moving: names that
        change.
        """
        before = self.context.state(v)
        offset = end.subscripts[-1] if isinstance(end, Pointer) and end.subscripts else end
        if not isinstance(offset, Poly):
            return Unknown(offset.why if isinstance(offset, Unknown) else "it changes in a loop")
        if isinstance(before, Pointer) and isinstance(end, Pointer) and before.array is not end.array:
            return Swapped()
        by = offset - symbol
        if by.names & moving:
            return Unknown("it changes from iteration to iteration in a way that is not affine")
        if isinstance(before, Unknown):
            return before
        if count is None or before is None:
            return Unknown("the loop's counter is not simple")
        if isinstance(before, Pointer) and isinstance(end, Pointer):
            row, next_row = before.subscripts[:-1], end.subscripts[:-1]
            if (before.array, row, before.inner) != (end.array, next_row, end.inner):
                return Unknown("it points elsewhere in the next iteration")
            return before.at(before.subscripts[-1] + by * count)
        return before + by * count if isinstance(before, Poly) else Unknown("it is no integer")

    def _count(self, header: Header, counter: Poly) -> Poly | None:
        """The number of iterations before this one."""
        if len(header.starts) != 1:
            return None
        passed = counter - header.starts[0]
        step = header.step.value
        if step is None:
            return None
        # The counter is a whole number of steps from its start, so that nothing is rounded.
        return quotient("//", passed if step > 0 else -passed, abs(step))

    def _afterwards(
        self, header: Header, ends: dict[Variable, State | None], starts: dict[Variable, State], name: str
    ) -> None:
        """The known state after the loop."""
        context = self.context
        simple = len(header.starts) == len(header.stops) == 1 and header.step.value == 1
        if not header.declares:
            last = self._last(header) if self.follower.is_followed(header.variable) else None
            context.env[header.variable] = Unknown(_COUNTED) if last is None else header.state(last)
        for v, end in ends.items():
            context.env[v] = self._final(end, starts[v], header, simple, name)

    def _last(self, header: Header) -> Poly | None:
        """The value of the counter after the loop."""
        count = self._iterations(header)
        return None if count is None else header.starts[0] + count * header.step

    def _iterations(self, header: Header) -> Poly | None:
        """How often the loop runs; None if that is not known, or may be negative."""
        step = header.step.value
        if len(header.starts) != 1 or len(header.stops) != 1 or step is None:
            return None
        length = (header.stops[0] - header.starts[0]) * (1 if step > 0 else -1)
        return iterations(self.context.facts, length, abs(step))

    def _final(self, end: State | None, begin: State, header: Header, simple: bool, name: str) -> State:
        """The value after the loop: that at the end of its last iteration."""
        if isinstance(begin, Unknown) and not isinstance(begin, Wrapped):
            return begin
        if not simple or not self._runs(header) or not isinstance(end, Poly):
            return Unknown("a loop changes it")
        return end.put({name: header.stops[0] - 1})


def nested(clause: tree.Clause, body: list[tree.Item], parallel: int, span: Span) -> tree.For:
    """The loop around a body, on one line with an inner loop that is the whole body.

    parallel: the number of parallel loops, starting with this one.
    """
    inner = body[0] if len(body) == 1 else None
    if not isinstance(inner, tree.For):
        return tree.For((clause,), bool(parallel), tuple(body), span)
    if inner.parallel == bool(parallel):
        return tree.For((clause, *inner.clauses), inner.parallel, inner.body, span)
    if parallel < 2:
        return tree.For((clause,), bool(parallel), tuple(body), span)
    rest = inner.clauses[parallel - 1 :]  # `collapse` covers only some of the loops
    own = (tree.For(rest, False, inner.body, inner.span),) if rest else inner.body
    return tree.For((clause, *inner.clauses[: parallel - 1]), True, own, span)


def _extremum(name: str, terms: tuple[Poly, ...], span: Span) -> tree.Expr:
    written = tuple(t.tree(span) for t in dict.fromkeys(terms))
    return written[0] if len(written) == 1 else tree.Call(tree.Name(name, span), written, span)


def _keeps(body: list[tree.Item], node: Any) -> bool:
    """Whether iterations have scalars or arrays of their own; in the kernel, all iterations would share them."""
    pending: list[Any] = list(body)
    while pending:
        item = pending.pop()
        match item:
            case tree.Assign(tree.Ref(), _, _):
                return True
            case tree.For(body=inner):
                pending += inner
            case tree.If(branches, orelse):
                pending += [i for b in branches for i in b.body] + list(orelse)
    arrays = [p for p in walk(node.stmt) if isinstance(p, c_ast.Decl) and isinstance(p.type, c_ast.ArrayDecl)]
    return bool(arrays)
