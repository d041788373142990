"""The histogram of stack distances of nests whose operands have loops in any order, or only some of the loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from math import prod
from typing import Any

from roofdsl.counts.lines.cells import Cell
from roofdsl.counts.lines.distance_records import DROPPED, READ, STORED, WRITTEN, Between, Distances, Histogram, Spread
from roofdsl.counts.lines.earlier import OWN, Before, Earlier
from roofdsl.counts.lines.nests import Leaf, Operand, nests
from roofdsl.counts.lines.parts import explore
from roofdsl.counts.lines.sums import points
from roofdsl.counts.lines.symbolic import Growing, Sizes, substituted
from roofdsl.counts.lines.tied import Tied, tied_distances
from roofdsl.counts.lines.touched import Stretch, data_boxes, lines, stretches
from roofdsl.counts.lines.uniform import NotUniform
from roofdsl.counts.lines.uniform_histogram import MOST_SINGLE
from roofdsl.loops.sized import Sized

MOST_BACK = 80
"""The maximum number of accesses to a line between two writes to it."""

MOST_SLICES = 4096
"""The maximum number of values of a loop variable that are counted one by one if distances are not linear in it."""


SHORT_BYTES = 4096
"""Distances within a few iterations of one loop are left out, unless requested, if they are at most this large."""

MOST_ACCESSES = 6
"""Up to this many accesses in an iteration, distances within a few iterations are found even if not requested."""


class Operands:
    """The stack distances of a kernel whose operands have loops in any order."""

    def __init__(self, at: Sized, line_bytes: int | None, sizes: Sizes | None = None, *, padded: bool = False) -> None:
        """`at`: the kernel at its sizes, which grow with the symbols of `sizes` if there are any.

        line_bytes None: each array's line is its element. padded: as for `nests`. Raises NotUniform, Undecided.
        """
        self.program = nests(at, line_bytes, padded=padded)
        self.sizes = sizes or Sizes(0)
        self.earlier = Earlier(self.program)

    @cached_property
    def befores(self) -> list[tuple[Leaf, int, Cell, Before | None]]:
        """Each access, in parts with its previous access (None for first accesses). Raises Undecided."""
        found = []
        for leaf in self.program.leaves:
            whole = Cell.of_box(self.sizes, self.program.step, leaf.box)
            for place in range(len(leaf.operands)):

                def before(cell: Cell, leaf: Leaf = leaf, place: int = place) -> Before | None:
                    return self.earlier.before(leaf, place, cell.forms, cell)

                found += [(leaf, place, cell, x) for cell, x in explore(whole, before)]
        return found

    def histogram(self, *, first: bool = False, every: bool = False) -> Histogram:
        """The stack distances; `first`: only first accesses to lines; `every`: always include short distances.

        Raises NotUniform, Undecided.
        """
        counting = _Counting(self, first=first, every=every)
        for leaf, place, cell, before in self.befores:
            if before is None:
                counting.cold(leaf.operands[place], cell)
            else:
                counting.again(leaf, place, cell, before)
        if not first:
            for leaf in self.program.ends():
                self._end(leaf, counting)
        return counting.histogram()

    def _end(self, leaf: Leaf, counting: _Counting) -> None:
        """Adds the written lines of an array that the end of the execution finds."""
        data = self.program.data[leaf.operands[0].array]
        whole = Cell.of_box(self.sizes, self.program.step, leaf.box)
        whole = whole.with_forms((*whole.forms[:-1], whole.forms[-1] * data.per_line))
        for cell, x in explore(whole, lambda c: self.earlier.before(leaf, 0, c.forms, c)):
            if x is not None:
                counting.since_write(DROPPED, cell, leaf, 0, x)


class _Counting:
    def __init__(self, found: Operands, *, first: bool, every: bool) -> None:
        self.program, self.sizes, self.earlier = found.program, found.sizes, found.earlier
        self.first, self.every = first, every
        self.least = 0 if first else max(a.line_bytes for a in self.program.data)
        self.firsts = [[0, 0, 0, 0] for _ in self.program.data]
        self.rest: list[tuple[dict[Spread, int], ...]] = [({}, {}, {}, {}) for _ in self.program.data]
        self.tied: list[list[Tied]] = [[] for _ in self.program.data]
        self.between: list[Between] = []
        self.single = 0

    def histogram(self) -> Histogram:
        arrays = tuple(
            Distances(a.name, a.line_bytes, a.temp, tuple(c), r, tuple(t))
            for a, c, r, t in zip(self.program.data, self.firsts, self.rest, self.tied, strict=True)
        )
        return Histogram(arrays, self.least, tuple(self.between))

    def cold(self, operand: Operand, cell: Cell) -> None:
        """Adds first accesses to lines."""
        found = self.firsts[operand.array]
        found[WRITTEN if operand.writes else READ] += points(cell)
        if operand.writes:
            found[STORED] += points(cell)

    def again(self, leaf: Leaf, place: int, cell: Cell, before: Before) -> None:
        """Adds accesses to lines that were accessed before."""
        operand = leaf.operands[place]
        if not self._is_short(leaf, before, cell):
            for part, distance in self._distance(cell, leaf, place, before):
                self._record(operand.array, WRITTEN if operand.writes else READ, part, distance)
        if operand.writes:
            self.since_write(STORED, cell, leaf, place, before)

    def _is_short(self, leaf: Leaf, before: Before, cell: Cell) -> bool:
        """Whether the distance between two accesses is so short that it is left out; `least` is raised accordingly."""
        if self.first:
            return True  # no distance matters
        if self.every or len(leaf.operands) <= MOST_ACCESSES or before.leaf is not leaf:
            return False
        # the iterations of the innermost loop between the two accesses
        back: Any = 1
        if before.loop == OWN:
            back = 0
        elif before.at:
            back = cell.forms[len(leaf.loops) - 1] - before.at[-1]
        if before.loop not in (OWN, len(leaf.loops) - 1) or not isinstance(back, int):
            return False
        most = sum(self.program.data[o.array].line_bytes for o in leaf.operands) * (back + 1)
        if most > SHORT_BYTES:
            return False
        self.least = max(self.least, most)
        return True

    def _distance(self, cell: Cell, leaf: Leaf, place: int, before: Before) -> list[tuple[Cell, Any]]:
        """The part in pieces, each with the bytes touched from the previous access on.

        The forms of the part begin with the loop variables of the access. The pieces have the same forms.
        """
        kept, depth, deep = len(cell.forms), len(leaf.loops), len(before.at)
        found = [cell.with_forms((*cell.forms, *before.at, 0))]
        known: tuple[tuple[Any, ...], list[Stretch]] = (None,) * (depth + deep), []
        for array, data in enumerate(self.program.data):
            out = []
            for part in found:

                def count(c: Cell, array: int = array, per_line: int = data.per_line) -> Any:
                    nonlocal known
                    ends = (*c.forms[:depth], *c.forms[kept : kept + deep])
                    if any(a is not b for a, b in zip(known[0], ends, strict=True)):
                        x = before._replace(at=ends[depth:])
                        known = ends, list(stretches(self.program, x, leaf, place, ends[:depth]))
                    return lines(data_boxes(known[1], array), per_line, c)

                for piece, number in explore(part, count):
                    total = piece.forms[-1] + number * data.line_bytes
                    out.append(piece.with_forms((*piece.forms[:-1], total)))
            found = out
        return [(piece.with_forms(piece.forms[:kept]), piece.forms[-1]) for piece in found]

    def since_write(self, kind: int, cell: Cell, leaf: Leaf, place: int, before: Before) -> None:
        """Adds accesses by the largest distance since the last write to the line."""
        array = leaf.operands[place].array
        # the forms of a part: the loop variables of the current access, and the largest distance so far
        start = cell.with_forms((*cell.forms[: len(leaf.loops)], 0))
        pending = [(start, leaf, place, before)]
        for _ in range(MOST_BACK):
            further = []
            for at, y, k, x in pending:
                for part, most in self._most(at, y, k, x):
                    if x.leaf.operands[x.place].writes:
                        if not self.first:
                            self._record(array, kind, part, most)
                        continue

                    def again(c: Cell, x: Before = x) -> Before | None:
                        return self.earlier.before(x.leaf, x.place, c.forms[:-1], c)

                    for piece, found in explore(part, again):
                        if found is None:
                            self.firsts[array][kind] += points(piece)
                        else:
                            further.append((piece, x.leaf, x.place, found))
            pending = further
            if not pending:
                return
        raise NotUniform("many accesses to a line between two writes")

    def _most(self, cell: Cell, leaf: Leaf, place: int, before: Before) -> Iterator[tuple[Cell, Any]]:
        """The part in pieces, each with the larger of its last form and the bytes touched since the previous access.

        The forms of the pieces are the loop variables of the previous access, and that maximum.
        """
        here, deep = len(leaf.loops), len(before.at)
        both = cell.with_forms((*cell.forms, *before.at))
        short = self._is_short(leaf, before, cell)
        for part, distance in [(both, 0)] if short else self._distance(both, leaf, place, before):
            joined = part.with_forms((*part.forms[here + 1 :], part.forms[here], distance))
            for piece, most in explore(joined, lambda c: _larger(c, c.forms[-2], c.forms[-1])):
                yield piece.with_forms((*piece.forms[:deep], most)), most

    # ---- records ----

    def _record(self, array: int, kind: int, cell: Cell, distance: Any) -> None:
        count = self.sizes.count
        if isinstance(distance, int):
            self._add(array, kind, distance, (), points(cell))
            return
        # How the distance depends on the loop variables, whose numbers follow those of the sizes: steadily on some (the
        # factor of each may contain sizes), as a product of two or as a power on others.
        linear: dict[int, Any] = {}
        bent: set[int] = set()
        for monomial, factor in distance.terms.items():
            used = [u for u in monomial if u >= count]
            if len(used) > 1:
                bent.update(used)
            elif used:
                rest = monomial[:-1]
                linear[used[0]] = linear.get(used[0], 0) + (Growing(self.sizes, {rest: factor}, 0) if rest else factor)
        tied = {u for c in cell.constraints for m in c.terms for u in m if u >= count}
        if not linear and not bent:
            self._add(array, kind, distance, (), points(cell))
        elif self.sizes.count:
            low, high = cell.range(distance)
            crossing = partial(_beyond, cell.with_forms((distance,)))
            self.between.append(Between(array, kind, low, high, points(cell), crossing))
        elif bent:
            self._slices(array, kind, cell, distance, bent)
        elif tied & linear.keys():
            self.tied[array].append(tied_distances(kind, cell, distance))
        else:
            # Along each variable, the distance goes up or down in equal steps from its value at the low end: a
            # progression for each, which need not be enumerated.
            start: Any = distance
            steps = []
            for u, factor in linear.items():
                low, high = cell.bounds[u]
                start = substituted(start, u, low)
                steps.append((factor, high - low + 1))
            others = {u: ends for u, ends in cell.bounds.items() if u not in linear}
            weight = points(Cell(cell.sizes, cell.step, others, (), cell.constraints))
            self._add(array, kind, start, tuple(steps), weight)

    def _slices(self, array: int, kind: int, cell: Cell, distance: Any, bent: set[int]) -> None:
        """Adds a part whose distance is not linear, for each value of one of the coordinates that make it so."""
        ends = {u: cell.bounds[u] for u in bent}
        u = min(ends, key=lambda v: ends[v][1] - ends[v][0])
        first, last = ends[u]
        if last - first > MOST_SLICES:
            raise NotUniform("distances that are not linear")
        whole = cell.with_forms((distance,))
        for value in range(first, last + 1):
            piece = whole.within(u, value, value)
            if piece is not None:
                self._record(array, kind, piece, piece.forms[0])

    def _add(self, array: int, kind: int, value: Any, steps: tuple[tuple[Any, Any], ...], weight: Any) -> None:
        if isinstance(weight, int) and not weight:
            return
        if len(steps) > 1 and all(isinstance(count, int) for _, count in steps):
            steps = tuple(sorted(steps, key=lambda each: each[1]))  # the longest is counted at once
            self.single += prod(count for _, count in steps[:-1])
            if self.single > MOST_SINGLE:
                raise NotUniform("too many distances that differ")
        into = self.rest[array][kind]
        into[value, steps] = into.get((value, steps), 0) + weight


def _beyond(cell: Cell, limit: int) -> Any:
    """The number of points of a part at which its only form exceeds `limit`. Raises Undecided."""
    # a part without known facts, since these are found anew for each limit
    anew = Cell(cell.sizes, cell.step, cell.bounds, cell.forms, cell.constraints)
    found = explore(anew, lambda c: c.negative(limit - c.forms[0]))
    return sum((points(piece) for piece, more in found if more), 0)


def _larger(cell: Cell, a: Any, b: Any) -> Any:
    """The larger of two forms. Raises Split."""
    return b if cell.negative(a - b) else a
