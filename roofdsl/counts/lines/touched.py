"""Distinct lines touched between two accesses: boxes of iterations, boxes of data, and the size of their union."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from roofdsl.counts.lines.cells import Cell
from roofdsl.counts.lines.earlier import OWN, Before
from roofdsl.counts.lines.nests import Leaf, Nests

Interval = tuple[Any, Any]
"""(first, last)."""

DataBox = tuple[Interval, ...]


class Stretch:
    """The iterations of a leaf in a box, with the operands from `first` to before `stop` in each.

    unsure: the one loop in which the box may be empty, if any.
    """

    __slots__ = ("box", "first", "leaf", "stop", "unsure")

    def __init__(
        self, leaf: Leaf, box: Sequence[Interval], unsure: int | None, first: int = 0, stop: int | None = None
    ) -> None:
        self.leaf, self.box, self.unsure, self.first = leaf, tuple(box), unsure, first
        self.stop = len(leaf.operands) if stop is None else stop


def stretches(program: Nests, before: Before, leaf: Leaf, place: int, at: Sequence[Any]) -> Iterator[Stretch]:
    """Everything that runs from the access `before` (included) to operand `place` of `leaf` at `at`, the largest boxes
    first.
    """
    if before.loop == OWN:
        yield Stretch(leaf, [(v, v) for v in at], None, before.place, place)
        return
    start, loop = before.at, before.loop
    depth, start_depth = len(leaf.loops), len(before.leaf.loops)
    # What lies entirely between: other leaves of the same iteration, or whole iterations of the loop in which the two
    # accesses differ.
    if before.aside:
        for other in program.leaves[before.leaf.number + 1 : leaf.number]:
            if other.shared(leaf) == loop and other.shared(before.leaf) == loop:
                yield Stretch(other, _fixed(at[:loop], other), None)
        inner = loop
    else:
        for other in program.leaves:
            if other.shared(leaf) > loop:
                yield Stretch(other, _fixed(at[:loop], other, (start[loop] + 1, at[loop] - 1)), loop)
        inner = loop + 1
    # loop by loop: what follows `before` in its iteration of the loops outside, and what comes before `at` in its own
    for level in range(inner, max(depth, start_depth) + 1):
        if level < start_depth:
            for other in program.leaves:
                if other.shared(before.leaf) > level:
                    left = start[level] + 1, before.leaf.box[level][1]
                    yield Stretch(other, _fixed(start[:level], other, left), level)
        if level < depth:
            for other in program.leaves:
                if other.shared(leaf) > level:
                    done = leaf.box[level][0], at[level] - 1
                    yield Stretch(other, _fixed(at[:level], other, done), level)
        if level == inner and before.aside:
            continue  # the leaves between the two were the first stretches
        for other in program.leaves:
            if level <= start_depth and other.number > before.leaf.number and other.shared(before.leaf) == level:
                yield Stretch(other, _fixed(start[:level], other), None)
            if level <= depth and other.number < leaf.number and other.shared(leaf) == level:
                yield Stretch(other, _fixed(at[:level], other), None)
    yield Stretch(before.leaf, [(v, v) for v in start], None, before.place)
    yield Stretch(leaf, [(v, v) for v in at], None, 0, place)


def _fixed(outer: Sequence[Any], leaf: Leaf, middle: Interval | None = None) -> list[Interval]:
    """The iterations of a leaf with these variables of the outermost loops, and the next one in `middle`."""
    start: list[Interval] = [(v, v) for v in outer]
    if middle is not None:
        start.append(middle)
    return [*start, *leaf.box[len(start) :]]


Touched = dict[DataBox, tuple[Interval, ...]]
"""Boxes of elements -> ranges of loops. The elements are touched if at least one of these ranges is not empty, or if
there are none. A box itself may be empty.
"""


def data_boxes(found: Sequence[Stretch], array: int) -> Touched:
    """The elements of an array that the stretches touch."""
    out: Touched = {}
    for each in found:
        for operand in each.leaf.operands[each.first : each.stop]:
            if operand.array != array:
                continue
            box = tuple(
                (offset, offset) if d is None else (each.box[d][0] + offset, each.box[d][1] + offset)
                for d, offset in operand.subscripts
            )
            seen = each.unsure is None or any(d == each.unsure for d, _ in operand.subscripts)
            if seen or out.get(box) == ():
                out[box] = ()  # touched without a condition, or a box that is itself empty if the stretch is
            else:
                assert each.unsure is not None  # it is seen otherwise
                out[box] = (*out.get(box, ()), each.box[each.unsure])
    return out


def lines(boxes: Touched, per_line: int, cell: Cell) -> Any:
    """The number of lines that hold the elements in these boxes, if rows begin on lines. Raises Split, NeedsBlocks."""
    left = merged([box for box, unsure in boxes.items() if not unsure], cell)
    # Whether the other boxes are touched matters only if no known box contains them.
    for box, unsure in boxes.items():
        if not unsure or any(_united(known, box, cell) is known for known in left):
            continue
        if any(not cell.negative(high - low) for low, high in unsure):
            left = merged([*left, box], cell)
    # Two boxes may touch the same line without a common element, so they are merged again once they are in lines.
    left = [box for box in left if not any(cell.negative(high - low) for low, high in box)]
    in_lines = [(*box[:-1], tuple(cell.blocks(end, per_line) for end in box[-1])) for box in left]
    return _volume(merged(in_lines, cell), cell)


def merged(boxes: list[Any], cell: Cell) -> list[Any]:
    """The same points in fewer boxes, as far as the current part decides it; empty boxes may remain."""
    out: list[Any] = []
    for box in boxes:
        new = box
        again = True
        while again:
            again = False
            for k, other in enumerate(out):
                both = _united(other, new, cell)
                if both is not None:
                    if both is other:
                        new = None
                        break
                    del out[k]
                    new, again = both, True
                    break
            if new is None:
                break
        if new is not None:
            out.append(new)
    return out


def _united(a: Any, b: Any, cell: Cell) -> Any:
    """One box for both if the part proves that there is one: `a` or `b` itself if it contains the other.

    Two boxes make one, too, if they differ in one dimension alone and meet there: rows 0 to 3 and rows 4 to 9.
    """
    apart: list[int] = []
    a_in_b = b_in_a = True
    for d, (p, q) in enumerate(zip(a, b, strict=True)):
        if p is q:
            continue
        first, last = p[0] - q[0], p[1] - q[1]
        if first.__class__ is int and last.__class__ is int:
            if not first and not last:
                continue
            a_in_b, b_in_a = a_in_b and first >= 0 >= last, b_in_a and first <= 0 <= last
        else:
            a_in_b = a_in_b and _natural(first, cell) and _natural(-last, cell)
            b_in_a = b_in_a and _natural(-first, cell) and _natural(last, cell)
        apart.append(d)
        # Proofs are expensive: stop once neither kind of union is possible any more.
        if len(apart) > 1 and not (a_in_b or b_in_a):
            return None
    if b_in_a or a_in_b:
        return a if b_in_a else b
    (at,) = apart
    (p, q) = a[at], b[at]
    if not _natural(q[0] - p[0], cell):
        p, q = q, p
    # one after the other without a gap; if the second is empty, it begins right after the end of the first
    if _natural(p[1] + 1 - q[0], cell) and _natural(q[1] - p[1], cell) and _natural(q[0] - p[0], cell):
        return (*a[:at], (p[0], q[1]), *a[at + 1 :])
    return None


def _natural(form: Any, cell: Cell) -> bool:
    """Whether a form is proven to be at least 0 on the whole part."""
    return form >= 0 if form.__class__ is int else cell.known_negative(form) is False


def _volume(boxes: Sequence[Any], cell: Cell) -> Any:
    """The number of points in a union of boxes. Raises Split."""
    if not boxes:
        return 0
    if not boxes[0]:
        return 1
    if len(boxes) == 1:
        total: Any = 1
        for low, high in boxes[0]:
            total = total * (high - low + 1)
        return total
    cuts = _sorted([end for box in boxes for end in (box[0][0], box[0][1] + 1)], cell)
    total = 0
    for low, high in pairwise(cuts):
        inner = [
            box[1:] for box in boxes if not cell.negative(low - box[0][0]) and not cell.negative(box[0][1] + 1 - high)
        ]
        if inner:
            total = total + (high - low) * _volume(merged(inner, cell), cell)
    return total


def _sorted(values: list[Any], cell: Cell) -> list[Any]:
    """Values in ascending order, each once. Raises Split."""

    def compare(a: Any, b: Any) -> int:
        difference = a - b
        if isinstance(difference, int):
            return difference
        if cell.negative(difference):
            return -1
        return int(cell.negative(-difference))

    out: list[Any] = []
    for value in sorted(values, key=cmp_to_key(compare)):
        if not out or compare(out[-1], value):
            out.append(value)
    return out
