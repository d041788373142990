"""Lines that data choose, in no order: gathers such as `x[col[k]]`, and scatters such as `y[row[k]] += ...`.

Hardware fetches streams ahead. A line that follows no other one is fetched when it is asked for, so its time does not
follow from the bandwidth, but from the number of requests that the core has under way: the machine's `random` rate.
Which lines these are follows from the data: every access goes through the caches (`simulate.scattered_lines`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import accesses, indices, statements
from roofdsl.loops.model import Assign, Kernel, Let
from roofdsl.loops.placed import PAGE
from roofdsl.loops.sized import sized
from roofdsl.machine.model import Cache, Machine, Memory
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.strided import Lines, from_each, page_walks_seconds

MOST_ACCESSES = 30_000_000
"""Traces are kept up to this many accesses (about three seconds for four levels); beyond that, lines count as streams.
"""


def chosen_arrays(kernel: Kernel) -> tuple[str, ...]:
    """The arrays of which data choose elements, in the order of their declarations."""
    found = set()
    for placed in statements(kernel.body):
        if isinstance(placed.statement, (Assign, Let)):
            touched = (access.element for access in accesses(placed.statement))
            found |= {e.array.name for e in touched if next(indices(e), None) is not None}
    return tuple(a.name for a in kernel.arrays if a.name in found)


class Scattered(Record):
    """The lines of a launch in no order: their arrays, the bytes across each boundary behind a cache, and the page
    walks.
    """

    arrays: tuple[str, ...]
    lines: tuple[Lines, ...]
    pages: int = 0
    assumptions: tuple[str, ...] = ()


def scattered_of(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, levels: Sequence[LevelTime], *, warm: bool
) -> Scattered | None:
    """The lines in no order of one launch of a kernel with data; None without any, and on a machine without rates.

    levels: the bytes of every level. warm: right after another launch, which left its data in the caches.
    """
    names = chosen_arrays(kernel)
    line = machine.caches[0].line_bytes if machine.caches else None
    stated = any(part.random_bytes_per_s or part.strided_bytes_per_s for part in machine.hierarchy)
    if not names or line is None or not stated:
        return None
    behind = [level.name for level in levels if level.nearer != "registers" and level.kind != "link"]
    if behind != [part.name for part in machine.hierarchy[1:]]:
        return None  # a level was left out, so it is unknown where its lines come from
    try:
        return Scattered(names, *_lines(kernel, values, machine, line, names, warm=warm))
    except CommandError as error:
        note = f"lines of {' and '.join(names)} are counted as streams: {error.message}"
        return Scattered(names, tuple(Lines(name, 0, 0) for name in behind), assumptions=(note,))


def scattered_seconds(
    scattered: Scattered, levels: Sequence[tuple[LevelTime, Fraction]], machine: Machine
) -> tuple[Fraction, Fraction]:
    """(seconds of the lines in no order together with the streams, seconds of page walks together with the streams),
    given each level with its time, nearest first.

    Streams are fetched ahead while the core waits for lines in no order. But both come from the same level, or through
    it, one after the other: at each level, what comes from there or from farther adds to the streams' own time. A line
    takes the time of the level that it comes from, and no more on its way. A level without a `random` rate counts with
    its rate of strided loads, or else with its bandwidth.
    """
    found_s = paged_s = Fraction(0)
    pages_s = page_walks_seconds(scattered.pages, machine)
    of = {one.level: one.loaded + one.stored for one in scattered.lines}
    for k, (level, time) in enumerate(levels):
        rest_s = time * max(0, level.bytes - of.get(level.name, 0)) / level.bytes if level.bytes else Fraction(0)
        lines_s = Fraction(0)
        for part, loaded, stored in from_each(scattered.lines[k:], machine):
            loads, stores = _rates(part)
            lines_s += loaded / loads + (stored / stores if stores else 0)
        found_s, paged_s = max(found_s, lines_s + rest_s), max(paged_s, pages_s + rest_s)
    return found_s, paged_s


def _rates(part: Cache | Memory) -> tuple[Fraction, Fraction | None]:
    """(bytes per second of loads; the rate at which stores add to their time, None if they add nothing)."""
    if part.random_bytes_per_s is not None:
        return part.random_bytes_per_s, part.random_stores_bytes_per_s
    return part.strided_bytes_per_s or part.bandwidth_bytes_per_s, part.strided_stores_bytes_per_s


def _lines(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, line: int, names: Sequence[str], *, warm: bool
) -> tuple[tuple[Lines, ...], int]:
    """(the lines in no order behind each cache, accesses to pages that are not in the TLB). Raises CommandError."""
    from roofdsl.simulate.scattered_lines import scattered_lines, scattered_pages

    at, core = sized(kernel, values), machine.core
    kept = [c.kept_bytes if c is machine.last_cache else c.size_bytes for c in machine.caches]
    found = scattered_lines(at, names, line, [max(1, k // line) for k in kept], most=MOST_ACCESSES, warm=warm)
    parts = zip(machine.hierarchy[1:], found, strict=True)
    lines = tuple(Lines(part.name, line * begun, line * stored) for part, (begun, stored) in parts)
    if core is None or core.pages is None or core.walk is None or line > PAGE:
        return lines, 0
    pages = scattered_pages(at, names, line, core.pages, page_bytes=PAGE, most=MOST_ACCESSES, warm=warm)
    return lines, pages
