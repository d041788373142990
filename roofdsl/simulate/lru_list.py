"""A fully associative LRU list over lines of any size, accessed by loops that may depend on data. Imports numba.

This is the line-by-line method of `lru_engines.py`; `skip_repeats.py` skips what repeats in it, and `lru_traffic.py` is
the entry point.

If the lines of an innermost loop's references stay the same for several iterations, only the iterations that can change
something are simulated. After an iteration without a miss, the same accesses do not miss either, and leave the list as
it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    compiled,
    inlined,
    stays,
)

HELD, WRITTEN = 1, 2  # bits of a line's state
MISSES, WRITE_MISSES, STORED = 0, 1, 2  # columns of the tallies
ACCESSES, STEPS, HELD_BYTES, TOUCHES, EPOCH, TOTALS = range(6)  # of the totals; TOUCHES: simulated accesses


def _touch(  # noqa: PLR0917
    line: int,
    write: int,
    held: int,
    cache_bytes: int,
    epoch: int,
    owner: NDArray[np.uint16],
    line_bytes: Ints,
    links: NDArray[np.int32],
    state: NDArray[np.uint8],
    stamp: NDArray[np.int32],
    tallies: Ints,
) -> int:
    """One access to a line; returns the bytes held afterwards."""
    end = links.shape[0] - 1
    bounded = cache_bytes >= 0
    # The newest line is already in its place. An unbounded cache evicts nothing, so it keeps no order.
    if bounded and links[end, 0] != line:
        if state[line]:
            older, newer = links[line, 0], links[line, 1]
            links[older, 1] = newer
            links[newer, 0] = older
        newest = links[end, 0]
        links[line, 0] = newest
        links[line, 1] = end
        links[newest, 1] = line
        links[end, 0] = line
        stamp[line] = epoch
    if not state[line]:
        a = owner[line]
        tallies[a, MISSES] += 1
        tallies[a, WRITE_MISSES] += write
        state[line] = HELD
        held += line_bytes[a]
        # A long line may need the room of several short ones.
        while bounded and held > cache_bytes:
            oldest = links[end, 1]
            after = links[oldest, 1]
            links[end, 1] = after
            links[after, 0] = end
            b = owner[oldest]
            tallies[b, STORED] += 1 if state[oldest] & WRITTEN else 0
            state[oldest] = 0
            held -= line_bytes[b]
    if write:
        state[line] |= WRITTEN
    return int(held)


touch = inlined(_touch)


def _run_lru(  # noqa: PLR0917
    tables: Tables,
    cursor: Cursor,
    budget: int,
    owner: NDArray[np.uint16],
    line_bytes: Ints,
    cache_bytes: int,
    longest: int,
    links: NDArray[np.int32],
    state: NDArray[np.uint8],
    stamp: NDArray[np.int32],
    tallies: Ints,
    totals: Ints,
) -> None:
    """Continues for about `budget` accesses or steps of the walk, or to a boundary.

    `links[line]` is (next older, next newer); the last row is the end of the list: its newer is the oldest line, its
    older the newest. `cache_bytes` < 0 means unbounded. `stamp[line]` becomes the current epoch when a line that is not
    the newest is touched. `tallies` counts, for each array, the stays of lines in the cache, those that begin with a
    write, and those that end with a store. `longest` is the length of the longest lines.
    """
    references, places = tables[4], tables[5]
    flat, stride, left, block, control = cursor[3], cursor[4], cursor[5], cursor[6], cursor[7]
    quick = cursor[9]
    accesses = steps = touches = 0
    held, epoch = totals[HELD_BYTES], totals[EPOCH]
    while accesses + steps < budget and control[STATUS] == RUNNING:
        if control[REMAINING] == 0:
            steps += advance(tables, cursor)
            if control[REMAINING] == 0:
                continue
        first, count = control[FIRST], control[COUNT]
        n = min(control[REMAINING], (budget - accesses) // count + 1)
        # If there is room for a line of every reference, one iteration leaves all of its lines in the cache. The next
        # one over the same lines only hits, and does not change their order. Otherwise, iterations are simulated until
        # one has no miss.
        room = cache_bytes // longest - count if cache_bytes >= 0 else FOR_EVER
        hurried = 0
        for r in range(count):
            left[r] = 0
            if abs(stride[r]) >= places[references[first + r, 1], 1]:
                quick[hurried] = r
                hurried += 1
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
            again = same
            while again > 0:
                missed = False
                touches += count
                for r in range(count):
                    line, write = block[r], references[first + r, 2]
                    missed = missed or state[line] == 0
                    held = touch(line, write, held, cache_bytes, epoch, owner, line_bytes, links, state, stamp, tallies)
                again = 0 if room >= 0 or not missed else again - 1
            slowest = FOR_EVER
            for r in range(count):
                flat[r] += stride[r] * same
                left[r] -= same
                if abs(stride[r]) < places[references[first + r, 1], 1]:
                    slowest = min(slowest, left[r])
            done += same
            if 0 < hurried < count and room > 0:
                # For some iterations, only references that move by a line or more each time are simulated. The lines of
                # the others cannot be evicted meanwhile, since there is room for all new lines. The next iteration,
                # which is simulated completely, puts them into the right places: so one iteration less than possible,
                # for it has new lines of its own, and the slow references must still be in their lines.
                between = min(slowest - 1, n - done - 1, room // hurried - 1)
                if between > 0:
                    for _ in range(between):
                        for k in range(hurried):
                            r = quick[k]
                            a = references[first + r, 1]
                            per, shift = places[a, 1], places[a, 2]
                            line = places[a, 0] + (flat[r] >> shift if shift >= 0 else flat[r] // per)
                            held = touch(
                                line,
                                references[first + r, 2],
                                held,
                                cache_bytes,
                                epoch,
                                owner,
                                line_bytes,
                                links,
                                state,
                                stamp,
                                tallies,
                            )
                            flat[r] += stride[r]
                    for r in range(count):
                        if abs(stride[r]) < places[references[first + r, 1], 1]:
                            flat[r] += stride[r] * between
                            left[r] -= between
                    touches += between * hurried
                    done += between
        accesses += n * count
        control[REMAINING] -= n
    totals[ACCESSES] += accesses
    totals[STEPS] += steps
    totals[TOUCHES] += touches
    totals[HELD_BYTES] = held


run_lru = compiled(_run_lru)
