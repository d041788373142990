"""The meaning of functions of numpy, math and Python itself: one row for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from roofdsl.frontends.einsum import EinsumError, parsed
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.calls import Call
from roofdsl.frontends.python.indexing import Part
from roofdsl.frontends.python.instead import instead, short
from roofdsl.frontends.python.statistics import Statistics
from roofdsl.frontends.python.types import NUMPY, kind
from roofdsl.frontends.python.values import ONE, ZERO, Constant, Extremum, Items, Value, Whole
from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import replace

Row = Callable[["Library", Call], Any]
_UNARY = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "tanh": "tanh", "sin": "sin", "cos": "cos", "abs": "abs",
    "absolute": "abs", "fabs": "abs", "conj": "conj", "conjugate": "conj", "real": "real", "imag": "imag",
}  # fmt: skip
_BINARY = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "power": "**", "float_power": "**",
}  # fmt: skip
_EXTREMA = {"maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min"}
_COMPARE = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}
_LOGIC = {"logical_and": "and", "logical_or": "or", "logical_not": "not"}
_MATH = {name: _UNARY[name] for name in ("sqrt", "exp", "log", "tanh", "sin", "cos", "fabs")}
_FILLED = ("zeros", "ones", "empty", "full")
_REDUCTIONS = {"sum": "+=", "prod": "*=", "max": "max=", "amax": "max=", "min": "min=", "amin": "min="}
NUMBERS = {"math.pi": math.pi, "math.e": math.e, "numpy.pi": math.pi, "numpy.e": math.e}


class Library(Statistics):
    """Calls functions of libraries."""

    def call(self, call: Call) -> Any:
        """The value of a call. Raises Refused."""
        name = call.name
        if name.startswith("numpy.") and (out := self._out(call)) is not None:
            return out
        if name in ROWS:
            return ROWS[name](self, call)
        if name.rpartition(".")[2] in NUMPY and name.startswith("numpy."):
            return self.converted(self.one(call, "x"), NUMPY[name.rpartition(".")[2]], call.node)
        self.context.refuse("py-call", f"`{short(name)}` is not supported", call.node, instead(name, list(ROWS)))

    def method(self, base: Any, call: Call) -> Any:
        """`base.name(...)` for a method that corresponds to numpy's function of the same name."""
        node = call.node
        value = self.arithmetic.shaped(base, node)
        if call.name in ("sum", "prod", "max", "min", "mean", "std", "var", "dot", "conj", "conjugate", "reshape",
                         "trace", "transpose", "copy", "clip", "swapaxes", "diagonal", "squeeze"):  # fmt: skip
            args = call.args
            if call.name in ("reshape", "transpose") and args and not isinstance(args[0], Items):
                args = (Items(args),)
            if call.name in ("conj", "conjugate") and kind(value.type) != "complex":
                return value  # numpy's method gives the array itself, unlike its function
            return self.call(Call(f"numpy.{call.name}", (value, *args), call.named, node))
        if call.name == "astype":
            call, shares = self.may_share(call)
            type_ = self.type(call.bound(self.context, ["dtype"], 1)["dtype"], node)
            return value if shares and type_ == value.type else self.converted(value, type_, node)
        if call.name == "fill":
            self.fill(value, call.bound(self.context, ["value"], 1)["value"], node)
            return Constant(None)
        if call.name in ("ravel", "flatten"):
            call.bound(self.context, [], 0)
            flat = self.indexing.reshaped(value, [self.size(value)], node)
            if not self.indexing.adjacent(value, range(len(value.shape)), innermost=True):
                flat = replace(flat, simple=False)  # `x[::2].ravel()` is a copy, unlike `x[::2].reshape(n)`
            return flat if call.name == "ravel" else self.nests.materialized(flat, node, self.wished(node), ("copy",))
        help = instead(f"numpy.{call.name}", list(ROWS))
        self.context.refuse("py-call", f"the method `{call.name}` is not supported", node, help)

    def converted(self, found: Any, type_: str, node: Any) -> Value:
        """`x.astype(type)`, `np.float32(x)`: a copy in another type."""
        value = self.arithmetic.value(found, node)
        if value.number is not None and kind(type_) == "float":
            value = self.arithmetic.constant(float(value.number.real), node)
        if kind(value.type) not in ("bool", kind(type_)) and (
            kind(type_) in ("int", "bool") or kind(value.type) == "complex"
        ):
            message = f"a conversion from {value.type} to {type_} changes values"
            self.context.refuse("py-type", message, node, "keep the type")
        if value.is_scalar:
            return self.nests.stored(value, type_, node, "cast")
        buffer = self.new(value.shape, type_, node, "converted")
        self.nests.store(buffer, "=", value, node)
        return self.context.read(buffer, node)

    def _out(self, call: Call) -> Any:
        """A call of a numpy function with `out=`, which stores its result; None without `out=`."""
        short = call.name.removeprefix("numpy.")
        known = {**_UNARY, **_BINARY, **_EXTREMA, **_COMPARE, **_LOGIC}
        arity = 1 if short in _UNARY or short in ("square", "negative", "logical_not", "reciprocal") else 2
        named = dict(call.named)
        out = named.pop("out", None)
        args = list(call.args)
        if short in (*known, "square", "negative", "reciprocal") and len(args) == arity + 1 and out is None:
            args, out = args[:arity], args[arity]
        if short in ("dot", "matmul") and len(args) == 3 and out is None:
            args, out = args[:2], args[2]
        if out is None or (isinstance(out, Constant) and out.value is None):
            return None
        value = self.arithmetic.value(out, call.node)
        if value.view is None or value.is_scalar:
            self.context.refuse("py-effect", "`out` is an array", call.node)
        result = self.arithmetic.value(self.call(Call(call.name, tuple(args), named, call.node)), call.node)
        if self.arithmetic.broadcast([value.shape, result.shape], call.node) != value.shape:
            self.context.refuse("py-shape", "the result does not have the shape of `out`", call.node)
        self.store(value.view, "=", result, call.node)
        return out

    # ---- rows ----

    def unary(self, name: str, call: Call, *, weak: bool) -> Any:
        return self.arithmetic.function(name, self.one(call, "x"), call.node, weak)

    def of_python(self, name: str, call: Call) -> Any:
        """A function of `math`: Python computes it in double precision, whatever the type of its argument is; numba in
        that type.
        """
        value = self.arithmetic.value(self.one(call, "x"), call.node)
        if value.is_scalar and value.type in ("f32", "f16") and not self.context.by_numba:
            value = self.as_float(replace(call, args=(value,), named={}))
        return self.arithmetic.function(name, value, call.node, weak=True)

    def binary(self, op: str, call: Call) -> Any:
        given = call.bound(self.context, ["x1", "x2"], 2)
        a, b = given["x1"], given["x2"]
        return self.arithmetic.operate(op, a, b, call.node)

    def two(self, call: Call) -> tuple[Any, Any]:
        """Two arguments."""
        given = call.bound(self.context, ["a", "b"], 2)
        return given["a"], given["b"]

    def where(self, call: Call) -> Value:
        if len(call.args) == 1 and not call.named:
            message = "which elements `np.where(mask)` finds depends on data"
            self.context.refuse("py-call", message, call.node, "write `np.where(mask, a, b)`")
        given = call.bound(self.context, ["condition", "x", "y"], 3)
        return self.arithmetic.select(given["condition"], given["x"], given["y"], call.node)

    def logic(self, op: str, call: Call) -> Any:
        given = call.bound(self.context, ["x"], 1) if op == "not" else call.bound(self.context, ["x1", "x2"], 2)
        return self.arithmetic.logic(op, list(given.values()), call.node)

    def clip(self, call: Call) -> Any:
        given = call.bound(self.context, ["a", "a_min", "a_max"], 1)
        found = given["a"]
        if "a_min" in given:
            found = self.arithmetic.extremum("max", [found, given["a_min"]], call.node)
        if "a_max" in given:
            found = self.arithmetic.extremum("min", [found, given["a_max"]], call.node)
        return found if len(given) > 1 else self.arithmetic.copied(self.arithmetic.value(found, call.node), call.node)

    def sized_extremum(self, op: str, call: Call) -> Any:
        """Python's own `min` and `max`."""
        if call.named or len(call.args) < 2:
            message = f"`{op}` is read with two values or more"
            self.context.refuse("py-call", message, call.node, f"write `np.{op}(x)` for an array")
        if all(isinstance(a, Whole | Extremum) for a in call.args):
            polys = [p for a in call.args for p in (a.polys if isinstance(a, Extremum) else (a.poly,))]
            if any(isinstance(a, Extremum) and a.op != op for a in call.args):
                self.context.refuse("py-loop", "`min` of `max` is not supported", call.node)
            if all(p.value is not None for p in polys):
                return Whole((min if op == "min" else max)(polys, key=lambda p: p.value or 0))
            return Extremum(op, tuple(dict.fromkeys(polys)))
        if any(isinstance(a, Value) and not a.is_scalar for a in call.args):
            self.context.refuse("py-type", f"`{op}` compares arrays as a whole", call.node, f"write `np.{op}imum`")
        return self.arithmetic.extremum(op, call.args, call.node)

    def outer(self, op: str, call: Call) -> Any:
        a, b = (self.arithmetic.shaped(v, call.node) for v in self.two(call))
        if len(a.shape) != 1 or len(b.shape) != 1:
            self.context.refuse("py-shape", "an outer product is read only of two vectors", call.node)
        column = self.indexing.taken(a, [Part(ZERO, a.shape[0]), None], call.node)
        return self.arithmetic.operate(op, column, b, call.node)

    def inner(self, call: Call) -> Any:
        a, b = (self.arithmetic.shaped(v, call.node) for v in self.two(call))
        if len(a.shape) != 1 or len(b.shape) != 1:
            self.context.refuse("py-shape", "`np.inner` is read only for two vectors", call.node, "use `@`")
        return self.reductions.matmul(a, b, call.node)

    def einsum(self, call: Call) -> Any:
        if not call.args or not isinstance(call.args[0], Constant) or not isinstance(call.args[0].value, str):
            self.context.refuse("py-call", "the first argument of `np.einsum` is its text", call.node)
        if set(call.named) - {"optimize"} or not isinstance(call.named.get("optimize", Constant(False)).value, bool):
            self.context.refuse("py-call", "`np.einsum` is read with its text and arrays only", call.node)
        values = [self.arithmetic.value(v, call.node) for v in call.args[1:]]
        try:
            inputs, out = parsed(call.args[0].value, [len(v.shape) for v in values])
        except EinsumError as error:
            raise Refused("py-call", str(error), call.node.args[0], error.help) from None
        pairs = list(zip(values, inputs, strict=True))
        return self.reductions.contract(pairs, out, call.node, "s" if not out else "t")

    def length(self, call: Call) -> Any:
        found = self.one(call, "x")
        if isinstance(found, Items):
            return Whole(Poly.number(len(found.values)))
        value = self.arithmetic.shaped(found, call.node)
        if value.is_scalar:
            self.context.refuse("py-shape", "a number has no length", call.node)
        return Whole(value.shape[0])

    def as_float(self, call: Call) -> Any:
        found = self.arithmetic.value(self.one(call, "x"), call.node)
        if not found.is_scalar or kind(found.type) in ("complex", "bool"):
            self.context.refuse("py-type", "`float` of this is not supported", call.node)
        if found.number is not None:
            return self.arithmetic.constant(float(found.number.real), call.node)
        if found.simple and not found.own:  # sizes and loop variables stay free (rule 2)
            return replace(found, type="f64")
        return replace(self.nests.stored(found, "f64", call.node, "cast"), weak=True)

    def as_int(self, call: Call) -> Any:
        found = self.one(call, "x")
        if isinstance(found, Whole):
            return found
        if isinstance(found, Value) and found.origins:
            self.context.learn_size(found.origins)
        help = "use `//` of sizes, and take computed integers as an argument"
        self.context.refuse("py-type", "`int` cuts digits off, which the language does not do", call.node, help)

    def square(self, call: Call) -> Any:
        value = self.simple(call)
        return self.arithmetic.operate("*", value, value, call.node)

    def float_power(self, call: Call) -> Any:
        """A power that numpy computes in double precision whatever the operands are."""
        found = self.arithmetic.value(self.binary("**", call), call.node)
        if found.number is None and found.type not in ("f64", "c128"):
            message = f"`np.float_power` of {found.type} is computed in double precision"
            self.context.refuse("py-type", message, call.node, "write `np.power`, or convert with `astype`")
        return found

    def power(self, call: Call) -> Any:
        given = call.bound(self.context, ["x", "y"], 2)
        return self.arithmetic.operate("**", given["x"], given["y"], call.node)


def _each(form: str, words: Mapping[str, str], row: Callable[[Library, str, Call], Any]) -> dict[str, Row]:
    """Rows of functions with the same translation, each with its own word."""

    def made(word: str) -> Row:
        return lambda lib, call: row(lib, word, call)

    return {form.format(name): made(word) for name, word in words.items()}


def _own(*names: str) -> dict[str, str]:
    return {name: name for name in names}


ROWS: dict[str, Row] = {
    **_each("numpy.{}", _UNARY, lambda lib, word, call: lib.unary(word, call, weak=False)),
    **_each("math.{}", _MATH, lambda lib, word, call: lib.of_python(word, call)),
    **_each("numpy.{}", _BINARY, lambda lib, word, call: lib.binary(word, call)),
    **_each("numpy.{}.outer", _BINARY, lambda lib, word, call: lib.outer(word, call)),
    **_each("numpy.{}", _EXTREMA, lambda lib, word, call: lib.arithmetic.extremum(word, lib.two(call), call.node)),
    **_each("numpy.{}", _COMPARE, lambda lib, word, call: lib.arithmetic.compare(word, *lib.two(call), call.node)),
    **_each("numpy.{}", _LOGIC, lambda lib, word, call: lib.logic(word, call)),
    **_each("numpy.{}", _REDUCTIONS, lambda lib, word, call: lib.reduction(word, call)),
    **_each("numpy.{}", _own("copy", "array"), lambda lib, _, call: lib.copy(call)),
    **_each("numpy.{}", _own("asarray", "ascontiguousarray"), lambda lib, _, call: lib.same(call)),
    **_each("numpy.{}", _own(*_FILLED, "ndarray"), lambda lib, word, call: lib.filled(word, call)),
    **_each("numpy.{}_like", _own(*_FILLED), lambda lib, word, call: lib.like(word, call)),
    **_each(
        "numpy.{}", _own("concatenate", "hstack", "vstack", "stack"), lambda lib, word, call: lib.joined(word, call)
    ),
    **_each("{}", _own("min", "max"), lambda lib, word, call: lib.sized_extremum(word, call)),
    "math.pow": Library.power,
    "numpy.float_power": Library.float_power,
    "numpy.square": Library.square,
    "numpy.negative": lambda lib, call: lib.arithmetic.negative(lib.one(call, "x"), call.node),
    "numpy.reciprocal": lambda lib, call: lib.arithmetic.operate("/", Whole(ONE), lib.one(call, "x"), call.node),
    "numpy.where": Library.where,
    "numpy.clip": Library.clip,
    "numpy.mean": Library.mean,
    "numpy.std": lambda lib, call: lib.variance(call, root=True),
    "numpy.var": lambda lib, call: lib.variance(call, root=False),
    "numpy.linalg.norm": Library.norm,
    "numpy.outer": lambda lib, call: lib.outer("*", call),
    "numpy.inner": Library.inner,
    "numpy.dot": lambda lib, call: lib.reductions.dot(*lib.values(call), call.node),
    "numpy.matmul": lambda lib, call: lib.reductions.matmul(*lib.values(call), call.node),
    "numpy.einsum": Library.einsum,
    "numpy.flip": Library.flip,
    "numpy.transpose": Library.transpose,
    "numpy.swapaxes": Library.swapaxes,
    "numpy.reshape": Library.reshape,
    "numpy.expand_dims": Library.newaxis,
    "numpy.squeeze": Library.squeeze,
    "numpy.trace": Library.trace,
    "numpy.diagonal": Library.diagonal,
    "numpy.diag": Library.diagonal,
    "numpy.arange": Library.arange,
    "numpy.eye": Library.eye,
    "numpy.identity": Library.eye,
    "numpy.triu": lambda lib, call: lib.triangle(call, upper=True),
    "numpy.tril": lambda lib, call: lib.triangle(call, upper=False),
    "len": Library.length,
    "abs": lambda lib, call: lib.unary("abs", call, weak=True),
    "sum": lambda lib, call: lib.reductions.reduce(lib.vector(call), [0], "+=", call.node),
    "float": Library.as_float,
    "int": Library.as_int,
    "pow": Library.power,
}
"""By full name: the translation of a call."""
