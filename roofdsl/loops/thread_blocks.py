"""A kernel as a GPU runs it: blocks of threads on multiprocessors, in waves; as loops, so that every analysis applies.

The model (docs/model.md, "Thread blocks"): the `parallel for` loops that the kernel begins with are spread over
threads. A loop over tiles runs over blocks, the loop inside its tile over the threads of one; without tiles, a block is
a box of iterations of the innermost parallel loops, 32 along the last of several, as in generated CUDA. The threads
of a block, and the blocks of a wave, advance together: loops inside the threads come outside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import ElementType
from roofdsl.loops.affine import minimum
from roofdsl.loops.block_shape import filled
from roofdsl.loops.integers import Condition, Const, IntExpr, Sym, add, mul
from roofdsl.loops.model import Array, Assign, Count, Element, For, Kernel, Let, Node
from roofdsl.loops.numbers import with_numbers
from roofdsl.loops.transform import apply

WARP = 32
"""Threads of a block along its last loop (x), where it has several."""


class Launch(Record):
    """A kernel spread over a grid. `blocks` and `threads` are loops, outermost first; `body` is inside all of them.

    The loops of `blocks` run over numbers alone. along: the threads of a block in each dimension, z first.
    """

    kernel: Kernel
    blocks: tuple[For, ...]
    threads: tuple[For, ...]
    body: tuple[Node, ...]
    is_tiled: bool
    along: tuple[int, ...]

    @property
    def threads_of_block(self) -> int:
        """Threads of a whole block."""
        return prod(self.along)

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks along each loop of `blocks`."""
        return tuple(_trips(loop) for loop in self.blocks)


def _threads_along(loop: For) -> int:
    """Threads along a loop inside a tile: the iterations of a full one."""
    step = loop.step.evaluate({})
    ends = [e.evaluate(dict.fromkeys(e.symbols(), 0)) for e in loop.stops]
    return max(1, -(-min(ends) // step))


def launch_of(kernel: Kernel, values: Mapping[str, int], block_threads: int) -> Launch | None:
    """The launch of `kernel` at `values`; None if it is not one nest that begins with `parallel for`, or if bounds
    depend on other loops.

    block_threads: threads of a block if no tiles determine them.
    """
    plain = with_numbers(apply(kernel), dict(kernel.constants) | dict(values))
    if len(plain.body) != 1:
        return None
    band: list[For] = []
    body: tuple[Node, ...] = plain.body
    while len(body) == 1 and isinstance(node := body[0], For) and node.parallel:
        band.append(node)
        body = node.body
    if not band:
        return None
    tiles = [t for t in band if any(_is_inside(loop, t) for loop in band)]
    if tiles:
        threads = [loop for loop in band if any(_is_inside(loop, t) for t in tiles)]
        blocks = [loop for loop in band if loop not in threads]
        shape = tuple(map(_threads_along, threads))
    else:
        if not all(_is_fixed(loop) for loop in band):
            return None
        usual = _shape(len(band), block_threads)
        shape = filled(usual[::-1], [_trips(loop) for loop in band[-len(usual) :]][::-1])[::-1]
        blocks, threads = list(band[: -len(shape)]), []
        for loop, length in zip(band[-len(shape) :], shape, strict=True):
            if length == 1:
                blocks.append(loop)
                continue
            over, within = _chunks(loop, length * loop.step.evaluate({}))
            blocks.append(over)
            threads.append(within)
    if not all(_is_fixed(loop) for loop in blocks):
        return None
    return Launch(plain, tuple(blocks), tuple(threads), body, bool(tiles), shape)


def _is_inside(loop: For, over: For) -> bool:
    """Whether `loop` runs within a tile of `over`; tiles of one iteration have step 1, and end with their loop."""
    in_stop = over.step != Const(1) or over.var in loop.stop.symbols()
    return over.var in loop.start.symbols() and in_stop


def _shape(dimensions: int, threads: int) -> tuple[int, ...]:
    """Threads of a block along the innermost loops, outermost first: a warp along the last one if there are several."""
    if dimensions == 1:
        return (threads,)
    along, across = min(threads, WARP), max(1, threads // WARP)
    if dimensions == 2:
        return (across, along)
    return (2, across // 2, along) if across >= 4 else (1, across, along)


def block_by_block(launch: Launch) -> Kernel:
    """The blocks one after another; the threads of each advance together."""
    return replace(launch.kernel, body=_nest(launch.blocks, _together(launch.threads, launch.body)))


def on_one_copy(launch: Launch, line_bytes: int | None) -> Kernel:
    """What one multiprocessor does, block after block, each with arrays of its own, so that none finds another's data.

    Counting the traffic of this kernel through a cache starts every block cold and flushes at its end. For every block,
    the arrays begin on lines of `line_bytes`.
    """
    body = block_by_block(launch).body
    copies = {a.name: _per_block(a, launch.blocks, line_bytes) for a in launch.kernel.arrays if not a.is_scalar}
    tags = tuple(Sym(loop.var) for loop in launch.blocks)
    changed = _retagged(body, copies, tags)
    arrays = tuple(copies.get(a.name, a) for a in launch.kernel.arrays)
    return replace(launch.kernel, body=changed, arrays=arrays)


def in_waves(launch: Launch, resident: int) -> Kernel:
    """The order in which `resident` blocks at a time reach a shared cache: whole rows of blocks, or parts of one."""
    inner: list[For] = []
    outer = list(launch.blocks)
    room = resident
    while outer and _trips(outer[-1]) <= room:
        inner.insert(0, outer.pop())
        room //= max(1, _trips(inner[0]))
    if outer and (inner or room > 1) and room > 1:
        over, within = _chunks(outer.pop(), room * launch.blocks[len(outer)].step.evaluate({}))
        outer.append(over)
        inner.insert(0, within)
    body = _nest(outer, _together((*inner, *launch.threads), launch.body))
    return replace(launch.kernel, body=body)


def _is_fixed(loop: For) -> bool:
    return not (loop.start.symbols() | loop.stop.symbols() | loop.step.symbols())


def _trips(loop: For) -> int:
    start, stop, step = (e.evaluate({}) for e in (loop.start, loop.stop, loop.step))
    return max(0, -((start - stop) // step))


def _chunks(loop: For, length: int) -> tuple[For, For]:
    """The loop over chunks of `length` (a multiple of the step), and the one within a chunk."""
    over = replace(loop, var=f"{loop.var}'", step=Const(length))
    start, stop = loop.start.evaluate({}), loop.stop.evaluate({})
    end: IntExpr = add(Sym(over.var), Const(length))
    if (stop - start) % length:
        end = minimum(loop.stop, end)
    return over, replace(loop, start=Sym(over.var), stop=end)


def _nest(loops: Sequence[For], body: tuple[Node, ...]) -> tuple[Node, ...]:
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def _together(threads: Sequence[For], body: Sequence[Node]) -> tuple[Node, ...]:
    """The body done by all threads together: loops stay outside the threads if their bounds are the same for all."""
    names = {loop.var for loop in threads}
    found: list[Node] = []
    straight: list[Node] = []

    def close() -> None:
        if straight:
            found.extend(_nest(threads, tuple(straight)))
            straight.clear()

    for node in body:
        if isinstance(node, (Assign, Let, Count)):
            straight.append(node)
            continue
        close()
        if isinstance(node, For) and not (node.start.symbols() | node.stop.symbols()) & names:
            found.append(replace(node, body=_together(threads, node.body)))
        else:
            found.extend(_nest(threads, (node,)))
    close()
    return tuple(found)


def _per_block(array: Array, blocks: Sequence[For], line_bytes: int | None) -> Array:
    """The array with a copy for each block; every copy is a whole number of lines, flat if its dimensions are not."""
    stops = tuple(loop.stop for loop in blocks)
    own = array.dims
    elements = prod(d.evaluate({}) for d in own)
    per_line = max(1, (line_bytes or 0) // array.type.bytes)
    if elements % per_line:
        own = (Const(-(-elements // per_line) * per_line),)
    return replace(array, dims=(*own, *stops) if array.column_major else (*stops, *own))


def _retagged(part: Any, copies: Mapping[str, Array], tags: tuple[IntExpr, ...]) -> Any:
    if type(part) is tuple:
        return tuple(_retagged(p, copies, tags) for p in part)
    if isinstance(part, Element):
        copy = copies[part.array.name]
        own = part.subscripts
        if len(copy.dims) != len(tags) + len(own):  # flat, to begin every copy on a line
            dims = [d.evaluate({}) for d in part.array.dims]
            faster = [dims[:k] if copy.column_major else dims[k + 1 :] for k in range(len(dims))]
            own = (add(*(mul(Const(prod(f)), s) for f, s in zip(faster, own, strict=True))),)
        return replace(part, array=copy, subscripts=(*own, *tags) if copy.column_major else (*tags, *own))
    if isinstance(part, Record) and not isinstance(part, Source | ElementType | IntExpr | Condition | Array):
        fields = {n: getattr(part, n) for n in part.__match_args__ if n != "span"}
        return replace(part, **{n: _retagged(value, copies, tags) for n, value in fields.items()})
    return part
