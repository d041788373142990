"""Kernels that sweep over a grid in a time loop, described as tiles over several sweeps need it.

`jacobi2d_time` is one: a loop over time around two nests, each of which computes one array from neighboring points of
another. In a tile that moves by `skew` places from sweep to sweep, every value that a point needs comes from the tile
itself or from tiles before it, in time and in each dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import Access, accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const
from roofdsl.loops.model import Array, Assign, Element, For, Kernel, Let

MOST_DIMENSIONS = 3


class Sweep(Record):
    """One nest of the time loop: its loops, one for each dimension, and the accesses of one point."""

    loops: tuple[For, ...]
    accesses: tuple[Access, ...]


class Sweeps(Record):
    """The sweeps of one time step. skew: the places by which a tile moves from one sweep to the next. reach: the least
    and the largest offset, along any dimension, from a point to what it touches.
    """

    time: For
    sweeps: tuple[Sweep, ...]
    skew: int
    reach: tuple[int, int]

    @property
    def dimensions(self) -> int:
        return len(self.sweeps[0].loops)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that are touched, each once."""
        return tuple({a.element.array.name: a.element.array for s in self.sweeps for a in s.accesses}.values())

    @property
    def written(self) -> frozenset[str]:
        """The names of the arrays that are written."""
        return frozenset(a.element.array.name for s in self.sweeps for a in s.accesses if a.is_write)

    def extent(self, dimension: int, values: Mapping[str, int]) -> tuple[int, int]:
        """The range of places along a dimension that the sweeps compute: the first one, and the one after the last."""
        own = [s.loops[dimension] for s in self.sweeps]
        return min(v.start.evaluate(values) for v in own), max(v.stop.evaluate(values) for v in own)


def sweeps_of(kernel: Kernel) -> Sweeps | None:
    """The sweeps of a kernel that consists of one time loop around them; None for any other kernel."""
    if kernel.directives or len(kernel.body) != 1 or not isinstance(kernel.body[0], For):
        return None
    time = kernel.body[0]
    found = [_sweep(node, time.var) if isinstance(node, For) else None for node in time.body]
    if not found or any(s is None for s in found) or time.step != Const(1):
        return None
    sweeps = tuple(s for s in found if s is not None)
    if len({len(s.loops) for s in sweeps}) != 1 or len(sweeps[0].loops) > MOST_DIMENSIONS:
        return None
    skew = _skew(sweeps)
    if skew is None:
        return None
    distances = [d for s in sweeps for a in s.accesses for d in _offsets(a.element, s.loops) or (0,)]
    return Sweeps(time, sweeps, skew, (min(distances), max(distances)))


def _sweep(node: For, time: str) -> Sweep | None:
    loops = [node]
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For):
        loops.append(inner)
    inside = {time, *(loop.var for loop in loops)}
    if any(loop.step != Const(1) or (loop.start.symbols() | loop.stop.symbols()) & inside for loop in loops):
        return None
    found: list[Access] = []
    for statement in loops[-1].body:
        if not isinstance(statement, Assign | Let):
            return None
        if isinstance(statement, Assign) and not isinstance(statement.target, Element):
            return None
        found += accesses(statement)
    if any(_offsets(a.element, tuple(loops)) is None for a in found):
        return None
    return Sweep(tuple(loops), tuple(found))


def _offsets(element: Element, loops: tuple[For, ...]) -> tuple[int, ...] | None:
    """The offset of an element from its point in each dimension; None for subscripts of another form."""
    if len(element.subscripts) != len(loops):
        return None
    found = []
    for subscript, loop in zip(element.subscripts, loops, strict=True):
        form = affine(subscript)
        if [(str(term), n) for term, n in form.terms] != [(loop.var, 1)]:
            return None
        found.append(form.constant)
    return tuple(found)


def _skew(sweeps: tuple[Sweep, ...]) -> int | None:
    """A skew with which no dependence points backwards; None if points of one sweep depend on each other."""
    largest = 0
    for k, writing in enumerate(sweeps):
        for write in (a for a in writing.accesses if a.is_write):
            for m, other in enumerate(sweeps):
                for apart in _apart(write, writing, other):
                    if k == m and apart:
                        return None  # a point reads its neighbors of the same sweep, as Gauss and Seidel do
                    largest = max(largest, apart)
    return largest


def _apart(write: Access, writing: Sweep, other: Sweep) -> Iterator[int]:
    """For each access of sweep `other` to the array of a write: its largest distance from it along any dimension."""
    here = _offsets(write.element, writing.loops)
    for access in other.accesses:
        there = _offsets(access.element, other.loops)
        if access.element.array.name == write.element.array.name and here is not None and there is not None:
            yield max((abs(a - b) for a, b in zip(here, there, strict=True)), default=0)
