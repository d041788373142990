"""Values computed element by element: shapes and types as numpy has them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.context import Again, Context
from roofdsl.frontends.python.instead import short
from roofdsl.frontends.python.nests import Nests, aligned
from roofdsl.frontends.python.select import chosen
from roofdsl.frontends.python.types import kind, promoted, with_weak
from roofdsl.frontends.python.values import ONE, Constant, Extremum, Items, Known, Named, Shape, Unknown, Value, Whole
from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.lang.source import Span
from roofdsl.lang.types import TYPES, ElementType, widest

Build = Callable[..., tree.Expr]
LARGEST = 2**63 - 1
_NARROWER = {"f64": ("f32", "f16"), "c128": ("c64",)}
"""The types of arrays that a Python number of this type takes."""


def number(value: float, span: Span) -> tree.Expr:
    """A number as an expression of the language."""
    text = repr(abs(value))
    written = tree.Number(text, abs(value), span)
    return tree.Unary("-", written, span) if value < 0 or (value == 0 and math.copysign(1, value) < 0) else written


class Elementwise:
    """Makes values of values."""

    def __init__(self, context: Context, nests: Nests) -> None:
        self.context, self.nests = context, nests

    # ---- what a value is ----

    def value(self, found: Any, node: ast.AST) -> Value:
        """An integer, number or array as a value. Raises Refused for anything else."""
        refuse, span = self.context.refuse, self.context.span(node)
        match found:
            case Value():
                return found
            case Whole(poly):
                if poly.value is not None:
                    return self.constant(poly.value, node)
                return Value((), "i64", lambda _: poly.tree(span), weak=True, own=False, simple=True)
            case Constant(bool(value)):
                return self.constant(int(value), node)
            case Unknown(why, key):
                if key is not None and key not in self.context.learnt.data:
                    self.context.learnt.data.add(key)
                    raise Again
                refuse("py-name", f"the value is not known here: {why}", node)
            case Items():
                refuse("py-type", "a tuple or list is not a number or an array", node, "use numpy's arrays")
            case Extremum():
                refuse("py-condition", "`min` or `max` of sizes is supported only as a bound of `range`", node)
            case Known():
                refuse("py-condition", "a condition on sizes is not a number", node, "write `if` and `else`")
            case Named(name):
                refuse("py-type", f"`{short(name)}` is not a number or an array", node, "call functions with `(...)`")
            case _:
                refuse("py-type", "this is not a number or an array", node, "compute with numbers and arrays")

    def shaped(self, found: Any, node: ast.AST) -> Value:
        """A value whose dimensions matter. Raises Refused for an argument about which nothing is known."""
        value = self.value(found, node)
        if value.is_scalar and value.origins:
            name = min(value.origins)
            help = f'write `{name}: f64["n", "m"]`, or give `--shape {name}=n,m`'
            self.context.refuse("py-shape", f"the shape of `{name}` is not known", node, help)
        return value

    def constant(self, value: complex, node: ast.AST) -> Value:
        """A plain number."""
        span = self.context.span(node)
        if isinstance(value, complex):
            message = "the language has no complex numbers in its text"
            self.context.refuse("py-type", message, node, "make it an argument of the function")
        if not math.isfinite(value) or (isinstance(value, int) and abs(value) > LARGEST):
            self.context.refuse("py-type", "the language has no such number", node, "use a finite number below 2**63")
        type_ = "i64" if isinstance(value, int) else "f64"
        return Value((), type_, lambda _: number(value, span), weak=True, own=False, simple=True, number=value)

    def integer(self, found: Any, node: ast.AST, what: str) -> Poly:
        """A known integer. Raises Refused, or Again if an argument turns out to be one."""
        if isinstance(found, Constant) and isinstance(found.value, bool):
            found = Whole(Poly.number(int(found.value)))
        if isinstance(found, Whole):
            return found.poly
        if isinstance(found, Value) and found.origins:
            self.context.learn_size(found.origins)
        if isinstance(found, Unknown):
            self.context.refuse("py-index", f"{what} is not known here: {found.why}", node)
        if isinstance(found, Value) and kind(found.type) == "float" and found.is_scalar:
            self.context.refuse("py-index", f"{what} is an integer, but this is floating point", node, "use `//`")
        help = "take it as an argument; bounds in an array need a .roof kernel with an index array (docs/sparse.md)"
        self.context.refuse("py-index", f"{what} does not follow from sizes and loop variables", node, help)

    # ---- element by element ----

    def elementwise(self, build: Build, operands: Sequence[Value], type_: str, node: ast.AST, **more: Any) -> Value:
        """A value whose elements `build` makes from those of the operands, which are broadcast as in numpy."""
        shape = self.broadcast([o.shape for o in operands], node)
        given = [self._once(o, shape, node, k) for k, o in enumerate(operands)]
        origins = frozenset[str]().union(*(o.origins for o in operands))

        def at(indices: Sequence[Poly]) -> tree.Expr:
            return build(*(o.at(aligned(indices, shape, o.shape)) for o in given))

        more.setdefault("own", any(o.own for o in given))
        return Value(shape, type_, at, origins=origins, **more)

    def copied(self, value: Value, node: ast.AST) -> Value:
        """What numpy gives as a new array, such as `+x` and `np.conj(x)`; a number as it is."""
        if value.is_scalar:
            return value
        return self.elementwise(lambda x: x, [value], value.type, node, weak=value.weak)

    def _once(self, operand: Value, shape: Shape, node: ast.AST, k: int) -> Value:
        """An operand that is computed once, and not once for every element that it is combined with."""
        if operand.simple or operand.shape == shape or (operand.type == "bool" and operand.is_scalar):
            return operand
        if operand.is_scalar and not operand.own:
            return self.nests.stored(operand, "f64" if kind(operand.type) == "float" else operand.type, node, k)
        return self.nests.materialized(operand, node, "c" if operand.is_scalar else "t", ("once", k))

    def broadcast(self, shapes: Sequence[Shape], node: ast.AST) -> Shape:
        """The common shape. Raises Refused if there is none."""
        found: list[Poly] = []
        for k in range(max(map(len, shapes), default=0)):
            extents = [s[-1 - k] for s in shapes if len(s) > k]
            wide = [e for e in extents if e != ONE] or [ONE]
            for other in wide[1:]:
                if not self.context.same(wide[0], other):
                    message = f"these do not have the same shape: {wide[0]} and {other} elements"
                    help = "say that sizes are equal by giving them the same name" if (wide[0] - other).names else ""
                    if len(set(map(len, shapes))) > 1:
                        help = "numpy lines up the last axes; `x[:, None]` lines up `x` with the first one"
                    self.context.refuse("py-shape", message, node, help)
            found.insert(0, wide[0])
        return tuple(found)

    # ---- types ----

    def common(self, operands: Sequence[Value]) -> tuple[str, bool]:
        """The type in which numpy computes, and whether it is one of Python's numbers."""
        strong = [o.type for o in operands if not o.weak]
        weak = [o.type for o in operands if o.weak]
        if not strong:
            found = weak[0]
            for t in weak[1:]:
                found = promoted(found, t)
            return found, True
        found = strong[0]
        for t in strong[1:]:
            found = promoted(found, t)
        for t in weak:
            found = with_weak(found, t)
        return found, False

    def fitted(self, operands: Sequence[Value], type_: str, node: ast.AST) -> list[Value]:
        """The operands, converted so that the language computes in the type in which numpy computes."""
        found = [self._fit(o, type_, node, k) for k, o in enumerate(operands)]
        joined = _joined(found, type_)
        if joined.name != type_ and kind(joined.name) == "int" and kind(type_) == "float":  # numbers are floats, too
            found = [
                o if o.own or kind(o.type) == "int" else self.nests.stored(o, "f64", node, k)
                for k, o in enumerate(found)
            ]
            joined = _joined(found, type_)
        if joined.name == type_ or (kind(type_) == "complex" and joined is TYPES[type_].component):
            return found
        message = f"numpy computes this in {type_}, and the language in {joined.name}"
        self.context.refuse("py-type", message, node, "use one type, such as `x.astype(...)` before the loop")

    def _fit(self, o: Value, type_: str, node: ast.AST, k: int) -> Value:
        if o.type == "bool":
            span = self.context.span(node)
            one, zero = tree.Number("1", 1, span), tree.Number("0", 0, span)
            build = lambda c: chosen(self.context, c, one, zero, span)  # noqa: E731
            return self.elementwise(build, [o], "i64", node, weak=True, own=False)
        if not o.own:
            if o.simple or type_ == o.type:
                return o
            o = replace(self.nests.stored(o, "f64", node, k), weak=o.weak)
        if not o.weak or type_ == o.type:
            return o
        argument = o.view.buffer if o.view is not None and o.view.buffer.place == "argument" else None
        if argument is not None and argument.name not in self.context.learnt.mixed:
            key = self.context.frames[0].key(argument.name)
            if type_ in _NARROWER.get(o.type, ()):
                self.context.learnt.types[key] = (type_, True)
                raise Again
            if o.type in ("f32", "f16", "c64"):
                self.context.learnt.mixed.add(argument.name)
                raise Again
        wanted = TYPES[type_].component.name if kind(type_) == "complex" and kind(o.type) == "float" else type_
        if kind(o.type) in ("float", "complex") and kind(o.type) == kind(wanted) and o.type != wanted:
            return self.nests.stored(o, wanted, node, k)
        return o


def _joined(operands: Sequence[Value], otherwise: str) -> ElementType:
    """The type in which the language computes."""
    own = [TYPES[o.type] for o in operands if o.own]
    joined = own[0] if own else TYPES[otherwise]
    for t in own[1:]:
        joined = widest(joined, t)
    return joined
