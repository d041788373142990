"""The list as it is after blocks that grow, for `segment_growth.py`: the top, what the blocks have pushed out of it,
and what was below. Imports numba.
"""

from __future__ import annotations

from roofdsl.simulate.segment_blocks import Blocks
from roofdsl.simulate.segment_new_lines import Growth, sum_of
from roofdsl.simulate.segments import (
    ARRAY,
    BEGIN,
    CAP,
    COUNT,
    DIRTY,
    EMPTY,
    END,
    FRAME,
    LEFT,
    LINES,
    LISTED,
    NEWEST_DROPPED,
    NO_FRAME,
    NOW,
    OLDEST_CUT,
    SEGMENT,
    TIDIED,
    TIME,
    List,
    set_range,
)
from roofdsl.simulate.walk import internal

START = 1 << 40  # the time at which a block with changing numbers begins


def _count_those_that_left(  # noqa: PLR0917
    newest_of_rest: int, n: int, top: int, oldest: int, most: int, cache: List, blocks: Blocks, growth: Growth
) -> None:
    """Counts the dirty lines that leave the list: those that were below the top, or were pushed out of it, unless they
    are among the segments from `newest_of_rest` to `n` of the rebuilt list.
    """
    segments, notes, tallies = cache
    rebuilt, own = blocks.rebuilt, growth.cache.segments
    for g in range(notes[BEGIN], top):
        tallies[segments[ARRAY, g], LEFT] += segments[DIRTY, g] * segments[COUNT, g]
    for o in range(1, oldest):
        left = own[DIRTY, o, 0] * sum_of(own[COUNT, o, 0], own[COUNT, o, 1], most)
        tallies[own[ARRAY, o, 0], LEFT] += left
    for k in range(newest_of_rest, n):
        tallies[rebuilt[ARRAY, k], LEFT] -= rebuilt[DIRTY, k] * rebuilt[COUNT, k]


_count_left = internal(_count_those_that_left)


def _top_after(length: int, most: int, later: int, blocks: Blocks, growth: Growth) -> int:
    """Puts the segments of the top, as they are after `most` blocks and `later`, first into the rebuilt list; returns
    the number of their lines.
    """
    rebuilt, lines = blocks.rebuilt, 0
    for k in range(length):
        for row in range(SEGMENT):
            rebuilt[row, k] = growth.start[row, k, 0] + growth.start[row, k, 1] * most
        for row in (TIME, CAP, FRAME):
            rebuilt[row, k] += later
        lines += rebuilt[COUNT, k]
    return int(lines)


_put_top = internal(_top_after)


def _rebuild(length: int, top: int, oldest: int, most: int, cache: List, blocks: Blocks, growth: Growth) -> bool:  # noqa: PLR0917
    """Rebuilds the list as it is after `most` blocks; returns False if it gets too long. Column `top` is that of the
    top's oldest segment in the list, `oldest` the same in the simulated block's list.
    """
    segments, notes = cache[0], cache[1]
    rebuilt, own = blocks.rebuilt, growth.cache.segments
    per_block, more = growth.cache.notes[NOW, 0] - START, growth.cache.notes[NOW, 1]
    now = notes[NOW] + sum_of(per_block, more, most)
    # From the newest line on: first the top, as it is after the last block ...
    lines = _put_top(length, most, now - START, blocks, growth)
    n = length
    newest_of_rest, frame, dropped = n, NO_FRAME, NO_FRAME
    # ... then what each block pushed out of it, from the last block back, up to the first frame that begins below all
    # lines that the cache holds ...
    b, room = most - 1, rebuilt.shape[1] // 2
    while b >= 0 and dropped == NO_FRAME:
        then = notes[NOW] + sum_of(per_block, more, b) - START
        for o in range(oldest - 1, 0, -1):
            if own[COUNT, o, 0] == 0:
                continue
            if n == room:
                return False
            if own[FRAME, o, 0] + own[FRAME, o, 1] * b + then != frame:
                frame = own[FRAME, o, 0] + own[FRAME, o, 1] * b + then
                if lines >= notes[LINES]:
                    dropped = frame
                    break
            for row in range(SEGMENT):
                rebuilt[row, n] = own[row, o, 0] + own[row, o, 1] * b
            for row in (TIME, CAP, FRAME):
                rebuilt[row, n] += then
            lines += rebuilt[COUNT, n]
            n += 1
        b -= 1
    # ... then what was below the top before.
    for g in range(top - 1, notes[BEGIN] - 1, -1):
        if segments[COUNT, g] == 0 or dropped != NO_FRAME:
            continue
        if n == room:
            return False
        if segments[FRAME, g] != frame:
            frame = segments[FRAME, g]
            if lines >= notes[LINES]:
                dropped = frame
                continue
        for row in range(SEGMENT):
            rebuilt[row, n] = segments[row, g]
        lines += rebuilt[COUNT, n]
        n += 1
    _count_left(newest_of_rest, n, top, oldest, most, cache, blocks, growth)
    if length:
        notes[OLDEST_CUT] = min(notes[OLDEST_CUT], segments[FRAME, top])
    notes[NEWEST_DROPPED] = max(notes[NEWEST_DROPPED], dropped)
    for k in range(n):
        for row in range(SEGMENT):
            segments[row, n - k] = rebuilt[row, k]
        set_range(segments, n - k)
    notes[BEGIN], notes[END], notes[EMPTY], notes[TIDIED], notes[LISTED] = 1, n + 1, 0, n, lines
    notes[NOW] = now
    return True


rebuild = internal(_rebuild)
