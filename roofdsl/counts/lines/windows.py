"""Bytes of distinct lines touched from one visit to the next.

What whole rows touch is counted once for all lines of a row; the partial rows at both ends for each line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import gcd

from roofdsl.counts.lines.groups import Group, Touch
from roofdsl.counts.lines.touched_rows import EARLIER, LATER, Blocks, Run, Slot, Window
from roofdsl.counts.lines.uniform import Layout, Uniform

_Counted = tuple[int, int, int]
"""(lines, the first one, the last one)."""


class _Ends:
    """The partial rows of an array in a window, and the first and last lines touched beside them."""

    def __init__(self, layout: Layout, entries: tuple[Slot | tuple[int, int], ...], aligned: bool) -> None:
        self.layout, self.entries, self.aligned = layout, entries, aligned
        self._known: dict[tuple[Touch, Touch], int] = {}

    def bytes(self, x: Touch, y: Touch) -> int:
        """The bytes of their lines, without those counted with the rows beside them."""
        key = x, y
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._lines(x, y) * self.layout.line_bytes
        return known

    def _lines(self, x: Touch, y: Touch) -> int:
        lines, tail = 0, NEVER
        for each in self.entries:
            if isinstance(each, Slot):
                counted = self._slot(each, x, y)
                if counted is None:
                    continue
                count, head, end = counted
            else:
                count, (head, end) = 0, each
            lines += count - (head == tail and not self.aligned)
            tail = end
        return lines

    def _slot(self, slot: Slot, x: Touch, y: Touch) -> _Counted | None:
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
        return _lines(sorted(intervals), slot.address, self.layout.per_line)


NEVER = -1 << 60
"""Stands for a last line if there is no line."""


def _beside_slots(chain: Sequence[Slot | _Counted], layout: Layout) -> tuple[Slot | tuple[int, int], ...]:
    """The slots of a chain and, of the rows beside them, the lines that they can share."""
    out: list[Slot | tuple[int, int]] = []
    for k, each in enumerate(chain):
        if isinstance(each, Slot):
            out.append(each)
            continue
        head, tail = -NEVER, NEVER
        before, after = chain[k - 1] if k else None, chain[k + 1] if k + 1 < len(chain) else None
        if isinstance(before, Slot) and each[1] <= (before.address + layout.row - 1) // layout.per_line:
            head = each[1]
        if isinstance(after, Slot) and each[2] >= after.address // layout.per_line:
            tail = each[2]
        if (head, tail) != (-NEVER, NEVER):
            out.append((head, tail))
    return tuple(out)


class Windows:
    """Counts the bytes of the lines that windows touch. Phases: for each array, the position of row y's element 0 in
    its line.

    aligned: for each array, whether all rows begin on lines; their positions then do not matter, and strides are 0.
    """

    def __init__(self, program: Uniform, groups: tuple[tuple[Group, ...], ...]) -> None:
        self.program = program
        self.aligned = [a.aligned for a in program.arrays]
        self.strides = [
            [0] * len(a.strides) if f else a.strides for a, f in zip(program.arrays, self.aligned, strict=True)
        ]
        self.blocks = Blocks(program, groups, self.strides)
        self.depth = len(program.nests[0].low) - 1
        self._known: dict[object, tuple[int, list[_Ends]]] = {}
        self._ends: dict[object, _Ends] = {}
        self._runs: dict[object, _Counted] = {}

    def bytes(self, window: Window, row: Sequence[int], phases: tuple[int, ...], x: Touch, y: Touch) -> int:
        """The bytes of the lines touched from touch `x` (included) to touch `y` (excluded), which is in row `row`."""
        key = window.key, tuple(row[window.free :]), phases
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._found(window, key[1], phases)
        total, rest = known
        return total + sum(ends.bytes(x, y) for ends in rest)

    def _found(self, window: Window, row: tuple[int, ...], phases: tuple[int, ...]) -> tuple[int, list[_Ends]]:
        """(bytes of whole rows, the partial rows)."""
        total, rest = 0, []
        for a, plan in enumerate(self.blocks.plan(window, row)):
            layout, aligned, phase = self.program.arrays[a], self.aligned[a], phases[a]
            chain: list[Slot | _Counted] = []
            for each in plan:
                if isinstance(each, Slot):
                    chain.append(Slot(0 if aligned else each.address + phase, each.fixed, each.partial))
                    continue
                counted = self._repeated(a, each, each.address + phase)
                total += counted[0] * layout.line_bytes
                if aligned:
                    continue
                last = chain[-1] if chain else None
                if last is not None and not isinstance(last, Slot):
                    chain.pop()
                    total -= (last[2] == counted[1]) * layout.line_bytes
                    counted = 0, last[1], counted[2]
                chain.append(counted)
            if any(isinstance(each, Slot) for each in chain):
                ends = _Ends(layout, _beside_slots(chain, layout), aligned)
                rest.append(self._ends.setdefault((a, *ends.entries), ends))
        return total, rest

    def _repeated(self, array: int, run: Run, address: int) -> _Counted:
        layout = self.program.arrays[array]
        per_line = layout.per_line
        line, phase = divmod(address, per_line)
        key = array, run.depth, run.plane, run.rows, phase
        known = self._runs.get(key)
        if known is None:
            known = self._runs[key] = self._rows(array, run, phase)
        return known[0], known[1] + line, known[2] + line

    def _rows(self, array: int, run: Run, phase: int) -> _Counted:
        """The lines of a run, each of whose rows (or planes) begins `stride` elements after the previous one."""
        per_line = self.program.arrays[array].per_line
        if run.depth < 0:
            return _lines(run.plane.row, phase, per_line)
        if self.aligned[array]:
            return run.rows * self._one(array, run, 0)[0], 0, 0
        stride = self.strides[array][run.depth]
        # After `period` rows, they begin at the same place in a line again. A line that ends one row and begins the
        # next counts once.
        period = per_line // gcd(stride, per_line)
        parts = [self._one(array, run, phase + t * stride) for t in range(min(run.rows, period + 1))]
        shared = [before[2] == after[1] for before, after in pairwise(parts)]
        whole, rest = divmod(run.rows, period)
        lines = sum(p[0] for p in parts[:rest])
        if whole:
            lines += whole * sum(p[0] for p in parts[:period])
        whole, rest = divmod(run.rows - 1, period)
        lines -= sum(shared[:rest])
        if whole:
            lines -= whole * sum(shared[:period])
        last = (run.rows - 1) % period
        moved = (run.rows - 1 - last) * stride // per_line
        return lines, parts[0][1], parts[last][2] + moved

    def _one(self, array: int, run: Run, address: int) -> _Counted:
        """The lines of one of the rows (or planes) of a run."""
        per_line, plane = self.program.arrays[array].per_line, run.plane
        if plane.row:
            return _lines(plane.row, address, per_line)
        stride = self.strides[array][run.depth + 1]
        found = [
            self._repeated(array, Run(0, high - low, run.depth + 1, inner), address + low * stride)
            for low, high, inner in plane.parts
        ]
        if self.aligned[array]:
            return sum(part[0] for part in found), 0, 0
        return reduce(_joined, found)


def _lines(intervals: Sequence[tuple[int, int]], address: int, per_line: int) -> _Counted:
    """The lines of the elements in sorted intervals of a row at `address`."""
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


def _joined(a: _Counted, b: _Counted) -> _Counted:
    return a[0] + b[0] - (a[2] == b[1]), a[1], b[2]
