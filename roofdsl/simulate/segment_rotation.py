"""Skipping iterations of a loop whose lines are all in the cache, for an LRU list of segments.

A loop that comes to the same lines in every execution, and has them all in the cache, takes the oldest of them out of
the list and puts them in front. So the list rotates: it never begins with an earlier list under other names, and
`segment_skip.py` finds nothing to skip. But the blocks that follow do the same as the last one, renamed, as long as

- a line that the last block found in the list corresponds to one that is in the list, dirty or clean like it, and a
  line that it did not find corresponds to one that is not in the list;
- the cache has room for all lines down to the oldest of these, and for those that enter the list meanwhile.

Then whatever is found hits, in whatever order, and whatever is not found misses. It is checked that the last block
missed exactly the lines that it did not find. Lines that the next block does not touch stay behind, in the order of the
blocks. Imports numba.
"""

from __future__ import annotations

from roofdsl.simulate.lru_list import ACCESSES, MISSES, STEPS, WRITE_MISSES
from roofdsl.simulate.segment_blocks import (
    BEGAN,
    BEGIN_ACCESSES,
    BEGIN_ENTERED,
    BEGIN_STEPS,
    KEPT,
    WHOLE,
    Blocks,
)
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
    LINE,
    LINES,
    LISTED,
    LOW,
    NOW,
    OLDEST_CUT,
    SEGMENT,
    SPARE,
    STEP,
    TIME,
    WORK,
    List,
    cut,
    tidy,
)
from roofdsl.simulate.walk import Ints, internal

# Whether the lines of a segment are in a table of segments: none of them, all and clean, all and dirty (CLEAN + 1),
# anything else.
ABSENT, CLEAN, MIXED = 0, 1, 3
MOST_TOUCHED = 32  # segments that a block touches
# Rows of `Blocks.touched`, a column for each segment that the last block touched: whether it found the lines in the
# list (as above); whether the block before it touches its lines, too, and whether the block after it does.
FOUND, BEFORE, AFTER = range(3)


def _first_meeting(segments: Ints, s: int, o: int, move: int, most: int) -> int:
    """The number of blocks, at most `most`, after which segment s, moving by `move` lines each, may first meet segment
    o, which stays; `most` + 1 if it does not.
    """
    if move > 0:
        first, last = -((segments[HIGH, s] - segments[LOW, o]) // move), (segments[HIGH, o] - segments[LOW, s]) // move
    else:
        first = -((segments[HIGH, o] - segments[LOW, s]) // -move)
        last = (segments[HIGH, s] - segments[LOW, o]) // -move
    first, last = max(1, first), min(last, most)
    step, other = abs(segments[STEP, s]), abs(segments[STEP, o])
    if segments[COUNT, s] == 1:
        step = other
    elif segments[COUNT, o] == 1:
        other = step
    if step == other and step > 1:
        # Lines in equal steps meet if they are in the same place within a step.
        last = min(last, first + step)
        while first <= last and (segments[LOW, s] + first * move - segments[LOW, o]) % step:
            first += 1
    return int(first if first <= last else most + 1)


first_meeting = internal(_first_meeting)


def _common(table: Ints, g: int, line: int, step: int, count: int) -> tuple[int, int]:
    """(first, number) of the members of column g that are among `count` lines from `line` on; the number is -1 if the
    steps differ.
    """
    own, members = table[STEP, g], table[COUNT, g]
    ahead = line - table[LINE, g]
    if members == 1:
        v = -ahead // step
        return 0, int(v * step == -ahead and 0 <= v < count)
    if count > 1 and abs(own) != abs(step):
        return 0, -1
    one = ahead // own
    if one * own != ahead:
        return 0, 0
    other = one + (count - 1 if step == own else 1 - count)
    first, last = max(0, min(one, other)), min(members - 1, max(one, other))
    return int(first), int(max(0, last - first + 1))


common = internal(_common)


def _state(table: Ints, begin: int, end: int, segments: Ints, s: int, move: int) -> tuple[int, int]:  # noqa: PLR0917
    """(whether the lines of segment s, moved, are in columns `begin` to `end` - 1 of a table; the least column with
    one).
    """
    low, high, count = segments[LOW, s] + move, segments[HIGH, s] + move, segments[COUNT, s]
    found, state, least = 0, ABSENT, end
    for g in range(begin, end):
        if table[LOW, g] > high or table[HIGH, g] < low or table[COUNT, g] == 0:
            continue
        if table[ARRAY, g] != segments[ARRAY, s]:  # moved beyond its own array
            continue
        _, n = common(table, g, segments[LINE, s] + move, segments[STEP, s], count)
        if n == 0:
            continue
        own = CLEAN + table[DIRTY, g]
        if n < 0 or (found > 0 and state != own):
            return MIXED, least
        least, state = min(least, g), own
        found += n
        if found == count:
            return int(state), int(least)
    return (ABSENT if found == 0 else MIXED), int(least)


state_of = internal(_state)


def _compare(loop: int, top: int, most: int, cache: List, blocks: Blocks) -> int:
    """Records how the segments from column `top` on, which the last block touched, are related to the blocks before and
    after it.

    Returns the number of blocks, at most `most`, for which these relations are shown to stay the same, 0 if they are
    not the same for all lines of a segment; -2 if too few segments were kept.
    """
    segments, end, touched = cache.segments, cache.notes[END], blocks.touched
    own, kept = blocks.notes[loop], blocks.kept[loop]
    entered = 0
    for s in range(top, end):
        if segments[COUNT, s] == 0:
            continue
        move = blocks.moves[loop, segments[ARRAY, s]]
        found, _ = state_of(kept, 0, own[KEPT], segments, s, 0)
        # Each block touches the lines of the one before, plus `move`. So the one before touched s, too, if this one
        # touches s + move; the next will if this one touches s - move.
        before, _ = state_of(segments, top, end, segments, s, move)
        after, _ = state_of(segments, top, end, segments, s, -move)
        if found == ABSENT:
            if not own[WHOLE]:
                return -2
            entered += segments[COUNT, s]
        # Lines that two blocks in a row touch are found as the first one left them, so it must leave them as it found
        # them.
        if MIXED in (found, after) or before not in (ABSENT, found):
            return 0
        touched[FOUND, s - top], touched[BEFORE, s - top], touched[AFTER, s - top] = found, before, after
        if before == ABSENT:
            # Other blocks than the one before do not touch these lines either.
            for o in range(top, end):
                if segments[COUNT, o] > 0 and segments[ARRAY, o] == segments[ARRAY, s] and most > 0:
                    most = min(most, first_meeting(segments, s, o, move, most) - 1)
    return int(most) if entered == cache.notes[ENTERED] - own[BEGIN_ENTERED] else 0


compare_blocks = internal(_compare)


def _until_one_differs(loop: int, top: int, most: int, entered: int, cache: List, blocks: Blocks) -> int:  # noqa: PLR0917
    """The number of blocks, at most `most`, that find the same lines in the list as the last one, renamed, and hit all
    of them.
    """
    segments, notes, touched = cache.segments, cache.notes, blocks.touched
    oldest, above = top, 0
    for g in range(top, notes[END]):
        above += segments[COUNT, g]
    for t in range(1, most + 1):
        for s in range(top, notes[END]):
            if segments[COUNT, s] == 0 or touched[BEFORE, s - top] != ABSENT:
                continue
            moved = t * blocks.moves[loop, segments[ARRAY, s]]
            state, least = state_of(segments, notes[BEGIN], top, segments, s, moved)
            if state != touched[FOUND, s - top]:
                return t - 1
            # `above`: the lines down to the oldest one found, with all of its frame.
            while oldest > notes[BEGIN] and (oldest > least or segments[FRAME, oldest - 1] == segments[FRAME, oldest]):
                oldest -= 1
                above += segments[COUNT, oldest]
        if above + t * entered > notes[LINES]:
            return t - 1
    return int(most)


until_one_differs = internal(_until_one_differs)


def _take_out(s: int, moved: int, rebuilt: Ints, cache: List) -> None:
    """Removes the lines of column s of `rebuilt`, moved, from the list."""
    segments, notes = cache.segments, cache.notes
    low, high, line = rebuilt[LOW, s] + moved, rebuilt[HIGH, s] + moved, rebuilt[LINE, s] + moved
    g, left = notes[BEGIN], rebuilt[COUNT, s]
    while g < notes[END] and left > 0:
        if segments[LOW, g] <= high and segments[HIGH, g] >= low and segments[COUNT, g] > 0:
            first, n = common(segments, g, line, rebuilt[STEP, s], rebuilt[COUNT, s])
            if n > 0:
                cut(segments, notes, g, first, first + n - 1)
                left -= n
        g += 1


take_out = internal(_take_out)


def _skip(loop: int, top: int, most: int, cache: List, blocks: Blocks) -> None:
    """Changes the list as `most` more blocks do. They touch the lines of the columns from `top` on, moved."""
    segments, notes = cache.segments, cache.notes
    rebuilt, touched, moves = blocks.rebuilt, blocks.touched, blocks.moves[loop]
    later, n = notes[NOW] - blocks.notes[loop, BEGAN], 0
    notes[OLDEST_CUT] = min(notes[OLDEST_CUT], segments[FRAME, top])
    for s in range(top, notes[END]):
        if segments[COUNT, s] == 0:
            notes[EMPTY] -= 1
            continue
        for row in range(SEGMENT):
            rebuilt[row, n] = segments[row, s]
        for row in range(touched.shape[0]):
            touched[row, n] = touched[row, s - top]
        n += 1
    notes[END] = top
    for s in range(n):
        if touched[BEFORE, s] == ABSENT and touched[FOUND, s] != ABSENT:
            for t in range(1, most + 1):
                take_out(s, t * moves[rebuilt[ARRAY, s]], rebuilt, cache)
    for t in range(most + 1):
        for s in range(n):
            if t < most and touched[AFTER, s] != ABSENT:
                continue
            g = notes[END]
            for row in range(SEGMENT):
                segments[row, g] = rebuilt[row, s]
            for row in (LINE, LOW, HIGH):
                segments[row, g] += t * moves[rebuilt[ARRAY, s]]
            for row in (TIME, CAP, FRAME):
                segments[row, g] += t * later
            notes[END] = g + 1
    notes[NOW] += most * later
    notes[WORK] += most * n


skip_blocks = internal(_skip)


def _rotate(loop: int, most: int, totals: Ints, cache: List, blocks: Blocks) -> int:
    """Skips at most `most` blocks if they do the same as the one that ends here: returns the number of skipped blocks;
    -2 if too few segments were kept.
    """
    segments, notes, tallies = cache
    own, counts = blocks.notes[loop], blocks.counts[loop]
    entered, missed = notes[ENTERED] - own[BEGIN_ENTERED], 0
    for a in range(tallies.shape[0]):
        missed += tallies[a, MISSES] - counts[a, MISSES]
    if missed != entered:
        return 0
    top, size = notes[END], 0
    while top > notes[BEGIN] and segments[FRAME, top - 1] >= own[BEGAN]:
        top -= 1
        size += segments[COUNT, top] > 0
    columns = notes[END] - top
    # A block leaves at most its own segments behind, and taking lines out may split as many.
    most = min(most, (segments.shape[1] - SPARE - notes[END]) // max(1, 2 * size) - 2)
    if size == 0 or size > MOST_TOUCHED or columns > blocks.touched.shape[1] or most < 1:
        return 0
    notes[WORK] += columns * (columns + own[KEPT]) // 8
    most = compare_blocks(loop, top, most, cache, blocks)
    if most < 1:
        return int(most)
    most = until_one_differs(loop, top, most, entered, cache, blocks)
    notes[WORK] += (1 + most) * size * (top - notes[BEGIN]) // 16
    if most < 1:
        return 0
    for a in range(tallies.shape[0]):
        for column in (MISSES, WRITE_MISSES):
            tallies[a, column] += most * (tallies[a, column] - counts[a, column])
    totals[ACCESSES] += most * (totals[ACCESSES] - own[BEGIN_ACCESSES])
    totals[STEPS] += most * (totals[STEPS] - own[BEGIN_STEPS])
    skip_blocks(loop, top, most, cache, blocks)
    notes[LISTED] += most * entered
    notes[ENTERED] += most * entered
    tidy(segments, notes, tallies)
    return int(most)


rotate = internal(_rotate)
