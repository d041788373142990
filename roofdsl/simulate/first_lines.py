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
    FOR_EVER,
    NEVER,
    PC,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    inlined,
    internal,
    stays,
)
from roofdsl.simulate.walk import COUNT as REFERENCES

Small = NDArray[np.int32]

# Bits of a line's kind: its first residency began with a write, contains a write, has ended. The number of its array
# follows them.
WRITE_FIRST, WRITTEN, OVER, ARRAY_BIT = 1, 2, 4, 3
# Of the progress: how many lines have a number, how many the cache holds, how many first residencies are over; the
# first place of the log that counts, and the next one.
NUMBERED, HELD, ENDED, TAIL, PLACE, PROGRESS = range(6)
PER_LINE = 512  # the most accesses of one walk for each line that the cache holds
MOST_LOOKED_UP = 4096  # the most first lines that may be in the list
BEYOND = 4  # times as many lines as the cache holds, after which a walk ends


class FirstLines(NamedTuple):
    """Work space. cursor: of the walk. numbers: for every line, its number among those touched, 0 for all others; it is
    all 0 between uses. touched: the line of each number. kinds: its kind. log: the numbers in the order of accesses,
    from 1 on; stamp: the last place of each number, 0 if the cache does not hold it. progress: of the walk.
    """

    cursor: Cursor
    numbers: Small
    touched: Small
    kinds: Small
    log: Small
    stamp: Small
    progress: Ints


def work_space(cursor: Cursor, lines: int, held: int) -> FirstLines:
    """Work space for a program with that many lines, and a cache that holds `held` lines."""
    sizes = (lines, BEYOND * held + 1, BEYOND * held + 1, 8 * held + 64, BEYOND * held + 1)
    numbers, touched, kinds, log, stamp = (np.zeros(size, dtype=np.int32) for size in sizes)
    progress = np.zeros(PROGRESS, dtype=np.int64)
    return FirstLines(tuple(np.zeros_like(table) for table in cursor), numbers, touched, kinds, log, stamp, progress)


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


def _touch_line(t: int, write: int, lines: int, space: FirstLines) -> None:
    """One access to the line with number t; the cache holds `lines` lines."""
    kinds, log, stamp, progress = space.kinds, space.log, space.stamp, space.progress
    if write and not kinds[t] & OVER:
        kinds[t] |= WRITTEN
    place = progress[PLACE]
    if log[place - 1] == t:
        return
    progress[HELD] += stamp[t] == 0
    log[place], stamp[t] = t, place
    place += 1
    if progress[HELD] > lines:
        tail = progress[TAIL]
        while stamp[log[tail]] != tail:
            tail += 1
        oldest = log[tail]
        progress[ENDED] += oldest <= lines and not kinds[oldest] & OVER
        kinds[oldest] |= OVER
        stamp[oldest] = 0
        progress[HELD], progress[TAIL] = lines, tail + 1
    if place == log.shape[0]:
        place = shorten(log, stamp, progress[TAIL], place)
        progress[TAIL] = 1
    progress[PLACE] = place


touch_line = inlined(_touch_line)


def _number_of(line: int, array: int, write: int, space: FirstLines) -> int:
    """The number of a line, a new one if it was not touched yet; 0 if there are too many lines."""
    numbers, touched, progress = space.numbers, space.touched, space.progress
    t = numbers[line]
    if t == 0 and progress[NUMBERED] < touched.shape[0] - 1:
        t = progress[NUMBERED] + 1
        progress[NUMBERED] = numbers[line] = t
        touched[t], space.kinds[t], space.stamp[t] = line, (array << ARRAY_BIT) | (WRITE_FIRST * write), 0
    return int(t)


number_of = inlined(_number_of)


def _walk_sweep(tables: Tables, space: FirstLines, lines: int) -> int:
    """Makes the accesses of a sweep until it has touched too many lines; returns the number made one by one.

    While references stay in their lines, only those that move by a line or more each time are made (`lru_list.py`).
    """
    references, places = tables[4], tables[5]
    flat, stride, stay, number, control = space.cursor[3:8]
    quick, progress, most = space.cursor[9], space.progress, space.touched.shape[0] - 1
    left, first, count = control[REMAINING], control[FIRST], control[REFERENCES]
    made = hurried = 0
    for r in range(count):
        stay[r] = 0
        if abs(stride[r]) >= places[references[first + r, 1], 1]:
            quick[hurried] = r
            hurried += 1
    while left > 0 and progress[NUMBERED] < most:
        same = left
        for r in range(count):
            array, write = references[first + r, 1], references[first + r, 2]
            if stay[r] == 0:
                per, shift = places[array, 1], places[array, 2]
                line = places[array, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
                number[r], stay[r] = number_of(line, array, write, space), stays(flat[r], stride[r], per, shift)
            same = min(same, stay[r])
            touch_line(number[r], write, lines, space)
        made, left, slowest = made + count, left - same, FOR_EVER
        for r in range(count):
            flat[r] += stride[r] * same
            stay[r] -= same
            if abs(stride[r]) < places[references[first + r, 1], 1]:
                slowest = min(slowest, stay[r])
        # All lines of these iterations, and those of references that stay, fit into the cache, and get a number. The
        # first iteration after a line is left, and the last one of the sweep, make all accesses: so references that
        # stay have touched their lines before, and are in front of the others again at the end.
        between = 0
        if 0 < hurried < count:
            between = min(slowest - 1, left - 1, (lines - count) // hurried - 1, (most - progress[NUMBERED]) // hurried)
        if between > 0:
            for _ in range(between):
                for k in range(hurried):
                    r = quick[k]
                    array, write = references[first + r, 1], references[first + r, 2]
                    per, shift = places[array, 1], places[array, 2]
                    line = places[array, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
                    touch_line(number_of(line, array, write, space), write, lines, space)
                    flat[r] += stride[r]
            for r in range(count):
                if abs(stride[r]) < places[references[first + r, 1], 1]:
                    flat[r] += stride[r] * between
                    stay[r] -= between
            made, left = made + between * hurried, left - between
    return int(made)


walk_sweep = internal(_walk_sweep)


def _walk(tables: Tables, space: FirstLines, lines: int) -> tuple[int, int, int]:
    """Walks until the first residencies of the first `lines` lines are over, to the end, or until it has touched too
    many lines or made too many accesses; returns (the lines that were touched, the accesses made, the steps taken).
    """
    control, progress, most = space.cursor[7], space.progress, space.touched.shape[0] - 1
    made = steps = 0
    progress[:] = 0
    progress[TAIL] = progress[PLACE] = 1
    while control[STATUS] == RUNNING and progress[ENDED] < lines and progress[NUMBERED] < most:
        if made + steps >= PER_LINE * lines:
            break
        steps += advance(tables, space.cursor)
        if control[REMAINING]:
            made += walk_sweep(tables, space, lines)
        control[REMAINING] = 0
    return int(progress[NUMBERED]), made, steps


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
