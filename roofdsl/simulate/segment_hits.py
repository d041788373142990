"""Which visits of a sweep hit: how many lines were touched since each line's last touch. Imports numba.

Where the visits of a visitor come to the members of a segment one after the other, they are a piece. Of a visit of a
piece, the lines touched since are those of newer frames, those of its own frame that are later, and those that the
sweep itself has touched, each once. All of these are counts of equal steps, so the distance of one visit costs a few
divisions. From one visit to a later one, the distance grows by no more than the sweep touches in between, and shrinks
by no more than the frame has members in between: so one distance decides many visits, and every visit is decided.
"""

from __future__ import annotations

from typing import NamedTuple

from roofdsl.simulate.lru_list import MISSES, STORED, WRITE_MISSES
from roofdsl.simulate.segment_visits import (
    BEGIN,
    EVERY,
    FIRST,
    FOUND,
    STEP,
    VISITS,
    WRITES,
    WRITES_FIRST,
    begun,
    gcd,
)
from roofdsl.simulate.segment_visits import ARRAY as OF_ARRAY
from roofdsl.simulate.segment_visits import HIGH as LAST_LINE
from roofdsl.simulate.segment_visits import LINE as FIRST_LINE
from roofdsl.simulate.segment_visits import LOW as LEAST_LINE
from roofdsl.simulate.segments import (
    ARRAY,
    CAP,
    COUNT,
    DIRTY,
    DT,
    FRAME,
    HIGH,
    LINE,
    LINES,
    LOW,
    OLDER,
    TIME,
    TOO_SMALL,
    WORK,
    List,
    later,
)
from roofdsl.simulate.segments import STEP as MEMBER_STEP
from roofdsl.simulate.walk import Ints, compiled

# Columns of a piece: visits VISIT + w of VISITOR come to the members MEMBER + w WAY of SEGMENT_OF, w from 0 to LENGTH -
# 1. ABOVE: the lines of newer frames; NEWEST: the first segment of its frame in the list; SAME: the first piece of its
# frame.
VISITOR, VISIT, MEMBER, WAY, LENGTH, SEGMENT_OF, ABOVE, NEWEST, SAME = range(9)
PIECE = 9  # columns
# Columns of a range of visits that found a dirty line in the cache.
RANGE_OF, RANGE_BEGIN, RANGE_END = range(3)
FRACTION = 16  # bits of a rate


class Sweep(NamedTuple):
    """Work space for one sweep: visitors, pieces, ranges, and for each visitor the visits that have begun."""

    visitors: Ints
    pieces: Ints
    ranges: Ints
    started: Ints


def _add_piece(sweep: Sweep, n: int, x: int, v: int, i: int, way: int, length: int, g: int) -> int:  # noqa: PLR0917
    pieces = sweep.pieces
    if n < pieces.shape[0]:
        pieces[n, VISITOR], pieces[n, VISIT], pieces[n, MEMBER], pieces[n, WAY] = x, v, i, way
        pieces[n, LENGTH], pieces[n, SEGMENT_OF] = length, g
        sweep.visitors[x, FOUND] += length
    return n + 1


add_piece = compiled(_add_piece)


def _meet(sweep: Sweep, segments: Ints, n: int, x: int, g: int) -> int:
    """Add the pieces in which visitor x comes to segment g; returns how many pieces there are then."""
    visitors = sweep.visitors
    step, visits = visitors[x, STEP], visitors[x, VISITS]
    own, count = segments[g, MEMBER_STEP], segments[g, COUNT]
    ahead = visitors[x, FIRST_LINE] - segments[g, LINE]
    if visits == 1:
        i = ahead // own
        return add_piece(sweep, n, x, 0, i, 1, 1, g) if i * own == ahead and 0 <= i < count else n
    if count == 1:
        v = -ahead // step
        return add_piece(sweep, n, x, v, 0, 1, 1, g) if v * step == -ahead and 0 <= v < visits else n
    if step == own:
        d = ahead // own
        first, end = max(0, -d), min(visits, count - d)
        if d * own != ahead or first >= end:
            return n
        return add_piece(sweep, n, x, first, first + d, 1, end - first, g)
    if step == -own:
        d = ahead // own
        first, end = max(0, d - count + 1), min(visits, d + 1)
        if d * own != ahead or first >= end:
            return n
        return add_piece(sweep, n, x, first, d - first, -1, end - first, g)
    # Steps of different length: single lines.
    common = gcd(abs(step), abs(own))
    if ahead % common:
        return n
    every = abs(own) // common  # every that many visits at most
    low, high = segments[g, LOW], segments[g, HIGH]
    nearest, farthest = (low, high) if step > 0 else (high, low)
    v = max(0, -((visitors[x, FIRST_LINE] - nearest) // step))
    end = min(visits - 1, (farthest - visitors[x, FIRST_LINE]) // step)
    while v <= end and (ahead + v * step) % own:
        v += 1
    while v <= end:
        n = add_piece(sweep, n, x, v, (ahead + v * step) // own, 1, 1, g)
        v += every
    return n


meet = compiled(_meet)


def _find(sweep: Sweep, n: int, cache: List) -> int:
    """The pieces of a sweep with n visitors, those in newer frames first; returns how many there are."""
    segments, visitors, pieces, notes = cache.segments, sweep.visitors, sweep.pieces, cache.notes
    left = 0
    for x in range(n):
        left += visitors[x, VISITS]
    g, found, passed, above, frame, newest, same, seen = segments[0, OLDER], 0, 0, 0, -1, 0, 0, 0
    while g != 0 and left > 0:
        seen += 1
        if segments[g, FRAME] != frame:
            frame, above, newest, same = segments[g, FRAME], passed, g, found
        low, high, array = segments[g, LOW], segments[g, HIGH], segments[g, ARRAY]
        for x in range(n):
            if (
                visitors[x, LEAST_LINE] <= high
                and low <= visitors[x, LAST_LINE]
                and visitors[x, OF_ARRAY] == array
                and visitors[x, FOUND] < visitors[x, VISITS]
            ):
                before = found
                found = meet(sweep, segments, found, x, g)
                if found > pieces.shape[0]:
                    notes[TOO_SMALL] = 1
                    return 0
                for p in range(before, found):
                    pieces[p, ABOVE], pieces[p, NEWEST], pieces[p, SAME] = above, newest, same
                    left -= pieces[p, LENGTH]
        passed += segments[g, COUNT]
        g = segments[g, OLDER]
    notes[WORK] += seen
    return found


find = compiled(_find)


def _since(sweep: Sweep, n: int, segments: Ints, p: int, found: int, w: int) -> int:
    """How many other lines were touched between the last touch of a line and visit w of piece p."""
    visitors, pieces, started = sweep.visitors, sweep.pieces, sweep.started
    x, g = pieces[p, VISITOR], pieces[p, SEGMENT_OF]
    r = visitors[x, FIRST]
    iteration = max(0, visitors[x, BEGIN] + visitors[x, EVERY] * (pieces[p, VISIT] + w))
    time = min(segments[g, TIME] + segments[g, DT] * (pieces[p, MEMBER] + pieces[p, WAY] * w), segments[g, CAP])
    since = pieces[p, ABOVE]
    h, frame = pieces[p, NEWEST], segments[g, FRAME]
    while segments[h, FRAME] == frame:
        since += later(segments, h, time)
        h = segments[h, OLDER]
    for y in range(n):
        started[y] = begun(visitors, y, iteration, r)
        since += started[y]
    # Those that the sweep has touched again are counted once.
    for q in range(pieces[p, SAME]):
        again = started[pieces[q, VISITOR]] - pieces[q, VISIT]
        if again > 0:
            since -= min(again, pieces[q, LENGTH])
    for q in range(pieces[p, SAME], found):
        h = pieces[q, SEGMENT_OF]
        if segments[h, FRAME] != frame:
            break
        again = min(started[pieces[q, VISITOR]] - pieces[q, VISIT], pieces[q, LENGTH])
        if again <= 0:
            continue
        first = segments[h, COUNT] - later(segments, h, time)  # its first member that is later
        if pieces[q, WAY] > 0:
            since -= max(0, again - max(0, first - pieces[q, MEMBER]))
        else:
            since -= max(0, min(again, pieces[q, MEMBER] - first + 1))
    return int(since)


since_touched = compiled(_since)


def _rates(sweep: Sweep, n: int, segments: Ints, p: int) -> tuple[int, int, int, int]:
    """(lines that the sweep touches for each visit of a piece, and beside that; members of its frame in between,
    likewise): upper bounds, the first and the third in units of 1 / 2**FRACTION.
    """
    visitors, pieces = sweep.visitors, sweep.pieces
    every = visitors[pieces[p, VISITOR], EVERY] << FRACTION
    touched = 0
    for y in range(n):
        touched += every // visitors[y, EVERY] + 1
    g = pieces[p, SEGMENT_OF]
    dt, frame = segments[g, DT] << FRACTION, segments[g, FRAME]
    members, parts, h = 0, 0, pieces[p, NEWEST]
    while segments[h, FRAME] == frame:
        members += dt // segments[h, DT] + 1
        parts += 1
        h = segments[h, OLDER]
    return touched, n, members, parts


rates = compiled(_rates)


def _decide(sweep: Sweep, n: int, p: int, found: int, ranges: int, cache: List) -> int:  # noqa: PLR0917
    """Count the hits and misses of a piece, and note its ranges of dirty lines; returns how many ranges there are."""
    segments, notes, tallies = cache
    visitors, pieces = sweep.visitors, sweep.pieces
    x, g, length = pieces[p, VISITOR], pieces[p, SEGMENT_OF], pieces[p, LENGTH]
    touched = touched_beside = members = members_beside = 0
    if length > 1:
        touched, touched_beside, members, members_beside = rates(sweep, n, segments, p)
    w = 0
    while w < length:
        notes[WORK] += 1
        distance = since_touched(sweep, n, segments, p, found, w)
        hit = distance < notes[LINES]
        until = length
        if w + 1 < length and (hit or pieces[p, WAY] > 0):
            # The next visits are alike while the distance cannot have reached the size of the cache.
            if pieces[p, WAY] < 0:
                change, gap = touched + members, notes[LINES] - distance - 1 - touched_beside - members_beside
            elif hit:
                change, gap = touched, notes[LINES] - distance - 1 - touched_beside
            else:
                change, gap = members, distance - notes[LINES] - members_beside
            until = min(length, w + 1 + ((gap << FRACTION) // change if gap > 0 else 0))
        if not hit:
            array = visitors[x, OF_ARRAY]
            tallies[array, MISSES] += until - w
            tallies[array, WRITE_MISSES] += (until - w) * visitors[x, WRITES_FIRST]
            tallies[array, STORED] += (until - w) * segments[g, DIRTY]
        elif segments[g, DIRTY] and not visitors[x, WRITES]:
            begin, end, last = pieces[p, VISIT] + w, pieces[p, VISIT] + until, ranges - 1
            if ranges and sweep.ranges[last, RANGE_OF] == x and sweep.ranges[last, RANGE_END] == begin:
                sweep.ranges[last, RANGE_END] = end
            elif ranges == sweep.ranges.shape[0]:
                notes[TOO_SMALL] = 1
            else:
                sweep.ranges[ranges, RANGE_OF] = x
                sweep.ranges[ranges, RANGE_BEGIN], sweep.ranges[ranges, RANGE_END] = begin, end
                ranges += 1
        w = until
    return ranges


decide = compiled(_decide)
