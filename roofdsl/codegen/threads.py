"""Which loops of a nest become the threads of a CUDA launch, and how the nest is written for one of these threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from roofdsl.codegen.emitter import chain_of
from roofdsl.codegen.function_parts import all_elements
from roofdsl.codegen.independent_loops import runs_once
from roofdsl.codegen.launch_grids import GridDimension
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.affine import NotAffineError, Range, affine, at_least, at_most
from roofdsl.loops.block_shape import usual_block
from roofdsl.loops.integers import And, Compare, Condition, Const, Sym
from roofdsl.loops.model import For, If, Kernel, Node
from roofdsl.loops.thread_blocks import dimensions, tiles_around
from roofdsl.loops.transform import nested

UNKNOWN = 1 << 20
"""The number of iterations assumed if the bounds of a loop give no number before the launch."""


class Spread(Record):
    """A loop distributed over dimension 0, 1 or 2 (x, y, z) of `level`: grid (all threads), blocks, or threads."""

    loop: For
    dimension: int
    level: str


class Nest(Record):
    """A nest as one thread runs it: `root` begins with the loops over threads, outermost; `dims` are those of the
    launch. moved: the variables of the independent loops, of which at most three are spread.
    """

    root: For
    spread: tuple[Spread, ...]
    dims: tuple[GridDimension, ...]
    moved: tuple[str, ...] = ()


def plan_nest(
    kernel: Kernel, root: For, position: LoopId, free: Mapping[LoopId, int], near: Sequence[Node] | None = None
) -> Nest | None:
    """The nest that begins with `root` (at `position`), spread over threads; None if none of its loops may be spread.

    A nest that begins with `parallel for` names the loops itself, and the last of them runs along x. near: the
    statements whose accesses decide which loop runs along x in other nests, those of the nest if None.

    Loops whose iterations are independent in all executions within the nest are moved outside the other loops. If their
    bounds depend on those other loops, they run over all values that may be needed, and a condition inside enforces the
    bounds. Loops that never have a second iteration give no threads on their own, unless the kernel names them.
    """
    chain = list(chain_of(root))
    outside = len(position) - 1
    parallel = [loop for d, loop in enumerate(chain) if free.get((*position, *(0,) * d), len(position) + d) <= outside]
    if root.parallel:  # the kernel names the loops that its threads run
        parallel = list(takewhile(lambda loop: loop.parallel, chain))
    hoisted: list[For] = []
    guards: list[Condition] = []
    serial: list[For] = []
    ranges: dict[str, Range] = {}
    # Loops that move outside leave the serial ones around them: bounds that depend on those, such as j < i, have to be
    # widened to all of their values.
    for loop in chain:
        moved = _hoisted(loop, ranges) if any(loop is p for p in parallel) else None
        if moved is None:
            serial.append(loop)
            ranges[loop.var] = Range(loop.start, loop.stop)
            continue
        hoisted.append(moved)
        if (moved.start, moved.stop) != (loop.start, loop.stop):
            guards += [Compare("<=", e, Sym(loop.var)) for e in loop.starts]
            guards += [Compare("<", Sym(loop.var), e) for e in loop.stops]
    if not root.parallel and all(map(runs_once, hoisted)):
        return None
    body: tuple[Node, ...] = chain[-1].body
    if guards:
        body = (If(And(tuple(guards)), body, (), chain[-1].span),)
    body = nested(serial, body)
    along = None if root.parallel else neighbours(chain[-1].body if near is None else near)
    chosen = _dimensions(hoisted, along)
    nest: list[For] = []
    for loop in reversed(hoisted):
        nest.insert(0, replace(loop, body=body))
        body = (nest[0],)
    spread = tuple(Spread(nest[hoisted.index(s.loop)], s.dimension, s.level) for s in chosen)
    variables = tuple(loop.var for loop in hoisted)
    return Nest(nest[0], spread, _grid_dimensions(chosen, hoisted + serial), variables)


def loops_of_threads(nest: Nest) -> For | None:
    """The nest with the loops over threads outermost, in the order of the code, and marked parallel.

    None if the bounds of one of them depend on a loop that each thread runs.
    """
    spread = {id(s.loop) for s in nest.spread}
    chain = list(chain_of(nest.root))
    band, inside = [n for n in chain if id(n) in spread], [n for n in chain if id(n) not in spread]
    if any((loop.start.symbols() | loop.stop.symbols()) & {n.var for n in inside} for loop in band):
        return None
    marked = [*(replace(loop, parallel=True) for loop in band), *(replace(loop, parallel=False) for loop in inside)]
    (root,) = nested(marked, chain[-1].body)
    assert isinstance(root, For)
    return root


def _hoisted(loop: For, ranges: dict[str, Range]) -> For | None:
    """The loop with bounds that cover all values of the serial loops `ranges`; None if there are no such bounds."""
    needed = (loop.start.symbols() | loop.stop.symbols() | loop.step.symbols()) & ranges.keys()
    if not needed:
        return loop
    if loop.step != Const(1):
        return None
    try:
        return replace(loop, start=at_least(loop.start, ranges), stop=at_most(loop.stop, ranges))
    except NotAffineError:
        return None


def _dimensions(loops: Sequence[For], along: Mapping[str, int] | None) -> list[Spread]:
    """Dimensions for at most three loops. along: the contiguous accesses along each loop; the loop with the most gets
    x. If None, the last loop gets it.

    Of a loop over tiles and the loop inside its tile, the first is distributed over blocks, the second over their
    threads.
    """
    tile_of = tiles_around(loops)
    tiles = {t.var for t in tile_of.values()}
    points = [loop for loop in loops if loop.var not in tiles]
    fastest = max(reversed(points), key=lambda loop: (along or {}).get(loop.var, 0))
    ordered = [fastest, *(loop for loop in reversed(points) if loop is not fastest)]
    spread = []
    for dimension, (tile, loop) in enumerate(dimensions(ordered, tile_of)):
        if tile is None:
            spread.append(Spread(loop, dimension, "grid"))
        else:
            spread += [Spread(tile, dimension, "blocks"), Spread(loop, dimension, "threads")]
    return spread


def neighbours(body: Sequence[Node]) -> dict[str, int]:
    """For each variable, the number of accesses that move to a neighboring element in memory if it grows by one."""
    found: dict[str, int] = {}
    for e in all_elements(body):
        form = affine(e.subscripts[0 if e.array.column_major else -1])
        for name, coefficient in form.coefficients().items():
            if abs(coefficient) == 1:
                found[name] = found.get(name, 0) + 1
    return found


def _grid_dimensions(spread: Sequence[Spread], loops: Sequence[For]) -> tuple[GridDimension, ...]:
    """The dimensions of the launch, from loop bounds without loop variables; 0 to UNKNOWN if there are none."""
    ranges = {loop.var: Range(loop.start, loop.stop) for loop in loops}
    used = [s for s in spread if s.level != "threads"]
    sizes = usual_block(len(used))
    found = []
    for s in sorted(used, key=lambda s: s.dimension):
        others = {v: r for v, r in ranges.items() if v != s.loop.var}
        try:
            start, stop = at_least(s.loop.start, others), at_most(s.loop.stop, others)
        except NotAffineError:
            start, stop = Const(0), Const(UNKNOWN)
        found.append(GridDimension(start, stop, s.loop.step, sizes[s.dimension], s.level == "blocks"))
    return tuple(found)
