"""The work of each thread block of a launch, if its threads have different amounts: loops and conditions inside depend
on the thread, as in `for j in range(i + 1)` with i over threads.

A thread's work is the number of its accesses and operations as written, an assignment being one of these. The threads
of a warp run in step, so a warp takes as long as its longest thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.counts.integers_at_many_points import holds, value_of
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import accesses
from roofdsl.loops.block_shape import lanes
from roofdsl.loops.model import Count, For, If, Kernel, Node
from roofdsl.loops.streams import deciding

MOST_STEPS = 1 << 26
"""The largest number of values computed for one launch."""


class BlockWork(Record):
    """The work of the blocks of a launch in the order of their indices, x first.

    warps: of all warps of a block, each as long as its longest thread. longest: of the longest thread of a block. even:
    as warps, if each thread that is in the loops had the mean work. mean: the mean work of these threads. in_step:
    how many times as long as the mean of its threads a warp takes, over all warps.
    """

    warps: tuple[float, ...]
    longest: tuple[float, ...]
    even: tuple[float, ...]
    mean: float
    in_step: float


class _TooLong(Exception):
    """Counting would compute more values than MOST_STEPS."""


def block_work(  # noqa: PLR0917
    kernel: Kernel,
    values: Mapping[str, int],
    block: Mapping[str, int],
    trips: Sequence[int],
    warp: int,
    grid: Sequence[int],
) -> BlockWork | None:
    """The work of each block; None if all threads have the same work, none has any, or counting it takes too long.

    kernel: as its threads run it. block: threads of a block along each loop over threads; trips: iterations that the
    grid covers; grid: blocks; all x first. A thread whose number along a loop is r has the iterations r, r + (number of
    threads), and so on, from the loop's start on. Elements of index arrays must not decide about loops.
    """
    import numpy as np

    names = deciding(kernel.body)
    if not names & {*block}:
        return None
    shapes, ranks, inside = [], dict[str, Any](), np.ones((), dtype=bool)
    along = lanes(tuple(block.values()), warp)
    for d, (name, threads) in enumerate(block.items()):
        is_used = name in names
        turns = -(-trips[d] // (threads * grid[d])) if is_used else 1
        shapes.append((turns, grid[d], threads // along[d], along[d]) if is_used else (1, 1, 1, 1))
        axis = [1] * len(block)
        axis[-1 - d] = -1  # x last
        ranks[name] = np.arange(np.prod(shapes[-1])).reshape(axis)
        inside = inside & (ranks[name] < (trips[d] if is_used else 1))
    if inside.size > MOST_STEPS:
        return None
    columns = dict(kernel.constants) | dict(values)
    try:
        work = _Counting(ranks, inside.size).of(kernel.body, columns)
    except (_TooLong, OverflowError):
        return None
    of_threads = np.where(inside, np.asarray(work, dtype=float), 0.0)
    total, present = float(of_threads.sum()), float(inside.sum())
    if not total:
        return None
    warps, longest = _by_block(of_threads, shapes)
    even, _ = _by_block(inside * (total / present), shapes)
    lane_sums = _warps(inside.astype(float), shapes, np.sum) * _warps(of_threads, shapes, np.max)
    every = tuple(reversed(grid))
    of_warps, of_longest, alike = (tuple(np.broadcast_to(a, every).ravel().tolist()) for a in (warps, longest, even))
    return BlockWork(of_warps, of_longest, alike, total / present, float(lane_sums.sum()) / total)


def _warps(of_threads: Any, shapes: Sequence[tuple[int, ...]], together: Any) -> Any:
    """Axes by dimension, z first: blocks, warps of a block. Turns are added up; lanes are taken together."""
    split = of_threads.reshape([n for shape in reversed(shapes) for n in shape])
    number = len(shapes)
    turns, lane = tuple(4 * d for d in range(number)), tuple(3 * d + 2 for d in range(number))
    return together(split.sum(axis=turns), axis=lane)


def _by_block(of_threads: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[Any, Any]:
    """(the sum over the warps of each block, its longest thread), z first."""
    import numpy as np

    warps = _warps(of_threads, shapes, np.max)
    own = tuple(2 * d + 1 for d in range(len(shapes)))
    return warps.sum(axis=own), warps.max(axis=own)


class _Counting:
    """Work at many threads at once. ranks: the numbers of the threads along each loop over threads; size: how many
    there are in all.
    """

    def __init__(self, ranks: Mapping[str, Any], size: int) -> None:
        self._ranks, self._size, self._left = ranks, size, MOST_STEPS

    def of(self, nodes: Sequence[Node], columns: dict[str, Any]) -> Any:
        """The work of one execution of `nodes`. columns: the values of symbols."""
        import numpy as np

        found: Any = 0
        for node in nodes:
            self._left -= self._size
            if self._left < 0:
                raise _TooLong
            if isinstance(node, For):
                found = found + self._loop(node, columns)
            elif isinstance(node, If):
                is_true = holds(node.condition, columns)
                found = found + np.where(is_true, self.of(node.then, columns), self.of(node.orelse, columns))
            elif not isinstance(node, Count):
                found = found + len(accesses(node)) + 1
        return found

    def _loop(self, loop: For, columns: dict[str, Any]) -> Any:
        import numpy as np

        start, stop, step = (value_of(bound, columns) for bound in (loop.start, loop.stop, loop.step))
        if loop.var in self._ranks:
            value = start + self._ranks[loop.var] * step
            return np.where(value < stop, self.of(loop.body, {**columns, loop.var: value}), 0)
        trips = np.maximum(0, -((start - stop) // step))
        if loop.var not in deciding(loop.body):
            return trips * self.of(loop.body, columns)
        found: Any = 0
        for k in range(int(np.max(trips))):
            own = self.of(loop.body, {**columns, loop.var: start + k * step})
            found = found + np.where(k < trips, own, 0)
        return found
