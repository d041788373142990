"""A launch of the generated CUDA with its numbers: what its threads run, its grid, and the threads of its warps.

`codegen.threads` decides which loops become threads, and `codegen.launch_grids` how many threads and blocks there are,
so that a prediction is about the code that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.model import Count, For, Kernel
from roofdsl.loops.transform import apply

if TYPE_CHECKING:
    from roofdsl.codegen.launch_grids import Call

ONE_THREAD = "no loop of the nest has independent iterations, so one thread runs it"


class AsLaunched(Record):
    """A launch. kernel: its statements as the threads run them, with the loops over threads outermost and marked
    parallel; None for a single thread, and if these loops need others around them.

    covered: the values that each dimension of the grid covers, x first; None if they are not known before the launch.
    loops, block: in each dimension, x first, the loop over threads, and the threads of a block along it; nothing for a
    single thread. most_blocks: of the grid, if the blocks join the parts of sums.
    """

    kernel: Kernel | None = None
    covered: tuple[range, ...] | None = ()
    loops: tuple[str, ...] = ()
    block: tuple[int, ...] = ()
    most_blocks: int | None = None

    def threads(self) -> Mapping[str, int]:
        """The threads of a block along each loop over threads, x first; nothing for a single thread."""
        return dict(zip(self.loops, self.block, strict=False))


def as_launched(call: Call, kernel: Kernel | None, env: Mapping[str, int]) -> AsLaunched | None:
    """The launch of `call` at the numbers `env` of parameters and the host's loops; None if it has no iterations.

    kernel: the statements as its threads run them.
    """
    from roofdsl.codegen.launch_grids import covered, launch_with_grid
    from roofdsl.codegen.threads import UNKNOWN
    from roofdsl.loops.integers import Const

    launch = launch_with_grid(call, env)
    if launch is None:
        return None
    names = iter(call.parallel)  # of a tile, the loop over tiles comes before the one within a tile
    within = tuple((next(names), next(names))[1] if dim.tiles else next(names) for dim in call.dims)
    known = all(dim.stop != Const(UNKNOWN) for dim in call.dims)
    return AsLaunched(kernel, covered(call, env) if known else None, within, launch.block, call.most_blocks)


def independent_loops(kernel: Kernel) -> dict[LoopId, int]:
    """The loops, of the kernel with its directives applied, that are proven or declared parallel (`generate`)."""
    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.codegen.generate import with_declared

    return with_declared(parallel_loops(kernel), apply(kernel).body)


def declares_threads(kernel: Kernel) -> bool:
    """Whether `kernel` begins with `parallel for`, so that it names the loops of its threads itself."""
    root = only_nest(apply(kernel))
    return root is not None and root.parallel


def only_nest(plain: Kernel) -> For | None:
    """The loop that is the whole body, but for `count` statements; None for any other body."""
    nodes = [node for node in plain.body if not isinstance(node, Count)]
    return nodes[0] if len(nodes) == 1 and isinstance(nodes[0], For) else None
