"""Reads expressions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.arithmetic import Arithmetic
from roofdsl.frontends.python.calls import Call
from roofdsl.frontends.python.conditions import decided, inverted, joined
from roofdsl.frontends.python.context import BUILT_IN, Again, Carried, Context, Let
from roofdsl.frontends.python.indexing import Indexing, Slice
from roofdsl.frontends.python.library import NUMBERS, Library
from roofdsl.frontends.python.nests import Nests
from roofdsl.frontends.python.reductions import Reductions
from roofdsl.frontends.python.types import NUMPY, PYTHON
from roofdsl.frontends.python.values import (
    Constant,
    Function,
    Items,
    Known,
    Method,
    Named,
    TypeName,
    Unknown,
    Value,
    Whole,
)  # fmt: skip
from roofdsl.lang import tree
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import replace

_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_BITS = "bit operations are not part of the language"
_NO: dict[type[ast.AST], tuple[str, str, str]] = {
    ast.Lambda: ("py-call", "a `lambda` is not supported", "write a function with `def`"),
    ast.ListComp: ("py-statement", "a list comprehension is not supported", "write a loop over an array"),
    ast.SetComp: ("py-statement", "a set is not supported", "write a loop over an array"),
    ast.DictComp: ("py-statement", "a dictionary is not supported", "write a loop over an array"),
    ast.GeneratorExp: ("py-statement", "a generator is not supported", "write a loop over an array"),
    ast.Yield: ("py-statement", "`yield` is not supported", "return an array"),
    ast.YieldFrom: ("py-statement", "`yield` is not supported", "return an array"),
    ast.Await: ("py-statement", "`await` is not supported", "write a plain function"),
    ast.NamedExpr: ("py-effect", "an assignment inside an expression is not supported", "write two statements"),
    ast.Dict: ("py-type", "a dictionary is not supported", "use arrays"),
    ast.Set: ("py-type", "a set is not supported", "use arrays"),
    ast.JoinedStr: ("py-type", "a text is not supported here", "leave it out"),
    ast.Starred: ("py-call", "`*` before an argument is not supported", "write the arguments"),
}


class Expressions:
    """Evaluates expressions, and writes the statements that they need beforehand."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.nests = Nests(context)
        self.arithmetic = Arithmetic(context, self.nests)
        self.indexing = Indexing(context, self.arithmetic)
        self.reductions = Reductions(context, self.nests, self.arithmetic)
        self.library = Library(context, self.nests, self.arithmetic, self.indexing, self.reductions)
        # Reads a call of a function of the file; statements set it, since they read what that function does.
        self.follow: Callable[[ast.FunctionDef, Sequence[Any], dict[str, Any], ast.Call], Any]

    def named(self, node: ast.expr, wish: str) -> Any:
        """The value of an expression; an array that it makes is called `wish`."""
        before = self.context.root, self.context.wish
        self.context.root, self.context.wish = node, wish
        try:
            return self.read(node)
        finally:
            self.context.root, self.context.wish = before

    def value(self, node: ast.expr) -> Value:
        """The value of an expression that is a number or an array."""
        return self.arithmetic.value(self.read(node), node)

    def integer(self, node: ast.expr, what: str) -> Poly:
        """The value of an expression that is a known integer."""
        return self.arithmetic.integer(self.read(node), node, what)

    def read(self, node: ast.expr) -> Any:
        """The meaning of an expression. Raises Refused."""
        match node:
            case ast.Constant(value):
                return self._constant(value, node)
            case ast.Name(name):
                return self.lookup(name, node)
            case ast.BinOp(left, op, right):
                return self._binary(left, op, right, node)
            case ast.UnaryOp(op, operand):
                return self._unary(op, operand, node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp(op, values):
                return self._logic("and" if isinstance(op, ast.And) else "or", [self.read(v) for v in values], node)
            case ast.IfExp(test, body, orelse):
                return self._choice(test, body, orelse, node)
            case ast.Subscript(base, index):
                return self._subscript(base, index, node)
            case ast.Attribute(base, name):
                return self._attribute(base, name, node)
            case ast.Call():
                return self._call(node)
            case ast.Tuple(elts) | ast.List(elts):
                return Items(tuple(self.read(e) for e in elts))
            case ast.Slice(lower, upper, step):
                start, stop, by = (self.read(p) if p is not None else None for p in (lower, upper, step))
                none = Constant(None)
                given = (None if p == none else p for p in (start, stop, by))
                return Slice(next(given), next(given), next(given), node)
            case _:
                code, message, help = _NO.get(type(node), ("py-statement", "this expression is not supported", ""))
                self.context.refuse(code, message, node, help)

    def _constant(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, bool) or value is None or value is ... or isinstance(value, str):
            return Constant(value)
        if isinstance(value, int):
            return Whole(Poly.number(value))
        if isinstance(value, float | complex):
            return self.arithmetic.constant(value, node)
        self.context.refuse("py-type", "this is not a number", node)

    # ---- names ----

    def lookup(self, name: str, node: ast.AST) -> Any:
        """The meaning of a name here."""
        context, module = self.context, self.context.module
        frame = context.frame
        if name in frame.env:
            return self._known(frame.env[name], frame.key(name), node)
        if name in frame.counts and name not in module.functions:
            context.refuse("py-name", f"`{name}` has no value here", node, "assign it before")
        if name in module.functions:
            return Function(module.functions[name])
        if name in module.imported:
            return self._library(module.imported[name])
        if name in module.constants:
            value = module.constants[name]
            return Whole(Poly.number(value)) if isinstance(value, int) else self.arithmetic.constant(value, node)
        if name in module.unclear:
            message = f"what `{name}` means here does not follow from the text"
            context.refuse("py-name", message, node, "define it once, at the top of the file")
        if name in BUILT_IN:
            return Named(name)
        if name in PYTHON:
            return TypeName(PYTHON[name])
        if hasattr(builtins, name):
            context.refuse("py-call", f"`{name}` is not supported", node, "write loops, or use numpy's functions")
        known = [*frame.env, *module.functions, *module.imported, *module.constants]
        help = did_you_mean(name, known, "make it an argument, or a number at the top of the file")
        help = _from_a_shape(name, frame.env) or help
        context.refuse("py-name", f"`{name}` is not known", node, help)

    def _known(self, found: Any, key: tuple[object, ...], node: ast.AST) -> Any:
        if isinstance(found, Let):
            if found.block not in [b for b, _ in self.context.blocks]:
                self.context.learnt.stored.add(key)
                raise Again
            return found.value
        if isinstance(found, Carried):
            return found.use()
        needs = found.needs if isinstance(found, Unknown) else None
        if needs is not None and self.context.is_size(needs) and not self.context.guarded:
            self.context.need(needs, node, found.why)
            return found.value
        if isinstance(found, Unknown) and found.key is not None and found.key not in self.context.learnt.data:
            self.context.learnt.data.add(found.key)
            raise Again
        return found

    def _library(self, name: str) -> Any:
        last = name.rpartition(".")[2]
        if name.startswith("numpy.") and last in NUMPY:
            return TypeName(NUMPY[last])
        if name == "numpy.newaxis":
            return Constant(None)
        if name in NUMBERS:
            value = NUMBERS[name]
            return self.arithmetic.constant(value, self.context.frame.node)
        return Named(name)

    # ---- operators ----

    def _binary(self, left: ast.expr, op: ast.operator, right: ast.expr, node: ast.AST) -> Any:
        a, b = self.read(left), self.read(right)
        if isinstance(op, ast.MatMult):
            return self.reductions.matmul(self.arithmetic.value(a, left), self.arithmetic.value(b, right), node)
        if isinstance(op, ast.BitAnd | ast.BitOr) and self._is_truth(a) and self._is_truth(b):
            return self._logic("and" if isinstance(op, ast.BitAnd) else "or", [a, b], node)
        if isinstance(a, Items) and isinstance(b, Items) and isinstance(op, ast.Add):
            return Items((*a.values, *b.values))
        word = _OPERATORS.get(type(op))
        if word is None:
            self.context.refuse("py-type", _BITS, node, "compute with numbers")
        for found, own in ((a, left), (b, right)):
            if not isinstance(found, Whole):
                self.arithmetic.value(found, own)  # errors in an operand are reported for the operand
        return self.arithmetic.operate(word, a, b, node)

    def _is_truth(self, found: Any) -> bool:
        return isinstance(found, Known) or (isinstance(found, Value) and found.type == "bool")

    def _unary(self, op: ast.unaryop, operand: ast.expr, node: ast.AST) -> Any:
        found = self.read(operand)
        match op:
            case ast.USub():
                return self.arithmetic.negative(found, node)
            case ast.UAdd():
                return self.arithmetic.copied(found, node) if isinstance(found, Value) else found
            case ast.Not():
                own = self._logic("not", [found], node)
                return replace(own, weak=True) if isinstance(own, Value) else own  # Python's own truth value
            case _ if isinstance(found, Value) and self._is_truth(found) and not (found.weak and found.is_scalar):
                return self._logic("not", [found], node)
            case _ if self._is_truth(found) or (isinstance(found, Constant) and isinstance(found.value, bool)):
                message = "`~` of Python's truth values is never false: `~True` is -2"
                self.context.refuse("py-condition", message, node, "write `not`")
            case _:
                self.context.refuse("py-type", _BITS, node, "compute with numbers")

    def _compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        values = [self.read(o) for o in operands]
        parts: list[Any] = []
        for k, op in enumerate(node.ops):
            a, b = values[k], values[k + 1]
            if isinstance(op, ast.Is | ast.IsNot):
                parts.append(self._is(a, b, isinstance(op, ast.Is), node))
                continue
            word = _COMPARE.get(type(op))
            if word is None:
                self.context.refuse("py-condition", "`in` is not supported", node, "compare numbers")
            parts.append(self.arithmetic.compare(word, a, b, node))
        return parts[0] if len(parts) == 1 else self._logic("and", parts, node)

    def _is(self, a: Any, b: Any, wanted: bool, node: ast.AST) -> Constant:
        if not any(isinstance(x, Constant) and x.value is None for x in (a, b)):
            self.context.refuse("py-condition", "`is` is read for None only", node, "write `==`")
        return Constant(all(isinstance(x, Constant) and x.value is None for x in (a, b)) == wanted)

    def _logic(self, op: str, parts: Sequence[Any], node: ast.AST) -> Any:
        """`and`, `or`, `not`: decided if the parts are, otherwise a condition of sizes alone or of data alone."""
        for p in parts:
            if isinstance(p, Value) and p.type != "bool" and op != "not" and len(parts) > 1:
                message = f"`{op}` of numbers gives one of them"
                self.context.refuse("py-condition", message, node, "compare them, as in `x != 0`")
            if (
                isinstance(p, Value)
                and not p.is_scalar
                and isinstance(node, ast.BoolOp | ast.UnaryOp)
                and not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert))
            ):
                message = "the truth value of an array is ambiguous"
                self.context.refuse("py-condition", message, node, "write `np.logical_and`, or `&`")
        if op == "not":
            return self._not(parts[0], node)
        left = [p for p in parts if decided(p) is not (op == "and")]
        if any(decided(p) is (op == "or") for p in parts):
            return Constant(op == "or")
        if not left:
            return Constant(op == "and")
        if len(left) == 1:
            return left[0]
        if all(isinstance(p, Known) for p in left):
            from functools import reduce

            return reduce(lambda a, b: joined(op, a, b, self.context.span(node)), left)
        return self.arithmetic.logic(op, left, node)

    def _not(self, part: Any, node: ast.AST) -> Any:
        known = decided(part)
        if known is not None:
            return Constant(not known)
        if isinstance(part, Known):
            return Known(inverted(part.written, self.context.span(node)), None, part.fails, part.holds)
        return self.arithmetic.logic("not", [part], node)

    def _choice(self, test: ast.expr, body: ast.expr, orelse: ast.expr, node: ast.AST) -> Any:
        condition = self.read(test)
        known = decided(condition)
        if known is not None:
            return self.read(body if known else orelse)
        if isinstance(condition, Known):
            message = "this choice depends on loop variables and sizes"
            self.context.refuse("py-condition", message, node, "write `if` and `else` around the statement")
        before = len(self.context.out)
        a, b = self.value(body), self.value(orelse)
        found = self.arithmetic.truth(condition, test)
        if not (found.is_scalar and a.is_scalar and b.is_scalar):
            self.context.refuse("py-condition", "a choice between arrays is not supported", node, "write `np.where`")
        if any(not isinstance(item, tree.Let) for item in self.context.out[before:]):
            self.context.refuse("py-condition", "whether this is computed depends on data", node, "compute it before")
        return self.arithmetic.select(found, a, b, node)

    # ---- elements, attributes, calls ----

    def _subscript(self, base: ast.expr, index: ast.expr, node: ast.Subscript) -> Any:
        found, item = self.read(base), self.read(index)
        if isinstance(found, Items):
            whole = item.poly.value if isinstance(item, Whole) else None
            if whole is None or not -len(found.values) <= whole < len(found.values):
                self.context.refuse("py-index", "this is not a place in the tuple", index)
            return found.values[whole]
        return self.indexing.subscript(self.arithmetic.shaped(found, base), item, node)

    def element(self, node: ast.Subscript) -> Any:
        """The part of an array that is stored."""
        index = self.read(node.slice)
        if isinstance(index, Value) and index.type == "bool":
            message = "an element is stored only where a condition on data holds, which the language cannot express"
            help = f"write `{ast.unparse(node.value)}[:] = np.where(mask, new, old)` if every element may be stored"
            self.context.refuse("py-condition", message, node, help)
        return self._subscript(node.value, node.slice, node)

    def _attribute(self, base: ast.expr, name: str, node: ast.Attribute) -> Any:
        found = self.read(base)
        if isinstance(found, Named):
            return self._library(f"{found.name}.{name}")
        if isinstance(found, Items) and name in ("append", "extend"):
            help = "make an array before the loop, as in `y = np.empty(n)`, and store its elements"
            self.context.refuse("py-type", "a list cannot grow here", node, help)
        value = self.arithmetic.shaped(found, base)
        match name:
            case "shape":
                return Items(tuple(map(Whole, value.shape)))
            case "size":
                return Whole(self.library.size(value))
            case "ndim":
                return Whole(Poly.number(len(value.shape)))
            case "dtype":
                return TypeName(value.type)
            case "T":
                return self.indexing.permuted(value, range(len(value.shape))[::-1], node)
            case "real" | "imag":
                return self.arithmetic.function(name, value, node)
            case _:
                return Method(value, name)

    def _call(self, node: ast.Call) -> Any:
        context = self.context
        function = self.read(node.func)
        if isinstance(function, Named) and function.name == "print":
            context.refuse("py-effect", "`print` is a side effect", node, "leave it out")
        args = tuple(self.read(a) for a in node.args)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                context.refuse("py-call", "`**` before an argument is not supported", node, "write the arguments")
            named[keyword.arg] = self.read(keyword.value)
        match function:
            case Function(target):
                return self.follow(target, args, named, node)
            case Named(name):
                return self.library.call(Call(name, args, named, node))
            case TypeName(type_):
                plain = isinstance(node.func, ast.Name) and node.func.id in ("float", "int")
                own = node.func.id if isinstance(node.func, ast.Name) and plain else ""
                if own:
                    return self.library.call(Call(own, args, named, node))
                return self.library.converted(self.library.one(Call("type", args, named, node), "x"), type_, node)
            case Method(base, name):
                return self.library.method(base, Call(name, args, named, node))
            case _:
                context.refuse("py-call", "this cannot be called", node)


def _from_a_shape(name: str, env: Mapping[str, Any]) -> str:
    """The help for a size that only annotations mention; empty if none does."""
    for array, found in env.items():
        if isinstance(found, Value) and Poly.name(name) in found.shape:
            return f"write `{name} = {array}.shape[{found.shape.index(Poly.name(name))}]` first"
    return ""
