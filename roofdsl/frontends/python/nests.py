"""Writes loops over the elements of arrays.

Numpy computes all of a value before it stores any of it. So a value that reads an array that overlaps with its target
goes to a temporary array first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from roofdsl.frontends.integer_facts import Facts, Range
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.context import Access, Context
from roofdsl.frontends.python.select import chosen
from roofdsl.frontends.python.types import kind
from roofdsl.frontends.python.values import ONE, ZERO, Shape, Value, View, whole_view
from roofdsl.lang import tree

Body = Callable[[Sequence[Poly]], None]


class Nests:
    """Writes nests of loops."""

    def __init__(self, context: Context) -> None:
        self.context = context

    # ---- loops ----

    def nest(self, shape: Shape, starts: Sequence[Poly], node: ast.AST, body: Body) -> None:
        """Loops over all indices of a shape; each loop begins at its start. `body` receives the indices."""
        self.sections([(shape, starts, body)], node)

    def sections(self, parts: Sequence[tuple[Shape, Sequence[Poly], Body]], node: ast.AST) -> None:
        """Loops around several parts; each part goes into the loops of the part before, after its statements."""
        self._part(parts, (), node)

    def _part(
        self, parts: Sequence[tuple[Shape, Sequence[Poly], Body]], outer: tuple[Poly, ...], node: ast.AST
    ) -> None:
        context = self.context
        shape, starts, body = parts[0]
        span = context.span(node)
        with context.visible(), context.collected() as items:
            clauses: list[tree.Clause] = []
            indices: list[Poly] = []
            facts = context.facts
            for extent, start in zip(shape, starts, strict=True):
                if extent == ONE:
                    indices.append(ZERO)
                    continue
                name = context.index_name()
                stop = start + extent
                args = (stop.tree(span),) if start == ZERO else (start.tree(span), stop.tree(span))
                clauses.append(tree.Clause(tree.Name(name, span), tree.Name("range", span), args, span))
                facts = facts.inside(Range(name, (start,), (stop - 1,)))
                indices.append(Poly.name(name) - start)
            with context.within(facts):
                body((*outer, *indices))
                if parts[1:]:
                    self._part(parts[1:], (*outer, *indices), node)
        self.around(clauses, items, node)

    def around(self, clauses: Sequence[tree.Clause], items: Sequence[tree.Item], node: ast.AST) -> None:
        """Writes loops around statements, on one line with an inner loop that is the whole body."""
        context = self.context
        if not items:
            return
        if not clauses:
            context.out.extend(items)
            return
        span = context.span(node)
        inner = items[0] if len(items) == 1 else None
        if isinstance(inner, tree.For) and not inner.parallel:
            context.emit(tree.For((*clauses, *inner.clauses), False, inner.body, span))
        else:
            context.emit(tree.For(tuple(clauses), False, tuple(items), span))

    # ---- stores ----

    def store(self, target: View, op: str, value: Value, node: ast.AST, name: str = "t") -> None:
        """`target op value`, element by element. The value has the target's shape, or is broadcast to it."""
        if op == "=" and value.view == target:
            return
        if target.shape and self.overlaps(target, value):
            self._in_order(target, op, value, node)
            value = self.materialized(value, node, name, ("copy", target.buffer.name))
        starts = _starts(target)

        def body(indices: Sequence[Poly]) -> None:
            written = self.written(value, value.at(aligned(indices, target.shape, value.shape)), node)
            self.context.assign(target.buffer, target.subscripts(indices), op, written, node)

        self.nest(target.shape, starts, node, body)

    def _in_order(self, target: View, op: str, value: Value, node: ast.AST) -> None:
        """Refuses a copy in which numpy 2 overwrites elements before it reads them.

        numpy copies vectors of one array without a temporary if both run forwards, and assumes that their strides are
        equal.
        """
        if op != "=" or len(target.shape) != 1 or value.shape != target.shape:
            return
        if value.view is None or value.view.buffer is not target.buffer:
            return
        own, other = (next((k, a.step) for k, a in enumerate(v.axes) if a.axis == 0) for v in (target, value.view))
        opposite = (own[1].value or 1) * (other[1].value or 1) < 0
        if own != other and not opposite:
            message = "numpy would overwrite elements here before it reads them: both sides are parts of one array"
            self.context.refuse("py-effect", message, node, "copy the right side first, by `.copy()`")

    def written(self, value: Value, e: tree.Expr, node: ast.AST) -> tree.Expr:
        """An element as a value: a truth value is 1 or 0."""
        if value.type != "bool":
            return e
        span = self.context.span(node)
        return chosen(self.context, e, tree.Number("1", 1, span), tree.Number("0", 0, span), span)

    def materialized(self, value: Value, node: ast.AST, wish: str, role: tuple[object, ...]) -> Value:
        """The value stored in a separate array, or for a scalar in a separate scalar."""
        context = self.context
        key = (*context.path, id(node), *role)
        for extent in value.shape:
            self.positive(extent, node)
        if value.is_scalar and value.own and value.type != "bool":
            return self.let(value, node, wish)
        type_ = value.type if not value.is_scalar or kind(value.type) != "int" else "i64"
        buffer = context.buffer(key, wish, type_, self.room(value.shape, node), node, weak=value.weak)
        target = View(buffer, whole_view(buffer).axes, value.shape)
        self.store(target, "=", value, node)
        return context.read(target, node)

    def let(self, value: Value, node: ast.AST, wish: str, *, own: bool = False) -> Value:
        """A scalar with its own name. own: the user chose it."""
        context, span = self.context, self.context.span(node)
        name = context.inner_name(wish, own=own)
        context.emit(tree.Let(tree.Name(name, span), value.at(()), span))
        return Value(
            (), value.type, lambda _: tree.Ref(name, span), weak=value.weak, simple=True, origins=value.origins
        )

    def stored(self, value: Value, type_: str, node: ast.AST, role: object, wish: str = "c") -> Value:
        """A value kept in another type."""
        context = self.context
        if value.shape:
            dims = self.room(value.shape, node)
            array = context.buffer((*context.path, id(node), "as", type_, role), "t", type_, dims, node)
            view = View(array, whole_view(array).axes, value.shape)
            self.store(view, "=", value, node)
            return context.read(view, node)
        buffer = context.buffer((*context.path, id(node), "as", type_, role), wish, type_, (), node)
        context.assign(buffer, (), "=", self.written(value, value.at(()), node), node)
        return context.scalar(buffer, node)

    def positive(self, extent: Poly, node: ast.AST) -> None:
        """Checks that an array has elements."""
        if self.context.is_size(extent):
            message = f"this has no elements: its size is {extent}"
            self.context.need(extent - 1, node, message, code="py-shape")

    def room(self, shape: Shape, node: ast.AST) -> Shape:
        """The dimensions of an array that can hold such shapes in every iteration."""
        found: list[Poly] = []
        for extent in shape:
            dim = extent if self.context.is_size(extent) else self.context.facts.greatest(extent)
            if dim is None:
                message = f"how large an array this needs does not follow from sizes: {extent}"
                self.context.refuse("py-shape", message, node, "make the array before the loop")
            self.positive(dim, node)
            found.append(dim)
        return tuple(found)

    # ---- what is read and written by the same statement ----

    def accesses(self, value: Value, indices: Sequence[Poly]) -> list[Access]:
        """The elements from which an element of the value is computed."""
        context = self.context
        before, context.recorded = context.recorded, []
        written = list(context.written)
        with context.visible(), context.collected():
            value.at(indices)
        found, context.recorded, context.written = context.recorded, before, written
        return found or []

    def overlaps(self, target: View, value: Value) -> bool:
        """Whether storing an element may change another one that has still to be read."""
        context = self.context
        symbols = [context.symbol() for _ in target.shape]
        names = [next(iter(s.names)) for s in symbols]
        ranges = [Range(n, (ZERO,), (e - 1,)) for n, e in zip(names, target.shape, strict=True)]
        facts = Facts((*context.facts.ranges, *ranges))
        own = target.subscripts(symbols)
        for access in self.accesses(value, aligned(symbols, target.shape, value.shape)):
            if access.buffer is not target.buffer or access.subscripts == own:
                continue
            if not any(_apart(facts, a, b, names) for a, b in zip(own, access.subscripts, strict=True)):
                return True
        return False


def _apart(facts: Facts, a: Poly, b: Poly, names: Sequence[str]) -> bool:
    """Whether two subscripts are proven never to meet, even at different indices."""
    moved = {n: Poly.name(f"{n}'") for n in names}
    ranges = [r for r in facts.ranges if r.var in names]
    other = [Range(f"{r.var}'", r.lowers, r.uppers) for r in ranges]
    both = Facts((*facts.ranges, *other))
    b = b.put(moved)
    return both.not_negative(a - b - 1) or both.not_negative(b - a - 1)


def _starts(target: View) -> list[Poly]:
    """The starts of loops for which the subscripts of the target are the loop variables themselves."""
    starts = [ZERO] * len(target.shape)
    for a in target.axes:
        if a.axis is not None and a.step == ONE:
            starts[a.axis] = a.start
    return starts


def aligned(indices: Sequence[Poly], shape: Shape, own: Shape) -> tuple[Poly, ...]:
    """The indices of a value in an array to which it is broadcast."""
    last = len(shape) - len(own)
    return tuple(
        ZERO if extent == ONE and shape[last + k] != ONE else indices[last + k] for k, extent in enumerate(own)
    )
