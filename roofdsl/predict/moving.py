"""The hardware's traffic in a launch beyond what the bound counts, and the time that it takes.

The bound counts by a convention, and takes every level at its bandwidth. A core may move more (`traffic once` does not
count that a line is loaded and stored), and more slowly: lines of strided walks, lines that come into the first cache
while it should serve loads, first lines of pages that were not prefetched. Each of these takes its own time, which
becomes a cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from roofdsl.lang.record import Record, replace
from roofdsl.loops.placed import PAGE
from roofdsl.machine.kept import found_again
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_size
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.scattered import Scattered, scattered_seconds
from roofdsl.predict.strided import Walks, crowded_seconds, page_walks_seconds, streams_seconds, strided_seconds

REORDERED = "data in an order that visits neighbors together"
NEARER = "a working set that fits into a nearer cache"


class Moved(Record):
    """All levels with the bytes that cross with this cause and those before it, beyond what the bound counts."""

    cause: str
    remedy: str
    levels: tuple[LevelTime, ...]


class Moving(Record):
    """What is moved. more: what the hardware moves beyond the bytes of the bound, the last with all of it. walks: the
    strided walks, scattered: the lines that data choose in no order; None without any. unchanged: whether no line is
    written back if the code's stores are masked.
    """

    more: tuple[Moved, ...] = ()
    walks: Walks | None = None
    scattered: Scattered | None = None
    unchanged: bool = False

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(note for part in (self.walks, self.scattered) if part is not None for note in part.assumptions)


AS_COUNTED = Moving()


WRITTEN = "written lines are also loaded or stored, which `traffic once` does not count"


def lost_by_sharing(
    levels: Sequence[LevelTime],
    footprint_bytes: int,
    machine: Machine,
    memory_behind: Callable[[Machine], LevelTime],
) -> Moved | None:
    """What else comes from memory since the last cache keeps less for this code than its whole size; None if nothing.

    memory_behind: the memory's traffic on a machine with another last cache. A launch whose data outgrow what is kept
    finds a share of them again (`machine.kept`), and for the rest moves what it would behind a cache of that size.
    """
    cache = machine.last_cache
    if cache is None or cache.kept_bytes == cache.size_bytes:
        return None
    again = Fraction(found_again(footprint_bytes, cache.kept_bytes)).limit_denominator(10_000)
    memory = next((level for level in levels if level.name == machine.main_memory.name), None)
    if again == 1 or memory is None:
        return None
    smaller = replace(cache, size_bytes=cache.kept_bytes, ways=None)
    other = memory_behind(replace(machine, caches=(*machine.caches[:-1], smaller)))
    least, most = memory * again.numerator, other * (again.denominator - again.numerator)
    mixed = (least + most).divided(again.denominator)
    cause = f"{cache.name} keeps {show_size(cache.kept_bytes)} beside others"
    found = tuple(mixed if level is memory else level for level in levels)
    # beside stores that bypass the caches, loads add their time even if the stores are more
    more = mixed.bytes > memory.bytes if memory.streamed_bytes else mixed.timed_bytes > memory.timed_bytes
    return Moved(cause, NEARER, found) if more else None


class Delay(Record):
    """A cause that lengthens the transfers: all transfers with this cause and those before it take seconds_s."""

    cause: str
    remedy: str
    seconds_s: Fraction


def delays(
    moving: Moving,
    levels: Sequence[LevelTime],
    transfers: Sequence[tuple[str, Fraction]],
    loads_s: Fraction,
    machine: Machine,
) -> list[Delay]:
    """Lines taken one by one, and lines that come in, given the levels behind the first cache with the time of each.

    loads_s: of the loads and stores between the registers and the first cache.
    """
    found = [] if moving.walks is None else _walked(moving.walks, levels, transfers, machine)
    if moving.scattered is not None:
        found += _in_no_order(moving.scattered, levels, transfers, machine)
    rate = machine.caches[0].fill_bytes_per_s if machine.caches else None
    if rate is not None and levels and levels[0].bytes:
        cause = f"{machine.caches[0].name} serves no loads while lines come in"
        found.append(Delay(cause, NEARER, loads_s + levels[0].bytes / rate))
    return found


def _walked(
    walks: Walks, levels: Sequence[LevelTime], transfers: Sequence[tuple[str, Fraction]], machine: Machine
) -> list[Delay]:
    """The time of strided walks: their lines, those that few sets lose, and the addresses of their pages."""
    rest_s = streams_seconds(walks, [(level, time) for level, (_, time) in zip(levels, transfers, strict=True)])
    names, crowded = " and ".join(walks.arrays), " and ".join(walks.tight.arrays)
    lines_s = strided_seconds(walks, machine)
    crowded_s = lines_s + crowded_seconds(walks, machine)
    pages_s = page_walks_seconds(walks.pages, machine)
    return [
        Delay(f"stride: every access to {names} takes another line", "interchanged or tiled loops", lines_s + rest_s),
        Delay(f"lines of {crowded} fall into few sets", "rows that are a line longer", crowded_s + rest_s),
        Delay(f"every access to {names} is to another page", "tiled loops", max(crowded_s, pages_s) + rest_s),
    ]


def _in_no_order(
    scattered: Scattered, levels: Sequence[LevelTime], transfers: Sequence[tuple[str, Fraction]], machine: Machine
) -> list[Delay]:
    """The time of lines that data choose in no order, and of the addresses of their pages."""
    names = " and ".join(scattered.arrays)
    times = [(level, time) for level, (_, time) in zip(levels, transfers, strict=True)]
    lines_s, paged_s = scattered_seconds(scattered, times, machine)
    return [
        Delay(f"lines of {names} in no order, which the data choose", REORDERED, lines_s),
        Delay(f"pages of {names} in no order", REORDERED, max(lines_s, paged_s)),
    ]


def restarts_s(levels: Sequence[LevelTime], machine: Machine) -> tuple[Fraction, str]:
    """(the seconds that pages of streams lose at their first lines while the core computes, the farthest such level).

    levels: those behind the first cache, nearest first. Streams lose this time at the level they come from.
    """
    parts = {part.name: part for part in machine.hierarchy}
    lost, of, farther = Fraction(0), "", 0
    for level in reversed(levels):
        part = parts.get(level.name)
        if part is None:
            continue
        loaded = level.bytes if level.loads_bytes is None else level.loads_bytes
        if part.restart_s and loaded > farther:
            lost, of = lost + Fraction(loaded - farther, PAGE) * part.restart_s, of or level.name
        farther = max(farther, loaded)
    return lost, of
