"""Python's own values in a reference: numbers, tuples, comparisons, and the functions of Python that compute on them.

A number that is given when the code runs (an input without a shape) has no value here: it may be combined with tensors,
but sizes, loops and conditions that depend on it are not read.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.frontends.tensors.graph import Tensor
from roofdsl.frontends.tensors.reference_values import Builder, Given, NotRead, given, has_given

LARGEST = 2**63
NUMBERS = (int, float, bool)

_BINARY: Mapping[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub), ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv), ast.FloorDiv: ("", operator.floordiv), ast.Mod: ("", operator.mod),
    ast.Pow: ("pow", operator.pow), ast.BitAnd: ("bitwise_and", operator.and_), ast.BitOr: ("bitwise_or", operator.or_),
}  # fmt: skip
_COMPARED: Mapping[type[ast.AST], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
}  # fmt: skip
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "int": int, "float": float, "bool": bool, "len": len, "min": min, "max": max, "abs": abs, "round": round,
    "tuple": tuple, "list": list, "sum": sum,
}  # fmt: skip
MATH = ("sqrt", "log", "log2", "exp", "ceil", "floor", "prod")
"""The functions of `math` that are read. Others may take as long as a number is large (`factorial`)."""


def truth(value: Any) -> bool:
    """The outcome of a condition. Raises NotRead for one on data, or on a number that is given when the code runs."""
    if isinstance(value, Tensor):
        raise NotRead("a condition on data")
    if isinstance(value, Given):
        raise NotRead("a condition on a number that is given when the code runs")
    return bool(value)


def binary(builder: Builder, op: ast.operator, left: Any, right: Any, *, in_place: bool = False) -> Any:
    """`left op right`. in_place: the result has the type and the shape of the left tensor, as that of `+=` has."""
    name, plain = _BINARY.get(type(op), ("", None))
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if not name:
            raise NotRead(f"`{type(op).__name__}` of tensors")
        kept = left.type if in_place and isinstance(left, Tensor) else None
        return builder.elementwise(name, [left, right], kept)
    if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(op, ast.Add):
        return left + right
    if plain is None or not isinstance(left, NUMBERS) or not isinstance(right, NUMBERS):
        raise NotRead(f"`{type(op).__name__}` of these values")
    if isinstance(op, ast.Pow) and abs(right) > 64:
        raise NotRead("so large a power")
    try:
        return given(small(plain(left, right)), has_given((left, right)))
    except (ArithmeticError, TypeError):
        raise NotRead("arithmetic that has no result") from None


def small(value: Any) -> Any:
    """The value. Raises NotRead for complex numbers and too large ones."""
    if isinstance(value, complex) or (isinstance(value, int) and abs(value) > LARGEST):
        raise NotRead("so large a number")
    return value


def unary(builder: Builder, op: ast.unaryop, value: Any) -> Any:
    """`-value`, `not value` and the like."""
    if isinstance(value, Tensor) and isinstance(op, ast.USub):
        return builder.elementwise("neg", [value])
    if isinstance(value, Tensor) and isinstance(op, ast.Invert):
        return builder.elementwise("logical_not", [value], value.type)  # of the bits of whole numbers, too
    if isinstance(op, ast.Not) and not isinstance(value, Tensor):
        return not truth(value)
    if isinstance(value, NUMBERS) and isinstance(op, ast.USub | ast.UAdd):
        return given(-value if isinstance(op, ast.USub) else +value, has_given(value))
    raise NotRead(f"`{type(op).__name__}` of this value")


def compared(builder: Builder, op: ast.cmpop, left: Any, right: Any) -> Any:
    """One comparison."""
    if isinstance(op, ast.Is | ast.IsNot):
        return (left is right) == isinstance(op, ast.Is)
    name, plain = _COMPARED.get(type(op), ("", None))
    if plain is None:
        raise NotRead(f"`{type(op).__name__}`")
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return builder.elementwise(name, [left, right])
    try:
        return given(plain(left, right), has_given((left, right)))
    except TypeError:
        raise NotRead("a comparison of these values") from None


def python_value(path: str, args: Sequence[Any]) -> Any:
    """The value of `min(...)`, `math.sqrt(...)` and the like; None for what is no such function."""
    head, _, name = path.rpartition(".")
    if path == "range" and args and all(isinstance(n, int) for n in args):
        if has_given(args):
            raise NotRead("a loop whose length is given when the code runs")
        return range(*args)
    plain = FUNCTIONS.get(path) or (getattr(math, name) if head == "math" and name in MATH else None)
    if plain is None:
        return None
    try:
        values = [float(a) if path == "float" and isinstance(a, str) else a for a in args]
        return given(small(plain(*values)), has_given(args) and path not in ("len", "tuple", "list"))
    except (TypeError, ValueError, ArithmeticError):
        raise NotRead(f"`{path}` of these values") from None
