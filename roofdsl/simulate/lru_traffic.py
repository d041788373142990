"""Q(Z) by simulation: a fully associative LRU of Z bytes over every access of a kernel (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Array, Kernel, Traffic
from roofdsl.simulate.compiled_kernel import Program, compile_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 20
BYTES_PER_LINE = 15  # two links and a stamp of 4 bytes each, an owner of 2, a state of 1
DEFAULT_MEMORY_BYTES = 2 << 30


class TooManyAccesses(CommandError):
    """The simulation reached the number of accesses at which it was told to stop."""


class TooManyLines(CommandError):
    """The tables of the simulation would need more memory than allowed."""


@dataclass(frozen=True)
class ArrayTraffic:
    """The residencies of one array's lines; `stored` counts those in which the line was written and had to be kept."""

    array: Array
    line_bytes: int
    residencies: int
    begun_with_write: int
    stored: int


@dataclass(frozen=True)
class SimulatedTraffic:
    """The results of a simulation. Scalars (rule 8) are counted separately from the arrays, in bytes.

    simulated: the accesses that were simulated one by one; all others are known to repeat them. `once` does not
    distinguish loads from stores: `loads` and `stores` are None in it.
    """

    accesses: int
    simulated: int
    arrays: tuple[ArrayTraffic, ...]
    scalar_load_bytes: int
    scalar_store_bytes: int

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
        return sum(a.stored * a.line_bytes for a in self.arrays) + self.scalar_store_bytes

    def bytes(self, convention: Traffic) -> int:
        """Q in bytes. In `once`, a scalar that is stored counts its size once."""
        loads, stores = self.loads(convention), self.stores(convention)
        if loads is None or stores is None:
            return sum(a.residencies * a.line_bytes for a in self.arrays) + self.scalar_store_bytes
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
    progress: Callable[[int], None] | None = None,
) -> SimulatedTraffic:
    """Simulate one execution of `kernel`, with its directives applied, at `params`, in all conventions at once.

    `cache_bytes` None is an unbounded cache; `line_bytes` None makes each element its own line. `skip`: iterations that
    repeat earlier ones on other lines are counted, not simulated (`skip_repeats.py`); the numbers are the same.
    `progress` is called with the number of accesses made so far several times a second, and its exceptions end the run.
    Raises CommandError for a missing parameter, a violated assumption, a line or cache that docs/rules.md, rule 10
    forbids, and an access outside its array; TooManyLines for tables larger than `memory_bytes`; TooManyAccesses beyond
    `max_accesses` accesses, or as many iterations without any, and beyond `max_walked` accesses that are simulated one
    by one.
    """
    program = compile_kernel(kernel, params, line_bytes)
    from roofdsl.simulate.lru_list import ACCESSES, TOUCHES

    largest = max((a.line_bytes for a in program.layouts), default=0)
    if cache_bytes is not None and cache_bytes < largest:
        raise CommandError(f"a cache of {cache_bytes} B is smaller than a line of {largest} B")
    needed = program.lines * BYTES_PER_LINE
    if needed > memory_bytes or program.lines >= 2**31 - 1:
        raise TooManyLines(
            f"simulating kernel {kernel.name} at these sizes needs {needed} B for {program.lines} lines",
            f"the limit is {memory_bytes} B; use smaller sizes or longer lines",
        )
    totals, tallies = _simulate(program, kernel.name, cache_bytes, (max_accesses, max_walked), skip, progress)
    arrays = tuple(
        ArrayTraffic(a.array, a.line_bytes, *(int(x) for x in tallies[k])) for k, a in enumerate(program.layouts)
    )
    return SimulatedTraffic(
        int(totals[ACCESSES]),
        int(totals[TOUCHES]),
        arrays,
        *scalar_bytes(kernel),
    )


def _simulate(  # noqa: PLR0917
    program: Program,
    name: str,
    cache_bytes: int | None,
    most: tuple[int | None, int | None],
    skip: bool,
    progress: Callable[[int], None] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The engine's totals, and for each array its columns MISSES, WRITE_MISSES, STORED. most: limits for all accesses,
    and for those simulated one by one.
    """
    import numpy as np

    from roofdsl.simulate.lru_list import ACCESSES, STEPS, STORED, TOTALS, TOUCHES, WRITTEN, run_lru
    from roofdsl.simulate.walk import RUNNING, STATUS, cursor_of, first_call, tables_of

    layouts = program.layouts
    tables = tables_of(program, [a.first for a in layouts], [a.per_line for a in layouts])
    cursor = cursor_of(program)
    sizes = np.array([a.line_bytes for a in layouts], dtype=np.int64)
    owner = np.repeat(np.arange(len(layouts), dtype=np.uint16), [a.count for a in layouts])
    links = np.empty((program.lines + 1 if cache_bytes is not None else 1, 2), dtype=np.int32)
    links[-1] = len(links) - 1
    state = np.zeros(program.lines, dtype=np.uint8)
    stamp = np.zeros(len(links), dtype=np.int32)  # one row each for the links
    tallies = np.zeros((len(layouts), 3), dtype=np.int64)
    totals = np.zeros(TOTALS, dtype=np.int64)
    capacity, longest = -1 if cache_bytes is None else cache_bytes, max([1, *(a.line_bytes for a in layouts)])

    (max_accesses, max_walked), calls = most, 0
    skipping = None
    if skip and cache_bytes is not None:
        from roofdsl.simulate import skip_repeats
        from roofdsl.simulate.skip_tables import prepare

        skipping = prepare(program, cursor, cache_bytes, (links, state, stamp, owner, tallies, totals))
    while cursor[7][STATUS] == RUNNING:
        if skipping is None:
            with first_call(run_lru):
                run_lru(tables, cursor, CHUNK, owner, sizes, capacity, longest, links, state, stamp, tallies, totals)
        else:
            with first_call(skip_repeats.run_skipping):
                skipping(tables, cursor, CHUNK, sizes, capacity)
        accesses, steps = int(totals[ACCESSES]), int(totals[STEPS])
        if progress is not None:
            progress(accesses)
        calls += 1
        if max_accesses is not None and accesses > max_accesses:
            raise TooManyAccesses(f"kernel {name} makes more than {max_accesses} accesses at these sizes")
        if max_accesses is not None and steps - accesses > max_accesses:
            raise TooManyAccesses(f"kernel {name} makes more than {max_accesses} iterations without an access")
        # A call ends after CHUNK simulated accesses, or after as many repetitions, each of which costs about the same.
        if max_walked is not None and (int(totals[TOUCHES]) > max_walked or calls * CHUNK > 2 * max_walked):
            raise TooManyAccesses(f"kernel {name} does not repeat itself within {max_walked} accesses at these sizes")
    check_inside(cursor, program, name)
    for k, a in enumerate(layouts):
        if a.array.intent != "temp":  # data that is dirty at the end is dropped there
            tallies[k, STORED] += np.count_nonzero(state[a.first : a.first + a.count] & WRITTEN)
    return totals, tallies


def check_inside(cursor: tuple[NDArray[np.int64], ...], program: Program, name: str) -> None:
    """Raise CommandError if a walk ended at an access outside its array."""
    from roofdsl.simulate.walk import CULPRIT, OUTSIDE, STATUS

    control = cursor[7]
    if control[STATUS] == OUTSIDE:
        array = program.layouts[control[CULPRIT]].array.name
        raise CommandError(f"kernel {name} accesses elements outside array {array} at these sizes")
