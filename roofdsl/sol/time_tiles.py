"""Tiles over space and time for kernels that sweep over a grid again and again, and what they move at each level.

A tile is a box of `side` points in every dimension for `steps` time steps, in coordinates that move with the skew
(`sweeps`). Tiles of a level consist of whole tiles of the level in front of it. If everything that a tile touches fits
in a cache, the cache loads each line once, whatever the order inside the tile, and stores it at most once. So a cache
with LRU replacement moves no more bytes than are counted here.

The innermost tile may be a stream: it runs along the first dimension from end to end, and at each place does all of its
time steps, each sweep `skew` places behind the one before. The cache then holds only the places between the first and
the last sweep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Array, Kernel
from roofdsl.machine.model import Cache, Machine
from roofdsl.predict.fast_memories import MOST_REGISTERS, REGISTER_BYTES
from roofdsl.sol.level_times import Moved, Times, level_times
from roofdsl.sol.sweeps import Sweeps

DOUBLINGS = 2
"""The numbers of time steps that are tried per factor of two: two, so they grow by the square root of two."""


class Tile(Record):
    """A tile of one level: its points along each dimension, and its time steps. level: the level that holds it.

    stream: it runs along the whole first dimension, or that of the tile around it; `side` is for the other dimensions.
    """

    level: str
    side: int
    steps: int
    stream: bool = False


class TimeTiles(Record):
    """The tiles that were found, the innermost first, and the seconds of each level."""

    tiles: tuple[Tile, ...]
    times: Times


class Grid(Record):
    """The sweeps at their sizes. extents: the first place of each dimension, and the one after the last. shape: the
    size of the arrays along each dimension. steps: time steps.
    """

    sweeps: Sweeps
    extents: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    steps: int


def grid(sweeps: Sweeps, values: Mapping[str, int]) -> Grid | None:
    """The grid of the sweeps at these sizes; None if there is nothing to compute."""
    extents = tuple(sweeps.extent(d, values) for d in range(sweeps.dimensions))
    shape = tuple(max(a.dims[d].evaluate(values) for a in sweeps.arrays) for d in range(sweeps.dimensions))
    steps = sweeps.time.stop.evaluate(values) - sweeps.time.start.evaluate(values)
    if steps < 1 or any(stop <= start for start, stop in extents):
        return None
    return Grid(sweeps, extents, shape, steps)


def time_tiles(kernel: Kernel, at: Grid, machine: Machine) -> TimeTiles | None:
    """Tiles for all levels that hold any; None for arrays in columns, and where no level holds one."""
    if any(a.column_major for a in kernel.arrays):
        return None
    moved = [_as_written(at)] * (len(machine.caches) + 1)
    own = machine.multiprocessor
    if own is not None and own.registers is not None and machine.caches:
        moved[0] = _in_registers(at, min(MOST_REGISTERS * own.warp, own.registers) * REGISTER_BYTES // 2)
    found: list[Tile] = []
    for k, cache in enumerate(machine.caches, 1):
        made = _best(at, cache, found[-1] if found else None)
        if made is not None and sum(made[1]) < sum(moved[k]):
            found.append(made[0])
            moved[k:] = [made[1]] * (len(moved) - k)  # levels behind move no more
    return TimeTiles(tuple(found), level_times(machine, moved)) if found else None


def _as_written(at: Grid) -> Moved:
    """The bytes of all accesses, an upper bound on what crosses any boundary."""
    points = [prod(stop - start for start, stop in at.extents)] * len(at.sweeps.sweeps)
    loads = stores = 0
    for sweep, n in zip(at.sweeps.sweeps, points, strict=True):
        touched = {(a.element, a.is_write): a.element.array.type.bytes for a in sweep.accesses}
        loads += n * at.steps * sum(size for (_, write), size in touched.items() if not write)
        stores += n * at.steps * sum(size for (_, write), size in touched.items() if write)
    return loads, stores


def _in_registers(at: Grid, room: int) -> Moved:
    """Bytes between the registers of warps and the first cache, sweep by sweep. A warp holds as many neighboring lines
    of points as fit and moves along the first dimension. It also loads the points next to its lines, which its
    neighbors load, too.
    """
    points = prod(stop - start for start, stop in at.extents)
    low, high = at.sweeps.reach
    loads = stores = 0
    for sweep in at.sweeps.sweeps:
        arrays = {a.element.array.name: a.element.array for a in sweep.accesses if not a.is_write}
        across = len(at.extents) - 1
        element = sum(a.type.bytes for a in arrays.values()) * (high - low + 1)
        side = 1
        while across and element * (side + 1 + high - low) ** across <= room:
            side += 1
        share = (side + high - low) ** across, side**across
        loads += points * at.steps * sum(a.type.bytes for a in arrays.values()) * share[0] // share[1]
        written = {a.element.array.name: a.element.array.type.bytes for a in sweep.accesses if a.is_write}
        stores += points * at.steps * sum(written.values())
    whole = _as_written(at)
    return min((loads, stores), whole, key=sum)


def _best(at: Grid, cache: Cache, inner: Tile | None) -> tuple[Tile, Moved] | None:
    """The tile that moves the fewest bytes, among those that fit and consist of whole inner tiles."""
    line = cache.sector_bytes or cache.line_bytes or 1
    unit, least = (inner.side, inner.steps) if inner is not None else (1, 1)
    best: tuple[Tile, Moved] | None = None
    for stream in (False, True) if inner is None and len(at.extents) > 1 else (False,):
        for steps in _numbers(least, at.steps):
            side = _largest(at, Tile(cache.name, unit, steps, stream), cache.size_bytes, line)
            if side is None:
                break
            tile = Tile(cache.name, side, steps, stream)
            moved = tile_bytes(at, tile, line)
            if best is None or sum(moved) < sum(best[1]):
                best = tile, moved
    return best


def _numbers(least: int, most: int) -> Sequence[int]:
    """Multiples of `least` that grow by about a factor of sqrt(2), until they cover all steps (`most`)."""
    found = {least * max(1, round(2 ** (k / DOUBLINGS))) for k in range(DOUBLINGS * most.bit_length() + 1)}
    last = -(-most // least) * least
    return sorted({min(n, last) for n in found})


def _largest(at: Grid, tile: Tile, room: int, line: int) -> int | None:
    """The largest multiple of the side of `tile` with which such a tile fits; None if none does."""
    unit = tile.side
    low, high = 0, -(-max(_skewed(at, tile.steps, d) for d in range(len(at.extents))) // unit)
    while low < high:
        middle = (low + high + 1) // 2
        fits = held_bytes(at, replace(tile, side=middle * unit), line) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low * unit if low else None


def _skewed(at: Grid, steps: int, dimension: int) -> int:
    """The number of places along a dimension in skewed coordinates."""
    start, stop = at.extents[dimension]
    return stop - start + _moves(at, steps)


def _moves(at: Grid, steps: int) -> int:
    """The places by which a tile moves in total, from its first sweep to its last."""
    return at.sweeps.skew * (len(at.sweeps.sweeps) * steps - 1)


def _row(places: int, array: Array, line: int) -> int:
    """An upper bound on the bytes of the lines that `places` consecutive elements touch, wherever they begin."""
    return (places * array.type.bytes + 2 * line - 2) // line * line


def held_bytes(at: Grid, tile: Tile, line: int) -> int:
    """An upper bound on the bytes of all lines that a tile touches; for a stream, of those that it uses again."""
    low, high = at.sweeps.reach
    moves = _moves(at, tile.steps)
    reach = [min(n, tile.side + moves + high - low) for n in at.shape]
    if tile.stream:
        reach[0] = min(at.shape[0], moves + high - low + 2)
    return sum(prod(reach[:-1]) * _row(reach[-1], a, line) for a in at.sweeps.arrays)


def tile_bytes(at: Grid, tile: Tile, line: int) -> Moved:
    """An upper bound on the bytes that all tiles of that size load and store: the lines that each of them touches."""
    rows, last, tiles = 1, 0, 0
    for d in range(len(at.extents)):
        inside = [at.shape[0]] if tile.stream and d == 0 else _places(at, tile, d)
        if d < len(at.extents) - 1:
            rows *= sum(inside)
        else:
            last, tiles = sum(inside), sum(1 for n in inside if n)
    turns = -(-at.steps // tile.steps)

    def bytes_of(array: Array) -> int:
        return turns * rows * (last * array.type.bytes + tiles * (2 * line - 2))

    stored = at.sweeps.written
    loads = sum(bytes_of(a) for a in at.sweeps.arrays)
    return loads, sum(bytes_of(a) for a in at.sweeps.arrays if a.name in stored)


def _places(at: Grid, tile: Tile, dimension: int) -> list[int]:
    """The number of places of a dimension that each tile along it touches."""
    start, _ = at.extents[dimension]
    low, high = at.sweeps.reach
    found = []
    for k in range(-(-_skewed(at, tile.steps, dimension) // tile.side)):
        first = start + k * tile.side
        touched = range(first - _moves(at, tile.steps) + low, first + tile.side + high)
        found.append(max(0, min(at.shape[dimension], touched.stop) - max(0, touched.start)))
    return found
