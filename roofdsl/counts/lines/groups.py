"""The visits in one row of iterations: groups of references to the same row of an array, and the lines they touch."""

from __future__ import annotations

from math import lcm

from roofdsl.counts.lines.uniform import Layout, Nest, NotUniform, Uniform

Touch = tuple[int, int]
"""An access in a row of iterations: (innermost loop variable, place among the accesses of an iteration)."""


Progression = tuple[int, int, int]
"""(first, step, count)."""


class Group:
    """References of one nest to one array that have the same offsets except the last one.

    references: (last offset, place in the iteration, whether it writes), by offset; full: the intervals of elements of
    a data row that a whole row of iterations touches.
    """

    __slots__ = ("array", "first", "full", "last", "layout", "least", "most", "nest", "references", "row")

    def __init__(self, nest: int, array: int, row: tuple[int, ...], layout: Layout, loops: Nest) -> None:
        self.nest, self.array, self.row, self.layout = nest, array, row, layout
        self.first, self.last = loops.low[-1], loops.high[-1] - 1
        found = [
            (r.offsets[-1], place, r.writes)
            for place, r in enumerate(loops.references)
            if r.array == array and r.offsets[:-1] == row
        ]
        self.references = tuple(sorted(found))
        offsets = [c for c, _, _ in self.references]
        self.least, self.most = offsets[0], offsets[-1]
        self.full = merged([(self.first + c, self.last + c) for c in offsets])

    def lead(self, start: int, elements: int) -> Touch | None:
        """The first touch of any of `elements` elements of the data row, from element `start` on; None if there is
        none.
        """
        best: Touch | None = None
        end = start + elements
        for c, place, _ in self.references:
            i = max(self.first, start - c)
            if i <= self.last and i + c < end and (best is None or (i, place) < best):
                best = i, place
        return best

    def latest(self, start: int, before: Touch | None = None) -> Touch | None:
        """The last touch of the line whose first element is `start` of the data row, before another touch in the same
        row of iterations if one is given; None if there is none.
        """
        best: Touch | None = None
        end = start + self.layout.per_line - 1
        for c, place, _ in self.references:
            i = min(self.last, end - c)
            if before is not None:
                i = min(i, before[0] - (place >= before[1]))
            if i >= self.first and i + c >= start and (best is None or (i, place) > best):
                best = i, place
        return best

    def writes(self, start: int, elements: int) -> bool:
        """Whether a row of iterations writes any of `elements` elements of the data row, from element `start` on."""
        end = start + elements
        return any(w and (i := max(self.first, start - c)) <= self.last and i + c < end for c, _, w in self.references)


def merged(intervals: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted intervals (ends included) without overlaps; intervals that meet are joined."""
    out: list[tuple[int, int]] = []
    for s, e in sorted(intervals):
        if out and s <= out[-1][1] + 1:
            if e > out[-1][1]:
                out[-1] = out[-1][0], e
        else:
            out.append((s, e))
    return tuple(out)


def groups(program: Uniform) -> tuple[tuple[Group, ...], ...]:
    """The groups of each nest, in the order of their first access."""
    found = []
    for number, nest in enumerate(program.nests):
        keys = dict.fromkeys((r.array, r.offsets[:-1]) for r in nest.references)
        found.append(tuple(Group(number, a, row, program.arrays[a], nest) for a, row in keys))
    return tuple(found)


class Rows:
    """The places along a row at which something changes, for all groups of a program.

    ends: where rows of iterations begin and end in data rows; reach: the number of elements beside an end within which
    it matters; step[a]: the number of lines of array a after which all lines are as before, for arrays of several
    element sizes; least_bytes: a smaller cache may lose a line within a row of iterations.
    """

    def __init__(self, program: Uniform, found: tuple[tuple[Group, ...], ...], real: int) -> None:
        """real: the number of nests that touch something."""
        every = [g for each in found for g in each]
        self.reach = max(g.most for g in every) - min(g.least for g in every) + 2
        self.ends = sorted({end for g in every for c, _, _ in g.references for end in (g.first + c, g.last + c)})
        whole = lcm(*(a.per_line for a in program.arrays))
        self.step = [whole // a.per_line for a in program.arrays]
        self.least_bytes = max(_within(each) for each in found[:real])
        for g in every:
            a = g.layout
            short = a.row < 2 * a.per_line + self.reach
            if short and any(s % a.per_line for s in (*a.strides, *([a.row] if a.strides else []))):
                raise NotUniform(f"rows of {a.name} are shorter than two lines")

    def lines(self, group: Group, phase: int) -> list[Progression]:
        """The lines of a data row that begins `phase` elements after the start of a line.

        Line 0 is the one in which the row begins. All lines of a progression are touched alike, shifted along the row.
        """
        per_line, step = group.layout.per_line, self.step[group.array]
        at, last = (phase + group.first + group.least) // per_line, (phase + group.last + group.most) // per_line
        out: list[Progression] = []
        for end in self.ends:
            low = max(at, (phase + end - self.reach) // per_line)
            high = min(last, (phase + end + self.reach) // per_line)
            if low > high:
                continue
            out += progressions(at, low, step)
            out += [(low + k, 1, 1) for k in range(high + 1 - low)]
            at = high + 1
        return out + progressions(at, last + 1, step)


def progressions(low: int, high: int, step: int) -> list[Progression]:
    """low, ..., high - 1 as progressions with this step."""
    return [(low + k, step, (high - low - k - 1) // step + 1) for k in range(step) if low + k < high]


def _within(found: tuple[Group, ...]) -> int:
    """The maximum number of bytes touched between two touches of a line by one group in one row of iterations."""
    most = max(g.layout.per_line - 1 + g.most - g.least for g in found)
    return sum(((most + g.most - g.least) // g.layout.per_line + 2) * g.layout.line_bytes for g in found)
