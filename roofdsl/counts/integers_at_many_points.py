"""Integer expressions and conditions of kernels at many points at once, in numpy and exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

from roofdsl.loops.integers import (
    COMPARISONS,
    And,
    Compare,
    Condition,
    Const,
    FloorDiv,
    IntExpr,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Product,
    Sum,
    Sym,
    Tree,
    fold,
)


def holds(condition: Condition, columns: Mapping[str, Any]) -> Any:
    """Whether a condition holds, point by point; `columns` are int64 arrays or numbers. Raises OverflowError."""
    return fold(condition, _rows(columns))


def value_of(expression: IntExpr, columns: Mapping[str, Any]) -> Any:
    """An integer expression at many points, in Python integers if int64 might overflow. Raises OverflowError."""
    return fold(expression, _rows(columns))


def _rows(columns: Mapping[str, Any]) -> dict[type[Tree], Callable[..., Any]]:
    import numpy as np

    return {
        Const: lambda node: node.value,
        Sym: lambda node: columns[node.name],
        Sum: lambda _, *terms: _fold_checked(np.add, terms),
        Product: lambda _, *terms: _fold_checked(np.multiply, terms),
        Min: lambda _, *terms: _fold_checked(np.minimum, terms),
        Max: lambda _, *terms: _fold_checked(np.maximum, terms),
        FloorDiv: lambda _, numerator, divisor: numerator // divisor,
        Mod: lambda _, numerator, divisor: numerator % divisor,
        Compare: lambda node, left, right: COMPARISONS[node.op](left, right),
        And: lambda _, *parts: reduce(np.logical_and, parts),
        Or: lambda _, *parts: reduce(np.logical_or, parts),
        Not: lambda _, part: np.logical_not(part),
    }


def _fold_checked(operation: Any, values: Sequence[Any]) -> Any:
    """The operation over all values; in Python integers where int64 might overflow."""
    import numpy as np

    reach = [float(np.abs(np.asarray(v, dtype=float)).max(initial=0)) for v in values]
    if sum(reach) >= 2**62 or prod(max(r, 1.0) for r in reach) >= 2**62:
        values = [np.asarray(v).astype(object) for v in values]
    return reduce(operation, values)
