"""Traffic at given sizes from the working sets of loop iterations: what fits in the cache is moved once.

Every part of a kernel (a loop, an iteration of it, a statement) touches a set of elements. If the lines of that set fit
in the cache, the part moves each of its sectors once. If not, its iterations are taken one after another, and each
finds in the cache what the preceding iterations left there, as many of them as fit. This is the layer condition of
stencils and the blocking condition of products.

Loops whose bounds move with another one, as in triangles and bands, touch no boxes. They are taken in PARTS, each of
which counts as a box with the bounds in its middle, and so with nearly as many elements.

An LRU cache evicts lines one by one, whereas here a set is kept or lost as a whole. The results are equal except near a
capacity at which a set just fits or just does not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.lines_of_sets import ArrayLines
from roofdsl.counts.loop_intervals import Env, Values
from roofdsl.counts.thread_turns import has_empty
from roofdsl.counts.touched_sets import EARLY, Sets, TouchedSets, Units
from roofdsl.loops.accesses import elements_of
from roofdsl.loops.model import Count, For, Kernel, Node
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.sized import Sized
from roofdsl.loops.transform import loops_in
from roofdsl.store.memo import recall

HALVINGS = 2
"""How often a loop is halved in which later iterations do more, or less, than earlier ones."""

HEAD = 4
"""First iterations of a loop that are counted one by one: they find less of what those before them have left."""


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

    Raises NoAnswer for conditions, subscripts that are not affine or leave too many gaps, two subscripts that depend on
    one loop, stores to `temp` arrays, and kernels that do not begin with `cold` nested loops with nothing between them.
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
        found = _Traffic(kernel, cache_bytes, line_bytes, sector_bytes).of(kernel.body, {}, cold)
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


class _Traffic(TouchedSets):
    def __init__(self, kernel: Kernel, cache_bytes: int, line_bytes: int, sector_bytes: int) -> None:
        super().__init__(kernel, cache_bytes, line_bytes, sector_bytes)
        self.smallest = min((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=1)
        self.contiguous = _contiguous(kernel.body)
        self.has_triangles = any(map(self.intervals.decides, loops_in(kernel.body)))
        self._fitted: dict[int, int] = {}  # of a loop, how many of its iterations fit, where this was last asked

    def of(self, nodes: Sequence[Node], env: Env, cold: int = 0) -> Counted:
        """The traffic of `nodes` in sequence, with the values `env` for the variables of the surrounding loops."""
        if cold:
            if len(nodes) != 1 or not isinstance(nodes[0], For):
                raise NoAnswer("the loops that start cold are not nested with nothing between them")
            return self._iterations(nodes[0], env, cold)
        sets = self.sets(nodes, env)
        if not self.exceeds(sets):
            return Counted({name: self.moved(name, t) for name, t in sets.items()}, sets, sets, fits=True)
        if len(nodes) == 1:
            only = nodes[0]
            if isinstance(only, For):
                return self._iterations(only, env)
            return Counted({name: self.moved(name, t) for name, t in sets.items()}, {}, {})
        # Each part is counted as if it found nothing. What the part before it has left is then subtracted: only of its
        # last sets that fit, since what came earlier is evicted.
        parts = [self.of((node,), env) for node in nodes if not isinstance(node, Count)]
        units = _sum((part.units, 1) for part in parts)
        shared = _sum((self.shared(a.last, b.first), 1) for a, b in pairwise(parts))
        return Counted(_sum([(units, 1), (shared, -1)]), parts[0].first, parts[-1].last)

    def _iterations(self, loop: For, env: Env, cold: int = 0) -> Counted:
        """The traffic of a loop: of the iterations at both ends, and of one for each alignment in the middle."""
        values = self.intervals.values(loop, env)
        count = len(values)
        if not count:
            return Counted({}, {}, {})
        cut = self._cut(loop, env, values)
        times = {
            k: n
            for part in (range(cut), range(cut, count))
            for k, n in self._stand_in(loop, env, values, part, 1 if cold else HEAD).items()
        }
        parts: dict[int, Counted] = {}

        def part(k: int) -> Counted:
            if k not in parts:
                at = values[k]
                parts[k] = self.of(loop.body, {**env, loop.var: Values(at, at)}, max(0, cold - 1))
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
                    terms.append((self.shared(left or part(k - 1).last, part(k).first), -n))
        return Counted(_sum(terms), part(0).first, part(count - 1).last)

    def _stand_in(self, loop: For, env: Env, values: range, numbers: range, head: int) -> dict[int, int]:
        """Which of the iterations with these numbers to examine, and how many each stands for."""
        found: dict[int, int] = {}
        for part in self._alike(loop, env, values, numbers, HALVINGS if self.has_triangles else 0):
            times = _representatives(len(part), self._period(loop), head if part.start == numbers.start else 0)
            found |= {part[k]: n for k, n in times.items()}
        return found

    def _alike(self, loop: For, env: Env, values: range, numbers: range, halvings: int) -> list[range]:
        """The iterations with these numbers in parts, which are halved while loops inside have more iterations, or
        fewer, later in the part.
        """
        ends = sorted({0, len(numbers) // 2, len(numbers) - 1})
        if len(ends) < 3 or not halvings:
            return [numbers]
        at = (values[numbers[k]] for k in ends)
        first, *others = (self._lengths(loop.body, {**env, loop.var: Values(value, value)}) for value in at)
        if all(lengths == first for lengths in others):
            return [numbers]
        halves = numbers[: ends[1]], numbers[ends[1] :]
        return [part for half in halves for part in self._alike(loop, env, values, half, halvings - 1)]

    def _lengths(self, nodes: Sequence[Node], env: Env) -> list[int]:
        """The iterations of the loops inside."""
        found: list[int] = []
        for loop in nodes:
            inside = self.intervals.hull(loop, env) if isinstance(loop, For) else None
            if isinstance(loop, For) and inside is not None:
                found += [(inside.last - inside.first) // inside.step]
                found += self._lengths(loop.body, {**env, loop.var: inside})
        return found

    def _cut(self, loop: For, env: Env, values: range) -> int:
        """The iterations after which a loop inside is empty in its last turn, so that the others do less; all if there
        is no such loop.
        """

        def is_less(k: int) -> bool:
            return has_empty(self.intervals, loop.body, {**env, loop.var: Values(values[k], values[k])}, {loop.var})

        try:
            return bisect_right(range(len(values)), False, key=is_less)
        except NoAnswer:
            return len(values)

    def _left_by(self, loop: For, env: Env, before: range) -> Sets | None:
        """The set of as many of the iterations `before` as fit together, latest first; None if that is unknown."""

        def latest(n: int) -> Sets:
            values = before[len(before) - n :]
            return self.over(loop, env, Values(values[0], values[-1], before.step), EARLY)

        try:
            fits = _most(len(before), lambda n: not self.exceeds(latest(n)), self._fitted.get(id(loop), 0))
            if fits < len(before):
                self._fitted[id(loop)] = fits
            return latest(fits) if fits else None
        except NoAnswer:
            return None

    def _period(self, loop: For) -> int:
        """Iterations after which the elements of an iteration lie at the same place in their sectors again."""
        if loop.var not in self.contiguous:
            return 1
        unit = max(self.sector_bytes, 1)
        return unit // gcd(unit, self.intervals.bounds(loop).step * self.smallest)


def _most(count: int, fits: Callable[[int], bool], guess: int) -> int:
    """The largest number up to `count` that fits, given that all smaller ones do, too; 0 if none does.

    A number next to the guess is found at once, any other by bisection.
    """
    low, high = 0, count  # low fits, and what is greater than high does not
    guess = min(guess, count)
    if guess:
        if fits(guess):
            low = guess
            if guess < count and not fits(guess + 1):
                high = guess
        else:
            high = guess - 1
    return low + bisect_right(range(low + 1, high + 1), False, key=lambda n: not fits(n))


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


def _contiguous(nodes: Sequence[Node]) -> set[str]:
    """The variables that move a subscript along memory, directly or as the start of a loop whose variable does."""
    found = {s for e in elements_of(nodes) for s in e.subscripts[0 if e.array.column_major else -1].symbols()}

    def starts(nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, For):
                starts(node.body)  # inner loops first, so that loops that begin at their variables are known
                if node.var in found:
                    found.update(node.start.symbols())

    starts(nodes)
    return found
