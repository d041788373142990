"""Q(Z) by simulation, the entry point: every access of a kernel through a fully associative LRU cache of Z bytes.

docs/rules.md has the conventions. `lru_engines.py` has the two methods, which take turns here: line by line
(`lru_list.py`), and by segments (`segments.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Array, Kernel, Traffic
from roofdsl.loops.streams import streamed_bytes_at
from roofdsl.simulate.compiled_kernel import Program, compile_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roofdsl.simulate.lru_engines import Way

CHUNK = 1 << 18
# The cost after which segments are tried in addition to lines: LATER if the code for that has yet to be compiled.
ALONE, LATER = CHUNK, 1 << 24
BEHIND = 8  # how many times as long the preferred method runs
FAR = 2  # how many times as many accesses per cost the first method must have made to be preferred
FAIR = 1 << 28  # and how much the second must have cost: it may be slow at first, when sweeps are short
BYTES_PER_LINE = 15  # two links and a stamp of 4 bytes each, an owner of 2, a state of 1
DEFAULT_MEMORY_BYTES = 2 << 30

Progress = Callable[[int], None]


class TooManyAccesses(CommandError):
    """The simulation reached the number of accesses at which it was told to stop."""


class TooManyLines(CommandError):
    """The tables of the simulation would need more memory than allowed."""


@dataclass(frozen=True)
class ArrayTraffic:
    """The residencies of one array's lines; `stored` counts those after which the line was written back."""

    array: Array
    line_bytes: int
    residencies: int
    begun_with_write: int
    stored: int


@dataclass(frozen=True)
class SimulatedTraffic:
    """The results of a simulation. Scalars (rule 8) are counted separately from the arrays, in bytes.

    streamed_bytes: those of stores that bypass the caches, a part of `stores` and `bytes`.

    simulated: the accesses that were simulated one by one; all others are known to repeat them, or are in a segment of
    accesses that counts as one. `once` does not distinguish loads from stores: `loads` and `stores` are None in it.
    """

    accesses: int
    simulated: int
    arrays: tuple[ArrayTraffic, ...]
    scalar_load_bytes: int
    scalar_store_bytes: int
    streamed_bytes: int = 0

    @property
    def misses(self) -> int:
        return sum(a.residencies for a in self.arrays)

    def loads(self, convention: Traffic) -> int | None:
        """Bytes loaded into fast memory."""
        if convention == "once":
            return None
        every = convention == "write_allocate"
        lines = ((a.residencies if every else a.residencies - a.begun_with_write) * a.line_bytes for a in self.arrays)
        return sum(lines) + self.scalar_load_bytes

    def stores(self, convention: Traffic) -> int | None:
        """Bytes stored from fast memory."""
        if convention == "once":
            return None
        return sum(a.stored * a.line_bytes for a in self.arrays) + self.scalar_store_bytes + self.streamed_bytes

    def bytes(self, convention: Traffic) -> int:
        """Q in bytes. In `once`, a scalar that is stored counts its size once."""
        loads, stores = self.loads(convention), self.stores(convention)
        if loads is None or stores is None:
            begun = sum(a.residencies * a.line_bytes for a in self.arrays)
            return begun + self.scalar_store_bytes + self.streamed_bytes
        return loads + stores


def simulate_lru(
    kernel: Kernel,
    params: Mapping[str, int],
    cache_bytes: int | None,
    line_bytes: int | None = None,
    *,
    max_accesses: int | None = None,
    max_walked: int | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    skip: bool = True,
    progress: Progress | None = None,
) -> SimulatedTraffic:
    """Simulate one execution of `kernel`, with its directives applied, at `params`, in all conventions at once.

    `cache_bytes` None is an unbounded cache; `line_bytes` None makes each element its own line. `skip`: iterations that
    repeat earlier ones on other lines are counted, not simulated (`skip_repeats.py`), and innermost loops are simulated
    as a whole where that is faster (`segment_walk.py`); the numbers are the same. `progress` is called with the number
    of accesses made so far several times a second, and its exceptions end the run.

    Raises CommandError for a missing parameter, a violated assumption, a line or cache that docs/rules.md, rule 10
    forbids, and an access outside its array; TooManyLines if no method's tables are small enough (line by line, at most
    `memory_bytes`); TooManyAccesses beyond `max_accesses` accesses, or as many iterations without an access, and beyond
    `max_walked` accesses simulated one by one.
    """
    program = compile_kernel(kernel, params, line_bytes)
    largest = max((a.line_bytes for a in program.layouts), default=0)
    if cache_bytes is not None and cache_bytes < largest:
        raise CommandError(f"a cache of {cache_bytes} B is smaller than a line of {largest} B")
    limits = _Limits(kernel.name, max_accesses, max_walked, progress)
    skip = skip and program.data is None  # with data, it is not known which iterations repeat others
    way = _first_to_end(_ways(program, cache_bytes, memory_bytes, skip, kernel.name), limits)
    check_inside(way.cursor, program, kernel.name)
    tallies = way.final_tallies()
    arrays = tuple(
        ArrayTraffic(a.array, a.line_bytes, *(int(x) for x in tallies[k])) for k, a in enumerate(program.layouts)
    )
    streamed = streamed_bytes_at(kernel, params)
    return SimulatedTraffic(way.accesses, way.simulated, arrays, *scalar_bytes(kernel), streamed)


@dataclass(frozen=True)
class _Limits:
    kernel: str
    max_accesses: int | None
    max_walked: int | None
    progress: Progress | None

    def check(self, ways: Sequence[Way], turns: int) -> None:
        """Reports progress after `turns` turns. Raises TooManyAccesses."""
        accesses, most = max(way.accesses for way in ways), self.max_accesses
        if self.progress is not None:
            self.progress(accesses)
        if most is not None and accesses > most:
            raise TooManyAccesses(f"kernel {self.kernel} makes more than {most} accesses at these sizes")
        if most is not None and max(way.steps - way.accesses for way in ways) > most:
            raise TooManyAccesses(f"kernel {self.kernel} makes more than {most} iterations without an access")
        # A turn ends after about CHUNK simulated accesses, or when looks for repetitions have cost about as much.
        walked = sum(way.simulated for way in ways)
        if self.max_walked is not None and (walked > self.max_walked or turns * CHUNK > 2 * self.max_walked):
            raise TooManyAccesses(
                f"kernel {self.kernel} does not repeat itself within {self.max_walked} accesses at these sizes"
            )


def _ways(
    program: Program, cache_bytes: int | None, memory_bytes: int, skip: bool, name: str
) -> Iterator[Callable[[], Way]]:
    """The methods that can simulate a program. Raises TooManyLines if there is none."""
    from roofdsl.simulate.lru_engines import ByLines, BySegments

    needed = program.lines * BYTES_PER_LINE
    fits = needed <= memory_bytes and program.lines < 2**31 - 1
    if fits:
        yield lambda: ByLines(program, cache_bytes, skip)
    if skip and cache_bytes is not None and BySegments.can(program, cache_bytes):
        yield lambda: BySegments(program, cache_bytes)
    elif not fits:
        raise TooManyLines(
            f"simulating kernel {name} at these sizes needs {needed} B for {program.lines} lines",
            f"the limit is {memory_bytes} B; use smaller sizes or longer lines",
        )


def _first_to_end(makers: Iterator[Callable[[], Way]], limits: _Limits) -> Way:
    """Lets the methods take turns until one is finished, the second only after some turns of the first.

    The second gets most of the turns, since each of its sweeps costs the same however long it is, and later sweeps are
    longer. If the first is far ahead, they share the turns evenly, and after some time the first gets most of them.
    Raises TooManyAccesses, and TooManyLines if every method gives up.
    """
    from roofdsl.simulate.lru_engines import BySegments

    rest = list(makers)
    ways = [rest.pop(0)()]
    alone = ALONE if not rest or BySegments.are_compiled() else LATER
    turns = 0
    while True:
        if rest and ways[0].cost > alone:
            ways.append(rest.pop(0)())
        running = [way for way in ways if not way.gave_up]
        if not running:
            raise TooManyLines(f"the tables for kernel {limits.kernel} would be too large at these sizes")
        first, last = running[0], running[-1]
        ahead = first.accesses * last.cost > FAR * last.accesses * first.cost
        favored = last if not ahead else first if last.cost > FAIR else None
        way = min(running, key=lambda way: way.cost * (1 if way is favored else BEHIND))
        way.continue_for(CHUNK)
        turns += 1
        limits.check(ways, turns)
        if way.done:
            return way


def check_inside(cursor: tuple[NDArray[np.int64], ...], program: Program, name: str) -> None:
    """Raise CommandError if a walk ended at an access outside its array."""
    from roofdsl.simulate.walk import CULPRIT, OUTSIDE, STATUS

    control = cursor[7]
    if control[STATUS] == OUTSIDE:
        array = program.layouts[control[CULPRIT]].array.name
        raise CommandError(f"kernel {name} accesses elements outside array {array} at these sizes")
