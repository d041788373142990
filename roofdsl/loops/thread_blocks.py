"""A kernel as a GPU runs it: blocks of threads on multiprocessors, in waves; as loops, so that every analysis applies.

The model (docs/model.md, "Thread blocks"): the `parallel for` loops that the kernel begins with are spread over
threads, the last one along x. A loop over tiles runs over blocks, the loop within a tile over the threads of a block;
another loop is cut into chunks, one for each block. Where a block has fewer threads than its tile has points, or the
grid fewer than the loop has iterations, each thread executes several points, one after another, in a loop of its own
(its turns). The threads of a block, and the blocks of a wave, advance together: a loop in the threads' code is moved
outside the loops over threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import ElementType
from roofdsl.loops.affine import affine, minimum
from roofdsl.loops.block_shape import MOST_DIMENSIONS, USUAL_THREADS, block_of, grid_of, usual_block
from roofdsl.loops.in_step import in_step
from roofdsl.loops.integers import Condition, Const, IntExpr, Sym, add, mul
from roofdsl.loops.model import Array, Element, For, Kernel, Node
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.transform import apply, nested


class Launch(Record):
    """A kernel spread over a grid. `blocks` and `threads` are loops, outermost first; `body` is inside all of them.

    The bounds of the loops in `blocks` are numbers. The bounds of `threads` may depend on the loops over turns with
    which `body` begins; `in_step` moves these outside the loops over threads. along: the threads of a block in each
    dimension, z first.
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


def tiles_around(loops: Sequence[For]) -> dict[str, For]:
    """For the variable of each loop inside a tile: the loop over tiles."""
    found: dict[str, For] = {}
    for loop in loops:
        over = [t for t in loops if t.var in loop.start.symbols() and _may_be_over_tiles(t, loop)]
        if len(over) == 1 and loop.step == Const(1):
            found.setdefault(loop.var, over[0])
    return found


def _may_be_over_tiles(loop: For, inside: For) -> bool:
    """Whether a loop steps from tile to tile of the loop inside. Tiles of one point begin and end with it."""
    ends = [affine(stop) for stop in inside.stops]
    return loop.step != Const(1) or (Sym(loop.var) in inside.starts and affine(add(Sym(loop.var), Const(1))) in ends)


def dimensions(loops: Sequence[For], tiles: Mapping[str, For]) -> list[tuple[For | None, For]]:
    """For each dimension of a launch, x first: (the loop over tiles or None, the loop). `loops` leaves out those over
    tiles.

    tiles: as `tiles_around` found them.
    """
    found: list[tuple[For | None, For]] = []
    used: set[str] = set()
    for loop in loops[:MOST_DIMENSIONS]:
        over = tiles.get(loop.var)
        if over is not None and over.var in used:
            over = None
        if over is not None:
            used.add(over.var)
        found.append((over, loop))
    return found


class Grid(Record):
    """What a launch spreads: the loops over threads and the values that the grid covers, in each dimension, x first.

    most_blocks: of all dimensions together, if the blocks join the parts of sums.
    """

    loops: tuple[str, ...]
    covered: tuple[range, ...]
    most_blocks: int | None = None


def launch_of(kernel: Kernel, values: Mapping[str, int], block_threads: int, grid: Grid | None = None) -> Launch | None:
    """The blocks and threads of a kernel; None if it does not begin with `parallel for`, or if bounds of these loops
    depend on other loops in a way that cannot be written as blocks.

    block_threads: threads of a block. If there are tiles, a block has a thread for each point of a tile, but at most
    the larger of `block_threads` and USUAL_THREADS. grid: without it, the last of the loops is x, and the bounds
    of none may depend on other loops.
    """
    written = apply(kernel)
    plain = with_numbers(written, dict(kernel.constants) | dict(values))
    declared, (band, body) = _band(written.body)[0], _band(plain.body)
    if not band:
        return None
    tile_of = tiles_around(declared)  # of the loops as written: a tile may have a single point
    over_tiles = {tile.var for tile in tile_of.values()}
    numbered = {loop.var: loop for loop in band}
    as_written = {loop.var: loop for loop in declared}
    # The last loop is x: its neighboring iterations, and so neighboring threads of a warp, access neighboring elements.
    names = [loop.var for loop in reversed(declared) if loop.var not in over_tiles] if grid is None else grid.loops
    pairs = [
        (None if tile is None else numbered[tile.var], numbered[loop.var])
        for tile, loop in dimensions([as_written[name] for name in names], tile_of)
    ]
    if grid is None:
        spans = [loop if tile is None else tile for tile, loop in pairs]
        if not all(map(_is_fixed, spans)):
            return None
        grid = Grid(tuple(names), tuple(map(_values, spans)))
    spread = _spread(pairs, grid, block_threads, [loop.var for loop in band])
    if spread is None:
        return None
    # A launch has three dimensions: each iteration of further loops, outside, is a block of its own.
    taken = {loop.var for pair in pairs for loop in pair if loop is not None}
    blocks = (*(loop for loop in band if loop.var not in taken), *spread.blocks)
    if not all(map(_is_fixed, blocks)):
        return None
    is_tiled = any(tile is not None for tile, _ in pairs)
    return Launch(plain, blocks, spread.threads, nested(spread.turns, body), is_tiled, spread.along)


def _band(body: tuple[Node, ...]) -> tuple[list[For], tuple[Node, ...]]:
    """The nested `parallel for` loops that a kernel begins with, and what is inside them."""
    band: list[For] = []
    while len(body) == 1 and isinstance(node := body[0], For) and node.parallel:
        band.append(node)
        body = node.body
    return band, body


class _Spread(Record):
    """The loops of one or several dimensions: over blocks, over the turns of threads, and over threads."""

    blocks: tuple[For, ...]
    turns: tuple[For, ...]
    threads: tuple[For, ...]
    along: tuple[int, ...] = ()


def _spread(
    pairs: Sequence[tuple[For | None, For]], grid: Grid, block_threads: int, order: Sequence[str]
) -> _Spread | None:
    """The loops of a launch with the grid and the blocks of the generated code; None if bounds cannot be written.

    order: the loops as the code has them. Turns have this order; blocks have z outside and x inside, and so have
    threads if their bounds allow it.
    """
    tiles = [None if tile is None else tile.step.evaluate({}) for tile, _ in pairs]
    trips = [max(1, len(values)) for values in grid.covered]
    usual = usual_block(len(pairs), max(block_threads, USUAL_THREADS) if any(tiles) else block_threads)
    block = block_of(usual, trips, tiles, joins_sums=grid.most_blocks is not None)
    number = grid_of(block, trips, tiles, grid.most_blocks)
    blocks: list[For] = []
    parts: list[tuple[int, _Spread]] = []  # with the place of each in the code
    for (tile, loop), trip, along, of_grid in reversed(list(zip(pairs, trips, block, number, strict=True))):
        # A block has one iteration of a loop over tiles, and its threads the points of this tile.
        within: _Spread | None = _Spread((), (), ())
        if tile is None:
            own = _over_grid(loop, trip, along, of_grid)
        else:
            own = _over_grid(tile, trip, 1, of_grid)
            within = _in_tile(loop, tile.step.evaluate({}), along)
        if own is None or within is None:
            return None
        blocks += own.blocks
        parts += [(order.index((tile or loop).var), own), (order.index(loop.var), within)]
    threads = [loop for _, part in parts for loop in part.threads]
    as_written = [part for _, part in sorted(parts, key=lambda part: part[0])]
    turns = [loop for part in as_written for loop in part.turns]
    # With x inside, a loop may come before one that its bounds depend on: then the order of the code is the one that
    # works.
    if any(_needs(loop, threads[k:]) for k, loop in enumerate(threads)):
        threads = [loop for part in as_written for loop in part.threads]
    return _Spread(tuple(blocks), tuple(turns), tuple(threads), block[::-1])


def _needs(loop: For, others: Sequence[For]) -> bool:
    """Whether the bounds of a loop depend on one of others."""
    return bool((loop.start.symbols() | loop.stop.symbols()) & {other.var for other in others})


def _over_grid(loop: For, trips: int, threads: int, blocks: int) -> _Spread | None:
    """A loop of which each of `blocks` blocks has `threads` iterations at a time. trips: those that the grid covers."""
    step = loop.step.evaluate({})
    chunk = threads * step
    if _is_fixed(loop) and threads * blocks >= trips:
        if threads == 1:
            return _Spread((loop,), (), ())
        over, within = _chunks(loop, chunk)
        return _Spread((over,), (), (within,))
    # a thread starts at the loop's own first iteration plus its number
    over = replace(loop, var=f"{loop.var}'", start=Const(0), stop=Const(blocks * chunk), step=Const(chunk))
    place: IntExpr = Sym(over.var)
    turns: tuple[For, ...] = ()
    if threads * blocks < trips:
        stride, var = Const(blocks * chunk), f"{loop.var} in turn"
        turns = (replace(loop, var=var, start=Const(0), stop=Const(trips * step), step=stride),)
        place = add(place, Sym(var))
    own = _part(loop, place, chunk)
    return None if own is None else _Spread((over,), turns, (own,))


def _in_tile(loop: For, points: int, threads: int) -> _Spread | None:
    """The loop over the points of a tile, of which a block runs `threads` at a time."""
    if threads >= points:
        return _Spread((), (), (loop,))
    turn = replace(loop, var=f"{loop.var} in turn", start=Const(0), stop=Const(points), step=Const(threads))
    own = _part(loop, Sym(turn.var), threads)
    return None if own is None else _Spread((), (turn,), (own,))


def _part(loop: For, place: IntExpr, length: int) -> For | None:
    """The part of a loop that begins `place` after its start; None if the start is a maximum, for which no such loop is
    written.
    """
    if len(loop.starts) != 1:
        return None
    first = add(loop.start, place)
    return replace(loop, start=first, stop=minimum(loop.stop, add(first, Const(length))))


def block_by_block(launch: Launch) -> Kernel:
    """The blocks one after another; the threads of each advance together."""
    return replace(launch.kernel, body=nested(launch.blocks, in_step(launch.threads, launch.body)))


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
    if outer and room > 1:
        # `pop` comes first: len(outer) is then the place of the loop taken out.
        over, within = _chunks(outer.pop(), room * launch.blocks[len(outer)].step.evaluate({}))
        outer.append(over)
        inner.insert(0, within)
    body = nested(outer, in_step((*inner, *launch.threads), launch.body))
    return replace(launch.kernel, body=body)


def _is_fixed(loop: For) -> bool:
    return not (loop.start.symbols() | loop.stop.symbols() | loop.step.symbols())


def _trips(loop: For) -> int:
    return len(_values(loop))


def _values(loop: For) -> range:
    return range(loop.start.evaluate({}), loop.stop.evaluate({}), loop.step.evaluate({}))


def _chunks(loop: For, length: int) -> tuple[For, For]:
    """The loop over chunks of `length` (a multiple of the step), and the one within a chunk."""
    over = replace(loop, var=f"{loop.var}'", step=Const(length))
    start, stop = loop.start.evaluate({}), loop.stop.evaluate({})
    end: IntExpr = add(Sym(over.var), Const(length))
    if (stop - start) % length:
        end = minimum(loop.stop, end)
    return over, replace(loop, start=Sym(over.var), stop=end)


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
