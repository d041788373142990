"""Lines that a block does not find in the top of its list, for `segment_growth.py`: for how many blocks none of them is
in the rest of the list. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

from roofdsl.simulate.segment_pieces import Sweep
from roofdsl.simulate.segment_visits import gcd
from roofdsl.simulate.segments import BEGIN, COUNT, FRAME, HIGH, LINE, LINES, LOW, NO_FRAME, STEP, List
from roofdsl.simulate.walk import NEVER, Cursor, Ints, Tables, internal

# Columns of the lines that a block does not find in the top.
NEW_LINE, NEW_STEP, NEW_COUNT, NEW = range(4)


class Growth(NamedTuple):
    """Work space for a block in numbers (value, change), on a last axis of two.

    It has the tables of a simulation, and more. limit: the last block that goes like this one. start: the top before
    this block, newest segment first. new: lines not found in it. sizes: the lines of the top, and those that a block
    pushes out of it.
    """

    limit: Ints
    tables: Tables
    cursor: Cursor
    sweep: Sweep
    cache: List
    totals: Ints
    start: Ints
    new: Ints
    sizes: Ints


def _sum_of(value: int, change: int, n: int) -> int:
    """The sum of value + t change for t from 0 to n - 1."""
    return n * value + change * (n * (n - 1) // 2)


sum_of = internal(_sum_of)


def _first_in_place(ahead: int, move: int, every: int, begin: int) -> int:
    """The first b from `begin` on for which ahead + b move is a multiple of `every`; NEVER if there is none."""
    ahead, move = ahead % every, move % every
    common = gcd(move, every)
    if ahead % common:
        return NEVER
    every, move, ahead = every // common, move // common, ahead // common
    # The inverse of `move`, by Euclid's algorithm.
    a, b, x, y = move, every, 1, 0
    while b:
        q = a // b
        a, b, x, y = b, a - q * b, y, x - q * y
    return int(begin + (-ahead * x - begin) % every)


first_in_place = internal(_first_in_place)


def _bounds(line: Ints, step: int, count: Ints, b: int) -> tuple[int, int]:
    """The smallest and the largest line of a row of lines, b blocks later."""
    first = line[0] + line[1] * b
    last = first + step * (count[0] + count[1] * b - 1)
    return min(first, last), max(first, last)


bounds = internal(_bounds)


def _place_step(step: int, count: Ints, other_step: int, other_count: int) -> int:
    """Two rows of lines can meet only if their first lines differ by a multiple of this."""
    one = 0 if count[0] == 1 and count[1] == 0 else abs(step)
    return int(max(1, gcd(one, 0 if other_count == 1 else abs(other_step))))


place_step = internal(_place_step)


def _blocks_in_range(at: int, after: int, low: int, high: int, most: int) -> tuple[int, int]:
    """(first, last) of the blocks from 0 to `most` - 1 in which a number is in a range.

    The number is `at` in block 0, and `after` in block 1.
    """
    first, last, change = 0, most - 1, after - at
    if change > 0:
        first, last = max(first, -((at - low) // change)), min(last, (high - at) // change)
    elif change < 0:
        first, last = max(first, -((high - at) // -change)), min(last, (at - low) // -change)
    elif at < low or at > high:
        return 1, 0
    return first, last


blocks_in_range = internal(_blocks_in_range)


def _until_one_is_below(fresh: int, top: int, most: int, size: Ints, pushed: Ints, cache: List, growth: Growth) -> int:  # noqa: PLR0917
    """The number of blocks, at most `most`, none of whose new lines may still be held below the top, in the part of the
    list from before them. size, pushed: the lines of the top, and those that a block pushes out of it.
    """
    segments, notes = cache.segments, cache.notes
    for k in range(fresh):
        line, step, count = growth.new[k, NEW_LINE], growth.new[k, NEW_STEP, 0], growth.new[k, NEW_COUNT]
        low, high = bounds(line, step, count, 0)
        low_after, high_after = bounds(line, step, count, 1)
        passed = above = 0
        frame = NO_FRAME
        for o in range(top - 1, notes[BEGIN] - 1, -1):
            if segments[FRAME, o] != frame:
                frame, above = segments[FRAME, o], passed
                if size[0] + above >= notes[LINES]:
                    break
            passed += segments[COUNT, o]
            if segments[COUNT, o] == 0:
                continue
            first, last = blocks_in_range(low, low_after, -NEVER, segments[HIGH, o], most)
            begin, end = blocks_in_range(high, high_after, segments[LOW, o], NEVER, most)
            first, last = max(first, begin), min(last, end)
            if first > last:
                continue
            every = place_step(step, count, segments[STEP, o], segments[COUNT, o])
            b = first_in_place(line[0] - segments[LINE, o], line[1], every, first)
            if b <= last and size[0] + size[1] * b + sum_of(pushed[0], pushed[1], b) + above < notes[LINES]:
                most = b
    return int(most)


until_one_is_below = internal(_until_one_is_below)


def _stay_apart(k: int, o: int, most: int, growth: Growth) -> bool:
    """Whether new lines are always ahead of those that earlier blocks pushed out as segment o, or always behind."""
    new, segments = growth.new[k], growth.cache.segments
    step, other = new[NEW_STEP, 0], segments[STEP, o, 0]
    ahead = behind = True
    # In the block numbers, smallest lines are concave and largest ones convex, so the corners decide: b from 1 to most
    # - 1, the earlier block from 0 to b - 1.
    for end in range(2):
        b = 1 if end == 0 else most - 1
        low, high = bounds(new[NEW_LINE], step, new[NEW_COUNT], b)
        for earlier in range(2):
            its_low, its_high = bounds(segments[LINE, o], other, segments[COUNT, o], b - 1 if earlier == 0 else 0)
            ahead = ahead and low > its_high
            behind = behind and high < its_low
    return ahead or behind


stay_apart = internal(_stay_apart)


def _until_one_returns(fresh: int, oldest: int, most: int, size: Ints, pushed: Ints, lines: int, growth: Growth) -> int:  # noqa: PLR0917
    """The number of blocks, at most `most`, none of whose new lines may still be held among those that an earlier block
    pushed out of the top. A block pushes out the segments before column `oldest`.
    """
    segments = growth.cache.segments
    for k in range(fresh):
        line, step, count = growth.new[k, NEW_LINE], growth.new[k, NEW_STEP, 0], growth.new[k, NEW_COUNT]
        for o in range(1, oldest):
            if segments[COUNT, o, 0] == 0 or most < 2 or stay_apart(k, o, most, growth):
                continue
            its_count = segments[COUNT, o, 0] if segments[COUNT, o, 1] == 0 else 2
            every = place_step(step, count, segments[STEP, o, 0], its_count)
            # Block t may meet the lines that block t - u pushed out. These rows are (line[0] - LINE[0]) +
            # (line[1] - LINE[1]) t + LINE[1] u apart. If t drops out modulo `every`, the least u follows; if not, it
            # may be 1.
            u = 1
            if (line[1] - segments[LINE, o, 1]) % every == 0:
                u = first_in_place(line[0] - segments[LINE, o, 0], segments[LINE, o, 1], every, 1)
            if u < most:
                least = min(size[0], size[0] + size[1] * most)
                above = least + (u - 1) * min(pushed[0], pushed[0] + pushed[1] * most)
                if above < lines:
                    most = u
    return int(most)


until_one_returns = internal(_until_one_returns)
