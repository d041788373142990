"""How the reference computes values: memory, integers and expressions at many iterations at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen import error_bounds
from roofdsl.codegen.computed_types import compared_in, is_complex, join, kind_of, settled
from roofdsl.codegen.error_bounds import Ball
from roofdsl.codegen.storage import decode
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.types import ElementType
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
    Tree,
    fold,
)
from roofdsl.loops.model import (
    Array,
    Binary,
    Call,
    Element,
    Expr,
    IntValue,
    Kernel,
    LetRef,
    Number,
    Read,
    ScalarRef,
    Select,
    Unary,
)

Numbers = NDArray[Any]


@dataclass
class Memory:
    """An array's contents, element by element."""

    value: Numbers
    error: Numbers
    written: NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """Iterations that are computed at once: `shape` has one dimension for each nesting depth of loops.

    Loop variables that are axes are arrays in `env` that broadcast to the shape; the others are plain integers.
    """

    shape: tuple[int, ...]
    env: dict[str, Any]
    lets: dict[str, Ball]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def having(self, var: str, value: Any, shape: tuple[int, ...] | None = None) -> Grid:
        return Grid(shape or self.shape, {**self.env, var: value}, dict(self.lets))

    def where(self, mask: Numbers) -> Grid:
        """The points at which the mask holds, in one dimension."""
        full = np.broadcast_to(mask, self.shape)
        shape = (int(full.sum()), *(1,) * (len(self.shape) - 1))

        def pick(a: Any) -> Any:
            return np.broadcast_to(a, self.shape)[full].reshape(shape) if np.ndim(a) else a

        lets = {name: Ball(pick(b.value), pick(b.error), pick(b.summands)) for name, b in self.lets.items()}
        return Grid(shape, {name: pick(v) for name, v in self.env.items()}, lets)


class Values:
    """Evaluates the expressions of one kernel at all points of a grid of iterations.

    renamed: types that are rounded as other types (f32 as tf32). precise: compute in longdouble because the kernel has
    f64.
    """

    def __init__(
        self, kernel: Kernel, params: Mapping[str, int], inputs: Mapping[str, Numbers], renamed: Mapping[str, str]
    ) -> None:
        self.renamed = renamed
        self.precise = any(a.type.component.name == "f64" for a in kernel.arrays)
        self.memory = {a.name: self._memory(a, params, inputs) for a in kernel.arrays}

    def _memory(self, array: Array, params: Mapping[str, int], inputs: Mapping[str, Numbers]) -> Memory:
        shape = tuple(d.evaluate(params) for d in array.dims)
        given = inputs.get(array.name)
        known = given is not None and array.intent in ("in", "inout")
        value = decode(np.asarray(given), array.type.name).reshape(shape) if known else self._nothing(array, shape)
        if self.precise and array.type.kind != "int":
            value = value.astype(np.clongdouble if array.type.kind == "complex" else np.longdouble)
        # elements that were never written have no value
        error = np.zeros(shape) if known else np.full(shape, np.inf)
        return Memory(np.array(value), error, np.zeros(shape, bool))

    @staticmethod
    def _nothing(array: Array, shape: tuple[int, ...]) -> Numbers:
        if array.type.kind == "int":
            return np.zeros(shape, np.int64)
        return np.full(shape, np.nan, np.complex128 if array.type.kind == "complex" else np.float64)

    # ---- integers ----

    def integer(self, e: IntExpr, env: Mapping[str, Any]) -> Any:
        """The value, an array if it depends on an axis; numpy's `//` and `%` round down like Python's."""
        return fold(e, {**_ROWS, Sym: lambda node: env[node.name], Read: self._index})

    def _index(self, node: Read, *index: Any) -> Any:
        """The element of an index array: one value, or one for each point."""
        memory = self.memory[node.element.array.name]
        self._inside(node.element, memory, index)
        found = memory.value[index]
        return found if np.ndim(found) else int(found)

    def holds(self, c: Condition, env: Mapping[str, Any]) -> Any:
        return fold(c, {**_ROWS, Sym: lambda node: env[node.name]})

    # ---- values ----

    def value(self, e: Expr, grid: Grid, kind: str) -> Ball:
        """A value converted to `kind`, one of the computed types."""
        own = kind_of(e)
        if own in ("whole", "plain"):
            ball = self._plain(e, grid)
            if kind in ("i32", "i64"):
                return error_bounds.to_integer(ball)
        else:
            ball = self._compute(e, grid, own)
            if own == kind:
                return ball
            if kind in ("i32", "i64") and own not in ("i32", "i64"):
                return error_bounds.to_integer(ball)
            if own in ("i32", "i64") and kind not in ("i32", "i64"):
                ball = Ball(np.asarray(ball.value).astype(self._float), ball.error)
        return error_bounds.rounded(ball, self.renamed.get(kind, kind))

    @property
    def _float(self) -> Any:
        return np.longdouble if self.precise else np.float64

    def _plain(self, e: Expr, grid: Grid) -> Ball:
        """Numbers, parameters and loop variables: computed in f64."""
        if isinstance(e, Number):
            return Ball(self._float(e.value), 0.0)
        if isinstance(e, IntValue):
            return Ball(np.asarray(self.integer(e.value, grid.env)).astype(self._float), 0.0)
        return self._compute(e, grid, "f64")

    def _compute(self, e: Expr, grid: Grid, kind: str) -> Ball:
        name = self.renamed.get(kind, kind)
        match e:
            case Element():
                return self.read(e, grid)
            case ScalarRef(array):
                memory = self.memory[array.name]
                return Ball(memory.value[()], memory.error[()])
            case LetRef(let):
                return grid.lets[let]
            case Number() | IntValue():
                return error_bounds.rounded(self._plain(e, grid), name)
            case Unary(_, operand):
                ball = self.value(operand, grid, self._side(operand, kind))
                return Ball(-ball.value, ball.error, ball.summands)
            case Binary("**", left, Number(exponent)):
                return self._power(self.value(left, grid, kind), int(exponent), name)
            case Binary(op, left, right):
                a = self.value(left, grid, self._side(left, kind))
                return error_bounds.arithmetic(op, a, self.value(right, grid, self._side(right, kind)), name)
            case Call(function, args):
                return self._call(function, args, grid, kind)
            case Select(c, if_true, if_false):
                compared = compared_in(c)
                sides = self.value(c.left, grid, compared), self.value(c.right, grid, compared)
                arms = self.value(if_true, grid, kind), self.value(if_false, grid, kind)
                return error_bounds.chosen(c.op, *sides, *arms)
        raise TypeError(e)

    @staticmethod
    def _side(operand: Expr, kind: str) -> str:
        real = {"c128": "f64", "c64": "f32"}
        return real.get(kind, kind) if not is_complex(kind_of(operand)) else kind

    def _power(self, base: Ball, exponent: int, name: str) -> Ball:
        if exponent == 0:
            return Ball(np.ones_like(base.value), 0.0)
        result = base
        for bit in bin(exponent)[3:]:
            result = error_bounds.arithmetic("*", result, result, name)
            if bit == "1":
                result = error_bounds.arithmetic("*", result, base, name)
        return result

    def _call(self, function: str, args: Sequence[Expr], grid: Grid, kind: str) -> Ball:
        row, given = FUNCTIONS[function], settled(join(kind_of(a) for a in args))
        if row.takes_complex:
            ball = self.value(args[0], grid, given)
            value = row.numpy(np)(ball.value)
            inexact = row.of_complex and is_complex(given)
            return error_bounds.rounded(Ball(value, ball.error), kind, 4.0) if inexact else Ball(value, ball.error)
        parts = [self.value(a, grid, kind) for a in args]
        if row.cls == "min":
            return reduce(lambda a, b: error_bounds.extremum(function, a, b), parts)
        return error_bounds.function(function, parts[0], self.renamed.get(kind, kind))

    # ---- memory ----

    def index(self, e: Element, grid: Grid) -> tuple[Any, ...]:
        return tuple(self.integer(s, grid.env) for s in e.subscripts)

    def read(self, e: Element, grid: Grid) -> Ball:
        memory, index = self.memory[e.array.name], self.index(e, grid)
        self._inside(e, memory, index)
        return Ball(memory.value[index], memory.error[index])

    @staticmethod
    def _inside(e: Element, memory: Memory, index: tuple[Any, ...]) -> None:
        """Raise IndexError for an index below 0, which numpy would count from the end."""
        if any(np.min(i) < 0 for i in index):
            raise IndexError(f"{e.array.name} on line {e.span.line} is read or written outside its bounds")

    def store(self, target: Element | ScalarRef, ball: Ball, index: tuple[Any, ...]) -> None:
        memory = self.memory[target.array.name]
        if isinstance(target, Element):
            self._inside(target, memory, index)
        stored = self.held(ball, target.array.type)
        memory.value[index] = stored.value
        memory.error[index] = stored.error
        memory.written[index] = True

    def held(self, ball: Ball, type_: ElementType) -> Ball:
        """The ball as an array of that type stores it."""
        if type_.kind != "int":
            return error_bounds.rounded(ball, type_.name)
        ball = ball if np.asarray(ball.value).dtype.kind in "iu" else error_bounds.to_integer(ball)
        bits = type_.bytes * 8
        value = np.asarray(ball.value, np.int64)
        held = value.astype(f"int{bits}").astype(np.int64)
        return Ball(held, np.where(held == value, ball.error, np.inf))  # after an overflow, the value may be anything


def _least(scalar: Any, array: Any, terms: Sequence[Any]) -> Any:
    return reduce(array, terms) if any(np.ndim(t) for t in terms) else scalar(terms)


_ROWS: dict[type[Tree], Callable[..., Any]] = {
    Const: lambda node: node.value,
    Sum: lambda _, *terms: sum(terms),
    Product: lambda _, *terms: reduce(operator.mul, terms),
    Min: lambda _, *terms: _least(min, np.minimum, terms),
    Max: lambda _, *terms: _least(max, np.maximum, terms),
    FloorDiv: lambda _, numerator, divisor: numerator // divisor,
    Mod: lambda _, numerator, divisor: numerator % divisor,
    Compare: lambda node, left, right: error_bounds.COMPARE[node.op](left, right),
    And: lambda _, *parts: reduce(np.logical_and, parts),
    Or: lambda _, *parts: reduce(np.logical_or, parts),
    Not: lambda _, part: np.logical_not(part),
}
