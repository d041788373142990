"""The best replacement, compiled: traces, next uses, one cache size at a time, and all sizes at once. Imports numba.

A trace is one number for each access: the line, and in the lowest bit whether it is written. `next_use` is the place in
the trace of the next access to the same line, or `NEVER`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roofdsl.simulate.stack import ACCESSES, READS, STORES, WRITES
from roofdsl.simulate.stack import NEVER as NOT_WRITTEN
from roofdsl.simulate.walk import (
    COUNT,
    FIRST,
    MOST_STEPS,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    compiled,
    inlined,
)

NEVER = (1 << 31) - 1
HELD, DIRTY = 1, 2  # of the state of a line
MISSES, BEGUN_BY_WRITE, STORED, TALLIES = range(4)
BITS = 5  # a word of the set of next uses has 2**BITS bits
WORD = 1 << BITS

# The tables have elements of 8 to 64 bits, and numba compiles for the types that it gets.
Table = Any


def _write_trace(tables: Tables, cursor: Cursor, trace: Table, sizes: Ints) -> tuple[int, int]:
    """Write the next accesses into `trace`, at most as many as it holds; returns their number and bytes.

    sizes: the bytes of an element of each array.
    """
    references, places = tables[4], tables[5]
    flat, stride, control = cursor[3], cursor[4], cursor[7]
    room = trace.shape[0]
    made = volume = steps = 0
    while steps < MOST_STEPS and control[STATUS] == RUNNING:
        if control[REMAINING] == 0:
            steps += advance(tables, cursor)
            if control[REMAINING] == 0:
                continue
        first, count = control[FIRST], control[COUNT]
        n = min(control[REMAINING], (room - made) // count)
        if n == 0:
            break
        for r in range(count):
            volume += sizes[references[first + r, 1]] * n
        for _ in range(n):
            for r in range(count):
                array = references[first + r, 1]
                per, shift = places[array, 1], places[array, 2]
                line = places[array, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
                trace[made] = line << 1 | references[first + r, 2]
                flat[r] += stride[r]
                made += 1
        control[REMAINING] -= n
    return made, volume


write_trace = compiled(_write_trace)


def _sort_by_set(trace: Table, sets: int, starts: Ints, out: Table) -> None:
    """Copy `trace` to `out`, one set after the other, each in its order; `starts` gets where each begins, and the end.

    starts: sets + 2 numbers, 0 before the call.
    """
    for t in range(trace.shape[0]):
        starts[(trace[t] >> 1) % sets + 2] += 1
    for s in range(2, sets + 2):
        starts[s] += starts[s - 1]
    for t in range(trace.shape[0]):
        s = (trace[t] >> 1) % sets + 1
        out[starts[s]] = trace[t]
        starts[s] += 1


sort_by_set = compiled(_sort_by_set)


def _find_next_uses(trace: Table, last: Table, next_use: Table) -> None:
    """Fill `next_use`; `last` is NEVER for each line before the call."""
    for t in range(trace.shape[0] - 1, -1, -1):
        line = trace[t] >> 1
        next_use[t] = last[line]
        last[line] = t


find_next_uses = compiled(_find_next_uses)


# ---- a set of times, of which the latest is needed: words of bits, with words above them that say which are not 0 ----


def _add_time(words: Table, levels: Ints, time: int) -> None:
    at = time
    for k in range(levels.shape[0]):
        place = levels[k] + (at >> BITS)
        before = words[place]
        words[place] = before | 1 << (at & (WORD - 1))
        if before:
            return
        at >>= BITS


add_time = inlined(_add_time)


def _remove_time(words: Table, levels: Ints, time: int) -> None:
    at = time
    for k in range(levels.shape[0]):
        place = levels[k] + (at >> BITS)
        words[place] = words[place] & ~(1 << (at & (WORD - 1)))
        if words[place]:
            return
        at >>= BITS


remove_time = inlined(_remove_time)


def _latest_time(words: Table, levels: Ints) -> int:
    """The latest time of a set that is not empty."""
    at = 0
    for k in range(levels.shape[0] - 1, -1, -1):
        rest = int(words[levels[k] + at])
        bit = 0
        if rest >> 16:
            rest >>= 16
            bit += 16
        if rest >> 8:
            rest >>= 8
            bit += 8
        if rest >> 4:
            rest >>= 4
            bit += 4
        if rest >> 2:
            rest >>= 2
            bit += 2
        bit += rest >> 1
        at = (at << BITS) + bit
    return at


latest_time = inlined(_latest_time)


def _run_set(  # noqa: PLR0917
    trace: Table,
    next_use: Table,
    first: int,
    start: int,
    end: int,
    ways: int,
    bypass: int,
    state: Table,
    dead: Table,
    held: Ints,
    words: Table,
    levels: Ints,
    tallies: Ints,
) -> None:
    """Continue with the accesses from `start` to `end` of a set whose accesses begin at `first`, in `ways` lines.

    state: the state of each line. words, levels: the next uses of the lines that are held, counted from `first`. dead:
    the lines that are held and never used again, in the order of their last use; the last of them leaves first. held:
    the number of these, and of all lines that are held.
    """
    for t in range(start, end):
        line, write, later = trace[t] >> 1, trace[t] & 1, next_use[t]
        if state[line]:
            remove_time(words, levels, t - first)
        else:
            tallies[MISSES] += 1
            tallies[BEGUN_BY_WRITE] += write
            if held[1] < ways:
                held[1] += 1
            else:
                victim = line
                if held[0]:
                    held[0] -= 1
                    victim = dead[held[0]]
                elif not bypass or later != NEVER:
                    latest = latest_time(words, levels)
                    if not bypass or latest + first > later:
                        victim = trace[latest + first] >> 1
                        remove_time(words, levels, latest)
                if victim == line:  # it bypasses the cache
                    tallies[STORED] += write
                    continue
                tallies[STORED] += state[victim] >> 1
                state[victim] = 0
        state[line] = state[line] | HELD | write << 1
        if later == NEVER:
            dead[held[0]] = line
            held[0] += 1
        else:
            add_time(words, levels, later - first)


run_set = compiled(_run_set)


# ---- all sizes at once: the stack of Mattson and others (1970) ----


def _first_above(tree: Ints, size: int, place: int, value: int) -> int:
    """The first place from `place` on whose number is greater than `value`, or `size`; `tree` holds maxima."""
    node = size + place
    while tree[node] <= value:
        while node & 1:
            node >>= 1
        if node == 0:
            return size
        node += 1
    while node < size:
        node *= 2
        if tree[node] <= value:
            node += 1
    return node - size


first_above = compiled(_first_above)


def _put(tree: Ints, size: int, place: int, value: int) -> None:
    node = size + place
    tree[node] = value
    node >>= 1
    while node:
        most = max(tree[2 * node], tree[2 * node + 1])
        if tree[node] == most:
            return
        tree[node] = most
        node >>= 1


put = compiled(_put)


def _run_stack(  # noqa: PLR0917
    trace: Table,
    next_use: Table,
    start: int,
    end: int,
    bypass: int,
    tree: Ints,
    stack: Ints,
    place_of: Ints,
    written: Ints,
    held: int,
    histogram: Ints,
) -> int:
    """The distances of the accesses from `start` to `end` of one set; returns the number of lines on the stack.

    stack, place_of: the line at each place from 1 on, and the place of each line (0: not touched yet). tree: when the
    line at each place is used next; lines that are never used again come after all others, the one that was used last
    as the latest: it moves down past all others at once, where the reverse order would move each of them. The caches of
    all sizes keep the lines with the earliest next uses of those they had and the accessed one, which without bypass is
    always kept; with it, the accessed line is the last to leave of those that are never used again. So a cache of k
    lines holds the first k lines of the stack: an access puts its line on top, and then, size by size, the line with
    the latest next use moves further down. histogram, written: as in `stack.run_distances`.
    """
    infinite, size = histogram.shape[0] - 1, tree.shape[0] // 2
    for t in range(start, end):
        line, write = trace[t] >> 1, trace[t] & 1
        later = int(next_use[t])
        if later == NEVER:
            later = NEVER + t
        old = place_of[line]
        distance = old if old else infinite
        if not old:
            held += 1
            old = held
        carried, due, place = line, min(later, NEVER), 1
        if not bypass and old > 1:
            carried, due = stack[1], tree[size + 1]
            stack[1] = line
            place_of[line] = 1
            put(tree, size, 1, later)
            place = 2
        # The line on its way down takes the first place whose line is used later than it. That line goes on down
        # instead.
        while place < old:
            place = first_above(tree, size, place, due)
            if place >= old:
                break
            swapped, swapped_due = stack[place], tree[size + place]
            stack[place] = carried
            place_of[carried] = place
            put(tree, size, place, later if carried == line else due)
            carried, due = swapped, swapped_due
            place += 1
        stack[old] = carried
        place_of[carried] = old
        put(tree, size, old, later if carried == line else due)

        histogram[distance, ACCESSES] += 1
        if write:
            histogram[distance, WRITES] += 1
            since = written[line]
            histogram[infinite if since == NOT_WRITTEN else max(since, distance), STORES] += 1
            written[line] = 0
        else:
            histogram[distance, READS] += 1
            if written[line] != NOT_WRITTEN:
                written[line] = max(written[line], distance)
    return held


run_stack = compiled(_run_stack)


def levels_of(times: int) -> tuple[Ints, int]:
    """Where each level of words for this many times begins, and the number of words."""
    starts, total = [], 0
    while True:
        starts.append(total)
        times = -(-times // WORD)
        total += max(times, 1)
        if times <= 1:
            return np.array(starts, dtype=np.int64), total
