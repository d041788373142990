"""Tiles of a product for every level of a machine, and the resulting time of each level.

On cores, nested tiles (`roofdsl.bounds.nested`) hold a block of the result in each level. On multiprocessors, the
result stays in registers for all steps: a warp holds a square of it, and a multiprocessor those of its warps. All
multiprocessors together hold a block as large as their number allows, and advance through the sum side by side. Each
block loads the operands that it needs once.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, isqrt
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.numbers import numbers
from roofdsl.machine.model import Machine, Multiprocessor
from roofdsl.sol.floor import REGISTER_BYTES, lower_bound

if TYPE_CHECKING:
    from roofdsl.bounds.bound import Bound
    from roofdsl.bounds.tiles import Tiling

CORE_REGISTERS_BYTES = 512
"""The size of a core's vector registers: 16 of 32 B, as in x86-64 with AVX2."""

MOST_REGISTERS = 255
"""The maximum number of registers of a thread on NVIDIA's multiprocessors."""

Times = tuple[tuple[str, Fraction], ...]
Sides = tuple[tuple[str, int, int], ...]


class Product(Record):
    """A product C[i, j] += A * B as the tiles see it. rows, columns, steps: the extents of i, j and of the sum.

    operand_bytes, result_bytes: of an element of A and B (the larger one), and of C.
    """

    bound: Bound
    plan: Tiling
    parameters: tuple[tuple[str, int], ...]
    rows: int
    columns: int
    steps: int
    operand_bytes: int
    result_bytes: int


def product_of(kernel: Kernel, parameters: tuple[tuple[str, int], ...]) -> Product | None:
    """The kernel as a product at its sizes; None if it is not one."""
    from roofdsl.bounds.tiles import NoTiling, extents_at, tiling

    bound = lower_bound(kernel)
    if bound is None:
        return None
    try:
        plan = tiling(bound)
        rows, columns, steps = extents_at(plan, numbers(kernel, dict(parameters)))
    except (NoTiling, CommandError):
        return None
    if rows is None or columns is None or steps is None or len(plan.order) != 3:
        return None
    operands = [a.type.bytes for a in kernel.arrays if not a.is_scalar and a.intent == "in"]
    results = [a.type.bytes for a in kernel.arrays if not a.is_scalar and a.intent != "in"]
    if not operands or not results:
        return None
    return Product(bound, plan, parameters, rows, columns, steps, max(operands), max(results))


def tiles(product: Product, machine: Machine) -> tuple[tuple[str, ...], Times] | None:
    """The `.roof` lines of the tiles and the seconds of each level; None if dependences or sizes forbid them."""
    own = machine.multiprocessor
    if own is not None and own.registers is not None and machine.units is not None:
        return _in_waves(product, machine, own, own.registers, machine.units)
    return _nested(product, machine)


def _nested(product: Product, machine: Machine) -> tuple[tuple[str, ...], Times] | None:
    """Blocks for the registers and each cache of a core; a cache no larger than the level in front adds none."""
    from roofdsl.bounds.nested import lines, most_loads, nested, nested_kernel
    from roofdsl.bounds.tiles import NoTiling, written

    p = product
    width = max(p.operand_bytes, p.result_bytes)  # for every element: blocks fit, and no fewer bytes move
    held = [CORE_REGISTERS_BYTES // width, *(c.size_bytes // width for c in machine.caches)]
    growing = [k for k, size in enumerate(held) if k == 0 or size > max(held[:k])]
    try:
        blocks = nested(p.plan, dict(p.parameters), [held[k] for k in growing])
        nested_kernel(p.bound, p.plan, blocks)  # raises if a dependence forbids the order
    except (NoTiling, CommandError):
        return None
    moved = []
    for block, loads in zip(blocks, most_loads(blocks, (p.rows, p.columns, p.steps)), strict=True):
        turns = 1 if block.steps is None else -(-p.steps // block.steps)
        moved.append((loads + p.rows * p.columns * turns) * width)  # loaded elements of the result are stored back
    inner = [sum(1 for level in growing if level <= k) - 1 for k in range(len(held))]
    return tuple(map(written, lines(p.bound, p.plan, blocks))), _times(machine, [moved[k] for k in inner])


def _in_waves(
    product: Product, machine: Machine, own: Multiprocessor, registers: int, units: int
) -> tuple[tuple[str, ...], Times] | None:
    """Squares of the result in the registers of a warp and of a multiprocessor, and a block for all multiprocessors.

    Half of the registers hold the result, the others operands and addresses. The first cache (or shared memory)
    supplies each warp with its operands, the caches behind it supply each multiprocessor, and the memory supplies the
    last cache with the operands that all multiprocessors need for the same steps.
    """
    p = product
    warp = _side(min(MOST_REGISTERS * own.warp, registers) * REGISTER_BYTES // 2, p.result_bytes, 8)
    block = _side(registers * REGISTER_BYTES // 2, p.result_bytes, warp)
    down = max(k for k in range(1, isqrt(units) + 1) if units % k == 0 or k == isqrt(units))
    wave = (down * block, units // down * block)
    levels = [(warp, warp), *((block, block) for _ in machine.caches[1:]), wave]
    once = p.rows * p.columns * p.result_bytes
    moved = [_streamed(p, rows, columns) + 2 * once for rows, columns in levels[: len(machine.caches) + 1]]
    return _wave_lines(p, block, warp), _times(machine, moved)


def _side(held_bytes: int, element_bytes: int, unit: int) -> int:
    """The side of the largest square of elements that fits, in whole units."""
    side = isqrt(held_bytes // element_bytes)
    return max(1, side // unit * unit)


def _streamed(p: Product, rows: int, columns: int) -> int:
    """The bytes of both operands for blocks of that size: each block needs its rows and columns of them once."""
    loads = p.rows * p.steps * ceil(p.columns / columns) + p.columns * p.steps * ceil(p.rows / rows)
    return loads * p.operand_bytes


def _wave_lines(p: Product, block: int, warp: int) -> tuple[str, ...]:
    """Tiles of a warp, and around them those of a multiprocessor, with the sum innermost."""
    from roofdsl.lang.scope import tile_name

    taken = {q.name for q in p.bound.kernel.parameters} | {a.name for a in p.bound.kernel.arrays} | set(p.plan.order)
    first = [tile_name(name, taken) for name in (p.plan.rows, p.plan.columns)]
    around = [] if warp == block else [f"tile {first[0]}, {first[1]} by {block}"]
    return (f"tile {p.plan.rows}, {p.plan.columns} by {warp}", *around)


def _times(machine: Machine, moved: list[int]) -> Times:
    """Seconds of each level for the bytes that cross its boundary, the nearest first."""
    levels = [(c.name, c.bandwidth_bytes_per_s) for c in machine.caches]
    levels.append((machine.main_memory.name, machine.main_memory.bandwidth_bytes_per_s))
    return tuple((name, Fraction(m) / rate) for (name, rate), m in zip(levels, moved, strict=True))
