"""The best replacement, which knows the future: of the lines in a set, the one whose next use is latest leaves.

No replacement misses less often (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM
Systems Journal 5(2), 1966, algorithm MIN; proved by Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage
hierarchies", IBM Systems Journal 9(2), 1970). It counts misses, not bytes: write-backs follow from it, and a
replacement that also avoids those is a hard problem (Beckmann, Gibbons, Haeupler, McGuffey, "Writeback-aware caching",
APOCS 2020). Of several lines that are never used again, the one used last leaves first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roofdsl.loops.model import Kernel
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.lru_traffic import DEFAULT_MEMORY_BYTES, Progress
from roofdsl.simulate.trace import CHUNK, Trace, trace_of

BYTES_PER_LINE = 5
"""A state, and a place among the lines that are never used again."""


@dataclass(frozen=True)
class BestTraffic:
    """The traffic of one execution. `misses` counts accesses, `stored` lines that are written back, including those of
    the final flush. A miss loads its line, unless it is one of those `begun_by_write` and the cache takes such lines
    without reading.
    """

    accesses: int
    misses: int
    begun_by_write: int
    stored: int
    register_bytes: int


def best_replacement(
    kernel: Kernel,
    params: Mapping[str, int],
    level: CacheLevel,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    progress: Progress | None = None,
) -> BestTraffic:
    """Simulate `kernel`, with its directives applied, at `params`, in one cache whose sets replace lines in this way.

    With `level.bypass`, the line of a miss itself may be the one whose next use is latest: the access then bypasses the
    cache, which keeps what it has. `progress` is called with the number of accesses so far while the trace is made, and
    with their total afterwards; its exceptions end the run. Raises CommandError for what `trace_of` refuses.
    """
    sets, ways = (1, level.lines) if level.ways is None else (level.sets, level.ways)
    trace = trace_of(
        kernel, params, level.line_bytes, sets=sets, bytes_per_line=BYTES_PER_LINE, memory_bytes=memory_bytes,
        progress=progress,
    )  # fmt: skip
    return _simulated(trace, ways, bypass=level.bypass, progress=progress)


def _simulated(trace: Trace, ways: int, *, bypass: bool, progress: Progress | None) -> BestTraffic:
    import numpy as np

    from roofdsl.simulate.compiled_best import (
        BEGUN_BY_WRITE,
        DIRTY,
        MISSES,
        STORED,
        TALLIES,
        levels_of,
        run_set,
    )
    from roofdsl.simulate.walk import first_call

    state = np.zeros(trace.lines, dtype=np.uint8)
    dead = np.empty(trace.lines, dtype=np.int32)
    longest = int(np.diff(trace.starts).max(initial=0))
    levels, size = levels_of(longest)
    words = np.zeros(size, dtype=np.uint32)
    tallies = np.zeros(TALLIES, dtype=np.int64)
    for s in range(len(trace.starts) - 1):
        first, end = int(trace.starts[s]), int(trace.starts[s + 1])
        held = np.zeros(2, dtype=np.int64)
        for start in range(first, end, CHUNK):
            with first_call(run_set):
                run_set(
                    trace.accesses, trace.next_use, first, start, min(start + CHUNK, end), ways, int(bypass), state,
                    dead, held, words, levels, tallies,
                )  # fmt: skip
            if progress is not None:
                progress(len(trace.accesses))
    flushed = int(np.count_nonzero((state & DIRTY != 0) & ~trace.temporary()))
    return BestTraffic(
        len(trace.accesses),
        int(tallies[MISSES]),
        int(tallies[BEGUN_BY_WRITE]),
        int(tallies[STORED]) + flushed,
        trace.register_bytes,
    )
