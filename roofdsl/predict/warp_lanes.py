"""The threads of a warp along each loop of a kernel, as its generated CUDA is launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofdsl.loops.block_shape import lanes
from roofdsl.loops.model import Kernel
from roofdsl.predict.kernel_launches import generated_calls

if TYPE_CHECKING:
    from roofdsl.codegen.launch_grids import Call


def warp_lanes(kernel: Kernel, values: Mapping[str, int], warp: int) -> Mapping[str, int] | None:
    """Threads of a warp along each loop that threads run; nothing if one thread runs the kernel.

    None if the kernel is not one launch at these values, or no CUDA is generated for it. Also None for a nest that only
    adds up scalars: its loops may be spread in any way, and published codes choose the one with contiguous accesses.
    """
    calls = [call for call in generated_calls(kernel) if call.parts is None]
    if len(calls) != 1:
        return None
    (call,) = calls
    if call.most_blocks is not None:
        return None
    return lanes_of(call, dict(kernel.constants) | dict(values), warp)


def lanes_of(call: Call, env: Mapping[str, int], warp: int) -> Mapping[str, int] | None:
    """Threads of a warp along each loop that the threads of a launch run; nothing for a single thread.

    None if the launch has no iterations, or if its grid depends on more than `env`.
    """
    from roofdsl.codegen.launch_grids import launch_with_grid

    if not all(e.symbols() <= env.keys() for d in call.dims for e in (d.start, d.stop, d.step)):
        return None
    launch = launch_with_grid(call, env)
    if launch is None:
        return None
    names = iter(call.parallel)  # of a tile, the loop over tiles comes before the one within a tile
    within = [(next(names), next(names))[1] if dim.tiles else next(names) for dim in call.dims]
    return dict(zip(within, lanes(launch.block, warp), strict=False))
