"""Traffic at given sizes through a cache that transfers sectors, with a shortcut for a cache that holds all data.

A line is held as a whole and filled sector by sector, so a missing sector costs one sector. Without sectors this is
`traffic_at`.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl import budget
from roofdsl.counts.check_cache import check_cache
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.lines_of_sets import ArrayLines, lines_by_sets
from roofdsl.counts.traffic_at import (
    BRIEFLY_WALKED,
    LONGEST_SIMULATION,
    OutOfReach,
    Totals,
    TrafficAt,
    Ways,
    access_count,
    convention_totals,
    line_ways,
    lines_by_distances,
    lines_by_simulation,
    touched_bytes_at_once,
    traffic_at,
)
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import accesses, scalar_bytes
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Assign, Kernel, Let, Traffic
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.transform import repeated
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.sizes import NotAffine
from roofdsl.store.memo import recall


class Transfers(Record):
    """What a cache holds and moves, in bytes.

    cache_bytes None: unbounded; line_bytes None: each array's line is its element; sector_bytes None: lines move as a
    whole.
    """

    cache_bytes: int | None
    line_bytes: int | None
    sector_bytes: int | None = None

    @property
    def moved_bytes(self) -> int | None:
        """Bytes moved at a time; None for one element."""
        return self.sector_bytes or self.line_bytes


def register_bytes_at(kernel: Kernel, params: Mapping[str, int]) -> tuple[int, int]:
    """(loaded, stored) bytes between the registers and the nearest cache: each access moves its element.

    This is rule 10. Scalars are loaded and stored once per execution (rule 8). Raises CommandError for missing or
    illegal sizes.
    """
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number
    from roofdsl.sets.library import limited

    at = sized(kernel, params)
    if is_indirect(at.kernel):
        from roofdsl.counts.data_at import register_bytes_of_data

        return register_bytes_of_data(at)
    loaded, stored = scalar_bytes(at.kernel)
    with limited(f"the number of accesses of kernel {kernel.name}"):
        for domain in build(at.kernel, at.values, None).domains:
            statement = domain.placed.statement
            if isinstance(statement, (Assign, Let)):
                times = number(cardinality(domain.executions))
                for access in accesses(statement):
                    size = access.element.array.type.bytes * times
                    loaded, stored = (loaded, stored + size) if access.is_write else (loaded + size, stored)
    return loaded, stored


def transfers_at(
    kernel: Kernel,
    params: Mapping[str, int],
    where: Transfers,
    convention: Traffic,
    longest: int = LONGEST_SIMULATION,
) -> TrafficAt:
    """The exact loads, stores and bytes across the boundary behind the cache `where`.

    A cache that holds every touched line has the compulsory traffic, which needs no reuse distances. Without index
    arrays, executions of more than `longest` accesses are not simulated from end to end. Raises CommandError as
    `traffic_at` does, for a sector that is not part of the line, and if no method is fast enough.
    """
    asked = dict(params), where, convention, longest
    return recall("transfers_at", kernel, asked, lambda: _transfers_at(kernel, *asked))


def _transfers_at(
    kernel: Kernel, params: Mapping[str, int], where: Transfers, convention: Traffic, longest: int
) -> TrafficAt:
    at = sized(kernel, params)
    check_cache(kernel, where.cache_bytes, where.line_bytes)
    line, sector = where.line_bytes, where.moved_bytes
    if line is not None and sector is not None:
        check_cache(kernel, None, sector)
        if line % sector:
            raise CommandError(f"a line of {line} B does not hold a whole number of sectors of {sector} B")
    executed = access_count(at)
    if is_indirect(at.kernel):
        try:
            return TrafficAt(*_simulated(at, where, convention, None), executed, "simulation")
        except NoAnswer as error:
            raise OutOfReach(at.name, str(error), executed, LONGEST_SIMULATION) from None
    lines = _by_distances(at, where)
    if lines is not None:
        return TrafficAt(*convention_totals(at, lines, convention), executed, "stack distances")
    held = None if where.cache_bytes is None else _held(at, line, where.cache_bytes, executed)
    if held is not None:
        lines, method = held if line == sector else _touched(at, sector, executed)
        return TrafficAt(*convention_totals(at, lines, convention), executed, method)
    if line == sector and longest == LONGEST_SIMULATION:
        return traffic_at(kernel, params, where.cache_bytes, line, convention)
    return _found(at, where, convention, executed, longest)


def warm_transfers_at(
    kernel: Kernel,
    params: Mapping[str, int],
    where: Transfers,
    convention: Traffic,
    longest: int = LONGEST_SIMULATION,
) -> TrafficAt:
    """As `transfers_at`, for a launch right after another one, which left its data in the caches.

    This is the traffic of two launches in a row minus that of one; `accesses` are those of one launch. An unbounded
    fast memory counts a single launch, with compulsory traffic. Raises as `transfers_at`.
    """
    one = transfers_at(kernel, params, where, convention, longest)
    if where.cache_bytes is None:
        return one
    return after_another(one, transfers_at(repeated(kernel, 2), params, where, convention, longest))


def after_another(one: TrafficAt, two: TrafficAt) -> TrafficAt:
    """What the second of two launches moves. one: the traffic of the first; two: that of both."""

    def more(after: int | None, before: int | None) -> int | None:
        return None if after is None or before is None else after - before

    loads, stores = more(two.loads_bytes, one.loads_bytes), more(two.stores_bytes, one.stores_bytes)
    return TrafficAt(loads, stores, two.bytes - one.bytes, one.accesses, two.method)


def _by_distances(at: Sized, where: Transfers) -> tuple[ArrayLines, ...] | None:
    """Lines or sectors by stack distances; None if these are not found."""
    from roofdsl.sets.library import TooHard

    whole = where.cache_bytes is None or where.line_bytes == where.moved_bytes
    try:
        if whole:
            return lines_by_distances(at, where.cache_bytes, where.moved_bytes)
        return lines_by_distances(at, where.cache_bytes, where.line_bytes, where.sector_bytes)
    except (NoAnswer, TooHard):
        return None


_Touched = tuple[tuple[ArrayLines, ...], str]
"""Lines, and the method that counted them."""


def _held(at: Sized, line_bytes: int | None, cache_bytes: int, executed: int) -> _Touched | None:
    """All touched lines, if they fit; also None if that cannot be found quickly."""
    try:
        with budget.part(4):
            most = touched_bytes_at_once(at, line_bytes)
            if most is not None and most > cache_bytes:
                return None  # which access to a line is the first one need not be known
            found = _touched(at, line_bytes, executed)
    except OutOfReach:
        return None
    return found if sum(a.begun * a.line_bytes for a in found[0]) <= cache_bytes else None


def _touched(at: Sized, line_bytes: int | None, executed: int) -> _Touched:
    """The traffic of an unbounded cache, by one of several quick methods, with the method's name. Raises OutOfReach."""
    return line_ways(at, None, line_bytes).answer(at.name, executed, BRIEFLY_WALKED, prefer_simulation=False)


def _found(at: Sized, where: Transfers, convention: Traffic, executed: int, longest: int) -> TrafficAt:
    """The traffic by sets or by simulation; executed: accesses; longest: executions with more accesses are not
    simulated from end to end.
    """

    def by_sets(operations: int) -> Totals:
        return convention_totals(at, _lines(at, where, operations), convention)

    def by_simulation(walked: int | None) -> Totals:
        return _simulated(at, where, convention, walked)

    ways = Ways[Totals](by_sets, by_simulation, at.kernel, where)
    totals, method = ways.answer(at.name, executed, longest, prefer_simulation=where.cache_bytes is not None)
    return TrafficAt(*totals, executed, method)


def _lines(at: Sized, where: Transfers, operations: int) -> tuple[ArrayLines, ...]:
    """Sectors by integer sets. Raises NoAnswer, TooHard."""
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.count import count_number
    from roofdsl.sets.library import LibraryFailure, limited
    from roofdsl.sets.misses import CannotCount, Fresh, exceeding
    from roofdsl.sets.previous import NotCertified
    from roofdsl.sets.sectors import sector_residencies

    if where.cache_bytes is None or where.line_bytes == where.moved_bytes:
        return lines_by_sets(at, where.cache_bytes, where.moved_bytes, operations)
    try:
        with limited(f"the sectors of kernel {at.name}", operations):
            rule = exceeding(Quasi.constant(where.cache_bytes), Fresh())
            lines, sectors = (build(at.kernel, at.values, b) for b in (where.line_bytes, where.sector_bytes))
            return tuple(
                ArrayLines(
                    r.array, r.bytes, count_number([r.begun]), count_number([r.begun_by_read]), count_number(r.stored)
                )
                for r in sector_residencies(lines, sectors, rule)
            )
    except (CannotCount, LibraryFailure, NotCertified, NotAffine) as error:
        raise NoAnswer(str(error)) from error


def _simulated(at: Sized, where: Transfers, convention: Traffic, walked: int | None) -> Totals:
    """The traffic by simulation, with at most `walked` accesses one by one; with sectors, all accesses are.

    In `once`, a stored sector is not counted again. Raises NoAnswer, TooHard.
    """
    from roofdsl.sets.library import limited
    from roofdsl.simulate.cache_levels import CacheLevel
    from roofdsl.simulate.hierarchy import simulate

    if where.cache_bytes is None or where.line_bytes is None or where.line_bytes == where.moved_bytes:
        lines = lines_by_simulation(at, where.cache_bytes, where.line_bytes, walked)
        return convention_totals(at, lines, convention)
    if walked is not None:
        raise NoAnswer("sectors need a simulation of every access")
    level = CacheLevel(
        "cache",
        where.cache_bytes,
        where.line_bytes,
        write_miss="claim" if convention == "load_store" else "allocate",
        sector_bytes=where.sector_bytes,
    )
    with limited(f"the traffic at these sizes of kernel {at.name}"):
        found = simulate(at.kernel, at.values, [level])
    if convention == "once":
        return None, None, found.levels[0].load_bytes + found.scalar_store_bytes + found.streamed_bytes
    loads, stores = found.load_bytes(0), found.store_bytes(0)
    return loads, stores, loads + stores
