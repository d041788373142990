"""The histogram of stack distances of uniform nests: how many visits to a line are at each distance from the previous
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise, product
from math import gcd, lcm, prod
from typing import NamedTuple

from roofdsl.counts.lines.distance_records import (
    DROPPED,
    READ,
    STORED,
    WRITTEN,
    Between,
    Distances,
    Histogram,
    Spread,
    of_whole_arrays,
)
from roofdsl.counts.lines.groups import Group, Progression, Rows, Touch, groups, progressions
from roofdsl.counts.lines.previous_visits import Box, Candidate, Reuse, Visit, resolved
from roofdsl.counts.lines.touched_rows import Window
from roofdsl.counts.lines.uniform import NotUniform, Uniform
from roofdsl.counts.lines.windows import Windows

MOST_SINGLE, MOST_WINDOWS = 2_000_000, 300_000
"""The maximum number of distances that are recorded one by one, and of windows that are counted."""


def histogram(program: Uniform, *, first: bool = False, sector_bytes: int | None = None) -> Histogram:
    """The stack distances of a program; `first`: only the first visits of lines, which miss in caches of any size.

    sector_bytes: count visits of sectors, the parts in which lines are filled. Their distance is the largest one of
    their line since the previous visit of the sector. By default, lines are filled as a whole. Raises NotUniform if
    rows are too short, or the program is too irregular.
    """
    return _Counting(program, first=first, sector_bytes=sector_bytes).histogram()


class _Piece(NamedTuple):
    """The window of a visit, from touch x to touch y. The row of y is `moved` rows before the current one."""

    window: Window
    moved: tuple[int, ...]
    x: Touch
    y: Touch


class _Reached(NamedTuple):
    """A visit on the way back from the current one, `moved` rows before it; `pieces`: the windows in between."""

    visit: Visit
    lead: Touch
    candidates: list[Candidate]
    moved: tuple[int, ...]
    pieces: tuple[_Piece, ...]


class _Counting:
    def __init__(self, program: Uniform, *, first: bool, sector_bytes: int | None) -> None:
        # the end of the execution counts as visits of nests that touch nothing, after the last repetition of the others
        self.real = len(program.nests)
        program = Uniform(program.arrays, (*program.nests, *(() if first else program.ends())), program.times)
        self.program, self.groups, self.first, self.sector_bytes = program, groups(program), first, sector_bytes
        self.rows = Rows(program, self.groups, self.real)
        found = (*self.groups[: self.real], *[()] * (len(self.groups) - self.real))
        self.reuse = Reuse(program, found)
        self.windows = Windows(program, found)
        self.depth = len(program.nests[0].low) - 1
        self.sizes = [a.per_line for a in program.arrays]
        self.strides = self.windows.strides
        self.period = [
            lcm(*(size // gcd(strides[d], size) for size, strides in zip(self.sizes, self.strides, strict=True)))
            for d in range(self.depth)
        ]
        self.cold = [[0, 0, 0, 0] for _ in program.arrays]
        self.rest: list[tuple[dict[Spread, int], ...]] = [({}, {}, {}, {}) for _ in program.arrays]
        self.between: list[Between] = []
        self.single = self.counted = 0
        self._phases: dict[Box, dict[tuple[int, ...], int]] = {}
        self._cells: dict[object, list[tuple[tuple[Progression, ...], tuple[int, ...]]]] = {}

    def histogram(self) -> Histogram:
        for nest, of_nest in enumerate(self.groups):
            box = self.windows.blocks.boxes[nest]
            for phases in self.phases(box):
                again_too = self.program.times - 1
                runs = ((False, 1), (True, again_too)) if nest < self.real else ((again_too > 0, 1),)
                for group in of_nest:
                    for again, times in runs:
                        if times:
                            self._group(group, box, phases, (again, times))
        arrays = tuple(
            Distances(a.name, self.sector_bytes or a.line_bytes, a.temp, tuple(c), r)
            for a, c, r in zip(self.program.arrays, self.cold, self.rest, strict=True)
        )
        return of_whole_arrays(Histogram(arrays, 0 if self.first else self.rows.least_bytes, tuple(self.between)))

    # ---- classes ----

    def phases(self, box: Box) -> dict[tuple[int, ...], int]:
        """The number of rows of `box` (of as many loops as it has) for each combination of their starts within a line,
        array by array.
        """
        known = self._phases.get(box)
        if known is not None:
            return known
        found = {tuple(a.start % a.per_line for a in self.program.arrays): 1}
        for d, (low, high) in enumerate(box):
            step = self.period[d]
            more: dict[tuple[int, ...], int] = {}
            for value, _, count in progressions(low, high, step):
                for phases, before in found.items():
                    moved = self.moved(phases, d, value)
                    more[moved] = more.get(moved, 0) + before * count
            found = more
        self._phases[box] = found
        return found

    def moved(self, phases: tuple[int, ...], d: int, by: int) -> tuple[int, ...]:
        """The phases `by` rows further along loop d."""
        return tuple((p + by * s[d]) % n for p, s, n in zip(phases, self.strides, self.sizes, strict=True))

    def cells(
        self, pieces: Sequence[_Piece], box: Box, free: int
    ) -> list[tuple[tuple[Progression, ...], tuple[int, ...]]]:
        """The rows of `box` by the loops from `free` on, in progressions along which distances are affine, each with
        the phases that these loops add.
        """
        key = tuple((p.window.key, p.moved) for p in pieces), box
        known = self._cells.get(key)
        if known is not None:
            return known
        cuts: list[set[int]] = [set() for _ in box]
        for piece in pieces:
            for d, values in enumerate(self.windows.blocks.critical(piece.window), piece.window.free):
                cuts[d] |= {c for v in values for c in (v + piece.moved[d], v + piece.moved[d] + 1)}
        choices = []
        for d in range(free, self.depth):
            low, high = box[d]
            places = sorted({low, high} | {c for c in cuts[d] if low < c < high})
            choices.append([p for u, v in pairwise(places) for p in progressions(u, v, self.period[d])])
        out = []
        for cell in product(*choices):
            phases = (0,) * len(self.sizes)
            for d, (first, _, _) in enumerate(cell, free):
                phases = self.moved(phases, d, first)
            out.append((cell, phases))
        self._cells[key] = out
        return out

    # ---- visits ----

    def _group(self, group: Group, box: Box, phases: tuple[int, ...], run: tuple[bool, int]) -> None:
        """Adds the visits of a group in the rows of `box` that begin at `phases`."""
        strides = self.strides[group.array]
        phase = phases[group.array] + sum(o * s for o, s in zip(group.row, strides, strict=True))
        phase %= group.layout.per_line
        per_line = group.layout.per_line
        for line, step, count in self.rows.lines(group, phase):
            visit = Visit(group, line * per_line - phase, phase)
            lead = group.lead(visit.start, per_line)
            # the end of the execution visits a line in the row in which it begins
            if lead is not None and (group.nest < self.real or visit.start >= 0):
                along = (0, step * per_line, count)
                for kinds, part, pieces in self._befores(visit, lead, box, again=run[0]):
                    self._add(group.array, kinds, part, pieces, (phases, along, run[1]))

    def _wanted(self, visit: Visit) -> Iterator[tuple[int, Callable[[Visit], bool]]]:
        """(kind, test) for each sector of the line that a visit touches. The test says of an earlier visit of the line
        whether the distance is counted from it.
        """
        group = visit.group
        size = group.layout.per_line
        if self.sector_bytes is not None:
            size = size * self.sector_bytes // group.layout.line_bytes
        for at in range(0, group.layout.per_line, size):
            lead = group.lead(visit.start + at, size)
            if lead is None:
                continue
            if group.nest >= self.real:
                yield DROPPED, partial(_writes, at, size)
                continue
            begins = WRITTEN if self.program.nests[group.nest].references[lead[1]].writes else READ
            yield begins, partial(_touches, at, size)
            if group.writes(visit.start + at, size):
                yield STORED, partial(_writes, at, size)

    def _befores(
        self, visit: Visit, lead: Touch, box: Box, *, again: bool
    ) -> Iterable[tuple[list[int], Box, tuple[_Piece, ...]]]:
        """(kinds, rows, windows) for a visit in `box`. The largest window counts; there are no windows if there is no
        previous visit.
        """
        found: dict[object, tuple[list[int], Box, tuple[_Piece, ...]]] = {}
        candidates = self.reuse.candidates(visit, lead, again=again)
        start = _Reached(visit, lead, candidates, (0,) * self.depth, ())
        for kind, until in self._wanted(visit):
            for part, pieces in self._back(start, box, until, again=again):
                key = part, tuple((p.window.key, *p[1:]) for p in pieces)
                found.setdefault(key, ([], part, pieces))[0].append(kind)
        return found.values()

    def _back(
        self, at: _Reached, box: Box, until: Callable[[Visit], bool], *, again: bool
    ) -> Iterator[tuple[Box, tuple[_Piece, ...]]]:
        """(rows, windows) from the visit reached back to the visit from which the distance is counted."""
        for part, candidate in resolved(box, at.candidates):
            if candidate is None:
                yield part, ()
                continue
            pieces = (*at.pieces, self._piece(at.visit, at.lead, candidate, at.moved))
            visit = candidate.visit
            if until(visit):
                yield part, pieces
                continue
            moved = tuple(m + s for m, s in zip(at.moved, candidate.shift, strict=True))
            lead = visit.group.lead(visit.start, visit.group.layout.per_line)
            if lead is None:
                raise ArithmeticError("a visit without a touch")
            found = [_further(c, moved) for c in self.reuse.candidates(visit, lead, again=again)]
            yield from self._back(_Reached(visit, lead, found, moved, pieces), part, until, again=again)

    @staticmethod
    def _piece(visit: Visit, lead: Touch, before: Candidate, moved: tuple[int, ...]) -> _Piece:
        ago = before.visit.ago - visit.ago
        window = Window(before.visit.group.nest, visit.group.nest, before.shift, ago)
        return _Piece(window, moved, before.touch, lead)

    # ---- records ----

    def _add(
        self,
        array: int,
        kinds: Sequence[int],
        box: Box,
        pieces: tuple[_Piece, ...],
        at: tuple[tuple[int, ...], Progression, int],
    ) -> None:
        """Adds visits of lines along `at[1]` in those rows of `box` that begin at phases at[0], each at[2] times."""
        phases, along, times = at
        if not pieces:
            weight = self.phases(box).get(phases, 0) * along[2] * times
            for kind in kinds:
                self.cold[array][kind] += weight
            return
        if self.first:
            return
        free = min(p.window.free for p in pieces)
        beside = self.phases(box[:free])
        for cell, own in self.cells(pieces, box, free):
            # Phases add up: the outer loops add what the loops from `free` on do not.
            others = tuple((p - o) % n for p, o, n in zip(phases, own, self.sizes, strict=True))
            weight = beside.get(others, 0) * times
            if weight:
                self._cell(array, kinds, (*cell, along), pieces, (phases, free, weight))

    def _cell(
        self,
        array: int,
        kinds: Sequence[int],
        cell: tuple[Progression, ...],
        pieces: tuple[_Piece, ...],
        at: tuple[tuple[int, ...], int, int],
    ) -> None:
        phases, free, weight = at
        origin = [first for first, _, _ in cell]
        values = [self._value(p, origin, phases, free) for p in pieces]
        slopes: list[list[int]] = []
        for k, (first, step, count) in enumerate(cell):
            if count == 1:
                slopes.append([0] * len(pieces))
                continue
            there = [*origin[:k], first + step, *origin[k + 1 :]]
            beside = [self._value(p, there, phases, free) for p in pieces]
            slopes.append([b - a for a, b in zip(values, beside, strict=True)])
        self._largest_of(array, kinds, (values, slopes), cell, weight)

    def _largest_of(
        self,
        array: int,
        kinds: Sequence[int],
        found: tuple[list[int], list[list[int]]],
        cell: tuple[Progression, ...],
        weight: int,
    ) -> None:
        """Records the largest of several affine functions on a cell: their first values, and their steps by loop."""
        values, slopes = found
        top = self._largest(values, slopes, cell)
        if top is not None:
            steps = [(s[top], c[2]) for s, c in zip(slopes, cell, strict=True)]
            self._record(array, kinds, values[top], steps, weight)
            return
        cut = _cut(values, slopes, cell)
        if cut is None:
            self._between(array, kinds, found, cell, weight)
            return
        k, at = cut
        first, step, count = cell[k]
        for start, part in ((0, (first, step, at)), (at, (first + at * step, step, count - at))):
            there = [v + s * start for v, s in zip(values, slopes[k], strict=True)]
            self._largest_of(array, kinds, (there, slopes), (*cell[:k], part, *cell[k + 1 :]), weight)

    def _value(self, piece: _Piece, at: Sequence[int], phases: tuple[int, ...], free: int) -> int:
        """The distance at the values `at` of the loops from `free` on; the last entry of `at` moves the touches."""
        row = [0] * free + [v - m for v, m in zip(at[:-1], piece.moved[free:], strict=True)]
        if any(piece.moved):
            for d, m in enumerate(piece.moved):
                phases = self.moved(phases, d, -m)
        self.counted += 1
        if self.counted > MOST_WINDOWS:
            raise NotUniform("too many windows that differ")
        by = at[-1]
        x, y = (piece.x[0] + by, piece.x[1]), (piece.y[0] + by, piece.y[1])
        return self.windows.bytes(piece.window, row, phases, x, y)

    @staticmethod
    def _largest(values: list[int], slopes: list[list[int]], cell: tuple[Progression, ...]) -> int | None:
        """Which of several affine functions is the largest on the whole cell; None if that differs within it."""
        for top in range(len(values)):
            least = [
                values[top] - v + sum(min(0, (s[top] - s[k]) * (c[2] - 1)) for s, c in zip(slopes, cell, strict=True))
                for k, v in enumerate(values)
            ]
            if min(least) >= 0:
                return top
        return None

    def _between(
        self,
        array: int,
        kinds: Sequence[int],
        found: tuple[list[int], list[list[int]]],
        cell: tuple[Progression, ...],
        weight: int,
    ) -> None:
        """Records the largest of several functions on a cell by its least and greatest value there."""
        values, slopes = found
        ends = [list(values), list(values)]
        for slope, (_, _, count) in zip(slopes, cell, strict=True):
            for k, each in enumerate(slope):
                ends[each > 0][k] += each * (count - 1)
        weight *= prod(count for _, _, count in cell)
        self.between += [Between(array, kind, max(ends[0]), max(ends[1]), weight) for kind in kinds]

    def _record(self, array: int, kinds: Sequence[int], value: int, slopes: list[tuple[int, int]], weight: int) -> None:
        weight *= prod(count for slope, count in slopes if not slope)
        steps = tuple(each for each in slopes if each[0])
        if len(steps) > 1 and all(isinstance(count, int) for _, count in steps):
            steps = tuple(sorted(steps, key=lambda each: each[1]))  # the longest one needs no loop
            self.single += prod(count for _, count in steps[:-1])
            if self.single > MOST_SINGLE:
                raise NotUniform("too many distances that differ")
        for kind in kinds:
            into = self.rest[array][kind]
            into[value, steps] = into.get((value, steps), 0) + weight


def _touches(at: int, elements: int, visit: Visit) -> bool:
    """Whether a visit touches any of `elements` elements of its line, from element `at` on."""
    return visit.group.lead(visit.start + at, elements) is not None


def _writes(at: int, elements: int, visit: Visit) -> bool:
    return visit.group.writes(visit.start + at, elements)


def _cut(values: list[int], slopes: list[list[int]], cell: tuple[Progression, ...]) -> tuple[int, int] | None:
    """(loop, how many of its values come first) for a cell to be cut, none of whose affine functions is the largest.

    None if a count depends on the sizes, and no two functions cross at a fixed number of values from either end.
    """
    counts = [count for _, _, count in cell]
    if all(isinstance(count, int) for count in counts):
        k = max(range(len(cell)), key=counts.__getitem__)
        return k, counts[k] // 2
    for a, b in combinations(range(len(values)), 2):
        steps = [each[a] - each[b] for each in slopes]
        alike = [isinstance(step, int) and not step for step in steps]
        if alike.count(False) != 1:
            continue
        k = alike.index(False)
        step, start = steps[k], values[a] - values[b]
        # the first value, counted from one end, at which the sign is another than at that end
        for apart, sign in ((start, 1), (start + step * (counts[k] - 1), -1)):
            if isinstance(step, int) and isinstance(apart, int) and apart * step * sign < 0:
                at = -(-abs(apart) // abs(step))
                if at < counts[k]:
                    return k, at if sign > 0 else counts[k] - at
    return None


def _further(candidate: Candidate, moved: tuple[int, ...]) -> Candidate:
    within = tuple((low + m, high + m) for (low, high), m in zip(candidate.within, moved, strict=True))
    return Candidate(candidate.visit, candidate.shift, candidate.touch, within)
