"""Sums, products and extrema over axes, and contractions of several arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from roofdsl.frontends.operators import binary
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.arithmetic import Arithmetic
from roofdsl.frontends.python.context import Context
from roofdsl.frontends.python.nests import Nests
from roofdsl.frontends.python.types import kind
from roofdsl.frontends.python.values import ONE, ZERO, Buffer, Shape, Value, View, whole_view
from roofdsl.lang import tree


class Reductions:
    """Writes reductions into arrays of their own."""

    def __init__(self, context: Context, nests: Nests, arithmetic: Arithmetic) -> None:
        self.context, self.nests, self.arithmetic = context, nests, arithmetic

    def reduce(self, value: Value, axes: Sequence[int], op: str, node: ast.AST, wish: str = "s") -> Value:
        """The value reduced over `axes`; `op` is `+=`, `*=`, `max=` or `min=`. Raises Refused."""
        if value.type == "bool" and op in ("+=", "*="):
            (value,) = self.arithmetic.fitted([value], "i64", node)
        type_ = value.type
        if kind(type_) == "int" and op in ("+=", "*="):
            type_ = "i64"
        if op in ("max=", "min=") and kind(type_) in ("complex", "bool"):
            self.context.refuse("py-type", f"the largest or smallest of {type_} values is not supported", node)
        self.context.exact &= kind(type_) == "int" or op in ("max=", "min=")
        if op in ("max=", "min="):  # numpy takes no extremum of nothing
            for k in axes:
                self.nests.positive(value.shape[k], node)
        kept = [k for k in range(len(value.shape)) if k not in axes]
        buffer = self._result(tuple(value.shape[k] for k in kept), type_, node, wish)
        shape = tuple(value.shape[k] for k in kept)
        view = View(buffer, whole_view(buffer).axes, shape)
        order = _order(value)
        # The largest begins as the first element: there is no least number to begin with, as 0 is for sums.
        first = ZERO
        if op in ("max=", "min=") and len(axes) == 1:
            first = ONE  # the other elements are compared with the first one

        def indices(of_kept: Sequence[Poly], of_axes: Sequence[Poly]) -> list[Poly]:
            given = dict(zip(kept, of_kept, strict=True)) | dict(zip(axes, of_axes, strict=True))
            return [given[k] for k in range(len(value.shape))]

        def begin(at: Sequence[Poly]) -> None:
            start = tree.Number("1" if op == "*=" else "0", int(op == "*="), self.context.span(node))
            e = value.at(indices(at, [ZERO] * len(axes))) if op in ("max=", "min=") else start
            self.context.assign(buffer, at, "=", e, node)

        def update(at: Sequence[Poly]) -> None:
            of_kept, of_axes = at[: len(kept)], [i + first for i in at[len(kept) :]]
            self.context.assign(buffer, of_kept, op, value.at(indices(of_kept, of_axes)), node)

        extents = [value.shape[k] - first for k in axes]
        # Loops of one iteration are not written, and their index is 0 instead of their start: adding `first` once is
        # right only if the start is 0, too.
        starts = [first if value.shape[k] != ONE else ZERO for k in axes]
        if first == ONE and extents[0] == ONE:
            starts = [ZERO]
        outside = [ZERO] * len(kept)
        if not kept or order == [*kept, *axes]:
            self.nests.sections([(shape, outside, begin), (tuple(extents), starts, update)], node)
            return self.context.read(view, node)
        self.nests.nest(shape, outside, node, begin)
        where = {k: n for n, k in enumerate(order)}

        def reordered(at: Sequence[Poly]) -> None:
            update([at[where[k]] for k in (*kept, *axes)])

        sizes = dict(zip((*kept, *axes), (*shape, *extents), strict=True))
        begins = dict(zip((*kept, *axes), (*outside, *starts), strict=True))
        self.nests.nest(tuple(sizes[k] for k in order), [begins[k] for k in order], node, reordered)
        return self.context.read(view, node)

    def _result(self, shape: Shape, type_: str, node: ast.AST, wish: str) -> Buffer:
        context = self.context
        for extent in shape:
            self.nests.positive(extent, node)
        name = context.wished(node, wish)
        return context.buffer((*context.path, id(node), "reduced"), name, type_, self.nests.room(shape, node), node)

    def contract(self, operands: Sequence[tuple[Value, str]], out: str, node: ast.AST, wish: str = "t") -> Value:
        """The product of operands, one letter for each axis, summed over the letters that `out` does not have."""
        context = self.context
        type_, _ = self.arithmetic.common([v for v, _ in operands])
        if kind(type_) == "bool" or type_ in ("i8", "i16"):
            context.refuse(
                "py-type", f"products of {type_} matrices are not supported", node, "use i64 or floating point"
            )
        given = self.arithmetic.fitted([v for v, _ in operands], type_, node)
        given = [v if v.simple else self.nests.materialized(v, node, "t", ("of", k)) for k, v in enumerate(given)]
        self.context.exact &= kind(type_) == "int"
        labels = [text for _, text in operands]
        sizes = self._sizes(list(zip(given, labels, strict=True)), node)
        summed = [c for c in dict.fromkeys("".join(labels)) if c not in out]
        span = context.span(node)

        def product(at: dict[str, Poly]) -> tree.Expr:
            found: tree.Expr | None = None
            for v, text in zip(given, labels, strict=True):
                e = v.at([ZERO if x == ONE and sizes[c] != ONE else at[c] for c, x in zip(text, v.shape, strict=True)])
                found = e if found is None else binary("*", found, e, span)
            assert found is not None
            return found

        shape = tuple(sizes[c] for c in out)
        buffer = self._result(shape, type_, node, wish)
        zero = tree.Number("0", 0, span)
        op = "+=" if summed else "="

        def begin(at: Sequence[Poly]) -> None:
            if summed:
                context.assign(buffer, at, "=", zero, node)

        def update(order: str) -> Any:
            def write(at: Sequence[Poly]) -> None:
                by = dict(zip(order, at, strict=True))
                context.assign(buffer, [by[c] for c in out], op, product(by), node)

            return write

        inner = tuple(sizes[c] for c in summed)
        zeros = [ZERO] * len(out)
        # `x @ A` goes through the rows of A one after the other, as they lie in memory: the sum is the outer loop.
        if len(summed) == 1 and out and _streams(given, labels, summed[0]):
            self.nests.nest(shape, zeros, node, begin)
            order = summed[0] + out
            self.nests.nest(tuple(sizes[c] for c in order), [ZERO] * len(order), node, update(order))
        else:
            parts = [(shape, zeros, begin), (inner, [ZERO] * len(inner), update(out + "".join(summed)))]
            self.nests.sections(parts, node)
        return context.read(View(buffer, whole_view(buffer).axes, shape), node)

    def _sizes(self, operands: Sequence[tuple[Value, str]], node: ast.AST) -> dict[str, Poly]:
        sizes: dict[str, Poly] = {}
        for value, labels in operands:
            for letter, extent in zip(labels, value.shape, strict=True):
                known = sizes.get(letter, ONE)
                if known == ONE:
                    sizes[letter] = extent
                elif extent != ONE and not self.context.same(known, extent):
                    message = f"these do not have the same shape: {known} and {extent} elements are multiplied"
                    help = "say that sizes are equal by giving them the same name"
                    self.context.refuse("py-shape", message, node, help)
                elif extent == ONE != known:
                    message = f"these do not have the same shape: {known} and 1 elements are multiplied"
                    self.context.refuse("py-shape", message, node)
        return sizes

    def matmul(self, a: Value, b: Value, node: ast.AST) -> Value:
        """`a @ b`."""
        a, b = self.arithmetic.shaped(a, node), self.arithmetic.shaped(b, node)
        if a.is_scalar or b.is_scalar:
            self.context.refuse("py-shape", "a factor of `@` is a number: it multiplies arrays only", node, "use `*`")
        batch = "abcdefgh"[: max(len(a.shape), len(b.shape), 2) - 2]
        left = batch[len(batch) - max(0, len(a.shape) - 2) :] + ("ik" if len(a.shape) > 1 else "k")
        right = batch[len(batch) - max(0, len(b.shape) - 2) :] + ("kj" if len(b.shape) > 1 else "k")
        out = batch + ("i" if len(a.shape) > 1 else "") + ("j" if len(b.shape) > 1 else "")
        wish = "s" if not out else "t"
        return self.contract([(a, left), (b, right)], out, node, wish)

    def dot(self, a: Value, b: Value, node: ast.AST) -> Any:
        """`np.dot(a, b)`."""
        a, b = self.arithmetic.shaped(a, node), self.arithmetic.shaped(b, node)
        if a.is_scalar or b.is_scalar:
            return self.arithmetic.operate("*", a, b, node)
        if max(len(a.shape), len(b.shape)) <= 2:
            return self.matmul(a, b, node)
        left = "abcdefgh"[: len(a.shape) - 1] + "k"
        right = "ijlmnopq"[: max(0, len(b.shape) - 2)] + ("kz" if len(b.shape) > 1 else "k")
        return self.contract([(a, left), (b, right)], (left + right).replace("k", ""), node)


def _order(value: Value) -> list[int]:
    """The axes in memory order, outermost first."""
    axes = [a.axis for a in value.view.axes if a.axis is not None] if value.view is not None else []
    return [*axes, *(k for k in range(len(value.shape)) if k not in axes)]


def _streams(operands: Sequence[Value], labels: Sequence[str], summed: str) -> bool:
    """Whether one matrix is multiplied by a vector along its outer dimension, so that its rows are added up."""
    wide = [(v, t) for v, t in zip(operands, labels, strict=True) if len(t) > 1]
    if len(wide) != 1 or summed not in wide[0][1]:
        return False
    value, text = wide[0]
    return text[_order(value)[-1]] != summed
