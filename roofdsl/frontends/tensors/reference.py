"""From the reference code of a definition to a graph, by reading it: none of it is executed.

The function `run` is followed statement by statement with tensors that have shapes and no data. Python's own numbers,
tuples and conditions on them are computed here, by the few rules below. Whatever else stands in the code is refused,
with its line; `--torch` runs it instead.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.frontends.tensors.definition import Definition
from roofdsl.frontends.tensors.graph import Graph, Tensor
from roofdsl.frontends.tensors.program import program_name
from roofdsl.frontends.tensors.reference_calls import called
from roofdsl.frontends.tensors.reference_python import FUNCTIONS, MATH, binary, compared, python_value, truth, unary
from roofdsl.frontends.tensors.reference_values import Builder, Dtype, Module, NotRead, given, has_given
from roofdsl.frontends.tensors.types import TYPES
from roofdsl.lang.diagnostics import CommandError

MOST_STEPS = 100_000
MOST_DEPTH = 12


class _Returned(Exception):
    """The value of a `return`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def graph_of_reference(definition: Definition) -> Graph:
    """The graph of `run`. Raises CommandError with the line of what is not read."""
    try:
        module = ast.parse(definition.reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CommandError(f"the reference of {definition.name} is no Python") from None
    reader = _Reader(module)
    run = reader.functions.get("run")
    if run is None:
        raise CommandError(f"the reference of {definition.name} has no function `run`")
    inputs: list[Any] = []
    for _, spec in definition.inputs:
        scalar = given(1.0 if TYPES[spec.dtype][0] in "fbc" else 1)
        inputs.append(scalar if spec.shape is None else reader.builder.new(spec.shape, TYPES[spec.dtype]))
    try:
        found = reader.call(run, inputs, {})
    except NotRead as error:
        line = definition.reference.splitlines()[reader.line - 1].strip() if reader.line else ""
        raise CommandError(
            f"the reference of {definition.name} is not read, line {reader.line}: {error}",
            f"`{line[:100]}`; `--torch` runs the reference instead, if you trust it",
        ) from None
    except RecursionError:
        raise CommandError(f"the reference of {definition.name} is nested too deeply") from None
    return reader.builder.graph(program_name(definition.name), _returned(definition, found))


def _returned(definition: Definition, found: Any) -> tuple[Tensor, ...]:
    """The tensors that `run` returns. Raises CommandError where they do not fit the outputs."""
    values = (
        list(found.values()) if isinstance(found, dict) else list(found) if isinstance(found, tuple | list) else [found]
    )
    specs = [spec for _, spec in definition.outputs if spec.shape is not None]
    tensors = [v for v in values if isinstance(v, Tensor)]
    for spec, tensor in zip(specs, tensors, strict=False):
        if spec.shape != tensor.shape:
            what = f"returns {list(tensor.shape)}, and an output has {list(spec.shape or ())}"
            raise CommandError(f"the reference of {definition.name} {what}")
    if len(specs) != len(tensors) or not tensors:
        raise CommandError(
            f"the reference of {definition.name} returns {len(tensors)} tensors, and has {len(specs)} outputs"
        )
    return tuple(tensors)


def _holds(value: Any, id: int) -> bool:
    """Whether a value is a view of the tensor with this id, or contains one."""
    if isinstance(value, tuple | list | dict):
        return any(_holds(v, id) for v in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, Tensor) and value.id == id


class _Reader:
    def __init__(self, module: ast.Module) -> None:
        self.builder = Builder()
        self.functions = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
        self.globals: dict[str, Any] = {}
        self.line = self.steps = 0
        self.scopes: list[dict[str, Any]] = []  # of the functions that are being followed, the innermost last
        for node in module.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.globals |= {t.id: node.value.value for t in targets if isinstance(t, ast.Name)}

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in node.names:
            own = name.asname or name.name.split(".")[0]
            whole = name.name if name.asname or isinstance(node, ast.ImportFrom) else own
            path = f"{node.module}.{whole}" if isinstance(node, ast.ImportFrom) else whole
            self.globals[own] = math if path == "math" else Module(path)

    # ---- functions and statements ----

    def call(self, function: ast.FunctionDef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of a function of the code. Raises NotRead."""
        given = function.args
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        if len(self.scopes) >= MOST_DEPTH or given.vararg or given.kwarg or len(args) > len(names):
            raise NotRead(f"a call of `{function.name}`")
        scope = dict(zip(names, args, strict=False)) | dict(kwargs)
        defaults = dict(zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True))
        defaults |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None}
        scope |= {name: self._value(d, {}) for name, d in defaults.items() if name not in scope}
        if set(names) - scope.keys():
            raise NotRead(f"a call of `{function.name}` without {', '.join(sorted(set(names) - scope.keys()))}")
        self.scopes.append(scope)
        try:
            self._block(function.body, scope)
        except _Returned as returned:
            return returned.value
        finally:
            self.scopes.pop()
        return None

    def _block(self, body: Sequence[ast.stmt], scope: dict[str, Any]) -> None:
        for statement in body:
            self.line = statement.lineno
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise NotRead(f"more than {MOST_STEPS:,} steps")
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: dict[str, Any]) -> None:
        match node:
            case ast.Return(value):
                raise _Returned(None if value is None else self._value(value, scope))
            case ast.Assign(targets, value):
                found = self._value(value, scope)
                for target in targets:
                    self._store(target, found, scope)
            case ast.AnnAssign(target, _, value) if value is not None:
                self._store(target, self._value(value, scope), scope)
            case ast.AugAssign(ast.Name(name), op, value):
                old = self._name(name, scope)
                new = binary(self.builder, op, old, self._value(value, scope), in_place=True)
                scope[name] = new
                self._changed(old, new)
            case ast.Expr(ast.Constant()) | ast.Pass() | ast.Assert():
                pass
            case ast.Expr(value):
                self._value(value, scope)
            case ast.If(test, body, orelse):
                self._block(body if self._truth(test, scope) else orelse, scope)
            case ast.For(target, values, body, []):
                for item in self._items(self._value(values, scope)):
                    self._store(target, item, scope)
                    self._block(body, scope)
            case ast.With(_, body):
                self._block(body, scope)
            case ast.FunctionDef():
                self.functions[node.name] = node
            case ast.Import() | ast.ImportFrom():
                self._imports(node)
            case _:
                raise NotRead(f"`{type(node).__name__.lower()}`")

    def _store(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name(name):
                scope[name] = value
            case ast.Tuple(targets) | ast.List(targets):
                items = list(self._items(value))
                if len(items) != len(targets) or any(isinstance(t, ast.Starred) for t in targets):
                    raise NotRead("values taken apart in this way")
                for inner, item in zip(targets, items, strict=True):
                    self._store(inner, item, scope)
            case _:
                raise NotRead("an assignment to a part of a tensor")

    def _changed(self, old: Any, new: Any) -> None:
        """After a change in place, every name of the tensor `old` means `new`. Raises NotRead if another view of it has
        a name, whose elements change too.
        """
        if not isinstance(old, Tensor) or new == old:
            return
        if not isinstance(new, Tensor) or (new.shape != old.shape and new.id != old.id):
            raise NotRead("a change in place to another shape")
        if old.part:
            raise NotRead("a change of a part of a tensor")
        for scope in self.scopes:
            for name, value in scope.items():
                if value == old:
                    scope[name] = new
                elif new.id != old.id and _holds(value, old.id):
                    raise NotRead(f"a change in place of what `{name}` contains, too")

    def _items(self, value: Any) -> Sequence[Any]:
        if isinstance(value, Tensor):
            return list(called(self.builder, "unbind", [value], {}))
        if not isinstance(value, tuple | list | range) or len(value) > MOST_STEPS:
            raise NotRead("a loop over this")
        return value

    def _truth(self, node: ast.expr, scope: dict[str, Any]) -> bool:
        return truth(self._value(node, scope))

    # ---- expressions ----

    def _value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self._name(name, scope)
            case ast.Tuple(items) | ast.List(items):
                return tuple(self._several(items, scope))
            case ast.Dict(keys, values) if all(isinstance(k, ast.Constant) for k in keys):
                return {
                    k.value: self._value(v, scope)
                    for k, v in zip(keys, values, strict=True)
                    if isinstance(k, ast.Constant)
                }
            case ast.BinOp(left, ast.MatMult(), right):
                return called(self.builder, "matmul", [self._value(left, scope), self._value(right, scope)], {})
            case ast.BinOp(left, op, right):
                return binary(self.builder, op, self._value(left, scope), self._value(right, scope))
            case ast.UnaryOp(op, operand):
                return unary(self.builder, op, self._value(operand, scope))
            case ast.Compare(left, [op], [right]):
                return compared(self.builder, op, self._value(left, scope), self._value(right, scope))
            case ast.BoolOp(op, values):
                found: Any = None
                for value in values:
                    found = self._value(value, scope)
                    if isinstance(found, Tensor) or truth(found) == isinstance(op, ast.Or):
                        break
                return found
            case ast.IfExp(test, body, orelse):
                return self._value(body if self._truth(test, scope) else orelse, scope)
            case ast.Attribute(value, name):
                return self._attribute(self._value(value, scope), name)
            case ast.Subscript(value, index):
                return self._part(self._value(value, scope), self._value(index, scope))
            case ast.Slice(lower, upper, step):
                return slice(*(None if n is None else self._value(n, scope) for n in (lower, upper, step)))
            case ast.Call():
                return self._call(node, scope)
            case _:
                raise NotRead(f"`{type(node).__name__}`")

    def _several(self, items: Sequence[ast.expr], scope: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if isinstance(item, ast.Starred):
                found += self._items(self._value(item.value, scope))
            else:
                found.append(self._value(item, scope))
        return found

    def _name(self, name: str, scope: Mapping[str, Any]) -> Any:
        for where in (scope, self.globals, self.functions):
            if name in where:
                return where[name]
        if name in FUNCTIONS or name == "range":
            return Module(name)
        raise NotRead(f"`{name}`")

    def _attribute(self, value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            known = {
                "shape": value.shape,
                "dtype": Dtype(value.type),
                "ndim": len(value.shape),
                "device": Module("device"),
            }
            if name in known:
                return known[name]
            if name in ("T", "mT"):
                order = list(range(len(value.shape)))
                return self.builder.permuted(value, order[::-1] if name == "T" else [*order[:-2], order[-1], order[-2]])
            return _Method(value, name)
        if isinstance(value, tuple) and name in ("values", "indices"):
            return value[name == "indices"]
        if value is math and name in ("pi", "inf", "e"):
            return getattr(math, name)
        if value is math and name in MATH:
            return Module(f"math.{name}")
        if isinstance(value, Module):
            if value.path == "torch" and name in TYPES:
                return Dtype(TYPES[name])
            aliases = {"float": "f32", "half": "f16", "double": "f64", "long": "i64", "int": "i32"}
            if value.path == "torch" and name in aliases:
                return Dtype(aliases[name])
            if value.path == "torch" and name in ("inf", "pi"):
                return getattr(math, name)
            return Module(f"{value.path}.{name}")
        if isinstance(value, tuple) and name == "numel":
            return Module("numel")
        raise NotRead(f"`.{name}`")

    def _part(self, value: Any, index: Any) -> Any:
        if has_given(index):
            raise NotRead("an index that is given when the code runs")
        if isinstance(value, dict) or (isinstance(value, tuple | list | range) and isinstance(index, int | slice)):
            try:
                return value[index]
            except (KeyError, IndexError, TypeError):
                raise NotRead("an index that is out of range") from None
        if isinstance(value, Tensor):
            return self.builder.indexed(value, index if isinstance(index, tuple) else (index,))
        raise NotRead("a part of this value")

    def _call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        function = self._value(node.func, scope)
        args = self._several(node.args, scope)
        kwargs = {k.arg: self._value(k.value, scope) for k in node.keywords if k.arg is not None}
        if len(kwargs) != len(node.keywords):
            raise NotRead("arguments of a dictionary")
        if isinstance(function, ast.FunctionDef):
            line = self.line
            found = self.call(function, args, kwargs)
            self.line = line
            return found
        if not isinstance(function, Module | _Method):
            raise NotRead("a call of this value")
        if isinstance(function, _Method):
            args = [function.data, *args]
            found = called(self.builder, function.name, args, kwargs)
        else:
            found = self._of_module(function.path, args, kwargs)
        if args and (function.name.endswith("_") or kwargs.get("inplace") is True):
            self._changed(args[0], found)
        return found

    def _of_module(self, path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        plain = python_value(path, args)
        if plain is not None:
            return plain
        head, _, name = path.rpartition(".")
        if path in ("torch.no_grad", "torch.inference_mode", "torch.device"):
            return None
        if head.startswith("torch"):
            device = {
                k: v for k, v in kwargs.items() if k not in ("device", "requires_grad", "layout", "memory_format")
            }
            return called(self.builder, name, args, device)
        raise NotRead(f"`{path}`")


class _Method:
    """A method of a tensor, before it is called."""

    def __init__(self, data: Tensor, name: str) -> None:
        self.data, self.name = data, name
