"""Q(Z) of every fully associative LRU cache at once: the histogram of stack distances, from one pass over a kernel.

Reads and writes have stack distances (Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies",
IBM Systems Journal 9(2), 1970), and so have write-backs (`stack.py`). Loads and stores are therefore exact at every Z,
even for lines of different sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.streams import streamed_bytes_at
from roofdsl.simulate.compiled_kernel import Program, compile_kernel
from roofdsl.simulate.lru_traffic import DEFAULT_MEMORY_BYTES, Progress, check_inside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 20
BYTES_PER_LINE = 80


@dataclass(frozen=True)
class MissCurve:
    """How misses, loads and stores fall with the size of the cache, which grows by its ways if it has `sets` > 1.

    `distance_bytes`, ascending: the cache sizes at which further accesses begin to hit. Each of the other arrays gives,
    for each size, the amount by which something falls there: misses (`count`), bytes of lines read first, of lines
    written first, and of lines stored. What misses in every cache is separate, in the `cold` numbers. For `temp`
    arrays, `dropped_bytes` at a size are the bytes of the lines that are dirty at the end in caches of at least that
    size, and dropped. streamed_bytes: those of stores that bypass the caches, a part of all stores.

    The methods raise CommandError for a cache of less than `smallest_bytes`.
    """

    accesses: int
    line_bytes: int | None
    sets: int
    smallest_bytes: int
    distance_bytes: NDArray[np.int64]
    count: NDArray[np.int64]
    read_bytes: NDArray[np.int64]
    written_bytes: NDArray[np.int64]
    stored_bytes: NDArray[np.int64]
    dropped_bytes: NDArray[np.int64]
    cold: tuple[int, int, int, int]
    scalar_load_bytes: int
    scalar_store_bytes: int
    streamed_bytes: int = 0

    def misses(self, cache_bytes: int | None) -> int:
        """Accesses that miss in a cache of that size (None: unbounded)."""
        return self.cold[0] + self._beyond(self.count, cache_bytes)

    def loads(self, cache_bytes: int | None, convention: Traffic) -> int | None:
        """Bytes loaded, as in `lru_traffic.SimulatedTraffic`; None in `once`."""
        if convention == "once":
            return None
        first_written = convention == "write_allocate"
        read = self.cold[1] + self._beyond(self.read_bytes, cache_bytes)
        written = self.cold[2] + self._beyond(self.written_bytes, cache_bytes)
        return read + (written if first_written else 0) + self.scalar_load_bytes

    def stores(self, cache_bytes: int | None, convention: Traffic) -> int | None:
        """Bytes stored; None in `once`."""
        if convention == "once":
            return None
        kept = self._beyond(self.dropped_bytes, cache_bytes) - int(self.dropped_bytes.sum())
        return self.cold[3] + self._beyond(self.stored_bytes, cache_bytes) + kept + self._always_stored

    def bytes(self, cache_bytes: int | None, convention: Traffic) -> int:
        """Q(Z) in bytes."""
        loads, stores = self.loads(cache_bytes, convention), self.stores(cache_bytes, convention)
        if loads is None or stores is None:
            first = self._beyond(self.read_bytes + self.written_bytes, cache_bytes)
            return self.cold[1] + self.cold[2] + first + self._always_stored
        return loads + stores

    def steps(self, convention: Traffic) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(sizes in bytes, Q from each size up to the next): every step of Q(Z), beginning with the smallest cache."""
        import numpy as np

        change = self.read_bytes.copy()
        if convention != "load_store":
            change += self.written_bytes
        if convention != "once":
            change += self.stored_bytes + self.dropped_bytes
        start = self.bytes(self.smallest_bytes, convention)
        inside = (self.distance_bytes > self.smallest_bytes) & (change != 0)
        sizes = np.concatenate([[self.smallest_bytes], self.distance_bytes[inside]]).astype(np.int64)
        values = start - np.concatenate([[0], np.cumsum(change[inside])]).astype(np.int64)
        return sizes, values

    @property
    def _always_stored(self) -> int:
        return self.scalar_store_bytes + self.streamed_bytes

    def _beyond(self, column: NDArray[np.int64], cache_bytes: int | None) -> int:
        if cache_bytes is None:
            return 0
        if cache_bytes < self.smallest_bytes:
            what = f"{self.sets} lines" if self.sets > 1 else "a line"
            raise CommandError(f"a cache of {cache_bytes} B is smaller than {what} of {self.smallest_bytes} B")
        import numpy as np

        return int(column[np.searchsorted(self.distance_bytes, cache_bytes, side="right") :].sum())


def miss_curve(
    kernel: Kernel,
    params: Mapping[str, int],
    line_bytes: int | None = None,
    *,
    sets: int = 1,
    progress: Progress | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> MissCurve:
    """One pass over `kernel`, with its directives applied, at `params`; one-element lines if `line_bytes` is None.

    The caches are fully associative, or have `sets` sets with any number of ways. They see arrays one after another,
    each from the start of a line, as in `hierarchy.simulate`. `progress` is called with the number of accesses made so
    far, and an exception such as KeyboardInterrupt then ends the run. Raises CommandError for the same reasons as
    `lru_traffic.simulate_lru`, for sets with lines of different sizes, and if the tables (of all lines) exceed
    `memory_bytes`.
    """

    program = compile_kernel(kernel, params, line_bytes)
    layouts = program.layouts
    # Distances are counted in units of the greatest common divisor of the lengths of lines, so that they are small.
    unit = gcd(*(a.line_bytes for a in layouts)) or 1
    _check(sets, {a.line_bytes for a in layouts})
    longest = sum(a.count * a.line_bytes // unit for a in layouts) if sets == 1 else -(-program.lines // sets)
    _check_memory(kernel, program.lines, longest, sets, memory_bytes)
    accesses, histogram, dropped = _one_pass(program, kernel.name, unit, longest, sets, progress)
    largest = max((a.line_bytes for a in layouts), default=1)
    return curve_of(
        kernel, params, histogram, dropped, unit, accesses=accesses, line_bytes=line_bytes, sets=sets, largest=largest
    )


def curve_of(
    kernel: Kernel,
    params: Mapping[str, int],
    histogram: NDArray[np.int64],
    dropped: NDArray[np.int64],
    unit: int,
    *,
    accesses: int,
    line_bytes: int | None,
    sets: int,
    largest: int,
) -> MissCurve:
    """The curve of a histogram with the columns of `stack.run_distances`, by distances in units of `unit` bytes.

    dropped: by the same distances, the lines of `temp` arrays that caches from that size on hold at the end, dirty, and
    then drop. The last row of both is for what no cache holds. largest: the bytes of the largest line.
    """
    import numpy as np

    some = np.nonzero(histogram[:-1].any(axis=1) | (dropped[:-1] != 0))[0]
    cold = [int(histogram[-1, c]) * (unit if c else 1) for c in range(4)]
    return MissCurve(
        accesses,
        line_bytes,
        sets,
        largest * sets,
        some * unit * sets,
        histogram[some, 0],
        histogram[some, 1] * unit,
        histogram[some, 2] * unit,
        histogram[some, 3] * unit,
        dropped[some] * unit,
        (cold[0], cold[1], cold[2], cold[3]),
        *scalar_bytes(kernel),
        streamed_bytes_at(kernel, params),
    )


def _one_pass(  # noqa: PLR0917
    program: Program, name: str, unit: int, longest: int, sets: int, progress: Progress | None
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """(accesses, histogram, dropped) of a whole execution; its rows are distances in units, up to `longest`.

    The columns of the histogram are those of `stack.run_distances`. Its last row holds the misses of every cache.
    """
    import numpy as np

    from roofdsl.simulate.stack import NEVER, run_distances
    from roofdsl.simulate.walk import RUNNING, STATUS, cursor_of, first_call, tables_of

    layouts, lines = program.layouts, program.lines
    weights = np.array([a.line_bytes // unit for a in layouts], dtype=np.int64)
    owner = np.repeat(np.arange(len(layouts), dtype=np.int64), [a.count for a in layouts])
    # There are twice as many times as lines, so they are renewed at most once in as many accesses as there are lines.
    room = 2 * -(-lines // sets) + (66 if sets == 1 else 18)
    trees = np.zeros((sets, room), dtype=np.int64)
    at = np.full((sets, room), -1, dtype=np.int64)
    last = np.zeros(lines, dtype=np.int64)
    written = np.full(lines, NEVER, dtype=np.int64)
    histogram = np.zeros((longest + 2, 4), dtype=np.int64)
    clocks = np.zeros((sets, 2), dtype=np.int64)
    tables = tables_of(program, [a.first for a in layouts], [a.per_line for a in layouts])
    cursor = cursor_of(program)
    accesses = 0
    while cursor[7][STATUS] == RUNNING:
        with first_call(run_distances):
            made, _ = run_distances(tables, cursor, CHUNK, weights, owner, trees, at, last, written, histogram, clocks)
        accesses += made
        if progress is not None:
            progress(accesses)
    check_inside(cursor, program, name)

    temporary = np.array([a.array.intent == "temp" for a in layouts], dtype=bool)
    dropped = np.zeros(longest + 2, dtype=np.int64)
    if temporary.any():
        _add_dropped(dropped, temporary, weights, owner, at, last, written, clocks)
    return accesses, histogram, dropped


def _check_memory(kernel: Kernel, lines: int, longest: int, sets: int, memory_bytes: int) -> None:
    """Raises CommandError if the tables for `lines` lines and distances up to `longest` exceed `memory_bytes`."""
    needed = lines * BYTES_PER_LINE + longest * 32 + (sets - 1) * 16 * 18
    if needed > memory_bytes:
        raise CommandError(
            f"the stack distances of kernel {kernel.name} at these sizes need {needed:,} B for {lines:,} lines",
            f"the limit is {memory_bytes:,} B; use smaller sizes or longer lines",
        )


def _add_dropped(  # noqa: PLR0917
    dropped: NDArray[np.int64],
    temporary: NDArray[np.bool_],
    weights: NDArray[np.int64],
    owner: NDArray[np.int64],
    times_of: NDArray[np.int64],
    last: NDArray[np.int64],
    written: NDArray[np.int64],
    clocks: NDArray[np.int64],
) -> None:
    """Adds to `dropped`, by distance, the weights of the dirty lines of `temporary` arrays that are held at the end.

    A cache that still holds such a line at the end never stores it. These are all caches that hold its place in the
    stack, and have held it since its last write. The other tables are those of `stack.run_distances`.
    """
    import numpy as np

    from roofdsl.simulate.stack import HELD, NEVER, NOW

    for k in range(len(clocks)):
        stack = _stack(times_of[k, 1 : int(clocks[k, NOW]) + 1], last)
        depth = np.cumsum(weights[owner[stack]])
        assert len(stack) == 0 or depth[-1] == clocks[k, HELD]
        own = temporary[owner[stack]] & (written[stack] != NEVER)
        np.add.at(dropped, np.maximum(depth[own], written[stack[own]]), weights[owner[stack[own]]])


def _check(sets: int, line_sizes: set[int]) -> None:
    if sets < 1:
        raise CommandError(f"a cache cannot have {sets} sets", "give a number from 1 on, such as --sets 64")
    if sets > 1 and len(line_sizes) > 1:
        raise CommandError("sets hold lines of one size, and the kernel has elements of several", "give a --line")


def _stack(touched: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lines of one set, the latest first, from `touched`, the line of each time; only a line's last time counts."""
    import numpy as np

    times = np.arange(1, len(touched) + 1)
    found = np.where((touched >= 0) & (last[np.maximum(touched, 0)] == times), touched, -1)
    return found[found >= 0][::-1]
