"""Arrays that a function makes: `zeros`, `empty_like`, `arange`, copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.python.arithmetic import Arithmetic
from roofdsl.frontends.python.calls import Call
from roofdsl.frontends.python.context import Context
from roofdsl.frontends.python.indexing import Indexing, Part
from roofdsl.frontends.python.nests import Nests
from roofdsl.frontends.python.reductions import Reductions
from roofdsl.frontends.python.types import NUMPY, kind
from roofdsl.frontends.python.values import (
    ONE,
    ZERO,
    Constant,
    Items,
    Shape,
    TypeName,
    Unknown,
    Value,
    View,
    Whole,
    whole_view,
)  # fmt: skip
from roofdsl.lang.record import replace
from roofdsl.lang.types import TYPES


class Creation:
    """Makes arrays, and reads the arguments that calls of numpy share."""

    def __init__(
        self, context: Context, nests: Nests, arithmetic: Arithmetic, indexing: Indexing, reductions: Reductions
    ) -> None:
        self.context, self.nests, self.arithmetic = context, nests, arithmetic
        self.indexing, self.reductions = indexing, reductions

    # ---- arguments ----

    def type(self, found: Any, node: ast.AST) -> str:
        """A type: `np.float32`, `float`, `A.dtype`, "float32"."""
        if isinstance(found, TypeName):
            return found.type
        if isinstance(found, Unknown):
            self.arithmetic.value(found, node)
        if isinstance(found, Constant) and isinstance(found.value, str):
            name = {"f4": "float32", "f8": "float64", "i4": "int32", "i8": "int64"}.get(found.value, found.value)
            if name in NUMPY:
                return NUMPY[name]
        self.context.refuse("py-type", "this type is not supported", node, f"the types are {', '.join(TYPES)}")

    def shape(self, found: Any, node: ast.AST) -> Shape:
        """A shape: an integer or a tuple of them."""
        items = found.values if isinstance(found, Items) else (found,)
        return tuple(self.arithmetic.integer(item, node, "a size") for item in items)

    def axes(self, found: Any, rank: int, node: ast.AST) -> list[int]:
        """The numbers of axes; all of them if none is given."""
        if found is None:
            return list(range(rank))
        axes: list[int] = []
        for item in found.values if isinstance(found, Items) else (found,):
            value = item.poly.value if isinstance(item, Whole) else None
            if value is None or not -rank <= value < rank or value % rank in axes:
                self.context.refuse("py-shape", f"an axis is one of the numbers 0 to {rank - 1}", node)
            axes.append(value % rank)
        return axes

    def flag(self, found: Any, node: ast.AST) -> bool:
        """True or False."""
        if found is None:
            return False
        if not isinstance(found, Constant) or not isinstance(found.value, bool):
            self.context.refuse("py-call", "this is True or False in the text", node)
        return found.value

    def size(self, value: Value) -> Poly:
        """The number of elements."""
        found = ONE
        for e in value.shape:
            found *= e
        return found

    def counted(self, value: Value, axis: Any, node: ast.AST) -> Poly:
        """The number of elements that a reduction over `axis` combines."""
        found = ONE
        for k in self.axes(axis, len(value.shape), node):
            found *= value.shape[k]
        return found

    def one(self, call: Call, name: str) -> Any:
        """The only argument."""
        return call.bound(self.context, [name], 1)[name]

    def values(self, call: Call) -> tuple[Value, Value]:
        """Two arguments as values."""
        given = call.bound(self.context, ["a", "b"], 2)
        return self.arithmetic.value(given["a"], call.node), self.arithmetic.value(given["b"], call.node)

    def simple(self, call: Call) -> Value:
        """The only argument, stored in its own array if it is computed."""
        value = self.arithmetic.value(call.bound(self.context, ["x"], 1)["x"], call.node)
        return value if value.simple else self.nests.materialized(value, call.node, "t", ("simple",))

    def vector(self, call: Call) -> Value:
        """The only argument, of one dimension."""
        value = self.arithmetic.value(call.bound(self.context, ["x"], 1)["x"], call.node)
        if len(value.shape) != 1:
            self.context.refuse("py-shape", "Python's `sum` is read only for vectors", call.node, "use `np.sum`")
        return value

    def wished(self, node: ast.AST) -> str:
        """The preferred name of a new array."""
        return self.context.wished(node, "t")

    @contextmanager
    def apart(self, node: ast.AST) -> Iterator[None]:
        """Inside the context, a second array of the same call has a separate place."""
        context = self.context
        before, context.path = (context.path, context.root), (*context.path, "second", id(node))
        context.root = None
        try:
            yield
        finally:
            context.path, context.root = before

    # ---- arrays ----

    def new(self, shape: Shape, type_: str, node: ast.AST, role: str = "new") -> View:
        """An array of its own."""
        for extent in shape:
            self.nests.positive(extent, node)
        key = (*self.context.path, id(node), role)
        buffer = self.context.buffer(key, self.wished(node), type_, self.nests.room(shape, node), node)
        return View(buffer, whole_view(buffer).axes, shape)

    def filled(self, name: str, call: Call) -> Value:
        """`np.zeros(shape, dtype)` and its kin."""
        names = ["shape", "fill_value", "dtype"] if name == "full" else ["shape", "dtype"]
        given = call.bound(self.context, [*names, "order"], 2 if name == "full" else 1)
        order = given.get("order")
        if order is not None and order != Constant("C"):
            self.context.refuse("py-shape", "arrays are read in C order only", call.node)
        fill = self._fill(name, given)
        otherwise = "f64"
        if name == "full":
            value = self.arithmetic.value(fill, call.node)
            otherwise = value.type
        type_ = self.type(given["dtype"], call.node) if "dtype" in given else otherwise
        return self._made(self.shape(given["shape"], call.node), type_, fill, call.node)

    def like(self, name: str, call: Call) -> Value:
        """`np.zeros_like(a, dtype)` and its kin."""
        names = ["a", "fill_value", "dtype"] if name == "full" else ["a", "dtype"]
        given = call.bound(self.context, names, 2 if name == "full" else 1)
        value = self.arithmetic.shaped(given["a"], call.node)
        type_ = self.type(given["dtype"], call.node) if "dtype" in given else value.type
        return self._made(value.shape, type_, self._fill(name, given), call.node)

    def _fill(self, name: str, given: dict[str, Any]) -> Any:
        numbers = {"zeros": Whole(ZERO), "ones": Whole(ONE), "empty": None, "ndarray": None}
        return given["fill_value"] if name == "full" else numbers[name]

    def _made(self, shape: Shape, type_: str, fill: Any, node: ast.AST) -> Value:
        if not shape:
            self.context.refuse("py-shape", "an array without dimensions is not supported", node, "use a number")
        view = self.new(shape, type_, node)
        if fill is not None:
            self.store(view, "=", self.arithmetic.value(fill, node), node)
        return self.context.read(view, node)

    def fill(self, target: Value, fill: Any, node: ast.AST) -> None:
        """`a.fill(value)`."""
        if target.view is None or target.is_scalar:
            self.context.refuse("py-effect", "this is not an array that can be filled", node)
        self.store(target.view, "=", self.arithmetic.value(fill, node), node)

    def copy(self, call: Call) -> Value:
        """`np.copy(a)`, `np.array(a)`."""
        call, shares = self.may_share(call)
        given = call.bound(self.context, ["a", "dtype"], 1)
        value = self.arithmetic.value(given["a"], call.node)
        if value.is_scalar:
            return value
        type_ = self.type(given["dtype"], call.node) if "dtype" in given else value.type
        if shares and type_ == value.type:
            return value
        view = self.new(value.shape, type_, call.node)
        self.store(view, "=", value, call.node)
        return self.context.read(view, call.node)

    def may_share(self, call: Call) -> tuple[Call, bool]:
        """A call without `copy`, and whether that lets the result be the array itself, as False and None do."""
        named = dict(call.named)
        copy = named.pop("copy", Constant(True))
        shares = copy == Constant(None) or not self.flag(copy, call.node)
        return replace(call, named=named), shares

    def same(self, call: Call) -> Value:
        """`np.asarray(a)`: the array itself."""
        return self.arithmetic.value(call.bound(self.context, ["a"], 1)["a"], call.node)

    def store(self, target: View, op: str, value: Value, node: ast.AST) -> None:
        """Stores a value as numpy does. Raises Refused if it would be converted to another kind."""
        type_ = target.buffer.type
        if kind(type_) in ("int", "bool") and kind(value.type) in ("float", "complex") and value.number is None:
            message = f"floating-point values lose their fractions when they are stored in {type_}"
            self.context.refuse("py-type", message, node, "use an array of floating-point numbers")
        if kind(value.type) == "complex" and kind(type_) != "complex":
            message = f"the imaginary part is lost when this is stored in {type_}"
            self.context.refuse("py-type", message, node, "write `.real`, or use a complex array")
        number = value.number
        if number is not None and kind(type_) in ("int", "bool") and number != int(number.real):
            self.context.refuse("py-type", f"{number} loses its fraction when it is stored in {type_}", node)
        if kind(type_) == "bool" and value.type != "bool" and number not in (0, 1):
            self.context.refuse("py-type", "numbers are stored as truth values here", node, "compare them with 0")
        if op == "=" and not value.own and not value.simple and type_ != "f64" and value.type == "f64":
            value = self.nests.stored(value, "f64", node, "settled")
        self.nests.store(target, op, value, node)

    def arange(self, call: Call) -> Value:
        """`np.arange(start, stop)` of integers."""
        given = call.bound(self.context, ["start", "stop", "step", "dtype"], 1)
        node = call.node
        start, stop = (ZERO, given["start"]) if "stop" not in given else (given["start"], given["stop"])
        first = start if isinstance(start, Poly) else self.arithmetic.integer(start, node, "a bound of `np.arange`")
        last = self.arithmetic.integer(stop, node, "a bound of `np.arange`")
        step = self.arithmetic.integer(given["step"], node, "a step") if "step" in given else ONE
        if step.value is None or step.value <= 0:
            self.context.refuse("py-index", "the step of `np.arange` is a positive number", node)
        count = last - first if step == ONE else quotient("//", last - first + (step.value - 1), step.value)
        type_ = self.type(given["dtype"], node) if "dtype" in given else "i64"
        span = self.context.span(node)
        counted = Value(
            (count,), type_, lambda at: (first + step * at[0]).tree(span), own=False, weak=False, simple=True
        )
        view = self.new(counted.shape, type_, node)
        self.nests.store(view, "=", counted, node)
        return self.context.read(view, node)

    def joined(self, name: str, call: Call) -> Value:
        """`np.concatenate((a, b), axis)` and its kin: each part is copied into its place."""
        given = call.bound(self.context, ["arrays", "axis"] if name in ("concatenate", "stack") else ["arrays"], 1)
        node, arrays = call.node, given["arrays"]
        if not isinstance(arrays, Items) or not arrays.values:
            self.context.refuse("py-call", f"`np.{name}` is read with a tuple or list of arrays", node)
        parts = [self.arithmetic.value(v, node) for v in arrays.values]
        # `np.stack` joins along a new first axis, and so does `np.vstack` of vectors: each part becomes a row.
        if name == "stack" or (name == "vstack" and len(parts[0].shape) == 1):
            parts = [self.indexing.taken(p, [None, *(Part(ZERO, e) for e in p.shape)], node) for p in parts]
        rank = len(parts[0].shape)
        axis = 1 if name == "hstack" and rank > 1 else self.axes(given.get("axis", Whole(ZERO)), rank, node)[0]
        if name == "stack" and axis:
            self.context.refuse(
                "py-shape", "`np.stack` is read only along the first axis", node, "use `np.concatenate`"
            )
        if any(len(p.shape) != rank for p in parts) or not rank:
            self.context.refuse("py-shape", "these do not have the same number of dimensions", node)
        for p in parts[1:]:
            extents = enumerate(zip(p.shape, parts[0].shape, strict=True))
            if not all(k == axis or self.context.same(a, b) for k, (a, b) in extents):
                self.context.refuse("py-shape", "these do not have the same shape beside that axis", node)
        total = sum((p.shape[axis] for p in parts[1:]), parts[0].shape[axis])
        shape = (*parts[0].shape[:axis], total, *parts[0].shape[axis + 1 :])
        view = self.new(shape, self.arithmetic.common(parts)[0], node)
        whole, start = self.context.read(view, node), ZERO
        for p in parts:
            places = [Part(start if k == axis else ZERO, e) for k, e in enumerate(p.shape)]
            target = self.indexing.taken(whole, places, node).view
            assert target is not None
            self.store(target, "=", p, node)
            start += p.shape[axis]
        return whole

    def eye(self, call: Call) -> Value:
        """`np.eye(n)`."""
        given = call.bound(self.context, ["N", "dtype"], 1)
        n = self.arithmetic.integer(given["N"], call.node, "a size")
        type_ = self.type(given["dtype"], call.node) if "dtype" in given else "f64"
        found = self._made((n, n), type_, Whole(ZERO), call.node)
        diagonal = self.indexing.diagonal(found, call.node)
        assert diagonal.view is not None
        self.store(diagonal.view, "=", self.arithmetic.value(Whole(ONE), call.node), call.node)
        return found

    def triangle(self, call: Call, *, upper: bool) -> Value:
        """`np.triu(a, k)`, `np.tril(a, k)`: zeros, and the triangle copied row by row."""
        given = call.bound(self.context, ["m", "k"], 1)
        node = call.node
        value = self.arithmetic.value(given["m"], node)
        k = self.arithmetic.integer(given.get("k", Whole(ZERO)), node, "`k`")
        if len(value.shape) != 2 or not self.context.same(*value.shape) or k.value is None:
            self.context.refuse("py-shape", "a triangle is read only of a square matrix, with a number as `k`", node)
        n = value.shape[0]
        found = self._made(value.shape, value.type, Whole(ZERO), node)
        assert found.view is not None
        buffer, shift = found.view.buffer, k.value
        # only rows that are not empty, so that no bound needs a minimum
        rows = (ZERO, n - max(shift, 0)) if upper else (Poly.number(max(0, -shift)), n)
        if (upper and shift < 0) or (not upper and shift > 0):
            self.context.refuse("py-shape", "this triangle is more than half of the matrix", node)

        def write(at: Any) -> None:
            i = at[0] + rows[0]
            first, last = (i + shift, n) if upper else (ZERO, i + shift + 1)

            def element(inner: Any) -> None:
                j = inner[0] + first
                self.context.assign(buffer, (i, j), "=", value.at((i, j)), node)

            self.nests.nest((last - first,), [first], node, element)

        self.nests.nest((rows[1] - rows[0],), [rows[0]], node, write)
        return found
