"""The compiled functions of the simulation, translated to numbers that change evenly (`affine_numbers.py`).

The functions are not written twice: their syntax trees are rewritten. Every integer becomes a pair, every operation and
comparison a call, and every table gets a last axis of two. A rewritten function takes one more argument, the limit, and
passes it on. The functions' annotations tell integers, truth values, tables and tuples of tables apart. Imports numba.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, Literal

from roofdsl.simulate import affine_numbers
from roofdsl.simulate.walk import inlined, internal

Kind = Literal["number", "truth", "table", "tuple", "none"]
_KINDS: dict[str, Kind] = {
    "int": "number",
    "bool": "truth",
    "None": "none",
    "Ints": "table",
    "Tables": "tuple",
    "Cursor": "tuple",
    "List": "tuple",
    "Sweep": "tuple",
}
_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "plus",
    ast.Sub: "minus",
    ast.Mult: "times",
    ast.FloorDiv: "quotient",
    ast.Mod: "remainder",
    ast.LShift: "shifted_left",
    ast.RShift: "shifted_right",
    ast.BitOr: "either_bits",
    ast.BitAnd: "common_bits",
}
_LIMIT = "affine_limit"
_PREFIX = "affine_"


def affine(
    function: Callable[..., Any],
    without: Sequence[Callable[..., Any]] = (),
    true: Sequence[Callable[..., Any]] = (),
) -> Callable[..., Any]:
    """`function`, which is compiled or inlined, and all that it calls, for numbers that change evenly.

    without: functions that do nothing in the rewritten code. true: functions that may always answer True, and do so in
    the rewritten code.
    """
    return _Rewriting(without, true).function(function)


class _Rewriting:
    def __init__(self, without: Sequence[Callable[..., Any]], true: Sequence[Callable[..., Any]]) -> None:
        self.known: dict[int, Callable[..., Any]] = {}
        self.without, self.true = without, true

    def function(self, compiled: Any) -> Callable[..., Any]:
        original = compiled.py_func
        if id(original) not in self.known:
            names = {**original.__globals__, affine_numbers.__name__.rpartition(".")[2]: affine_numbers}
            tree = ast.parse(textwrap.dedent(inspect.getsource(original)))
            ast.increment_lineno(tree, original.__code__.co_firstlineno - 1)
            rewritten = _Function(self, names, tree.body[0]).rewritten()
            module = compile(ast.Module([rewritten], []), original.__code__.co_filename, "exec")
            code = next(c for c in module.co_consts if isinstance(c, CodeType))
            new = FunctionType(code, names, code.co_name)
            new.__module__ = original.__module__
            new.__qualname__ = code.co_name
            inline = compiled.targetoptions.get("forceinline", False)
            self.known[id(original)] = inlined(new) if inline else internal(new)
        return self.known[id(original)]


class _Function:
    """One function during the rewriting; `kinds` of its local names so far."""

    def __init__(self, whole: _Rewriting, names: dict[str, Any], tree: ast.stmt) -> None:
        if not isinstance(tree, ast.FunctionDef):
            raise TypeError(type(tree))
        self.whole, self.names, self.tree = whole, names, tree
        self.kinds = {a.arg: _KINDS[ast.unparse(a.annotation or ast.Constant(None))] for a in tree.args.args}

    def rewritten(self) -> ast.FunctionDef:
        tree = self.tree
        arguments = ast.arguments(
            [], [ast.arg(_LIMIT), *(ast.arg(a.arg) for a in tree.args.args)], None, [], [], None, []
        )
        new = ast.FunctionDef(_PREFIX + tree.name, arguments, self.block(tree.body), [], None)
        return ast.fix_missing_locations(ast.copy_location(new, tree))

    # ---- statements ----

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [ast.copy_location(new, node) for node in body for new in self.statement(node)] or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Assign():
                return self.assign(node.targets, node.value)
            case ast.AugAssign():
                value = ast.BinOp(_load(node.target), node.op, node.value)
                return self.assign([node.target], value)
            case ast.If():
                test = self.truth(node.test)
                return [ast.If(test, self.block(node.body), self.block(node.orelse) if node.orelse else [])]
            case ast.While():
                return [ast.While(self.truth(node.test), self.block(node.body), [])]
            case ast.For():
                return [self.loop(node)]
            case ast.Return():
                return [ast.Return(None if node.value is None else self.expression(node.value)[0])]
            case ast.Expr(ast.Constant()):
                return []
            case ast.Expr(ast.Call() as call):
                new, kind = self.call(call)
                return [] if kind == "none" and isinstance(new, ast.Constant) else [ast.Expr(new)]
            case ast.Break() | ast.Continue() | ast.Pass():
                return [node]
        raise TypeError(ast.unparse(node))

    def loop(self, node: ast.For) -> ast.For:
        if not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call):
            raise TypeError(ast.unparse(node))
        values: list[ast.expr] = [self.fixed(a) for a in node.iter.args]
        name, raw = node.target.id, f"{node.target.id}_of_range"
        self.kinds[name] = "number"
        first = ast.Assign([ast.Name(name, ast.Store())], _pair(ast.Name(raw, ast.Load())))
        body: list[ast.stmt] = [first, *self.block(node.body)]
        return ast.For(ast.Name(raw, ast.Store()), ast.Call(ast.Name("range", ast.Load()), values, []), body, [])

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> list[ast.stmt]:
        """Assignments with several targets, and tuples on both sides, use temporaries, since all values are computed
        before any target is set.
        """
        if isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
            held, done = [], []
            for k, (target, part) in enumerate(zip(targets[0].elts, value.elts, strict=True)):
                new, kind = self.expression(part)
                held.append(ast.Assign([ast.Name(f"held_{k}", ast.Store())], new))
                done += self.store(target, ast.Name(f"held_{k}", ast.Load()), kind)
            return [*held, *done]
        new, kind = self.expression(value)
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple):
            of = _results(self.names, value) if isinstance(value, ast.Call) else "table"
            for name in targets[0].elts:
                self.kinds[ast.unparse(name)] = of
            return [ast.Assign([targets[0]], new)]
        if len(targets) == 1:
            return self.store(targets[0], new, kind)
        done = [ast.Assign([ast.Name("held_0", ast.Store())], new)]
        for target in targets:
            done += self.store(target, ast.Name("held_0", ast.Load()), kind)
        return list(done)

    def store(self, target: ast.expr, value: ast.expr, kind: Kind) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            self.kinds[target.id] = kind
            return [ast.Assign([ast.Name(target.id, ast.Store())], value)]
        if not isinstance(target, ast.Subscript):
            raise TypeError(ast.unparse(target))
        if kind == "truth":
            value = _as_number(value)
        places = self.places(target.slice)
        return [ast.Expr(_called(f"put{len(places)}", self.expression(target.value)[0], *places, value))]

    # ---- expressions ----

    def truth(self, node: ast.expr) -> ast.expr:
        new, kind = self.expression(node)
        return new if kind == "truth" else _limited("true", new)

    def number(self, node: ast.expr) -> ast.expr:
        new, kind = self.expression(node)
        return new if kind == "number" else _as_number(new)

    def fixed(self, node: ast.expr) -> ast.expr:
        known = isinstance(node, ast.Name) and node.id not in self.kinds
        if known or isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant):
            return node
        return _limited("fixed", self.number(node))

    def places(self, node: ast.expr) -> list[ast.expr]:
        return [self.fixed(e) for e in (node.elts if isinstance(node, ast.Tuple) else [node])]

    def expression(self, node: ast.expr) -> tuple[ast.expr, Kind]:
        match node:
            case ast.Constant(value=bool()):
                return node, "truth"
            case ast.Constant():
                return _pair(node), "number"
            case ast.Name():
                return (node, self.kinds[node.id]) if node.id in self.kinds else (_pair(node), "number")
            case ast.Tuple():
                return ast.Tuple([self.expression(e)[0] for e in node.elts], ast.Load()), "tuple"
            case ast.Attribute():
                return node, "table"
            case ast.Subscript():
                return self.subscript(node)
            case ast.Compare():
                return self.comparison(node), "truth"
            case ast.BoolOp():
                return ast.BoolOp(node.op, [self.truth(v) for v in node.values]), "truth"
            case ast.UnaryOp(op=ast.Not()):
                return ast.UnaryOp(node.op, self.truth(node.operand)), "truth"
            case ast.UnaryOp(op=ast.USub()):
                return _limited("negative", self.number(node.operand)), "number"
            case ast.BinOp():
                return self.operation(node)
            case ast.IfExp():
                new, kind = self.expression(node.body)
                other = self.number(node.orelse) if kind == "number" else self.truth(node.orelse)
                return ast.IfExp(self.truth(node.test), new, other), kind
            case ast.Call():
                return self.call(node)
        raise TypeError(ast.unparse(node))

    def subscript(self, node: ast.Subscript) -> tuple[ast.expr, Kind]:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return _pair(node), "number"
        base, kind = self.expression(node.value)
        if kind == "tuple":
            return node, "tuple" if isinstance(node.slice, ast.Slice) else "table"
        places = self.places(node.slice)
        return _called(f"get{len(places)}", base, *places), "number"

    def operation(self, node: ast.BinOp) -> tuple[ast.expr, Kind]:
        (left, one), (right, other) = self.expression(node.left), self.expression(node.right)
        if one == other == "truth" and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return ast.BinOp(left, node.op, right), "truth"
        left, right = (_as_number(x) if k == "truth" else x for x, k in ((left, one), (right, other)))
        return _limited(_OPERATIONS[type(node.op)], left, right), "number"

    def comparison(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            parts: list[ast.expr] = [
                _limited("same", self.number(node.left), self.number(e))
                for e in ast.iter_child_nodes(node.comparators[0])
                if isinstance(e, ast.expr)
            ]
            any_of = ast.BoolOp(ast.Or(), parts)
            return any_of if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), any_of)
        parts = []
        for op, a, b in zip(node.ops, operands, operands[1:], strict=False):
            x, y = self.number(a), self.number(b)
            match op:
                case ast.Lt():
                    parts.append(_limited("less", x, y))
                case ast.Gt():
                    parts.append(_limited("less", y, x))
                case ast.LtE():
                    parts.append(_limited("less_or_same", x, y))
                case ast.GtE():
                    parts.append(_limited("less_or_same", y, x))
                case ast.Eq():
                    parts.append(_limited("same", x, y))
                case ast.NotEq():
                    parts.append(ast.UnaryOp(ast.Not(), _limited("same", x, y)))
                case _:
                    raise TypeError(ast.unparse(node))
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def call(self, node: ast.Call) -> tuple[ast.expr, Kind]:
        if not isinstance(node.func, ast.Name):
            raise TypeError(ast.unparse(node))
        name = node.func.id
        if name in ("min", "max"):
            new = self.number(node.args[0])
            for argument in node.args[1:]:
                new = _limited("smaller" if name == "min" else "larger", new, self.number(argument))
            return new, "number"
        if name == "abs":
            return _limited("size", self.number(node.args[0])), "number"
        if name in ("int", "uint64"):
            return self.number(node.args[0]), "number"
        if name == "bool":
            return self.truth(node.args[0]), "truth"
        if name == "low_quotient":
            return _limited(name, *(self.number(argument) for argument in node.args)), "number"
        function = self.names[name]
        if function in self.whole.without:
            return ast.Constant(None), "none"
        if function in self.whole.true:
            return ast.Constant(True), "truth"
        self.names[_PREFIX + name] = self.whole.function(function)
        wanted = inspect.get_annotations(function.py_func)
        arguments = []
        for argument, annotation in zip(node.args, wanted.values(), strict=False):
            new, kind = self.expression(argument)
            arguments.append(_as_number(new) if (kind, annotation) == ("truth", "int") else new)
        of = _results(self.names, node)
        return ast.Call(ast.Name(_PREFIX + name, ast.Load()), [ast.Name(_LIMIT, ast.Load()), *arguments], []), of


def _results(names: dict[str, Any], call: ast.Call) -> Kind:
    """The kind of the value that a function returns, or of each of several values."""
    annotation = inspect.get_annotations(names[ast.unparse(call.func)].py_func)["return"]
    return "number" if annotation.startswith("tuple[int") else _KINDS[annotation]


def _load(target: ast.expr) -> ast.expr:
    loaded = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(loaded, target)


def _pair(node: ast.expr) -> ast.expr:
    return ast.Tuple([node, ast.Constant(0)], ast.Load())


def _as_number(truth: ast.expr) -> ast.expr:
    return ast.IfExp(truth, _pair(ast.Constant(1)), _pair(ast.Constant(0)))


def _called(name: str, *arguments: ast.expr) -> ast.expr:
    """A call of a function of `affine_numbers`, which is a module in the rewritten function's names."""
    function = ast.Attribute(ast.Name("affine_numbers", ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), [])


def _limited(name: str, *arguments: ast.expr) -> ast.expr:
    return _called(name, ast.Name(_LIMIT, ast.Load()), *arguments)
