"""Reads kernels whose references are uniform: loop variables plus numbers, in rectangular nests.

Subscripts before these may be numbers, as in `a[3, k, j, i]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, IntExpr
from roofdsl.loops.model import Array, Assign, Count, Element, For, If, Let, Node
from roofdsl.loops.sized import Sized


class NotUniform(Exception):
    """This method of counting does not handle the kernel, or one of its sizes; the message says why."""


Part = tuple[str, tuple[int, ...]]
"""An array, and the numbers of its subscripts before those with loop variables. References with other numbers touch
other elements, so that each part is counted like an array of its own.
"""


class Layout(Record):
    """The layout of an array in memory, from a line boundary on, or that of a part of it.

    per_line: elements in a line of line_bytes; strides[d]: elements from one row to the next along row dimension d;
    row: elements in a row; rows: the number of rows along each row dimension; temp: written elements need not be stored
    at the end; start: elements of the array before the part.
    """

    name: str
    line_bytes: int
    per_line: int
    strides: tuple[int, ...]
    row: int
    rows: tuple[int, ...]
    temp: bool
    start: int

    @property
    def aligned(self) -> bool:
        """Whether all rows begin on lines."""
        return all(s % self.per_line == 0 for s in (self.start, *self.strides))


class Reference(Record):
    """An access in a nest: element (v_0 + offsets[0], v_1 + offsets[1], ...) of an array, where v are the loop
    variables.
    """

    array: int
    offsets: tuple[int, ...]
    writes: bool


class Nest(Record):
    """Loops from low to high - 1, outermost first, and the accesses of one iteration in order."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    references: tuple[Reference, ...]


class Uniform(Record):
    """Nests that run one after the other; the whole sequence is repeated `times` times."""

    arrays: tuple[Layout, ...]
    nests: tuple[Nest, ...]
    times: int

    def ends(self) -> tuple[Nest, ...]:
        """A nest over each written temp array: the elements that the end of the execution visits."""
        written = {r.array for nest in self.nests for r in nest.references if r.writes}
        found = []
        for number, array in enumerate(self.arrays):
            if array.temp and number in written:
                zeros = (0,) * (len(array.rows) + 1)
                found.append(Nest(zeros, (*array.rows, array.row), (Reference(number, zeros, True),)))
        return tuple(found)


def uniform(at: Sized, line_bytes: int | None, *, padded: bool = False) -> Uniform:
    """The nests of a kernel at its sizes.

    line_bytes None: each array's line is its element. padded: rows of arrays are lengthened so that each begins on a
    line. Raises NotUniform.
    """
    body, times = _repeated(at.kernel.body, at.values)
    found = [_Perfect(node, at.values) for node in body if _has_accesses(node)]
    found = [each for each in found if all(low < high for low, high in each.ranges)]
    if not found or times < 1:
        raise NotUniform("nothing is executed")
    depth = len(found[0].loops)
    if any(len(nest.loops) != depth for nest in found):
        raise NotUniform("nests of several depths")
    number: dict[Part, int] = {}
    for each in (nest.part(access.element) for nest in found for access in nest.accesses):
        number.setdefault(each, len(number))
    arrays = {a.name: a for a in at.kernel.arrays}
    layouts = tuple(_layout(arrays[name], fixed, at.values, line_bytes, padded=padded) for name, fixed in number)
    program = Uniform(layouts, tuple(nest.nest(number) for nest in found), times)
    _require_lines_of_one_part(program)
    return program


def _require_lines_of_one_part(program: Uniform) -> None:
    """Raises NotUniform if two parts of an array touch the same line, which parts that begin on lines do not."""
    within = {a.name for a in program.arrays if a.start % a.per_line}
    if any(a.temp for a in program.arrays if a.name in within):
        raise NotUniform("parts of a temporary array begin within lines")
    touched: dict[int, tuple[int, int]] = {}
    for nest in program.nests:
        for r in nest.references:
            a = program.arrays[r.array]
            if a.name not in within:
                continue
            steps = (*a.strides, 1)
            ends = (nest.low, [high - 1 for high in nest.high])
            low, high = (
                (a.start + sum((v + o) * s for v, o, s in zip(end, r.offsets, steps, strict=True))) // a.per_line
                for end in ends
            )
            first, last = touched.get(r.array, (low, high))
            touched[r.array] = min(first, low), max(last, high)
    lines = sorted((program.arrays[k].name, *ends) for k, ends in touched.items())
    if any(a[0] == b[0] and a[2] >= b[1] for a, b in pairwise(lines)):
        raise NotUniform("parts of an array share a line")


def _repeated(body: Sequence[Node], values: Mapping[str, int]) -> tuple[Sequence[Node], int]:
    """The body without surrounding loops whose variables occur in no subscript or bound, and the number of times it
    runs.
    """
    times = 1
    while len(body) == 1 and isinstance(body[0], For) and body[0].var not in _symbols(body[0].body):
        start, stop, step = (_number(e, values) for e in (body[0].start, body[0].stop, body[0].step))
        times *= max(0, -(-(stop - start) // step))
        body = body[0].body
    return body, times


def _symbols(body: Sequence[Node]) -> frozenset[str]:
    """The names in the subscripts, bounds and conditions of a body."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, For):
            found |= node.start.symbols() | node.stop.symbols() | node.step.symbols() | _symbols(node.body)
        elif isinstance(node, If):
            found |= node.condition.symbols() | _symbols((*node.then, *node.orelse))
        elif isinstance(node, Assign | Let):
            for access in accesses(node):
                found |= frozenset().union(*(s.symbols() for s in access.element.subscripts))
    return frozenset(found)


def _has_accesses(node: Node) -> bool:
    match node:
        case For():
            return any(_has_accesses(inner) for inner in node.body)
        case If():
            return any(_has_accesses(inner) for inner in (*node.then, *node.orelse))
        case Count():
            return False
        case _:
            return bool(accesses(node))


class _Perfect:
    """A perfect nest with numbers in its bounds. Raises NotUniform."""

    def __init__(self, node: Node, values: Mapping[str, int]) -> None:
        self.values = values
        self.loops: list[For] = []
        body: Sequence[Node] = (node,)
        while len(body) == 1 and isinstance(body[0], For):
            self.loops.append(body[0])
            body = body[0].body
        if any(isinstance(inner, For | If) for inner in body):
            raise NotUniform("the loops are not perfectly nested, or there are conditions")
        if not self.loops:
            raise NotUniform("statements outside of loops")
        self.accesses = [a for inner in body if isinstance(inner, Assign | Let) for a in accesses(inner)]
        self.ranges = [self._range(loop) for loop in self.loops]

    def _range(self, loop: For) -> tuple[int, int]:
        if _number(loop.step, self.values) != 1:
            raise NotUniform("a loop with a step")
        return _number(loop.start, self.values), _number(loop.stop, self.values)

    def nest(self, number: Mapping[Part, int]) -> Nest:
        """The nest, with parts of arrays by number."""
        low, high = zip(*self.ranges, strict=True)
        references = tuple(
            Reference(number[self.part(a.element)], tuple(self._offsets(a.element)), a.is_write) for a in self.accesses
        )
        return Nest(low, high, references)

    def part(self, element: Element) -> Part:
        """The part of its array that a reference is to."""
        array, fixed = element.array, list[int]()
        subscripts = slowest_first(array, element.subscripts)
        if len(subscripts) < len(self.loops):
            raise NotUniform(f"{array.name} does not have as many dimensions as its nest has loops")
        for subscript, extent in zip(subscripts[: -len(self.loops)], slowest_first(array, array.dims), strict=False):
            if not isinstance(subscript, Const):
                raise NotUniform(f"{array.name} has more dimensions than its nest has loops")
            if not 0 <= subscript.value < extent.evaluate(self.values):
                raise NotUniform(f"a subscript outside of {array.name}")
            fixed.append(subscript.value)
        return array.name, tuple(fixed)

    def _offsets(self, element: Element) -> Iterator[int]:
        depth = len(self.loops)
        subscripts = slowest_first(element.array, element.subscripts)[-depth:]
        extents = [d.evaluate(self.values) for d in slowest_first(element.array, element.array.dims)[-depth:]]
        for loop, subscript, (low, high), extent in zip(self.loops, subscripts, self.ranges, extents, strict=True):
            form = affine(subscript)
            if form.coefficients().get(loop.var) != 1:
                raise NotUniform(f"a subscript of {element.array.name} is not {loop.var} and a number")
            rest = {**self.values, loop.var: 0}
            if not form.expression().symbols() <= rest.keys():
                raise NotUniform(f"a subscript of {element.array.name} has several loop variables")
            offset = form.expression().evaluate(rest)
            if low + offset < 0 or high + offset > extent:
                raise NotUniform(f"a subscript outside of {element.array.name}")
            yield offset


def _number(expression: IntExpr, values: Mapping[str, int]) -> int:
    if isinstance(expression, Const):
        return expression.value
    if not expression.symbols() <= values.keys():
        raise NotUniform("a bound that depends on a loop")
    return expression.evaluate(values)


def slowest_first(array: Array, of_dims: tuple[IntExpr, ...]) -> tuple[IntExpr, ...]:
    """What belongs to the dimensions of an array, in the order of its layout."""
    return of_dims[::-1] if array.column_major else of_dims


def _layout(
    array: Array, fixed: tuple[int, ...], values: Mapping[str, int], line_bytes: int | None, *, padded: bool
) -> Layout:
    """The layout of the part of an array whose first subscripts are `fixed`."""
    line = line_bytes or array.type.bytes
    per_line = line // array.type.bytes
    extents = [d.evaluate(values) for d in slowest_first(array, array.dims)]
    if padded:
        extents[-1] = (extents[-1] + per_line - 1) // per_line * per_line
    strides, step = [0] * len(extents), 1
    for d in range(len(extents) - 1, -1, -1):
        strides[d] = step
        step *= extents[d]
    inner, start = len(fixed), sum(k * s for k, s in zip(fixed, strides, strict=False))
    return Layout(
        array.name,
        line,
        per_line,
        tuple(strides[inner:-1]),
        extents[-1],
        tuple(extents[inner:-1]),
        array.intent == "temp",
        start,
    )
