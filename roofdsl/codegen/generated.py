"""The result of code generation: the text, how to call it, and for CUDA what to launch in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from roofdsl.lang.types import ElementType
from roofdsl.loops.integers import Condition, IntExpr

Role = Literal["array", "scalar_in", "scalar_out", "parameter"]


@dataclass(frozen=True)
class Argument:
    """One argument, in the order of the call.

    role: `array` is a contiguous block of `dims` elements (column-major if the flag says so), a scalar_out is the
    address of one element (read as well as written), a scalar_in and a parameter are passed by value. `written` says
    whether the kernel may change it. `type` is None for a parameter, a 64-bit signed integer. Elements are stored in
    memory as `storage.STORAGE[type.name]`; a scalar_in of a reduced type (f16, bf16, f8, tf32) is passed as f32.
    """

    name: str
    role: Role
    type: ElementType | None = None
    dims: tuple[IntExpr, ...] = ()
    column_major: bool = False
    written: bool = False

    def shape(self, params: Mapping[str, int]) -> tuple[int, ...]:
        """The numbers of elements; (1,) for a scalar that is written, () for arguments passed by value."""
        if self.role == "scalar_out":
            return (1,)
        return tuple(d.evaluate(params) for d in self.dims)


@dataclass(frozen=True)
class Grid:
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
    host).

    dims: x, y, z; none for a single thread. shared_bytes: dynamic shared memory, in addition to what the text declares.
    parallel: the loops whose iterations are spread over threads.
    """

    function: str
    variables: tuple[str, ...]
    dims: tuple[Grid, ...]
    parallel: tuple[str, ...]
    shared_bytes: int = 0


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
    """A condition that the host evaluates."""

    condition: Condition
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]


Step = Call | HostLoop | HostIf

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""The largest grid of a launch, x, y and z."""


@dataclass(frozen=True)
class Launch:
    """A launch with its numbers: grid and block (x, y, z), dynamic shared bytes, extra 64-bit integer arguments."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Generated:
    """Source text and how to call it.

    function: the entry point; for CUDA, `launches` replaces it. sizes: parameters that are numbers in the text (they
    are arguments nevertheless) and must have these values.
    """

    kernel: str
    target: str
    variant: str
    source: str
    function: str
    arguments: tuple[Argument, ...]
    parallel: tuple[str, ...] = ()
    """The loops whose iterations are shared by cores or threads."""
    steps: tuple[Step, ...] | None = None
    """The steps of the host that launch it; None if it is one function to call."""
    sizes: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    def launches(self, params: Mapping[str, int]) -> Iterator[Launch]:
        """The launches, in order, at these values of all parameters; a launch without iterations is left out."""
        yield from _launches(self.steps or (), dict(params))


def _launches(steps: tuple[Step, ...], env: dict[str, int]) -> Iterator[Launch]:
    for step in steps:
        match step:
            case HostLoop(var, start, stop, stride, body):
                for value in range(start.evaluate(env), stop.evaluate(env), stride.evaluate(env)):
                    yield from _launches(body, {**env, var: value})
            case HostIf(condition, then, orelse):
                yield from _launches(then if condition.holds(env) else orelse, env)
            case Call():
                launch = _launch(step, env)
                if launch is not None:
                    yield launch


def _launch(call: Call, env: Mapping[str, int]) -> Launch | None:
    grid, block = [1, 1, 1], [1, 1, 1]
    for d, dim in enumerate(call.dims):
        start, stop, step = dim.start.evaluate(env), dim.stop.evaluate(env), dim.step.evaluate(env)
        trips = len(range(start, stop, step))
        if trips == 0:
            return None
        block[d] = dim.threads if dim.tiles else min(dim.threads, _power_of_two(trips))
        grid[d] = min(trips if dim.tiles else -(-trips // block[d]), MOST_BLOCKS[d])
    values = tuple(env[v] for v in call.variables)
    return Launch(call.function, (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]), call.shared_bytes, values)


def _power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()
