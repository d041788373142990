"""Reads kernels in rectangular loops whose subscripts are numbers, or loop variables in any order plus numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import Any

from roofdsl.counts.lines.uniform import NotUniform
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, IntExpr
from roofdsl.loops.model import Array, Assign, Count, Element, For, Let, Node
from roofdsl.loops.sized import Sized

Place = tuple[int | None, int]
"""A subscript: (the depth of the loop whose variable it contains, None if there is none; the number added to it)."""


class Data(Record):
    """An array whose rows begin on lines. per_line: elements in a line of line_bytes; shape: the number of rows along
    each dimension but the last, and the number of lines in a row; temp: as declared.
    """

    name: str
    line_bytes: int
    per_line: int
    shape: tuple[Any, ...]
    temp: bool


class Operand(Record):
    """An access to element `subscripts` of an array. The last subscript runs along rows."""

    array: int
    subscripts: tuple[Place, ...]
    writes: bool


class Leaf:
    """Consecutive statements with the loops around them, outermost first: the loops, and (first, last) of each.

    Leaves are numbered in textual order.
    """

    __slots__ = ("box", "loops", "number", "operands")

    def __init__(self, number: int, loops: tuple[int, ...], box: tuple[tuple[Any, Any], ...]) -> None:
        self.number, self.loops, self.box = number, loops, box
        self.operands: list[Operand] = []

    def shared(self, other: Leaf) -> int:
        """The number of loops around both."""
        n = 0
        for a, b in zip(self.loops, other.loops, strict=False):
            if a != b:
                break
            n += 1
        return n


class Nests(Record):
    """All accesses of a kernel. step: a multiple of the number of elements in a line, for every array."""

    data: tuple[Data, ...]
    leaves: tuple[Leaf, ...]
    step: int

    def ends(self) -> list[Leaf]:
        """Loops over the rows and lines of each written temp array: the lines that the end of the execution visits.

        The variable of the last loop counts lines.
        """
        written = {o.array for leaf in self.leaves for o in leaf.operands if o.writes}
        found = []
        for number, array in enumerate(self.data):
            if array.temp and number in written:
                depth = len(array.shape)
                # separate loops, after all leaves
                loops = tuple(-1 - d for d in range(depth))
                leaf = Leaf(self.leaves[-1].number + 1, loops, tuple((0, n - 1) for n in array.shape))
                leaf.operands.append(Operand(number, tuple((d, 0) for d in range(depth)), True))
                found.append(leaf)
        return found


def nests(at: Sized, line_bytes: int | None, *, padded: bool = False) -> Nests:
    """The accesses of a kernel at its sizes, which may be forms. line_bytes None: each array's line is its element.

    padded: rows of arrays are lengthened so that each begins on a line. Raises NotUniform.
    """
    reader = _Reader(at.values)
    reader.read(at.kernel.body, (), ())
    leaves = tuple(leaf for leaf in reader.leaves if leaf.operands)
    if not leaves:
        raise NotUniform("nothing is executed")
    data = tuple(_data(a, at.values, line_bytes, padded=padded) for a in reader.arrays.values())
    return Nests(data, leaves, lcm(*(a.per_line for a in data)))


class _Reader:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.leaves: list[Leaf] = []
        self.arrays: dict[str, Array] = {}
        self._loops = 0

    def read(self, body: Sequence[Node], loops: tuple[tuple[int, For], ...], box: tuple[tuple[Any, Any], ...]) -> None:
        """Appends the leaves of a body. Raises NotUniform."""
        leaf: Leaf | None = None
        for node in body:
            if isinstance(node, For):
                leaf = None
                first, last = self._range(node)
                self._loops += 1
                if not first > last:
                    self.read(node.body, (*loops, (self._loops, node)), (*box, (first, last)))
            elif isinstance(node, Assign | Let):
                if leaf is None:
                    leaf = Leaf(len(self.leaves), tuple(n for n, _ in loops), box)
                    self.leaves.append(leaf)
                for access in accesses(node):
                    leaf.operands.append(self._operand(access.element, access.is_write, [f for _, f in loops], box))
            elif not isinstance(node, Count):
                raise NotUniform("conditions")

    def _range(self, loop: For) -> tuple[Any, Any]:
        if self._number(loop.step) != 1:
            raise NotUniform("a loop with a step")
        return self._number(loop.start), self._number(loop.stop) - 1

    def _number(self, expression: IntExpr) -> Any:
        if isinstance(expression, Const):
            return expression.value
        if not expression.symbols() <= self.values.keys():
            raise NotUniform("a bound that depends on a loop")
        return expression.evaluate(self.values)

    def _operand(
        self, element: Element, writes: bool, loops: Sequence[For], box: tuple[tuple[Any, Any], ...]
    ) -> Operand:
        array = element.array
        self.arrays.setdefault(array.name, array)
        subscripts, dims = element.subscripts, array.dims
        if array.column_major:
            subscripts, dims = subscripts[::-1], dims[::-1]
        places = tuple(self._place(s, loops, array.name) for s in subscripts)
        used = [d for d, _ in places if d is not None]
        if len(set(used)) < len(used):
            raise NotUniform(f"two subscripts of {array.name} with one loop variable")
        for (d, offset), dim in zip(places, dims, strict=True):
            first, last = (0, 0) if d is None else box[d]
            if first + offset < 0 or last + offset >= dim.evaluate(self.values):
                raise NotUniform(f"a subscript outside of {array.name}")
        return Operand(list(self.arrays).index(array.name), places, writes)

    def _place(self, subscript: IntExpr, loops: Sequence[For], array: str) -> Place:
        form = affine(subscript)
        by_name = {loop.var: d for d, loop in enumerate(loops)}
        found = [(d, form.coefficients()[v]) for v, d in by_name.items() if v in form.coefficients()]
        if len(found) > 1 or any(factor != 1 for _, factor in found):
            raise NotUniform(f"a subscript of {array} is not a loop variable and a number")
        rest = {**self.values, **dict.fromkeys(by_name, 0)}
        if form.hidden() & by_name.keys() or not form.expression().symbols() <= rest.keys():
            raise NotUniform(f"a subscript of {array} is not a loop variable and a number")
        offset = form.expression().evaluate(rest)
        if found and not isinstance(offset, int):
            raise NotUniform(f"a subscript of {array} is a loop variable and a size")
        return (found[0][0] if found else None), offset


def _data(array: Array, values: Mapping[str, Any], line_bytes: int | None, *, padded: bool) -> Data:
    line = line_bytes or array.type.bytes
    per_line = line // array.type.bytes
    extents = [d.evaluate(values) for d in (reversed(array.dims) if array.column_major else array.dims)]
    if not padded and len(extents) > 1 and extents[-1] % per_line:
        raise NotUniform(f"rows of {array.name} do not begin on lines")
    shape = (*extents[:-1], (extents[-1] + per_line - 1) // per_line)
    return Data(array.name, line, per_line, shape, array.intent == "temp")
