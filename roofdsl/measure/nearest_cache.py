"""The bandwidth between the registers and the nearest cache, from loads and stores in assembly.

Compiled streams give too little: their sums wait for their additions, and few of them load twice for each store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from roofdsl.loops.array_placement import PAGE
from roofdsl.measure.assembled import page_from
from roofdsl.measure.bandwidth_curve import Bandwidth
from roofdsl.measure.levels_found import Level
from roofdsl.measure.multicore_timing import Effort, Rate, rate
from roofdsl.measure.vector_loops import BUFFER_BYTES, move_loops

MOVES = "loads and stores of vectors"


def with_moves(levels: Sequence[Level], team: Sequence[int], effort: Effort) -> tuple[Level, ...]:
    """The levels, the first of them with at least the rate of loads and stores in assembly, of one core and of all."""
    nearest = levels[0]
    alone = moves_rate(team[:1], effort)
    together = alone if len(team) == 1 else moves_rate(team, effort)
    if alone is None or together is None:
        return tuple(levels)
    one_core, all_cores = _at_least(nearest.one_core, alone), _at_least(nearest.all_cores, together)
    return (replace(nearest, one_core=one_core, all_cores=all_cores), *levels[1:])


def moves_rate(team: Sequence[int], effort: Effort) -> Rate | None:
    """Bytes per second loaded and stored on all these cores at once, by the fastest loop; None if there is none."""
    import numpy as np

    buffers: list[Any] = [np.zeros(BUFFER_BYTES + PAGE, np.uint8) for _ in team]
    starts = [(page_from(b.ctypes.data),) for b in buffers]
    found = [rate(loop.loop, starts, loop.amount * len(team), team, effort) for loop in move_loops()]
    return max(found, key=lambda r: r.per_s, default=None)


def _at_least(width: Bandwidth, moves: Rate) -> Bandwidth:
    by_pattern = (*width.by_pattern, (MOVES, moves.per_s))
    if moves.per_s <= width.bytes_per_s:
        return replace(width, by_pattern=by_pattern)
    return replace(width, bytes_per_s=moves.per_s, fastest=MOVES, by_pattern=by_pattern, spread=moves.spread)
