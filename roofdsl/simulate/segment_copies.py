"""Inner loops that begin by repeating what they did in an earlier iteration of the outer loop, for an LRU list of
segments.

In interval dynamic programming, such as `nussinov`, each iteration of the outer loop begins like an earlier one, on
other lines, and then goes on for longer (`copied_loops` in `shifts.py`). Let both start at the same iteration of the
inner loop; what the cache holds then may differ. Still:

- If a line was touched since the start, the accesses after that touch are the same in both, renamed. So an access to it
  hits in both or in neither.
- The first access to a line, if t other lines were touched since the start, hits if and only if this line was among
  those held at the start, and t plus the lines that were above it then and have not been touched since are fewer than
  the cache holds. So only the first lines matter, as many as the cache holds (`first_lines.py`). They are looked up in
  the list.
- Once as many lines were touched, the list has no others, and is that of the earlier iteration, renamed. It may differ
  in one thing: a line that was dirty at the start stays dirty as long as it hits. If it has hit ever since and was not
  written, it must be so in both.

Hence the counts of an iteration are those with an empty cache at the start, less the hits on lines from before it. The
former are recorded, with the list at the last iteration that was reached. A later iteration of the outer loop looks up
its first lines, adds the recorded counts, takes the recorded list and goes on from there.

Records are kept for each residue of the outer loop's iterations modulo its period. Dirty lines that the cache no longer
holds are counted as stored in all of them, whether they have left the list or not. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

from roofdsl.simulate.first_lines import FirstLines, Small, find_first_lines, look_up
from roofdsl.simulate.lru_list import ACCESSES, MISSES, STEPS, STORED, WRITE_MISSES
from roofdsl.simulate.segment_blocks import EXECUTIONS, FIRST_SEEN, PATIENCE, VALID, WAIT, Blocks
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
    SEGMENT,
    STEP,
    TIDIED,
    TIME,
    WORK,
    List,
    set_range,
)
from roofdsl.simulate.walk import (
    ALARM,
    FRESH,
    NEVER,
    RUNNING,
    STATUS,
    STRIDE,
    Cursor,
    Ints,
    Tables,
    internal,
)

# Columns of a loop that begins with copies: the outer loop's variable and step, and the iterations after which it
# repeats; the inner loop's variable at the start of this execution (NEVER if it began before it was looked at), and
# where growth is looked for next; the time, accesses and steps at the start; the segments of the list there, 0 if there
# were too many; whether the counts less those of an empty cache are known (0 if not yet, -1 if they will not be); the
# iterations before which no first record is made.
OUTER, OUTER_STEP, REPEATS, FIRST, NEXT, BEGUN, BEGUN_ACCESSES, BEGUN_STEPS, LENGTH, KNOWN, NEEDED = range(11)
COPY_NOTES = 11
# Columns of a record: the iteration of the inner loop, 0 if there is none; the value of the outer variable; these when
# the first lines were found; the segments of its list; the time; the time, accesses and steps since the start.
AT, OUTER_VALUE, FOUND_AT, OF_LINES, LISTED_SEGMENTS, THEN, TIME_SINCE, ACCESSES_SINCE, STEPS_SINCE, RECORD = range(10)
ENDED = 2  # column of counts: dirty lines that the cache no longer holds
BETWEEN = 16  # iterations from one look at the list to the next
MOST_RECORDED = 2048  # segments of a list
MOST_DIRTY = 8  # dirty lines that are not written and have hit since the start


class Copies(NamedTuple):
    """The loops that begin with copies: the row of an inner loop's variable, or -1; their notes; the variables of the
    loops around both, and their values when the records were made; the lines by which an array moves in a period.

    For each loop: the list at the start of its execution, and the tallies there, changed to those that an execution
    with an empty cache at the start would have to add to. For each loop and residue: the record, its list (newest
    segment first), the counts since the start with an empty cache, the first lines with their kinds, and the number of
    the dirty ones that are not written and have hit since the start, then these themselves; the last row of `dirty` is
    for the present execution. looked_up: work space for a list.
    """

    of_variable: Ints
    notes: Ints
    around: Ints
    around_values: Ints
    moves: Ints
    before: Ints
    base: Ints
    records: Ints
    lists: Ints
    counts: Ints
    first_lines: Small
    dirty: Small
    looked_up: List
    space: FirstLines


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
    if beyond > 0 and (n == 1 or saved[FRAME, n - 2] != frame):
        saved[LINE, n - 1] += saved[STEP, n - 1] * beyond
        saved[TIME, n - 1] += saved[DT, n - 1] * beyond
        saved[COUNT, n - 1] -= beyond
        set_range(saved, n - 1)
    notes[WORK] += n
    return n


recorded_list = internal(_recorded_list)


def _holds_only_new(cache: List, begun: int) -> bool:
    """Whether everything that the cache holds was touched from a time on, and it is full."""
    segments, notes, lines = cache.segments, cache.notes, 0
    g = notes[END] - 1
    while g >= notes[BEGIN] and lines < notes[LINES]:
        if segments[COUNT, g] > 0 and segments[FRAME, g] < begun:
            return False
        lines += segments[COUNT, g]
        g -= 1
    return bool(lines >= notes[LINES])


holds_only_new = internal(_holds_only_new)


def _begin_inner(loop: int, first: int, env: Ints, totals: Ints, cache: List, copies: Copies) -> None:  # noqa: PLR0917
    """Notes that an execution of the inner loop starts at `first`, with the list as it is. Drops records made in other
    iterations of the loops around both.
    """
    own, (segments, notes, tallies) = copies.notes[loop], cache
    own[FIRST], own[BEGUN], own[KNOWN] = first, notes[NOW], 0
    own[BEGUN_ACCESSES], own[BEGUN_STEPS] = totals[ACCESSES], totals[STEPS]
    for k in range(copies.around.shape[1]):
        variable = copies.around[loop, k]
        if variable >= 0 and copies.around_values[loop, k] != env[variable]:
            copies.around_values[loop, k] = env[variable]
            copies.records[loop] = 0
    saved, base = copies.before[loop], copies.base[loop]
    for a in range(tallies.shape[0]):
        base[a, MISSES], base[a, WRITE_MISSES] = tallies[a, MISSES], tallies[a, WRITE_MISSES]
        base[a, ENDED] = tallies[a, STORED] + tallies[a, LEFT]
    n = 0
    for g in range(notes[BEGIN], notes[END]):
        if segments[COUNT, g] == 0:
            continue
        if n == saved.shape[1]:
            own[LENGTH], own[KNOWN] = 0, -1
            return
        for row in range(SEGMENT):
            saved[row, n] = segments[row, g]
        # With an empty cache, everything would have left it now.
        base[segments[ARRAY, g], ENDED] += segments[DIRTY, g] * segments[COUNT, g]
        n += 1
    own[LENGTH] = n
    notes[WORK] += n


begin_inner = internal(_begin_inner)


def _record(loop: int, residue: int, at: int, outer: int, totals: Ints, cache: List, copies: Copies) -> None:  # noqa: PLR0917
    """Records the list, and the counts since the start with an empty cache."""
    segments, notes, tallies = cache
    own, record, counts = copies.notes[loop], copies.records[loop, residue], copies.counts[loop, residue]
    base, saved = copies.base[loop], copies.lists[loop, residue]
    length = recorded_list(cache, saved)
    record[AT], record[OUTER_VALUE], record[LISTED_SEGMENTS] = at if length else 0, outer, length
    record[THEN], record[TIME_SINCE] = notes[NOW], notes[NOW] - own[BEGUN]
    record[ACCESSES_SINCE] = totals[ACCESSES] - own[BEGUN_ACCESSES]
    record[STEPS_SINCE] = totals[STEPS] - own[BEGUN_STEPS]
    for a in range(tallies.shape[0]):
        counts[a, MISSES] = tallies[a, MISSES] - base[a, MISSES]
        counts[a, WRITE_MISSES] = tallies[a, WRITE_MISSES] - base[a, WRITE_MISSES]
        counts[a, ENDED] = tallies[a, STORED] + tallies[a, LEFT] - base[a, ENDED]
    for g in range(notes[BEGIN], notes[END]):
        counts[segments[ARRAY, g], ENDED] += segments[DIRTY, g] * segments[COUNT, g]
    for k in range(length):
        counts[saved[ARRAY, k], ENDED] -= saved[DIRTY, k] * saved[COUNT, k]


record_list = internal(_record)


def _jump(loop: int, residue: int, outer: int, totals: Ints, cache: List, copies: Copies) -> None:  # noqa: PLR0917
    """Jumps from the start to the recorded iteration: adds the counts between both, and sets the list."""
    segments, notes, tallies = cache
    own, record, counts = copies.notes[loop], copies.records[loop, residue], copies.counts[loop, residue]
    base, saved = copies.base[loop], copies.lists[loop, residue]
    moves, length = copies.moves[loop], record[LISTED_SEGMENTS]
    periods = (outer - record[OUTER_VALUE]) // (own[OUTER_STEP] * own[REPEATS])
    notes[NOW] = own[BEGUN] + record[TIME_SINCE]
    totals[ACCESSES] += record[ACCESSES_SINCE]
    totals[STEPS] += record[STEPS_SINCE]
    for a in range(tallies.shape[0]):
        tallies[a, MISSES] = base[a, MISSES] + counts[a, MISSES]
        tallies[a, WRITE_MISSES] = base[a, WRITE_MISSES] + counts[a, WRITE_MISSES]
        # Only the sum of STORED and LEFT counts, so LEFT gets all of the difference.
        tallies[a, LEFT] = base[a, ENDED] + counts[a, ENDED] - tallies[a, STORED]
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


def _look_up_all(loop: int, residue: int, outer: int, cache: List, copies: Copies) -> int:
    """Changes `base` by the hits of the first lines on lines from before the start. Returns the number of dirty ones
    that are not written and have hit ever since; -1 if the look-up was given up.
    """
    own, record = copies.notes[loop], copies.records[loop, residue]
    periods = (outer - record[OF_LINES]) // (own[OUTER_STEP] * own[REPEATS])
    before, base, length = copies.before[loop], copies.base[loop], own[LENGTH]
    segments, notes, _ = copies.looked_up
    for row in range(SEGMENT):
        segments[row, 0] = NO_FRAME if row == FRAME else 0
        for g in range(length):
            segments[row, g + 1] = before[row, g]
    notes[:] = 0
    notes[LINES], notes[BEGIN], notes[END] = cache.notes[LINES], 1, length + 1
    found, dirty = copies.first_lines[loop, residue], copies.dirty[loop, -1]
    n = look_up(found, copies.moves[loop], periods, before, length, copies.looked_up, base, dirty, copies.space)
    cache.notes[WORK] += notes[WORK] + cache.notes[LINES] // 4
    return int(n)


look_up_all = internal(_look_up_all)


def _may_jump(loop: int, residue: int, outer: int, cache: List, copies: Copies) -> int:
    """Whether the list at the end of the record would be the recorded one: 1 if it is, 0 if not, -1 if not known."""
    n = look_up_all(loop, residue, outer, cache, copies)
    if n < 0:
        return -1
    for k in range(min(n, MOST_DIRTY) + 1):  # the first is their number
        if copies.dirty[loop, -1, k] != copies.dirty[loop, residue, k]:
            return 0
    return 1


may_jump = internal(_may_jump)


def _start(v: int, residue: int, cursor: Cursor, totals: Ints, cache: List, blocks: Blocks, copies: Copies) -> bool:  # noqa: PLR0917
    """Starts an execution of the inner loop; returns whether it jumped to the recorded iteration."""
    env, stops, alarms = cursor[0], cursor[1], cursor[8]
    loop = copies.of_variable[v]
    own, record = copies.notes[loop], copies.records[loop, residue]
    begin_inner(loop, env[v], env, totals, cache, copies)
    there = env[v] + record[AT] * alarms[v, STRIDE]
    if record[AT] == 0 or own[KNOWN] != 0 or there >= stops[v]:
        return False
    own[KNOWN] = may_jump(loop, residue, env[own[OUTER]], cache, copies)
    if own[KNOWN] < 1:
        if own[KNOWN] == 0:
            # A later record will not depend on as many lines from before.
            own[NEEDED] = max(own[NEEDED], record[FOUND_AT] + record[FOUND_AT] // 8)
            record[AT] = 0
            begin_inner(loop, env[v], env, totals, cache, copies)
        return False
    jump(loop, residue, env[own[OUTER]], totals, cache, copies)
    for k in range(blocks.notes.shape[0]):
        blocks.notes[k, VALID] = 0
    block = blocks.notes[blocks.of_variable[v]]
    env[v] = block[FIRST_SEEN] = there
    block[EXECUTIONS] += 1
    alarms[v, FRESH] = block[WAIT] = block[PATIENCE] = 0
    own[NEXT] = there + alarms[v, STRIDE] * BETWEEN
    return True


start = internal(_start)


def _note(v: int, residue: int, tables: Tables, cursor: Cursor, totals: Ints, cache: List, copies: Copies) -> None:  # noqa: PLR0917
    """Records the present iteration if the cache holds nothing from before the start."""
    env, loop = cursor[0], copies.of_variable[v]
    own, record, outer = copies.notes[loop], copies.records[loop, residue], env[copies.notes[loop, OUTER]]
    at = (env[v] - own[FIRST]) // cursor[8][v, STRIDE]
    fresh = record[AT] == 0 and own[KNOWN] == 0 and at >= own[NEEDED] and holds_only_new(cache, own[BEGUN])
    if fresh:
        own[KNOWN], record[OF_LINES], record[FOUND_AT] = -1, outer, at
        found = copies.first_lines[loop, residue]
        if not find_first_lines(v, own[FIRST], tables, cursor, totals, cache, copies.space, found):
            own[NEEDED] = NEVER  # too many accesses
            return
        n = look_up_all(loop, residue, outer, cache, copies)
        if not 0 <= n <= MOST_DIRTY:
            own[NEEDED] = at + at // 8
            return
        own[KNOWN] = 1
        for k in range(n + 1):
            copies.dirty[loop, residue, k] = copies.dirty[loop, -1, k]
    if own[KNOWN] == 1 and at > record[AT]:
        record_list(loop, residue, at, outer, totals, cache, copies)


note_copy = internal(_note)


def _set_alarm(v: int, cursor: Cursor, copies: Copies) -> None:
    """Sets the alarm to the next look at growth, a few iterations on or the last iteration: whichever comes first."""
    env, alarms, own = cursor[0], cursor[8], copies.notes[copies.of_variable[v]]
    step = alarms[v, STRIDE]
    last = env[v] + (cursor[1][v] - 1 - env[v]) // step * step
    if env[v] == last:
        alarms[v, ALARM] = NEVER
    elif own[KNOWN] == 0:
        alarms[v, ALARM] = min(own[NEXT], last, env[v] + step * BETWEEN)
    else:
        alarms[v, ALARM] = min(own[NEXT], last)


set_alarm = internal(_set_alarm)


def _at_copies(  # noqa: PLR0917
    v: int, tables: Tables, cursor: Cursor, totals: Ints, cache: List, blocks: Blocks, copies: Copies
) -> bool:
    """Jumps or records at the beginning of an iteration of v, a loop that begins with copies; returns whether growth
    may be looked for now.
    """
    env, control, alarms = cursor[0], cursor[7], cursor[8]
    own = copies.notes[copies.of_variable[v]]
    residue = env[own[OUTER]] // own[OUTER_STEP] % own[REPEATS]
    if alarms[v, FRESH]:
        if not start(v, residue, cursor, totals, cache, blocks, copies):
            return True
    elif own[FIRST] == NEVER:
        return True
    else:
        note_copy(v, residue, tables, cursor, totals, cache, copies)
        if env[v] == own[NEXT]:
            return True
    set_alarm(v, cursor, copies)
    control[STATUS] = RUNNING
    return False


at_copies = internal(_at_copies)


def _look_again(v: int, cursor: Cursor, copies: Copies) -> None:
    """Sets the next alarm of a loop that begins with copies; the alarm set before is the next look for growth."""
    copies.notes[copies.of_variable[v], NEXT] = cursor[8][v, ALARM]
    set_alarm(v, cursor, copies)


look_again = internal(_look_again)
