"""Sums, extrema, means, variances and norms of arrays, as numpy computes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.arrangements import Arrangements
from roofdsl.frontends.python.calls import Call
from roofdsl.frontends.python.indexing import Part
from roofdsl.frontends.python.types import kind
from roofdsl.frontends.python.values import ONE, ZERO, Constant, Value, Whole


class Statistics(Arrangements):
    """Functions that combine the elements along axes."""

    def reduction(self, op: str, call: Call) -> Any:
        given = call.bound(self.context, ["a", "axis", "dtype", "out", "keepdims"], 1)
        value = self.arithmetic.shaped(given["a"], call.node)
        self.in_own_type(value, given, "sum", call.node)
        return self.reduced(value, given, op, call.node)

    def in_own_type(self, value: Value, given: Mapping[str, Any], what: str, node: Any) -> None:
        """Refuses a `dtype` other than that of the data, and an `out` without its name."""
        if "out" in given:
            self.context.refuse("py-effect", f"the `out` of a {what} is read only by its name", node, "write `out=...`")
        if "dtype" in given and self.type(given["dtype"], node) != value.type:
            self.context.refuse("py-type", f"a {what} in another type is not supported", node, "convert with `astype`")

    def reduced(self, value: Value, given: dict[str, Any], op: str, node: Any) -> Value:
        """A reduction over `axis`, with `keepdims`."""
        if value.is_scalar:
            return value
        axes = self.axes(given.get("axis"), len(value.shape), node)
        wish = {"+=": "s", "*=": "p", "max=": "m", "min=": "m"}[op]
        found = self.reductions.reduce(value, axes, op, node, wish)
        return self.kept(found, value, axes) if self.flag(given.get("keepdims"), node) else found

    def kept(self, found: Value, value: Value, axes: list[int]) -> Value:
        """The value with axes of one element in place of those that were reduced."""
        parts = iter(found.shape)
        shape = [None if k in axes else Part(ZERO, next(parts)) for k in range(len(value.shape))]
        if found.view is not None and found.view.buffer.dims == ():
            return Value((ONE,) * len(value.shape), found.type, lambda _: found.at(()), simple=True)
        return self.indexing.taken(found, shape, _value_node(found))

    def mean(self, call: Call) -> Any:
        given = call.bound(self.context, ["a", "axis", "dtype", "out", "keepdims"], 1)
        value = self.floating(given["a"], call.node)
        self.in_own_type(value, given, "mean", call.node)
        total = self.reduced(value, {**given, "keepdims": None}, "+=", call.node)
        found = self.divided(total, Whole(self.counted(value, given.get("axis"), call.node)), call.node)
        if not self.flag(given.get("keepdims"), call.node):
            return found
        return self.kept(found, value, self.axes(given.get("axis"), len(value.shape), call.node))

    def divided(self, total: Value, count: Any, node: Any) -> Value:
        """A quotient; a stored total is divided in place, as by numpy."""
        if total.view is None:
            return self.arithmetic.operate("/", total, count, node)  # type: ignore[no-any-return]
        self.store(total.view, "/=", self.arithmetic.value(count, node), node)
        return total

    def variance(self, call: Call, *, root: bool) -> Any:
        names = ["a", "axis", "dtype", "out", "ddof", "keepdims"]
        given = call.bound(self.context, names, 1)
        node = call.node
        value = self.floating(given["a"], node)
        self.in_own_type(value, given, "variance", node)
        if kind(value.type) == "complex":
            self.context.refuse("py-type", "a variance of complex values is not supported", node)
        if not value.simple:
            value = self.nests.materialized(value, node, "t", ("spread",))
        count = Whole(self.counted(value, given.get("axis"), node))
        axes = self.axes(given.get("axis"), len(value.shape), node)
        with self.apart(node):
            total = self.divided(self.reductions.reduce(value, axes, "+=", node, "mean"), count, node)
        mean = self.kept(total, value, axes)
        apart = self.arithmetic.operate("-", value, mean, node)
        apart = self.nests.materialized(apart, node, "d", ("apart",))
        square = self.arithmetic.operate("*", apart, apart, node)
        spread = self.reductions.reduce(square, axes, "+=", node, "s")
        by = self.arithmetic.operate("-", count, given.get("ddof", Whole(ZERO)), node)
        spread = self.divided(spread, by, node)
        if self.flag(given.get("keepdims"), node):
            spread = self.kept(spread, value, axes)
        return self.arithmetic.function("sqrt", spread, node) if root else spread

    def floating(self, found: Any, node: Any) -> Value:
        """An array of floating-point numbers."""
        value = self.arithmetic.shaped(found, node)
        if kind(value.type) in ("int", "bool"):
            self.context.refuse("py-type", "a mean of integers is computed in floating point", node, "use floats")
        return value

    def norm(self, call: Call) -> Any:
        """The root of the sum of squares: of a vector, of all elements, or of the vectors along one axis."""
        node = call.node
        given = call.bound(self.context, ["x", "ord", "axis", "keepdims"], 1)
        value = self.floating(given["x"], node)
        if kind(value.type) == "complex":
            self.context.refuse("py-type", "a norm of complex values is not supported", node)
        vectors = len(value.shape) == 1 or isinstance(given.get("axis"), Whole)
        order = given.get("ord", Constant(None))
        if order != Constant(None) and not (vectors and order == Whole(Poly.number(2))):
            message = "only norms that are roots of sums of squares are supported"
            self.context.refuse("py-call", message, node, "leave `ord` out, or write the sum")
        square = self.arithmetic.operate("*", value, value, node)
        total = self.reduced(square, given, "+=", node)
        return self.arithmetic.function("sqrt", total, node)


def _value_node(found: Value) -> Any:
    """The node that made a reduced array."""
    assert found.view is not None
    return found.view.buffer.node
