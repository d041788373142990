"""Skipping iterations of a loop that grow evenly: blocks like those of `segment_skip.py`, each longer than the last.

Suppose that a block of iterations begins with some top of the list, and that each segment of this top has moved, grown
and become later since the previous block, by numbers of its own. The next block is simulated with numbers (value,
change) of lines, members and times (`affine_numbers.py`): in the t-th block from there on, each of them is value + t *
change. This shows for which t all blocks go through the same steps. If the top has again moved and grown by the same
numbers, as numbers in t, all these blocks follow by induction. Their counts are sums of numbers that change evenly.

The block is simulated on the top alone. Lines that it does not find there must not be in the rest of the list: neither
in the part that was below the top before, nor among the lines that earlier blocks have pushed out of the top and that
the cache still holds. Imports numba.
"""

from __future__ import annotations

from roofdsl.simulate.affine_code import affine
from roofdsl.simulate.lru_list import ACCESSES, STEPS, TOUCHES
from roofdsl.simulate.segment_blocks import (
    BEGAN,
    CUT,
    EXACT,
    EXECUTIONS,
    FIRST_SEEN,
    KEPT,
    MOST,
    PATIENCE,
    PERIOD,
    VALID,
    WAIT,
    WHOLE,
    Blocks,
)
from roofdsl.simulate.segment_copies import Copies, at_copies, look_again
from roofdsl.simulate.segment_new_lines import (
    NEW_COUNT,
    NEW_LINE,
    NEW_STEP,
    Growth,
    sum_of,
    until_one_is_below,
    until_one_returns,
)
from roofdsl.simulate.segment_pieces import Sweep, may_be_multiple
from roofdsl.simulate.segment_rebuild import START, rebuild
from roofdsl.simulate.segment_skip import at_boundary, note_cuts
from roofdsl.simulate.segment_visits import FOUND, VISITS
from roofdsl.simulate.segment_visits import LINE as FIRST_LINE
from roofdsl.simulate.segment_visits import STEP as LINE_STEP
from roofdsl.simulate.segment_walk import run_segments, touch_next
from roofdsl.simulate.segments import (
    ARRAY,
    BEGIN,
    CAP,
    COUNT,
    DIRTY,
    DT,
    END,
    ENTERED,
    FRAME,
    HIGH,
    LEFT,
    LINE,
    LINES,
    LOW,
    NO_FRAME,
    NO_LINE,
    NOW,
    OLDEST_CUT,
    RATE,
    SEGMENT,
    STEP,
    TIME,
    TOO_SMALL,
    WORK,
    List,
    compact,
    tidy,
)
from roofdsl.simulate.walk import (
    ALARM,
    BOUNDARY,
    CULPRIT,
    FRESH,
    NEVER,
    PC,
    REMAINING,
    RUNNING,
    STATUS,
    STRIDE,
    Cursor,
    Ints,
    Tables,
    compiled,
    internal,
)
from roofdsl.simulate.walk import COUNT as REFERENCES

RECENT = 8  # executions of a loop for which a failed look is remembered
WORTHWHILE = 4  # a look that skips fewer blocks counts as failed
# A block with changing numbers is simulated on the top of the list alone, and nothing is dropped from it.
touch_next_affine = affine(touch_next, without=(tidy, compact), true=(may_be_multiple,))


def _take_top(loop: int, cache: List, blocks: Blocks, growth: Growth) -> tuple[int, int]:
    """Sets `start` to the top; returns (its number of segments, the column of the oldest one).

    The number is -1 if the top has not grown from the one before the block or is too long, -2 if too few segments were
    kept.
    """
    segments, notes, start = cache.segments, cache.notes, growth.start
    own, kept = blocks.notes[loop], blocks.kept[loop]
    length = 0
    while length < own[KEPT] and kept[FRAME, length] >= own[CUT]:
        length += 1
    if length == own[KEPT] and not own[WHOLE]:
        return -2, 0
    if length > start.shape[1]:
        return -1, 0
    g, found = notes[END], 0
    while found < length:
        g -= 1
        if g < notes[BEGIN]:
            return -1, 0
        if segments[COUNT, g] == 0:
            continue
        for row in (ARRAY, DIRTY, STEP, DT, RATE):
            if segments[row, g] != kept[row, found]:
                return -1, 0
            start[row, found, 0], start[row, found, 1] = segments[row, g], 0
        for row in (LOW, HIGH, LINE, COUNT):
            start[row, found, 0], start[row, found, 1] = segments[row, g], segments[row, g] - kept[row, found]
        for row in (TIME, CAP, FRAME):
            start[row, found, 0] = segments[row, g] - notes[NOW] + START
            start[row, found, 1] = segments[row, g] - notes[NOW] - (kept[row, found] - own[BEGAN])
        found += 1
    # The times of a frame's segments interleave: a top that ends within a frame has no lines that are all newer.
    below = g - 1
    while below >= notes[BEGIN] and segments[COUNT, below] == 0:
        below -= 1
    if length and below >= notes[BEGIN] and segments[FRAME, below] == segments[FRAME, g]:
        return -1, 0
    return length, int(g)


take_top = internal(_take_top)


def _set_out(v: int, moved: int, length: int, cursor: Cursor, cache: List, growth: Growth) -> None:  # noqa: PLR0917
    """Sets the walk with changing numbers to the beginning of a block of loop v, with the top as its list."""
    for k in range(cursor[0].shape[0]):
        growth.cursor[0][k, 0], growth.cursor[0][k, 1] = cursor[0][k], 0
        growth.cursor[1][k, 0], growth.cursor[1][k, 1] = cursor[1][k], 0
    growth.cursor[0][v, 1] = moved
    control, alarms, notes = growth.cursor[7], growth.cursor[8], growth.cache.notes
    control[PC, 0], control[STATUS, 0], control[REMAINING, 0] = cursor[7][PC], RUNNING, 0
    alarms[v, ALARM, 0], alarms[v, ALARM, 1] = cursor[0][v] + moved, moved
    notes[:] = 0
    growth.cache.tallies[:] = 0
    growth.totals[:] = 0
    notes[NOW, 0], notes[LINES, 0], notes[OLDEST_CUT, 0] = START, cache.notes[LINES], NEVER
    notes[BEGIN, 0], notes[END, 0] = 1, length + 1
    segments = growth.cache.segments
    for row in range(SEGMENT):
        segments[row, 0, 0], segments[row, 0, 1] = 0, 0
        for k in range(length):
            for c in range(2):
                segments[row, length - k, c] = growth.start[row, k, c]
    segments[FRAME, 0, 0] = NO_FRAME


set_out = internal(_set_out)


def _go_through(growth: Growth) -> int:
    """Simulates one block; returns the number of new visitors and lines, -1 if the next block already differs or they
    are too many.
    """
    control, visitors, lines = growth.cursor[7], growth.sweep.visitors, growth.sweep.lines
    limit, notes, new = growth.limit, growth.cache.notes, growth.new
    fresh, room = 0, new.shape[0] - visitors.shape[0]
    while control[STATUS, 0] == RUNNING and limit[0] >= 1 and fresh < room:
        touched = growth.totals[TOUCHES, 0]
        n = touch_next_affine(limit, growth.tables, growth.cursor, growth.totals, growth.sweep, growth.cache)[0]
        for x in range(n):
            if visitors[x, FOUND, 0] != visitors[x, VISITS, 0] or visitors[x, FOUND, 1] != visitors[x, VISITS, 1]:
                for c in range(2):
                    new[fresh, NEW_LINE, c] = visitors[x, FIRST_LINE, c]
                    new[fresh, NEW_STEP, c] = visitors[x, LINE_STEP, c]
                    new[fresh, NEW_COUNT, c] = visitors[x, VISITS, c]
                fresh += 1
        # If several steps were made line by line, only the last is recorded.
        if n < 0 and growth.totals[TOUCHES, 0] - touched != control[REFERENCES, 0]:
            return -1
        for k in range(control[REFERENCES, 0] if n < 0 else 0):
            if lines[3, k, 0] != NO_LINE:
                new[fresh, NEW_LINE, 0], new[fresh, NEW_LINE, 1] = lines[3, k, 0], lines[3, k, 1]
                new[fresh, NEW_STEP, 0], new[fresh, NEW_STEP, 1] = 1, 0
                new[fresh, NEW_COUNT, 0], new[fresh, NEW_COUNT, 1] = 1, 0
                fresh += 1
    done = control[STATUS, 0] == BOUNDARY and limit[0] >= 1 and fresh < room
    return int(fresh) if done and not notes[TOO_SMALL, 0] else -1


go_through = internal(_go_through)


def _is_next(length: int, growth: Growth) -> int:
    """The column of the oldest segment of the next block's top, if the list after the block begins with that top; else
    -1.
    """
    segments, notes, start = growth.cache.segments, growth.cache.notes, growth.start
    g, found = notes[END, 0], 0
    while found < length:
        g -= 1
        if g < 1:
            return -1
        if segments[COUNT, g, 0] == 0 and segments[COUNT, g, 1] == 0:
            continue
        # After block t, each number must be that of the top before block t + 1.
        for row in range(SEGMENT):
            value, change = segments[row, g, 0], segments[row, g, 1]
            if row in (TIME, CAP, FRAME):
                value -= notes[NOW, 0] - START
                change -= notes[NOW, 1]
            if value != start[row, found, 0] + start[row, found, 1] or change != start[row, found, 1]:
                return -1
        found += 1
    for h in range(g - 1, 0, -1):
        if segments[COUNT, h, 0] > 0 and length:
            if segments[FRAME, h, 0] == segments[FRAME, g, 0]:
                return -1
            break
    return int(g)


is_next = internal(_is_next)


def _skip_growing(  # noqa: PLR0917
    loop: int, v: int, until: int, cursor: Cursor, totals: Ints, cache: List, blocks: Blocks, growth: Growth
) -> int:
    """Skips blocks if the one that ends here, and those that follow before `until`, grow evenly.

    Returns the number of skipped blocks; -2 if too few segments were kept.
    """
    own, notes, sandbox = blocks.notes[loop], cache.notes, growth.cache
    step = cursor[8][v, STRIDE]
    remaining = (until - cursor[0][v] + step - 1) // step
    growth.limit[0] = (remaining - 1) // own[PERIOD] - 1
    length, top = take_top(loop, cache, blocks, growth)
    if length < 0 or growth.limit[0] < 1:
        return min(0, length) if length == -2 else 0
    moved = own[PERIOD] * step
    set_out(v, moved, length, cursor, cache, growth)
    fresh = go_through(growth)
    notes[WORK] += 2 * sandbox.notes[WORK, 0]
    oldest = is_next(length, growth) if fresh >= 0 else -1
    if oldest < 0:
        return 0
    size, pushed = growth.sizes
    growth.sizes[:] = 0
    for k in range(length):
        size += growth.start[COUNT, k]
    for o in range(1, oldest):
        pushed += sandbox.segments[COUNT, o]
    # The lines that were pushed out are those that entered, minus those by which the top has grown.
    entered = sandbox.notes[ENTERED]
    if entered[0] != pushed[0] + size[1] or entered[1] != pushed[1]:
        return 0
    most = growth.limit[0] + 1
    notes[WORK] += fresh * (oldest + top - notes[BEGIN]) // 4
    most = until_one_is_below(fresh, top, most, size, pushed, cache, growth)
    most = until_one_returns(fresh, oldest, most, size, pushed, notes[LINES], growth)
    if most < 1 or not rebuild(length, top, oldest, most, cache, blocks, growth):
        return 0
    for a in range(cache.tallies.shape[0]):
        for column in range(LEFT):
            counted = sandbox.tallies[a, column]
            cache.tallies[a, column] += sum_of(counted[0], counted[1], most)
    totals[TOUCHES] += growth.totals[TOUCHES, 0]
    for total in (ACCESSES, STEPS):
        totals[total] += sum_of(growth.totals[total, 0], growth.totals[total, 1], most)
    notes[ENTERED] += sum_of(sandbox.notes[ENTERED, 0], sandbox.notes[ENTERED, 1], most)
    cursor[0][v] += most * moved
    tidy(cache.segments, notes, cache.tallies)
    return int(most)


skip_growing = internal(_skip_growing)


def _look_at_growth(  # noqa: PLR0917
    loop: int, v: int, until: int, cursor: Cursor, totals: Ints, cache: List, blocks: Blocks, growth: Growth
) -> None:
    """Skips blocks that grow, unless a look here failed in a recent execution of the loop.

    Simulating a block with changing numbers takes as long as walking through several blocks.
    """
    own = blocks.notes[loop]
    place = (cursor[0][v] - own[FIRST_SEEN]) // (own[PERIOD] * cursor[8][v, STRIDE])
    place = min(place, blocks.vain.shape[1] - 1)
    if own[EXECUTIONS] - blocks.vain[loop, place] < RECENT:
        # `at_boundary` adds 1, as for a failure: this place costs no wait.
        own[PATIENCE] = -1
        # Nothing is kept for the next places if looks there would be in vain, too.
        more = 0
        while place + more + 1 < blocks.vain.shape[1] and (
            own[EXECUTIONS] - blocks.vain[loop, place + more + 1] < RECENT
        ):
            more += 1
        if more > 0:
            own[VALID], own[WAIT] = 0, more + 1
        return
    skipped = skip_growing(loop, v, until, cursor, totals, cache, blocks, growth)
    if skipped > 0:
        own[PATIENCE] = 0
    elif skipped == -2:
        own[MOST] = min(blocks.kept.shape[2], 4 * own[MOST])
    if skipped != 0:
        own[VALID] = own[WAIT] = 0
    if 0 <= skipped < WORTHWHILE:
        blocks.vain[loop, place] = own[EXECUTIONS]


look_at_growth = internal(_look_at_growth)


def _run_growing(  # noqa: PLR0917
    tables: Tables,
    cursor: Cursor,
    budget: int,
    totals: Ints,
    sweep: Sweep,
    cache: List,
    blocks: Blocks,
    growth: Growth,
    copies: Copies,
) -> None:
    """Like `run_skipping`, but also skips blocks that grow evenly, and beginnings of inner loops that copy an earlier
    iteration.
    """
    control, alarms, notes = cursor[7], cursor[8], cache.notes
    until = notes[WORK] + budget
    while control[STATUS] == RUNNING and notes[WORK] < until and not notes[TOO_SMALL]:
        run_segments(tables, cursor, until - notes[WORK], totals, sweep, cache)
        if control[STATUS] == BOUNDARY:
            v = control[CULPRIT]
            loop = blocks.of_variable[v]
            own = blocks.notes[loop]
            notes[WORK] += 10
            if copies.of_variable[v] >= 0 and not at_copies(v, tables, cursor, totals, cache, blocks, copies):
                continue
            if alarms[v, FRESH]:
                own[FIRST_SEEN] = cursor[0][v]
                own[EXECUTIONS] += 1
            elif own[VALID] and not own[EXACT]:
                note_cuts(notes, blocks)
                look_at_growth(loop, v, cursor[1][v], cursor, totals, cache, blocks, growth)
            at_boundary(cursor, totals, cache, blocks)
            if copies.of_variable[v] >= 0:
                look_again(v, cursor, copies)


run_growing = compiled(_run_growing)
