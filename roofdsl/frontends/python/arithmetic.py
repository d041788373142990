"""Operators, functions and conditions of numbers and arrays."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from roofdsl.frontends.operators import binary, grouped
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.python.elementwise import Build, Elementwise
from roofdsl.frontends.python.select import chosen
from roofdsl.frontends.python.types import kind
from roofdsl.frontends.python.values import Constant, Known, Value, Whole
from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.lang.types import TYPES

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
}  # fmt: skip
_TURNED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


class Arithmetic(Elementwise):
    """Operations on values."""

    # ---- operators ----

    def operate(self, op: str, left: Any, right: Any, node: ast.AST) -> Any:
        """`left op right`, op one of + - * / // % **."""
        if isinstance(left, Whole) and isinstance(right, Whole):
            return self._integers(op, left.poly, right.poly, node)
        a, b = self.value(left, node), self.value(right, node)
        if a.number is not None and b.number is not None and op in _FOLD:
            return self._folded(op, a.number, b.number, node)
        if op in ("//", "%"):
            if a.origins | b.origins and all(o.origins or isinstance(x, Whole) for o, x in ((a, left), (b, right))):
                self.context.learn_size(a.origins | b.origins)
            help = "divide sizes and loop variables only, or use `/`"
            self.context.refuse("py-type", f"`{op}` of computed values is not part of the language", node, help)
        if op == "**":
            return self.power(a, b, right, node)
        type_, weak = self.common([a, b])
        if kind(type_) == "bool":
            self.context.refuse("py-type", f"`{op}` of truth values is not supported", node, "use `np.where`")
        if type_ in ("i8", "i16"):
            message = f"{type_} arithmetic wraps around in numpy"
            self.context.refuse("py-type", message, node, "use i32, i64 or floating point")
        if op == "/" and kind(type_) == "int":
            if a.own or b.own:
                message = "`/` of integers gives floating point in numpy, and an integer in the language"
                self.context.refuse("py-type", message, node, "use arrays of floating-point numbers")
            type_ = "f64"
        self.context.exact &= kind(type_) != "complex" and type_ != "f16"
        a, b = self.fitted([a, b], type_, node)
        span = self.context.span(node)
        return self.elementwise(lambda x, y: binary(op, x, y, span), [a, b], type_, node, weak=weak)

    def _folded(self, op: str, a: Any, b: Any, node: ast.AST) -> Value:
        try:
            return self.constant(_FOLD[op](a, b), node)
        except (ArithmeticError, ValueError):
            self.context.refuse("py-type", "this has no value", node)

    def _integers(self, op: str, a: Poly, b: Poly, node: ast.AST) -> Any:
        if op == "+":
            return Whole(a + b)
        if op == "-":
            return Whole(a - b)
        if op == "*":
            return Whole(a * b)
        if op in ("//", "%"):
            if b.value is None or b.value <= 0:
                message = f"`{op}` divides by a positive number only"
                help = "write a number, or take the quotient as an argument"
                if op == "%" and b.value is None:
                    help = "write the iterations at the ends apart, as in `y[n - 1] = x[0]`"
                self.context.refuse("py-index", message, node, help)
            return Whole(quotient(op, a, b.value))
        if op == "**" and b.value is not None and 0 <= b.value <= 64:
            found = Poly.number(1)
            for _ in range(b.value):
                found *= a
            return Whole(found)
        if a.value is not None and b.value is not None and op in _FOLD:
            return self._folded(op, a.value, b.value, node)
        if op == "/":
            span = self.context.span(node)
            return Value((), "f64", lambda _: binary("/", a.tree(span), b.tree(span), span), weak=True, own=False)
        self.context.refuse("py-index", "this power does not follow from sizes", node, "write a number as exponent")

    def power(self, a: Value, b: Value, exponent: Any, node: ast.AST) -> Value:
        """`a ** b`: products, a root, a quotient, or the exponential function if the base is a number."""
        span = self.context.span(node)
        p = b.number
        if p is None and a.number is not None and a.number > 0 and a.number != 1:  # type: ignore[operator]
            factor = self.operate("*", self.constant(math.log(float(a.number)), node), b, node)  # type: ignore[arg-type]
            return self.function("exp", factor, node)
        if p is not None and p == 0.5:
            return self.function("sqrt", a, node, weak=a.weak)
        if p is None or p != int(p.real) or abs(p) > 64:
            help = "write `np.exp(y * np.log(x))` if x is positive"
            self.context.refuse("py-type", "an exponent is an integer from -64 to 64, or 0.5", node, help)
        type_ = self.common([a, b])[0]
        if a.type == "bool" or type_ in ("i8", "i16") or (p < 0 and kind(type_) == "int"):  # type: ignore[operator]
            self.context.refuse("py-type", f"this power of {a.type} is not supported", node, "use floating point")
        (a,) = self.fitted([a], type_, node)
        self.context.exact &= abs(p) <= 2 and kind(a.type) != "complex" and not a.is_scalar  # numpy's scalars use `pow`
        whole = tree.Number(str(abs(int(p.real))), abs(int(p.real)), span)
        found = self.elementwise(lambda x: binary("**", x, whole, span), [a], type_, node, weak=a.weak)
        return found if p.real >= 0 else self.operate("/", self.constant(1, node), found, node)

    def negative(self, found: Any, node: ast.AST) -> Any:
        """`-x`."""
        if isinstance(found, Whole):
            return Whole(-found.poly)
        a = self.value(found, node)
        if a.number is not None:
            return self.constant(-a.number, node)
        if kind(a.type) == "bool":
            self.context.refuse("py-type", "`-` of truth values is not supported", node, "use `np.logical_not`")
        span = self.context.span(node)
        more = {"weak": a.weak, "simple": a.simple and a.is_scalar}
        return self.elementwise(lambda x: tree.Unary("-", grouped(x, 3), span), [a], a.type, node, **more)

    def function(self, name: str, found: Any, node: ast.AST, weak: bool = False) -> Value:
        """A function of the language, applied to one value."""
        a = self.value(found, node)
        if name in ("real", "imag", "conj") and kind(a.type) != "complex":
            if name == "imag":
                return self.constant(0, node)
            return a if name == "real" else self.copied(a, node)
        self.context.exact &= name in ("sqrt", "real", "imag", "conj", "abs") and kind(a.type) != "complex"
        real = name in ("abs", "real", "imag") and kind(a.type) == "complex"
        if kind(a.type) in ("int", "bool") and name != "abs":
            if a.own or a.type == "bool":
                message = f"`{name}` of integers is computed in floating point"
                self.context.refuse("py-type", message, node, "use arrays of floating-point numbers")
            a = Value(a.shape, "f64", a.at, weak=True, own=False, simple=a.simple)
        elif kind(a.type) == "complex" and name not in ("abs", "real", "imag", "conj"):
            self.context.refuse("py-type", f"`{name}` of complex values is not part of the language", node)
        # `z.real` shows what `z` has later, too; a number taken from it does not.
        is_part = name in ("real", "imag") and a.simple and not a.is_scalar
        plain = a.is_scalar and not a.own  # numbers and loop variables: their functions are free (rule 2)
        if not a.own and not plain:
            a = replace(self.nests.stored(a, "f64", node, name), weak=a.weak)
        span = self.context.span(node)
        type_ = TYPES[a.type].component.name if real else a.type
        build = lambda x: tree.Call(tree.Name(name, span), (x,), span)  # noqa: E731
        value: Value = self.elementwise(
            build, [a], type_, node, weak=weak and a.weak, simple=is_part or (plain and a.simple)
        )
        if plain and not value.weak:  # a number of numpy, which has a type of its own
            value = replace(self.nests.stored(value, "f64", node, name), weak=False)
        return value

    def extremum(self, name: str, operands: Sequence[Any], node: ast.AST) -> Value:
        """`min` or `max` of values, element by element."""
        given = [self.value(o, node) for o in operands]
        type_, weak = self.common(given)
        if kind(type_) in ("complex", "bool"):
            self.context.refuse("py-type", f"`{name}` of {type_} values is not supported", node)
        given = self.fitted(given, type_, node)
        span = self.context.span(node)
        build = lambda *x: tree.Call(tree.Name(name, span), x, span)  # noqa: E731
        return self.elementwise(build, given, type_, node, weak=weak)

    # ---- conditions ----

    def compare(self, op: str, left: Any, right: Any, node: ast.AST) -> Any:
        """A comparison: `Known` of integers that are known, else a truth value for each element."""
        if isinstance(left, Constant) or isinstance(right, Constant):
            plain = [x.value for x in (left, right) if isinstance(x, Constant)]
            if op in ("==", "!=") and len(plain) == 2:
                return Constant((plain[0] == plain[1]) == (op == "=="))
        if isinstance(left, Whole) and isinstance(right, Whole):
            return self._known(op, left.poly, right.poly, node)
        a, b = self.value(left, node), self.value(right, node)
        for o, other in ((a, right), (b, left)):
            if o.origins and isinstance(other, Whole) and other.poly.names:
                self.context.learn_size(o.origins)
        weak = a.weak and b.weak and a.is_scalar and b.is_scalar  # Python's own truth value
        type_, _ = self.common([a, b])
        if kind(type_) == "bool" or (kind(type_) == "complex" and op not in ("==", "!=")):
            self.context.refuse("py-condition", f"`{op}` of {type_} values is not supported", node)
        a, b = self.fitted([a, b], type_, node)
        if not a.own and not b.own:
            a = self.nests.stored(a, "f64", node, "left")
        span = self.context.span(node)
        return self.elementwise(
            lambda x, y: tree.Compare(x, ((op, y),), span), [a, b], "bool", node, own=True, weak=weak
        )

    def _known(self, op: str, a: Poly, b: Poly, node: ast.AST) -> Known:
        context, span = self.context, self.context.span(node)
        difference = a - b
        written = tree.Compare(a.tree(span), ((op, b.tree(span)),), span)
        holds, fails = _differences(op, difference)
        if all(context.proven(h) for h in holds) and holds:
            return Known(written, True, holds, fails)
        if all(context.proven(f) for f in fails) and fails:
            return Known(written, False, holds, fails)
        if difference.value is not None:
            return Known(written, _FOLD_COMPARE[op](difference.value, 0), holds, fails)
        if not difference.is_affine_in(r.var for r in context.facts.ranges):
            message = "a condition on loop variables is affine, and this is not"
            context.refuse("py-condition", message, node, "compare sums of loop variables and sizes")
        return Known(written, None, holds, fails)

    def select(self, condition: Any, left: Any, right: Any, node: ast.AST) -> Value:
        """`np.where(condition, left, right)`."""
        a, b = self.value(left, node), self.value(right, node)
        type_, weak = self.common([a, b])
        if type_ == "bool":
            self.context.refuse("py-type", "a choice between truth values is not supported", node)
        a, b = self.fitted([a, b], type_, node)
        c = self.truth(condition, node)
        span = self.context.span(node)
        build = lambda c, x, y: chosen(self.context, c, x, y, span)  # noqa: E731
        own = a.own or b.own
        return self.elementwise(build, [c, a, b], type_, node, weak=weak, own=own)

    def truth(self, found: Any, node: ast.AST) -> Value:
        """The truth value of each element."""
        if isinstance(found, Known):
            message = "a condition on sizes and loop variables decides between statements, not between values"
            self.context.refuse("py-condition", message, node, "write `if` and `else`")
        value = self.value(found, node)
        return value if value.type == "bool" else self.compare("!=", value, Whole(Poly.number(0)), node)

    def logic(self, op: str, parts: Sequence[Any], node: ast.AST) -> Any:
        """`and`, `or`, `not` of conditions."""
        span = self.context.span(node)
        given = [self.truth(p, node) for p in parts]
        if op == "not":
            build: Build = lambda x: tree.Unary("not", tree.Group(x, span), span)  # noqa: E731
            return self.elementwise(build, given, "bool", node, own=True)

        def join(*conditions: tree.Expr) -> tree.Expr:
            found = conditions[0]
            for c in conditions[1:]:
                right = tree.Group(c, span) if isinstance(c, tree.Logic) else c
                found = tree.Logic(op, tree.Group(found, span) if _other(found, op) else found, right, span)
            return found

        weak = any(isinstance(p, Known) or (isinstance(p, Value) and p.weak) for p in parts)
        return self.elementwise(join, given, "bool", node, own=True, weak=weak and all(v.is_scalar for v in given))


_FOLD_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _other(e: tree.Expr, op: str) -> bool:
    return isinstance(e, tree.Logic) and e.op != op


def _differences(op: str, d: Poly) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
    """The values that are nonnegative if `d op 0` holds, and those that are if it does not."""
    at_least: dict[str, tuple[Poly, ...]] = {
        "<": (-d - 1,), "<=": (-d,), ">": (d - 1,), ">=": (d,), "==": (d, -d), "!=": (),
    }  # fmt: skip
    return at_least[op], at_least[_TURNED[op]]
