"""Hits and misses of a sweep, piece by piece: by bounds first, and by distances if the bounds do not decide. Imports
numba.
"""

from __future__ import annotations

from roofdsl.simulate.lru_list import MISSES, STORED, WRITE_MISSES
from roofdsl.simulate.segment_hits import alike, since_touched
from roofdsl.simulate.segment_pieces import (
    ABOVE,
    LENGTH,
    MEMBER,
    NEWEST,
    RANGE_BEGIN,
    RANGE_END,
    RANGE_OF,
    SAME,
    SEGMENT_OF,
    VISIT,
    VISITOR,
    WAY,
    Sweep,
)
from roofdsl.simulate.segment_visits import ARRAY as OF_ARRAY
from roofdsl.simulate.segment_visits import BEGIN as BEGIN_VISITS
from roofdsl.simulate.segment_visits import (
    EVERY,
    VISITS,
    WRITES,
    WRITES_FIRST,
)
from roofdsl.simulate.segments import (
    COUNT,
    DIRTY,
    DT,
    FRAME,
    LINES,
    RATE,
    TIME,
    TOO_SMALL,
    WORK,
    List,
)
from roofdsl.simulate.walk import Ints, inlined, internal


def _count(sweep: Sweep, p: int, w: int, until: int, hit: bool, ranges: int, cache: List) -> int:  # noqa: PLR0917
    """Counts visits w to `until` - 1 of piece p; returns the number of recorded ranges. Hits on dirty lines are
    recorded unless the visitor writes, which makes its lines dirty anyway.
    """
    segments, notes, tallies = cache
    visitors, pieces = sweep.visitors, sweep.pieces
    x, g = pieces[p, VISITOR], pieces[p, SEGMENT_OF]
    if not hit:
        array = visitors[x, OF_ARRAY]
        tallies[array, MISSES] += until - w
        tallies[array, WRITE_MISSES] += (until - w) * visitors[x, WRITES_FIRST]
        tallies[array, STORED] += (until - w) * segments[DIRTY, g]
    elif segments[DIRTY, g] and not visitors[x, WRITES]:
        begin, end, last = pieces[p, VISIT] + w, pieces[p, VISIT] + until, ranges - 1
        if ranges and sweep.ranges[last, RANGE_OF] == x and sweep.ranges[last, RANGE_END] == begin:
            sweep.ranges[last, RANGE_END] = end
        elif ranges == sweep.ranges.shape[0]:
            notes[TOO_SMALL] = 1
        else:
            sweep.ranges[ranges, RANGE_OF] = x
            sweep.ranges[ranges, RANGE_BEGIN], sweep.ranges[ranges, RANGE_END] = begin, end
            ranges += 1
    return ranges


count_visits = inlined(_count)


def _least(sweep: Sweep, segments: Ints, p: int, found: int) -> int:
    """A lower bound of the distances of piece p, without a division.

    It counts the lines of newer frames and, of pieces of its own frame that keep pace with this one without a gap, all
    lines but three.
    """
    visitors, pieces = sweep.visitors, sweep.pieces
    x, g = pieces[p, VISITOR], pieces[p, SEGMENT_OF]
    least, rate, frame = pieces[p, ABOVE], segments[RATE, g], segments[FRAME, g]
    if pieces[p, WAY] < 0 or segments[DT, g] != rate * visitors[x, EVERY]:
        return int(least)
    # A line that is visited in iteration k was touched at time `rate * k + lag`.
    first = visitors[x, BEGIN_VISITS] + visitors[x, EVERY] * pieces[p, VISIT]
    lag = segments[TIME, g] + segments[DT, g] * pieces[p, MEMBER] - rate * first
    for q in range(pieces[p, SAME], found):
        h, y = pieces[q, SEGMENT_OF], pieces[q, VISITOR]
        if segments[FRAME, h] != frame:
            break
        every = visitors[y, EVERY]
        if pieces[q, WAY] > 0 and pieces[q, LENGTH] > 3 and segments[DT, h] == rate * every:
            other = visitors[y, BEGIN_VISITS] + every * pieces[q, VISIT]
            later_by = lag - (segments[TIME, h] + segments[DT, h] * pieces[q, MEMBER] - rate * other)
            # Neither touched by the sweep yet nor later than this line: lines of iterations from k to k + later_by /
            # rate, if any; in addition, the first line if iteration 0 is in the middle of its stay, and a last one that
            # a loop left early.
            if later_by < segments[DT, h]:
                least += pieces[q, LENGTH] - 3
    return int(least)


least_distance = inlined(_least)


def _decide(sweep: Sweep, n: int, p: int, found: int, ranges: int, cache: List) -> int:  # noqa: PLR0917
    """Counts the hits and misses of a piece, several visits at a time if one decides them; returns the number of
    ranges.
    """
    length, lines = sweep.pieces[p, LENGTH], cache.notes[LINES]
    w = 0
    while w < length:
        cache.notes[WORK] += 10
        distance = since_touched(sweep, n, cache.segments, p, found, w)
        until = w + alike(sweep, n, cache.segments, p, found, w, distance, lines)
        ranges = count_visits(sweep, p, w, until, distance < lines, ranges, cache)
        w = until
    return ranges


decide = internal(_decide)


def _decide_all(sweep: Sweep, n: int, found: int, cache: List) -> int:
    """Counts the hits and misses of all pieces, and records ranges of dirty lines; returns the number of ranges."""
    segments, visitors, pieces = cache.segments, sweep.visitors, sweep.pieces
    new = 0  # lines that are in no piece of the frames so far
    for x in range(n):
        new += visitors[x, VISITS]
    ranges = most = 0
    lines = cache.notes[LINES]
    for p in range(found):
        # The most lines that a distance in this frame may have: newer frames, the whole frame, and what the sweep
        # touches in neither.
        if pieces[p, SAME] == p:
            frame = segments[FRAME, pieces[p, SEGMENT_OF]]
            h, q, most = pieces[p, NEWEST], p, pieces[p, ABOVE]
            while segments[FRAME, h] == frame:
                most += segments[COUNT, h]
                h -= 1
            while q < found and pieces[q, SAME] == p:
                new -= pieces[q, LENGTH]
                q += 1
            most += new
        if most <= lines:  # with the line itself
            ranges = count_visits(sweep, p, 0, pieces[p, LENGTH], True, ranges, cache)
        elif least_distance(sweep, segments, p, found) >= lines:
            ranges = count_visits(sweep, p, 0, pieces[p, LENGTH], False, ranges, cache)
        else:
            ranges = decide(sweep, n, p, found, ranges, cache)
    return ranges


decide_all = internal(_decide_all)
