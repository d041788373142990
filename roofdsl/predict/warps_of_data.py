"""Sectors that the warps of a GPU touch if data choose them: every access of the generated CUDA is followed, warp by
warp.

A warp is N consecutive threads of a block of the generated launch: iterations of the loop along x, and of the next
loops over threads where x has fewer than N. Its threads run the loops inside in step: the k-th iteration is executed
together by all threads that have at least k. A single thread makes one access at a time.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.codegen.cuda_kernels import launched
from roofdsl.codegen.generate import with_declared
from roofdsl.codegen.independent_loops import leaf_statements
from roofdsl.codegen.targets.cuda import Cuda
from roofdsl.counts.check_cache import check_cache
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized, sized
from roofdsl.matrices.points import distinct, touching, unfolded
from roofdsl.predict.loops_as_launched import as_launched


def warp_bytes_of_data(kernel: Kernel, params: Mapping[str, int], warp: int, sector_bytes: int) -> tuple[int, int]:
    """(loaded, stored) bytes in sectors, as `counts.warps.warp_bytes_at`, for a kernel with data.

    Raises CommandError for index arrays without values, and for too many executions to go through.
    """
    at = sized(kernel, params)
    check_cache(kernel, None, sector_bytes)
    blocks = _blocks(at, warp)
    loaded, stored = scalar_bytes(at.kernel)
    for touched in touching(at.kernel):
        placed = touched.placed
        points = unfolded(at, placed)
        # The bounds of a loop over threads are read outside of it.
        block = {name: n for name, n in blocks.get(id(placed.statement), {}).items() if name in points.turns}
        together = [points.turns[n.var] // block.get(n.var, 1) for n in placed.loops]
        if block:
            thread, stride = 0, 1  # a thread's number in its block, x first
            for name, threads in block.items():
                thread, stride = thread + stride * (points.turns[name] % threads), stride * threads
            together.append(thread // warp)
        for access in touched.accesses:
            per_sector = max(1, sector_bytes // access.element.array.type.bytes)
            sectors = points.flat(access.element, at.kernel, at.values) // per_sector
            moved = distinct([*together, sectors], points.number) * sector_bytes
            loaded, stored = (loaded, stored + moved) if access.is_write else (loaded + moved, stored)
    return loaded, stored


def _blocks(at: Sized, warp: int) -> dict[int, Mapping[str, int]]:
    """By statement (its identity): the threads of a block along each loop, x first; none for one thread."""
    found: dict[int, Mapping[str, int]] = {}
    for call in launched(Cuda(), at.kernel, with_declared({}, at.kernel.body)).calls():
        bounds = [e for dim in call.dims for e in (dim.start, dim.stop, dim.step)]
        how = as_launched(call, None, at.values) if all(e.symbols() <= at.values.keys() for e in bounds) else None
        block = dict.fromkeys(call.parallel[:1], warp) if how is None else how.threads()  # None: data bound the grid
        found |= {id(s): block for s in leaf_statements(call.nodes)}
    return found
