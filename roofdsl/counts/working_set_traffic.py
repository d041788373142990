"""Traffic at given sizes from the working sets of loop iterations: what fits in the cache is moved once.

Every part of a kernel (a loop, an iteration of it, a statement) touches a set of elements. If the lines of that set fit
in the cache, the part moves each of its sectors once. If not, its iterations are taken one after another, and each
finds what as many iterations before it as fit have left. This is the layer condition of stencils and the blocking
condition of products.

An LRU cache evicts lines one by one, whereas here a set is kept or lost as a whole. The results are equal except near a
capacity at which a set just fits or just does not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from math import gcd, prod
from typing import NamedTuple

from roofdsl.counts.distinct_units import Amount, Box, distinct_units
from roofdsl.counts.filled_gaps import filled_gaps
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.lines_of_sets import ArrayLines
from roofdsl.counts.loop_intervals import MOST_BOXES, Env, LoopIntervals
from roofdsl.counts.thread_turns import has_empty, leaves_gaps
from roofdsl.loops.accesses import Access, accesses
from roofdsl.loops.model import Array, Assign, Count, Element, For, Kernel, Let, Node
from roofdsl.loops.numbers import with_numbers
from roofdsl.loops.sized import Sized
from roofdsl.store.memo import recall

HEAD = 4
"""First iterations of a loop that are counted one by one: they find less of what those before them have left."""


class Touched(NamedTuple):
    """Boxes of one array: all, those written, and those written by the first access to each of their elements."""

    every: tuple[Box, ...]
    written: tuple[Box, ...]
    written_first: tuple[Box, ...]


Sets = dict[str, Touched]


Units = dict[str, tuple[Amount, Amount, Amount]]
"""For each array, residencies of units: begun, begun by a read, and ended by a store."""


class Counted(NamedTuple):
    """The traffic of a part of a kernel. first, last: the sets at its two ends that fit; fits: whether the whole part
    does.
    """

    units: Units
    first: Sets
    last: Sets
    fits: bool = False


def lines_by_working_sets(
    at: Sized, cache_bytes: int, line_bytes: int, sector_bytes: int, *, cold: int = 0
) -> tuple[ArrayLines, ...]:
    """The sectors that a cache moves; iterations of the `cold` outermost loops find nothing of each other's.

    Raises NoAnswer for conditions, bounds that depend on loops whose variables are in subscripts, subscripts that are
    not affine or leave too many gaps, two subscripts that depend on one loop, stores to `temp` arrays, and kernels
    that do not begin with `cold` nested loops with nothing between them.
    """
    asked = tuple(at.values.items()), cache_bytes, line_bytes, sector_bytes, cold
    found = recall("lines_by_working_sets", at.kernel, asked, lambda: _lines_or_why_not(at, asked[1:]))
    if isinstance(found, str):
        raise NoAnswer(found)
    return found


def _lines_or_why_not(at: Sized, asked: tuple[int, int, int, int]) -> tuple[ArrayLines, ...] | str:
    """The lines, or why there is no answer, which is remembered like an answer."""
    cache_bytes, line_bytes, sector_bytes, cold = asked
    kernel = with_numbers(at.kernel, dict(at.kernel.constants) | dict(at.values))
    try:
        found = _WorkingSets(kernel, cache_bytes, line_bytes, sector_bytes).of(kernel.body, {}, cold)
        return tuple(_lines(kernel, found.units, sector_bytes))
    except NoAnswer as error:
        return str(error)


def _lines(kernel: Kernel, units: Units, sector_bytes: int) -> Iterator[ArrayLines]:
    for array in kernel.arrays:
        if array.is_scalar:
            continue
        begun, by_read, stored = (round(n) for n in units.get(array.name, (0, 0, 0)))
        if array.intent == "temp" and stored:
            raise NoAnswer(f"what is stored of {array.name} depends on what comes after its last use")
        yield ArrayLines(array.name, sector_bytes, begun, by_read, stored)


class _WorkingSets:
    def __init__(self, kernel: Kernel, cache_bytes: int, line_bytes: int, sector_bytes: int) -> None:
        self.cache_bytes, self.line_bytes, self.sector_bytes = cache_bytes, line_bytes, sector_bytes
        self.arrays = {a.name: a for a in kernel.arrays}
        self.dims = {a.name: _dims(a) for a in kernel.arrays if not a.is_scalar}
        self.smallest = min((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=1)
        self.intervals = LoopIntervals({s for e in _elements(kernel.body) for x in e.subscripts for s in x.symbols()})
        self.contiguous = _contiguous(kernel.body)
        self.filled = filled_gaps(kernel.body, self.intervals)
        self._touched: dict[Hashable, Sets] = {}
        self._boxes_of: dict[Hashable, tuple[Box, ...]] = {}
        self._counted: dict[Hashable, Amount] = {}
        self._in_turns: dict[int, bool] = {}

    # ---- traffic ----

    def of(self, nodes: Sequence[Node], env: Env, cold: int = 0) -> Counted:
        """The traffic of `nodes` in sequence, with the values `env` for the variables of the surrounding loops."""
        if cold:
            if len(nodes) != 1 or not isinstance(nodes[0], For):
                raise NoAnswer("the loops that start cold are not nested with nothing between them")
            return self._iterations(nodes[0], env, cold)
        sets = self.sets(nodes, env)
        if not self._exceeds(sets):
            return Counted({name: self._moved(name, t) for name, t in sets.items()}, sets, sets, fits=True)
        if len(nodes) == 1:
            only = nodes[0]
            if isinstance(only, For):
                return self._iterations(only, env)
            return Counted({name: self._moved(name, t) for name, t in sets.items()}, {}, {})
        # Each part is counted as if it found nothing. What the part before it has left is then subtracted: only of its
        # last sets that fit, since what came earlier is evicted.
        parts = [self.of((node,), env) for node in nodes if not isinstance(node, Count)]
        units = _sum((part.units, 1) for part in parts)
        shared = _sum((self._shared(a.last, b.first), 1) for a, b in pairwise(parts))
        return Counted(_sum([(units, 1), (shared, -1)]), parts[0].first, parts[-1].last)

    def _iterations(self, loop: For, env: Env, cold: int = 0) -> Counted:
        """The traffic of a loop: of the iterations at both ends, and of one for each alignment in the middle."""
        values = self.intervals.values(loop, env)
        count = len(values)
        if not count:
            return Counted({}, {}, {})
        cut = self._cut(loop, env, values)
        times = _representatives(cut, self._period(loop), 1 if cold else HEAD)
        times |= {cut + k: n for k, n in _representatives(count - cut, self._period(loop), 1 if cold else HEAD).items()}
        parts: dict[int, Counted] = {}

        def part(k: int) -> Counted:
            if k not in parts:
                at = values[k]
                parts[k] = self.of(loop.body, {**env, loop.var: (at, at, 1)}, max(0, cold - 1))
            return parts[k]

        # Iteration k stands for n iterations of the same alignment. They are counted as if they found nothing, and what
        # the iterations before k have left is subtracted as often.
        terms: list[tuple[Units, int]] = [(part(k).units, n) for k, n in times.items()]
        if not cold:
            for k, n in times.items():
                if k:
                    # An iteration that fits as a whole leaves room for earlier ones: what as many of them as fit have
                    # touched is found again (the layer condition). One that does not fit leaves only its own end.
                    left = self._left_by(loop, env, values[:k]) if part(k).fits else None
                    terms.append((self._shared(left or part(k - 1).last, part(k).first), -n))
        return Counted(_sum(terms), part(0).first, part(count - 1).last)

    def _cut(self, loop: For, env: Env, values: range) -> int:
        """The iterations after which a loop inside is empty in its last turn, so that the others do less; all if there
        is no such loop.
        """

        def is_less(k: int) -> bool:
            return has_empty(self.intervals, loop.body, {**env, loop.var: (values[k], values[k], 1)}, {loop.var})

        try:
            return bisect_right(range(len(values)), False, key=is_less)
        except NoAnswer:
            return len(values)

    def _left_by(self, loop: For, env: Env, before: range) -> Sets | None:
        """The set of as many of the iterations `before` as fit together, latest first; None if that is unknown."""

        def latest(n: int) -> Sets:
            values = before[len(before) - n :]
            return self.sets(loop.body, {**env, loop.var: (values[0], values[-1], before.step)})

        # More iterations never touch less, so the largest number that fits is found by bisection.
        try:
            fits = bisect_right(range(1, len(before) + 1), False, key=lambda n: self._exceeds(latest(n)))
            return latest(fits) if fits else None
        except NoAnswer:
            return None

    def _exceeds(self, sets: Sets) -> bool:
        return self.held_bytes(sets) > self.cache_bytes

    def _period(self, loop: For) -> int:
        """Iterations after which the elements of an iteration lie at the same place in their sectors again."""
        if loop.var not in self.contiguous:
            return 1
        unit = max(self.sector_bytes, 1)
        return unit // gcd(unit, self.intervals.bounds(loop).step * self.smallest)

    # ---- sets ----

    def sets(self, nodes: Sequence[Node], env: Env) -> Sets:
        """The elements that `nodes` touch."""
        found: Sets = {}
        for node in nodes:
            if not isinstance(node, Count):
                found = self._joined(found, self._of_node(node, env))
        return found

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
        """Whether turns of the loop leave gaps, which its text decides: asked anew for every set, it takes half of all
        time.
        """
        if id(loop) not in self._in_turns:
            self._in_turns[id(loop)] = leaves_gaps(self.intervals, loop)
        return self._in_turns[id(loop)]

    def _of_loop(self, loop: For, env: Env) -> Sets:
        values = self.intervals.hull(loop, env)
        return {} if values is None else self.sets(loop.body, {**env, loop.var: values})

    def _of_turns(self, loop: For, env: Env) -> Sets:
        """The elements that all turns touch, or as many of them as exceed the cache, since more do so as well."""
        found: Sets = {}
        for done, value in enumerate(self.intervals.values(loop, env), 1):
            found = self._joined(found, self.sets(loop.body, {**env, loop.var: (value, value, 1)}))
            if done & (done - 1) == 0 and self._exceeds(found):  # not each time, which takes time
                break
        return found

    def _of_statement(self, statement: Assign | Let, env: Env) -> Sets:
        found: Sets = {}
        for access in self.intervals.accesses(statement):
            name = access.element.array.name
            boxes = self._boxes(access, env)
            own = boxes if access.is_write else ()
            found = self._joined(found, {name: Touched(boxes, own, own)})
        return found

    def _joined(self, before: Sets, after: Sets) -> Sets:
        """The sets of two parts in sequence."""
        found = dict(before)
        for name, touched in after.items():
            if name not in found:
                found[name] = touched
                continue
            old = found[name]
            found[name] = Touched(
                tuple(dict.fromkeys(old.every + touched.every)),
                tuple(dict.fromkeys(old.written + touched.written)),
                tuple(dict.fromkeys(old.written_first + self._still_written_first(name, old, touched))),
            )
        return found

    def _still_written_first(self, name: str, before: Touched, after: Touched) -> tuple[Box, ...]:
        """What `after` writes first, without the boxes of which `before` may have read a sector first."""
        if not after.written_first:
            return ()
        read = tuple(box for box in before.every if box not in before.written_first)
        return tuple(
            box
            for box in after.written_first
            if not any(_overlap(box, other) for other in read) and not self._common(name, (box,), read)
        )

    def _boxes(self, access: Access, env: Env) -> tuple[Box, ...]:
        """The boxes that an access stands for, found once for the values of the variables that move it."""
        key = self.intervals.key_of_element(access.element, env), access.is_write
        found = self._boxes_of.get(key)
        if found is None:
            found = self._boxes_of[key] = self._boxes_at(access, env)
        return found

    def _boxes_at(self, access: Access, env: Env) -> tuple[Box, ...]:
        array = access.element.array
        subscripts, gaps = list(access.element.subscripts), [1] * len(access.element.subscripts)
        gaps = list(self.filled.get((id(access.element), access.is_write), gaps))
        if array.column_major:
            subscripts, gaps = subscripts[::-1], gaps[::-1]
        # in a row, elements in every sector count like all elements
        gaps[-1] = max(gaps[-1], self.sector_bytes // array.type.bytes)
        used: set[str] = set()
        intervals = []
        for subscript, gap in zip(subscripts, gaps, strict=True):
            names = {s for s in subscript.symbols() if env[s][0] != env[s][1]}
            if names & used:
                raise NoAnswer(f"two subscripts of {array.name} depend on one loop")
            used |= names
            intervals.append(self.intervals.form(subscript).intervals(env, gap))
        if prod(map(len, intervals)) > MOST_BOXES:
            raise NoAnswer(f"the elements of {array.name} that a loop touches are apart from each other")
        return tuple(product(*intervals))

    # ---- numbers ----

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

    def _moved(self, name: str, touched: Touched) -> tuple[Amount, Amount, Amount]:
        begun = self._units(name, touched.every, self.sector_bytes)
        first = self._units(name, touched.written_first, self.sector_bytes)
        return begun, begun - first, self._units(name, touched.written, self.sector_bytes)

    def _shared(self, before: Sets, after: Sets) -> Units:
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


def _overlap(a: Box, b: Box) -> bool:
    return all(
        low <= other_high and other_low <= high for (low, high), (other_low, other_high) in zip(a, b, strict=True)
    )


def _representatives(count: int, period: int, head: int) -> dict[int, int]:
    """The iterations to examine, and how many of `count` each stands for: the `head` first ones and the last for
    themselves, others by residue.
    """
    if count <= period + head + 2:
        return dict.fromkeys(range(count), 1)
    times = dict.fromkeys((*range(head), count - 1), 1)
    middle = max(head, count // 2 - period)
    for k in range(middle, middle + period):
        first = head + (k - head) % period
        times[k] = len(range(first, count - 1, period))
    return times


def _sum(terms: Iterable[tuple[Units, int]]) -> Units:
    total: Units = {}
    for units, weight in terms:
        for name, (begun, read, stored) in units.items():
            a, b, c = total.get(name, (0, 0, 0))
            total[name] = a + weight * begun, b + weight * read, c + weight * stored
    return total


def _dims(array: Array) -> tuple[int, ...]:
    dims = tuple(d.evaluate({}) for d in array.dims)
    return dims[::-1] if array.column_major else dims


def _elements(nodes: Sequence[Node]) -> Iterator[Element]:
    for node in nodes:
        if isinstance(node, For):
            yield from _elements(node.body)
        elif isinstance(node, Assign | Let):
            yield from (a.element for a in accesses(node))


def _contiguous(nodes: Sequence[Node]) -> set[str]:
    """The variables that move a subscript along memory, directly or as the start of a loop whose variable does."""
    found = {s for e in _elements(nodes) for s in e.subscripts[0 if e.array.column_major else -1].symbols()}

    def starts(nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, For):
                starts(node.body)  # inner loops first, so that loops that begin at their variables are known
                if node.var in found:
                    found.update(node.start.symbols())

    starts(nodes)
    return found
