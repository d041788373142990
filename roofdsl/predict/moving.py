"""The hardware's traffic in a launch beyond what the bound counts, and the time that it takes.

The bound counts by a convention, and takes every level at its bandwidth. A core may move more (`traffic once` does not
count that a line is loaded and stored), and more slowly: lines of strided walks, lines that come into the first cache
while it should serve loads, first lines of pages that were not prefetched. Each of these takes its own time, which
becomes a cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import PAGE, Walks, pages_seconds, strided_seconds

NEARER = "a working set that fits into a nearer cache"


class Moving(Record):
    """The additional traffic. levels: with the bytes that the hardware moves, None if they are those of the bound.
    walks: the strided walks, None without any.
    """

    levels: tuple[LevelTime, ...] | None = None
    walks: Walks | None = None


AS_COUNTED = Moving()


class Delay(Record):
    """A cause that lengthens the transfers: all transfers with this cause and those before it take seconds_s."""

    cause: str
    remedy: str
    seconds_s: Fraction


def delays(
    walks: Walks | None,
    levels: Sequence[LevelTime],
    transfers: Sequence[tuple[str, Fraction]],
    loads_s: Fraction,
    machine: Machine,
) -> list[Delay]:
    """Strided walks and lines that come in, given the levels behind the first cache with the time of each.

    loads_s: of the loads and stores between the registers and the first cache.
    """
    found = [] if walks is None else _walked(walks, levels, transfers, machine)
    rate = machine.caches[0].fill_bytes_per_s if machine.caches else None
    if rate is not None and levels and levels[0].bytes:
        cause = f"{machine.caches[0].name} serves no loads while lines come in"
        found.append(Delay(cause, NEARER, loads_s + levels[0].bytes / rate))
    return found


def _walked(
    walks: Walks, levels: Sequence[LevelTime], transfers: Sequence[tuple[str, Fraction]], machine: Machine
) -> list[Delay]:
    """The time of strided walks: their lines, those that few sets lose, and the addresses of their pages."""
    times = [(level, time) for level, (_, time) in zip(levels, transfers, strict=True)]
    names = " and ".join(walks.arrays)
    lines_s, rest_s = strided_seconds(walks, walks.associative, times, machine)
    crowded_s, _ = strided_seconds(walks, walks.in_sets, times, machine)
    crowded_s = max(lines_s, crowded_s)
    pages_s = pages_seconds(walks, machine)
    return [
        Delay(f"stride: every access to {names} takes another line", "interchanged or tiled loops", lines_s + rest_s),
        Delay(f"lines of {names} fall into few sets", "rows that are a line longer", crowded_s + rest_s),
        Delay(f"every access to {names} is to another page", "tiled loops", max(crowded_s, pages_s) + rest_s),
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
