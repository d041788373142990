"""The time of lines that a launch accesses one by one (see `strided`), and of streams and page walks beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import Lines, Walks


def strided_seconds(walks: Walks, machine: Machine) -> Fraction:
    """The seconds of the lines of strided walks, wherever in the caches they lie.

    A line takes the time of the level that it comes from, and no more on its way through nearer levels.
    """
    from_levels = from_each(walks.lines, machine)
    return sum((_strided(walks, part, loaded, stored) for part, loaded, stored in from_levels), Fraction(0))


def _strided(
    walks: Walks, part: Cache | Memory, loaded: Fraction, stored: Fraction, machine: Machine | None = None
) -> Fraction:
    """The seconds of bytes of strided walks from one level; machine: one in whose few sets they wait, None if they do
    not.
    """
    even = odd = _even_line(part)
    if isinstance(part, Cache) and part.strided_odd_bytes_per_s is not None:
        odd = _line(part.strided_odd_bytes_per_s, part.strided_odd_stores_bytes_per_s)
    total, loads, stores = Fraction(0), Fraction(1), Fraction(1)
    for each in walks.narrow:
        load, store = even if machine is None else _narrow_line(part, each.sets, machine)
        total += each.loads * loaded * load + each.stores * stored * store
        loads, stores = loads - each.loads, stores - each.stores
    for share, (load, store) in ((walks.even, even), (1 - walks.even, odd)):
        total += share * (loads * loaded * load + stores * stored * store)
    return total


def _line(loads: Fraction, stores: Fraction | None) -> tuple[Fraction, Fraction]:
    """(seconds of a loaded byte, seconds that storing it adds) at these rates."""
    return 1 / loads, 1 / stores if stores else Fraction(0)


def _even_line(part: Cache | Memory) -> tuple[Fraction, Fraction]:
    """The same for lines an even number of lines apart."""
    return _line(part.strided_bytes_per_s or part.bandwidth_bytes_per_s, part.strided_stores_bytes_per_s)


def _narrow_line(part: Cache | Memory, sets: int, machine: Machine) -> tuple[Fraction, Fraction]:
    """The same for lines that fall into few sets of the first cache.

    Loads wait for room in these sets: in two sets, they are twice as fast as in one. A store takes at least as long as
    if its line came from the second cache, whose `crowded_stores` are measured, wherever its line comes from.
    """
    load, store = _even_line(part)
    if part.crowded_bytes_per_s is not None:
        load = max(load, 1 / (sets * part.crowded_bytes_per_s))
    return load, max(store, _of_crowded_store(machine) - load)


def crowded_seconds(walks: Walks, machine: Machine) -> Fraction:
    """The seconds of the lines of strided walks and of those that are lost only because of sets, at the rates of few
    sets where they fall into such.

    Lines of strided walks that are lost come from farther levels than they would without sets.
    """
    total, sets = Fraction(0), walks.fewest_sets
    theirs = not set(walks.tight.arrays).isdisjoint(walks.arrays)
    pairs = zip(from_each(walks.lines, machine), _from_each(_with_lost(walks), machine), strict=True)
    for (part, least_loaded, least_stored), (_, loaded, stored) in pairs:
        kept = (min(loaded, least_loaded), min(stored, least_stored)) if theirs else (least_loaded, least_stored)
        total += _strided(walks, part, *kept, machine)
        load, store = _narrow_line(part, sets, machine) if sets else _even_line(part)
        total += max(Fraction(0), loaded - least_loaded) * load + max(Fraction(0), stored - least_stored) * store
    return total


def _with_lost(walks: Walks) -> list[tuple[str, Fraction, Fraction]]:
    """(level, loaded and stored bytes of strided walks and of lines that are lost because of sets, across its boundary
    to the nearer one).
    """
    lost, lost_stores = walks.tight.lost(), walks.tight.lost_stores()
    found = []
    for one, more in zip(walks.lines, walks.crowded, strict=True):
        stored = lost_stores * more.stored
        loaded = stored + lost * max(0, more.loaded - more.stored)
        found.append((one.level, one.loaded + loaded, one.stored + stored))
    return found


def _of_crowded_store(machine: Machine) -> Fraction:
    """The seconds of a byte that is loaded and stored in a single set of the first cache; 0 if that is not stated."""
    for cache in machine.caches:
        if cache.crowded_stores_bytes_per_s is not None:
            rate = cache.strided_bytes_per_s or cache.bandwidth_bytes_per_s
            return 1 / rate + 1 / cache.crowded_stores_bytes_per_s
    return Fraction(0)


def from_each(lines: Sequence[Lines], machine: Machine) -> Iterator[tuple[Cache | Memory, Fraction, Fraction]]:
    """(level, bytes loaded from it, bytes stored to it), without those that go on to a farther level."""
    return _from_each([(one.level, Fraction(one.loaded), Fraction(one.stored)) for one in lines], machine)


def _from_each(
    crossing: Sequence[tuple[str, Fraction, Fraction]], machine: Machine
) -> Iterator[tuple[Cache | Memory, Fraction, Fraction]]:
    parts, nothing = {part.name: part for part in machine.hierarchy}, ("", Fraction(0), Fraction(0))
    for (name, loaded, stored), (_, farther, farther_stored) in zip(crossing, [*crossing[1:], nothing], strict=True):
        yield parts[name], max(Fraction(0), loaded - farther), max(Fraction(0), stored - farther_stored)


def streams_seconds(lines: Sequence[Lines], levels: Sequence[tuple[LevelTime, Fraction]]) -> Fraction:
    """The seconds of the streams, which are those of the slowest level, given each level with its time."""
    rest = Fraction(0)
    of = {one.level: one.loaded + one.stored for one in lines}
    for level, time in levels:
        if level.bytes:
            rest = max(rest, time * max(0, level.bytes - of.get(level.name, 0)) / level.bytes)
    return rest


def page_walks_seconds(pages: int, machine: Machine) -> Fraction:
    """The seconds of this many page walks."""
    core = machine.core
    if core is None or core.walk is None or not machine.clock_hz:
        return Fraction(0)
    return pages * core.walk / machine.clock_hz
