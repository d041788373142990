"""The first lines that a part of a loop comes to, for `segment_copies.py`: as many as the cache holds, in order.

The iterations are walked access by access, starting with an empty cache. Besides the order of the lines, this shows
what becomes of each line's first residency: whether it begins with a write, whether the line is written in it, and
whether it has ended. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate.lru_list import MISSES, STORED, TOUCHES, WRITE_MISSES
from roofdsl.simulate.segments import COUNT, LINE, STEP, TOO_SMALL, WORK, List, take_line
from roofdsl.simulate.walk import (
    ALARM,
    FIRST,
    NEVER,
    PC,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    internal,
    stays,
)
from roofdsl.simulate.walk import COUNT as REFERENCES

Small = NDArray[np.int32]

# Bits of a line's kind: its first residency began with a write, contains a write, has ended. The number of its array
# follows them.
WRITE_FIRST, WRITTEN, OVER, ARRAY_BIT = 1, 2, 4, 3
PER_LINE = 512  # the most accesses of one walk for each line that the cache holds
MOST_LOOKED_UP = 4096  # the most first lines that may be in the list
BEYOND = 4  # times as many lines as the cache holds, after which a walk ends


class FirstLines(NamedTuple):
    """Work space. cursor: of the walk. numbers: for every line, its number among those touched, 0 for all others; it is
    all 0 between uses. touched: the line of each number. kinds: its kind. log: the numbers in the order of accesses,
    from 1 on; stamp: the last place of each number, 0 if the cache does not hold it. last: the line and the number of
    each reference.
    """

    cursor: Cursor
    numbers: Small
    touched: Small
    kinds: Small
    log: Small
    stamp: Small
    last: Small


def work_space(cursor: Cursor, lines: int, held: int) -> FirstLines:
    """Work space for a program with that many lines, and a cache that holds `held` lines."""
    sizes = (lines, BEYOND * held + 1, BEYOND * held + 1, 8 * held + 64, BEYOND * held + 1)
    numbers, touched, kinds, log, stamp = (np.zeros(size, dtype=np.int32) for size in sizes)
    last = np.zeros((2, len(cursor[3])), dtype=np.int32)
    return FirstLines(tuple(np.zeros_like(table) for table in cursor), numbers, touched, kinds, log, stamp, last)


def _set_out(v: int, first: int, until: int, cursor: Cursor, own: Cursor) -> None:
    """Sets a walk to iteration `first` of loop v; it will stop at `until`."""
    for k in range(cursor[0].shape[0]):
        own[0][k] = cursor[0][k]
    for k in range(cursor[1].shape[0]):
        own[1][k] = cursor[1][k]
    own[0][v] = first
    own[8][:] = NEVER
    own[8][v, ALARM] = until
    own[7][PC], own[7][STATUS], own[7][REMAINING] = cursor[7][PC], RUNNING, 0


set_out = internal(_set_out)


def _shorten(log: Small, stamp: Small, tail: int, place: int) -> int:
    """Removes all but the last place of each number from the log; returns the next place."""
    to = 1
    for p in range(tail, place):
        t = log[p]
        if stamp[t] == p:
            log[to], stamp[t] = t, to
            to += 1
    return to


shorten = internal(_shorten)


def _walk(tables: Tables, space: FirstLines, lines: int) -> tuple[int, int, int]:
    """Walks until the first residencies of the first `lines` lines are over, to the end, or until it has touched too
    many lines or made too many accesses; returns (the lines that were touched, the accesses made, the steps taken).
    """
    references, places = tables[4], tables[5]
    cursor, numbers, touched, kinds, log, stamp, last = space
    flat, stride, control = cursor[3], cursor[4], cursor[7]
    n = held = over = made = steps = 0
    tail, place, most = 1, 1, touched.shape[0] - 1
    while control[STATUS] == RUNNING and over < lines and n < most and made + steps < PER_LINE * lines:
        steps += advance(tables, cursor)
        left, first, count = control[REMAINING], control[FIRST], control[REFERENCES]
        control[REMAINING] = 0
        for r in range(count):
            last[0, r] = -1
        while left > 0 and n < most:
            same = left
            for r in range(count):
                array, write = references[first + r, 1], references[first + r, 2]
                per, shift = places[array, 1], places[array, 2]
                line = places[array, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
                if line != last[0, r]:
                    last[0, r], last[1, r] = line, numbers[line]
                    if numbers[line] == 0 and n < most:
                        n += 1
                        numbers[line] = last[1, r] = n
                        touched[n], kinds[n], stamp[n] = line, (array << ARRAY_BIT) | (WRITE_FIRST * write), 0
                t = last[1, r]
                same = min(same, stays(flat[r], stride[r], per, shift))
                if write and not kinds[t] & OVER:
                    kinds[t] |= WRITTEN
                if log[place - 1] == t:
                    continue
                held += stamp[t] == 0
                log[place], stamp[t] = t, place
                place += 1
                if held > lines:
                    while stamp[log[tail]] != tail:
                        tail += 1
                    oldest = log[tail]
                    over += oldest <= lines and not kinds[oldest] & OVER
                    kinds[oldest] |= OVER
                    stamp[oldest] = 0
                    held, tail = held - 1, tail + 1
                if place == log.shape[0]:
                    tail, place = 1, shorten(log, stamp, tail, place)
            for r in range(count):
                flat[r] += stride[r] * same
            left -= same
            made += count
    return n, made, steps


walk = internal(_walk)


def _find_first_lines(  # noqa: PLR0917
    v: int, first: int, tables: Tables, cursor: Cursor, totals: Ints, cache: List, space: FirstLines, found: Small
) -> bool:
    """Sets `found` (lines, kinds) to the first lines touched from iteration `first` of loop v on, before the present
    one; returns whether there are as many as the cache holds.
    """
    lines = found.shape[1]
    set_out(v, first, cursor[0][v], cursor, space.cursor)
    space.log[0] = 0
    n, made, steps = walk(tables, space, lines)
    totals[TOUCHES] += made
    cache.notes[WORK] += made + steps
    for t in range(1, n + 1):
        space.numbers[space.touched[t]] = 0
        if t <= lines:
            found[0, t - 1], found[1, t - 1] = space.touched[t], space.kinds[t]
    return bool(n >= lines)


find_first_lines = internal(_find_first_lines)


def _mark(before: Ints, length: int, mark: int, numbers: Small) -> None:
    """Marks the lines of a list."""
    for g in range(length):
        line, step = before[LINE, g], before[STEP, g]
        for i in range(before[COUNT, g]):
            numbers[line + i * step] = mark


mark_lines = internal(_mark)


def _look_up(  # noqa: PLR0917
    found: Small,
    moves: Ints,
    periods: int,
    before: Ints,
    length: int,
    cache: List,
    tallies: Ints,
    dirty: Small,
    space: FirstLines,
) -> int:
    """Takes the first lines, moved by some periods, out of the list as it was before they were touched, which has
    `length` segments: `before`, also in `cache`. Subtracts those that hit from the tallies.

    Sets `dirty` to the number of dirty ones that are not written and have hit ever since, and then these lines' numbers
    as far as there is room; returns that number, -1 if there were too many lines to look up.
    """
    lines, looked, n = found.shape[1], 0, 0
    dirty[:] = 0
    mark_lines(before, length, 1, space.numbers)
    for t in range(lines):
        kind = found[1, t]
        array = kind >> ARRAY_BIT
        line = found[0, t] + moves[array] * periods
        if not space.numbers[line]:
            continue
        looked += 1
        above, _, was_dirty = take_line(cache.segments, cache.notes, line)
        if looked > MOST_LOOKED_UP or cache.notes[TOO_SMALL]:
            n = -1
            break
        if t + above >= lines:  # as many lines came in between as the cache holds: it misses, as counted
            continue
        tallies[array, MISSES] -= 1
        tallies[array, WRITE_MISSES] -= (kind & WRITE_FIRST) != 0
        if was_dirty and (kind & WRITTEN or not kind & OVER):
            # With the hit, two residencies are one. If both were dirty, that is one store less. If only the earlier one
            # was, and the later one is not over, the line stays dirty and is stored later.
            tallies[array, STORED] -= 1
            if not kind & WRITTEN:
                n += 1
                if n < dirty.shape[0]:
                    dirty[n] = t
    mark_lines(before, length, 0, space.numbers)
    dirty[0] = n
    return n


look_up = internal(_look_up)
