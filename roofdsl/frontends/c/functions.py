"""Calls of C's library: the functions that the language has too, in the type that C computes them in."""

from __future__ import annotations

from typing import Any, Protocol

from roofdsl.frontends.c.c_types import is_integer
from roofdsl.frontends.c.context import Context, Value
from roofdsl.frontends.c.static_types import FUNCTIONS
from roofdsl.frontends.c.writing import word
from roofdsl.frontends.operators import grouped
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree

_OF_COMPLEX = ("conj", "creal", "cimag", "cabs")


class Reader(Protocol):
    """Reads values."""

    def value(self, node: Any) -> Value: ...

    def operate(self, op: str, a: Value, b: Value, node: Any) -> Value: ...

    def exact(self, value: Value, type_: str, node: Any) -> None: ...


class Functions:
    """Reads calls of the library."""

    def __init__(self, context: Context, values: Reader) -> None:
        self.context, self.values = context, values

    def value(self, name: str, node: Any) -> Value:
        """The call of a library function. Raises Refused for one that the language does not have."""
        args = list(node.args.exprs) if node.args is not None else []
        if name in ("pow", "powf") and len(args) == 2:
            return self._power(name, args, node)
        if name in ("fma", "fmaf") and len(args) == 3:
            type_ = "f32" if name[-1] == "f" else "f64"
            a, b, c = (self._argument(v, type_, node, integers=True) for v in args)
            return self.values.operate("+", self.values.operate("*", a, b, node), c, node)
        if name in ("abs", "labs") and len(args) == 1:
            return self._integer(name, args[0], node)
        return self._of_floats(name, args, node)

    def _integer(self, name: str, arg: Any, node: Any) -> Value:
        """`abs(k)` and `labs(k)` of integer data."""
        value, span = self.values.value(arg), self.context.spans(node)
        if value.own is None or not is_integer(value.own):
            what = "an index is not affine" if value.own is None else f"a {word(value.own)} drops its fraction"
            help = "split the loop" if value.own is None else "write `fabs`"
            raise Refused("c-type", f"`{name}` of {what}", node, help)
        if name == "abs" and value.own == "i64":
            raise Refused("c-type", "`abs` makes an int of a long", node, "write `labs`")
        return Value(value.type, value.own, tree.Call(tree.Name("abs", span), (value.written(span),), span))

    def _of_floats(self, name: str, args: list[Any], node: Any) -> Value:
        """`sqrt`, `sqrtf` and the like: the `f` at the end is the type, not a part of the name."""
        single = name not in FUNCTIONS and name.endswith("f")
        stem = name[:-1] if single else name
        known = FUNCTIONS.get(stem)
        if known is None:
            listed = "sqrt, exp, log, tanh, sin, cos, fabs, fmin, fmax, pow(x, 2) and those of this file"
            raise Refused("c-call", f"the function `{name}` is not known", node, f"the functions are {listed}")
        real, complex_ = ("f32", "c64") if single else ("f64", "c128")
        values = [self._argument(v, complex_ if stem in _OF_COMPLEX else real, node) for v in args]
        type_ = complex_ if stem == "conj" else real  # the parts and the absolute value of a complex number are real
        own = None if all(v.own is None for v in values) else type_
        span = self.context.spans(node)
        return Value(type_, own, tree.Call(tree.Name(known, span), tuple(v.written(span) for v in values), span))

    def _argument(self, node: Any, type_: str, call: Any, *, integers: bool = False) -> Value:
        """An argument of a library function, which computes in `type_`. Raises Refused for another type.

        integers: whether the language, too, converts an integer to that type.
        """
        value = self.values.value(node)
        self.values.exact(value, type_, node)
        converted = integers and value.own is not None and is_integer(value.own)
        if value.own is not None and value.own != type_ and not converted:
            message = f"this function computes in {word(type_)}, and its argument is {word(value.own)}"
            help = "write `sqrtf`, `expf`, ... for float" if type_ == "f64" else "use one type for all operands"
            raise Refused("c-type", message, call, help)
        return Value(type_, value.own, value.written(self.context.spans(node)))

    def _power(self, name: str, args: list[Any], node: Any) -> Value:
        exponent = self.values.value(args[1])
        number = exponent.expr.value if isinstance(exponent.expr, tree.Number) else None
        if exponent.poly is not None:
            number = exponent.poly.value
        if number != 2:
            help = "write `x * x * x` for `pow(x, 3)`, `sqrt(x)` for `pow(x, 0.5)`, `exp(y * log(x))` for `pow(x, y)`"
            raise Refused("c-call", f"`{name}` is supported with the exponent 2 only", node, help)
        base = self._argument(args[0], "f32" if name[-1] == "f" else "f64", node)
        span = self.context.spans(node)
        written = tree.Binary("**", grouped(base.written(span), 5), tree.Number("2", 2, span), span)
        return Value(base.type, base.own, written)
