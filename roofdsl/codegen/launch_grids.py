"""CUDA launches: what the host does between them, and the grid and block of each at given sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from roofdsl.loops.affine import NotAffineError, Range, at_least, at_most, maximum
from roofdsl.loops.block_shape import block_of, grid_of
from roofdsl.loops.integers import Condition, Const, FloorDiv, IntExpr, add, mul, sub
from roofdsl.loops.model import For, Node


@dataclass(frozen=True)
class GridDimension:
    """One dimension of a launch: the iterations of a loop, with `threads` threads per block.

    tiles: the loop runs over tiles, with one iteration for each block; the threads run over the points of the tile.
    """

    start: IntExpr
    stop: IntExpr
    step: IntExpr
    threads: int
    tiles: bool = False


@dataclass(frozen=True)
class Call:
    """A `__global__` function to launch with the arguments, followed by the values of `variables` (of loops on the
    host), and by the number of parts if `parts` is given.

    dims: x, y, z; none for a single block of `threads`. shared_bytes: dynamic shared memory, in addition to what the
    text declares. parallel: the loops whose iterations are spread over threads. most_blocks: of all dimensions
    together; threads of a smaller grid take several iterations. parts: the launch whose blocks each stored a part of a
    sum; their number is 0 if that launch has no iterations. copied: the arrays and scalars of which each thread has its
    own copy. nodes: the statements of the kernel that it executes, without the host's loops around them, and without
    accesses to copies in registers. nest: the same as its threads run them, with the loops over threads outermost and
    marked parallel; None for a single block, and if these loops need others around them.
    """

    function: str
    variables: tuple[str, ...]
    dims: tuple[GridDimension, ...]
    parallel: tuple[str, ...]
    shared_bytes: int = 0
    threads: int = 1
    most_blocks: int | None = None
    parts: Call | None = None
    copied: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = field(default=(), compare=False, repr=False)
    nest: For | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class HostLoop:
    """A loop that the host runs: it launches its contents once per iteration."""

    var: str
    start: IntExpr
    stop: IntExpr
    step: IntExpr
    body: tuple[Step, ...]


@dataclass(frozen=True)
class HostIf:
    """A condition that the host evaluates.

    limits: for a choice between a launch with copies and steps without them, each part of the condition, with the
    reason why there can be no copies if that part does not hold.
    """

    condition: Condition
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]
    limits: tuple[tuple[Condition, str], ...] = ()


Step = Call | HostLoop | HostIf


def launches_at_most(steps: Sequence[Step]) -> IntExpr | None:
    """A number of launches that the steps do not exceed, from the parameters and the host's loops around them; None if
    the bounds of loops give none.
    """
    try:
        return _launches(steps, {})
    except NotAffineError:
        return None


def _launches(steps: Sequence[Step], ranges: Mapping[str, Range]) -> IntExpr:
    total: list[IntExpr] = []
    for step in steps:
        match step:
            case HostLoop(var, start, stop, _, body):
                inner = _launches(body, {**ranges, var: Range(start, stop)})
                total.append(mul(trips_at_most(step, ranges), inner))
            case HostIf(_, then, orelse):
                total.append(maximum(_launches(then, ranges), _launches(orelse, ranges)))
            case Call():
                total.append(Const(1))
    return add(*total)


def trips_at_most(loop: HostLoop | For, ranges: Mapping[str, Range]) -> IntExpr:
    """A number of iterations that a loop does not exceed where the variables of loops around it are in `ranges`.

    Raises NotAffineError if its bounds give none.
    """
    known = dict(ranges)
    length = sub(at_most(loop.stop, known), at_least(loop.start, known))
    if loop.step != Const(1):
        if loop.step.symbols() & ranges.keys():
            raise NotAffineError
        length = FloorDiv(add(length, loop.step, Const(-1)), loop.step)
    return maximum(length, Const(0))


@dataclass(frozen=True)
class Launch:
    """A launch with its numbers: grid and block (x, y, z), dynamic shared bytes, extra 64-bit integer arguments."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    values: tuple[int, ...]


def launches_of(steps: tuple[Step, ...], env: dict[str, int]) -> Iterator[Launch]:
    """The launches of `steps`, in order, where parameters and variables of host loops have the values `env`."""
    for step in steps:
        match step:
            case HostLoop(var, start, stop, stride, body):
                for value in range(start.evaluate(env), stop.evaluate(env), stride.evaluate(env)):
                    yield from launches_of(body, {**env, var: value})
            case HostIf(condition, then, orelse):
                yield from launches_of(then if condition.holds(env) else orelse, env)
            case Call():
                launch = launch_with_grid(step, env)
                if launch is not None:
                    yield launch


def launch_with_grid(call: Call, env: Mapping[str, int]) -> Launch | None:
    """The launch of a call, its grid and block chosen from the trip counts at `env`; None without iterations."""
    trips = [len(values) for values in covered(call, env)]
    if not all(trips):
        return None
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (call.threads,)
    if call.dims:
        usual = tuple(dim.threads for dim in call.dims)
        tiles = [dim.step.evaluate(env) if dim.tiles else None for dim in call.dims]
        block = block_of(usual, trips, tiles, joins_sums=call.most_blocks is not None)
        grid = grid_of(block, trips, tiles, call.most_blocks)
    values = tuple(env[v] for v in call.variables)
    if call.parts is not None:
        made = launch_with_grid(call.parts, env)
        values += (0 if made is None else prod(made.grid),)
    return Launch(call.function, _in_three(grid), _in_three(block), call.shared_bytes, values)


def covered(call: Call, env: Mapping[str, int]) -> tuple[range, ...]:
    """The values of the loop of each dimension of the grid, x first; of tiles, those of the loop over tiles."""
    return tuple(range(d.start.evaluate(env), d.stop.evaluate(env), d.step.evaluate(env)) for d in call.dims)


def _in_three(dimensions: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*dimensions, 1, 1)[:3]
    return x, y, z
