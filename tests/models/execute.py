"""Execute a kernel on numbers, in loops over every iteration, and count each operation as it is carried out.

Nothing here is shared with the analyses or the code generators: operations are counted from the operands that meet
(docs/rules.md, rules 1 to 4), so that W in closed form has something to be compared with.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    Count,
    DataCompare,
    Element,
    Expr,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Number,
    ScalarRef,
    Select,
    Unary,
)
from tests.oracle.enumerate import admissible, walk

Arrays = dict[str, npt.NDArray[np.generic]]
Value = tuple[complex, bool]  # a float or complex number, and whether it is data (rule 2)

ARITHMETIC: dict[str, Callable[[complex, complex], complex]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": lambda x: math.sqrt(abs(x)),  # random contents are no positive definite matrix
    "rsqrt": lambda x: 1 / math.sqrt(abs(x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "rcp": lambda x: 1 / x,
    **{name: getattr(math, name) for name in ("exp", "log", "tanh", "sin", "cos")},
}
COMPLEX_COST = {"+": 2, "-": 2, "*": 6, "/": 11}


@dataclass
class Executed:
    """The arrays afterwards, operations carried out, and the distinct elements touched, by array."""

    arrays: Arrays
    work: int = 0
    touched: dict[str, set[tuple[int, ...]]] = field(default_factory=dict)


def inputs(kernel: Kernel, params: Mapping[str, int], seed: int = 1) -> Arrays:
    """Random contents for every array: numbers between 0.5 and 1.5, complex where the array is."""
    random = np.random.default_rng(seed)
    found: Arrays = {}
    for array in kernel.arrays:
        shape = tuple(d.evaluate(dict(params)) for d in array.dims)
        values: npt.NDArray[np.generic] = random.uniform(0.5, 1.5, shape)
        if array.type.name in ("c64", "c128"):
            values = values + 1j * random.uniform(0.5, 1.5, shape)
        found[array.name] = np.array(values)
    return found


def execute(kernel: Kernel, params: Mapping[str, int], arrays: Arrays) -> Executed:
    """Runs the kernel in the order of its text. Raises ValueError for sizes it does not allow."""
    if not admissible(kernel, params):
        raise ValueError(f"{kernel.name} does not allow {dict(params)}")
    machine = _Machine({name: values.copy() for name, values in arrays.items()})
    for statement, env in walk(kernel.body, dict(params)):
        if not isinstance(statement, Count):
            machine.statement(statement, env)
    return machine.done


class _Machine:
    def __init__(self, arrays: Arrays) -> None:
        self.done = Executed(arrays)
        self.lets: dict[str, Value] = {}

    def statement(self, statement: Assign | Let, env: dict[str, int]) -> None:
        value = self.value(statement.value, env)
        if isinstance(statement, Let):
            self.lets[statement.name] = value[0], True
            return
        name, place = self.place(statement.target, env)
        if statement.op != "=":
            value = self.combine(statement.op[:-1], (self.done.arrays[name][place].item(), True), value)
        self.done.arrays[name][place] = value[0]

    def place(self, target: Element | ScalarRef, env: Mapping[str, int]) -> tuple[str, tuple[int, ...]]:
        if isinstance(target, ScalarRef):
            return target.array.name, ()
        index = tuple(s.evaluate(dict(env)) for s in target.subscripts)
        assert all(0 <= i < n for i, n in zip(index, self.done.arrays[target.array.name].shape, strict=True))
        self.done.touched.setdefault(target.array.name, set()).add(index)
        return target.array.name, index

    def combine(self, op: str, a: Value, b: Value) -> Value:
        if op in ("min", "max"):
            self.done.work += a[1] or b[1]
            return (min if op == "min" else max)(a[0].real, b[0].real), a[1] or b[1]
        if a[1] or b[1]:
            kinds = [isinstance(v[0], complex) for v in (a, b)]
            mixed = {"*": 2, "/": 2 if kinds[0] else 7}.get(op, 2)
            self.done.work += COMPLEX_COST[op] if all(kinds) else mixed if any(kinds) else 1
        return ARITHMETIC[op](a[0], b[0]), a[1] or b[1]

    def value(self, e: Expr, env: dict[str, int]) -> Value:
        match e:
            case Number():
                return float(e.value), False
            case IntValue():
                return float(e.value.evaluate(env)), False
            case Element() | ScalarRef():
                name, place = self.place(e, env)
                return self.done.arrays[name][place].item(), True
            case LetRef():
                return self.lets[e.name]
            case Unary():
                inner = self.value(e.operand, env)
                return -inner[0], inner[1]
            case Binary(op="**"):
                assert isinstance(e.right, Number)
                base = self.value(e.left, env)
                self.done.work += base[1] * {1: 0, 2: 1, 3: 2, 4: 2}[int(e.right.value)]
                return base[0] ** int(e.right.value), base[1]
            case Binary():
                return self.combine(e.op, self.value(e.left, env), self.value(e.right, env))
            case Select():
                return self.select(e, env)
            case Call():
                return self.call(e.function, [self.value(a, env) for a in e.args])
        raise TypeError(e)

    def select(self, e: Select, env: dict[str, int]) -> Value:
        condition: DataCompare = e.condition
        left, right = self.value(condition.left, env), self.value(condition.right, env)
        arms = [self.value(e.if_true, env), self.value(e.if_false, env)]
        chosen = arms[0] if COMPARE[condition.op](left[0].real, right[0].real) else arms[1]
        return chosen[0], any(a[1] for a in arms)

    def call(self, function: str, args: list[Value]) -> Value:
        if function in ("min", "max"):
            total = args[0]
            for other in args[1:]:
                total = self.combine(function, total, other)
            return total
        ((x, data),) = args
        match function:
            case "conj":
                return x.conjugate(), data
            case "real":
                return x.real, data
            case "imag":
                return x.imag, data
            case "abs":
                self.done.work += 4 * (data and isinstance(x, complex))
                return abs(x), data
        self.done.work += data
        return (cmath.sqrt(x), data) if isinstance(x, complex) else (FUNCTIONS[function](x), data)
