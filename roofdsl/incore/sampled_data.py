"""The data of index arrays for a walk through compiled code: all of them, or pieces of a long launch.

A walk follows every iteration of a loop that reads index arrays, since no two iterations need be alike. A long launch
is replaced by a shorter one, which consists of pieces of the outermost loop: for example, some rows of a matrix with
their own lengths and columns. The time of that loop is then scaled up to the whole launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roofdsl.incore.result import InCore, NoInCore, Step
from roofdsl.incore.state import Numbers
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import accesses, bound_accesses, indices
from roofdsl.loops.affine import affine
from roofdsl.loops.indirect import index_arrays, require_data
from roofdsl.loops.integers import Const, IntExpr, Sym, add
from roofdsl.loops.model import Assign, Element, For, If, Kernel, Let, Node, Read
from roofdsl.loops.transform import loops_in
from roofdsl.matrices.points import at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 12_000
"""The innermost iterations of all pieces together: about 100,000 instructions, walked in half a second."""

PIECES = 6


class SampledData(Record):
    """A launch for a walk. values: its sizes. numbers: the values of each index array, in the order of the memory.

    iterations: those of the loop over the data in the whole launch. scale: the work of that loop in the whole launch,
    divided by its work in the part that is walked. whole: whether every loop is scaled, not only that one.
    """

    values: Mapping[str, int]
    numbers: Mapping[str, Any]
    iterations: int = 0
    scale: float = 1.0
    whole: bool = False
    assumptions: tuple[str, ...] = ()


def sampled_data(kernel: Kernel, values: Mapping[str, int]) -> SampledData:
    """The data that a walk follows; nothing for an affine kernel. Raises CommandError for index arrays without values,
    and NoInCore for a launch that is too long to walk and cannot be cut into pieces.
    """
    names = index_arrays(kernel)
    if not names:
        return SampledData(values, {})
    require_data(kernel)
    assert kernel.data is not None
    given = {n: kernel.data.values[n] for n in names}
    led = [n for n in kernel.body if _reads(n)]
    loop = led[0] if len(led) == 1 and isinstance(led[0], For) else None
    cut = None if loop is None else _Cut.of(kernel, loop, values, given)
    if cut is None:
        size = sum(v.size for v in given.values())
        if size > MOST:
            raise NoInCore("its loops over the data cannot be cut into pieces, and are too long to walk through")
        return SampledData(values, {n: _stored(kernel, n, v) for n, v in given.items()})
    return cut.sampled()


def numbers_at(data: SampledData, kernel: Kernel, at: Mapping[str, int]) -> list[Numbers]:
    """The index arrays in memory, at these addresses."""
    types = {a.name: a.type.bytes for a in kernel.arrays}
    return [Numbers(at[n], types[n], v) for n, v in data.numbers.items()]


def scaled(found: InCore, data: SampledData) -> InCore:
    """The time of the whole launch, from that of its pieces, if all of its loops were cut."""
    if not data.whole:
        return replace(found, assumptions=found.assumptions + data.assumptions)
    steps = tuple(Step(s.cause, s.remedy, s.overlapping_s * data.scale, s.loads_s * data.scale) for s in found.steps)
    return replace(
        found,
        steps=steps,
        gathered=found.gathered * data.scale,
        instructions=found.instructions * data.scale,
        assumptions=found.assumptions + data.assumptions,
    )


@dataclass(frozen=True)
class _Cut:
    """A loop `for i in range(n)` cut into pieces.

    given: the values of all index arrays. by_row: the loop goes through dimension `by_row[name]` of array `name`.
    offsets: the array whose neighboring elements bound the loop inside. by_entry: the same as by_row for that inner
    loop.
    """

    kernel: Kernel
    loop: For
    values: Mapping[str, int]
    given: Mapping[str, NDArray[np.int64]]
    by_row: Mapping[str, int]
    by_entry: Mapping[str, int]
    offsets: str | None

    @property
    def rows(self) -> int:
        return self.loop.stop.evaluate(self.values)

    def dims(self, name: str) -> tuple[IntExpr, ...]:
        return next(a.dims for a in self.kernel.arrays if a.name == name)

    @staticmethod
    def of(kernel: Kernel, loop: For, values: Mapping[str, int], given: Mapping[str, NDArray[np.int64]]) -> _Cut | None:
        """The loop with the arrays that it goes through; None if its pieces would not be launches of the same code."""
        if loop.start != Const(0) or loop.step != Const(1) or _has_reads(loop.stop):
            return None
        inner = {n.var: n for n in loops_in(loop.body)}
        touched: dict[str, list[Element]] = {}
        for element in _elements(loop):
            touched.setdefault(element.array.name, []).append(element)
        by_row = {n: d for n, found in touched.items() if (d := _along(found, loop.var)) is not None}
        offsets, by_entry = None, dict[str, int]()
        for var, node in inner.items():
            array = _neighbors(node, loop.var)
            if array is None or _along(touched[array], loop.var, ends=True) is None:
                continue
            if offsets not in (None, array):
                return None
            offsets = array
            by_entry |= {n: d for n, found in touched.items() if (d := _along(found, var)) is not None}
        return _Cut(kernel, loop, values, given, by_row, by_entry, offsets)

    def sampled(self) -> SampledData:
        """Pieces from all over the loop, or the whole launch if it is short. Raises NoInCore."""
        import numpy as np

        lengths = self._lengths()
        inside = max([_extent(n, self.values) for n in self.loop.body if isinstance(n, For)], default=1)
        each = 1 + lengths * inside
        if each.sum() <= 2 * MOST:
            return SampledData(self.values, {n: _stored(self.kernel, n, v) for n, v in self.given.items()}, self.rows)
        rows = np.concatenate([np.arange(a, b) for a, b in _pieces(each)])
        most = max(1, MOST // PIECES // inside) if self.offsets is not None else int(lengths.max())
        kept = np.minimum(lengths[rows], most)  # of a very long row, its beginning
        numbers = self._numbers(rows, kept)
        sizes = self._sizes(numbers, len(rows))
        changed = {n for n, v in sizes.items() if v != self.values[n]}
        others = [n for n in self.kernel.body if isinstance(n, For) and n is not self.loop]
        alike = [bool((n.start.symbols() | n.stop.symbols()) & changed) for n in others]
        if any(alike) and not all(alike):
            raise NoInCore("some of its loops are as long as the data, and others are not")
        note = f"{len(rows):,} of {self.rows:,} iterations of the loop over {self.loop.var} stand for the others"
        stored = {n: _stored(self.kernel, n, v) for n, v in numbers.items()}
        scale = float(each.sum() / (1 + kept * inside).sum())
        return SampledData(sizes, stored, self.rows, scale, any(alike), (note,))

    def _lengths(self) -> NDArray[np.int64]:
        """The iterations of the loop inside for each iteration of this one; 1 if data do not bound it."""
        import numpy as np

        inner = [n for n in loops_in(self.loop.body) if bound_accesses(n)]
        if len(inner) != 1 or (inner[0].start.symbols() | inner[0].stop.symbols()) - {self.loop.var, *self.values}:
            return np.ones(self.rows, dtype=np.int64)
        values = {**self.values, self.loop.var: np.arange(self.rows)}
        start, stop = (at(e, values, self.kernel) for e in (inner[0].start, inner[0].stop))
        return np.asarray(np.maximum(0, np.broadcast_to(stop - start, (self.rows,))))

    def _numbers(self, rows: NDArray[np.int64], kept: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """The index arrays of these iterations, each with `kept` entries."""
        import numpy as np

        numbers = dict(self.given)
        for name in self.by_row.keys() & self.given.keys():
            if name != self.offsets:
                numbers[name] = np.take(self.given[name], rows, axis=self.by_row[name])
        if self.offsets is not None:
            ends = np.cumsum(kept)
            entries = np.repeat(self.given[self.offsets][rows] - (ends - kept), kept) + np.arange(ends[-1])
            numbers[self.offsets] = np.concatenate([[0], ends])
            for name in self.by_entry.keys() & self.given.keys():
                numbers[name] = np.take(self.given[name], entries, axis=self.by_entry[name])
        return numbers

    def _sizes(self, numbers: Mapping[str, Any], rows: int) -> dict[str, int]:
        """The sizes of the shorter launch. Raises NoInCore if they do not follow from its data."""
        sizes = dict(self.values)
        wanted = [(self.loop.stop, rows)]
        wanted += [(d, s) for n, v in numbers.items() for d, s in zip(self.dims(n), v.shape, strict=True)]
        for expression, size in wanted:
            form = affine(expression)
            if expression.evaluate(sizes) == size:
                continue
            names = [t for t, c in form.terms if isinstance(t, Sym) and c == 1]
            if len(names) != 1 or len(form.terms) != 1 or sizes[names[0].name] != self.values[names[0].name]:
                raise NoInCore(f"its loops over the data cannot be cut into pieces: `{expression}` is another size too")
            sizes[names[0].name] = size - form.constant
        for expression, size in wanted:
            if expression.evaluate(sizes) != size:
                raise NoInCore(f"its loops over the data cannot be cut into pieces: `{expression}` is another size too")
        return sizes


def _pieces(each: NDArray[np.int64]) -> list[tuple[int, int]]:
    """(first, end) of up to PIECES pieces of a loop, evenly spaced, of about MOST innermost iterations in total."""
    import numpy as np

    before = np.concatenate([[0], np.cumsum(each)])
    found: list[tuple[int, int]] = []
    for k in range(PIECES):
        middle = int(before[-1]) * (2 * k + 1) // (2 * PIECES)
        first = int(np.searchsorted(before, middle - MOST // (2 * PIECES), side="right")) - 1
        first = max(first, found[-1][1] if found else 0)
        end = int(np.searchsorted(before, before[first] + MOST // PIECES, side="left"))
        end = min(max(end, first + 1), len(each))
        if first < end:
            found.append((first, end))
    return found


def _stored(kernel: Kernel, name: str, values: Any) -> Any:
    """The values in the order of the memory."""
    array = next(a for a in kernel.arrays if a.name == name)
    return values.reshape(-1, order="F" if array.column_major else "C")


def _extent(node: For, values: Mapping[str, int]) -> int:
    """The innermost iterations of one execution of a loop inside a loop over data; a loop whose bounds are not sizes
    counts as one.
    """
    try:
        own = node.stop.evaluate(values) - node.start.evaluate(values)
    except (KeyError, TypeError):
        own = 1  # the entries of a row
    return max(1, own) * max([_extent(n, values) for n in node.body if isinstance(n, For)], default=1)


def _elements(node: Node) -> Iterator[Element]:
    """Every element that a node reads or writes, including those in subscripts and bounds."""
    match node:
        case For():
            yield from (a.element for a in bound_accesses(node))
            for inner in node.body:
                yield from _elements(inner)
        case If():
            for inner in (*node.then, *node.orelse):
                yield from _elements(inner)
        case Assign() | Let():
            yield from (a.element for a in accesses(node))


def _reads(node: Node) -> bool:
    """Whether subscripts or bounds in a node read index arrays."""
    match node:
        case For():
            return bool(bound_accesses(node)) or any(map(_reads, node.body))
        case If():
            return any(map(_reads, (*node.then, *node.orelse)))
        case Assign() | Let():
            return any(next(indices(a.element), None) is not None for a in accesses(node))
    return False


def _has_reads(expression: IntExpr) -> bool:
    return any(isinstance(part, Read) for part in expression.walk())


def _along(found: Sequence[Element], var: str, *, ends: bool = False) -> int | None:
    """The dimension through which all these elements move with a loop, one by one; None if there is none. ends: the
    element after that of this iteration may be read, too.
    """
    places = set()
    for element in found:
        own = [d for d, s in enumerate(element.subscripts) if var in s.symbols()]
        if len(own) != 1 or element.subscripts[own[0]] not in ((Sym(var), _next(var)) if ends else (Sym(var),)):
            return None
        places.add(own[0])
    return places.pop() if len(places) == 1 else None


def _neighbors(node: For, var: str) -> str | None:
    """The array of `range(a[i], a[i + 1])`, the bounds of a loop; None for other bounds."""
    if isinstance(node.start, Read) and isinstance(node.stop, Read):
        first, last = node.start.element, node.stop.element
        if first.array == last.array and (first.subscripts, last.subscripts) == ((Sym(var),), (_next(var),)):
            return first.array.name
    return None


def _next(var: str) -> IntExpr:
    return add(Sym(var), Const(1))
