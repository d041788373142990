"""Integer expressions and conditions of kernels at many points at once, in numpy, and exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from roofdsl.loops.integers import (
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
)


def holds(condition: Condition, columns: Mapping[str, Any]) -> Any:
    """Where a condition over parameters holds; `columns` are int64 arrays or numbers. Raises OverflowError."""
    match condition:
        case Compare(op, left, right):
            a, b = value_of(left, columns), value_of(right, columns)
            return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        case And(parts):
            return _folded(parts, columns, every=True)
        case Or(parts):
            return _folded(parts, columns, every=False)
        case Not(part):
            import numpy as np

            return np.logical_not(holds(part, columns))
    raise TypeError(type(condition))


def _folded(parts: Sequence[Condition], columns: Mapping[str, Any], *, every: bool) -> Any:
    import numpy as np

    found = holds(parts[0], columns)
    for part in parts[1:]:
        found = (np.logical_and if every else np.logical_or)(found, holds(part, columns))
    return found


def value_of(expression: IntExpr, columns: Mapping[str, Any]) -> Any:
    """An integer expression at many points, in Python integers where int64 might not hold them."""
    import numpy as np

    match expression:
        case Const(value):
            return value
        case Sym(name):
            return columns[name]
        case Sum(terms):
            return _fold_checked(np.add, [value_of(t, columns) for t in terms])
        case Product(terms):
            return _fold_checked(np.multiply, [value_of(t, columns) for t in terms])
        case Min(terms):
            return _fold_checked(np.minimum, [value_of(t, columns) for t in terms])
        case Max(terms):
            return _fold_checked(np.maximum, [value_of(t, columns) for t in terms])
        case FloorDiv(numerator, divisor):
            return value_of(numerator, columns) // value_of(divisor, columns)
        case Mod(numerator, divisor):
            return value_of(numerator, columns) % value_of(divisor, columns)
    raise TypeError(type(expression))


def _fold_checked(operation: Any, values: Sequence[Any]) -> Any:
    """The operation over all values; in Python integers where int64 might overflow."""
    import numpy as np

    reach = [float(np.abs(np.asarray(v, dtype=float)).max(initial=0)) for v in values]
    if sum(reach) >= 2**62 or prod(max(r, 1.0) for r in reach) >= 2**62:
        values = [np.asarray(v).astype(object) for v in values]
    total = values[0]
    for v in values[1:]:
        total = operation(total, v)
    return total
