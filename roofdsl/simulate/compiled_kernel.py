"""A kernel at given sizes as tables of small integers, which the compiled loops of `roofdsl.simulate.walk` run.

There are three tables. `code` is the control flow, with one row per instruction; see the constants `HALT` to `SWEEP`.
`terms` are the integer expressions of bounds, guards and flat element numbers in postfix form, with one row per
operation; an affine expression is a constant followed by one `MADD` for each variable. `references` are the accesses of
straight-line code; an innermost loop around straight-line code is one instruction, whose references move by a fixed
stride. Lines are numbered consecutively from 0, array after array, and each array starts at the start of a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import Access, accesses, bound_accesses, reads_in
from roofdsl.loops.index_data import IndexData
from roofdsl.loops.indirect import is_indirect, require_data
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
    add,
    mul,
)
from roofdsl.loops.model import Array, Assign, Count, Element, For, If, Kernel, Let, Node, Read
from roofdsl.loops.parameter_values import check_complete

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Instructions. LOOP variable, start, stop, exit; NEXT variable, step, body; UNLESS condition, target; JUMP target;
# RUN group: its references once; SWEEP variable, start, stop, step, group: an innermost loop over its references.
# Start, stop and condition are expression numbers.
HALT, LOOP, NEXT, UNLESS, JUMP, RUN, SWEEP = range(7)
# Expression operations. CONST pushes a value; MADD adds variable * coefficient to the top; the others replace two
# values by one (NOT and GATHER replace one). A truth value is 0 or 1. GATHER first, count replaces a flat element
# number of an index array by that element, which stands after the variables; -1 for one outside the array.
CONST, MADD, ADD, MUL, MIN, MAX, FLOOR, MOD, EQ, NE, LT, LE, GT, GE, AND, OR, NOT, GATHER = range(18)

_COMPARISONS = {"==": EQ, "!=": NE, "<": LT, "<=": LE, ">": GT, ">=": GE}
LARGEST = 2**62


@dataclass(frozen=True)
class Layout:
    """The location of an array: `count` lines of `line_bytes` from line `first` on, with `per_line` elements each."""

    array: Array
    line_bytes: int
    per_line: int
    first: int
    count: int
    elements: int


@dataclass(frozen=True)
class Program:
    """The tables of one kernel at one size.

    spans: where each expression begins and ends in `terms`. groups: the first reference and the number of references of
    each piece of straight-line code. references: (flat element expression, array, write, elements moved per iteration).
    data: the values of index arrays, which follow each other, as they are stored; None for an affine kernel.
    """

    code: tuple[tuple[int, int, int, int, int, int], ...]
    terms: tuple[tuple[int, int, int], ...]
    spans: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, int], ...]
    references: tuple[tuple[int, int, int, int], ...]
    layouts: tuple[Layout, ...]
    variables: int
    stack: int
    data: tuple[NDArray[np.int64], ...] | None = None

    @property
    def lines(self) -> int:
        """The number of lines of all arrays together."""
        return sum(a.count for a in self.layouts)


def compile_kernel(kernel: Kernel, params: Mapping[str, int], line_bytes: int | None) -> Program:
    """The program of a kernel with its directives applied, with lines of `line_bytes` (None: one element each).

    Raises CommandError if a line is not a multiple of an element, a parameter or an index array has no value, an
    assumption is violated, a loop's step is not positive, or a number is too large.
    """
    if kernel.directives:
        raise CommandError(f"kernel {kernel.name} has directives that were not applied")
    check_complete(f"kernel {kernel.name}", [p.name for p in kernel.parameters], params)
    for condition in kernel.assumptions:
        if not condition.holds(params):
            raise CommandError(f"kernel {kernel.name} assumes {condition}, which does not hold at these sizes")
    if is_indirect(kernel):
        require_data(kernel)
    data = _Data(kernel.data)
    compiler = _Compiler(params, _layouts(kernel, params, line_bytes), data)
    compiler.block(kernel.body, {})
    compiler.emit(HALT)
    behind = max(1, compiler.variables)  # the data begin behind the variables
    terms = tuple((op, a + behind, b) if op == GATHER else (op, a, b) for op, a, b in compiler.terms)
    code, references = tuple(compiler.code), tuple(compiler.references)
    if any(abs(x) > LARGEST for row in (*code, *terms, *references) for x in row):
        raise CommandError(f"the sizes given to kernel {kernel.name} are too large to simulate")
    spans, groups = tuple(compiler.spans), tuple(compiler.groups)
    return Program(
        code, terms, spans, groups, references, compiler.layouts, compiler.variables, compiler.stack, data.stored()
    )


class _Data:
    """The values of index arrays, one array after another in the order in which they are asked for."""

    def __init__(self, data: IndexData | None) -> None:
        self.data = data
        self.first: dict[str, int] = {}
        self.columns: list[NDArray[np.int64]] = []

    def place(self, array: Array) -> tuple[int, int]:
        """Where the values of an array begin, and how many there are."""
        if self.data is None:
            raise TypeError("an affine kernel reads no index array")
        values = self.data.values[array.name]
        if array.name not in self.first:
            self.first[array.name] = sum(map(len, self.columns))
            self.columns.append(values.reshape(-1, order="F" if array.column_major else "C"))
        return self.first[array.name], values.size

    def stored(self) -> tuple[NDArray[np.int64], ...] | None:
        return tuple(self.columns) or None


def _layouts(kernel: Kernel, params: Mapping[str, int], line_bytes: int | None) -> tuple[Layout, ...]:
    layouts, first = [], 0
    for a in kernel.arrays:
        if a.is_scalar:
            continue
        size = a.type.bytes
        line = size if line_bytes is None else line_bytes
        if line < size or line % size:
            raise CommandError(
                f"a line of {line} B is not a multiple of an element of {a.name} ({a.type}, {size} B)",
                "give a line that every element size divides",
            )
        elements = prod(max(0, d.evaluate(params)) for d in a.dims)
        count = -(-elements * size // line)
        layouts.append(Layout(a, line, line // size, first, count, elements))
        first += count
    return tuple(layouts)


class _Compiler:
    def __init__(self, params: Mapping[str, int], layouts: tuple[Layout, ...], data: _Data) -> None:
        self.params, self.layouts, self.data = params, layouts, data
        self.arrays = {a.array.name: (k, a.array.strides(params)) for k, a in enumerate(layouts)}
        self.code: list[tuple[int, int, int, int, int, int]] = []
        self.terms: list[tuple[int, int, int]] = []
        self.spans: list[tuple[int, int]] = []
        self.groups: list[tuple[int, int]] = []
        self.references: list[tuple[int, int, int, int]] = []
        self.known: dict[tuple[tuple[int, int, int], ...], int] = {}
        self.variables = 0
        self.stack = 1

    def emit(self, op: int, *operands: int) -> int:
        a, b, c, d, e = (*operands, 0, 0, 0, 0, 0)[:5]
        self.code.append((op, a, b, c, d, e))
        return len(self.code) - 1

    # ---- control flow ----

    def block(self, body: Sequence[Node], scope: Mapping[str, int]) -> None:
        for is_straight, nodes in groupby(body, lambda node: isinstance(node, (Assign, Let, Count))):
            if is_straight:
                touched = self.touched(list(nodes))
                if touched:
                    rows = [(self.expression(flat, scope), array, write, 0) for flat, array, write in touched]
                    self.emit(RUN, self.group(rows))
                continue
            for node in nodes:
                if isinstance(node, For):
                    self.loop(node, scope)
                elif isinstance(node, If):
                    self.branch(node, scope)

    def branch(self, node: If, scope: Mapping[str, int]) -> None:
        condition = self.condition(node.condition, scope)
        branch = self.emit(UNLESS, condition)
        self.block(node.then, scope)
        if node.orelse:
            skip = self.emit(JUMP)
            self.code[branch] = (UNLESS, condition, len(self.code), 0, 0, 0)
            self.block(node.orelse, scope)
            self.code[skip] = (JUMP, len(self.code), 0, 0, 0, 0)
        else:
            self.code[branch] = (UNLESS, condition, len(self.code), 0, 0, 0)

    def loop(self, node: For, scope: Mapping[str, int]) -> None:
        step = node.step.evaluate(self.params)
        if step <= 0:
            raise CommandError(f"the step of loop {node.var} is {step}, and must be positive")
        read = bound_accesses(node)
        if read:
            self.emit(RUN, self.group([(self.expression(f, scope), a, w, 0) for f, a, w in map(self.touch, read)]))
        variable, self.variables = self.variables, self.variables + 1
        start, stop = self.expression(node.start, scope), self.expression(node.stop, scope)
        inner = {**scope, node.var: variable}
        rows = self.moving(node, step, inner)
        if rows is not None:
            if rows:
                self.emit(SWEEP, variable, start, stop, step, self.group(rows))
            return
        begin = self.emit(LOOP, variable, start, stop)
        self.block(node.body, inner)
        if not any(row[0] in (RUN, SWEEP) for row in self.code[begin:]):  # registers and counters only
            del self.code[begin:]
            return
        self.emit(NEXT, variable, step, begin + 1)
        self.code[begin] = (LOOP, variable, start, stop, len(self.code), 0)

    # ---- references ----

    def moving(self, node: For, step: int, scope: Mapping[str, int]) -> list[tuple[int, int, int, int]] | None:
        """The references of an innermost loop; None if it has a loop or a branch in it, or a reference that does not
        move evenly.
        """
        body = [n for n in node.body if isinstance(n, (Assign, Let, Count))]
        if len(body) < len(node.body):
            return None
        rows = []
        for flat, array, write in self.touched(body):
            _, coefficients, others = self._affine(flat, scope)
            if any(node.var in other.symbols() for _, other in others):
                return None
            stride = step * coefficients.get(scope[node.var], 0)
            rows.append((self.expression(flat, scope), array, write, stride))
        return rows

    def touched(self, body: Sequence[Node]) -> list[tuple[IntExpr, int, int]]:
        """(flat element, array, write) of every access of straight-line code, in order."""
        every = (s for s in body if isinstance(s, (Assign, Let)))
        return [self.touch(access) for statement in every for access in accesses(statement)]

    def touch(self, access: Access) -> tuple[IntExpr, int, int]:
        return self.flat(access.element), self.arrays[access.element.array.name][0], int(access.is_write)

    def flat(self, element: Element) -> IntExpr:
        _, strides = self.arrays[element.array.name]
        return add(*(mul(Const(s), e) for s, e in zip(strides, element.subscripts, strict=True)))

    def group(self, rows: list[tuple[int, int, int, int]]) -> int:
        self.groups.append((len(self.references), len(rows)))
        self.references += rows
        return len(self.groups) - 1

    # ---- expressions ----

    def expression(self, e: IntExpr, scope: Mapping[str, int]) -> int:
        return self._number(self._integer(e, scope))

    def condition(self, c: Condition, scope: Mapping[str, int]) -> int:
        return self._number(self._truth(c, scope))

    def _number(self, rows: list[tuple[int, int, int]]) -> int:
        """The number of this expression, which is stored only once."""
        key = tuple(rows)
        if key not in self.known:
            depth = deepest = 0
            for op, _, _ in rows:
                if op == CONST:
                    depth += 1
                elif op not in (MADD, NOT, GATHER):
                    depth -= 1
                deepest = max(deepest, depth)
            self.stack = max(self.stack, deepest)
            self.spans.append((len(self.terms), len(self.terms) + len(rows)))
            self.terms += rows
            self.known[key] = len(self.spans) - 1
        return self.known[key]

    def _integer(self, e: IntExpr, scope: Mapping[str, int]) -> list[tuple[int, int, int]]:
        """The postfix form: the affine part, then every other term."""
        constant, coefficients, others = self._affine(e, scope)
        affine = [(CONST, constant, 0), *((MADD, v, c) for v, c in sorted(coefficients.items()) if c)]
        rows = affine if affine != [(CONST, 0, 0)] or not others else []
        for factor, other in others:
            sum_so_far = bool(rows)
            rows += self._other(other, scope)
            if factor != 1:
                rows += [(CONST, factor, 0), (MUL, 0, 0)]
            if sum_so_far:
                rows.append((ADD, 0, 0))
        return rows

    def _affine(self, e: IntExpr, scope: Mapping[str, int]) -> tuple[int, dict[int, int], list[tuple[int, IntExpr]]]:
        """`e` as a constant, coefficients of variables, and (factor, term) for the terms that are not affine."""
        if self._fixed(e, scope):
            return e.evaluate(self.params), {}, []
        match e:
            case Sym():
                return 0, {scope[e.name]: 1}, []
            case Sum():
                total: int = 0
                coefficients: dict[int, int] = {}
                others: list[tuple[int, IntExpr]] = []
                for term in e.terms:
                    c, linear, rest = self._affine(term, scope)
                    total += c
                    for v, k in linear.items():
                        coefficients[v] = coefficients.get(v, 0) + k
                    others += rest
                return total, coefficients, others
            case Product():
                fixed = [t for t in e.terms if self._fixed(t, scope)]
                varying = [t for t in e.terms if not self._fixed(t, scope)]
                factor = prod(t.evaluate(self.params) for t in fixed)
                if len(varying) > 1:
                    return 0, {}, [(factor, Product(tuple(varying)))]
                c, linear, rest = self._affine(varying[0], scope)
                return c * factor, {v: k * factor for v, k in linear.items()}, [(k * factor, t) for k, t in rest]
        return 0, {}, [(1, e)]

    def _fixed(self, e: IntExpr, scope: Mapping[str, int]) -> bool:
        """Whether an expression has the same value all through the kernel."""
        return not e.symbols() & scope.keys() and next(reads_in(e), None) is None

    def _other(self, e: IntExpr, scope: Mapping[str, int]) -> list[tuple[int, int, int]]:
        operations: dict[type[IntExpr], int] = {Product: MUL, Min: MIN, Max: MAX, FloorDiv: FLOOR, Mod: MOD}
        rows: list[tuple[int, int, int]] = []
        if isinstance(e, Read):
            return [*self._integer(self.flat(e.element), scope), (GATHER, *self.data.place(e.element.array))]
        for k, argument in enumerate(e.args()):
            rows += self._integer(argument, scope)
            if k:
                rows.append((operations[type(e)], 0, 0))
        return rows

    def _truth(self, c: Condition, scope: Mapping[str, int]) -> list[tuple[int, int, int]]:
        match c:
            case Compare():
                left, right = self._integer(c.left, scope), self._integer(c.right, scope)
                return [*left, *right, (_COMPARISONS[c.op], 0, 0)]
            case Not():
                return [*self._truth(c.part, scope), (NOT, 0, 0)]
            case And() | Or():
                rows = self._truth(c.parts[0], scope)
                for part in c.parts[1:]:
                    rows += [*self._truth(part, scope), (AND if isinstance(c, And) else OR, 0, 0)]
                return rows
        raise TypeError(type(c))
