"""The order in which accesses reach each cache: sequentially, or by the thread blocks and waves of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.block_shape import USUAL_THREADS
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Cache, Machine
from roofdsl.predict.boundary import Boundary, one_of_several
from roofdsl.predict.occupancy import Block, occupancy

if TYPE_CHECKING:
    from roofdsl.counts.data_traffic import DataTraffic
    from roofdsl.loops.thread_blocks import Launch
    from roofdsl.predict.loops_as_launched import AsLaunched


class Orders(Record):
    """The orders of one launch of `kernel`. launch: its blocks; None if the loops run as written.

    how: the launch of the generated code, whose warps access the first cache; None if it is not known.
    resident: blocks on one multiprocessor at a time; units: multiprocessors; at_a_time: blocks of a wave. is_declared:
    whether the kernel states by `parallel for` which loops its threads run. counted: for a kernel with data, what one
    pass over all its accesses found.
    """

    kernel: Kernel
    launch: Launch | None = None
    resident: int = 1
    units: int = 1
    at_a_time: int = 1
    assumptions: tuple[str, ...] = ()
    is_declared: bool = True
    counted: DataTraffic | None = None
    how: AsLaunched | None = None

    def wave(self, cache: Cache) -> int | None:
        """The number of blocks that reach one copy of `cache` together: the wave, or the part of it that runs on the
        multiprocessors of this copy. None if every multiprocessor has a copy of its own.
        """
        if cache.copies > 1 and cache.copies >= self.units:
            return None
        return max(1, self.at_a_time // cache.copies)

    def behind(self, cache: Cache, at: Boundary) -> tuple[Kernel, Boundary]:
        """The part to count for the boundary behind `cache`: a multiprocessor's own copy serves its blocks, a shared
        cache the wave.

        Blocks that are resident together share their multiprocessor's copy equally.
        """
        if self.launch is None:
            return self.kernel, at
        from roofdsl.loops.thread_blocks import in_waves, on_one_copy

        wave = self.wave(cache)
        if wave is not None:
            return in_waves(self.launch, wave), replace(at, assumptions=one_of_several(cache))
        size = None if at.cache_bytes is None else max(at.cache_bytes // self.resident, at.line_bytes or 16)
        return on_one_copy(self.launch, at.line_bytes), replace(at, cache_bytes=size, assumptions=())


def orders_of(
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    block: Block | None = None,
    how: AsLaunched | str | None = None,
) -> Orders:
    """The order of accesses: by blocks and waves on a machine with multiprocessors, as the generated CUDA launches
    them.

    The threads of a block are those of the generated code, or of `block` if the kernel has no tiles. The number of
    resident blocks follows from the multiprocessor's limits, and from how many blocks the grid has. how: the launch, or
    why there is none (`predict.kernel_launches`); None to find it.
    """
    if machine.multiprocessor is None or not machine.caches:
        return Orders(kernel)  # without caches, the order does not matter
    from roofdsl.loops.thread_blocks import Grid, launch_of
    from roofdsl.predict.kernel_launches import the_launch
    from roofdsl.predict.loops_as_launched import ONE_THREAD, declares_threads

    if is_indirect(kernel):
        return in_loop_order(kernel, "data choose the accesses")
    if how is None:
        how = the_launch(kernel, values)
    if isinstance(how, str):
        return in_loop_order(kernel, how)
    if not how.loops:
        return in_loop_order(kernel, ONE_THREAD, how)
    wanted = block.threads if block is not None else USUAL_THREADS
    launch = None
    if how.kernel is not None and how.covered is not None:
        grid = Grid(how.loops, how.covered, how.most_blocks)
        launch = launch_of(how.kernel, values, wanted, grid)
    if launch is None:
        return in_loop_order(kernel, "bounds of the loops over threads depend on other loops", how)
    threads = min(launch.threads_of_block, wanted) if not launch.is_tiled else launch.threads_of_block
    own = Block(threads, block.registers if block else 0, block.shared_bytes if block else 0)
    try:
        found = occupancy(machine, own)
    except CommandError as error:
        return in_loop_order(kernel, error.message, how)
    units = machine.units or max((c.copies for c in machine.caches), default=1)
    in_grid = max(1, prod(launch.grid))
    # A small grid spreads over all multiprocessors, with fewer blocks on each.
    blocks = min(found.blocks, -(-in_grid // units))
    at_a_time = min(blocks * units, in_grid)
    used = min(units, in_grid)
    each = f"each of {used} multiprocessors" if used > 1 else "1 multiprocessor"
    note = (
        f"blocks of {threads:,} thread{'' if threads == 1 else 's'}, {blocks} at a time on {each}; "
        "the threads of a block and the blocks of a wave advance together"
    )
    is_declared = declares_threads(kernel)
    return Orders(kernel, launch, blocks, units, at_a_time, (note,), is_declared=is_declared, how=how)


def in_loop_order(kernel: Kernel, why: str, how: AsLaunched | None = None) -> Orders:
    """The order of the loops as written, with the reason why it is not the order of the launch."""
    return Orders(kernel, assumptions=(f"accesses counted in loop order, as if sequential: {why}",), how=how)
