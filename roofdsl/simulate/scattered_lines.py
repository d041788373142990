"""The lines that data choose and that come into caches in no order, for fully associative LRU caches and a trace.
Imports numba.

A line that comes in next to one that came in shortly before continues a stream, which hardware fetches ahead. Others
are fetched when they are asked for. All caches see all accesses, as in `stack`: a larger one holds what a smaller one
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.loops.sized import Sized
from roofdsl.simulate.compiled_kernel import compile_kernel
from roofdsl.simulate.trace import accesses_in_order
from roofdsl.simulate.walk import Ints, compiled, first_call

STREAMS = 32
"""The number of streams that a prefetcher follows: a line continues one if a neighbor is among this many lines that
came before it (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data prefetch to the L2 and L3": 32
streams).
"""

HERE, DIRTY, RANDOM = 1, 2, 4  # bits of a line's state
MISSES, BEGUN, STORED, TALLIES = range(4)
"""Columns of the tallies: all misses; residencies that begin in no order, of lines that data choose; stored ones."""

Table = Any


def _run_scattered(  # noqa: PLR0917
    trace: Table, chosen: Table, shift: int, capacity: int, links: Table, state: Table, counts: Ints, recent: Ints,
    tally: Ints,
) -> None:  # fmt: skip
    """Runs a trace through one cache of `capacity` units of 2**shift lines.

    links: (newer, older) of each unit, in a ring through the place behind the last unit. counts: (units held, place in
    `recent`). recent: the last units that came in because data chose them.
    """
    newer, older = links[0], links[1]
    head = newer.shape[0] - 1  # older[head] is the newest unit, newer[head] the oldest
    held, at = counts[0], counts[1]
    for t in range(trace.shape[0]):
        line = trace[t] >> 1
        unit = line >> shift
        if older[head] != unit:
            if state[unit] & HERE:
                newer[older[unit]] = newer[unit]
                older[newer[unit]] = older[unit]
            else:
                tally[MISSES] += 1
                state[unit] = HERE
                if chosen[line]:
                    alone = True
                    for r in range(recent.shape[0]):
                        if recent[r] - 1 == unit or recent[r] + 1 == unit:
                            alone = False
                    if alone:
                        state[unit] |= RANDOM
                        tally[BEGUN] += 1
                    recent[at] = unit
                    at = (at + 1) % recent.shape[0]
                if held == capacity:
                    gone = newer[head]
                    newer[head] = newer[gone]
                    older[newer[gone]] = head
                    if state[gone] & (DIRTY | RANDOM) == DIRTY | RANDOM:
                        tally[STORED] += 1
                    state[gone] = 0
                else:
                    held += 1
            first = older[head]
            older[unit], newer[unit] = first, head
            newer[first] = unit
            older[head] = unit
        if trace[t] & 1:
            state[unit] |= DIRTY
    counts[0], counts[1] = held, at


run_scattered = compiled(_run_scattered)


def scattered_lines(
    at: Sized, names: Sequence[str], line_bytes: int, caches: Sequence[int], *, most: int, warm: bool
) -> list[tuple[int, int]]:
    """(residencies begun in no order, those of them that are stored) behind caches of these numbers of lines.

    names: the arrays of which data choose elements. warm: as in `scattered`. Raises CommandError beyond `most`
    accesses, and as `compile_kernel` does.
    """
    accesses, chosen = _trace(at, names, line_bytes, most)
    return [scattered(accesses, chosen, lines, warm=warm)[1:] for lines in caches]


def scattered_pages(
    at: Sized, names: Sequence[str], line_bytes: int, pages: int, *, page_bytes: int, most: int, warm: bool
) -> int:
    """The number of accesses to a page that is not among the last `pages` ones used; raises as `scattered_lines`."""
    accesses, chosen = _trace(at, names, line_bytes, most)
    shift = (page_bytes // line_bytes).bit_length() - 1
    return scattered(accesses, chosen, pages, shift=shift, warm=warm)[0]


def _trace(at: Sized, names: Sequence[str], line_bytes: int, most: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """(accesses, by line whether it is of one of these arrays)."""
    program = compile_kernel(at.kernel, at.values, line_bytes)
    accesses, _ = accesses_in_order(program, at.name, most)
    layouts = program.layouts
    return accesses, np.repeat([a.array.name in names for a in layouts], [a.count for a in layouts])


def scattered(
    accesses: NDArray[np.int32], chosen: NDArray[np.bool_], capacity: int, *, shift: int = 0, warm: bool = False
) -> tuple[int, int, int]:
    """(misses, residencies begun in no order, those of them that are stored) in a cache of `capacity` units.

    accesses: twice the line's number, plus 1 for a write. chosen: by line, whether data choose accesses to it. A unit
    is 2**shift lines. warm: counts a second execution right after a first one, which starts with the caches as they
    are; otherwise, lines still dirty at the end count as stored.
    """
    units = (len(chosen) >> shift) + 1
    links = np.full((2, units + 1), units, dtype=np.int32)
    state = np.zeros(units, dtype=np.uint8)
    counts, recent = np.zeros(2, dtype=np.int64), np.full(STREAMS, -2, dtype=np.int64)
    tally = np.zeros(TALLIES, dtype=np.int64)
    for run in range(2 if warm else 1):
        tally[:] = 0
        with first_call(run_scattered):
            run_scattered(accesses, chosen, shift, capacity, links, state, counts, recent, tally)
        if run == 0 and not warm:
            tally[STORED] += int(np.count_nonzero((state & (DIRTY | RANDOM)) == DIRTY | RANDOM))
    return int(tally[MISSES]), int(tally[BEGUN]), int(tally[STORED])
