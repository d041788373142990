"""The cost of lines that a loop accesses one by one: lines that come into the first cache, strided walks, new pages.

The loops are those of walk_loops.py; here they are timed, and their times are made into rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import inf

from roofdsl.lang.record import Record
from roofdsl.machine.kept import capacity_of
from roofdsl.measure.assembled import is_known, loops, page_from
from roofdsl.measure.shared_core import pooled_watch
from roofdsl.measure.stopwatch import Stopwatch
from roofdsl.measure.walk_loops import (
    BEGIN,
    HIT_BYTES,
    LINE,
    PAGE,
    UNROLLED,
    UPDATED_BYTES,
    Plan,
    plan_walks,
)

BESIDE = 1.05
"""Incoming lines count as slowing the loads if these take at least this many times as long as without them."""

_LEAST_LINES = 20_000
_RUNS = {False: 2, True: 1}
_PASSES = 3
"""How often all loops that are timed alone are run in turn: the clock may be lower for longer than the runs of one
loop.
"""
_PART = 8
"""A loop that takes long, since its lines are in memory, is compared with one of at least a _PART-th of as many rounds.
"""

PAGE_LINES = PAGE // LINE


class Walked(Record):
    """The bytes per second of lines that are loaded one by one, and the rate at which stores add to the time, or None.

    restart_s: the time that each page of a stream adds to the longer of the stream and a computation beside it; None if
    nothing. odd_loads_per_s, odd_stores_per_s: the same rates if the lines are an odd number of lines apart.
    gathered_per_s: the rate of consecutive lines that gathers load, eight elements of each; None if these lines take no
    longer than those of the first cache.
    """

    loads_per_s: float
    stores_per_s: float | None
    restart_s: float | None = None
    odd_loads_per_s: float | None = None
    odd_stores_per_s: float | None = None
    gathered_per_s: float | None = None


class WalkRates(Record):
    """fill_per_s: the rate at which bytes come into the first cache while it serves nothing, None if it serves loads at
    the same time. hits_per_s: the rate at which loads from the first cache add to the time of a stream from the second
    one, None if the two overlap; updates_per_s: the same for bytes that are loaded, changed and stored.
    crowded_stores_per_s: the rate at which stores to lines of the second cache add to their loads if all fall into one
    set of the first one; buffers: the lines of one set that loads find in addition to those in its ways; stored_lines:
    the ways of a set that would keep as many lines under random replacement as stores find. crowded_loads: by level,
    the rate of loads of lines that all fall into one set of the first cache, if it is lower than that of other strided
    loads.

    past_per_s: the bytes per second of stores that bypass the caches, None if no walk is in memory. levels: by name,
    without the first cache. pages, walk_cycles: the number of 4 KiB pages in the TLB, and the time of a walk to a page
    outside it; None if the times do not show it.
    """

    fill_per_s: float | None
    levels: Mapping[str, Walked]
    pages: int | None
    walk_cycles: Fraction | None
    hits_per_s: float | None = None
    updates_per_s: float | None = None
    crowded_stores_per_s: float | None = None
    buffers: int | None = None
    stored_lines: int | None = None
    crowded_loads: Mapping[str, float] = {}
    past_per_s: float | None = None


def walk_rates(
    capacities: Sequence[tuple[str, int]],
    address: int,
    room: int,
    quick: bool,
    tell: Callable[[float, str], None] = lambda part, what: None,
    *,
    way_bytes: int | None = None,
) -> WalkRates | None:
    """Measures on the core that the caller is pinned to, in a buffer of `room` bytes at `address`, which it overwrites.

    capacities: (name, bytes) of the caches and the memory, nearest first. way_bytes: the first cache's over its ways,
    if the ways are known. None if this processor's instructions are unknown.
    """
    if not is_known() or len(capacities) < 2:
        return None
    begin = page_from(address)
    plan = plan_walks(capacities, room - (begin - address), way_bytes or 0)
    timed = plan.loops()
    watch = Stopwatch(
        loops({name: loop.text for name, loop in timed.items()}, dict.fromkeys(timed, BEGIN)), begin, _RUNS[quick]
    )
    compared = {name: other for name, other in plan.compared().items() if name in timed}
    alone = [name for name in timed if name not in compared]
    cycles, of_core = dict.fromkeys(timed, inf), plan.of_core(capacities[1][0])
    # A run goes over all lines a whole number of times: once for a walk of several passes, which would run beyond the
    # buffer.
    rounds = {name: -(-_LEAST_LINES // loop.lines) * loop.lines // UNROLLED for name, loop in timed.items()}
    for k, name in enumerate(alone * _PASSES):
        tell(k / len(timed) / _PASSES, name.replace("_", " "))
        each = watch.cycles_in_one(name, rounds[name], pooled_watch(), of_core=name in of_core) / UNROLLED
        cycles[name] = min(cycles[name], each)
    for k, (name, other) in enumerate(compared.items(), len(alone)):
        tell(k / len(timed), name.replace("_", " "))
        beside = other, max(rounds[other], rounds[name] // _PART)
        cycles[name] = cycles[other] * watch.times_as_long((name, rounds[name]), beside)
    return _rates(plan, cycles, watch.hertz(), second=capacities[1][0])


def _rates(plan: Plan, cycles: Mapping[str, float], hertz: float, second: str) -> WalkRates:
    """The rates that the cycles per line of each loop show; `second` is the name of the level behind the first."""
    filled, served, alone = cycles["filled_behind"], cycles["filled_near"], cycles["filled_alone"]
    fill, hits, updates = filled - served, filled - alone, cycles["filled_updated"] - alone
    known, walk = knee({n: cycles[f"pages_{n}"] for n in plan.pages})
    of_hits = HIT_BYTES * hertz / hits if filled > BESIDE * served else None
    of_updates = UPDATED_BYTES * hertz / updates if of_hits is not None and updates > 0.1 else None
    crowded, buffers, stored_lines = None, None, None
    if plan.stored and plan.walks and plan.walks[0].level == second:
        load, store = cycles["load_0"], cycles["store_0"]
        more = cycles["crowded"] - load
        crowded = LINE * hertz / more if more > 1.1 * (store - load) else None
        found = _lines_found(cycles["crowded_loads"], cycles["crowded_hits"], load, plan.loaded)
        buffers = None if found is None else max(0, found - plan.ways)
        if crowded is not None:
            few, hit = cycles["crowded_few"], cycles["crowded_stored"]
            stored_lines = plan.few if few <= hit else _lines_found(few, hit, cycles["crowded"], plan.few)
    return WalkRates(
        fill_per_s=LINE * hertz / fill if fill > 0.1 else None,
        levels=_levels(plan, cycles, hertz),
        pages=known,
        walk_cycles=walk,
        hits_per_s=of_hits,
        updates_per_s=None if of_hits is None or of_updates is None else max(of_hits, of_updates),
        crowded_stores_per_s=crowded,
        buffers=buffers,
        stored_lines=stored_lines,
        crowded_loads=_crowded_loads(plan, cycles, hertz),
        past_per_s=None if plan.past is None else LINE * hertz / cycles["past_caches"],
    )


def _levels(plan: Plan, cycles: Mapping[str, float], hertz: float) -> dict[str, Walked]:
    """The rates of lines that come one by one, by level.

    A line that comes in takes the core a little time, wherever it comes from. So what a stream loses at pages is the
    time of the computation beside it beyond that beside lines of the nearer level.
    """
    nearer = cycles["computed_near"]
    odd = {w.level: (cycles[f"odd_load_{k}"], cycles[f"odd_store_{k}"]) for k, w in enumerate(plan.odd)}
    found = {}
    for k, w in enumerate(plan.walks):
        load, store, both = cycles[f"load_{k}"], cycles[f"store_{k}"], cycles[f"computed_{k}"]
        gathered = cycles[f"gathered_{k}"]
        apart = max(nearer, cycles[f"streamed_{k}"])
        nearer = max(nearer, both)
        found[w.level] = Walked(
            LINE * hertz / load,
            LINE * hertz / (store - load) if store > 1.1 * load else None,
            (both - apart) * PAGE_LINES / hertz if both > 1.02 * apart else None,
            *_odd_rates(load, odd.get(w.level), LINE * hertz),
            gathered_per_s=LINE * hertz / gathered if gathered > 1.1 * cycles["gathered_near"] else None,
        )
    return found


def _crowded_loads(plan: Plan, cycles: Mapping[str, float], hertz: float) -> dict[str, float]:
    strided = {w.level: cycles[f"load_{k}"] for k, w in enumerate(plan.walks)}
    crowded = {level: cycles[f"crowded_load_{k}"] for k, (level, _) in enumerate(plan.crowded)}
    return {level: LINE * hertz / each for level, each in crowded.items() if each > 1.1 * strided.get(level, inf)}


def _lines_found(each: float, hit: float, missed: float, lines: int) -> int | None:
    """How many lines of a set are found again if `lines` fall into it, under random replacement. A walk over these
    takes `each` cycles per line, one whose lines are all found takes `hit`, and one whose lines all come from the
    second cache takes `missed`. None if `each` is not between the other two.
    """
    if not hit < each < missed:
        return None
    return max(1, round(capacity_of(lines, (missed - each) / (missed - hit))))


def _odd_rates(even: float, odd: tuple[float, float] | None, per_cycle: float) -> tuple[float | None, float | None]:
    """(loads, stores) of walks in all sets, in bytes per second, given the cycles per line of loads and of stores;
    (None, None) if such a load is not faster than that of an even walk.
    """
    if odd is None or odd[0] > even / 1.1:
        return None, None
    load, store = odd
    return per_cycle / load, per_cycle / (store - load) if store > 1.1 * load else None


def knee(by_pages: Mapping[int, float]) -> tuple[int | None, Fraction | None]:
    """(pages in the TLB, cycles for a page outside it) from the cycles of walks by their pages; (None, None) without a
    knee.

    The pages in the TLB are the most whose walk takes at most the mean of the shortest and the longest.
    """
    if not by_pages:
        return None, None
    least, most = min(by_pages.values()), by_pages[max(by_pages)]
    if most < 3 * least:
        return None, None
    known = max(n for n, each in by_pages.items() if each <= (least + most) / 2)
    return known, Fraction(round(most * 10), 10)
