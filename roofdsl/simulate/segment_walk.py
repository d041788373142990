"""A fully associative LRU list of segments, walked by a kernel's own loops: the cost of a sweep of an innermost loop
does not depend on its length.

Imports numba. It counts the same as `lru_list.py`, for lines of one size. A sweep whose visits are not even, or that
comes to a line twice, is touched line by line.
"""

from __future__ import annotations

import numpy as np

from roofdsl.simulate.lru_list import ACCESSES, MISSES, STEPS, TOUCHES, WRITE_MISSES
from roofdsl.simulate.segment_counts import decide_all
from roofdsl.simulate.segment_pieces import (
    LENGTH,
    MEMBER,
    PIECE,
    RANGE_BEGIN,
    RANGE_END,
    RANGE_OF,
    SEGMENT_OF,
    WAY,
    Sweep,
    find,
)
from roofdsl.simulate.segment_visits import (
    ARRAY,
    BEGIN,
    EVERY,
    FOUND,
    LAST,
    LINE,
    LONGER,
    MOST_VISITORS,
    STEP,
    VISITS,
    WRITES,
    WRITES_FIRST,
    all_visitors,
    apart,
)
from roofdsl.simulate.segment_visits import VISITOR as VISITOR_COLUMNS
from roofdsl.simulate.segments import ENTERED, LISTED, NOW, TOO_SMALL, WORK, List, cut, push, tidy, touch_lines
from roofdsl.simulate.walk import (
    COUNT,
    FIRST,
    FOR_EVER,
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

MOST_PIECES = 1 << 12
STEP_COST = 10


def empty_sweep(widest: int) -> Sweep:
    """Work space for sweeps of up to that many references."""
    return Sweep(
        np.zeros((MOST_VISITORS, VISITOR_COLUMNS), dtype=np.int64),
        np.zeros((MOST_PIECES, PIECE), dtype=np.int64),
        np.zeros((MOST_PIECES, 3), dtype=np.int64),
        np.zeros((2, MOST_VISITORS), dtype=np.int64),
        np.zeros((4, widest), dtype=np.int64),
    )


def _take_out(sweep: Sweep, found: int, cache: List) -> None:
    """Removes the lines of all pieces from the list."""
    pieces, segments = sweep.pieces, cache.segments
    p = 0
    while p < found:
        # The pieces of one segment are adjacent. Later members come first, so that the numbers of others stay valid.
        g, end = pieces[p, SEGMENT_OF], p + 1
        while end < found and pieces[end, SEGMENT_OF] == g:
            end += 1
        for _ in range(end - p):
            latest = -1
            for q in range(p, end):
                if pieces[q, LENGTH] > 0 and (latest < 0 or pieces[q, MEMBER] > pieces[latest, MEMBER]):
                    latest = q
            one, more = pieces[latest, MEMBER], pieces[latest, LENGTH] - 1
            if pieces[latest, WAY] > 0:
                cut(segments, cache.notes, g, one, one + more)
            else:
                cut(segments, cache.notes, g, one - more, one)
            pieces[latest, LENGTH] = 0
        p = end


take_out = internal(_take_out)


def _put(sweep: Sweep, x: int, begin: int, end: int, dirty: int, iterations: int, count: int, cache: List) -> None:  # noqa: PLR0917
    """Puts the lines of visits `begin` to `end` - 1 of visitor x at the front of the list."""
    if begin >= end:
        return
    visitors, now = sweep.visitors, cache.notes[NOW]
    every = visitors[x, EVERY]
    first = visitors[x, BEGIN] + visitors[x, LONGER]
    last = first
    if every != FOR_EVER:
        last = first + every * (end - 1)
        first += every * begin
    dt = every * count if every != FOR_EVER else FOR_EVER
    # Reference r makes its access of iteration i at time now + i * count + r. A line has the time of its last access.
    time = now + first * count + visitors[x, LAST]
    cap = now + min(last, iterations - 1) * count + visitors[x, LAST]
    line = visitors[x, LINE] + visitors[x, STEP] * begin
    push(
        cache.segments,
        cache.notes,
        now,
        visitors[x, ARRAY],
        dirty,
        line,
        visitors[x, STEP],
        end - begin,
        time,
        dt,
        cap,
        count,
    )


put = internal(_put)


def _put_all(sweep: Sweep, n: int, ranges: int, iterations: int, count: int, cache: List) -> None:  # noqa: PLR0917
    """Puts the lines of all visitors at the front of the list; counts the misses of those that were not in it."""
    visitors, dirty = sweep.visitors, sweep.ranges
    for x in range(n):
        visits = visitors[x, VISITS]
        new = visits - visitors[x, FOUND]
        cache.tallies[visitors[x, ARRAY], MISSES] += new
        cache.tallies[visitors[x, ARRAY], WRITE_MISSES] += new * visitors[x, WRITES_FIRST]
        cache.notes[LISTED] += new
        cache.notes[ENTERED] += new
        if ranges == 0 or visitors[x, WRITES]:
            put(sweep, x, 0, visits, visitors[x, WRITES], iterations, count, cache)
            continue
        # Clean and dirty lines in turn.
        v = begun_dirty = 0
        while v < visits:
            begin = end = visits
            for k in range(ranges):
                if dirty[k, RANGE_OF] == x and v <= dirty[k, RANGE_BEGIN] < begin:
                    begin, end = dirty[k, RANGE_BEGIN], dirty[k, RANGE_END]
            if begin > v:
                put(sweep, x, begun_dirty, v, 1, iterations, count, cache)
                put(sweep, x, v, begin, 0, iterations, count, cache)
                begun_dirty = begin
            v = end
        put(sweep, x, begun_dirty, visits, 1, iterations, count, cache)
    cache.notes[NOW] += iterations * count
    tidy(cache.segments, cache.notes, cache.tallies)


put_all = internal(_put_all)


def _line_by_line(  # noqa: PLR0917
    tables: Tables, cursor: Cursor, lines: Ints, cache: List, first: int, count: int, iterations: int
) -> int:
    """Makes the accesses of a sweep one by one, only once while all references stay in their lines; returns the number
    made.
    """
    references, places = tables[4], tables[5]
    flat, stride = cursor[3], cursor[4]
    done = touches = 0
    while done < iterations and not cache.notes[TOO_SMALL]:
        same = iterations - done
        for r in range(count):
            array = references[first + r, 1]
            per, shift = places[array, 1], places[array, 2]
            lines[0, r] = places[array, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
            lines[1, r], lines[2, r] = array, references[first + r, 2]
            same = min(same, stays(flat[r], stride[r], per, shift))
        touch_lines(cache, lines, count)
        for r in range(count):
            flat[r] += stride[r] * same
        done += same
        touches += count
    return touches


line_by_line = internal(_line_by_line)


def _touch_next(tables: Tables, cursor: Cursor, totals: Ints, sweep: Sweep, cache: List) -> int:
    """Walks to the next references and makes their accesses; returns the number of visitors.

    The result is 0 if there are no references, and -1 if they were touched line by line.
    """
    control, notes = cursor[7], cache.notes
    steps = advance(tables, cursor)
    notes[WORK] += STEP_COST + steps
    totals[STEPS] += steps
    iterations = control[REMAINING]
    if iterations == 0:
        return 0
    first, count = control[FIRST], control[COUNT]
    control[REMAINING] = 0
    totals[ACCESSES] += iterations * count
    n = -1
    if iterations > 1:
        n = all_visitors(sweep.visitors, tables[4], tables[5], cursor[3], cursor[4], first, count, iterations)
        if n >= 0:
            n = apart(sweep.visitors, n, iterations)
    if n < 0:
        totals[TOUCHES] += line_by_line(tables, cursor, sweep.lines, cache, first, count, iterations)
        return -1
    totals[TOUCHES] += n
    notes[WORK] += n * STEP_COST
    found = find(sweep, n, cache)
    ranges = decide_all(sweep, n, found, cache)
    take_out(sweep, found, cache)
    put_all(sweep, n, ranges, iterations, count, cache)
    return int(n)


touch_next = internal(_touch_next)


def _run_segments(tables: Tables, cursor: Cursor, budget: int, totals: Ints, sweep: Sweep, cache: List) -> None:  # noqa: PLR0917
    """Continues for about `budget` units of work (WORK), or to a boundary."""
    control, notes = cursor[7], cache.notes
    until = notes[WORK] + budget
    while control[STATUS] == RUNNING and notes[WORK] < until and not notes[TOO_SMALL]:
        touch_next(tables, cursor, totals, sweep, cache)


run_segments = internal(_run_segments)
