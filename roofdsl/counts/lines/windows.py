"""Bytes of distinct lines touched from one visit to the next: blocks of whole rows, and the partial rows at both ends.

All rows are counted from the row of the later visit, so that a window looks the same wherever it may be moved to. What
whole rows touch is counted once for all lines of a row; the partial rows for each line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise, product
from math import gcd

from roofdsl.counts.lines.groups import Group, Touch, merged
from roofdsl.counts.lines.reuse import Box, Shift
from roofdsl.counts.lines.uniform import Layout, Uniform
from roofdsl.lang.record import Record

Intervals = tuple[tuple[int, int], ...]

EARLIER, LATER, SAME = range(3)
"""Whose partial row it is: of the earlier visit, from its touch on; of the later one, up to it; of both."""

Partial = tuple[int, Group]


class Window:
    """From a visit in nest `earlier`, in row y - shift, to one in row y of nest `later`; `ago` repetitions apart.

    free: the loops on whose counters in y the window depends, all from this one on.
    """

    __slots__ = ("ago", "earlier", "free", "key", "later", "shift")

    def __init__(self, earlier: int, later: int, shift: Shift, ago: int) -> None:
        self.earlier, self.later, self.shift, self.ago = earlier, later, shift, ago
        self.free = 0
        if earlier == later and not ago:
            self.free = next((d + 1 for d, s in enumerate(shift) if s), len(shift))
        self.key = earlier, later, shift, ago


class _Slot:
    """One data row, some of which the ends of the window touch."""

    __slots__ = ("address", "fixed", "partial")

    def __init__(self, address: int, fixed: Intervals, partial: tuple[Partial, ...]) -> None:
        self.address, self.fixed, self.partial = address, fixed, partial


class _Run:
    """Data rows, or planes of them, one after the other along loop `depth` that are touched alike, as `plane` says."""

    __slots__ = ("address", "count", "depth", "plane")

    def __init__(self, address: int, count: int, depth: int, plane: _Plane) -> None:
        self.address, self.count, self.depth, self.plane = address, count, depth, plane


class _Plane(Record):
    """What is touched of a data row: `row`; or of a plane of rows: of rows low to before high, each `inner`."""

    row: Intervals = ()
    parts: tuple[tuple[int, int, _Plane], ...] = ()


_Counted = tuple[int, int, int]
"""(lines, the first one, the last one)."""


class Windows:
    """Counts what windows touch. Phases: of each array, the address of row y's element 0 in its line."""

    def __init__(self, program: Uniform, groups: tuple[tuple[Group, ...], ...]) -> None:
        self.program, self.groups = program, groups
        self.boxes: list[Box] = [tuple(zip(n.low[:-1], n.high[:-1], strict=True)) for n in program.nests]
        self.aligned = [all(s % a.per_line == 0 for s in a.strides) for a in program.arrays]
        self.depth = len(program.nests[0].low) - 1
        self._plans: dict[object, list[list[_Slot | _Run]]] = {}
        self._chains: dict[object, tuple[int, list[tuple[Layout, list[_Slot | _Counted], int, bool]]]] = {}
        self._runs: dict[object, _Counted] = {}
        self._critical: dict[object, list[set[int]]] = {}

    # ---- counting ----

    def bytes(self, window: Window, row: Sequence[int], phases: tuple[int, ...], x: Touch, y: Touch) -> int:
        """Bytes of the lines touched from touch `x` on and before `y`, which is in row `row`."""
        total, parts = self._chain(window, tuple(row[window.free :]), phases)
        for layout, chain, phase, aligned in parts:
            lines, tail = 0, -1 << 60
            for each in chain:
                if isinstance(each, _Slot):
                    counted = self._slot(each, layout, phase, x, y)
                    if counted is None:
                        continue
                    count, head, end = counted
                else:
                    count, head, end = each
                lines += count - (head == tail and not aligned)
                tail = end
            total += lines * layout.line_bytes
        return total

    def _chain(
        self, window: Window, row: tuple[int, ...], phases: tuple[int, ...]
    ) -> tuple[int, list[tuple[Layout, list[_Slot | _Counted], int, bool]]]:
        """(bytes that no end has to do with, what is to be counted for each touch)."""
        key = window.key, row, phases
        known = self._chains.get(key)
        if known is not None:
            return known
        total, out = 0, []
        for a, plan in enumerate(self._plan(window, row)):
            layout, aligned = self.program.arrays[a], self.aligned[a]
            chain: list[_Slot | _Counted] = []
            for each in plan:
                if isinstance(each, _Slot):
                    chain.append(each)
                    continue
                counted = self._repeated(a, each, each.address + phases[a])
                if aligned:
                    total += counted[0] * layout.line_bytes
                elif chain and not isinstance(chain[-1], _Slot):
                    chain[-1] = _joined(chain[-1], counted)
                else:
                    chain.append(counted)
            if chain:
                out.append((layout, chain, phases[a], aligned))
        self._chains[key] = total, out
        return total, out

    def _slot(self, slot: _Slot, layout: Layout, phase: int, x: Touch, y: Touch) -> _Counted | None:
        intervals = list(slot.fixed)
        for kind, group in slot.partial:
            first, last = group.first, group.last
            for c, place, _ in group.references:
                s = first if kind == LATER else max(first, x[0] + (place < x[1]))
                e = last if kind == EARLIER else min(last, y[0] - (place >= y[1]))
                if s <= e:
                    intervals.append((s + c, e + c))
        if not intervals:
            return None
        return _lines(sorted(intervals), slot.address + phase, layout.per_line)

    def _repeated(self, array: int, run: _Run, address: int) -> _Counted:
        layout = self.program.arrays[array]
        per_line = layout.per_line
        line, phase = divmod(address, per_line)
        key = array, run.depth, run.plane, run.count, phase
        known = self._runs.get(key)
        if known is None:
            known = self._runs[key] = self._rows(array, run, phase)
        return known[0], known[1] + line, known[2] + line

    def _rows(self, array: int, run: _Run, phase: int) -> _Counted:
        """Lines of a run, each of `count` rows (or planes) `stride` elements after the one before."""
        layout = self.program.arrays[array]
        if run.depth < 0:
            return _lines(run.plane.row, phase, layout.per_line)
        stride = layout.strides[run.depth]
        period = layout.per_line // gcd(stride, layout.per_line)
        parts = [self._one(array, run, phase + t * stride) for t in range(min(run.count, period + 1))]
        shared = [before[2] == after[1] and not self.aligned[array] for before, after in pairwise(parts)]
        whole, rest = divmod(run.count, period)
        lines = sum(p[0] for p in parts[:rest])
        if whole:
            lines += whole * sum(p[0] for p in parts[:period])
        whole, rest = divmod(run.count - 1, period)
        lines -= sum(shared[:rest])
        if whole:
            lines -= whole * sum(shared[:period])
        last = (run.count - 1) % period
        moved = (run.count - 1 - last) * stride // layout.per_line
        return lines, parts[0][1], parts[last][2] + moved

    def _one(self, array: int, run: _Run, address: int) -> _Counted:
        """Lines of one of the rows (or planes) of a run."""
        layout, plane = self.program.arrays[array], run.plane
        if plane.row:
            return _lines(plane.row, address, layout.per_line)
        stride = layout.strides[run.depth + 1]
        found = [
            self._repeated(array, _Run(0, high - low, run.depth + 1, inner), address + low * stride)
            for low, high, inner in plane.parts
        ]
        return reduce(lambda a, b: _joined(a, b, aligned=self.aligned[array]), found)

    # ---- what is touched ----

    def critical(self, window: Window) -> list[set[int]]:
        """For each loop from `window.free` on, the counters of row y at which the order of what is touched changes.

        There an end of a block of rows that lies still meets one that moves along with y.
        """
        known = self._critical.get(window.key)
        if known is not None:
            return known
        far = 1 << 60  # an end that lies still is far away from a row y as far away as this
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
                            (still if abs(end) > far // 2 else moving).add(end - far if end > far // 2 else end)
        found: list[set[int]] = [set() for _ in range(self.depth - window.free)]
        for ends in places.values():
            for out, (still, moving) in zip(found, ends, strict=True):
                out |= {s - m for s in still for m in moving}
        self._critical[window.key] = found
        return found

    def _plan(self, window: Window, row: tuple[int, ...]) -> list[list[_Slot | _Run]]:
        """For each array the data rows of the window in the order of memory."""
        key = window.key, row
        known = self._plans.get(key)
        if known is not None:
            return known
        at = (0,) * window.free + row
        boxes = [(nest, box) for nest, box in self.between(window, at) if all(u < v for u, v in box)]
        origin = (0,) * self.depth
        ends = [(EARLIER, window.earlier, tuple(-s for s in window.shift)), (LATER, window.later, origin)]
        if window.earlier == window.later and not window.ago and not any(window.shift):
            ends = [(SAME, window.later, origin)]
        plans = []
        for a, layout in enumerate(self.program.arrays):
            whole = [(_moved(box, g.row), g.full) for nest, box in boxes for g in self.groups[nest] if g.array == a]
            partial = [
                (_added(place, g.row), (kind, g))
                for kind, nest, place in ends
                for g in self.groups[nest]
                if g.array == a
            ]
            tree = _tree(whole, partial, 0, self.depth)
            plan: list[_Slot | _Run] = []
            self._flatten(tree, -1, 0, layout, plan)
            plans.append(plan)
        self._plans[key] = plans
        return plans

    def between(self, window: Window, row: Sequence[int]) -> list[tuple[int, Box]]:
        """(nest, whole rows of it) that run between the two visits, counted from row y = `row`; some may be empty.

        The entries of `row` before `window.free` play no part.
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

    def _flatten(self, tree: _Node, depth: int, address: int, layout: Layout, out: list[_Slot | _Run]) -> None:
        """Appends what is in `tree`, of one data row or plane at `address`, in the order of memory."""
        if isinstance(tree, _Leaf):
            if tree.partial:
                out.append(_Slot(address, tree.fixed, tree.partial))
            elif tree.fixed:
                out.append(_Run(address, 1, depth, _Plane(tree.fixed)))
            return
        stride = layout.strides[depth + 1]
        for low, high, below in tree:
            at = address + low * stride
            if high - low == 1:
                self._flatten(below, depth + 1, at, layout, out)
            else:
                out.append(_Run(at, high - low, depth + 1, _plain(below)))


def _after(place: Sequence[tuple[int, int]], limits: Box, first: int) -> list[Box]:
    """Rows after `place` that agree with it in the loops before `first`."""
    depth = len(limits)
    return [(*place[:d], (place[d][1], limits[d][1]), *limits[d + 1 :]) for d in range(depth - 1, first - 1, -1)]


def _before(limits: Box, first: int, depth: int) -> list[Box]:
    """Rows before row 0 that agree with it in the loops before `first`."""
    return [(*[(0, 1)] * d, (limits[d][0], 0), *limits[d + 1 :]) for d in range(first, depth)]


class _Leaf:
    """One data row: what whole rows of iterations touch of it, and which ends of the window do."""

    __slots__ = ("fixed", "partial")

    def __init__(self, fixed: Intervals, partial: tuple[Partial, ...]) -> None:
        self.fixed, self.partial = fixed, partial


_Node = _Leaf | list[tuple[int, int, "_Node"]]
_Whole = tuple[Box, Intervals]
_Ends = tuple[Shift, Partial]


def _tree(whole: Sequence[_Whole], ends: Sequence[_Ends], d: int, depth: int) -> _Node:
    """The data rows touched, loop by loop: (low, high, what is in each)."""
    if d == depth:
        fixed = merged([interval for _, intervals in whole for interval in intervals])
        return _Leaf(fixed, tuple(p for _, p in ends if not all(_inside(i, fixed) for i in p[1].full)))
    cuts = {cut for box, _ in whole for cut in box[d]} | {cut for at, _ in ends for cut in (at[d], at[d] + 1)}
    places = sorted(cuts)
    out = []
    for low, high in pairwise(places):
        inner = [w for w in whole if w[0][d][0] <= low < w[0][d][1]]
        at = [e for e in ends if e[0][d] == low]
        if inner or at:
            out.append((low, high, _tree(inner, at, d + 1, depth)))
    return out


def _plain(node: _Node) -> _Plane:
    """A tree without ends, as a value."""
    if isinstance(node, _Leaf):
        return _Plane(node.fixed)
    return _Plane((), tuple((low, high, _plain(below)) for low, high, below in node))


def _inside(interval: tuple[int, int], fixed: Intervals) -> bool:
    return any(s <= interval[0] and interval[1] <= e for s, e in fixed)


def _moved(box: Box, by: Shift) -> Box:
    return tuple((low + o, high + o) for (low, high), o in zip(box, by, strict=True))


def _added(place: Shift, by: Shift) -> Shift:
    return tuple(p + o for p, o in zip(place, by, strict=True))


def _lines(intervals: Sequence[tuple[int, int]], address: int, per_line: int) -> _Counted:
    """Lines of the elements in sorted intervals of a row at `address`."""
    s, e = intervals[0]
    head, tail = (address + s) // per_line, (address + e) // per_line
    count = tail - head + 1
    for s, e in intervals[1:]:
        u, v = (address + s) // per_line, (address + e) // per_line
        if u <= tail:
            u = tail + 1
        if v >= u:
            count += v - u + 1
            tail = v
    return count, head, tail


def _joined(a: _Counted, b: _Counted, *, aligned: bool = False) -> _Counted:
    return a[0] + b[0] - (a[2] == b[1] and not aligned), a[1], b[2]
