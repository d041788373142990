"""The two ways to simulate a fully associative LRU cache: line by line, and segment by segment.

Which of them is faster depends on the kernel. Both skip iterations that repeat; the first does so even if references to
one array move by different numbers of lines. In the second, a sweep of an inner loop costs the same however long it is,
and iterations that grow evenly can be skipped. Both can be stopped and continued, and give the same counts:
`lru_traffic.py`, the entry point, lets them take turns. Imports numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate import skip_repeats
from roofdsl.simulate.compiled_kernel import Program
from roofdsl.simulate.lru_list import ACCESSES, STEPS, STORED, TOTALS, TOUCHES, WRITTEN, run_lru
from roofdsl.simulate.skip_tables import prepare
from roofdsl.simulate.walk import RUNNING, STATUS, Cursor, cursor_of, first_call, is_compiled, tables_of

if TYPE_CHECKING:
    from roofdsl.simulate.segment_copies import Copies
    from roofdsl.simulate.segment_new_lines import Growth

Counts = NDArray[np.int64]
# The cost after which growing blocks are skipped: SOON if the code for that is compiled, LATE if not, since compiling
# takes a minute.
SOON, LATE = 1 << 22, 1 << 32


class Way(Protocol):
    """A simulation in progress. cost: the work so far, in units of about one simulated access; gave_up: it cannot be
    completed.
    """

    cursor: Cursor
    cost: int
    gave_up: bool

    @property
    def accesses(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def simulated(self) -> int: ...

    @property
    def done(self) -> bool: ...

    def continue_for(self, budget: int) -> None: ...

    def final_tallies(self) -> Counts: ...


class _Walk:
    """The common part of both methods: the tables of a program, the current position in it, and the counts."""

    def __init__(self, program: Program) -> None:
        layouts = program.layouts
        self.layouts = layouts
        self.tables = tables_of(program, [a.first for a in layouts], [a.per_line for a in layouts])
        self.cursor = cursor_of(program)
        self.tallies = np.zeros((len(layouts), 3), dtype=np.int64)
        self.totals = np.zeros(TOTALS, dtype=np.int64)
        self.cost = 0
        self.gave_up = False

    @property
    def accesses(self) -> int:
        return int(self.totals[ACCESSES])

    @property
    def steps(self) -> int:
        return int(self.totals[STEPS])

    @property
    def simulated(self) -> int:
        return int(self.totals[TOUCHES])

    @property
    def done(self) -> bool:
        return not self.gave_up and bool(self.cursor[7][STATUS] != RUNNING)


class ByLines(_Walk):
    """A list of lines; `cache_bytes` None is an unbounded cache."""

    def __init__(self, program: Program, cache_bytes: int | None, skip: bool) -> None:
        super().__init__(program)
        layouts, lines = program.layouts, program.lines
        self.sizes = np.array([a.line_bytes for a in layouts], dtype=np.int64)
        owner = np.repeat(np.arange(len(layouts), dtype=np.uint16), [a.count for a in layouts])
        links = np.empty((lines + 1 if cache_bytes is not None else 1, 2), dtype=np.int32)
        links[-1] = len(links) - 1
        self.state = np.zeros(lines, dtype=np.uint8)
        stamp = np.zeros(len(links), dtype=np.int32)  # one for each row of `links`
        self.capacity = -1 if cache_bytes is None else cache_bytes
        self.longest = max([1, *(a.line_bytes for a in layouts)])
        self.shared: tuple[Any, ...] = (links, self.state, stamp, owner, self.tallies, self.totals)
        self.skipping = prepare(program, self.cursor, cache_bytes, self.shared) if skip and cache_bytes else None

    def continue_for(self, budget: int) -> None:
        """Continues for about `budget` simulated accesses."""
        before, looked = self.simulated, 0
        if self.skipping is None:
            links, state, stamp, owner, tallies, totals = self.shared
            with first_call(run_lru):
                run_lru(
                    self.tables, self.cursor, budget, owner, self.sizes, self.capacity, self.longest, links, state,
                    stamp, tallies, totals,
                )  # fmt: skip
        else:
            with first_call(skip_repeats.run_skipping):
                looked = self.skipping(self.tables, self.cursor, budget, self.sizes, self.capacity)
        # Without any access, a call ends after `budget` steps, each of which costs about as much as an access.
        self.cost += max(budget, self.simulated - before + looked)

    def final_tallies(self) -> Counts:
        """The tallies at the end, when all dirty lines are stored except those of temporaries."""
        for k, a in enumerate(self.layouts):
            if a.array.intent != "temp":
                self.tallies[k, STORED] += np.count_nonzero(self.state[a.first : a.first + a.count] & WRITTEN)
        return self.tallies


class BySegments(_Walk):
    """A list of segments. until_growth: the cost after which blocks that grow are skipped, too."""

    def __init__(self, program: Program, cache_bytes: int) -> None:
        from roofdsl.simulate.segment_tables import repeating_blocks
        from roofdsl.simulate.segment_walk import empty_sweep
        from roofdsl.simulate.segments import empty_list

        super().__init__(program)
        self.tallies = np.zeros((len(self.layouts), 4), dtype=np.int64)
        self.blocks = repeating_blocks(program, self.cursor)
        self.cache = empty_list(cache_bytes // program.layouts[0].line_bytes, self.tallies)
        self.sweep = empty_sweep(_widest(program))
        self.program = program
        self.growth: tuple[Growth, Copies] | None = None
        self.until_growth: int | None = None

    @staticmethod
    def can(program: Program, cache_bytes: int) -> bool:
        """Whether all lines have one size, and the cache has room for the lines of all references of a piece of
        straight-line code.
        """
        sizes = {a.line_bytes for a in program.layouts}
        return len(sizes) == 1 and cache_bytes // min(sizes) >= _widest(program)

    @staticmethod
    def are_compiled() -> bool:
        """Whether the code for segments is compiled already, which takes half a minute."""
        from roofdsl.simulate.segment_skip import run_skipping

        return is_compiled(run_skipping)

    def continue_for(self, budget: int) -> None:
        """Continues for about as long as `budget` simulated accesses take."""
        from roofdsl.simulate.segment_skip import run_skipping
        from roofdsl.simulate.segments import TOO_SMALL, WORK

        own = (self.totals, self.sweep, self.cache, self.blocks)
        if self.until_growth is None and self.cost >= SOON:
            from roofdsl.simulate.segment_growth import run_growing

            self.until_growth = SOON if is_compiled(run_growing) else LATE
        if self.growth is None and self.until_growth is not None and self.cost >= self.until_growth:
            from roofdsl.simulate.segment_tables import growth_of, repeating_starts

            copies = repeating_starts(self.program, self.cursor, self.cache, self.blocks)
            self.growth = growth_of(self.tables, self.cursor, *own), copies
        if self.growth is None:
            with first_call(run_skipping):
                run_skipping(self.tables, self.cursor, budget, *own)
        else:
            from roofdsl.simulate.segment_growth import run_growing

            with first_call(run_growing):
                run_growing(self.tables, self.cursor, budget, *own, *self.growth)
        self.cost = int(self.cache.notes[WORK])
        self.gave_up = bool(self.cache.notes[TOO_SMALL])

    def final_tallies(self) -> Counts:
        """The tallies at the end, when all dirty lines are stored except those of temporaries."""
        from roofdsl.simulate.segments import LEFT, store_rest

        dropped = np.array([a.array.intent == "temp" for a in self.layouts], dtype=np.bool_)
        store_rest(self.cache, dropped)
        self.tallies[:, STORED] += self.tallies[:, LEFT]
        return self.tallies[:, :LEFT]


def _widest(program: Program) -> int:
    return max((count for _, count in program.groups), default=1)
