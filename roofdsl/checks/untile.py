"""A kernel without its tile loops: the same executions in another legal order, for which a bound holds as well."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.checks.execution_order import uses
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import leaves
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Compare, Const, IntExpr, Min, Mod, Sym, add, sub
from roofdsl.loops.model import Assign, For, If, IntValue, Kernel, Let, Node, Tile
from roofdsl.loops.transform import nested


def untiled(kernel: Kernel) -> Kernel:
    """`kernel` (directives applied) with `for kk in range(a, z, b), k in range(kk, kk + b)` as `for k in range(a, z)`.

    This requires one perfect nest, an extent that is a multiple of the tile or cut off at z, a tile variable that is
    used nowhere else, and that tiling the result again is found legal. Otherwise the result is the kernel itself.
    Nested tiles are removed from the inside out.
    """
    while True:
        plain = _without_tiles(kernel)
        if plain is kernel:
            return kernel
        kernel = plain


def _without_tiles(kernel: Kernel) -> Kernel:
    if len(kernel.body) != 1 or not isinstance(kernel.body[0], For):
        return kernel
    nest = [kernel.body[0]]
    while len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], For):
        nest.append(inner)
    loops = list(nest)
    tiles: list[tuple[str, IntExpr]] = []
    # `for ii in range(0, n, b)` around `for i in range(ii, ii + b)` becomes `for i in range(0, n)`, in the place of the
    # inner loop, if nothing else uses ii.
    for over in nest:
        inside = next((loop for loop in loops if loop.start == Sym(over.var) and loop is not over), None)
        if inside is None or over.step == Const(1) or not _covers(kernel, over, inside):
            continue
        others = [loop for loop in loops if loop is not over and loop is not inside]
        needed = any(over.var in (loop.start.symbols() | loop.stop.symbols()) for loop in others)
        if needed or _used(nest[-1].body, over.var):
            continue
        whole = replace(inside, start=over.start, stop=over.stop)
        loops = [whole if loop is inside else loop for loop in loops if loop is not over]
        tiles.append((inside.var, over.step))
    if not tiles:
        return kernel
    plain = replace(kernel, body=nested(loops, nest[-1].body))
    if not _legal(plain, tiles):
        return kernel
    names = {name for _, size in tiles for name in size.symbols()}
    used = frozenset().union(*(loop.start.symbols() | loop.stop.symbols() for loop in loops))
    freed = names - used  # assumptions about tile sizes alone say nothing about the remaining loops
    return replace(plain, assumptions=tuple(a for a in kernel.assumptions if not a.symbols() & freed))


def _covers(kernel: Kernel, over: For, inside: For) -> bool:
    """Whether the tiles of `over` are whole or cut off at its stop."""
    end = add(Sym(over.var), over.step)
    if inside.step != Const(1):
        return False
    if isinstance(inside.stop, Min):
        own = set(inside.stop.terms) - {end}
        around = set(over.stops)
        return end in inside.stop.terms and own <= around and all(_ends_tile(over, stop) for stop in around - own)
    if affine(inside.stop) != affine(end):
        return False
    extent = affine(sub(over.stop, over.start)).expression()
    if isinstance(extent, Const) and isinstance(over.step, Const):
        return extent.value % over.step.value == 0
    return Compare("==", Mod(extent, over.step), Const(0)) in kernel.assumptions


def _ends_tile(over: For, stop: IntExpr) -> bool:
    """Whether a tile ends at `stop` when the tiles are themselves inside a tile: the cut-off does not cut a tile."""
    extent = affine(sub(stop, over.start)).expression()
    return isinstance(extent, Const) and isinstance(over.step, Const) and extent.value % over.step.value == 0


def _used(body: Sequence[Node], name: str) -> bool:
    """Whether a body of plain statements uses a variable; true if it holds anything else."""
    for node in body:
        if isinstance(node, (For, If)) or not isinstance(node, (Assign, Let)):
            return True
        integers = [s for use in uses(node) for s in use.subscripts]
        integers += [leaf.value for leaf in leaves(node.value) if isinstance(leaf, IntValue)]
        if any(name in e.symbols() for e in integers):
            return True
    return False


def _legal(kernel: Kernel, tiles: list[tuple[str, IntExpr]]) -> bool:
    from roofdsl.checks.legality import find_reversal

    directive = Tile(tuple(v for v, _ in tiles), tuple(b for _, b in tiles), kernel.span)
    reversed_, unknown = find_reversal(replace(kernel, directives=(directive,)), reductions=False)
    return reversed_ is None and unknown is None
