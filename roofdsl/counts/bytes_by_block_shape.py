"""What blocks of threads load from the cache behind their own, for many block shapes at once, in closed form.

A block whose data fit in its cache moves each sector that it touches once (`working_set_traffic`). In a dimension with
subscripts `i + c`, the elements that a block of b iterations touches are windows of length b, one for each offset c. At
position p, the windows with p - b < c <= p overlap: always neighbors among the sorted offsets, from the a-th to the
e-th. There are max(0, min(c[e+1], c[a] + b) - max(c[e], c[a-1] + b)) such positions, so the rows that a block touches
are counted by formulas in b alone, and the sectors of a row by its first and last element. Dimensions multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.lang.record import Record
from roofdsl.lang.types import ElementType
from roofdsl.loops.accesses import accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const
from roofdsl.loops.model import Array, Assign, Count, Element, For, Kernel, Let, Node
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.transform import apply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]


class BlockBytes(Record):
    """Bytes that all blocks of a launch together load and store: two numpy arrays, one entry for each of the shapes."""

    loads: Whole
    stores: Whole


class _Access(Record):
    """The loop that moves each subscript (None for none), and what is added to it; the contiguous dimension last."""

    loops: tuple[str | None, ...]
    offsets: tuple[int, ...]
    is_write: bool


class _Loop(Record):
    """Iterations of a loop: `length` of the whole, `block` of one block (None: every block has all of them).

    Formulas are evaluated for the lengths 1, 2, ... of `block`; `place` says which of them each shape has.
    """

    start: int
    length: int
    block: Any = None
    place: Any = None

    def of_shapes(self, by_length: Any) -> Any:
        """What was found for every length, for every shape."""
        return by_length if self.place is None else by_length[self.place]


def block_bytes(kernel: Kernel, values: Mapping[str, int], sector_bytes: int, shapes: Whole) -> BlockBytes:
    """Loads and stores behind a cache that holds what any one block touches, in sectors of `sector_bytes`.

    shapes: (number of shapes, number of `parallel for` loops that the kernel begins with), whole numbers of at least 1,
    outermost first. If the first access to an array is a write, what this access writes is not loaded; everything else
    is (convention `load_store`).

    Raises NoAnswer for conditions, bounds that depend on other loops, steps other than 1, loops over one variable with
    different bounds, subscripts other than a loop plus a number, two subscripts that depend on one loop, arrays that
    are accessed along different loops, rows that are not a whole number of sectors, and shapes of another number of
    dimensions.
    """
    import numpy as np

    plain = with_numbers(apply(kernel), dict(kernel.constants) | dict(values))
    loops, body = _band(plain, np.asarray(shapes, dtype=np.int64))
    found: dict[str, list[_Access]] = {}
    for element, is_write in _touched(body, loops):
        found.setdefault(element.array.name, []).append(_access(element, is_write, loops))
    count = len(shapes)
    loads, stores = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for array in plain.arrays:
        if array.name not in found:
            continue
        own = found[array.name]
        every = _units(array, own, loops, sector_bytes)
        written = [a for a in own if a.is_write]
        first = own[:1] if own[0].is_write else []  # whatever else is written is taken to be read before
        loads += every - (_units(array, first, loops, sector_bytes) if first else 0)
        stores += _units(array, written, loops, sector_bytes) if written else 0
    return BlockBytes(loads * sector_bytes, stores * sector_bytes)


# ---- from the kernel ----


def _band(plain: Kernel, shapes: Whole) -> tuple[dict[str, _Loop], tuple[Node, ...]]:
    """The loops over threads with their blocks, and what is inside them."""
    loops: dict[str, _Loop] = {}
    body: tuple[Node, ...] = plain.body
    while len(body) == 1 and isinstance(node := body[0], For) and node.parallel:
        if len(loops) == shapes.shape[1]:
            raise NoAnswer(f"the shapes have {shapes.shape[1]} dimensions, and the nest of loops over threads has more")
        loops[node.var] = _loop(node, shapes[:, len(loops)])
        body = node.body
    if len(loops) != shapes.shape[1]:
        have = f"the shapes have {shapes.shape[1]} dimensions"
        raise NoAnswer(f"{have}, and the nest of loops over threads has {len(loops)}")
    return loops, body


def _loop(node: For, block: Any = None) -> _Loop:
    if node.start.symbols() or node.stop.symbols() or node.step != Const(1):
        raise NoAnswer(f"the bounds of the loop over {node.var} depend on other loops, or it has a step")
    import numpy as np

    start, stop = node.start.evaluate({}), node.stop.evaluate({})
    length = max(0, stop - start)
    if block is None:
        return _Loop(start, length)
    place = np.clip(block, 1, max(1, length)) - 1  # a longer block has all iterations
    return _Loop(start, length, np.arange(1, place.max(initial=0) + 2), place)


def _touched(nodes: Sequence[Node], loops: dict[str, _Loop]) -> Iterator[tuple[Element, bool]]:
    """The accesses of a block in order; the loops inside that have iterations are added to `loops`."""
    for node in nodes:
        if isinstance(node, For):
            loop = _loop(node)
            if not loop.length:
                continue
            known = loops.setdefault(node.var, loop)
            if (known.start, known.length) != (loop.start, loop.length):
                raise NoAnswer(f"the loops over {node.var} have different bounds")
            yield from _touched(node.body, loops)
        elif isinstance(node, Assign | Let):
            yield from ((a.element, a.is_write) for a in accesses(node))
        elif not isinstance(node, Count):
            raise NoAnswer("a condition decides which iterations are executed")


def _access(element: Element, is_write: bool, loops: Mapping[str, _Loop]) -> _Access:
    array = element.array
    moved: list[str | None] = []
    offsets = []
    for subscript in element.subscripts[::-1] if array.column_major else element.subscripts:
        form = affine(subscript)
        names = form.coefficients()
        if form.hidden() or len(names) > 1 or any(c != 1 or n not in loops for n, c in names.items()):
            raise NoAnswer(f"a subscript of {array.name} is not a loop plus a number")
        name = next(iter(names), None)
        if name is not None and name in moved:
            raise NoAnswer(f"two subscripts of {array.name} depend on one loop")
        moved.append(name)
        offsets.append(form.constant)
    return _Access(tuple(moved), tuple(offsets), is_write)


# ---- numbers ----


def _units(array: Array, own: Sequence[_Access], loops: Mapping[str, _Loop], sector_bytes: int) -> Any:
    """Sectors of all blocks together, for every shape."""
    along = own[0].loops
    if any(a.loops != along for a in own):
        raise NoAnswer(f"{array.name} is accessed along different loops")
    dims = [d.evaluate({}) for d in array.dims]
    row = (dims[0] if array.column_major else dims[-1]) * array.type.bytes
    if len(dims) > 1 and row % sector_bytes:
        raise NoAnswer(f"the rows of {array.name} are not a whole number of sectors long")
    # blocks along loops that this array does not depend on each touch all of it again
    apart = (o for name, o in loops.items() if o.block is not None and name not in along)
    again = prod(o.of_shapes(-(-o.length // o.block)) for o in apart)
    return again * _of_dimension({a.offsets for a in own}, 0, along, loops, _Sectors(array.type, sector_bytes))


class _Sectors(Record):
    """Elements that share a sector."""

    type: ElementType
    bytes: int

    @property
    def elements(self) -> int:
        return max(1, self.bytes // self.type.bytes)


def _of_dimension(
    offsets: set[tuple[int, ...]], d: int, along: Sequence[str | None], loops: Mapping[str, _Loop], sectors: _Sectors
) -> Any:
    """Sectors of the union of windows with these offsets from dimension `d` on, summed over the blocks along each."""
    name = along[d]
    loop = _Loop(0, 1) if name is None else loops[name]
    if d == len(along) - 1:
        return _of_rows(sorted({o[d] for o in offsets}), loop, sectors)
    here = sorted({o[d] for o in offsets})
    # positions with equal sets of offsets in the dimensions inside count together
    positions: dict[frozenset[tuple[int, ...]], Any] = {}
    for a in range(len(here)):
        for e in range(a, len(here)):
            inside = frozenset((0,) * (d + 1) + o[d + 1 :] for o in offsets if here[a] <= o[d] <= here[e])
            positions[inside] = positions.get(inside, 0) + _blocks(loop, lambda b, a=a, e=e: _windows(here, a, e, b))
    return sum(
        loop.of_shapes(n) * _of_dimension(set(inside), d + 1, along, loops, sectors) for inside, n in positions.items()
    )


def _blocks(loop: _Loop, of_length: Any) -> Any:
    """The sum of a function of their length over the blocks along a loop: whole ones, and the rest."""
    import numpy as np

    if loop.block is None:
        return of_length(np.int64(loop.length))
    whole, rest = np.divmod(np.int64(loop.length), loop.block)
    return whole * of_length(loop.block) + of_length(rest) * (rest > 0)


def _windows(here: Sequence[int], a: int, e: int, length: Any) -> Any:
    """The number of positions that the windows of the offsets a to e all cover, and no other window."""
    import numpy as np

    upper = here[a] + length if e + 1 == len(here) else np.minimum(here[e + 1], here[a] + length)
    lower = here[e] if a == 0 else np.maximum(here[e], here[a - 1] + length)
    return np.maximum(0, upper - lower)


def _of_rows(here: Sequence[int], loop: _Loop, sectors: _Sectors) -> Any:
    """Sectors of a row of elements, summed over the blocks along it, which may begin anywhere in a sector."""
    import numpy as np

    per = sectors.elements
    if loop.block is None:
        return _in_row(here, np.int64(loop.start), np.int64(loop.length), per)
    whole, rest = np.divmod(np.int64(loop.length), loop.block)
    total = _in_row(here, loop.start + whole * loop.block, rest, per) * (rest > 0)
    for k in range(per):  # blocks k, k + per, ... begin at the same place in a sector
        total = total + _in_row(here, loop.start + k * loop.block, loop.block, per) * ((whole - k + per - 1) // per)
    return loop.of_shapes(total)


def _in_row(here: Sequence[int], first: Any, length: Any, per: int) -> Any:
    """The number of distinct sectors of `per` elements that windows from `first` + offset on touch; the offsets are
    sorted.
    """
    import numpy as np

    total: Any = 0
    last: Any = np.int64(-(2**40))
    for offset in here:
        begin = np.maximum((first + offset) // per, last + 1)
        end = np.maximum((first + offset + length - 1) // per, last)
        total = total + np.maximum(0, end - begin + 1)
        last = end
    return total
