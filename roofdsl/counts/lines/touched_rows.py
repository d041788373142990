"""The rows that a window touches: blocks of whole rows, and the partial rows at both of its ends.

All rows are counted from the row of the later visit, so that a window looks the same wherever it is moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

from roofdsl.counts.lines.groups import Group, merged
from roofdsl.counts.lines.previous_visits import Box, Shift
from roofdsl.counts.lines.uniform import Uniform

Intervals = tuple[tuple[int, int], ...]

EARLIER, LATER, SAME = range(3)
"""The visit of a partial row: the earlier one, from its touch on; the later one, up to its touch; or both."""

Partial = tuple[int, Group]


class Window:
    """A window from a visit in nest `earlier`, in row y - shift, to one in row y of nest `later`, `ago` repetitions
    apart.

    free: the first loop on whose counter in y the window depends; it also depends on those of all loops inside it.
    """

    __slots__ = ("ago", "earlier", "free", "key", "later", "shift")

    def __init__(self, earlier: int, later: int, shift: Shift, ago: int) -> None:
        self.earlier, self.later, self.shift, self.ago = earlier, later, shift, ago
        self.free = 0
        if earlier == later and not ago:
            self.free = next((d + 1 for d, s in enumerate(shift) if s), len(shift))
        self.key = earlier, later, shift, ago


class Slot(NamedTuple):
    """One data row that the ends of the window touch in part; whole rows of iterations touch `fixed`."""

    address: int
    fixed: Intervals
    partial: tuple[Partial, ...]


class Run(NamedTuple):
    """Consecutive data rows, or planes of them, along loop `depth`, all of which are touched as `plane` says."""

    address: int
    rows: int
    depth: int
    plane: Plane


class Plane(NamedTuple):
    """The elements touched in a data row: `row`; or in a plane of rows: for rows low to high - 1, each as `inner`."""

    row: Intervals = ()
    parts: tuple[tuple[int, int, Plane], ...] = ()


class Blocks:
    """The rows that windows touch."""

    def __init__(
        self, program: Uniform, groups: tuple[tuple[Group, ...], ...], strides: Sequence[Sequence[int]]
    ) -> None:
        """strides: of each array, elements from one row to the next along each loop but the innermost."""
        self.program, self.groups, self.strides = program, groups, strides
        self.boxes: list[Box] = [tuple(zip(n.low[:-1], n.high[:-1], strict=True)) for n in program.nests]
        self.depth = len(program.nests[0].low) - 1
        self._plans: dict[object, list[list[Slot | Run]]] = {}
        self._trees: dict[object, _Node] = {}
        self._critical: dict[object, list[set[int]]] = {}

    def critical(self, window: Window) -> list[set[int]]:
        """For each loop from `window.free` on, the counters of row y at which the order of the touched rows changes.

        There, a fixed end of a block of rows meets one that moves along with y.
        """
        known = self._critical.get(window.key)
        if known is not None:
            return known
        far = 1 << 60  # for a row y this far away, fixed ends are far away, too
        places: dict[tuple[int, Shift], list[tuple[set[int], set[int]]]] = {}
        boxes = self.between(window, (-far,) * self.depth)
        boxes += [(window.earlier, tuple((-s, -s + 1) for s in window.shift))]
        boxes += [(window.later, ((0, 1),) * self.depth)]
        for nest, box in boxes:
            for group in self.groups[nest]:
                ranges = _moved(box, group.row)
                for plane in product(*(range(low, high) for low, high in ranges[: window.free])):
                    ends = places.setdefault((group.array, plane), [(set(), set()) for _ in ranges[window.free :]])
                    for (still, moving), pair in zip(ends, ranges[window.free :], strict=True):
                        for end in pair:
                            if end > far // 2:
                                still.add(end - far)
                            else:
                                moving.add(end)
        found: list[set[int]] = [set() for _ in range(self.depth - window.free)]
        # Counted from y, an end that is fixed at s lies at s - y; it meets one that moves along at m where y = s - m.
        for ends in places.values():
            for out, (still, moving) in zip(found, ends, strict=True):
                out |= {s - m for s in still for m in moving}
        self._critical[window.key] = found
        return found

    def plan(self, window: Window, row: tuple[int, ...]) -> list[list[Slot | Run]]:
        """For each array, the data rows of the window in memory order."""
        key = window.key, row
        known = self._plans.get(key)
        if known is not None:
            return known
        at = (0,) * window.free + row
        boxes = [(nest, box) for nest, box in self.between(window, at) if all(u < v for u, v in box)]
        origin = (0,) * self.depth
        ends = [(EARLIER, window.earlier, tuple(-s for s in window.shift)), (LATER, window.later, origin)]
        # If both visits are to the same row, the window is one piece of that row and not the rest of one row and the
        # beginning of another.
        if window.earlier == window.later and not window.ago and not any(window.shift):
            ends = [(SAME, window.later, origin)]
        plans = []
        for a in range(len(self.program.arrays)):
            whole = [(_moved(box, g.row), g.full) for nest, box in boxes for g in self.groups[nest] if g.array == a]
            partial = [
                (_added(place, g.row), (kind, g))
                for kind, nest, place in ends
                for g in self.groups[nest]
                if g.array == a
            ]
            tree = self._tree(tuple(whole), tuple(partial))
            plan: list[Slot | Run] = []
            self._flatten(tree, -1, 0, self.strides[a], plan)
            plans.append(plan)
        self._plans[key] = plans
        return plans

    def _tree(self, whole: tuple[_Whole, ...], ends: tuple[_Place, ...]) -> _Node:
        """The touched data rows, loop by loop: (low, high, the contents of each)."""
        known = self._trees.get((whole, ends))
        if known is not None:
            return known
        some = (*whole, *ends)[:1]
        if not some or not some[0][0]:  # no loops are left: a data row
            fixed = merged([interval for _, intervals in whole for interval in intervals])
            node: _Node = _Leaf(fixed, tuple(p for _, p in ends if not all(_inside(i, fixed) for i in p[1].full)))
        else:
            # Where no box begins or ends, neighboring rows have the same contents: only rows between two cuts differ.
            cuts = {cut for box, _ in whole for cut in box[0]}
            cuts |= {cut for place, _ in ends for cut in (place[0], place[0] + 1)}
            node = []
            for low, high in pairwise(sorted(cuts)):
                inner = tuple((box[1:], i) for box, i in whole if box[0][0] <= low < box[0][1])
                at = tuple((place[1:], p) for place, p in ends if place[0] == low)
                if inner or at:
                    node.append((low, high, self._tree(inner, at)))
        self._trees[whole, ends] = node
        return node

    def between(self, window: Window, row: Sequence[int]) -> list[tuple[int, Box]]:
        """(nest, whole rows of it) that run between the two visits, counted from row y = `row`; some may be empty.

        The entries of `row` before `window.free` are ignored.
        """
        depth, shift = self.depth, window.shift
        if window.earlier == window.later and not window.ago:
            if not any(shift):
                return []
            first = window.free - 1
            limits = self._limits(window.later, row)
            known = [(-s, -s + 1) for s in shift]
            middle: Box = (*known[:first], (-shift[first] + 1, 0), *limits[first + 1 :])
            out = [*_after(known, limits, first + 1), middle, *_before(limits, first + 1, depth)]
            return [(window.later, box) for box in out]
        found: list[tuple[int, Box]] = []
        limits = self._limits(window.earlier, row)
        found += [(window.earlier, box) for box in _after([(-s, -s + 1) for s in shift], limits, 0)]
        nests = range(window.earlier + 1, window.later)
        if window.ago:
            count = len(self.boxes)
            nests_again = [*range(window.earlier + 1, count), *range(window.later)]
            found += [(n, self._limits(n, row)) for n in dict.fromkeys(nests_again)]
        else:
            found += [(n, self._limits(n, row)) for n in nests]
        found += [(window.later, box) for box in _before(self._limits(window.later, row), 0, depth)]
        return found

    def _limits(self, nest: int, row: Sequence[int]) -> Box:
        return tuple((low - y, high - y) for (low, high), y in zip(self.boxes[nest], row, strict=True))

    def _flatten(self, tree: _Node, depth: int, address: int, strides: Sequence[int], out: list[Slot | Run]) -> None:
        """Appends the contents of `tree`, one data row or plane at `address`, in memory order."""
        if isinstance(tree, _Leaf):
            if tree.partial:
                out.append(Slot(address, tree.fixed, tree.partial))
            elif tree.fixed:
                out.append(Run(address, 1, depth, Plane(tree.fixed)))
            return
        stride = strides[depth + 1]
        for low, high, below in tree:
            at = address + low * stride
            if high - low == 1:
                self._flatten(below, depth + 1, at, strides, out)
            else:
                out.append(Run(at, high - low, depth + 1, _plain(below)))


def _after(place: Sequence[tuple[int, int]], limits: Box, first: int) -> list[Box]:
    """Rows after `place` that agree with it in the loops before `first`."""
    depth = len(limits)
    return [(*place[:d], (place[d][1], limits[d][1]), *limits[d + 1 :]) for d in range(depth - 1, first - 1, -1)]


def _before(limits: Box, first: int, depth: int) -> list[Box]:
    """Rows before row 0 that agree with it in the loops before `first`."""
    return [(*[(0, 1)] * d, (limits[d][0], 0), *limits[d + 1 :]) for d in range(first, depth)]


class _Leaf:
    """One data row: the elements that whole rows of iterations touch, and the ends of the window that touch it."""

    __slots__ = ("fixed", "partial")

    def __init__(self, fixed: Intervals, partial: tuple[Partial, ...]) -> None:
        self.fixed, self.partial = fixed, partial


_Node = _Leaf | list[tuple[int, int, "_Node"]]
_Whole = tuple[Box, Intervals]
_Place = tuple[Shift, Partial]


def _plain(node: _Node) -> Plane:
    """A tree without ends, as a value."""
    if isinstance(node, _Leaf):
        return Plane(node.fixed)
    return Plane((), tuple((low, high, _plain(below)) for low, high, below in node))


def _inside(interval: tuple[int, int], fixed: Intervals) -> bool:
    return any(s <= interval[0] and interval[1] <= e for s, e in fixed)


def _moved(box: Box, by: Shift) -> Box:
    return tuple((low + o, high + o) for (low, high), o in zip(box, by, strict=True))


def _added(place: Shift, by: Shift) -> Shift:
    return tuple(p + o for p, o in zip(place, by, strict=True))
