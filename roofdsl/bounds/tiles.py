"""Tiles that come near the bound: a block of the running values is held while the other two operands stream past it.

For a product (three loops, each operand on two of them) the optimum of the bound shows how: fast memory is full of
running values C[i, j], a square of them, and each step of the third loop needs a column of one operand and a row of the
other (Smith et al. 2019; the multiply-add of one step is an outer product). Under LRU, consider a tile of b_i x b_j
with the loops inside a tile in the order k, i, j. It hits wherever it can if and only if

    (b_i + 2) (b_j + 1) <= S + 1:

between two updates of an element C[i, j] lie the tile's other elements, b_i + 1 elements of the column (those below
from this step, those above from the next) and two rows of b_j. It needs |V| (1/b_i + 1/b_j) + |C| loads, against 2 |V|
/ sqrt(S). The blocked textbook product, with three square blocks in fast memory, moves sqrt(3) times the bound.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

import sympy

from roofdsl.bounds.bound import Bound
from roofdsl.bounds.counting import count
from roofdsl.bounds.exponents import echelon
from roofdsl.checks.legality import find_reversal
from roofdsl.formulas.sympy_forms import expression, parameter
from roofdsl.lang import tree
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.integers import Const
from roofdsl.loops.load import READERS
from roofdsl.loops.model import For, Kernel, Node, Order, Tile
from roofdsl.loops.transform import apply


@dataclass(frozen=True)
class Tiling:
    """How to tile: the `order` of all loops first, then the two tiled ones (rows, columns). shape: the side of a square
    tile (sympy).

    loads: of the tiled kernel under LRU, if tiles divide the extents. extents: iterations of rows, columns and the loop
    whose steps stream past; None if its stop is not a parameter or a number. strides: the steps of these loops, by
    which a `tile` line has the sides multiplied.
    """

    order: tuple[str, ...]
    rows: str
    columns: str
    shape: Any
    loads: Any
    extents: tuple[Any, ...]
    strides: tuple[int, ...] = (1, 1, 1)

    def sizes(self, b_i: int, b_j: int) -> tuple[int, int]:
        """What a `tile` line says for a tile of that many iterations."""
        return self.strides[0] * b_i, self.strides[1] * b_j


NO_PRODUCT = "closed-form tiles are known only for a product of two operands in three loops"


SAMPLE = 4
"""The side, in iterations, of the tile with which `tiling` finds out whether the loops can be tiled at all."""


class NoTiling(Exception):
    """No tiles are known for the kernel's loops, or they do not allow them; the message says why."""


def tiling(bound: Bound) -> Tiling:
    """The tiling of a kernel that is one perfect nest of a product. Raises NoTiling, also where dependences or the
    bounds of its loops forbid the tiling.
    """
    plan = _planned(bound)
    why = _refusal(bound, lines(bound, plan, SAMPLE, SAMPLE))
    if why:
        raise NoTiling(why)
    return plan


def _planned(bound: Bound) -> Tiling:
    """The order and tiles that the form of the bound suggests. Raises NoTiling if it is not that of a product."""
    if bound.partition is None:
        raise NoTiling("tiles are derived only where the partition argument applies")
    loops = perfect_nest(bound.plain)
    allowed = bound.partition.parts[0]
    slots = allowed.piece.slots
    core = [loop.var for k, loop in enumerate(loops) if any(s.lost != () and _loses(s.lost, k) for s in slots)]
    # A[i, k] is the same for all j: each operand of a product loses the direction of one loop, and each loop is lost by
    # one operand.
    units = {v: echelon([[int(v == loop.var) for loop in loops]]) for v in core}
    if len(core) != 3 or len(slots) != 3 or sorted(s.lost for s in slots) != sorted(units.values()):
        raise NoTiling(NO_PRODUCT)
    held = next((s for s in slots if s.running), None)
    if held is None:
        raise NoTiling("no operand is a running value that a tile could keep")
    # The held operand, C[i, j], stays the same along k: that loop streams the others past it.
    stream = next(v for v in core if units[v] == held.lost)
    rows, columns = [v for v in core if v != stream]
    outer = tuple(loop.var for loop in loops if loop.var not in core)
    size = bound.size
    shape = (sympy.sqrt(4 * size + 5) - 3) / 2  # the b with (b + 2) (b + 1) = S + 1
    flow = bound.flow
    assert flow is not None
    executions = flow.statements[0].domain
    total = expression(count(flow, executions))
    held_size = expression(count(flow, _shadow(executions, [loop.var for loop in loops].index(stream))))
    over = [loop for v in (rows, columns, stream) for loop in loops if loop.var == v]
    strides = tuple(loop.step.value for loop in over if isinstance(loop.step, Const))
    if len(strides) < 3:
        raise NoTiling("the step of one of its loops is not a number")
    loads = 2 * total / shape + held_size
    order = (*outer, stream, rows, columns)
    return Tiling(order, rows, columns, shape, loads, tuple(map(_extent, over, strides)), strides)


def perfect_nest(kernel: Kernel) -> list[For]:
    """The loops of a kernel that is one statement in three loops or more. Raises NoTiling for any other."""
    body: tuple[Node, ...] = kernel.body
    loops: list[For] = []
    while len(body) == 1 and isinstance(inner := body[0], For):
        loops.append(inner)
        body = inner.body
    if len(body) != 1:
        raise NoTiling("`tile` needs one perfect nest around a single statement")
    if len(loops) < 3:
        raise NoTiling(NO_PRODUCT)
    return loops


def _loses(lost: Any, dimension: int) -> bool:
    return any(vector[dimension] for vector in lost)


def _shadow(executions: Any, dimension: int) -> Any:
    import islpy as isl

    return executions.reset_tuple_id().project_out(isl.dim_type.set, dimension, 1)


def _extent(loop: For, step: int) -> Any:
    """The loop's iterations if it starts at 0 and stops at a parameter or number; else None."""
    if loop.start != Const(0):
        return None
    text = str(loop.stop)
    if not (text.isdigit() or text.isidentifier()):
        return None
    stop = sympy.Integer(int(text)) if text.isdigit() else parameter(text)
    return sympy.ceiling(stop / step)


def sides(elements: int, rows: int | None = None, columns: int | None = None) -> tuple[int, int]:
    """(b_i, b_j): the tile that fits S = `elements` with the fewest loads per execution; the extents may be unknown.

    The last tiles of an extent may be partial: what counts is the number of tiles.
    """
    square = max(1, (isqrt(4 * elements + 5) - 3) // 2)
    best: tuple[float, int, int] | None = None
    for b_i in range(max(1, square // 2), 2 * square + 3):
        if rows is not None:
            b_i = min(b_i, rows)  # noqa: PLW2901
        b_j = max(1, (elements + 1) // (b_i + 2) - 1)
        if columns is not None:
            b_j = min(b_j, columns)
        per_row = 1 / b_j if columns is None else -(-columns // b_j) / columns
        per_column = 1 / b_i if rows is None else -(-rows // b_i) / rows
        cost = per_row + per_column
        if best is None or cost < best[0] - 1e-12:
            best = (cost, b_i, b_j)
    assert best is not None
    return best[1], best[2]


def lines(bound: Bound, plan: Tiling, b_i: int, b_j: int) -> tuple[Order | Tile, ...]:
    """The `order` and `tile` lines of one level of tiles."""
    span = bound.plain.span
    return Order(plan.order, span), Tile((plan.rows, plan.columns), tuple(map(Const, plan.sizes(b_i, b_j))), span)


def tiled(bound: Bound, plan: Tiling, b_i: int, b_j: int) -> Kernel:
    """The kernel with `order` and `tile` lines added. Raises CommandError if dependences or bounds forbid it."""
    return tiled_by(bound, lines(bound, plan, b_i, b_j))


def tiled_by(bound: Bound, directives: tuple[Order | Tile, ...]) -> Kernel:
    """The kernel with these lines. Raises CommandError if dependences or bounds forbid them."""
    why = _refusal(bound, directives)
    if why:
        raise CommandError(f"kernel {bound.plain.name} cannot be tiled this way: {why}")
    return replace(bound.plain, directives=directives)


def _refusal(bound: Bound, directives: tuple[Order | Tile, ...]) -> str:
    """Why the kernel cannot have these lines; empty if it can."""
    changed = replace(bound.plain, directives=directives)
    try:
        apply(changed)
        found, unknown = find_reversal(changed)
    except InputError as error:
        return error.diagnostics[0].message
    if found is not None:
        return f"with `{written(directives[0])}` and tiles, a dependence would be reversed"
    return "" if unknown is None else "it is not known whether the dependences allow it"


def source_of(bound: Bound, directives: tuple[Order | Tile, ...]) -> str:
    """The kernel with these lines as canonical `.roof` text. Raises CommandError as `tiled_by` does."""
    from roofdsl.lang.format import format_source
    from roofdsl.lang.parse import parse

    if bound.untiled or bound.kernel.directives:
        message = f"kernel {bound.kernel.name} is already tiled, by its loops or its directives"
        raise CommandError(message, "remove the tiles, and `--apply` writes new ones")
    tiled_by(bound, directives)
    source = bound.kernel.source
    if os.path.splitext(source.name)[1] in READERS:
        help = f"write it as .roof first: roofdsl convert {source.name}:{bound.kernel.name} -o {bound.kernel.name}.roof"
        raise CommandError(f"`--apply` changes the text of a .roof file, and `{source.name}` is not one", help)
    text = source.text.splitlines()
    (found,) = [
        item for item in parse(source).items if isinstance(item, tree.Kernel) and item.name.text == bound.kernel.name
    ]
    first = next(i for i in found.body if isinstance(i, tree.For))
    indent = " " * (first.span.column - 1)
    changed = [
        *text[found.span.line - 1 : first.span.line - 1],
        *(indent + written(line) for line in directives),
        *text[first.span.line - 1 : found.span.end_line],
    ]
    return format_source(Source(source.name, "\n".join(changed) + "\n"))


def written(line: Order | Tile) -> str:
    """A line as it appears in a file."""
    loops = ", ".join(line.loops)
    if isinstance(line, Order):
        return f"order {loops}"
    sizes = list(dict.fromkeys(map(str, line.sizes)))
    return f"tile {loops} by {', '.join(sizes if len(sizes) == 1 else map(str, line.sizes))}"


def sides_at(plan: Tiling, params: Mapping[str, int], elements: int) -> tuple[int, int]:
    """`sides` for the extents at `params`, as far as these are known."""
    rows, columns, _ = extents_at(plan, params)
    return sides(elements, rows, columns)


def extents_at(plan: Tiling, params: Mapping[str, int]) -> tuple[int | None, int | None, int | None]:
    """Trip counts of the loops over rows, columns and steps at `params`; None if they are unknown."""
    values = {parameter(n): v for n, v in params.items()}
    found = [None if e is None else e.subs(values) for e in plan.extents]
    rows, columns, steps = [int(v) if v is not None and v.is_Integer else None for v in found]
    return rows, columns, steps
