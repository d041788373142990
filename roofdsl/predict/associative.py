"""The sets of a machine's caches, which predictions ignore by default: when they matter, and the traffic with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.sized import Sized
from roofdsl.loops.streams import within_caches
from roofdsl.machine.model import Cache, Machine
from roofdsl.predict.boundary import Boundary, boundary_behind
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.time_model import larger_direction
from roofdsl.simulate.cache_levels import CacheLevel, WriteMiss

if TYPE_CHECKING:
    from roofdsl.counts.set_conflicts import Geometry

LONGEST = 300_000_000
"""A kernel of at most this many accesses is simulated with the sets of the caches."""

HASHED_BYTES = 128 << 10
"""Caches whose ways have at least this many bytes select sets by a hash of the address instead of some of its bits."""


class WithSets(Record):
    """Levels whose bytes include the effect of the sets of the caches in front, and notes on which levels do."""

    levels: tuple[LevelTime, ...]
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def conflict_warnings(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> tuple[str, ...]:
    """Warnings about caches whose sets change the number of moved lines, and what helps. They concern only caches whose
    sets follow from addresses: those with stated ways, each way smaller than HASHED_BYTES.
    """
    found = []
    for cache in machine.caches:
        sets = sets_of(cache)
        if sets is not None and sets.size_bytes // sets.ways < HASHED_BYTES:
            from roofdsl.counts.set_conflicts import conflict_words

            found += [
                f"{cache.name}: {words} (use --sets to include this)" for words in conflict_words(kernel, values, sets)
            ]
    return tuple(found)


def sets_of(cache: Cache) -> Geometry | None:
    """The sets of the cache; None if the machine states no ways or no line, or if its lines do not fill whole sets."""
    from roofdsl.counts.set_conflicts import Geometry

    if cache.ways is None or cache.line_bytes is None or cache.size_bytes % (cache.ways * cache.line_bytes):
        return None
    return Geometry(cache.size_bytes, cache.line_bytes, cache.ways)


def _lacking(cache: Cache) -> str:
    """What keeps `sets_of` from finding the sets of a cache."""
    if cache.ways is None:
        return "no ways"
    if cache.line_bytes is None:
        return "no line size"
    return f"a size that {cache.ways} ways of whole {cache.line_bytes}-byte lines do not fill"


def with_sets(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, levels: tuple[LevelTime, ...], traffic: Traffic | None
) -> WithSets:
    """`levels` with the bytes from a simulation of each cache with its sets, for one launch with empty caches.

    Levels behind caches whose sets are not known, those whose simulation would take too long, and those in the
    convention `once` stay as they were; a warning says so.
    """
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.loops.sized import sized

    caches = {cache.name: place for place, cache in enumerate(machine.caches)}
    whole = sized(kernel, values)
    accesses = access_count(whole)
    found, notes, warnings = [], [], []
    for level in levels:
        cache = machine.caches[caches[level.nearer]] if level.nearer in caches else None
        sets = None if cache is None else sets_of(cache)
        if cache is None or sets is None:
            if cache is not None:
                lacking = f"{machine.name} defines {_lacking(cache)} for {cache.name}"
                warnings.append(f"{lacking}, so it counts as fully associative")
            found.append(level)
            continue
        at = boundary_behind(kernel, machine, caches[cache.name], traffic)
        if accesses > LONGEST or at.convention == "once":
            why = f"{accesses:,} accesses are too many" if accesses > LONGEST else "the convention assumes no cache"
            warnings.append(f"{level.name} does not include the sets of {cache.name}: {why}")
            found.append(level)
            continue
        seen = whole if level.kind == "memory" else replace(whole, kernel=within_caches(whole.kernel))
        found.append(_through_sets(level, seen, sets, at))
        notes.append(f"{level.name}: simulated behind {cache.name} with {sets.count} sets of {sets.ways} ways")
    return WithSets(tuple(found), tuple(notes), tuple(warnings))


def _through_sets(level: LevelTime, kernel: Sized, sets: Geometry, at: Boundary) -> LevelTime:
    """The level with the bytes of a simulation of the cache in front, which has these sets."""
    loads, stores = _simulated(kernel, sets, at, allocates=at.convention == "write_allocate")
    duplex = larger_direction(level.duplex_bytes is not None, loads, stores)
    moved = replace(level, bytes=loads + stores, loads_bytes=loads, stores_bytes=stores, duplex_bytes=duplex)
    if not level.allocated_bytes and not level.begun_bytes:
        return moved
    begun = _simulated(kernel, sets, at, allocates=True)[0] - loads  # lines whose first access is a store
    if level.begun_bytes:
        return replace(moved, begun_bytes=begun)
    return replace(moved, allocated_bytes=round((at.allocated or 0) * begun))


def _simulated(kernel: Sized, sets: Geometry, at: Boundary, *, allocates: bool) -> tuple[int, int]:
    """(loaded bytes, stored bytes) behind a cache with these sets. allocates: a store that misses loads its line."""
    from roofdsl.simulate.hierarchy import simulate

    sector = at.moved_bytes if at.moved_bytes != sets.line_bytes else None
    miss: WriteMiss = "allocate" if allocates else "claim"
    one = CacheLevel("cache", sets.size_bytes, sets.line_bytes, sets.ways, write_miss=miss, sector_bytes=sector)
    run = simulate(kernel.kernel, kernel.values, [one])
    return run.load_bytes(0), run.store_bytes(0)


def refuse_sets(*, warm: bool, machine: Machine) -> None:
    """Raises CommandError if a prediction with sets is meaningless."""
    if warm:
        raise CommandError("--sets starts with empty caches, so it cannot be combined with --warm")
    if not any(sets_of(cache) for cache in machine.caches):
        each = ", ".join(f"{_lacking(cache)} for {cache.name}" for cache in machine.caches) or "no caches"
        message = f"{machine.name} does not define the sets of its caches: it defines {each}"
        raise CommandError(
            message, "state `line` and `ways` that fill a cache, as in `line 64 B, ways 8`, or use `simulate --ways`"
        )
