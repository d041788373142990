"""numpy arrays that count: the user's own function runs on them, and numpy's calls are the operations of rules 1 to 4.

Each call of a ufunc is one operation for every element of its result, and each reduction one for every element that it
combines, except for the first of a maximum along one axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

CLASSES = {
    np.add: "add", np.subtract: "add", np.multiply: "mul", np.square: "mul", np.divide: "div", np.maximum: "min",
    np.minimum: "min", np.sqrt: "special", np.exp: "special", np.log: "special", np.tanh: "special",
    np.less: "cmp", np.less_equal: "cmp", np.greater: "cmp", np.greater_equal: "cmp",
}  # fmt: skip
FREE = (np.negative, np.absolute)
REDUCTIONS = {"sum": "add", "max": "min", "min": "min"}


def plain(*values: Any) -> list[Any]:
    """Arrays and numbers that do not count."""
    return [v.values if isinstance(v, Counted) else v for v in values]


class Counted(np.lib.mixins.NDArrayOperatorsMixin):
    """An array, or an element of one. operations: by class, where its operations are counted."""

    def __init__(self, values: Any, operations: Counter[str]) -> None:
        self.values, self.operations = np.asarray(values), operations
        values = self.values
        self.shape, self.size, self.ndim, self.dtype = values.shape, values.size, values.ndim, values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def other(self, values: Any) -> Counted:
        """Other values, whose operations are counted together with those of this array."""
        return Counted(values, self.operations)

    @property
    def T(self) -> Counted:
        return self.other(self.values.T)

    def __getitem__(self, key: Any) -> Counted:
        return self.other(self.values[(*key, ...) if isinstance(key, tuple) else (key, ...)])

    def __setitem__(self, key: Any, value: Any) -> None:
        (self.values[key],) = plain(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, out: Any = None, **more: Any) -> Any:
        if method == "reduce":
            return self._reduced({np.add: "sum", np.maximum: "max", np.minimum: "min"}[ufunc], given[0], **more)
        operands = plain(*given)
        result = ufunc(*operands)
        if ufunc is np.matmul:
            self.operations.update(mul=result.size * operands[0].shape[-1], add=result.size * operands[0].shape[-1])
        elif ufunc is np.power:  # rule 3
            exponent = int(operands[1])
            self.operations["mul"] += result.size * (exponent.bit_length() + exponent.bit_count() - 2)
        elif ufunc not in FREE:
            self.operations[CLASSES[ufunc]] += np.size(result)
        if out is None:
            return self.other(result)
        out[0].values[...] = result
        return out[0]

    def _reduced(self, name: str, of: Counted, axis: Any = None, keepdims: bool = False, **_: Any) -> Counted:
        result = getattr(np, name)(of.values, axis=axis, keepdims=keepdims)
        begun = np.size(result) if name != "sum" and (isinstance(axis, int) or of.ndim == 1) else 0
        self.operations[REDUCTIONS[name]] += of.size - begun
        return self.other(result)

    def __array_function__(self, function: Any, types: Any, given: Any, more: Mapping[str, Any]) -> Any:
        name = function.__name__
        if name in REDUCTIONS:
            return self._reduced(name, *given, **more)
        match name:
            case "mean":
                total = self._reduced("sum", *given, **more)
                return total / (given[0].size // total.size)
            case "where":
                return self.other(np.where(*plain(*given)))
            case "dot":
                return np.matmul(*given)
            case "outer":
                return given[0][:, None] * given[1]
            case "diagonal" | "diag":
                return self.other(np.diagonal(given[0].values))
            case "zeros_like" | "empty_like":
                return self.other(np.zeros(given[0].shape))
            case _:
                raise NotImplementedError(name)

    def __getattr__(self, name: str) -> Any:
        if name in ("sum", "max", "min", "mean", "dot"):
            return lambda *given, **more: getattr(np, name)(self, *given, **more)
        if name == "copy":
            return lambda: self.other(self.values.copy())
        raise AttributeError(name)
