"""Nested tiles: a product's loops for several caches at once; each tile consists of whole tiles of the level before.

Level l holds a block of b_i x b_j running values for d_l steps of the stream loop, then the next block within the same
larger block. `order k, i, j`, `tile i, j by b_1`, `tile k by d_1`, `tile ii, jj by b_2`, ... results, from the outside
in, in blocks of level 2 for d_1 steps at a time, inside them blocks of level 1, and inside those the steps. Level l
loads

    |C| * steps / d_l + |A| * columns / b_j + |B| * rows / b_i,     d_L = all steps,

if data is still in the cache when it is used again. For level 1 this is the condition of a single tile (tiles.py). For
the other levels, the following is touched between two uses of a block of level l - 1: at most the block of level l,
d_(l-1) columns of b_i elements and as many of b_i' (the rows of a block of level l - 1), and 2 d_(l-1) rows of b_j
elements (of this turn and the next):

    b_i b_j + d_(l-1) (b_i + b_i' + 2 b_j) <= S_l.

No sizes are best for all levels: a large d saves loads of level 1 but takes room in level 2. We choose the sizes whose
largest ratio to 2 / sqrt(S) loads per execution is smallest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from roofdsl.bounds.bound import Bound
from roofdsl.bounds.tiles import NoTiling, Tiling, extents_at, sides, tiled_by
from roofdsl.lang.scope import tile_name
from roofdsl.loops.integers import Const
from roofdsl.loops.model import Kernel, Order, Tile

SHRINK = tuple(k / 20 for k in range(5, 21))
"""Sides of the innermost tile that are tried, relative to the largest one that fits."""

STEPS = (0.2, 0.25, 0.33, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
"""Steps of the stream loop that are tried, relative to the side of the tile."""

CLOSE = 1 - 1e-9
"""Estimates in floating-point numbers, times this, are lower bounds."""

LEAST = 5
"""The least number of elements in which a one-element tile fits together with what streams past it."""


@dataclass(frozen=True)
class Block:
    """One level: rows x columns of running values, kept for `steps` iterations of the stream loop (None: for all)."""

    rows: int
    columns: int
    steps: int | None


def nested(plan: Tiling, params: Mapping[str, int], elements: Sequence[int]) -> tuple[Block, ...]:
    """The blocks for caches of the given numbers of elements, smallest cache first. Raises NoTiling.

    Extents are taken into account as far as `params` determines them.
    """
    if len(plan.order) != 3:
        raise NoTiling("no nested tiles are known for a product inside further loops")
    if len(elements) < 2 or any(a >= b for a, b in pairwise(elements)):
        raise NoTiling("nested tiles need at least two caches, each larger than the one before")
    if elements[0] < LEAST:
        raise NoTiling(f"the first cache holds fewer than {LEAST} elements")
    extents = extents_at(plan, params)
    square = min(sides(elements[0], extents[0], extents[1]))
    search = _Search(elements, extents)
    # Large tiles first: they are usually the best ones, so that most others need not be finished.
    for side in sorted({max(1, int(square * f)) for f in SHRINK}, reverse=True):
        search.grow((Block(side, side, None),), [], side)
    return search.best


class _Search:
    """The search for the nested blocks of the least cost: the largest ratio, and their sum where it is the same.

    Of equal costs, those that begin with the smallest tile win, and among these the first.
    """

    def __init__(self, elements: Sequence[int], extents: Sequence[int | None]) -> None:
        self.elements, self.extents = elements, extents
        self.ideal = [2 / sqrt(s) for s in elements]
        self.least = [_least_rate(s, extents) / ideal for s, ideal in zip(elements, self.ideal, strict=True)]
        self.best: tuple[Block, ...] = ()
        self._cost: tuple[float, float, int] | None = None

    def grow(self, blocks: tuple[Block, ...], ratios: list[float], side: int) -> None:
        """Try all ways to nest the blocks so far in blocks of the remaining levels. ratios: those of all levels but the
        last of them; side: that of the innermost block.
        """
        level, last = len(blocks), blocks[-1]
        if level == len(self.elements):
            self._compare(blocks, [*ratios, self._ratio(level - 1, last)], side)
            return
        room, (rows, columns, turns) = self.elements[level], self.extents
        unit = (blocks[-2].steps if level > 1 else None) or 1
        for steps in sorted({_within(max(1, round(last.columns * f / unit)) * unit, turns, unit) for f in STEPS}):
            held = Block(last.rows, last.columns, steps)
            known = [*ratios, self._ratio(level - 1, held)]
            if self._is_worse(known):
                continue
            most = int((sqrt((3 * steps) ** 2 + 4 * room) - 3 * steps) / 2)
            for height in {max(1, most // last.rows + more) * last.rows for more in (-1, 0, 1)}:
                own = _within(height, rows, last.rows)
                wide = (room - steps * (own + last.rows)) // (own + 2 * steps) // last.columns * last.columns
                width = _within(wide, columns, last.columns)
                if width > 0:
                    block = Block(own, width, None)
                    if not self._is_worse([*known, self._ratio(level, block)]):
                        self.grow((*blocks[:-1], held, block), known, side)

    def _ratio(self, level: int, block: Block) -> float:
        """The loads of a level, relative to those of a square tile; with its steps, or with all of them, the least."""
        return rates((block,), self.extents)[0] / self.ideal[level]

    def _is_worse(self, ratios: list[float]) -> bool:
        """Whether blocks that begin with these ratios cost more than the best ones so far, whatever follows."""
        if self._cost is None:
            return False
        all_of_them = [*ratios, *self.least[len(ratios) :]]
        largest, total = max(all_of_them), sum(all_of_them) * CLOSE
        return largest > self._cost[0] or (largest == self._cost[0] and total > self._cost[1])

    def _compare(self, blocks: tuple[Block, ...], ratios: list[float], side: int) -> None:
        cost = max(ratios), sum(ratios), side
        if self._cost is None or cost < self._cost:
            self._cost, self.best = cost, blocks


def _least_rate(room: int, extents: Sequence[int | None]) -> float:
    """A lower bound on the loads per execution with any block of at most `room` elements."""
    rows, columns, steps = extents
    whole = rates((Block(rows or room, columns or room, None),), extents)[0]
    shorter = min(sqrt(room), rows or room, columns or room)
    return max(whole, (1 / shorter + shorter / room + (1 / steps if steps else 0)) * CLOSE)


def _within(size: int, extent: int | None, unit: int) -> int:
    """The size, but at most the extent rounded up to whole units."""
    return size if extent is None else min(size, -(-extent // unit) * unit)


def rates(blocks: Sequence[Block], extents: Sequence[int | None]) -> list[float]:
    """Upper bounds on the loads per execution of every level."""
    rows, columns, steps = extents
    found = []
    for block in blocks:
        once = 1 / steps if steps else 0.0
        every = _per(block.steps, steps) if block.steps else once
        found.append(every + _per(block.rows, rows) + _per(block.columns, columns))
    return found


def _per(size: int, extent: int | None) -> float:
    return 1 / size if extent is None else -(-extent // size) / extent


def most_loads(blocks: Sequence[Block], extents: Sequence[int]) -> list[int]:
    """Upper bounds on the loads of every level (by the conditions above)."""
    rows, columns, steps = extents
    found = []
    for block in blocks:
        turns = 1 if block.steps is None else -(-steps // block.steps)
        held = rows * columns * turns
        found.append(held + rows * steps * -(-columns // block.columns) + columns * steps * -(-rows // block.rows))
    return found


def lines(bound: Bound, plan: Tiling, blocks: Sequence[Block]) -> tuple[Order | Tile, ...]:
    """The `order` and `tile` lines; none for a loop whose tile is the same as in the level before."""
    kernel = bound.plain
    taken = {p.name for p in kernel.parameters} | {a.name for a in kernel.arrays} | set(plan.order)
    names = {v: v for v in plan.order}
    strides = dict(zip((plan.rows, plan.columns, plan.order[-3]), plan.strides, strict=True))
    found: list[Order | Tile] = [Order(plan.order, kernel.span)]

    def tile(sizes: Mapping[str, int]) -> None:
        written = tuple(Const(strides[v] * size) for v, size in sizes.items())
        found.append(Tile(tuple(names[v] for v in sizes), written, kernel.span))
        for v in sizes:
            names[v] = tile_name(names[v], taken)
            taken.add(names[v])

    stream = plan.order[-3]
    inner: Block | None = None
    for block in blocks:
        if inner is None or (block.rows, block.columns) != (inner.rows, inner.columns):
            tile({plan.rows: block.rows, plan.columns: block.columns})
        if block.steps is not None and (inner is None or block.steps != inner.steps):
            tile({stream: block.steps})
        inner = block
    return tuple(found)


def nested_kernel(bound: Bound, plan: Tiling, blocks: Sequence[Block]) -> Kernel:
    """The kernel with these lines. Raises CommandError if dependences or bounds forbid them."""
    return tiled_by(bound, lines(bound, plan, blocks))
