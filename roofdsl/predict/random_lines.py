"""Randomly accessed lines, which data choose: gathers such as `x[col[k]]`, and scatters such as `y[row[k]] += ...`.

Hardware fetches streams ahead. A line that follows no other one is fetched when it is asked for, so its time does not
follow from the bandwidth, but from the number of requests that the core has under way: the machine's `random` rate.
Which lines these are follows from the data (`predict.data_pass`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.expected_level_times import measured_turns_s
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import Lines
from roofdsl.predict.strided_times import from_each, page_walks_seconds


class Scattered(Record):
    """The randomly accessed lines of a launch: their arrays, the bytes across each boundary behind a cache, and the
    page walks.
    """

    arrays: tuple[str, ...]
    lines: tuple[Lines, ...]
    pages: int = 0


def scattered_seconds(
    scattered: Scattered, levels: Sequence[tuple[LevelTime, Fraction]], machine: Machine
) -> tuple[Fraction, Fraction]:
    """(seconds of the randomly accessed lines together with the streams, seconds of page walks together with the
    streams), given each level with its time, nearest first.

    Streams are fetched ahead while the core waits for randomly accessed lines. But both take turns in the buffers that
    hold the requests under way, whose number limits the rates of either: those of the first cache, through which all
    lines pass, and those of the second, into which streams are fetched ahead. So the time is the longest of several
    sums, one for each level k behind the first cache: the randomly accessed lines that come from level k or from
    farther away, and streams. For the nearest of these levels, these are its own streams; for the others, all streams
    from level k on, with the time that they take alone. A line takes the time of the level that it comes from, and no
    more on its way. A level without a `random` rate counts with its rate of strided loads, or else with its bandwidth.
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
    """A level's streams: its traffic without `line_bytes` of randomly accessed lines, in the same proportions."""
    return level if not level.bytes else (level * max(0, level.bytes - line_bytes)).divided(level.bytes)


def _rates(part: Cache | Memory) -> tuple[Fraction, Fraction | None]:
    """(bytes per second of loads; the rate at which stores add to their time, None if they add nothing)."""
    if part.random_bytes_per_s is not None:
        return part.random_bytes_per_s, part.random_stores_bytes_per_s
    return part.strided_bytes_per_s or part.bandwidth_bytes_per_s, part.strided_stores_bytes_per_s
