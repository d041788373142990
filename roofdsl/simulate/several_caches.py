"""Several fully associative LRU caches at once: one pass over the accesses of a kernel, which data may choose.

All caches see all accesses, so a larger one holds what a smaller one holds (Mattson, Gecsei, Slutz, Traiger,
"Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). One list of lines serves up to
MOST_CACHES of them: a cache holds the newest lines, down to its `oldest`. An access costs one move in the list, and one
step of `oldest` for each cache that misses. Imports numba.

Data may choose lines at random. A line that comes in next to one that came in shortly before continues a stream, which
hardware fetches ahead. Others are fetched only when they are requested, and are counted separately (`apart`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.simulate.addresses import short_loops, write_addresses
from roofdsl.simulate.compiled_kernel import Program
from roofdsl.simulate.lru_traffic import check_inside
from roofdsl.simulate.walk import RUNNING, STATUS, Ints, compiled, cursor_of, first_call, tables_of

STREAMS = 32
"""The number of streams that a prefetcher follows: a line continues one if a neighbor is among this many lines that
came before it (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data prefetch to the L2 and L3": 32
streams).
"""

MOST_CACHES = 8
"""The maximum number of caches with one list: a line's marks are bytes with a bit for each of them."""

CHUNK = 1 << 16
"""Accesses passed from the walk to the caches at a time: they fit in the second cache of the simulating computer."""

BYTES_PER_LINE = 14
"""Two links of 4 bytes, an owner of 2, and 4 marks of 1 byte each."""

OLDER, NEWER = range(2)  # columns of the links
NEAREST, DIRTY, APART, CHOSEN = range(4)  # columns of the marks: a cache's number, twice a bit for each cache, 0 or 1
BEGUN, BEGUN_BY_WRITE, STORED = range(3)  # columns of the tallies of arrays

Table = Any


class Passed(Record):
    """What one execution, or the second of two in a row, did to several caches.

    accesses: of one execution. counts: [execution, cache, array, BEGUN ...], the totals since the beginning, after each
    execution, as if the dirty lines were stored then (those of temporaries are not). apart: (residencies that the last
    execution began by a random access, those stored) of each cache. pages: its accesses to a page that was not held.
    touched: the distinct elements of each array.
    """

    accesses: int
    counts: NDArray[np.int64]
    apart: tuple[tuple[int, int], ...]
    pages: int
    touched: tuple[int, ...]


def _mark_touched(trace: Ints, made: int, touched: Table) -> None:
    for t in range(made):
        touched[trace[t] >> 1] = 1


mark_touched = compiled(_mark_touched)


def _is_apart(line: int, recent: Ints) -> bool:
    """Whether no neighbor of a line is among the recent ones."""
    near = 0
    for r in range(recent.shape[0]):
        near |= (recent[r] == line - 1) | (recent[r] == line + 1)
    return near == 0


is_apart = compiled(_is_apart)


def _run_caches(  # noqa: PLR0917
    trace: Ints, made: int, shift: int, capacities: Ints, oldest: Ints, links: Table, marks: Table, owner: Table,
    recent: Ints, totals: Ints, tallies: Ints, apart: Ints,
) -> None:  # fmt: skip
    """Sends the first `made` accesses through caches of rising capacity, in lines of 2**shift units of addresses.

    links: (older, newer) of each line, in a ring through the place behind the last line. A line's NEAREST is the
    smallest cache that holds it, or the number of caches. recent: the last chosen lines that came into each cache.
    totals: the length of the list, and each cache's place in `recent`.
    """
    end, caches = links.shape[0] - 1, capacities.shape[0]
    held, every = totals[0], (1 << capacities.shape[0]) - 1
    for t in range(made):
        line, write = trace[t] >> shift + 1, trace[t] & 1
        if links[end, OLDER] != line:
            nearest = marks[line, NEAREST]
            if nearest < caches:
                # Larger caches have another oldest line, or none while they are not full.
                if oldest[nearest] == line:
                    oldest[nearest] = links[line, NEWER]
                older, newer = links[line, OLDER], links[line, NEWER]
                links[older, NEWER] = newer
                links[newer, OLDER] = older
            else:
                held += 1
            newest = links[end, OLDER]
            links[line, OLDER] = newest
            links[line, NEWER] = end
            links[newest, NEWER] = line
            links[end, OLDER] = line
            marks[line, NEAREST] = 0
            for c in range(nearest):
                tallies[c, owner[line], BEGUN] += 1
                tallies[c, owner[line], BEGUN_BY_WRITE] += write
                if marks[line, CHOSEN]:
                    if is_apart(line, recent[c]):
                        marks[line, APART] |= 1 << c
                        apart[c, 0] += 1
                    recent[c, totals[1 + c]] = line
                    totals[1 + c] = (totals[1 + c] + 1) % recent.shape[1]
                if held > capacities[c]:
                    gone = oldest[c]
                    oldest[c] = links[gone, NEWER]
                    marks[gone, NEAREST] = c + 1
                    if marks[gone, DIRTY] >> c & 1:
                        tallies[c, owner[gone], STORED] += 1
                        apart[c, 1] += marks[gone, APART] >> c & 1
                    marks[gone, DIRTY] &= ~(1 << c)
                    marks[gone, APART] &= ~(1 << c)
                    if c == caches - 1:  # no cache holds it
                        links[end, NEWER] = oldest[c]
                        links[oldest[c], OLDER] = end
                        held -= 1
                # full for the first time: the oldest line is the last of the list
                elif held == capacities[c]:
                    oldest[c] = links[end, NEWER]
        if write:
            marks[line, DIRTY] = every
    totals[0] = held


run_caches = compiled(_run_caches)


class _List:
    """At most MOST_CACHES caches of `capacities` lines, in rising order, over so many lines of 2**shift units of
    addresses.
    """

    def __init__(self, capacities: Sequence[int], lines: int, shift: int, owner: Table, chosen: Table) -> None:
        count = len(capacities)
        self.capacities, self.shift = np.array(capacities, dtype=np.int64), shift
        self.oldest = np.full(count, -1, dtype=np.int64)
        self.links = np.full((lines + 1, 2), lines, dtype=np.int32)
        self.marks = np.zeros((lines, 4), dtype=np.uint8)
        self.marks[:, NEAREST], self.marks[:, CHOSEN] = count, chosen
        self.owner = owner
        self.recent = np.full((count, STREAMS), -2, dtype=np.int64)
        self.totals = np.zeros(count + 1, dtype=np.int64)
        self.tallies = np.zeros((count, int(owner.max(initial=0)) + 1, 3), dtype=np.int64)
        self.apart = np.zeros((count, 2), dtype=np.int64)

    def run(self, trace: Ints, made: int) -> None:
        with first_call(run_caches):
            run_caches(
                trace, made, self.shift, self.capacities, self.oldest, self.links, self.marks, self.owner, self.recent,
                self.totals, self.tallies, self.apart,
            )  # fmt: skip

    def dirty(self, c: int, begin: int, end: int) -> int:
        """How many of these lines are dirty in a cache."""
        return int(np.count_nonzero(self.marks[begin:end, DIRTY] >> c & 1))

    def left_apart(self, c: int) -> int:
        """The randomly accessed lines that are dirty in a cache."""
        return int(np.count_nonzero((self.marks[:, DIRTY] & self.marks[:, APART]) >> c & 1))


def several_caches(  # noqa: PLR0917
    program: Program, name: str, capacities: Sequence[int], names: Sequence[str], pages: int, page_bytes: int, *,
    warm: bool, memory_bytes: int,
) -> Passed:  # fmt: skip
    """The accesses of a program, whose lines all have one size, through caches of these numbers of lines.

    capacities: in rising order. names: the arrays of which data choose elements. pages: the pages of `page_bytes` that
    a TLB holds; 0 counts none. warm: the program is executed twice in a row, and the second time counts. Raises
    CommandError for an access outside its array, and for tables that need more than `memory_bytes`.
    """
    layouts = program.layouts
    unit = gcd(*(a.array.type.bytes for a in layouts))
    line_bytes = layouts[0].line_bytes
    room = max(CHUNK, 4 * max((count for _, count in program.groups), default=0))
    together = [capacities[k : k + MOST_CACHES] for k in range(0, len(capacities), MOST_CACHES)]
    _check_memory(program, name, len(together) * BYTES_PER_LINE + line_bytes // unit, memory_bytes)
    begins = np.array([a.first * line_bytes // unit for a in layouts], dtype=np.int64)
    sizes = np.array([a.array.type.bytes // unit for a in layouts], dtype=np.int64)
    owner = np.repeat(np.arange(len(layouts), dtype=np.uint16), [a.count for a in layouts])
    chosen = np.repeat([a.array.name in names for a in layouts], [a.count for a in layouts])
    width = (line_bytes // unit).bit_length() - 1
    lists = [_List(some, program.lines, width, owner, chosen) for some in together]
    shift = (page_bytes // unit).bit_length() - 1
    some = program.lines * line_bytes // page_bytes + 1
    held = _List([pages] if pages else [], some, shift, np.zeros(some, dtype=np.uint16), False)
    touched = np.zeros(program.lines * (line_bytes // unit), dtype=np.uint8)
    trace = np.empty(room, dtype=np.int64)
    counts = np.zeros((1 + warm, len(capacities), len(layouts), 3), dtype=np.int64)
    group_of, offsets = short_loops(program)
    total = 0
    for run in range(1 + warm):
        held.tallies[:] = 0
        for lines in lists:
            lines.apart[:] = 0
        total = 0
        tables, cursor = tables_of(program, [0] * len(layouts), [1] * len(layouts)), cursor_of(program)
        while cursor[7][STATUS] == RUNNING:
            with first_call(write_addresses):
                made = write_addresses(tables, cursor, trace, begins, sizes, group_of, offsets)
            total += made
            for lines in lists:
                lines.run(trace, made)
            if pages:
                held.run(trace, made)
            if run == 0:
                with first_call(mark_touched):
                    mark_touched(trace, made, touched)
        check_inside(cursor, program, name)
        for k, lines in enumerate(lists):
            _count(counts[run, k * MOST_CACHES :][:MOST_CACHES], lines, program)
    each_apart = ((lines, c, b, s) for lines in lists for c, (b, s) in enumerate(lines.apart.tolist()))
    apart = [(b, s + (0 if warm else lines.left_apart(c))) for lines, c, b, s in each_apart]
    ends = [a.first * line_bytes // unit + a.elements * size for a, size in zip(layouts, sizes.tolist(), strict=True)]
    each = (int(np.count_nonzero(touched[b:e])) for b, e in zip(begins, ends, strict=True))
    return Passed(total, counts, tuple(apart), int(held.tallies[:, 0, BEGUN].sum()), tuple(each))


def _count(counts: Ints, lines: _List, program: Program) -> None:
    """The tallies, with the dirty lines stored that are kept at the end."""
    used = lines.tallies.shape[1]
    counts[:, :used] = lines.tallies
    for k, a in enumerate(program.layouts):
        if a.array.intent != "temp":
            for c in range(len(counts)):
                counts[c, k, STORED] += lines.dirty(c, a.first, a.first + a.count)


def _check_memory(program: Program, name: str, per_line: int, memory_bytes: int) -> None:
    data = 0 if program.data is None else sum(8 * len(values) for values in program.data)
    needed = program.lines * per_line + data
    if needed > memory_bytes or program.lines >= 2**31 - 1:
        sizes = f"{needed / 2**30:.3g} GiB of memory, and {max(0, memory_bytes) / 2**30:.3g} GiB are available"
        raise CommandError(
            f"simulating the accesses of kernel {name} at these sizes needs {sizes}",
            "use fewer entries, or, if this computer has more memory, allow it: `--budget 10min,32GiB`",
        )
