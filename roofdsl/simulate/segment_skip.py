"""Skipping iterations of a loop that repeat earlier ones on renamed lines, for an LRU list of segments.

The argument is that of `skip_repeats.py`. Here, a loop counts as repeating only if all references to an array move by
the same number of lines, so that one renaming of each array holds for all lines at all times. A block is one period of
the loop. Its top consists of those frames of the list before it that are no older than the oldest one that the block
touched. If the list after the block begins with the same segments, renamed and later by the time of a block, the next
blocks hit and miss alike, as long as no line that a block misses is in the list below the top. Each block pushes the
same segments out of the top, renamed.

If frames of the top were dropped during the block, the whole list must be the same.
"""

from __future__ import annotations

from roofdsl.simulate.lru_list import ACCESSES, STEPS
from roofdsl.simulate.segment_blocks import (
    BEGAN,
    BEGIN_ACCESSES,
    BEGIN_ENTERED,
    BEGIN_STEPS,
    CUT,
    EXACT,
    GONE,
    KEPT,
    LONGEST_WAIT,
    MANY,
    MOST,
    PATIENCE,
    PERIOD,
    VALID,
    WAIT,
    WHOLE,
    Blocks,
)
from roofdsl.simulate.segment_pieces import Sweep
from roofdsl.simulate.segment_rotation import first_meeting, rotate
from roofdsl.simulate.segment_walk import run_segments
from roofdsl.simulate.segments import (
    ARRAY,
    BEGIN,
    CAP,
    COUNT,
    DIRTY,
    EMPTY,
    END,
    ENTERED,
    FRAME,
    HIGH,
    LEFT,
    LINE,
    LINES,
    LISTED,
    LOW,
    NEWEST_DROPPED,
    NOW,
    OLDEST_CUT,
    SEGMENT,
    STABLE,
    TIDIED,
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
    RUNNING,
    STATUS,
    STRIDE,
    Cursor,
    Ints,
    Tables,
    compiled,
    internal,
)


def _note_cuts(notes: Ints, blocks: Blocks) -> None:
    """Tells every loop the oldest frame cut and the newest one dropped since the last call. While a block of some loop
    is open, no segments are merged (STABLE).
    """
    notes[STABLE] = NEVER
    for k in range(blocks.notes.shape[0]):
        blocks.notes[k, CUT] = min(blocks.notes[k, CUT], notes[OLDEST_CUT])
        blocks.notes[k, GONE] = max(blocks.notes[k, GONE], notes[NEWEST_DROPPED])
        if blocks.notes[k, VALID]:
            notes[STABLE] = 0
    notes[OLDEST_CUT], notes[NEWEST_DROPPED] = NEVER, -1


note_cuts = internal(_note_cuts)


def _begin(loop: int, totals: Ints, cache: List, blocks: Blocks) -> None:
    """Begins a block."""
    segments, notes, tallies = cache
    own, kept = blocks.notes[loop], 0
    g = notes[END] - 1
    while g >= notes[BEGIN] and kept < own[MOST]:
        if segments[COUNT, g] > 0:
            for row in range(SEGMENT):
                blocks.kept[loop, row, kept] = segments[row, g]
            kept += 1
        g -= 1
    own[VALID], own[KEPT], own[WHOLE], own[BEGAN] = 1, kept, g < notes[BEGIN], notes[NOW]
    own[BEGIN_ACCESSES], own[BEGIN_STEPS], own[BEGIN_ENTERED] = totals[ACCESSES], totals[STEPS], notes[ENTERED]
    own[CUT], own[GONE] = notes[NOW], -1
    notes[WORK] += kept
    notes[STABLE] = 0
    for a in range(tallies.shape[0]):
        for c in range(tallies.shape[1]):
            blocks.counts[loop, a, c] = tallies[a, c]


begin = internal(_begin)


def _top(loop: int, cache: List, blocks: Blocks) -> int:
    """The column of the oldest segment of the top after a block; END if the top is empty.

    -1 if the list does not begin with the top from before the block, renamed; -2 if too few segments were kept.
    """
    segments, notes = cache.segments, cache.notes
    own, kept = blocks.notes[loop], blocks.kept[loop]
    later = notes[NOW] - own[BEGAN]
    length = 0
    # Something no older than what the block reached into has left the list: the top is then the whole list.
    if own[GONE] >= own[CUT]:
        length = own[KEPT]
        if not own[WHOLE]:
            return -2
    else:
        while length < own[KEPT] and kept[FRAME, length] >= own[CUT]:
            length += 1
        if length == own[KEPT] and not own[WHOLE]:
            return -2
    g, found = notes[END], 0
    while found < length:
        g -= 1
        if g < notes[BEGIN]:
            return -1
        if segments[COUNT, g] == 0:
            continue
        moved = blocks.moves[loop, segments[ARRAY, g]]
        if segments[LINE, g] - kept[LINE, found] != moved or segments[TIME, g] - kept[TIME, found] != later:
            return -1
        if segments[CAP, g] - kept[CAP, found] != later or segments[FRAME, g] - kept[FRAME, found] != later:
            return -1
        for row in range(SEGMENT):
            same = row not in (LOW, HIGH, LINE, TIME, CAP, FRAME)
            if same and segments[row, g] != kept[row, found]:
                return -1
        found += 1
    return int(g)


top_of = internal(_top)


def _until_one_returns(loop: int, outside: int, top: int, pushed: int, most: int, cache: List, blocks: Blocks) -> int:  # noqa: PLR0917
    """The number of blocks, at most `most`, in which no missed line is still held below the top.

    Columns as in `skip`. Missed lines are among those of the columns from `outside` on, renamed.
    """
    segments, notes = cache.segments, cache.notes
    passed = above = 0
    for g in range(top, notes[END]):
        passed += segments[COUNT, g]
    frame = -1
    for o in range(top - 1, notes[BEGIN] - 1, -1):
        if segments[FRAME, o] != frame:
            frame, above = segments[FRAME, o], passed
        # Each block pushes it further down, by `pushed` lines, until the cache no longer holds it: with 10 lines in the
        # cache, 4 of them above it and 3 pushed, it is there for 2 blocks, which begin with 4 and 7 lines above it.
        held = min(most, (notes[LINES] - above + pushed - 1) // pushed)
        if held < 1:
            break
        move = blocks.moves[loop, segments[ARRAY, o]]
        passed += segments[COUNT, o]
        if segments[COUNT, o] == 0:
            continue
        if move == 0:
            # The next blocks touch the same lines of this array. Those that the list held before the block are no
            # missed lines. But the block itself brought in what it pushed out, so the next one would find it.
            if o >= outside:
                return 0
            continue
        for s in range(outside, notes[END]):
            if segments[ARRAY, s] == segments[ARRAY, o] and segments[COUNT, s] > 0:
                first = first_meeting(segments, s, o, move, held)
                if first <= held:
                    most = held = first - 1
    return int(most)


until_one_returns = internal(_until_one_returns)


def _copy(segments: Ints, g: int, rebuilt: Ints, to: int, lines: int, later: int) -> int:  # noqa: PLR0917
    """Copies a segment to the rebuilt list, with lines and times shifted; returns the next free column."""
    if segments[COUNT, g] == 0:
        return to
    for row in range(SEGMENT):
        rebuilt[row, to] = segments[row, g]
    for row in (LINE, LOW, HIGH):
        rebuilt[row, to] += lines
    for row in (TIME, CAP, FRAME):
        rebuilt[row, to] += later
    return to + 1


copy = internal(_copy)


def _skip(loop: int, top: int, outside: int, pushed: int, most: int, cache: List, blocks: Blocks) -> bool:  # noqa: PLR0917
    """Rebuilds the list as it is after `most` more blocks; False if it gets too long.

    Columns from `top` on are the top, those from `outside` on the segments that a block has pushed out of it, `pushed`
    lines.
    """
    segments, notes, tallies = cache
    rebuilt, moves = blocks.rebuilt, blocks.moves[loop]
    later = notes[NOW] - blocks.notes[loop, BEGAN]
    lines = 0
    for g in range(top, notes[END]):
        lines += segments[COUNT, g]
    # Of what the last `most` + 1 blocks pushed out, the cache may still hold that of `copies`, the last ones.
    copies = most + 1
    if pushed > 0:
        copies = min(copies, max(0, notes[LINES] - lines + pushed - 1) // pushed + 1)
    if copies * (top - outside) + notes[END] - notes[BEGIN] >= segments.shape[1] // 2 and pushed > 0:
        return False
    to = 1
    # The segments that were already below, if the cache still holds some of them ...
    for g in range(notes[BEGIN], outside):
        if pushed == 0 or copies == most + 1:
            lines += segments[COUNT, g]
            to = copy(segments, g, rebuilt, to, 0, 0)
        else:
            tallies[segments[ARRAY, g], LEFT] += segments[DIRTY, g] * segments[COUNT, g]
    # ... then those that each block pushed out, as far as the cache may hold them ...
    for later_by in range(most + 1 - copies if pushed else most + 1, most + 1):
        for g in range(outside, top):
            lines += segments[COUNT, g]
            to = copy(segments, g, rebuilt, to, later_by * moves[segments[ARRAY, g]], later_by * later)
    for g in range(outside, top):
        if pushed:
            gone = (most + 1 - copies) * segments[COUNT, g]
            tallies[segments[ARRAY, g], LEFT] += segments[DIRTY, g] * gone
    if pushed and copies < most + 1:
        notes[NEWEST_DROPPED] = max(notes[NEWEST_DROPPED], segments[FRAME, top - 1] + (most - copies) * later)
    # ... then the top.
    for g in range(top, notes[END]):
        to = copy(segments, g, rebuilt, to, most * moves[segments[ARRAY, g]], most * later)
    for row in range(SEGMENT):
        for g in range(1, to):
            segments[row, g] = rebuilt[row, g]
    notes[BEGIN], notes[END], notes[EMPTY], notes[TIDIED], notes[LISTED] = 1, to, 0, to, lines
    notes[NOW] += most * later
    notes[WORK] += to
    return True


skip = internal(_skip)


def _look(loop: int, remaining: int, totals: Ints, cache: List, blocks: Blocks) -> int:
    """Skips blocks if the one that ends here repeats: returns the number of skipped blocks; -1 if the list does not
    begin with the old top, renamed, -2 if too few segments were kept.
    """
    segments, notes, tallies = cache
    own = blocks.notes[loop]
    notes[WORK] += own[KEPT] // 4
    top = top_of(loop, cache, blocks)
    if top < 0:
        return int(top)
    # Below the top is what the block pushed out of it, in frames from CUT on. Older frames are as they were before the
    # block.
    outside, pushed = top, 0
    while outside > notes[BEGIN] and segments[FRAME, outside - 1] >= own[CUT]:
        outside -= 1
        pushed += segments[COUNT, outside]
    whole = own[GONE] >= own[CUT]
    if whole and (pushed > 0 or outside > notes[BEGIN]):
        for g in range(notes[BEGIN], top):
            if segments[COUNT, g] > 0:
                return 0
        outside, pushed = top, 0
    # As many lines must have been pushed out as entered, and the top has to end with a whole frame.
    entered = notes[ENTERED] - own[BEGIN_ENTERED]
    if not whole and pushed != entered:
        return 0
    g = top - 1
    while g >= outside and segments[COUNT, g] == 0:
        g -= 1
    if g >= outside and top < notes[END] and segments[FRAME, g] == segments[FRAME, top]:
        return 0
    most = (remaining - 1) // own[PERIOD]  # the last iteration is simulated
    if pushed and most > 0:
        notes[WORK] += (notes[END] - outside) * (top - notes[BEGIN]) // 4
        most = until_one_returns(loop, outside, top, pushed, most, cache, blocks)
    if most < 1 or not skip(loop, top, outside, pushed, most, cache, blocks):
        return 0
    for a in range(tallies.shape[0]):
        for c in range(tallies.shape[1]):
            if c != LEFT or whole:
                tallies[a, c] += most * (tallies[a, c] - blocks.counts[loop, a, c])
    totals[ACCESSES] += most * (totals[ACCESSES] - own[BEGIN_ACCESSES])
    totals[STEPS] += most * (totals[STEPS] - own[BEGIN_STEPS])
    notes[ENTERED] += most * entered
    tidy(segments, notes, tallies)
    return int(most)


look = internal(_look)


def _at_boundary(cursor: Cursor, totals: Ints, cache: List, blocks: Blocks) -> None:
    """Examines the block that ends at an iteration for which its loop has set an alarm, and begins another."""
    env, stops, control, alarms = cursor[0], cursor[1], cursor[7], cursor[8]
    control[STATUS] = RUNNING
    v = control[CULPRIT]
    loop = blocks.of_variable[v]
    own, step = blocks.notes[loop], alarms[v, STRIDE]
    remaining = (stops[v] - env[v] + step - 1) // step
    if alarms[v, FRESH]:
        alarms[v, FRESH] = own[VALID] = own[WAIT] = own[PATIENCE] = 0
        note_cuts(cache.notes, blocks)
        if cache.notes[END] - cache.notes[BEGIN] > MANY:
            compact(cache.segments, cache.notes)
    note_cuts(cache.notes, blocks)
    if own[VALID]:
        own[VALID] = 0
        skipped = look(loop, remaining, totals, cache, blocks) if own[EXACT] else 0
        if own[EXACT] and skipped in (0, -1):
            skipped = rotate(loop, (remaining - 1) // own[PERIOD], totals, cache, blocks)
        if skipped > 0:
            env[v] += skipped * own[PERIOD] * step
            remaining -= skipped * own[PERIOD]
            own[PATIENCE] = 0
        elif skipped == -2:
            own[MOST] = min(blocks.kept.shape[2], 4 * own[MOST])
        else:
            own[PATIENCE] = min(LONGEST_WAIT, own[PATIENCE] + 1)
        own[WAIT] = own[PATIENCE] // 4
    elif own[WAIT] > 0:
        own[WAIT] -= 1
    if remaining < 2 * own[PERIOD] + 1:  # one to examine, one to skip, the last iteration
        alarms[v, ALARM] = NEVER
        return
    alarms[v, ALARM] = env[v] + own[PERIOD] * step
    if own[WAIT] == 0:
        begin(loop, totals, cache, blocks)


at_boundary = internal(_at_boundary)


def _run_skipping(  # noqa: PLR0917
    tables: Tables, cursor: Cursor, budget: int, totals: Ints, sweep: Sweep, cache: List, blocks: Blocks
) -> None:
    """Like `run_segments`, but skips iterations that repeat."""
    control, notes = cursor[7], cache.notes
    until = notes[WORK] + budget
    while control[STATUS] == RUNNING and notes[WORK] < until and not notes[TOO_SMALL]:
        run_segments(tables, cursor, until - notes[WORK], totals, sweep, cache)
        if control[STATUS] == BOUNDARY:
            notes[WORK] += 10
            at_boundary(cursor, totals, cache, blocks)


run_skipping = compiled(_run_skipping)
