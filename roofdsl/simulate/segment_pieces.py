"""Which visits of a sweep come to which lines of the list. Imports numba.

If the visits of a visitor come to the members of a segment one after the other, they form a piece. A list may have
hundreds of segments, and most are columns of a matrix in each other's range. So segments are searched in blocks, and
most blocks are passed over after a test that a processor makes for several segments at once.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy import uint64

from roofdsl.simulate.segment_visits import (
    FOUND,
    INVERSE,
    SEARCHING,
    STEP,
    VISITS,
    gcd,
)
from roofdsl.simulate.segment_visits import HIGH as LAST_LINE
from roofdsl.simulate.segment_visits import LINE as FIRST_LINE
from roofdsl.simulate.segment_visits import LOW as LEAST_LINE
from roofdsl.simulate.segments import (
    BEGIN,
    COUNT,
    END,
    FRAME,
    HIGH,
    LINE,
    LOW,
    TOO_SMALL,
    WORK,
    List,
)
from roofdsl.simulate.segments import STEP as MEMBER_STEP
from roofdsl.simulate.walk import Ints, inlined, internal

# Columns of a piece: visits VISIT + w of VISITOR come to the members MEMBER + w WAY of SEGMENT_OF, w from 0 to LENGTH -
# 1. ABOVE: the lines of newer frames; NEWEST: the first segment of its frame in the list; SAME: the first piece of its
# frame.
VISITOR, VISIT, MEMBER, WAY, LENGTH, SEGMENT_OF, ABOVE, NEWEST, SAME = range(9)
PIECE = 16  # columns
# Columns of a range of visits that found a dirty line in the cache.
RANGE_OF, RANGE_BEGIN, RANGE_END = range(3)
BLOCK = 16  # segments that are searched together


class Sweep(NamedTuple):
    """Work space for one sweep: visitors, pieces, ranges, the visits of each visitor that have begun, and lines that
    are touched one by one.
    """

    visitors: Ints
    pieces: Ints
    ranges: Ints
    started: Ints
    lines: Ints


def _add_piece(sweep: Sweep, n: int, x: int, v: int, i: int, way: int, length: int, g: int) -> int:  # noqa: PLR0917
    pieces = sweep.pieces
    if n < pieces.shape[0]:
        pieces[n, VISITOR], pieces[n, VISIT], pieces[n, MEMBER], pieces[n, WAY] = x, v, i, way
        pieces[n, LENGTH], pieces[n, SEGMENT_OF] = length, g
        sweep.visitors[x, FOUND] += length
    return n + 1


add_piece = inlined(_add_piece)


def _meet(sweep: Sweep, segments: Ints, n: int, x: int, g: int) -> int:
    """Adds the pieces in which visitor x comes to segment g; returns the new number of pieces."""
    visitors = sweep.visitors
    step, visits = visitors[x, STEP], visitors[x, VISITS]
    own, count = segments[MEMBER_STEP, g], segments[COUNT, g]
    ahead = visitors[x, FIRST_LINE] - segments[LINE, g]
    if visits == 1:
        i = ahead // own
        return int(add_piece(sweep, n, x, 0, i, 1, 1, g)) if i * own == ahead and 0 <= i < count else n
    if count == 1:
        v = -ahead // step
        return int(add_piece(sweep, n, x, v, 0, 1, 1, g)) if v * step == -ahead and 0 <= v < visits else n
    if step == own:
        d = ahead // own
        first, end = max(0, -d), min(visits, count - d)
        if d * own != ahead or first >= end:
            return n
        return int(add_piece(sweep, n, x, first, first + d, 1, end - first, g))
    if step == -own:
        d = ahead // own
        first, end = max(0, d - count + 1), min(visits, d + 1)
        if d * own != ahead or first >= end:
            return n
        return int(add_piece(sweep, n, x, first, d - first, -1, end - first, g))
    # The steps differ in length: the visitor meets single lines of the segment.
    common = gcd(abs(step), abs(own))
    if ahead % common:
        return n
    every = abs(own) // common  # the visits from one meeting to the next
    low, high = segments[LOW, g], segments[HIGH, g]
    nearest = low if step > 0 else high
    farthest = high if step > 0 else low
    v = max(0, -((visitors[x, FIRST_LINE] - nearest) // step))
    end = min(visits - 1, (farthest - visitors[x, FIRST_LINE]) // step)
    while v <= end and (ahead + v * step) % own:
        v += 1
    while v <= end:
        n = add_piece(sweep, n, x, v, (ahead + v * step) // own, 1, 1, g)
        v += every
    return n


meet = inlined(_meet)


def _inverse(step: int) -> int:
    """The inverse of a step without its factors of two, modulo 2**64: a product with it is a division by that number if
    the division has no remainder, and a large number if not.
    """
    if step in (1, -1):
        return step
    odd = step // (step & -step)
    found = odd  # correct in three bits; each round doubles them
    for _ in range(5):
        found *= 2 - odd * found
    return int(found)


inverse = inlined(_inverse)


def _may_be_multiple(number: int, step: int, inverse_step: int) -> bool:
    """False only if a number is no multiple of a step: a test that the compiler can make for many numbers at once."""
    return (number & ((step & -step) - 1) == 0) & (abs(number * inverse_step) <= abs(number))


may_be_multiple = inlined(_may_be_multiple)


def _may_meet(visitors: Ints, x: int, segments: Ints, begin: int, end: int) -> bool:
    """Whether a visitor may come to a line of some of these segments."""
    low, high, line = visitors[x, LEAST_LINE], visitors[x, LAST_LINE], visitors[x, FIRST_LINE]
    step, inverse_step = visitors[x, STEP], visitors[x, INVERSE]
    some = 0
    for signed in range(begin, end):
        g = uint64(signed)  # the compiler need not expect negative subscripts, and takes neighbors at once
        # Columns of a matrix are in each other's range, but have different lines.
        own = segments[MEMBER_STEP, g]
        other = (own != step) & (own != -step) & (segments[COUNT, g] != 1)
        place = other | may_be_multiple(segments[LINE, g] - line, step, inverse_step)
        some |= (segments[LOW, g] <= high) & (segments[HIGH, g] >= low) & place
    return bool(some)


may_meet = inlined(_may_meet)


def _find(sweep: Sweep, n: int, cache: List) -> int:
    """Finds the pieces of a sweep with n visitors, those in newer frames first; returns their number."""
    segments, visitors, pieces, notes = cache.segments, sweep.visitors, sweep.pieces, cache.notes
    left = 0
    for x in range(n):
        left += visitors[x, VISITS]
        visitors[x, INVERSE] = inverse(visitors[x, STEP])
    begin, end, found, passed, above, frame, newest, same = notes[BEGIN], notes[END], 0, 0, 0, -1, 0, 0
    while end > begin and left > 0:
        # Most visitors find all of their lines in the newest segments; only few have to go through all of the list.
        first, searching = max(begin, end - BLOCK), 0
        for x in range(n):
            if visitors[x, FOUND] < visitors[x, VISITS] and may_meet(visitors, x, segments, first, end):
                visitors[searching, SEARCHING] = x
                searching += 1
        if searching == 0:
            for g in range(first, end):
                passed += segments[COUNT, g]
            end = first
            continue
        for g in range(end - 1, first - 1, -1):
            if segments[FRAME, g] != frame:
                frame, above, newest, same = segments[FRAME, g], passed, g, found
                # The newer segments of this frame may have been passed over.
                while newest + 1 < notes[END] and segments[FRAME, newest + 1] == frame:
                    newest += 1
                    above -= segments[COUNT, newest]
            passed += segments[COUNT, g]
            for k in range(searching):
                x = visitors[k, SEARCHING]
                if (
                    visitors[x, LEAST_LINE] <= segments[HIGH, g]
                    and segments[LOW, g] <= visitors[x, LAST_LINE]
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
        end = first
    notes[WORK] += (1 + n) * (notes[END] - end) // 8
    return found


find = internal(_find)
