"""The previous access to the same line, in whichever loops the two accesses are.

The iterations in which an operand touches a line form a box: subscripts before the last one fix loops, the last one
keeps its loop within the elements of a line, and all other loops are free. The latest point of a box before a given
point agrees with it in some outer loops, is earlier in the next loop, and as late as possible in the loops further in.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key
from typing import Any, NamedTuple

from roofdsl.counts.lines.cells import Cell
from roofdsl.counts.lines.nests import Leaf, Nests, Operand

OWN = -1
"""In the place of a loop: an access of the same iteration."""


class Before(NamedTuple):
    """The previous access: operand `place` of `leaf` at loop variables `at`.

    loop: the outermost loop whose variable is smaller there, while those of all outer loops are equal. It is OWN for an
    access of the same iteration. If there is no such loop, `loop` is the number of loops that the two accesses share,
    and `aside` is set: the statements of the one come before those of the other.
    """

    leaf: Leaf
    place: int
    at: tuple[Any, ...]
    loop: int
    aside: bool


class Line(NamedTuple):
    """A line: the data subscripts before the last, and its number along the row."""

    array: int
    fixed: tuple[Any, ...]
    number: Any


def line_of(program: Nests, operand: Operand, at: tuple[Any, ...], cell: Cell) -> Line:
    """The line that an operand touches at loop variables `at`. Raises Split, NeedsBlocks."""
    values = [_value(d, offset, at) for d, offset in operand.subscripts]
    number = cell.blocks(values[-1], program.data[operand.array].per_line)
    return Line(operand.array, tuple(values[:-1]), number)


def _value(d: int | None, offset: Any, at: tuple[Any, ...]) -> Any:
    return offset if d is None else at[d] + offset


class Earlier:
    """Finds the access before another one."""

    def __init__(self, program: Nests) -> None:
        self.program = program
        self.of_array: dict[int, list[tuple[Leaf, int, Operand]]] = {}
        for leaf in program.leaves:
            for place, operand in enumerate(leaf.operands):
                self.of_array.setdefault(operand.array, []).append((leaf, place, operand))

    def before(self, leaf: Leaf, place: int, at: tuple[Any, ...], cell: Cell) -> Before | None:
        """The previous access to the line that operand `place` of `leaf` touches at `at`; None for a first access.

        The result holds for the whole part. Raises Split, NeedsBlocks.
        """
        line = line_of(self.program, leaf.operands[place], at, cell)
        others = self.of_array[line.array]
        for other, k, operand in reversed(others):
            if other is leaf and k < place and _touches(self.program, operand, line, at, cell):
                return Before(leaf, k, at, OWN, False)
        depth = len(leaf.loops)
        # from the latest on: earlier statements in the same iteration of `level` loops, then earlier iterations of the
        # innermost of these
        for level in range(depth, -1, -1):
            aside = [
                found
                for other, k, operand in others
                if other.number < leaf.number and leaf.shared(other) == level
                for found in self._at((other, k, operand), line, at, cell, level, aside=True)
            ]
            if aside:
                return _latest(aside, cell)
            if level:
                loop = level - 1
                carried = [
                    found
                    for other, k, operand in others
                    if leaf.shared(other) > loop
                    for found in self._at((other, k, operand), line, at, cell, loop, aside=False)
                ]
                if carried:
                    return _latest(carried, cell)
        return None

    def _at(
        self,
        of: tuple[Leaf, int, Operand],
        line: Line,
        at: tuple[Any, ...],
        cell: Cell,
        loop: int,
        *,
        aside: bool,
    ) -> Iterator[Before]:
        """Yields the latest touch of a line by an operand, among the iterations that agree with `at` in the loops
        outside `loop` and have a smaller variable of `loop` (unless `aside`). Yields nothing if there is none.
        """
        leaf, place, operand = of
        # The iterations in which the operand is on the line. A subscript fixes its loop: x[i + 3] is at element e for
        # i = e - 3. In the last dimension, the line leaves as many values as it has elements.
        box: list[tuple[Any, Any]] = list(leaf.box)
        for (d, offset), value in zip(operand.subscripts, line.fixed, strict=False):
            if d is None:
                if not cell.zero(value - offset):
                    return
            else:
                box[d] = (value - offset, value - offset)
        d, offset = operand.subscripts[-1]
        size = self.program.data[line.array].per_line
        if d is None:
            if not cell.zero(cell.blocks(offset, size) - line.number):
                return
        else:
            box[d] = (line.number * size - offset, line.number * size + (size - 1 - offset))
        for d, ((low, high), (first, last)) in enumerate(zip(box, leaf.box, strict=True)):
            # no subscript has set this loop: it still has the ends of its own box
            if low is first and high is last:
                continue
            if d < loop:
                if cell.negative(at[d] - low) or cell.negative(high - at[d]):
                    return
                continue
            if cell.negative(last - low) or cell.negative(high - first):
                return
            box[d] = (
                first if cell.negative(low - first) else low,
                last if cell.negative(last - high) else high,
            )
        if aside:
            yield Before(leaf, place, (*at[:loop], *(high for _, high in box[loop:])), loop, True)
            return
        # The latest of them: the last value before `at` of this loop, and the last of all loops inside.
        low, high = box[loop]
        if cell.negative(at[loop] - 1 - low):
            return
        if cell.negative(at[loop] - 1 - high):
            high = at[loop] - 1
        yield Before(leaf, place, (*at[:loop], high, *(h for _, h in box[loop + 1 :])), loop, False)


def _touches(program: Nests, operand: Operand, line: Line, at: tuple[Any, ...], cell: Cell) -> bool:
    values = [_value(d, offset, at) for d, offset in operand.subscripts]
    if not all(cell.zero(a - b) for a, b in zip(values, line.fixed, strict=False)):
        return False
    size = program.data[line.array].per_line
    left = values[-1] - line.number * size
    return not cell.negative(left) and cell.negative(left - size)


def _latest(found: list[Before], cell: Cell) -> Before:
    def compare(a: Before, b: Before) -> int:
        shared = a.leaf.shared(b.leaf)
        for u, v in zip(a.at[:shared], b.at[:shared], strict=True):
            if cell.negative(u - v):
                return -1
            if cell.negative(v - u):
                return 1
        return (a.leaf.number, a.place) > (b.leaf.number, b.place) or -1

    return max(found, key=cmp_to_key(compare))
