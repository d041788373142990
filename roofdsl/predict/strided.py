"""Lines that a launch accesses one by one: strided walks, which hardware does not prefetch as it does streams.

`B[j, i]` with j innermost takes another line at every access. The time depends on the level that these lines come from.
A fully associative LRU cache may hold them all, while a real one puts lines that are a power of two apart into a few of
its sets, and loses them. The same happens to streams that run side by side at such distances, more of them than a set
has ways. So the caches are simulated with their sets, and so is the TLB with its pages; arrays lie as `measure` lays
them (`loops.array_placement`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.array_placement import PAGE, places
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Array, Count, Element, For, Kernel, Node
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.streams import within_caches
from roofdsl.machine.model import Machine
from roofdsl.predict.few_sets import FEW_SETS, Tight, tight_of
from roofdsl.predict.level_time import LevelTime

if TYPE_CHECKING:
    from roofdsl.counts.set_conflicts import Geometry

MOST_ACCESSES = 100_000_000
"""Sets are simulated up to this many accesses (two seconds); beyond that, a column fits as a whole or not at all."""


class Lines(Record):
    """The bytes of lines that strided accesses load and store across one level's boundary."""

    level: str
    loaded: int
    stored: int


class Narrow(Record):
    """Accesses of strided walks whose lines fall into `sets` sets of the first cache: their shares of all loads and of
    all stores of such walks.
    """

    sets: int
    loads: Fraction
    stores: Fraction


class Walks(Record):
    """The lines of a launch that are taken one by one.

    arrays: those with strided walks. lines: the traffic of these walks, with fully associative caches. narrow: for each
    small number of sets of the first cache, the accesses of which more lines than these sets have room for fall into
    them. even: the share of the other accesses whose lines are an even number of lines apart; an even number that is no
    multiple of four counts half. crowded: the lines, of all accesses, that are lost only because caches have sets (none
    if the machine states no sets); tight: the arrays that lose them, and in how many sets. pages: the number of page
    walks.
    """

    arrays: tuple[str, ...]
    lines: tuple[Lines, ...]
    even: Fraction
    crowded: tuple[Lines, ...]
    tight: Tight
    pages: int = 0
    assumptions: tuple[str, ...] = ()
    narrow: tuple[Narrow, ...] = ()

    @property
    def fewest_sets(self) -> int:
        """The sets of the first cache that lost lines fall into: those in which it loses them, or those of the strided
        walks whose lines a farther cache loses. 0 if these are not few, or not known.
        """
        if self.tight.nearest and self.tight.in_few_sets:
            return self.tight.sets
        return min((each.sets for each in self.narrow), default=0)


class Reference(Record):
    """An element as accessed by an innermost loop of `trips` iterations, with the distance in bytes to the next one.
    executed: the iterations of a whole launch.
    """

    array: Array
    executed: int
    trips: float
    step_bytes: int
    stored: bool
    loaded: bool


def walks_of(
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    levels: Sequence[LevelTime],
    *,
    warm: bool,
    after: tuple[Node, ...] = (),
) -> Walks | None:
    """The strided walks of one launch, and the lines that it loses to sets; None if there are neither, if the machine
    states no rate for strided walks, or if they cannot be found.

    levels: the exact bytes of every level. warm: right after another launch, which left its data in the caches. after:
    for a part of a launch, the statements that are executed before it.
    """
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.sets.library import TooHard

    line = machine.caches[0].line_bytes if machine.caches else None
    if is_indirect(kernel):
        return None  # what data choose has no stride
    if line is None or not any(part.strided_bytes_per_s for part in machine.hierarchy):
        return None
    behind = all_behind(levels, machine)
    if behind is None:
        return None
    at = sized(within_caches(kernel), values)
    try:
        found = list(references(at))
        every, before = (_with(at, (*after, *kernel.body)), _with(at, after)) if after else (at, None)
        few = access_count(every) <= MOST_ACCESSES
        tight = tight_of(at, machine)
    except TooHard:
        return None
    # A step of a line or more takes a new line for every element; shorter steps stream through the lines one by one.
    strided = [r for r in found if abs(r.step_bytes) >= line]
    if not strided and not tight.arrays:
        return None
    streams = [r for r in found if 0 < abs(r.step_bytes) < line]
    plain = [(level.name, *directions(level)) for level in behind]
    lines = _share(plain, strided, streams, line)
    names = tuple(dict.fromkeys(r.array.name for r in strided))
    try:
        if not few:
            raise CommandError(f"{access_count(every):,} accesses are too many to simulate")
        crowded = _beyond(plain, _in_sets(every, machine, plain, warm, before))
        pages = _pages(every, machine, warm, before) if strided else 0
        notes: tuple[str, ...] = ()
    except CommandError as error:
        crowded, pages = _by_columns(lines, strided, machine, line)
        notes = (f"sets and pages by whole columns: {error.message}",)
    if crowded and not tight.arrays:
        tight = Tight(names)
    if any(one.loaded or one.stored for one in crowded):
        notes += (PLACED,)
    narrow, others = _narrow(strided, machine)
    return Walks(names, lines, _even(others, line), crowded, tight, pages, notes, narrow)


def _with(at: Sized, body: tuple[Node, ...]) -> Sized:
    return replace(at, kernel=within_caches(replace(at.kernel, body=body)))


def all_behind(levels: Sequence[LevelTime], machine: Machine) -> list[LevelTime] | None:
    """The levels behind the first cache; None if one was left out, since it is unknown where its lines come from."""
    behind = [level for level in levels if level.nearer != "registers" and level.kind != "link"]
    every = [part.name for part in machine.hierarchy[1:]]
    return behind if [level.name for level in behind] == every else None


PLACED = "arrays begin where `measure` puts them: each five lines further into its pages than the one before"


def _even(strided: Sequence[Reference], line: int) -> Fraction:
    """The share of the accesses whose lines are an even number of lines apart: they use a part of the sets and banks.

    Accesses that use half of the sets count half, since their time is about in the middle; those that use a fourth or
    less count fully.
    """
    total = sum(r.executed for r in strided)
    even = Fraction(0)
    for r in strided:
        if r.step_bytes % (2 * line) == 0:
            even += r.executed * (Fraction(1, 2) if r.step_bytes % (4 * line) else 1)
    return even / total if total else Fraction(1)


def _narrow(strided: Sequence[Reference], machine: Machine) -> tuple[tuple[Narrow, ...], Sequence[Reference]]:
    """The accesses whose lines fall into few sets of the first cache, more of them than these have room for, and the
    references without such accesses.
    """
    from roofdsl.predict.associative import sets_of

    first = sets_of(machine.caches[0])
    if first is None:
        return (), strided
    by_sets: dict[int, list[Reference]] = {}
    others = list[Reference]()
    for r in strided:
        held = _held(r.step_bytes, first)
        few = held // first.ways < min(FEW_SETS, first.count) and r.trips > held
        (by_sets.setdefault(held // first.ways, []) if few else others).append(r)

    def executed(references: Sequence[Reference], *, stored: bool = False) -> int:
        return sum(r.executed for r in references if r.stored or not stored)

    every, stores = executed(strided), executed(strided, stored=True)
    narrow = tuple(
        Narrow(sets, Fraction(executed(own), every), Fraction(executed(own, stored=True), max(1, stores)))
        for sets, own in sorted(by_sets.items())
    )
    return narrow, others


def _beyond(plain: Sequence[tuple[str, int, int]], in_sets: Sequence[tuple[str, int, int]]) -> tuple[Lines, ...]:
    """The traffic across each boundary that caches with sets add to that of fully associative ones.

    A line is loaded before a part of it is stored, even if the machine's convention does not count that.
    """
    found = []
    for (name, least_loaded, least_stored), (_, loaded, stored) in zip(plain, in_sets, strict=True):
        stores = max(0, stored - least_stored)
        found.append(Lines(name, max(loaded - least_loaded, stores), stores))
    return tuple(found)


def directions(level: LevelTime) -> tuple[int, int]:
    """(loaded, stored) bytes, without those of stores that bypass the caches; all as loaded if the two are not
    distinguished.
    """
    if level.loads_bytes is None or level.stores_bytes is None:
        return level.bytes - level.streamed_bytes, 0
    return level.loads_bytes, level.stores_bytes - level.streamed_bytes


def references(at: Sized) -> Iterator[Reference]:
    """The loads and stores of innermost loops, as compiled, with their steps in bytes. Raises TooHard."""
    from roofdsl.incore.innermost_loops import loops_of

    for loop in loops_of(at):
        if loop.loop is None:
            continue
        for moved in loop.moved:
            if moved.stride in ("unit", "strided"):
                step = step_bytes(moved.element, loop.loop, at)
                yield Reference(moved.element.array, loop.iterations, loop.length, step, moved.stored, moved.loaded)


def step_bytes(element: Element, loop: For, at: Sized) -> int:
    """The bytes from the element to that of the loop's next iteration."""
    from roofdsl.loops.affine import affine

    pairs = zip(element.subscripts, element.array.strides(at.values), strict=True)
    each = sum(int(affine(subscript).coefficients().get(loop.var, 0)) * apart for subscript, apart in pairs)
    return each * loop.step.evaluate(at.values) * element.array.type.bytes


def _share(
    crossing: Sequence[tuple[str, int, int]], strided: Sequence[Reference], streams: Sequence[Reference], line: int
) -> tuple[Lines, ...]:
    """The walks' share of the traffic across each boundary: everything except the lines of streams, at most one line
    per access.
    """
    accesses = line * sum(r.executed for r in strided)
    written = line * sum(r.executed for r in strided if r.stored)
    streamed = sum(r.executed * abs(r.step_bytes) for r in streams)
    kept = sum(r.executed * abs(r.step_bytes) for r in streams if r.stored)
    only_stored = any(r.stored and not r.loaded for r in strided)
    found = []
    for name, loaded, stored in crossing:
        stores = min(max(0, stored - kept), written)
        loads = min(max(0, loaded - streamed), accesses)
        # a line is loaded before a part of it is stored, even if the machine's convention does not count that
        found.append(Lines(name, max(loads, stores) if only_stored else loads, stores))
    return tuple(found)


def _held(step_bytes: int, sets: Geometry) -> int:
    """The lines that a cache holds of those that are this many bytes apart: those in the sets into which they fall."""
    apart = abs(step_bytes) // sets.line_bytes if step_bytes % sets.line_bytes == 0 else 1
    return sets.count // gcd(apart, sets.count) * sets.ways


def _by_columns(
    lines: Sequence[Lines], strided: Sequence[Reference], machine: Machine, line: int
) -> tuple[tuple[Lines, ...], int]:
    """(crowded lines, pages) if a loop that returns to a column finds all of it or nothing (LRU): nothing if the column
    does not fit into its sets, or its pages into the TLB.
    """
    from roofdsl.predict.associative import sets_of

    found = []
    for cache, one in zip(machine.caches, lines, strict=True):
        sets = sets_of(cache)
        lost = []
        if sets is not None:
            lost = [r for r in strided if r.trips > _held(r.step_bytes, sets)]
        loaded = line * sum(r.executed for r in lost)
        stored = line * sum(r.executed for r in lost if r.stored)
        found.append(Lines(one.level, max(0, loaded - one.loaded), max(0, stored - one.stored)))
    core, pages = machine.core, Fraction(0)
    if core is not None and core.pages is not None:
        for r in strided:
            share = min(Fraction(1), Fraction(abs(r.step_bytes), PAGE))
            pages += r.executed * share if r.trips * share > core.pages else 0
    return tuple(found), int(pages)


def _in_sets(
    at: Sized, machine: Machine, plain: Sequence[tuple[str, int, int]], warm: bool, before: Sized | None
) -> list[tuple[str, int, int]]:
    """The traffic across each boundary with the sets of the caches up to the first that does not state its ways; from
    there on, it stays that of `plain`. Lines whose first access is a store count as loaded wherever `plain` counts them
    so, as the machine says. before: the first part of the accesses, which does not count.
    """
    from roofdsl.predict.associative import sets_of
    from roofdsl.simulate.cache_levels import CacheLevel
    from roofdsl.simulate.hierarchy import simulate

    caches = []
    for cache in machine.caches:
        if sets_of(cache) is None:
            break
        assert cache.line_bytes is not None
        miss: Literal["allocate", "claim"] = "allocate" if cache.write_allocate is True else "claim"
        caches.append(CacheLevel(cache.name, cache.size_bytes, cache.line_bytes, cache.ways, write_miss=miss))
    if not caches:
        return list(plain)
    begins = places(at.kernel, at.values)
    run = simulate(at.kernel, at.values, caches, begins=begins)
    first = simulate(before.kernel, at.values, caches, begins=begins) if before is not None else None
    found = []
    for k, (name, least_loaded, least_stored) in enumerate(plain):
        loads = stores = 0
        if k < len(caches):
            there = _footprint(at, caches[k].line_bytes, caches[k].size_bytes) if warm and before is None else (0, 0)
            if first is not None:
                there = first.levels[k].load_bytes, first.levels[k].store_bytes
            loads, stores = run.levels[k].load_bytes - there[0], run.levels[k].store_bytes - there[1]
        found.append((name, max(least_loaded, loads), max(least_stored, stores)))
    return found


def _footprint(at: Sized, unit: int, room: int) -> tuple[int, int]:
    """(bytes of all arrays, of the written ones) in whole units, if all arrays fit into `room`; else (0, 0)."""
    from roofdsl.loops.accesses import accesses, statements

    assigned = (p.statement for p in statements(at.kernel.body) if not isinstance(p.statement, Count))
    written = {a.element.array.name for statement in assigned for a in accesses(statement) if a.is_write}
    every = own = 0
    for array in at.kernel.arrays:
        size = -(-array.element_count(at.values) * array.type.bytes // unit) * unit
        every, own = every + size, own + (size if array.name in written else 0)
    return (every, own) if every <= room else (0, 0)


def _pages(at: Sized, machine: Machine, warm: bool, before: Sized | None) -> int:
    """The number of accesses to a page that is not in the TLB, without those of `before`, the first part of them."""
    from roofdsl.simulate.cache_levels import CacheLevel
    from roofdsl.simulate.hierarchy import simulate

    core = machine.core
    if core is None or core.pages is None or core.walk is None:
        return 0
    known = core.pages * PAGE
    tlb = [CacheLevel("pages", known, PAGE)]
    found = simulate(at.kernel, at.values, tlb).levels[0].misses
    if before is not None:
        return found - simulate(before.kernel, at.values, tlb).levels[0].misses
    return max(0, found - _footprint(at, PAGE, known)[0] // PAGE) if warm else found
