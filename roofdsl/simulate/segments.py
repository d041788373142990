"""An LRU list as segments: rows and columns of lines that a loop touched evenly, one after the other.

A sweep of an innermost loop touches the lines of a reference in equal steps of lines and of time. Such lines are one
segment of the list; its members are `LINE + i STEP`, last touched at `TIME + i DT`, the last one at CAP if that is
earlier (a loop may end before it leaves the line). All segments of one sweep are a frame: their times interleave. The
frames are linked from the newest to the oldest, and times grow from frame to frame.

The list has at least the lines that the cache holds. Frames that lie entirely below these are dropped. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

from roofdsl.simulate.lru_list import MISSES, STORED, WRITE_MISSES
from roofdsl.simulate.walk import FOR_EVER, Ints, compiled

# Columns of a segment. Row 0 is the end of the list: its OLDER is the newest segment, its NEWER the oldest one. LOW and
# HIGH are its smallest and largest line.
OLDER, NEWER, FRAME, ARRAY, DIRTY, LINE, STEP, COUNT, TIME, DT, CAP, LOW, HIGH, SEGMENT = range(14)
# Of the list's notes: the time now, the lines in the list, the lines that the cache holds, the first unused row, how
# many rows are unused, whether tables were too small, the work done so far, and how much of it line by line.
NOW, LISTED, LINES, UNUSED, ROOM, TOO_SMALL, WORK, SINGLE, NOTES = range(9)


class List(NamedTuple):
    """The segments, their notes, and the tallies of each array, as in `lru_list.py`."""

    segments: Ints
    notes: Ints
    tallies: Ints


def _take_row(segments: Ints, notes: Ints) -> int:
    """A row for a new segment; 0 if there is none, which sets TOO_SMALL."""
    g = notes[UNUSED]
    if g == 0:
        notes[TOO_SMALL] = 1
        return 0
    notes[UNUSED] = segments[g, OLDER]
    notes[ROOM] -= 1
    return int(g)


take_row = compiled(_take_row)


def _unlink(segments: Ints, notes: Ints, g: int) -> None:
    """Remove a segment from the list."""
    older, newer = segments[g, OLDER], segments[g, NEWER]
    segments[older, NEWER] = newer
    segments[newer, OLDER] = older
    segments[g, OLDER] = notes[UNUSED]
    notes[UNUSED] = g
    notes[ROOM] += 1


unlink = compiled(_unlink)


def _set_range(segments: Ints, g: int) -> None:
    """Set LOW and HIGH."""
    first = segments[g, LINE]
    last = first + segments[g, STEP] * (segments[g, COUNT] - 1)
    segments[g, LOW], segments[g, HIGH] = min(first, last), max(first, last)


set_range = compiled(_set_range)


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
) -> None:
    """Put a segment in front of the list."""
    g = take_row(segments, notes)
    if g == 0:
        return
    newest = segments[0, OLDER]
    segments[g, OLDER], segments[g, NEWER] = newest, 0
    segments[newest, NEWER] = g
    segments[0, OLDER] = g
    segments[g, FRAME], segments[g, ARRAY], segments[g, DIRTY] = frame, array, dirty
    segments[g, LINE], segments[g, STEP], segments[g, COUNT] = line, step, count
    segments[g, TIME], segments[g, DT], segments[g, CAP] = time, dt, cap
    set_range(segments, g)


push = compiled(_push)


def _cut(segments: Ints, notes: Ints, g: int, first: int, last: int) -> None:
    """Remove the members `first` to `last` of a segment; what is left may become two segments."""
    count = segments[g, COUNT]
    if first == 0 and last == count - 1:
        unlink(segments, notes, g)
        return
    rest = g
    if first > 0:
        if last < count - 1:
            rest = take_row(segments, notes)
            if rest == 0:
                return
            for column in range(segments.shape[1]):
                segments[rest, column] = segments[g, column]
            older = segments[g, OLDER]
            segments[rest, NEWER] = g
            segments[older, NEWER] = rest
            segments[g, OLDER] = rest
        segments[g, COUNT] = first
        segments[g, CAP] = segments[g, TIME] + segments[g, DT] * (first - 1)
        set_range(segments, g)
    if last < count - 1:
        segments[rest, LINE] += segments[rest, STEP] * (last + 1)
        segments[rest, TIME] += segments[rest, DT] * (last + 1)
        segments[rest, COUNT] -= last + 1
        set_range(segments, rest)


cut = compiled(_cut)


def _later(segments: Ints, g: int, time: int) -> int:
    """How many members of a segment were touched after a time."""
    if time >= segments[g, CAP]:
        return 0
    passed = time - segments[g, TIME]
    if passed < 0:
        return int(segments[g, COUNT])
    return int(segments[g, COUNT] - passed // segments[g, DT] - 1)


later = compiled(_later)


def _drop(segments: Ints, notes: Ints, tallies: Ints) -> None:
    """Drop the frames of which the cache holds nothing any more."""
    while notes[LISTED] > notes[LINES]:
        oldest = segments[0, NEWER]
        frame, lines, g = segments[oldest, FRAME], 0, oldest
        while segments[g, FRAME] == frame:
            lines += segments[g, COUNT]
            g = segments[g, NEWER]
        if notes[LISTED] - lines < notes[LINES]:
            return
        notes[LISTED] -= lines
        while oldest != g:
            tallies[segments[oldest, ARRAY], STORED] += segments[oldest, DIRTY] * segments[oldest, COUNT]
            newer = segments[oldest, NEWER]
            unlink(segments, notes, oldest)
            oldest = newer


drop = compiled(_drop)


def _touch_line(segments: Ints, notes: Ints, tallies: Ints, array: int, line: int, write: int) -> None:
    """One access to a line."""
    # Find it; `above` counts the lines of newer frames.
    g, above, passed, frame, seen = segments[0, OLDER], 0, 0, -1, 0
    while g != 0:
        seen += 1
        if segments[g, FRAME] != frame:
            frame, above = segments[g, FRAME], passed
        if (
            segments[g, LOW] <= line <= segments[g, HIGH]
            and segments[g, ARRAY] == array
            and (line - segments[g, LOW]) % abs(segments[g, STEP]) == 0
        ):
            break
        passed += segments[g, COUNT]
        g = segments[g, OLDER]
    notes[WORK] += seen
    notes[SINGLE] += seen
    dirty = write
    if g == 0:
        tallies[array, MISSES] += 1
        tallies[array, WRITE_MISSES] += write
        notes[LISTED] += 1
    else:
        i = (line - segments[g, LINE]) // segments[g, STEP]
        time = min(segments[g, TIME] + segments[g, DT] * i, segments[g, CAP])
        h = g
        while segments[h, FRAME] == frame:
            above += later(segments, h, time)
            h = segments[h, OLDER]
        h = segments[g, NEWER]
        while segments[h, FRAME] == frame:
            above += later(segments, h, time)
            h = segments[h, NEWER]
        # On top of the list already: it stays there.
        if above == 0 and (segments[g, COUNT] == 1 or segments[g, DIRTY] >= write):
            segments[g, DIRTY] |= write
            return
        if above >= notes[LINES]:
            tallies[array, MISSES] += 1
            tallies[array, WRITE_MISSES] += write
            tallies[array, STORED] += segments[g, DIRTY]
        else:
            dirty |= segments[g, DIRTY]
        cut(segments, notes, g, i, i)
    now = notes[NOW]
    push(segments, notes, now, array, dirty, line, 1, 1, now, FOR_EVER, now)
    notes[NOW] += 1
    if g == 0:
        drop(segments, notes, tallies)


touch_line = compiled(_touch_line)
