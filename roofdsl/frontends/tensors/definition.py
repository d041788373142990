"""Definitions of SOL-ExecBench and FlashInfer-Bench: the shapes of a problem, and its reference code in PyTorch.

`definition.json` has `axes` (const, var or expr), `inputs` and `outputs` (a shape of axes, a dtype) and `reference`,
the text of a Python file with a function `run`. Nothing here executes that text.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

from roofdsl.frontends.tensors.types import TYPES
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.reading import read_limited
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES as OWN_TYPES

MOST_BYTES = 4 << 20
MOST_PLACES = 2**48
"""The maximum number of elements along an axis, and of a tensor."""


class Spec(Record):
    """A tensor of a definition: its shape in numbers (None: a Python number), and torch's name of its type."""

    shape: tuple[int, ...] | None
    dtype: str

    @property
    def bytes(self) -> int:
        """Of all elements; 0 for a Python number."""
        return 0 if self.shape is None else prod(self.shape) * OWN_TYPES[TYPES[self.dtype]].bytes


class Definition(Record):
    """A definition at numbers of its axes."""

    name: str
    axes: tuple[tuple[str, int], ...]
    inputs: tuple[tuple[str, Spec], ...]
    outputs: tuple[tuple[str, Spec], ...]
    reference: str


def read_definition(path: str, settings: Mapping[str, int]) -> Definition:
    """The definition in a file, with `settings` as numbers of its `var` axes.

    Raises CommandError for a file that is none, and for axes without a number.
    """
    text = read_limited(Path(path), MOST_BYTES, "a definition")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandError(f"`{path}` is no JSON", "a definition of SOL-ExecBench is a JSON object") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(k), dict) for k in ("axes", "inputs", "outputs")):
        raise CommandError(f"`{path}` is no definition", "it needs the objects `axes`, `inputs` and `outputs`")
    if not isinstance(found.get("reference"), str):
        raise CommandError(f"`{path}` has no `reference`", "it is the text of a Python file with a function `run`")
    axes = _numbers(path, found["axes"], settings)
    inputs, outputs = (
        tuple((str(name), _spec(path, str(name), spec, axes)) for name, spec in found[kind].items())
        for kind in ("inputs", "outputs")
    )
    return Definition(str(found.get("name") or "definition"), tuple(axes.items()), inputs, outputs, found["reference"])


def _numbers(path: str, axes: Mapping[str, Any], settings: Mapping[str, int]) -> dict[str, int]:
    """The number of every axis."""
    kinds = {name: axis.get("type") if isinstance(axis, dict) else None for name, axis in axes.items()}
    variable = [name for name, kind in kinds.items() if kind == "var"]
    for name in settings:
        if name not in variable:
            listed = ", ".join(variable)
            known = f"its only `var` axis is {listed}" if len(variable) == 1 else f"its `var` axes are {listed}"
            help = did_you_mean(name, variable, known if variable else "")
            raise CommandError(f"`{path}` has no `var` axis `{name}`", help)
    missing = [name for name in variable if name not in settings]
    if missing:
        give = ",".join(f"{name}=..." for name in missing)
        raise CommandError(f"`{path}` needs a number for {', '.join(missing)}", f"give it with --set {give}")
    found = {name: settings[name] for name in variable}
    for name, axis in axes.items():
        if kinds[name] == "const":
            found[name] = _whole(path, name, axis.get("value"))
    for name, axis in axes.items():
        if kinds[name] == "expr":
            found[name] = _whole(path, name, evaluated(axis.get("expression"), found))
        elif kinds[name] not in ("const", "var"):
            raise CommandError(f"the axis `{name}` of `{path}` is of no known type", "`const`, `var` or `expr`")
    return {name: found[name] for name in axes}


def _whole(path: str, name: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 < value <= MOST_PLACES:
        raise CommandError(f"the axis `{name}` of `{path}` is no positive whole number", f"it is {str(value)[:40]}")
    return value


def _spec(path: str, name: str, spec: object, axes: Mapping[str, int]) -> Spec:
    if not isinstance(spec, dict) or spec.get("dtype") not in TYPES:
        raise CommandError(f"the tensor `{name}` of `{path}` has no known dtype", f"there are {', '.join(TYPES)}")
    shape = spec.get("shape")
    if shape is None:
        return Spec(None, spec["dtype"])
    if not isinstance(shape, list):
        raise CommandError(f"the shape of `{name}` in `{path}` is no list of axes")
    places = []
    for axis in shape:
        word = str(axis)
        if word in axes:
            places.append(axes[word])
        elif word.isdecimal() and 0 < int(word) <= MOST_PLACES:
            places.append(int(word))
        else:
            raise CommandError(f"the shape of `{name}` in `{path}` names no axis `{word[:40]}`")
    if prod(places) > MOST_PLACES:
        raise CommandError(f"the tensor `{name}` of `{path}` is too large", f"it has {prod(places):,} elements")
    return Spec(tuple(places), spec["dtype"])


# ---- expressions of axes ----

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def evaluated(text: object, axes: Mapping[str, int]) -> float:
    """The value of an expression of axes: + - * / // % ** and parentheses. Raises CommandError for anything else."""
    wrong = CommandError(f"`{str(text)[:80]}` is no expression of axes", "it has axes, numbers and + - * / // % **")
    if not isinstance(text, str) or len(text) > 1000:
        raise wrong
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, axes)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ArithmeticError, KeyError):
        raise wrong from None


def _value(node: ast.expr, axes: Mapping[str, int]) -> float:
    """Raises KeyError for another axis, ValueError for another construct or too large a number."""
    match node:
        case ast.Constant(int() | float() as value):
            found: float = value
        case ast.Name(name):
            found = axes[name]
        case ast.UnaryOp(ast.USub(), operand):
            found = -_value(operand, axes)
        case ast.UnaryOp(ast.UAdd(), operand):
            found = _value(operand, axes)
        case ast.BinOp(left, ast.Pow(), right):
            base, exponent = _value(left, axes), _value(right, axes)
            if abs(base) > MOST_PLACES or not 0 <= exponent <= 64:
                raise ValueError
            found = base**exponent
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            found = _OPERATORS[type(op)](_value(left, axes), _value(right, axes))
        case _:
            raise ValueError
    if isinstance(found, complex) or abs(found) > MOST_PLACES**2:
        raise ValueError
    return found
