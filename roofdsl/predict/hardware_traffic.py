"""The hardware's traffic in a launch beyond what the bound counts, and the time that it takes.

The bound counts by a convention, and takes every level at its bandwidth. A core may move more than that (`traffic once`
does not count both the load and the store of a line). Some lines also take longer: those of strided walks, those
accessed at random, those that come into a first cache that serves no loads meanwhile, and the first lines of pages,
which were not prefetched. The time that each of these adds becomes a cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from roofdsl.incore.result import InCore
from roofdsl.lang.record import Record, replace
from roofdsl.loops.array_placement import PAGE
from roofdsl.loops.model import Traffic
from roofdsl.machine.kept import found_again
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_size
from roofdsl.predict.gathered import Gathered, gathered_seconds
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.random_lines import Scattered, scattered_seconds
from roofdsl.predict.strided import Walks
from roofdsl.predict.strided_times import crowded_seconds, page_walks_seconds, streams_seconds, strided_seconds

REORDERED = "data in an order that visits neighbors together"
NEARER = "a working set that fits into a nearer cache"


class Moved(Record):
    """A cause of more traffic or of lower rates. levels: all levels, with the effects of this cause and of those before
    it.
    """

    cause: str
    remedy: str
    levels: tuple[LevelTime, ...]


class Moving(Record):
    """What the hardware moves, and how fast. more: the causes of traffic beyond the bytes of the bound, and of lower
    rates; the last has all of them. walks: the strided walks, scattered: the randomly accessed lines, gathered: what
    gathers would load if the code has any; None without any.
    unchanged: whether no line is written back, provided that the code's stores are masked. streams: the number of
    streams, None if it is unknown or does not matter.
    """

    more: tuple[Moved, ...] = ()
    walks: Walks | None = None
    scattered: Scattered | None = None
    gathered: Gathered | None = None
    unchanged: bool = False
    streams: Fraction | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        return () if self.walks is None else self.walks.assumptions


AS_COUNTED = Moving()


WRITTEN: Mapping[Traffic, str] = {
    "once": "written lines are also loaded or stored, which `traffic once` does not count",
    "load_store": "stores load their lines first, which `traffic load_store` does not count",
    "write_allocate": "stores load fewer lines first than `traffic write_allocate` counts",
}
"""How the machine's own policy differs from the convention that a kernel states."""


def lost_by_sharing(
    levels: Sequence[LevelTime],
    footprint_bytes: int,
    machine: Machine,
    memory_behind: Callable[[Machine], LevelTime],
) -> Moved | None:
    """What else comes from memory because the last cache keeps less than its whole size for this code; None if nothing.

    memory_behind: the memory's traffic on a machine with another last cache. A launch whose data outgrow what is kept
    finds a share of them again (`machine.kept`). For the rest, it moves what it would move behind a cache of that size.
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
    # The mean of both, weighted by `again`: levels multiply by whole numbers only.
    least, most = memory * again.numerator, other * (again.denominator - again.numerator)
    mixed = (least + most).divided(again.denominator)
    cause = f"other users leave {show_size(cache.kept_bytes)} of {cache.name}"
    found = tuple(mixed if level is memory else level for level in levels)
    # with stores that bypass the caches, loads add their time even if more is stored than loaded
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
    core: InCore,
    machine: Machine,
) -> list[Delay]:
    """The delays by lines taken one by one, and by lines that come in, given the levels behind the first cache and
    their times.

    core: with the time of the loads and stores between the registers and the first cache.
    """
    loads_s = Fraction(core.steps[-1].loads_s)
    found = [] if moving.walks is None else _walked(moving.walks, levels, transfers, machine)
    if moving.gathered is not None and core.gathered:
        found.append(_gathered(moving.gathered, core.gathered, levels, transfers, machine))
    if moving.scattered is not None:
        found += _randomly_accessed(moving.scattered, levels, transfers, machine)
    rate = machine.caches[0].fill_bytes_per_s if machine.caches else None
    if rate is not None and levels and levels[0].bytes:
        cause = f"{machine.caches[0].name} serves no loads while lines come in"
        found.append(Delay(cause, NEARER, loads_s + levels[0].bytes / rate))
    return found


def _walked(
    walks: Walks, levels: Sequence[LevelTime], transfers: Sequence[tuple[str, Fraction]], machine: Machine
) -> list[Delay]:
    """The delays by strided walks: their lines, lines lost because they fall into few sets, and the addresses of their
    pages.
    """
    rest_s = streams_seconds(walks.lines, [(level, time) for level, (_, time) in zip(levels, transfers, strict=True)])
    names, crowded = " and ".join(walks.arrays), " and ".join(walks.tight.arrays)
    lines_s = strided_seconds(walks, machine)
    crowded_s = max(lines_s, crowded_seconds(walks, machine))
    pages_s = page_walks_seconds(walks.pages, machine)
    return [
        Delay(
            f"stride: every access to {names} is to a different line", "interchanged or tiled loops", lines_s + rest_s
        ),
        Delay(f"lines of {crowded} fall into few sets", "rows that are a line longer", crowded_s + rest_s),
        Delay(f"every access to {names} is to a different page", "tiled loops", max(crowded_s, pages_s) + rest_s),
    ]


def _gathered(
    gathered: Gathered,
    loads: float,
    levels: Sequence[LevelTime],
    transfers: Sequence[tuple[str, Fraction]],
    machine: Machine,
) -> Delay:
    """The delay by lines that gathers load, beside the streams."""
    rest_s = streams_seconds(gathered.lines, [(v, time) for v, (_, time) in zip(levels, transfers, strict=True)])
    names = " and ".join(gathered.arrays)
    time_s = gathered_seconds(gathered, loads, machine) + rest_s
    return Delay(f"lines of {names} are gathered, and not prefetched", "parts in arrays of their own", time_s)


def _randomly_accessed(
    scattered: Scattered, levels: Sequence[LevelTime], transfers: Sequence[tuple[str, Fraction]], machine: Machine
) -> list[Delay]:
    """The delays by randomly accessed lines, and by the addresses of their pages."""
    names = " and ".join(scattered.arrays)
    times = [(level, time) for level, (_, time) in zip(levels, transfers, strict=True)]
    lines_s, paged_s = scattered_seconds(scattered, times, machine)
    return [
        Delay(f"randomly accessed lines of {names}, which the data choose", REORDERED, lines_s),
        Delay(f"randomly accessed pages of {names}", REORDERED, max(lines_s, paged_s)),
    ]


def restarts_s(levels: Sequence[LevelTime], machine: Machine) -> tuple[Fraction, str]:
    """(the seconds that streams lose at the first lines of pages while the core computes, the farthest level with such
    a loss).

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
