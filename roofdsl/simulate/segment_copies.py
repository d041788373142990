"""Inner loops that begin by repeating what they did in an earlier iteration of the outer loop, for an LRU list of
segments.

In interval dynamic programming, such as `nussinov`, each iteration of the outer loop begins like an earlier one, on
other lines, and then goes on for longer (`copied_loops` in `shifts.py`). At some point of the inner loop, the list is
compared with the one recorded at that point in the earlier iteration. If the cache holds the same lines in the same
order, renamed, both iterations go on alike until the earlier one ended. Its counts are added, and the list becomes the
one that it left behind, renamed.

Until the inner loop has touched as many lines as the cache holds, the list contains lines of the outer loop's previous
iteration, which are in other places. So the point of comparison comes after that, and moves on if the lists still
differ.

Records are kept for each residue of the outer loop's iterations modulo its period: the list at the point of comparison,
and the list at the last point that was reached, with the counts between both. Dirty lines that the cache no longer
holds are counted as stored in both, whether they have left the list or not. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

from roofdsl.simulate.lru_list import ACCESSES, MISSES, STEPS, STORED, WRITE_MISSES
from roofdsl.simulate.segment_blocks import PERIOD, VALID, Blocks
from roofdsl.simulate.segments import (
    ARRAY,
    BEGIN,
    CAP,
    COUNT,
    DIRTY,
    DT,
    EMPTY,
    END,
    FRAME,
    HIGH,
    LEFT,
    LINE,
    LINES,
    LISTED,
    LOW,
    NO_FRAME,
    NOW,
    RATE,
    SEGMENT,
    STEP,
    TIDIED,
    TIME,
    WORK,
    List,
    set_range,
)
from roofdsl.simulate.walk import ALARM, FRESH, NEVER, RUNNING, STATUS, STRIDE, Cursor, Ints, internal

# Columns of a loop that begins with copies: the outer loop's variable and step, and the iterations after which it
# repeats; where and when the inner loop began this time (FIRST is NEVER if it began before it was looked at), and where
# growth is looked for next; whether the point of comparison was passed, and the time, accesses and steps there.
OUTER, OUTER_STEP, REPEATS, FIRST, BEGUN, NEXT = range(6)
PASSED, PASSED_NOW, PASSED_ACCESSES, PASSED_STEPS, COPY_NOTES = range(6, 11)
# Columns of a record: the iteration of the inner loop, 0 if there is none; the value of the outer variable; the
# segments of its list; the time; since the point of comparison, the time, the accesses and the steps; how often in a
# row the lists differed there.
AT, OUTER_VALUE, LENGTH, THEN, TIME_SINCE, ACCESSES_SINCE, STEPS_SINCE, FAILURES, RECORD = range(9)
COMPARED, LAST = range(2)  # records
ENDED = 2  # column of counts: dirty lines that the cache no longer holds; after it, those of a record's list
HELD = 3
BETWEEN = 16  # iterations from one look at the list to the next
MOST_FAILURES = 2  # in a row, after which a later point is tried
AHEAD = 4  # growth is looked for only if the point of comparison is at least this many blocks ahead
MOST_RECORDED = 2048  # segments of a list


class Copies(NamedTuple):
    """The loops that begin with copies: the row of an inner loop's variable, or -1; their notes; the variables of the
    loops around both, and their values when the records were made; the lines by which an array moves in a period.

    For each loop, residue and record: the record, its list (newest segment first), and the counts of each array since
    the point of comparison. passed: the counts at that point in the present execution.
    """

    of_variable: Ints
    notes: Ints
    around: Ints
    around_values: Ints
    moves: Ints
    records: Ints
    lists: Ints
    counts: Ints
    passed: Ints


def _in_own_frame(segments: Ints, k: int, length: int) -> bool:
    """Whether segment k of a recorded list is the only one of its frame."""
    frame = segments[FRAME, k]
    return (k == 0 or segments[FRAME, k - 1] != frame) and (k + 1 == length or segments[FRAME, k + 1] != frame)


in_own_frame = internal(_in_own_frame)


def _recorded_list(cache: List, saved: Ints) -> int:
    """Copies the frames of which the cache holds at least a part. If the oldest of them has one segment, only the lines
    that the cache holds are copied. Returns the number of segments, 0 if there are too many.
    """
    segments, notes = cache.segments, cache.notes
    n = lines = 0
    frame = NO_FRAME
    for g in range(notes[END] - 1, notes[BEGIN] - 1, -1):
        if segments[COUNT, g] == 0:
            continue
        if segments[FRAME, g] != frame and lines >= notes[LINES]:
            break
        if n == saved.shape[1]:
            return 0
        frame = segments[FRAME, g]
        for row in range(SEGMENT):
            saved[row, n] = segments[row, g]
        lines += segments[COUNT, g]
        n += 1
    beyond = lines - notes[LINES]
    if n and beyond > 0 and in_own_frame(saved, n - 1, n):
        saved[LINE, n - 1] += saved[STEP, n - 1] * beyond
        saved[TIME, n - 1] += saved[DT, n - 1] * beyond
        saved[COUNT, n - 1] -= beyond
        set_range(saved, n - 1)
    notes[WORK] += n
    return n


recorded_list = internal(_recorded_list)


def _is_same(saved: Ints, length: int, moves: Ints, periods: int, later: int, cache: List, own: Ints) -> bool:  # noqa: PLR0917
    """Whether the lines that the cache holds are those of a recorded list, renamed, with times later by `later`.

    own: work space for the list's newest segments. Lines of frames with one segment are compared one after the other,
    however they are divided into segments. A list recorded before the cache was full must be matched to its end, too:
    the accesses that follow may hit what is below it now.
    """
    n = recorded_list(cache, own)
    k = h = left = own_left = 0
    while h < length:
        if k == n:
            return False
        if left == 0:
            left = saved[COUNT, h]
        if own_left == 0:
            own_left = own[COUNT, k]
        move = moves[saved[ARRAY, h]] * periods
        if saved[ARRAY, h] != own[ARRAY, k] or saved[DIRTY, h] != own[DIRTY, k]:
            return False
        single, own_single = in_own_frame(saved, h, length), in_own_frame(own, k, n)
        if single != own_single:
            return False
        if single:
            many = min(left, own_left)
            if own[LINE, k] + own[STEP, k] * (own_left - 1) != saved[LINE, h] + saved[STEP, h] * (left - 1) + move:
                return False
            if many > 1 and own[STEP, k] != saved[STEP, h]:
                return False
        else:
            many = saved[COUNT, h]
            for row in (LINE, STEP, COUNT, FRAME, TIME, DT, CAP, RATE):
                more = move if row == LINE else later if row in (FRAME, TIME, CAP) else 0
                if own[row, k] != saved[row, h] + more:
                    return False
        left -= many
        own_left -= many
        h += left == 0
        k += own_left == 0
    return bool(k == n)


is_same = internal(_is_same)


def _pass(loop: int, residue: int, totals: Ints, cache: List, copies: Copies) -> None:
    """Notes that the loop passes the point of comparison, whose record matches the present list."""
    segments, notes, tallies = cache
    own, passed = copies.notes[loop], copies.passed[loop]
    own[PASSED], own[PASSED_NOW] = 1, notes[NOW]
    own[PASSED_ACCESSES], own[PASSED_STEPS] = totals[ACCESSES], totals[STEPS]
    for a in range(tallies.shape[0]):
        passed[a, MISSES], passed[a, WRITE_MISSES] = tallies[a, MISSES], tallies[a, WRITE_MISSES]
        passed[a, ENDED] = tallies[a, STORED] + tallies[a, LEFT] - copies.counts[loop, residue, COMPARED, a, HELD]
    for g in range(notes[BEGIN], notes[END]):
        passed[segments[ARRAY, g], ENDED] += segments[DIRTY, g] * segments[COUNT, g]


pass_point = internal(_pass)


def _record(  # noqa: PLR0917
    loop: int, residue: int, which: int, at: int, outer: int, totals: Ints, cache: List, copies: Copies
) -> None:
    """Records the list. At the last point, also records the counts since the point of comparison."""
    segments, notes, tallies = cache
    own, record, counts = copies.notes[loop], copies.records[loop, residue, which], copies.counts[loop, residue, which]
    length = recorded_list(cache, copies.lists[loop, residue, which])
    record[AT], record[OUTER_VALUE], record[LENGTH], record[THEN] = at if length else 0, outer, length, notes[NOW]
    counts[:] = 0
    saved = copies.lists[loop, residue, which]
    for k in range(length):
        counts[saved[ARRAY, k], HELD] += saved[DIRTY, k] * saved[COUNT, k]
    if which == COMPARED:
        pass_point(loop, residue, totals, cache, copies)
        return
    record[TIME_SINCE] = notes[NOW] - own[PASSED_NOW]
    record[ACCESSES_SINCE] = totals[ACCESSES] - own[PASSED_ACCESSES]
    record[STEPS_SINCE] = totals[STEPS] - own[PASSED_STEPS]
    for a in range(tallies.shape[0]):
        counts[a, MISSES] = tallies[a, MISSES] - copies.passed[loop, a, MISSES]
        counts[a, WRITE_MISSES] = tallies[a, WRITE_MISSES] - copies.passed[loop, a, WRITE_MISSES]
        counts[a, ENDED] = tallies[a, STORED] + tallies[a, LEFT] - copies.passed[loop, a, ENDED] - counts[a, HELD]
    for g in range(notes[BEGIN], notes[END]):
        counts[segments[ARRAY, g], ENDED] += segments[DIRTY, g] * segments[COUNT, g]


record_list = internal(_record)


def _jump(loop: int, residue: int, periods: int, totals: Ints, cache: List, copies: Copies) -> None:  # noqa: PLR0917
    """Jumps from the point of comparison to the last point: adds the counts between both, and sets the list."""
    segments, notes, tallies = cache
    own, record, counts = copies.notes[loop], copies.records[loop, residue, LAST], copies.counts[loop, residue, LAST]
    saved, moves, length = copies.lists[loop, residue, LAST], copies.moves[loop], record[LENGTH]
    notes[NOW] = own[PASSED_NOW] + record[TIME_SINCE]
    totals[ACCESSES] += record[ACCESSES_SINCE]
    totals[STEPS] += record[STEPS_SINCE]
    for a in range(tallies.shape[0]):
        tallies[a, MISSES] += counts[a, MISSES]
        tallies[a, WRITE_MISSES] += counts[a, WRITE_MISSES]
        tallies[a, LEFT] = copies.passed[loop, a, ENDED] + counts[a, ENDED] - tallies[a, STORED]
    later, lines = notes[NOW] - record[THEN], 0
    for k in range(length):
        g = length - k
        for row in range(SEGMENT):
            segments[row, g] = saved[row, k]
        for row in (LINE, LOW, HIGH):
            segments[row, g] += moves[saved[ARRAY, k]] * periods
        for row in (FRAME, TIME, CAP):
            segments[row, g] += later
        lines += saved[COUNT, k]
    notes[BEGIN], notes[END], notes[EMPTY], notes[TIDIED], notes[LISTED] = 1, length + 1, 0, length, lines
    notes[WORK] += length


jump = internal(_jump)


def _begin_inner(loop: int, first: int, env: Ints, cache: List, copies: Copies) -> None:
    """Notes that the inner loop begins, at `first`. Drops records made in other iterations of the loops around both."""
    own = copies.notes[loop]
    own[FIRST], own[BEGUN], own[PASSED] = first, cache.notes[NOW], 0
    for k in range(copies.around.shape[1]):
        variable = copies.around[loop, k]
        if variable >= 0 and copies.around_values[loop, k] != env[variable]:
            copies.around_values[loop, k] = env[variable]
            copies.records[loop] = 0


begin_inner = internal(_begin_inner)


def _compare(  # noqa: PLR0917
    loop: int, v: int, residue: int, cursor: Cursor, totals: Ints, cache: List, copies: Copies, own: Ints
) -> bool:
    """Jumps to the last point if the list at the point of comparison is the recorded one; returns whether it jumped. It
    does not jump to a last point that is no farther, or that this execution of the loop does not reach. own: as in
    `is_same`.
    """
    env, notes = cursor[0], copies.notes[loop]
    record, last = copies.records[loop, residue, COMPARED], copies.records[loop, residue, LAST]
    outer, period = env[notes[OUTER]], notes[OUTER_STEP] * notes[REPEATS]
    periods, later = (outer - record[OUTER_VALUE]) // period, cache.notes[NOW] - record[THEN]
    saved = copies.lists[loop, residue, COMPARED]
    if not is_same(saved, record[LENGTH], copies.moves[loop], periods, later, cache, own):
        return False
    pass_point(loop, residue, totals, cache, copies)
    record[FAILURES] = 0
    there = notes[FIRST] + last[AT] * cursor[8][v, STRIDE]
    if last[AT] <= record[AT] or there >= cursor[1][v]:
        return False
    jump(loop, residue, (outer - last[OUTER_VALUE]) // period, totals, cache, copies)
    env[v] = there
    return True


compare = internal(_compare)


def _first_record(  # noqa: PLR0917
    loop: int, residue: int, at: int, failures: int, outer: int, totals: Ints, cache: List, copies: Copies
) -> None:
    """Makes this the point of comparison if the cache holds nothing from before the inner loop."""
    copies.records[loop, residue, LAST, AT] = 0
    record_list(loop, residue, COMPARED, at, outer, totals, cache, copies)
    record = copies.records[loop, residue, COMPARED]
    record[FAILURES] = failures
    oldest = copies.lists[loop, residue, COMPARED, FRAME, max(0, record[LENGTH] - 1)]
    if record[AT] == 0 or oldest < copies.notes[loop, BEGUN]:
        record[AT] = copies.notes[loop, PASSED] = 0


first_record = internal(_first_record)


def _set_alarm(v: int, env: Ints, alarms: Ints, copies: Copies) -> None:
    """Sets the alarm to the next look at growth, the point of comparison, or a few iterations on: whichever comes
    first.
    """
    loop, step = copies.of_variable[v], alarms[v, STRIDE]
    own = copies.notes[loop]
    alarms[v, ALARM] = min(own[NEXT], env[v] + step * BETWEEN)
    if own[FIRST] != NEVER:
        residue = env[own[OUTER]] // own[OUTER_STEP] % own[REPEATS]
        compared = own[FIRST] + copies.records[loop, residue, COMPARED, AT] * step
        if env[v] < compared < alarms[v, ALARM]:
            alarms[v, ALARM] = compared


set_alarm = internal(_set_alarm)


def _at_copies(v: int, cursor: Cursor, totals: Ints, cache: List, blocks: Blocks, copies: Copies) -> int:  # noqa: PLR0917
    """Compares, records and jumps at the beginning of an iteration of v, a loop that begins with copies.

    Returns the value of v up to which growing blocks may be skipped; NEVER if growth is not to be looked for now.
    """
    env, stops, control, alarms = cursor[0], cursor[1], cursor[7], cursor[8]
    loop, step = copies.of_variable[v], alarms[v, STRIDE]
    own, block = copies.notes[loop], step * blocks.notes[blocks.of_variable[v], PERIOD]
    until = stops[v]
    if alarms[v, FRESH]:
        begin_inner(loop, env[v] - step, env, cache, copies)
        return int(until)
    if own[FIRST] == NEVER:
        return int(until)
    outer, at = env[own[OUTER]], (env[v] - own[FIRST]) // step
    residue = outer // own[OUTER_STEP] % own[REPEATS]
    compared, failures = copies.records[loop, residue, COMPARED, AT], copies.records[loop, residue, COMPARED, FAILURES]
    if own[PASSED]:
        record_list(loop, residue, LAST, at, outer, totals, cache, copies)
    elif compared == 0 or at >= compared + 1 + compared // 16:
        first_record(loop, residue, at, 0, outer, totals, cache, copies)
    elif at == compared:
        if compare(loop, v, residue, cursor, totals, cache, copies, blocks.rebuilt[:, : copies.lists.shape[4]]):
            for k in range(blocks.notes.shape[0]):
                blocks.notes[k, VALID] = 0
            own[NEXT] = alarms[v, ALARM] = env[v] + step * BETWEEN
            control[STATUS] = RUNNING
            return NEVER
        if not own[PASSED] and failures < MOST_FAILURES:
            first_record(loop, residue, at, failures + 1, outer, totals, cache, copies)
    elif at < compared:
        there = own[FIRST] + compared * step
        until = min(until, there + block) if there - env[v] >= AHEAD * block else env[v]
    if env[v] == own[NEXT]:
        return int(until)
    set_alarm(v, env, alarms, copies)
    control[STATUS] = RUNNING
    return NEVER


at_copies = internal(_at_copies)


def _look_again(v: int, env: Ints, alarms: Ints, copies: Copies) -> None:
    """Sets the next alarm of a loop that begins with copies; the alarm set before is the next look for growth."""
    copies.notes[copies.of_variable[v], NEXT] = alarms[v, ALARM]
    set_alarm(v, env, alarms, copies)


look_again = internal(_look_again)
