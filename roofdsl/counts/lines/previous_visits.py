"""The previous visit of a line, from the offsets of groups alone: candidates, latest first, with the rows in which they
hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.counts.lines.groups import Group, Touch
from roofdsl.counts.lines.uniform import Uniform

Box = tuple[tuple[int, int], ...]
"""Rows of iterations: (low, high) of each loop but the innermost, `high` excluded."""

Shift = tuple[int, ...]


class Visit:
    """The touches of one line by a group in a row of iterations.

    start: the line's first element, counted from the beginning of the data row; phase: the number of elements between
    the start of a line and the beginning of that row; ago: the number of repetitions of the program before the current
    one.
    """

    __slots__ = ("ago", "group", "phase", "start")

    def __init__(self, group: Group, start: int, phase: int, ago: int = 0) -> None:
        self.group, self.start, self.phase, self.ago = group, start, phase, ago


class Candidate:
    """A visit that is the previous one, in rows of iterations without a later candidate.

    shift: its row is the current one minus `shift`; touch: its last touch; within: the rows of the current visit for
    which the candidate's row is in its own nest.
    """

    __slots__ = ("shift", "touch", "visit", "within")

    def __init__(self, visit: Visit, shift: Shift, touch: Touch, within: Box) -> None:
        self.visit, self.shift, self.touch, self.within = visit, shift, touch, within


class Reuse:
    """Finds the previous visit of a visit."""

    def __init__(self, program: Uniform, groups: tuple[tuple[Group, ...], ...]) -> None:
        self.boxes: list[Box] = [tuple(zip(n.low[:-1], n.high[:-1], strict=True)) for n in program.nests]
        self.count = len(program.nests)
        self.of_array: dict[int, list[list[Group]]] = {}
        for a in range(len(program.arrays)):
            self.of_array[a] = [[g for g in each if g.array == a] for each in groups]
        self._shifts: dict[tuple[Group, int], list[tuple[int, int, Shift, Group, int]]] = {}

    def candidates(self, visit: Visit, lead: Touch, *, again: bool) -> list[Candidate]:
        """Visits of the line before this visit, whose first touch is `lead`, latest first.

        again: whether the program ran before.
        """
        layout = visit.group.layout
        found: dict[tuple[int, int, Shift], Candidate] = {}
        earlier = again and visit.ago == 0
        # A line at an end of a row holds elements of the neighboring row, too, whose visits are visits of this line.
        sides = [0]
        if visit.start < 0:
            sides.append(-1)
        if visit.start + layout.per_line > layout.row and layout.strides:
            sides.append(1)
        rows = [row for side in sides for row in self._rows(visit.group, side)]
        if len(sides) > 1:
            rows.sort(key=lambda row: row[:3])
        for ago, back, shift, group, side in rows:
            if ago and not earlier:
                continue
            same = not ago and not back and not any(shift)
            start = visit.start - side * layout.row
            touch = group.latest(start, lead if same else None)
            if touch is None or (same and group is visit.group):
                continue
            known = found.get((ago, back, shift))
            if known is None or known.touch < touch:
                phase = (visit.phase + side * layout.row) % layout.per_line
                before = Visit(group, start, phase, visit.ago + ago)
                within = tuple(
                    (low + s, high + s) for (low, high), s in zip(self.boxes[group.nest], shift, strict=True)
                )
                found[ago, back, shift] = Candidate(before, shift, touch, within)
        return list(found.values())

    def _rows(self, group: Group, side: int) -> list[tuple[int, int, Shift, Group, int]]:
        """(repetitions ago, nests back, shift, group, side) of the rows that touch the data row of a group's row, or
        its neighbor in memory on one side, latest first.
        """
        known = self._shifts.get((group, side))
        if known is not None:
            return known
        out = []
        steps = list(self._steps(group, side))
        for nest, others in enumerate(self.of_array[group.array]):
            back = (group.nest - nest) % self.count
            for other in others:
                for step in steps:
                    shift = tuple(o - q - s for o, q, s in zip(other.row, group.row, step, strict=True))
                    if nest < group.nest:
                        out.append((0, back, shift, other, side))
                    elif nest > group.nest:
                        out.append((1, back, shift, other, side))
                    else:
                        if shift >= (0,) * len(shift):
                            out.append((0, 0, shift, other, side))
                        out.append((1, self.count, shift, other, side))
        out.sort(key=lambda row: row[:3])
        self._shifts[group, side] = out
        return out

    @staticmethod
    def _steps(group: Group, side: int) -> Iterator[Shift]:
        """The steps from a data row to its neighbor in memory: one row on, or to the first row of the next plane, and
        so on.
        """
        strides = group.layout.strides
        depth = len(strides)
        if not side:
            yield (0,) * depth
            return
        for wrapped in range(depth):
            carry = depth - 1 - wrapped
            whole = [strides[d - 1] // strides[d] - 1 for d in range(carry + 1, depth)]
            yield (*([0] * carry), side, *(-side * w for w in whole))


def resolved(box: Box, candidates: Sequence[Candidate]) -> list[tuple[Box, Candidate | None]]:
    """The rows of `box` in parts, each with the first candidate that holds there; None if there is none."""
    pending, out = [box], list[tuple[Box, Candidate | None]]()
    for candidate in candidates:
        rest: list[Box] = []
        for part in pending:
            inner = _meet(part, candidate.within)
            if inner is None:
                rest.append(part)
            else:
                out.append((inner, candidate))
                rest += _without(part, inner)
        pending = rest
        if not pending:
            break
    return out + [(part, None) for part in pending]


def _meet(a: Box, b: Box) -> Box | None:
    out = []
    for (low, high), (low_b, high_b) in zip(a, b, strict=True):
        u, v = max(low, low_b), min(high, high_b)
        if u >= v:
            return None
        out.append((u, v))
    return tuple(out)


def _without(box: Box, inner: Box) -> list[Box]:
    """`box` without `inner`, which lies within it, as boxes."""
    out, done = list[Box](), list[tuple[int, int]]()
    for d, ((low, high), (u, v)) in enumerate(zip(box, inner, strict=True)):
        if low < u:
            out.append((*done, (low, u), *box[d + 1 :]))
        if v < high:
            out.append((*done, (v, high), *box[d + 1 :]))
        done.append((u, v))
    return out
