"""Set conflicts: where a set-associative cache differs from a fully associative one.

A loop reuses lines that its previous iteration touched. Call the lines of one whole iteration a window. A fully
associative LRU cache still holds all of them if the window fits in the cache. A set-associative cache still holds a
line if the window has no more lines in that line's set than the set has ways.

For every loop, the distinct lines of a window in the middle of its range are enumerated at the given sizes and counted
by set. This shows for each reused line whether the two caches differ, exactly for this window. It is assumed that all
windows of a loop are like the middle one, and that a line's reuse lies one whole window back. The findings are
therefore used only for warnings; `simulate --ways` computes the traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from roofdsl.counts.integers_at_many_points import holds, value_of
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import accesses
from roofdsl.loops.integers import Condition, Const, IntExpr, Not, add, mul
from roofdsl.loops.model import Array, Assign, Element, For, If, Kernel, Let, Node
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.sized import Sized, sized

MOST_POINTS = 1_000_000
"""The maximum number of points of a reference that are enumerated; larger windows are left out, since they are assumed
to fit in no cache.
"""

SAMPLES = 8
"""Small windows are averaged over this many in a row, since some cross into another line; large ones over two."""

FLAGGED = 0.001
"""A warning is given if more than this share of the accesses hits in one kind of cache and misses in the other."""

FULL = Fraction(7, 8)
"""The share of its lines from which on a cache is nearly full."""

SMALL = 2048
"""The maximum number of lines of a small window."""


class Geometry(Record):
    """A cache of `size_bytes` with lines of `line_bytes` and `ways` lines per set."""

    size_bytes: int
    line_bytes: int
    ways: int

    @property
    def lines(self) -> int:
        return self.size_bytes // self.line_bytes

    @property
    def count(self) -> int:
        return self.lines // self.ways


class Window(Record):
    """The lines that a loop reuses, or that loops in sequence reuse from each other.

    loops: their variables; lines: those of one iteration; reused: those that the next iteration uses again; lost:
    reused lines that only a fully associative cache keeps; kept: reused lines that only a cache with sets keeps; times:
    how often the loop returns to them; array: the array with the most lost lines, which are in `sets_used` sets,
    `stride_bytes` apart. crowded_lines: how many lines are in sets that get more lines than they have ways;
    crowded_sets: the number of these sets.
    """

    loops: tuple[str, ...]
    lines: int
    reused: int
    lost: float
    kept: float
    times: int
    array: str = ""
    stride_bytes: int = 0
    sets_used: int = 0
    crowded_lines: int = 0
    crowded_sets: int = 0

    @property
    def subject(self) -> str:
        """`loop i reuses`, `the loops over i, j and k together reuse`."""
        if len(self.loops) == 1:
            return f"loop {self.loops[0]} reuses"
        *others, last = dict.fromkeys(self.loops)
        return f"the loops over {', '.join(others)}{' and ' if others else ''}{last} together reuse"

    def nearly_fills(self, sets: Geometry) -> bool:
        """Whether the lines leave hardly any room, so that some set gets one or two too many wherever they lie."""
        many = self.lines * FULL.denominator >= sets.lines * FULL.numerator
        return many and self.crowded_lines <= self.crowded_sets * (sets.ways + 2)

    @property
    def differs(self) -> float:
        """The number of accesses that hit in one of the two caches and miss in the other."""
        return (self.lost + self.kept) * self.times


def conflicts(
    kernel: Kernel, params: Mapping[str, int], sets: Geometry, begins: Mapping[str, int] | None = None
) -> tuple[Window, ...]:
    """The windows of all loops of `kernel` in which the sets make a difference, the largest difference first.

    begins: the address of each array; without it, arrays are placed as in `simulate`. Raises CommandError for a missing
    parameter or a violated assumption.
    """
    at = sized(kernel, params)
    found = [w for w in _Windows(at, sets, begins).of(at.kernel.body, dict(at.values), 1) if w.differs]
    return tuple(sorted(found, key=lambda w: -w.differs))


@lru_cache(maxsize=1)
def _shared_lines(
    kernel: Kernel, values: tuple[tuple[str, int], ...], line_bytes: int, placed: tuple[tuple[str, int], ...]
) -> dict[Any, Any]:
    """A place for the enumerated lines of a kernel, for lines of this size and arrays at these places: callers fill it,
    since all caches of a machine need the same windows.
    """
    return {}


class _Windows:
    def __init__(self, at: Sized, sets: Geometry, begins: Mapping[str, int] | None) -> None:
        self.sets = sets
        placed = () if begins is None else tuple(begins.items())
        self.known = _shared_lines(at.kernel, tuple(at.values.items()), sets.line_bytes, placed)
        self.first: dict[str, int] = {}
        self.strides: dict[str, tuple[int, ...]] = {}
        end = 0
        for array in at.kernel.arrays:
            if array.is_scalar:
                continue
            self.strides[array.name] = array.strides(at.values)
            self.first[array.name] = end if begins is None else begins[array.name] // sets.line_bytes
            end += -(-array.element_count(at.values) * array.type.bytes // sets.line_bytes)
        self.ends = sorted((line, name) for name, line in self.first.items())

    def of(self, body: Sequence[Node], env: dict[str, int], times: int) -> Iterator[Window]:
        """The windows of `body`, which runs `times` times with the outer loops' variables as in `env`."""
        for node in body:
            if isinstance(node, If):
                yield from self.of((*node.then, *node.orelse), env, times)
            if not isinstance(node, For):
                continue
            start, stop, step = (e.evaluate(env) for e in (node.start, node.stop, node.step))
            trips = max(0, -(-(stop - start) // step))
            if not trips:
                continue
            # In the middle of a triangular nest, the inner loops have their average length.
            middle = start + step * ((trips - 1) // 2)
            if trips > 1:
                yield from self._loop(node, env, (middle, step, start + step * (trips - 1)), times * (trips - 1))
            yield from self.of(node.body, {**env, node.var: middle}, times * trips)
        several = [node for node in body if isinstance(node, For)]
        if len(several) > 1:
            yield from self._siblings(several, env, times)

    def _loop(self, node: For, env: dict[str, int], at: tuple[int, int, int], times: int) -> Iterator[Window]:
        """The average window from the middle iteration on; `at`: the middle iteration, the step, the last iteration."""
        import numpy as np

        middle, step, last = at
        found: list[Window] = []
        before = self.lines(node.body, {**env, node.var: middle})
        for k in range(1, SAMPLES + 1):
            if before is None or middle + k * step > last or (k > 2 and len(before) > SMALL):
                break
            after = self.lines(node.body, {**env, node.var: middle + k * step})
            if after is None:
                break
            found.append(self._window((node.var,), before, np.intersect1d(before, after, assume_unique=True)))
            before = after
        if found:
            worst = max(found, key=lambda w: w.lost)
            lost, kept = (sum(getattr(w, n) for w in found) / len(found) for n in ("lost", "kept"))
            yield replace(worst, lost=lost, kept=kept, times=times)

    def _siblings(self, nodes: Sequence[For], env: dict[str, int], times: int) -> Iterator[Window]:
        """The lines that loops in sequence reuse from each other: the window is everything that they touch together."""
        import numpy as np

        parts = [self.lines((node,), env) for node in nodes]
        if any(p is None for p in parts):
            return
        every, counts = np.unique(np.concatenate([p for p in parts if p is not None]), return_counts=True)
        yield replace(self._window(tuple(n.var for n in nodes), every, every[counts > 1]), times=times)

    def _window(self, loops: tuple[str, ...], lines: Any, reused: Any) -> Window:
        """The lines of one iteration, and those that the next one uses again, counted by set."""
        import numpy as np

        count = self.sets.count
        held = np.bincount(lines % count, minlength=count)
        crowded = held[reused % count] > self.sets.ways
        if len(lines) > self.sets.lines:
            return Window(loops, len(lines), len(reused), 0, int((~crowded).sum()), 1)
        lost = reused[crowded]
        if not len(lost):
            return Window(loops, len(lines), len(reused), 0, 0, 1)
        firsts = np.array([line for line, _ in self.ends])
        owner = np.searchsorted(firsts, lost, side="right") - 1
        most = int(np.bincount(owner).argmax())
        own = np.sort(lost[owner == most])
        gaps, often = np.unique(np.diff(own), return_counts=True) if len(own) > 1 else (np.zeros(1), np.ones(1))
        stride = int(gaps[often.argmax()]) * self.sets.line_bytes
        used = len(np.unique(own % count))
        over = held[held > self.sets.ways]
        return Window(
            loops,
            len(lines),
            len(reused),
            len(lost),
            0,
            1,
            self.ends[most][1],
            stride,
            used,
            int(over.sum()),
            len(over),
        )

    # ---- enumerating lines ----

    def lines(self, body: Sequence[Node], env: Mapping[str, int]) -> Any:
        """The distinct lines that `body` touches, ascending; None if a reference has too many points, or a place beyond
        64 bits.
        """
        key = tuple(body), tuple(env.items())
        if key not in self.known:
            self.known[key] = self._lines(body, env)
        return self.known[key]

    def _lines(self, body: Sequence[Node], env: Mapping[str, int]) -> Any:
        import numpy as np

        parts = []
        for element, loops, guards in _references(body, (), ()):
            found = self._reference(element, loops, guards, env)
            if found is None:
                return None
            parts.append(np.unique(found))
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)

    def _reference(
        self, element: Element, loops: Sequence[For], guards: Sequence[Condition], env: Mapping[str, int]
    ) -> Any:
        import numpy as np

        strides = self.strides[element.array.name]
        flat = add(*(mul(Const(s), e) for s, e in zip(strides, element.subscripts, strict=True)))
        wanted = _closure(flat, loops)
        points: dict[str, Any] = {}
        count = 1
        for loop in loops:
            known = {**env, **points}
            if not (loop.start.symbols() | loop.stop.symbols()) <= known.keys():
                continue
            start, stop, step = (value_of(e, known) for e in (loop.start, loop.stop, loop.step))
            trips = np.broadcast_to(np.maximum(-(-(stop - start) // step), 0), count).astype(np.int64)
            if loop.var not in wanted:  # it does not affect the lines touched, except that it may not run
                trips = np.minimum(trips, 1)
            total = int(trips.sum())
            if total > MOST_POINTS:
                return None
            source = np.repeat(np.arange(count), trips)
            points = {n: v[source] for n, v in points.items()}
            if loop.var in wanted:
                turn = np.arange(total) - np.repeat(np.cumsum(trips) - trips, trips)
                points[loop.var] = np.broadcast_to(start, count)[source] + turn * step
            count = total
        known = {**env, **points}
        for guard in guards:
            if guard.symbols() <= known.keys():
                keep = np.broadcast_to(holds(guard, known), count)
                points = {n: v[keep] for n, v in points.items()}
                count, known = int(keep.sum()), {**env, **points}
        place = np.broadcast_to(value_of(flat, known), count)
        if place.dtype == object:  # beyond 64 bits
            return None
        lines = self.first[element.array.name] + place * element.array.type.bytes // self.sets.line_bytes
        return lines[np.concatenate(([True], lines[1:] != lines[:-1]))] if len(lines) else lines


def _references(
    body: Sequence[Node], loops: tuple[For, ...], guards: tuple[Condition, ...]
) -> Iterator[tuple[Element, tuple[For, ...], tuple[Condition, ...]]]:
    for node in body:
        if isinstance(node, For):
            yield from _references(node.body, (*loops, node), guards)
        elif isinstance(node, If):
            yield from _references(node.then, loops, (*guards, node.condition))
            yield from _references(node.orelse, loops, (*guards, Not(node.condition)))
        elif isinstance(node, (Assign, Let)):
            for access in accesses(node):
                yield access.element, loops, guards


def _closure(expression: IntExpr, loops: Sequence[For]) -> frozenset[str]:
    """The variables of `loops` on which the expression depends, also through their bounds."""
    wanted = set(expression.symbols())
    for loop in reversed(loops):
        if loop.var in wanted:
            wanted |= loop.start.symbols() | loop.stop.symbols()
    return frozenset(wanted)


# ---- in words ----


def row_bytes(array: Array, values: Mapping[str, int]) -> int:
    """The bytes from one row of the array to the next; for a vector, all its bytes."""
    dims = [d.evaluate(values) for d in (array.dims if array.column_major else reversed(array.dims))]
    return dims[0] * array.type.bytes


def conflict_words(kernel: Kernel, params: Mapping[str, int], sets: Geometry) -> tuple[str, ...]:
    """Warnings about the sets of a cache, in words, if they matter: for the worst loop in each direction."""
    from roofdsl.counts.traffic_at import access_count

    windows = conflicts(kernel, params, sets)
    if not is_flagged(windows, access_count(sized(kernel, params))):
        return ()
    lost = max((w for w in windows if w.lost), key=lambda w: w.lost * w.times, default=None)
    kept = max((w for w in windows if w.kept), key=lambda w: w.kept * w.times, default=None)
    found = []
    if lost is not None and lost.lost * lost.times >= max((kept.kept * kept.times if kept else 0), 1) / 10:
        found.append(_lost_words(kernel, params, lost, sets))
    if kept is not None and kept.kept * kept.times >= max((lost.lost * lost.times if lost else 0), 1) / 10:
        found.append(
            f"{kept.subject} {kept.lines:,} lines, more than the {sets.lines:,} that fit; the sets keep some "
            f"of them and the model keeps none, so fewer bytes move than predicted"
        )
    return tuple(found)


def _lost_words(kernel: Kernel, params: Mapping[str, int], window: Window, sets: Geometry) -> str:
    gets = "gets" if window.sets_used == 1 else "get"
    if window.nearly_fills(sets):
        return (
            f"{window.subject} {window.lines:,} lines, which nearly fill the {sets.lines:,} of the cache, but "
            f"{window.sets_used} of {sets.count} sets {gets} more than {sets.ways} of them, so more bytes move than "
            f"predicted"
        )
    array = next(a for a in kernel.arrays if a.name == window.array)
    apart = f"{window.stride_bytes:,} B apart" if window.stride_bytes else "in the same sets"
    what = (
        f"{window.subject} {window.lines:,} lines, which would fit, but {window.sets_used} of {sets.count} "
        f"sets {gets} more than {sets.ways} of them, because lines of {window.array} are {apart}, so more bytes move "
        f"than predicted"
    )
    values = numbers(kernel, params)
    row = row_bytes(array, values)
    if len(array.dims) > 1 and window.stride_bytes == row and row % sets.line_bytes == 0:
        one = sets.line_bytes // array.type.bytes
        return f"{what}; rows of {array.name} that are {one} elements longer use all sets"
    return what


def is_flagged(windows: Sequence[Window], accesses: int) -> bool:
    """Whether the sets change more than a thousandth of the accesses, so that a prediction needs a warning."""
    return sum(w.differs for w in windows) > FLAGGED * accesses
