"""Exact numbers at given sizes: W, footprint, and the traffic of a cache, without sympy.

The integer-set way answers first where it is cheap; where it is not, or the execution is short, a compiled
simulation of the same definition does. Both are exact; `TrafficAt.method` says which one it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roofdsl import budget
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.operations import work_at as weigh
from roofdsl.counts.results import WorkAt
from roofdsl.counts.setting import check_cache
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import Access, accesses, scalar_bytes
from roofdsl.loops.model import Assign, Kernel, Let, Traffic
from roofdsl.loops.sized import Sized, sized
from roofdsl.store.memo import recall

SHORT = 1_000_000
"""Accesses up to which a simulation is the quicker exact answer."""

LONGEST_SIMULATION = 3_000_000_000
"""Accesses (ten minutes or so) beyond which no simulation is started."""

SIMULATED_PER_SECOND = 20_000_000
"""Accesses that a quick simulation makes in a second: no budget is spent on one that will not end within it."""

QUICK_OPERATIONS = 3_000_000
"""Integer-set operations (a second or two) after which a simulation is tried first."""


class TrafficAt(Record):
    """Traffic at given sizes, in bytes. loads and stores are None in the convention `once`.

    accesses: array accesses executed; method: "integer sets" or "simulation".
    """

    loads_bytes: int | None
    stores_bytes: int | None
    bytes: int
    accesses: int
    method: str


class ArrayLines(Record):
    """Lines of one array: residencies begun, those begun by a read, and those that end in a store."""

    name: str
    line_bytes: int
    begun: int
    begun_by_read: int
    stored: int


def work_at(kernel: Kernel, params: Mapping[str, int]) -> WorkAt:
    """Exact operation counts at `params`. Raises CommandError for missing or illegal sizes, TooHard."""
    from roofdsl.sets.count import number
    from roofdsl.sets.library import cardinality, limited
    from roofdsl.sets.stream import build

    at = sized(kernel, params)
    with limited(f"W at these sizes of kernel {kernel.name}"):
        stream = build(at.kernel, at.values, None)
        return weigh(operation_counts(at.kernel), [number(cardinality(d.executions)) for d in stream.domains])


def footprint_at(kernel: Kernel, params: Mapping[str, int]) -> int:
    """Bytes of distinct elements touched, scalars that are stored included. Raises CommandError."""
    return traffic_at(kernel, params, None, None, "once").bytes


def access_count(at: Sized) -> int:
    """The number of array accesses of one execution. Raises TooHard."""
    from roofdsl.sets.count import number
    from roofdsl.sets.library import cardinality, limited
    from roofdsl.sets.stream import build

    total = 0
    with limited(f"the number of accesses of kernel {at.name}"):
        for domain in build(at.kernel, at.values, None).domains:
            statement = domain.placed.statement
            if isinstance(statement, (Assign, Let)):
                touched: tuple[Access, ...] = accesses(statement)
                total += len(touched) * number(cardinality(domain.executions))
    return total


def traffic_at(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None, convention: Traffic
) -> TrafficAt:
    """Loads, stores and bytes through a cache at `params` (docs/rules.md, rules 8 to 11).

    cache_bytes None: a cache without bound (compulsory); line_bytes None: each array's line is its element.
    Raises CommandError for missing or illegal sizes, and where no way to the exact number is short enough.
    """
    asked = dict(params), cache_bytes, line_bytes, convention
    return recall("traffic_at", kernel, asked, lambda: _traffic_at(kernel, *asked))


def _traffic_at(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None, convention: Traffic
) -> TrafficAt:
    at = sized(kernel, params)
    check_cache(kernel, cache_bytes, line_bytes)
    executed = access_count(at)
    lines, method = _lines(at, cache_bytes, line_bytes, executed)
    return TrafficAt(*convention_totals(at.kernel, lines, convention), executed, method)


def convention_totals(
    kernel: Kernel, lines: tuple[ArrayLines, ...], convention: Traffic
) -> tuple[int | None, int | None, int]:
    """(loads, stores, both) in bytes of these lines and the kernel's scalars; loads and stores are None in `once`."""
    loaded, stored = scalar_bytes(kernel)
    if convention == "once":
        return None, None, sum(a.begun * a.line_bytes for a in lines) + stored
    begun = [a.begun if convention == "write_allocate" else a.begun_by_read for a in lines]
    loads = sum(n * a.line_bytes for n, a in zip(begun, lines, strict=True)) + loaded
    stores = sum(a.stored * a.line_bytes for a in lines) + stored
    return loads, stores, loads + stores


def _lines(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, executed: int
) -> tuple[tuple[ArrayLines, ...], str]:
    from roofdsl.sets.library import MAX_OPERATIONS, TooHard

    def by_sets(operations: int) -> Callable[[], tuple[ArrayLines, ...]]:
        return lambda: lines_by_sets(at, cache_bytes, line_bytes, operations)

    def quickly() -> tuple[ArrayLines, ...]:
        with budget.part(4):
            return by_sets(QUICK_OPERATIONS)()

    def simulated() -> tuple[ArrayLines, ...]:
        return lines_by_simulation(at, cache_bytes, line_bytes)

    ways = [("integer sets", quickly)]
    if executed <= min(LONGEST_SIMULATION, budget.left_s() * SIMULATED_PER_SECOND):
        simulation = ("simulation", simulated)
        ways = [simulation, *ways] if executed <= SHORT and cache_bytes is not None else [*ways, simulation]
    ways.append(("integer sets", by_sets(MAX_OPERATIONS)))
    reason = ""
    for name, way in ways:
        try:
            return way(), name
        except TooHard as error:
            reason = error.message
        except NoAnswer as error:
            reason = str(error)
    raise OutOfReach(at.name, reason, executed, LONGEST_SIMULATION)


class NoAnswer(Exception):
    """One way to a number does not lead to it; another may."""


class OutOfReach(CommandError):
    """No way to the exact traffic of a kernel at its sizes is short enough."""

    def __init__(self, kernel: str, reason: str, accesses: int, most: int) -> None:
        super().__init__(
            f"the exact traffic of kernel {kernel} at these sizes is out of reach: {reason}",
            f"{accesses:,} accesses are too many to simulate (limit {most:,}); use smaller sizes"
            if accesses > most
            else "use smaller sizes",
        )


def lines_by_sets(
    at: Sized, cache_bytes: int | None, line_bytes: int | None, operations: int
) -> tuple[ArrayLines, ...]:
    """Line counts by integer sets. Raises NoAnswer, TooHard."""
    from roofdsl.sets.compulsory import compulsory
    from roofdsl.sets.count import count_number
    from roofdsl.sets.library import LibraryFailure, limited
    from roofdsl.sets.misses import CannotCount, Fresh, exceeding, residencies
    from roofdsl.sets.quasi import Quasi
    from roofdsl.sets.reuse import NotCertified, reuse
    from roofdsl.sets.sizes import NotAffine
    from roofdsl.sets.stream import build

    try:
        with limited(f"the traffic at these sizes of kernel {at.name}", operations):
            stream = build(at.kernel, at.values, line_bytes)
            if cache_bytes is None:
                found = compulsory(stream)
            else:
                rule = exceeding(Quasi.constant(cache_bytes), Fresh())
                found = tuple(residencies(r, rule) for r in reuse(stream))
            return tuple(
                ArrayLines(
                    r.array,
                    r.bytes,
                    count_number([r.begun]),
                    count_number([r.begun_by_read]),
                    count_number(r.stored),
                )
                for r in found
            )
    except (CannotCount, LibraryFailure, NotCertified, NotAffine) as error:
        raise NoAnswer(str(error)) from error


def lines_by_simulation(at: Sized, cache_bytes: int | None, line_bytes: int | None) -> tuple[ArrayLines, ...]:
    """Line counts by simulating every access. Raises NoAnswer, TooHard."""
    from roofdsl.sets.library import limited
    from roofdsl.simulate.lru import TooManyAccesses, simulate_lru

    try:
        with limited(f"the traffic at these sizes of kernel {at.name}"):
            result = simulate_lru(at.kernel, at.values, cache_bytes, line_bytes, max_accesses=LONGEST_SIMULATION)
    except TooManyAccesses as error:
        raise NoAnswer(str(error)) from error
    return tuple(
        ArrayLines(a.array.name, a.line_bytes, a.residencies, a.residencies - a.begun_with_write, a.stored)
        for a in result.arrays
    )
