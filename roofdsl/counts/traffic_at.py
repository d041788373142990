"""Exact numbers at given sizes: the footprint, the number of accesses, and the traffic of a cache, without sympy.

The histogram of stack distances answers first, for kernels that it takes (`counts.lines`). For other kernels, integer
sets and a compiled simulation, which count the same thing, take turns, each with a larger limit than before, until one
of them has the number. All are exact; `TrafficAt.method` says which one succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from math import inf
from typing import Any, Generic, TypeVar

from roofdsl import budget, reproducibility
from roofdsl.counts.check_cache import check_cache
from roofdsl.counts.histogram_at import NoAnswer, stack_distances
from roofdsl.counts.lines_of_sets import ArrayLines, lines_by_sets, touched_bytes_by_sets
from roofdsl.counts.streamed import streamed_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import Access, accesses, scalar_bytes
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Assign, Kernel, Let, Traffic
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.streams import ordinary
from roofdsl.store.memo import recall

T = TypeVar("T")

Totals = tuple[int | None, int | None, int]
"""Loads, stores and both, in bytes; loads and stores are None in the convention `once`."""

SHORT = 1_000_000
"""Accesses up to which a simulation is the quicker exact answer."""

LONGEST_SIMULATION = 3_000_000_000
"""Accesses (ten minutes or so) beyond which no simulation is started."""

SIMULATED_PER_SECOND = 20_000_000
"""Accesses that a quick simulation makes in a second: no budget is spent on one that will not end within it."""

BRIEF_OPERATIONS = 100_000
"""Integer-set operations (a twentieth of a second) that suffice for kernels which only stream through their arrays."""

BRIEFLY_WALKED = 20_000_000
"""Accesses (half a second or so) that a brief simulation makes one by one. Most executions, however long, repeat
themselves after fewer: what repeats is not simulated."""

BRIEF_LINES = 64_000_000
"""Lines of a kernel's arrays, at most, for a brief simulation, whose tables have 15 bytes for each that it touches."""

QUICK_OPERATIONS = 3_000_000
"""Integer-set operations (a second or two) after which a long simulation is tried first."""


class TrafficAt(Record):
    """Traffic at given sizes, in bytes. loads and stores are None in the convention `once`.

    accesses: array accesses executed; method: "stack distances", "integer sets" or "simulation".
    """

    loads_bytes: int | None
    stores_bytes: int | None
    bytes: int
    accesses: int
    method: str


def footprint_at(kernel: Kernel, params: Mapping[str, int]) -> int:
    """Bytes of the distinct elements touched, including stored scalars. Raises CommandError."""
    return traffic_at(ordinary(kernel), params, None, None, "once").bytes


def access_count(at: Sized) -> int:
    """The number of array accesses of one execution. Raises TooHard."""
    if is_indirect(at.kernel):
        from roofdsl.counts.data_at import accesses_of_data

        return accesses_of_data(at)
    return _access_count(at.kernel, tuple(at.values.items()))


def _access_count(kernel: Kernel, values: tuple[tuple[str, int], ...]) -> int:
    from roofdsl.sets.count import number

    counted = accesses_counted(kernel, values)
    return 0 if counted is None else number(counted)


@lru_cache(maxsize=64)
def accesses_counted(kernel: Kernel, values: tuple[tuple[str, int], ...]) -> Any:
    """The number of array accesses as an isl.PwQPolynomial in the sizes without a value; None without statements.

    Raises TooHard.
    """
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import added, cardinality
    from roofdsl.sets.library import limited

    counts = []
    with limited(f"the number of accesses of kernel {kernel.name}"):
        for domain in build(kernel, dict(values), None).domains:
            statement = domain.placed.statement
            if isinstance(statement, (Assign, Let)):
                touched: tuple[Access, ...] = accesses(statement)
                counts.append(cardinality(domain.executions).scale_val(len(touched)))
        return added(counts) if counts else None


def traffic_at(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None, convention: Traffic
) -> TrafficAt:
    """Loads, stores and bytes through a cache at `params` (docs/rules.md, rules 8 to 11).

    cache_bytes None: an unbounded cache (compulsory); line_bytes None: each array's line is its element. Raises
    CommandError for missing or illegal sizes, and if no method finds the exact number fast enough.
    """
    asked = dict(params), cache_bytes, line_bytes, convention
    return recall("traffic_at", kernel, asked, lambda: _traffic_at(kernel, *asked))


def first_touches_at(kernel: Kernel, params: Mapping[str, int]) -> tuple[ArrayLines, ...]:
    """The elements of each array that are loaded and stored if each moves once; raises as `traffic_at`."""
    return lines_at(ordinary(kernel), params, None, None)


def lines_at(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None
) -> tuple[ArrayLines, ...]:
    """The lines of each array that come into a cache and leave it; sizes and errors are as in `traffic_at`."""

    def found() -> tuple[ArrayLines, ...]:
        at = sized(kernel, params)
        return _lines(at, cache_bytes, line_bytes, access_count(at))[0]

    return recall("lines_at", kernel, (dict(params), cache_bytes, line_bytes), found)


def _traffic_at(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None, convention: Traffic
) -> TrafficAt:
    at = sized(kernel, params)
    check_cache(kernel, cache_bytes, line_bytes)
    executed = access_count(at)
    if is_indirect(at.kernel):
        try:
            lines, method = lines_by_simulation(at, cache_bytes, line_bytes), "simulation"
        except NoAnswer as error:
            raise OutOfReach(at.name, str(error), executed, LONGEST_SIMULATION) from None
    else:
        lines, method = _lines(at, cache_bytes, line_bytes, executed)
    return TrafficAt(*convention_totals(at, lines, convention), executed, method)


def convention_totals(at: Sized, lines: tuple[ArrayLines, ...], convention: Traffic) -> Totals:
    """The bytes of these lines, of the kernel's scalars and of stores that bypass the caches, under a convention."""
    loaded, stored = scalar_bytes(at.kernel)
    stored += streamed_at(at)
    if convention == "once":
        return None, None, sum(a.begun * a.line_bytes for a in lines) + stored
    begun = [a.begun if convention == "write_allocate" else a.begun_by_read for a in lines]
    loads = sum(n * a.line_bytes for n, a in zip(begun, lines, strict=True)) + loaded
    stores = sum(a.stored * a.line_bytes for a in lines) + stored
    return loads, stores, loads + stores


def _lines(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, executed: int
) -> tuple[tuple[ArrayLines, ...], str]:
    from roofdsl.sets.library import TooHard

    try:
        return lines_by_distances(at, cache_bytes, line_bytes), "stack distances"
    except (NoAnswer, TooHard):
        pass  # the methods for all kernels
    return line_ways(at, cache_bytes, line_bytes).answer(
        at.name, executed, LONGEST_SIMULATION, prefer_simulation=cache_bytes is not None
    )


def line_ways(at: Sized, cache_bytes: int | None, line_bytes: int | None) -> Ways[tuple[ArrayLines, ...]]:
    """The methods that count the lines of a cache; cache_bytes None: an unbounded cache."""
    return Ways(
        lambda operations: lines_by_sets(at, cache_bytes, line_bytes, operations),
        lambda walked: lines_by_simulation(at, cache_bytes, line_bytes, walked),
        at.kernel,
        cache_bytes,
        line_bytes,
    )


def touched_bytes_at_once(at: Sized, line_bytes: int | None) -> int | None:
    """The bytes of all touched lines; None if integer sets do not find them at once."""
    from roofdsl.sets.library import TooHard

    key = BRIEF_OPERATIONS, at.kernel, None, line_bytes  # as in `line_ways`, which counts more of these sets
    if _is_hard(key):
        return None
    try:
        with _remembering(key):
            return touched_bytes_by_sets(at, line_bytes, BRIEF_OPERATIONS)
    except (NoAnswer, TooHard):
        return None


_hard_for_sets: dict[tuple[Hashable, ...], float] = {}
"""The questions that integer sets could not answer in this process: (limit of operations, question) to the seconds that
they had, or infinity if time was not the reason.
"""

AGAIN = 1.25
"""What lacked time is tried again with this many times as much."""


def _is_hard(key: tuple[Hashable, ...]) -> bool:
    """Whether integer sets were too hard before, with almost as much time as is left now."""
    seconds = _hard_for_sets.get(key)
    if seconds is None or budget.left_s() > AGAIN * seconds:
        return False
    if seconds < inf:
        reproducibility.decided_by_clock()
    return True


@contextmanager
def _remembering(key: tuple[Hashable, ...]) -> Iterator[None]:
    """Remembers that integer sets are too hard, if they are; and with how much time, if only time was lacking."""
    from roofdsl.sets.library import OverBudget, TooHard

    seconds = budget.left_s()
    try:
        yield
    except OverBudget:
        _hard_for_sets[key] = seconds
        raise
    except (NoAnswer, TooHard):
        _hard_for_sets[key] = inf
        raise


class Ways(Generic[T]):
    """The two methods: integer sets with a limit of operations, and simulation with a limit of accesses.

    The second limit is for accesses that are simulated one by one; None means no limit. Both raise NoAnswer or TooHard
    if they do not find the number.
    """

    def __init__(self, by_sets: Callable[[int], T], by_simulation: Callable[[int | None], T], *asked: Hashable) -> None:
        """asked: the kernel and the other parts of the question, without the sizes."""
        self._by_sets, self._by_simulation, self._asked = by_sets, by_simulation, asked

    def answer(self, kernel: str, executed: int, longest: int, *, prefer_simulation: bool) -> tuple[T, str]:
        """The number, and the name of the method that found it.

        executed: the accesses of the execution; longest: executions with more accesses than this are not simulated from
        end to end. Raises OutOfReach.
        """
        from roofdsl.sets.library import TooHard

        reason, own = "integer sets take too long", budget.current()
        noted = {} if own is None else dict(own.left_out)
        failed = dict(noted)
        for name, way in self._in_turn(executed, longest, prefer_simulation):
            try:
                found = way()
            except TooHard as error:
                reason = error.message
            except NoAnswer as error:
                reason = str(error)
            else:
                return found, name
            if own is not None:  # if another way succeeds, nothing that this one left out is missing
                failed |= own.left_out
                own.left_out = dict(noted)
        if own is not None:
            own.left_out = failed
        raise OutOfReach(kernel, reason, executed, longest)

    def _in_turn(self, executed: int, longest: int, prefer_simulation: bool) -> Iterator[tuple[str, Callable[[], T]]]:
        from roofdsl.sets.library import MAX_OPERATIONS

        if executed <= SHORT and prefer_simulation:
            yield "simulation", lambda: self._by_simulation(None)
        yield from self._unless_hard(8, BRIEF_OPERATIONS)
        if prefer_simulation or executed <= BRIEFLY_WALKED:
            yield "simulation", lambda: self._by_simulation(BRIEFLY_WALKED)
        yield from self._unless_hard(4, QUICK_OPERATIONS)
        if executed <= min(longest, budget.left_s() * SIMULATED_PER_SECOND):
            yield "simulation", lambda: self._by_simulation(None)
        if longest == LONGEST_SIMULATION:
            yield "integer sets", lambda: self._by_sets(MAX_OPERATIONS)

    def _unless_hard(self, of: int, operations: int) -> Iterator[tuple[str, Callable[[], T]]]:
        """Integer sets, unless they were too hard before: if they are at some sizes, they usually are at others.

        A sweep asks for many sizes.
        """
        key = (operations, *self._asked)
        with budget.part(of):
            is_hard = _is_hard(key)
        if not is_hard:
            yield "integer sets", lambda: self._sets_in_part(of, key)

    def _sets_in_part(self, of: int, key: tuple[Any, ...]) -> T:
        with budget.part(of), _remembering(key):  # a method that may fail leaves time for the next one
            return self._by_sets(key[0])


class OutOfReach(CommandError):
    """No method finds the exact traffic of a kernel at its sizes fast enough."""

    def __init__(self, kernel: str, reason: str, accesses: int, most: int) -> None:
        super().__init__(
            f"the exact traffic of kernel {kernel} at these sizes takes too long to compute: {reason}",
            _remedy(accesses, most),
        )


def _remedy(accesses: int, most: int) -> str:
    """What helps: smaller sizes, or a longer budget if there is only no time left to simulate the accesses."""
    if accesses > most:
        return f"{accesses:,} accesses are too many to simulate (limit {most:,}); use smaller sizes"
    own = budget.current()
    if own is None or accesses <= budget.left_s() * SIMULATED_PER_SECOND:
        return "use smaller sizes"
    missing_s = accesses / SIMULATED_PER_SECOND - budget.left_s()
    return f"use smaller sizes, or more time: `--budget {budget.longer(own, missing_s)}`"


def lines_by_distances(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, sector_bytes: int | None = None
) -> tuple[ArrayLines, ...]:
    """Counts of lines, or of the sectors in which these are filled, by the histogram of stack distances.

    The histogram is counted once. Raises NoAnswer, TooHard.
    """
    found = stack_distances(at, line_bytes, sector_bytes, first=cache_bytes is None)
    if cache_bytes is not None and cache_bytes < found.least_bytes:
        found = stack_distances(at, line_bytes, sector_bytes, all_distances=True)
    if cache_bytes is not None and cache_bytes < found.least_bytes:
        raise NoAnswer(f"stack distances are known only for caches of at least {found.least_bytes} B")
    lines = []
    for a in found.arrays:
        read, written, stored = (a.beyond(kind, cache_bytes) for kind in range(3))
        lines.append(ArrayLines(a.name, a.line_bytes, read + written, read, stored))
    return tuple(lines)


def lines_by_simulation(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, walked: int | None = None
) -> tuple[ArrayLines, ...]:
    """Line counts by simulation. walked: the most accesses to simulate one by one.

    Accesses that are known to repeat earlier ones do not count. Without `walked`, at most LONGEST_SIMULATION accesses
    may be made in all. Raises NoAnswer, TooHard.
    """
    from roofdsl.sets.library import limited
    from roofdsl.simulate.lru_traffic import (
        BYTES_PER_LINE,
        DEFAULT_MEMORY_BYTES,
        TooManyAccesses,
        TooManyLines,
        simulate_lru,
    )

    brief = walked is not None
    tables = BRIEF_LINES * BYTES_PER_LINE if brief else DEFAULT_MEMORY_BYTES
    most = None if brief else LONGEST_SIMULATION
    try:
        with limited(f"the traffic at these sizes of kernel {at.name}"):
            result = simulate_lru(
                at.kernel,
                at.values,
                cache_bytes,
                line_bytes,
                max_accesses=most,
                max_walked=walked,
                memory_bytes=tables,
            )
    except (TooManyAccesses, TooManyLines) as error:
        raise NoAnswer(str(error)) from error
    return tuple(
        ArrayLines(a.array.name, a.line_bytes, a.residencies, a.residencies - a.begun_with_write, a.stored)
        for a in result.arrays
    )
