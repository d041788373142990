"""Tiles of products for every level of a machine, and the time that each level then takes.

On cores, nested tiles (`roofdsl.bounds.nested`) hold a block of the result in each level. On multiprocessors, the
result stays in registers for all steps: a warp holds a square of it, and a multiprocessor holds the squares of its
warps. All multiprocessors walk along the sum side by side, and so together hold a block as large as their number
allows. Each level loads what its block needs once.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record
from roofdsl.loops.integers import Const
from roofdsl.loops.model import Kernel, Order, Tile
from roofdsl.loops.parameter_values import numbers
from roofdsl.machine.model import Machine
from roofdsl.machine.multiprocessor import Multiprocessor
from roofdsl.predict.fast_memories import MOST_REGISTERS, REGISTER_BYTES
from roofdsl.sol.grouped_products import Grouped, GroupedProduct, grouped_products
from roofdsl.sol.level_times import Moved, Times, level_times
from roofdsl.store.in_process import in_process

if TYPE_CHECKING:
    from roofdsl.bounds.bound import Bound
    from roofdsl.bounds.nested import Block
    from roofdsl.bounds.tiles import Tiling

AVX2_REGISTERS_BYTES = 512
"""The bytes of a core's vector registers: 16 of 32 B, as in x86-64 with AVX2."""

KEPT = 256
"""The maximum number of tilings that a long-running process keeps."""


class Products(Record):
    """The products of a kernel. nest: the kernel's bound and tiling, if it is a single product in three loops.

    Then directives can express the tiles.
    """

    grouped: Grouped
    nest: tuple[Bound, Tiling] | None


class ProductTiles(Record):
    """Tiles in words, the directives for them (none if directives cannot express them), and the seconds of each
    level.
    """

    what: str
    directives: tuple[Order | Tile, ...]
    times: Times


def products_of(kernel: Kernel, parameters: tuple[tuple[str, int], ...]) -> Products | None:
    """The kernel as products at its sizes; None if it has no such form."""
    from roofdsl.bounds.held_reads import without_own_tiles

    values = numbers(kernel, dict(parameters))
    nest = _nest(kernel, parameters)
    # with its own tiles, one product would look like many small ones
    grouped = grouped_products(without_own_tiles(kernel), values)
    if grouped is None and nest is not None:
        grouped = _of_nest(kernel, nest, parameters)  # a product of other operations, such as shortest paths
    return None if grouped is None else Products(grouped, nest)


def _nest(kernel: Kernel, parameters: tuple[tuple[str, int], ...]) -> tuple[Bound, Tiling] | None:
    from roofdsl.bounds.tiles import extents_at

    found = _plan(kernel)
    if found is None or len(found[1].order) != 3 or None in extents_at(found[1], dict(parameters)):
        return None
    return found


@in_process(KEPT)
def _plan(kernel: Kernel) -> tuple[Bound, Tiling] | None:
    """The bound and the tiling of a kernel that is one tileable nest, found once; None for any other kernel."""
    from roofdsl.bounds.bound import bound
    from roofdsl.bounds.held_reads import without_tile_loops
    from roofdsl.bounds.tiles import NoTiling, perfect_nest, tiling
    from roofdsl.loops.transform import apply

    try:
        perfect_nest(without_tile_loops(apply(kernel))[0])
        own = bound(kernel)
        return own, tiling(own)
    except (NoTiling, CommandError, InputError):
        return None


def _of_nest(kernel: Kernel, nest: tuple[Bound, Tiling], parameters: tuple[tuple[str, int], ...]) -> Grouped | None:
    from roofdsl.bounds.tiles import extents_at

    rows, columns, steps = (e or 1 for e in extents_at(nest[1], dict(parameters)))
    operand = max((a.type.bytes for a in kernel.arrays if not a.is_scalar and a.intent == "in"), default=0)
    result = max((a.type.bytes for a in kernel.arrays if not a.is_scalar and a.intent != "in"), default=0)
    if not operand or not result:
        return None
    names = ((nest[1].rows,), (nest[1].columns,))
    once = rows * steps * operand, columns * steps * operand
    all_in_all = rows * columns * steps
    product = GroupedProduct(rows, columns, steps, 1, all_in_all, result, operand, operand, result, *once, False, names)
    return Grouped((product,), (0, 0))


def tiles(products: Products, machine: Machine) -> ProductTiles | None:
    """The tiles for this machine; None if dependences or sizes forbid them."""
    own = machine.multiprocessor
    if own is not None and own.registers is not None and machine.units is not None:
        return _in_waves(products, machine, own, own.registers, machine.units)
    return _nested(products, machine)


# ---- cores ----


def _nested(products: Products, machine: Machine) -> ProductTiles | None:
    """Blocks for the registers and each cache of one core; a cache no larger than what is in front of it adds none."""
    from roofdsl.bounds.nested import lines, nested_kernel
    from roofdsl.bounds.tiles import NoTiling

    width = max(max(p.left, p.right, p.held) for p in products.grouped.products)
    # every element counts as the widest one, so the blocks fit; smaller blocks move no fewer bytes
    held = [AVX2_REGISTERS_BYTES // width, *(c.size_bytes // width for c in machine.caches)]
    growing = [k for k, size in enumerate(held) if k == 0 or size > max(held[:k])]
    moved: list[Moved] = [(0, 0)] * len(held)
    text: tuple[Order | Tile, ...] = ()
    try:
        for product in products.grouped.products:
            blocks = _blocks(product, [held[k] for k in growing])
            if products.nest is not None:
                nested_kernel(*products.nest, blocks)  # raises if a dependence forbids the order
                text = lines(*products.nest, blocks)
            for k in range(len(held)):
                block = blocks[sum(1 for level in growing if level <= k) - 1]
                turns = 1 if block.steps is None else -(-product.steps // block.steps)
                # what is loaded of the result goes back
                moved[k] = _sum(moved[k], _streamed(product, block.rows, block.columns, turns))
    except (NoTiling, CommandError):
        return None
    first = products.grouped.others
    return ProductTiles("in tiles for every level", text, level_times(machine, [_sum(first, moved[0]), *moved[1:]]))


def _blocks(product: GroupedProduct, held: list[int]) -> tuple[Block, ...]:
    """The nested blocks of a product whose groups of loops act as the three loops of a plain one. Raises NoTiling."""
    import sympy

    from roofdsl.bounds.nested import nested
    from roofdsl.bounds.tiles import Tiling

    extents = tuple(map(sympy.Integer, (product.rows, product.columns, product.steps)))
    return nested(Tiling(("k", "i", "j"), "i", "j", None, None, extents), {}, held)


def _sum(a: Moved, b: Moved) -> Moved:
    return a[0] + b[0], a[1] + b[1]


# ---- multiprocessors ----


def _in_waves(
    products: Products, machine: Machine, own: Multiprocessor, registers: int, units: int
) -> ProductTiles | None:
    """Squares of the result in the registers of a warp and of a multiprocessor, and a block for all multiprocessors.

    Half of the registers hold results, the others operands and addresses. The first cache (or shared memory) supplies
    each warp with its operands, the caches behind it supply each multiprocessor, and the memory supplies the last cache
    with what all multiprocessors need for the same steps.
    """
    several = products.grouped.products
    width = max(p.held for p in several) * len(several)  # results of all of them at a time
    warp = _side(min(MOST_REGISTERS * own.warp, registers) * REGISTER_BYTES // 2, width, 8)
    block = _side(registers * REGISTER_BYTES // 2, width, warp)
    down = max(k for k in range(1, isqrt(units) + 1) if units % k == 0 or k == isqrt(units))
    wave = (down * block, units // down * block)
    levels = [(warp, warp), *((block, block) for _ in machine.caches[1:]), wave][: len(machine.caches) + 1]
    moved = []
    for k, sides in enumerate(levels):
        last = machine.last_cache if k == len(machine.caches) else None
        held = 0 if last is None else last.size_bytes * last.copies
        here = products.grouped.others if k == 0 or last is None else (0, 0)
        for product in several:
            here = _sum(here, _streamed(product, *_fitted(product, *sides), 1, held))
        moved.append(here)
    if products.nest is not None:
        directives = _wave_tiles(*products.nest, block, warp)
        return ProductTiles("in tiles for every level", directives, level_times(machine, moved))
    rows, columns = (", ".join(dict.fromkeys(v for p in several for v in p.names[k])) or "-" for k in range(2))
    what = f"in tiles for every level: a warp {warp} x {warp} ({rows} by {columns}), a multiprocessor {block} x {block}"
    return ProductTiles(what, (), level_times(machine, moved))


def _fitted(p: GroupedProduct, rows: int, columns: int) -> tuple[int, int]:
    """A block of the same area, with the width or the height of the result if it exceeds one of them."""
    if columns > p.columns:
        return rows * columns // p.columns, p.columns
    return (p.rows, rows * columns // p.rows) if rows > p.rows else (rows, columns)


def _side(held_bytes: int, element_bytes: int, unit: int) -> int:
    """The side of the largest square of elements that fits: a multiple of `unit`, or 1."""
    side = isqrt(held_bytes // element_bytes)
    return max(1, side // unit * unit)


def _streamed(p: GroupedProduct, rows: int, columns: int, turns: int, held_bytes: int = 0) -> Moved:
    """The bytes loaded and stored with blocks of that size: a block needs its rows and columns of the operands once,
    and its results once in each turn.

    held_bytes: the size of a cache behind which blocks walk over each operand side by side; overlapping windows are
    then loaded once.
    """
    left = p.executions * p.left * -(-p.columns // columns) // p.columns
    right = p.executions * p.right * -(-p.rows // rows) // p.rows
    if held_bytes:
        side_by_side = min(rows, p.rows), min(columns, p.columns)
        at_a_time = p.left_once * side_by_side[0] // p.rows + p.right_once * side_by_side[1] // p.columns
        if at_a_time + side_by_side[0] * side_by_side[1] * p.result <= held_bytes:
            left = min(left, p.left_once * -(-p.columns // columns))
            right = min(right, p.right_once * -(-p.rows // rows))
    results = p.executions // p.steps * p.result
    return left + right + results * (turns - p.fresh), results * turns


def _wave_tiles(bound: Bound, plan: Tiling, block: int, warp: int) -> tuple[Tile, ...]:
    """Tiles of a warp, and around them those of a multiprocessor, with the sum inside."""
    from roofdsl.lang.scope import tile_name

    taken = {q.name for q in bound.kernel.parameters} | {a.name for a in bound.kernel.arrays} | set(plan.order)
    own = plan.rows, plan.columns
    around = tuple(tile_name(name, taken) for name in own)

    def tile(loops: tuple[str, ...], side: int) -> Tile:
        return Tile(loops, tuple(map(Const, plan.sizes(side, side))), bound.kernel.span)

    return (tile(own, warp), *(() if warp == block else (tile(around, block),)))
