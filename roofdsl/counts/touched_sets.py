"""The elements that parts of a kernel touch at given sizes, as boxes of subscripts, and their lines and sectors."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from roofdsl.counts.distinct_units import Amount, Box, distinct_units
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.loop_intervals import Env, LoopIntervals, Values, most_boxes, upright
from roofdsl.counts.neighboring_references import filled_gaps, recurrences
from roofdsl.counts.thread_turns import leaves_gaps
from roofdsl.loops.accesses import Access, elements_of
from roofdsl.loops.model import Array, Assign, Count, For, Kernel, Let, Node


class Touched(NamedTuple):
    """Boxes of one array: all, those written, those read before anything is written there, and those that are written
    first: no sector of these may be read before.
    """

    every: tuple[Box, ...]
    written: tuple[Box, ...]
    read_first: tuple[Box, ...]
    written_first: tuple[Box, ...]


NOTHING = Touched((), (), (), ())

Sets = dict[str, Touched]
"""What is touched of each array."""

EARLY = 4
"""An iteration early in a loop comes after the first of EARLY equal parts of it, or after EARLY iterations."""

PARTS = 16
"""Parts of a loop whose variable moves the bounds of loops inside and occurs in subscripts."""

Units = dict[str, tuple[Amount, Amount, Amount]]
"""For each array, residencies of units: begun, begun by a read, and ended by a store."""


class TouchedSets:
    """What parts of a kernel touch, in lines and sectors, and what parts in sequence find again."""

    def __init__(self, kernel: Kernel, cache_bytes: int, line_bytes: int, sector_bytes: int) -> None:
        self.cache_bytes, self.line_bytes, self.sector_bytes = cache_bytes, line_bytes, sector_bytes
        self.arrays = {a.name: a for a in kernel.arrays}
        self.dims = {a.name: _dims(a) for a in kernel.arrays if not a.is_scalar}
        self.intervals = LoopIntervals({s for e in elements_of(kernel.body) for x in e.subscripts for s in x.symbols()})
        self.filled = filled_gaps(kernel.body, self.intervals)
        self._touched: dict[Hashable, Sets] = {}
        self._boxes_of: dict[Hashable, tuple[Box, ...]] = {}
        self._counted: dict[Hashable, Amount] = {}
        self._in_turns: dict[int, bool] = {}
        self._recurrences: dict[int, tuple[str, ...]] = {}

    def exceeds(self, sets: Sets) -> bool:
        """Whether the lines of the sets do not fit in the cache."""
        return self.held_bytes(sets) > self.cache_bytes

    def sets(self, nodes: Sequence[Node], env: Env) -> Sets:
        """The elements that `nodes` touch."""
        return self._joined(self._of_node(node, env) for node in nodes if not isinstance(node, Count))

    def _of_node(self, node: Node, env: Env) -> Sets:
        """The elements that one node touches, found once for the values of the variables that it depends on."""
        if not isinstance(node, For | Assign | Let):
            raise NoAnswer("a condition decides which iterations are executed")
        key = self.intervals.key(node, env)
        if key not in self._touched:
            if isinstance(node, For):
                found = self._of_turns(node, env) if self._has_turns(node) else self._of_loop(node, env)
            else:
                found = self._of_statement(node, env)
            self._touched[key] = found
        return self._touched[key]

    def _has_turns(self, loop: For) -> bool:
        """Whether turns of the loop leave gaps. The loop's text alone decides this, so the answer is kept: finding it
        anew for every set would take half of all time.
        """
        if id(loop) not in self._in_turns:
            self._in_turns[id(loop)] = leaves_gaps(self.intervals, loop)
        return self._in_turns[id(loop)]

    def _of_loop(self, loop: For, env: Env) -> Sets:
        values = self.intervals.hull(loop, env)
        if values is None:
            return {}
        found = self.over(loop, env, values)
        for name in self._recurrent(loop):
            if name in found and not values.is_one:
                found[name] = self._in_order(name, found[name], loop, env, values)
        return found

    def over(self, loop: For, env: Env, values: Values, most: int = PARTS) -> Sets:
        """The elements that the iterations of a loop with these values touch.

        A triangle is taken in up to `most` parts, each as a box with as many elements, and with its first and last row.
        """
        parts = [values]
        if self.intervals.decides(loop) and not values.is_one:
            parts = [*values.in_parts(most), Values(values.first, values.first), Values(values.last, values.last)]
        return self._joined(self.sets(loop.body, {**env, loop.var: part}) for part in parts)

    def _recurrent(self, loop: For) -> tuple[str, ...]:
        """The arrays of which iterations of the loop may read what earlier ones have written."""
        if id(loop) not in self._recurrences:
            self._recurrences[id(loop)] = tuple(recurrences(loop, self.intervals))
        return self._recurrences[id(loop)]

    def _in_order(self, name: str, touched: Touched, loop: For, env: Env, values: Values) -> Touched:
        """All that a loop touches of an array. If iterations read only what earlier ones have written, or none writes,
        only the first one reads anything that is written in the loop before it.

        A loop as a whole would seem to read first: its statements do so, in each iteration. One iteration early in the
        loop and the last one stand for all: what is read at a constant distance is the same in each.
        """
        if values.run > 1:
            raise NoAnswer(f"what a loop over chunks of {loop.var} reads of {name} depends on the order")
        start, step = values.first, values.step
        count = (values.last - start) // step

        def at(first: int, end: int, outside: Env = env) -> Touched:
            own = Values(start + first * step, start + end * step, step if end > first else 1)
            around = {**outside, loop.var: own}
            return self.sets(loop.body, around).get(name, NOTHING)

        early = min(count, max(EARLY, count // EARLY))
        alone = {var: Values(own.first, own.first) for var, own in env.items()}
        # An iteration that reads what a later one writes; the first one does so at any constant distance.
        ahead = _meet(at(0, 0, alone).read_first, at(1, count, alone).written)
        for k in (early, count):
            read = at(k, k).read_first
            unwritten = _not_in(at(0, k - 1).written, read)
            later = at(k, count).written if unwritten else ()
            # Of a loop that is executed once, what no iteration writes may be read, too.
            if unwritten and (alone != env or ahead or _meet(read, later) or self._common(name, unwritten, later)):
                then = min(early, count - 1)
                if ahead or _meet(at(then, then, alone).read_first, at(then + 1, count, alone).written):
                    return touched._replace(written_first=self._never_read_first(name, touched))
                return touched
        never = tuple(part for box in touched.read_first for part in _outside(touched.written, box))
        begin = tuple(dict.fromkeys(at(0, 0).read_first + never))
        unit = max(1, self.sector_bytes // self.arrays[name].type.bytes)
        more = [_without(box, begin, unit) for box in touched.written]
        first = (*touched.written_first, *(box for box in more if box is not None))
        return touched._replace(read_first=begin, written_first=tuple(dict.fromkeys(first)))

    def _of_turns(self, loop: For, env: Env) -> Sets:
        """The elements that all turns touch, or as many of them as exceed the cache, since more do so as well."""
        found: Sets = {}
        for done, value in enumerate(self.intervals.values(loop, env), 1):
            found = self._joined((found, self.sets(loop.body, {**env, loop.var: Values(value, value)})))
            if done & (done - 1) == 0 and self.exceeds(found):  # not each time, which takes time
                break
        return found

    def _of_statement(self, statement: Assign | Let, env: Env) -> Sets:
        return self._joined(self._of_access(access, env) for access in self.intervals.accesses(statement))

    def _of_access(self, access: Access, env: Env) -> Sets:
        boxes = self._boxes(access, env)
        own = Touched(boxes, boxes, (), boxes) if access.is_write else Touched(boxes, (), boxes, ())
        return {access.element.array.name: own}

    def _joined(self, parts: Iterable[Sets]) -> Sets:
        """The sets of parts in sequence."""
        of_parts: dict[str, list[Touched]] = {}
        for sets in parts:
            for name, touched in sets.items():
                of_parts.setdefault(name, []).append(touched)
        return {name: own[0] if len(own) == 1 else self._union(name, own) for name, own in of_parts.items()}

    def _union(self, name: str, parts: Iterable[Touched]) -> Touched:
        """What parts in sequence touch of an array. Boxes are keys, so that each stands once and they keep their order:
        hundreds of statements are joined, again and again.
        """
        every, written = dict[Box, None](), dict[Box, None]()
        read_first, written_first = dict[Box, None](), dict[Box, None]()
        for part in parts:
            begin = self._still_written_first(name, read_first, part)
            read_first |= dict.fromkeys(_not_in(written, part.read_first))
            written_first |= dict.fromkeys(begin)
            every |= dict.fromkeys(part.every)
            written |= dict.fromkeys(part.written)
        return Touched(*map(tuple, (every, written, read_first, written_first)))

    def _still_written_first(self, name: str, read: Collection[Box], after: Touched) -> tuple[Box, ...]:
        """What `after` writes first, without the boxes of which a sector may have been read first before it.

        read: what was.
        """
        if not after.written_first:
            return ()
        before = tuple(read)
        return tuple(
            box
            for box in after.written_first
            if box not in read  # the quick answer for `x[i] += ...`
            and not any(_overlap(box, other) for other in before)
            and not self._common(name, (box,), before)
        )

    def _never_read_first(self, name: str, touched: Touched) -> tuple[Box, ...]:
        """The parts of what is written first of which no element, and nothing in the same sector, is read first."""
        unit = max(1, self.sector_bytes // self.arrays[name].type.bytes)
        parts = [part for box in touched.written_first for part in _outside(touched.read_first, box)]
        short = [_without(part, touched.read_first, unit) for part in parts]
        left = touched._replace(written_first=tuple(part for part in short if part is not None))
        return self._still_written_first(name, touched.read_first, left)

    def _boxes(self, access: Access, env: Env) -> tuple[Box, ...]:
        """The boxes that an access stands for, found once for the values of the variables that move it."""
        key = self.intervals.key_of_element(access.element, env), access.is_write
        found = self._boxes_of.get(key)
        if found is None:
            found = self._boxes_of[key] = self._boxes_at(access, env)
        return found

    def _boxes_at(self, access: Access, env: Env) -> tuple[Box, ...]:
        array = access.element.array
        subscripts = list(access.element.subscripts)
        gaps = list(self.filled.get((id(access.element), access.is_write), (1,) * len(subscripts)))
        if array.column_major:
            subscripts, gaps = subscripts[::-1], gaps[::-1]
        # in a row, elements in every sector count like all elements
        gaps[-1] = max(gaps[-1], self.sector_bytes // array.type.bytes)
        moving = {s for subscript in subscripts for s in self.intervals.form(subscript).symbols}
        if any(env[name].movers for name in moving):
            env = upright({name: env[name].for_access(moving) for name in moving}, subscripts[-1].symbols())
        used: set[str] = set()
        intervals = []
        for subscript, gap in zip(subscripts, gaps, strict=True):
            form = self.intervals.form(subscript)
            names = {s for s in form.symbols if not env[s].is_one}
            if names & used:
                raise NoAnswer(f"two subscripts of {array.name} depend on one loop")
            used |= names
            intervals.append(form.intervals(env, gap))
        if prod(map(len, intervals)) > most_boxes(env, used):
            raise NoAnswer(f"the elements of {array.name} that a loop touches are apart from each other")
        return tuple(product(*intervals))

    def held_bytes(self, sets: Sets) -> Amount:
        """The bytes of the lines that hold the sets."""
        return sum((self._units(name, t.every, self.line_bytes) for name, t in sets.items()), 0) * self.line_bytes

    def _units(self, name: str, boxes: Sequence[Box], unit: int) -> Amount:
        if not boxes:
            return 0
        key = name, unit, tuple(boxes)
        if key not in self._counted:
            self._counted[key] = distinct_units(boxes, self.dims[name], self.arrays[name].type.bytes, unit)
        return self._counted[key]

    def moved(self, name: str, touched: Touched) -> tuple[Amount, Amount, Amount]:
        """The traffic of a set that fits: units begun, begun by a read, and ended by a store."""
        begun = self._units(name, touched.every, self.sector_bytes)
        first = self._units(name, touched.written_first, self.sector_bytes)
        return begun, begun - first, self._units(name, touched.written, self.sector_bytes)

    def shared(self, before: Sets, after: Sets) -> Units:
        """The traffic that `after` saves: sectors already there, those it reads first, and those that both write."""
        found = {}
        for name in before.keys() & after.keys():
            held, next_ = before[name], after[name]
            begun = self._common(name, held.every, next_.every)
            read = begun - self._common(name, held.every, next_.written_first)
            found[name] = begun, read, self._common(name, held.written, next_.written)
        return found

    def _common(self, name: str, a: tuple[Box, ...], b: tuple[Box, ...]) -> Amount:
        if not a or not b:
            return 0
        one, other, both = (self._units(name, boxes, self.sector_bytes) for boxes in (a, b, a + b))
        return one + other - both


def _not_in(boxes: Collection[Box], others: Sequence[Box]) -> tuple[Box, ...]:
    """Those of `others` that none of `boxes` contains."""
    return tuple(other for other in others if other not in boxes and not any(_contains(box, other) for box in boxes))


def _contains(box: Box, other: Box) -> bool:
    return all(low <= a and b <= high for (low, high), (a, b) in zip(box, other, strict=True))


def _outside(boxes: Sequence[Box], box: Box) -> list[Box]:
    """The parts of a box that lie in none of `boxes`."""
    parts = [box]
    for other in boxes:
        parts = [left for part in parts for left in _minus(part, other)]
    return parts


def _minus(box: Box, other: Box) -> list[Box]:
    if not _overlap(box, other):
        return [box]
    parts, rest = list[Box](), list(box)
    for d, ((low, high), (begin, end)) in enumerate(zip(box, other, strict=True)):
        if low < begin:
            parts.append((*rest[:d], (low, begin - 1), *rest[d + 1 :]))
        if end < high:
            parts.append((*rest[:d], (end + 1, high), *rest[d + 1 :]))
        rest[d] = max(low, begin), min(high, end)
    return parts


def _without(box: Box, others: Sequence[Box], unit: int) -> Box | None:
    """A box, shorter in its rows where elements of others may lie in the same units of `unit` elements; None if nothing
    certain is left.
    """
    low, high = box[-1]
    for *leading, (start, end) in others:
        if not _overlap(box[:-1], tuple(leading)):
            continue
        if end < low:
            low = max(low, end + unit)
        elif start > high:
            high = min(high, start - unit)
        else:
            return None
    return (*box[:-1], (low, high)) if low <= high else None


def _meet(boxes: Sequence[Box], others: Sequence[Box]) -> bool:
    return any(_overlap(a, b) for a in boxes for b in others)


def _overlap(a: Box, b: Box) -> bool:
    return all(
        low <= other_high and other_low <= high for (low, high), (other_low, other_high) in zip(a, b, strict=True)
    )


def _dims(array: Array) -> tuple[int, ...]:
    dims = tuple(d.evaluate({}) for d in array.dims)
    return dims[::-1] if array.column_major else dims
