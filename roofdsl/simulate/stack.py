"""Stack distances of a kernel's accesses, compiled and walked by its own loops, which data may choose. Imports numba.

The stack consists of all lines touched so far, the latest on top. The distance of an access is the size of the stack
from its top down to the line: an LRU cache of that size hits. A Fenwick tree holds each line at the time of its last
access (Olken, "Efficient methods for calculating the success function of fixed space replacement policies", LBL-12370,
1981). When the times are used up, the lines get new ones in the same order.

A residency is written back once, which is charged to its first write. A write is the first one of its residency in all
caches that missed the line at some access since the last write, this one included: those smaller than the largest
distance among these accesses. Stores are counted under that distance.

In a cache with sets, each set has its own stack (Hill and Smith, "Evaluating associativity in CPU caches", IEEE
Transactions on Computers 38(12), 1989), and distances count ways: one pass serves all associativities.
"""

from __future__ import annotations

from roofdsl.simulate.walk import (
    COUNT,
    FIRST,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    compiled,
    inlined,
    stays,
)

NOW, HELD = range(2)  # of a set's clock: the last time used, and the size of its whole stack
ACCESSES, READS, WRITES, STORES = range(4)  # columns of the histogram
NEVER = -1  # written, of a line


def _sum_to(tree: Ints, time: int) -> int:
    total = 0
    while time > 0:
        total += tree[time]
        time &= time - 1
    return total


sum_to = inlined(_sum_to)


def _change(tree: Ints, time: int, amount: int) -> None:
    while time < tree.shape[0]:
        tree[time] += amount
        time += time & -time


change = inlined(_change)


def _give_new_times(tree: Ints, at: Ints, last: Ints, weights: Ints, owner: Ints) -> int:
    """Gives the lines of a set new times 1, 2, ... in the same order; returns the last one used."""
    now = 0
    for time in range(1, at.shape[0]):
        line = at[time]
        # A line that was touched again is also at a later time: only that one counts.
        if line >= 0 and last[line] == time:
            now += 1
            last[line] = now
            at[now] = line
    for time in range(1, at.shape[0]):
        tree[time] = weights[owner[at[time]]] if time <= now else 0
        if time > now:
            at[time] = -1
    for time in range(1, at.shape[0]):
        # Each node of the tree adds itself to its parent, whose own part is then complete.
        above = time + (time & -time)
        if above < at.shape[0]:
            tree[above] += tree[time]
    return now


give_new_times = compiled(_give_new_times)


def _run_distances(  # noqa: PLR0917
    tables: Tables,
    cursor: Cursor,
    budget: int,
    weights: Ints,
    owner: Ints,
    trees: Ints,
    times_of: Ints,
    last: Ints,
    written: Ints,
    histogram: Ints,
    clocks: Ints,
) -> tuple[int, int]:
    """Continues for about `budget` accesses or steps of the walk: (accesses, steps).

    `trees`, `times_of` and `clocks` have a row for each set; a line's set is its number modulo the number of sets.
    `weights[owner[line]]` is a line's size; `last[line]` its time, 0 before the first access; `written[line]` the
    largest distance since its last write, or NEVER. The histogram's rows are distances, the last one being infinite; it
    counts accesses, and the sizes of lines read, written, and stored.
    """
    references, places = tables[4], tables[5]
    flat, stride, left, block, control = cursor[3], cursor[4], cursor[5], cursor[6], cursor[7]
    infinite, sets = histogram.shape[0] - 1, clocks.shape[0]
    accesses = steps = 0
    while accesses + steps < budget and control[STATUS] == RUNNING:
        if control[REMAINING] == 0:
            steps += advance(tables, cursor)
            if control[REMAINING] == 0:
                continue
        first, count = control[FIRST], control[COUNT]
        n = min(control[REMAINING], (budget - accesses) // count + 1)
        for r in range(count):
            left[r] = 0
        done = 0
        while done < n:
            same = n - done
            for r in range(count):
                if left[r] == 0:
                    a = references[first + r, 1]
                    per, shift = places[a, 1], places[a, 2]
                    block[r] = places[a, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
                    left[r] = stays(flat[r], stride[r], per, shift)
                same = min(same, left[r])
            # all iterations over the same lines but the first are alike
            for again in range(min(same, 2)):
                times = same - 1 if again else 1
                for r in range(count):
                    line, write = block[r], references[first + r, 2]
                    weight = weights[owner[line]]
                    where = line % sets if sets > 1 else 0
                    clock = clocks[where]
                    before = last[line]
                    # Already on top of the stack: nothing is above it, and it stays there.
                    if before == clock[NOW] and before > 0:
                        distance = weight
                    else:
                        tree, at = trees[where], times_of[where]
                        if before == 0:
                            distance = infinite
                            clock[HELD] += weight
                        else:
                            distance = clock[HELD] - sum_to(tree, before) + weight
                            change(tree, before, -weight)
                            last[line] = 0
                        # The line has no time while new ones are given out: it is put on top right afterwards.
                        if clock[NOW] == at.shape[0] - 1:
                            clock[NOW] = give_new_times(tree, at, last, weights, owner)
                        clock[NOW] += 1
                        change(tree, clock[NOW], weight)
                        at[clock[NOW]] = line
                        last[line] = clock[NOW]
                    histogram[distance, ACCESSES] += times
                    if write:
                        histogram[distance, WRITES] += times * weight
                        # Charged once, to this write, in all caches that have not kept the line dirty since the
                        # previous write: those smaller than the longest distance since then. For a first write these
                        # are all caches, since the flush stores the line at the end.
                        since = written[line]
                        histogram[infinite if since == NEVER else max(since, distance), STORES] += times * weight
                        written[line] = 0
                    else:
                        histogram[distance, READS] += times * weight
                        if written[line] != NEVER:
                            written[line] = max(written[line], distance)
            for r in range(count):
                flat[r] += stride[r] * same
                left[r] -= same
            done += same
        accesses += n * count
        control[REMAINING] -= n
    return accesses, steps


run_distances = compiled(_run_distances)
