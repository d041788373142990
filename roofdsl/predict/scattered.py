"""Lines that data choose, in no order: gathers such as `x[col[k]]`, and scatters such as `y[row[k]] += ...`.

Hardware fetches streams ahead. A line that follows no other one is fetched when it is asked for, so its time does not
follow from the bandwidth, but from the number of requests that the core has under way: the machine's `random` rate.
Which lines these are follows from the data: every access goes through the caches (`simulate.several_caches`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.data_traffic import DataTraffic, Limits, chosen_arrays, data_traffic_at
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.placed import PAGE
from roofdsl.loops.sized import sized
from roofdsl.loops.streams import has_streams
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.ecm import measured_turns_s
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import Lines, from_each, page_walks_seconds


class Scattered(Record):
    """The lines of a launch in no order: their arrays, the bytes across each boundary behind a cache, and the page
    walks.
    """

    arrays: tuple[str, ...]
    lines: tuple[Lines, ...]
    pages: int = 0


def data_traffic(kernel: Kernel, values: Mapping[str, int], machine: Machine, *, warm: bool) -> DataTraffic | None:
    """One pass over the accesses of a kernel with data: behind every cache of a machine, with what a core keeps of the
    last one, and the pages that its TLB does not hold.

    None for other kernels, for stores that bypass the caches, for GPUs, and if the first cache states no line, or none
    whose length is a power of two. Raises as `data_traffic_at`.
    """
    line = machine.caches[0].line_bytes if machine.caches else None
    if kernel.data is None or line is None or line & (line - 1) or has_streams(kernel) or machine.multiprocessor:
        return None
    at, core = sized(kernel, values), machine.core
    if any(line % a.type.bytes for a in at.kernel.arrays):
        return None
    sizes = {size for c in machine.caches for size in (c.size_bytes, c.kept_bytes)}
    pages = core.pages if core is not None and core.walk is not None and line <= PAGE else None
    limits = Limits(line, tuple(sorted({max(1, size // line) for size in sizes})), pages or 0, PAGE)
    return data_traffic_at(at, limits, warm=warm)


def scattered_of(
    counted: DataTraffic | None, kernel: Kernel, machine: Machine, levels: Sequence[LevelTime]
) -> Scattered | None:
    """The lines in no order of one launch of a kernel with data; None without any, and on a machine without rates.

    counted: one pass over the accesses of this launch. levels: the bytes of every level.
    """
    names = chosen_arrays(kernel)
    stated = any(part.random_bytes_per_s or part.strided_bytes_per_s for part in machine.hierarchy)
    if counted is None or not names or not stated:
        return None
    behind = [level.name for level in levels if level.nearer != "registers" and level.kind != "link"]
    if behind != [part.name for part in machine.hierarchy[1:]]:
        return None  # a level was left out, so it is unknown where its lines come from
    return Scattered(names, _lines(counted, machine), counted.pages)


def scattered_seconds(
    scattered: Scattered, levels: Sequence[tuple[LevelTime, Fraction]], machine: Machine
) -> tuple[Fraction, Fraction]:
    """(seconds of the lines in no order together with the streams, seconds of page walks together with the streams),
    given each level with its time, nearest first.

    Streams are fetched ahead while the core waits for lines in no order. But both take turns in the buffers that hold
    the requests under way, whose number limits the rates of either: those of the first cache, through which all lines
    pass, and those of the second, into which streams are fetched ahead. So the lines of the level behind the first
    cache and of farther ones add to the streams of that level; those of farther levels add to all streams from there,
    which take the time that they take alone. A line takes the time of the level that it comes from, and no more on its
    way. A level without a `random` rate counts with its rate of strided loads, or else with its bandwidth.
    """
    found_s = paged_s = Fraction(0)
    pages_s = page_walks_seconds(scattered.pages, machine)
    of = {one.level: one.loaded + one.stored for one in scattered.lines}
    streams = [_without(level, of.get(level.name, 0)) for level, _ in levels]
    rests = [time * s.bytes / level.bytes if level.bytes else Fraction(0)
             for (level, time), s in zip(levels, streams, strict=True)]  # fmt: skip
    for k, rest_s in enumerate(rests):
        streams_s = max(*rests[k:], measured_turns_s(streams[k:], machine)) if k else rest_s
        lines_s = Fraction(0)
        for part, loaded, stored in from_each(scattered.lines[k:], machine):
            loads, stores = _rates(part)
            lines_s += loaded / loads + (stored / stores if stores else 0)
        found_s, paged_s = max(found_s, lines_s + streams_s), max(paged_s, pages_s + rest_s)
    return found_s, paged_s


def _without(level: LevelTime, line_bytes: int) -> LevelTime:
    """A level's streams: its traffic without so many bytes of lines in no order, in the same proportions."""
    return level if not level.bytes else (level * max(0, level.bytes - line_bytes)).divided(level.bytes)


def _rates(part: Cache | Memory) -> tuple[Fraction, Fraction | None]:
    """(bytes per second of loads; the rate at which stores add to their time, None if they add nothing)."""
    if part.random_bytes_per_s is not None:
        return part.random_bytes_per_s, part.random_stores_bytes_per_s
    return part.strided_bytes_per_s or part.bandwidth_bytes_per_s, part.strided_stores_bytes_per_s


def _lines(found: DataTraffic, machine: Machine) -> tuple[Lines, ...]:
    """The lines in no order behind each cache."""
    line = found.limits.line_bytes
    kept = [c.kept_bytes if c is machine.last_cache else c.size_bytes for c in machine.caches]
    each = [found.behind(max(1, size // line)) for size in kept]
    parts = zip(machine.hierarchy[1:], each, strict=True)
    return tuple(Lines(part.name, line * c.begun_apart, line * c.stored_apart) for part, c in parts)
