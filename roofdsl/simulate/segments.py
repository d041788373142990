"""An LRU list as segments: rows and columns of lines that a loop touched evenly, one after the other.

A sweep of an innermost loop touches the lines of a reference in equal steps of lines and of time. Such lines are one
segment of the list; its members are `LINE + i STEP`, last touched at `TIME + i DT`, the last one at CAP if that is
earlier (a loop may end before it leaves the line). All segments of one sweep form a frame: their times interleave, and
times grow from frame to frame.

The list has at least the lines that the cache holds. Frames that are entirely below these are dropped. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from roofdsl.simulate.lru_list import MISSES, STORED, WRITE_MISSES
from roofdsl.simulate.walk import FOR_EVER, NEVER, Ints, compiled, inlined, internal

# Rows of the table of segments, whose columns are the segments in the order of their frames. LOW and HIGH are a
# segment's smallest and largest line. A segment without members has a HIGH below its LOW. RATE: how much time one
# iteration of its sweep took.
LOW, HIGH, COUNT, FRAME, LINE, STEP, TIME, DT, CAP, DIRTY, ARRAY, RATE, SEGMENT = range(13)
# The list's notes: the time now, the lines in the list, the lines that the cache can hold; the columns BEGIN to END - 1
# of the segments, of which EMPTY have no members; how many segments the last compaction left; whether tables were too
# small; the work done so far, in units of about one simulated access; the oldest frame that was cut and the newest that
# was dropped since these were last reset; how many lines have entered the list; segments of frames from STABLE on are
# not merged.
NOW, LISTED, LINES, BEGIN, END, EMPTY, TIDIED, TOO_SMALL, WORK = range(9)
OLDEST_CUT, NEWEST_DROPPED, ENTERED, STABLE, NOTES = range(9, 14)
# A column of the tallies: dirty lines that have left the list at its end.
LEFT = 3
NO_LINE = 1 << 62
NO_FRAME = -1
MOST_SEGMENTS = (1 << 13) + 8  # if rows were a power of two long, all values of a segment would share a set of a cache
MOST_EMPTY = 32
# Columns at the end of the table that have to be free before accesses that may split segments.
SPARE = 256


class List(NamedTuple):
    """The segments, their notes, and the tallies of each array, as in `lru_list.py`."""

    segments: Ints
    notes: Ints
    tallies: Ints


def empty_list(lines: int, tallies: Ints) -> List:
    """The list of a cache of that many lines, before the first access."""
    segments = np.zeros((SEGMENT, MOST_SEGMENTS), dtype=np.int64)
    # Walks back through the columns of a frame end at another FRAME, without looking at BEGIN; column 0 has none.
    segments[FRAME] = NO_FRAME
    notes = np.zeros(NOTES, dtype=np.int64)
    notes[LINES], notes[BEGIN], notes[END] = lines, 1, 1
    notes[OLDEST_CUT], notes[NEWEST_DROPPED], notes[STABLE] = NEVER, -1, NEVER
    return List(segments, notes, tallies)


def _set_range(segments: Ints, g: int) -> None:
    """Sets LOW and HIGH."""
    first = segments[LINE, g]
    last = first + segments[STEP, g] * (segments[COUNT, g] - 1)
    segments[LOW, g], segments[HIGH, g] = min(first, last), max(first, last)


set_range = inlined(_set_range)


def _joins(segments: Ints, g: int, h: int) -> bool:
    """Whether the lines of segment h continue those of g, if no other segments share their frames."""
    if segments[ARRAY, g] != segments[ARRAY, h] or segments[DIRTY, g] != segments[DIRTY, h]:
        return False
    ahead = segments[LINE, h] - segments[LINE, g] - segments[STEP, g] * (segments[COUNT, g] - 1)
    # A single line has no step of its own yet: the way to the next line becomes it.
    if segments[COUNT, g] == 1 and ahead != 0:
        return bool(segments[COUNT, h] == 1 or segments[STEP, h] == ahead)
    return bool(ahead == segments[STEP, g] and (segments[COUNT, h] == 1 or segments[STEP, h] == ahead))


joins = inlined(_joins)


def _compact(segments: Ints, notes: Ints) -> None:
    """Removes the segments without members, and merges neighbors that continue each other. Neighbors are merged only if
    each is alone in its frame. Then only the order of their lines matters, and these get times one apart.
    """
    last, alone = 0, False  # the previous segment, and whether it is the only one in its frame
    for g in range(notes[BEGIN], notes[END]):
        if segments[COUNT, g] == 0:
            continue
        h = g + 1
        while h < notes[END] and segments[COUNT, h] == 0:
            h += 1
        frame = segments[FRAME, g]
        single = (h == notes[END] or segments[FRAME, h] != frame) and (last == 0 or segments[FRAME, last] != frame)
        if single and alone and last > 0 and frame < notes[STABLE] and joins(segments, last, g):
            if segments[COUNT, last] == 1:
                segments[STEP, last] = segments[LINE, g] - segments[LINE, last]
            segments[TIME, last] = min(segments[TIME, last], segments[CAP, last])
            segments[COUNT, last] += segments[COUNT, g]
            segments[DT, last], segments[RATE, last] = 1, 0
            segments[CAP, last] = segments[TIME, last] + segments[COUNT, last] - 1
            set_range(segments, last)
            continue
        last, alone = last + 1, single
        for row in range(SEGMENT):
            segments[row, last] = segments[row, g]
    notes[BEGIN], notes[END], notes[EMPTY], notes[TIDIED] = 1, last + 1, 0, last


compact = internal(_compact)


def _push(  # noqa: PLR0917
    segments: Ints,
    notes: Ints,
    frame: int,
    array: int,
    dirty: int,
    line: int,
    step: int,
    count: int,
    time: int,
    dt: int,
    cap: int,
    rate: int,
) -> None:
    """Puts a segment at the front of the list. Sets TOO_SMALL if the table is full."""
    g = notes[END]
    if g == segments.shape[1]:
        compact(segments, notes)
        g = notes[END]
        if g == segments.shape[1]:
            notes[TOO_SMALL] = 1
            return
    notes[END] = g + 1
    segments[FRAME, g], segments[ARRAY, g], segments[DIRTY, g] = frame, array, dirty
    segments[LINE, g], segments[STEP, g], segments[COUNT, g] = line, step, count
    segments[TIME, g], segments[DT, g], segments[CAP, g] = time, dt, cap
    segments[RATE, g] = rate
    set_range(segments, g)


push = inlined(_push)


def _room_after(segments: Ints, notes: Ints, g: int) -> int:
    """Inserts a copy of segment g right after it; returns its column. If the table is full, sets TOO_SMALL and returns
    0.
    """
    end = notes[END]
    if g + 1 < end and segments[COUNT, g + 1] == 0:
        notes[EMPTY] -= 1
    elif end == segments.shape[1]:
        notes[TOO_SMALL] = 1
        return 0
    else:
        for row in range(SEGMENT):
            for h in range(end, g + 1, -1):
                segments[row, h] = segments[row, h - 1]
        notes[END] = end + 1
    for row in range(SEGMENT):
        segments[row, g + 1] = segments[row, g]
    return g + 1


room_after = internal(_room_after)


def _cut(segments: Ints, notes: Ints, g: int, first: int, last: int) -> None:
    """Removes the members `first` to `last` of a segment; the rest may become two segments.

    Segments after g may move by one.
    """
    count = segments[COUNT, g]
    notes[OLDEST_CUT] = min(notes[OLDEST_CUT], segments[FRAME, g])
    if first == 0 and last == count - 1:
        segments[COUNT, g], segments[LOW, g], segments[HIGH, g], segments[CAP, g] = 0, NO_LINE, -1, -1
        notes[EMPTY] += 1
        while notes[END] > notes[BEGIN] and segments[COUNT, notes[END] - 1] == 0:
            notes[END] -= 1
            notes[EMPTY] -= 1
        return
    rest = g
    if first > 0:
        if last < count - 1:
            rest = room_after(segments, notes, g)
        segments[COUNT, g] = first
        segments[CAP, g] = segments[TIME, g] + segments[DT, g] * (first - 1)
        set_range(segments, g)
    if last < count - 1 and rest > 0:
        segments[LINE, rest] += segments[STEP, rest] * (last + 1)
        segments[TIME, rest] += segments[DT, rest] * (last + 1)
        segments[COUNT, rest] = count - last - 1
        set_range(segments, rest)


cut = inlined(_cut)


def _later(segments: Ints, g: int, time: int) -> int:
    """The number of members of a segment that were touched after a time."""
    if time >= segments[CAP, g]:
        return 0
    passed = time - segments[TIME, g]
    if passed < 0:
        return int(segments[COUNT, g])
    return int(segments[COUNT, g] - passed // segments[DT, g] - 1)


later = inlined(_later)


def _tidy(segments: Ints, notes: Ints, tallies: Ints) -> None:
    """Drops the frames of which the cache no longer holds anything, and segments without members if there are many.

    Splitting a segment needs a free column, and `room_after` only moves the segments after g. So a short list is
    moved away from the end of the table in time. A table that was too small has lost lines, and its counts are not
    used.
    """
    while notes[LISTED] > notes[LINES] and notes[BEGIN] < notes[END]:
        begin = g = notes[BEGIN]
        frame, lines = segments[FRAME, g], 0
        while g < notes[END] and segments[FRAME, g] == frame:
            lines += segments[COUNT, g]
            g += 1
        if notes[LISTED] - lines < notes[LINES]:
            break
        notes[LISTED] -= lines
        notes[NEWEST_DROPPED] = frame
        for h in range(begin, g):
            tallies[segments[ARRAY, h], LEFT] += segments[DIRTY, h] * segments[COUNT, h]
            notes[EMPTY] -= segments[COUNT, h] == 0
            segments[FRAME, h] = NO_FRAME
        notes[BEGIN] = g
    length = notes[END] - notes[BEGIN]
    columns = segments.shape[1]
    at_end = notes[END] > columns - SPARE and length < columns // 2
    if at_end or notes[EMPTY] > MOST_EMPTY + length // 4 or length > MOST_EMPTY + 2 * notes[TIDIED]:
        compact(segments, notes)


tidy = internal(_tidy)


def _store_rest(cache: List, dropped: NDArray[np.bool_]) -> None:
    """Counts the dirty lines as stored at the end; of arrays that are dropped, only those that the cache no longer
    holds.
    """
    segments, notes, tallies = cache
    begin = end = notes[BEGIN]
    above = notes[LISTED]
    while end < notes[END] and segments[FRAME, end] == segments[FRAME, begin]:
        above -= segments[COUNT, end]
        end += 1
    for g in range(begin, notes[END]):
        array = segments[ARRAY, g]
        if segments[DIRTY, g] and not dropped[array]:
            tallies[array, STORED] += segments[COUNT, g]
        elif segments[DIRTY, g] and g < end:  # only the oldest frame can be present in part
            for i in range(segments[COUNT, g]):
                time, newer = min(segments[TIME, g] + segments[DT, g] * i, segments[CAP, g]), above
                for h in range(begin, end):
                    newer += later(segments, h, time)
                tallies[array, STORED] += newer >= notes[LINES]


store_rest = compiled(_store_rest)


def _some_meet(segments: Ints, begin: int, end: int, low: int, high: int) -> bool:
    """Whether the range of one of these segments meets the range from `low` to `high`."""
    some = 0
    for signed in range(begin, end):
        g = uint64(signed)  # the compiler need not expect negative subscripts, and takes neighbors at once
        some |= (segments[LOW, g] <= high) & (segments[HIGH, g] >= low)
    return bool(some)


some_meet = inlined(_some_meet)


def _take_line(segments: Ints, notes: Ints, line: int) -> tuple[int, int, int]:
    """Takes a line out of the list: (lines above it, array, whether it is dirty); (-1, 0, 0) if it is not there."""
    begin, end, passed = notes[BEGIN], notes[END], 0
    while end > begin:
        first = max(begin, end - 8)
        if some_meet(segments, first, end, line, line):
            for g in range(end - 1, first - 1, -1):
                if (
                    segments[LOW, g] <= line <= segments[HIGH, g]
                    and (line - segments[LINE, g]) % segments[STEP, g] == 0
                ):
                    notes[WORK] += 8 + (notes[END] - g) // 4
                    i = (line - segments[LINE, g]) // segments[STEP, g]
                    time = min(segments[TIME, g] + segments[DT, g] * i, segments[CAP, g])
                    frame = segments[FRAME, g]
                    # Lines of newer frames, and later ones of its own. `passed` has all members of newer columns; of
                    # those of the same frame, only the ones touched later are above the line.
                    above, h = passed, g + 1
                    while h < notes[END] and segments[FRAME, h] == frame:
                        above += later(segments, h, time) - segments[COUNT, h]
                        h += 1
                    h = g
                    while segments[FRAME, h] == frame:
                        above += later(segments, h, time)
                        h -= 1
                    array, dirty = segments[ARRAY, g], segments[DIRTY, g]
                    cut(segments, notes, g, i, i)
                    return int(above), int(array), int(dirty)
                passed += segments[COUNT, g]
        else:
            for g in range(first, end):
                passed += segments[COUNT, g]
        end = first
    notes[WORK] += 8 + (notes[END] - begin) // 4
    return -1, 0, 0


take_line = internal(_take_line)


def _touch_lines(cache: List, lines: Ints, n: int) -> None:
    """Accesses n lines one after the other, all of which fit into the cache: columns (line, array, write) of `lines`.

    The fourth row becomes the line if it was not in the list, otherwise NO_LINE.
    """
    segments, notes, tallies = cache
    # A line that comes again is in the cache, and only moves to the end.
    held = 0
    for k in range(n):
        line, array, dirty = lines[0, k], lines[1, k], lines[2, k]
        lines[3, k] = NO_LINE
        at = 0
        while at < held and lines[0, at] != line:
            at += 1
        if at < held:
            dirty |= lines[2, at]
            for h in range(at, held - 1):
                lines[0, h], lines[1, h], lines[2, h] = lines[0, h + 1], lines[1, h + 1], lines[2, h + 1]
            held -= 1
        else:
            above, _, was_dirty = take_line(segments, notes, line)
            if above < 0:
                lines[3, k] = line
                notes[LISTED] += 1
                notes[ENTERED] += 1
            if above < 0 or above + held >= notes[LINES]:
                tallies[array, MISSES] += 1
                tallies[array, WRITE_MISSES] += dirty
                tallies[array, STORED] += was_dirty
            else:
                dirty |= was_dirty
        lines[0, held], lines[1, held], lines[2, held] = line, array, dirty
        held += 1
    for k in range(held):
        now = notes[NOW]
        push(segments, notes, now, lines[1, k], lines[2, k], lines[0, k], 1, 1, now, FOR_EVER, now, 1)
        notes[NOW] += 1
    tidy(segments, notes, tallies)


touch_lines = internal(_touch_lines)
