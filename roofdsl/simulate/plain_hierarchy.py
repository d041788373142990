"""Hierarchies of plain caches, compiled: LRU, write-back, whole lines of one length, no inclusion between levels.

`general_hierarchy.py` simulates them too, with the same counts. Without sectors, policies and inclusion, a set is a
row of words from the newest to the oldest. One pass searches the row for a line, moves it to the front and pushes out
the last one. A word is a line number above a dirty bit; -1 is an empty place. Words are half as long as in
`replacement.py`, so that more of a large cache stays near the processor.

If the lines of an innermost loop's references stay the same for several iterations, and there are no more references
than the first level has ways, only one of these iterations is simulated. All of their lines are then present, in the
order of their last accesses, which the next iterations repeat. With more references, iterations are simulated until one
has no miss. Loops whose subscripts read index arrays run iteration by iteration (`walk.py`). Imports numba.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.general_hierarchy import HITS, LOADS, MISSES, STORES
from roofdsl.simulate.replacement import DIRTY, FIRST_SLOT, MASK, MOST_SCANNED, SETS, TAG, WAYS
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
    same_blocks,
)

Words = NDArray[np.int32]
FOUND = -2
MOST_LINES = 1 << 30  # a word contains a line number and its dirty bit


def is_plain(levels: Sequence[CacheLevel], lines: int) -> bool:
    """Whether `run_plain` simulates these levels, with lines numbered below `lines`."""
    return lines < MOST_LINES and all(
        level.ways is not None
        and level.ways <= MOST_SCANNED
        and level.policy == "lru"
        and level.write == "back"
        and level.write_miss != "around"
        and level.inclusion == "free"
        and level.line_bytes == level.sector == levels[0].line_bytes
        for level in levels
    )


def words_of(plain: Words) -> Ints:
    """The words in the form of `replacement.py`."""
    words = plain.astype(np.int64)
    return np.where(words < 0, -1, words >> 1 << TAG | (words & 1) << DIRTY | 1)


def _row_of(level: Ints, line: int) -> int:
    """The first place of the set that a line maps to."""
    if level[MASK] >= 0:
        return int(level[FIRST_SLOT] + (line & level[MASK]) * level[WAYS])
    return int(level[FIRST_SLOT] + np.int64(np.uint32(line) % np.uint32(level[SETS])) * level[WAYS])


row_of = inlined(_row_of)


def _touch(row: Words, word: int) -> int:
    """Puts a line at the front of a row, dirty if it was or `word` is; returns FOUND, or the word pushed out (-1:
    none).
    """
    moving = word
    for s in range(row.shape[0]):
        there = row[s]
        row[s] = moving
        if there >> 1 == word >> 1:
            row[0] |= there & 1
            return FOUND
        moving = there
    return int(moving)


touch = inlined(_touch)


def _write_back_down(pushed: int, k: int, tallies: Ints, levels: Ints, words: Words) -> None:
    """Handles a line that level `k` pushed out, and the lines that it pushes out further down."""
    while pushed >= 0 and pushed & 1:
        tallies[k, STORES] += 1
        k += 1
        if k == levels.shape[0]:
            return
        base = row_of(levels[k], pushed >> 1)
        pushed = touch(words[base : base + levels[k, WAYS]], pushed)


write_back_down = inlined(_write_back_down)


def _ask_below(line: int, levels: Ints, words: Words, out: Ints, tallies: Ints) -> int:
    """Reads a line that the first level missed from the levels below; returns the number of levels that missed it, the
    first included. `out[k]`: the word that level k pushed out for it.
    """
    tallies[0, LOADS] += 1
    for k in range(1, levels.shape[0]):
        base = row_of(levels[k], line)
        pushed = touch(words[base : base + levels[k, WAYS]], line << 1)
        if pushed == FOUND:
            tallies[k, HITS] += 1
            return k
        tallies[k, MISSES] += 1
        tallies[k, LOADS] += 1
        out[k] = pushed
    return int(levels.shape[0])


ask_below = inlined(_ask_below)


def _run_plain(  # noqa: PLR0917
    tables: Tables,
    cursor: Cursor,
    budget: int,
    tallies: Ints,
    element_bytes: Ints,
    claims: int,
    out: Ints,
    levels: Ints,
    words: Words,
) -> tuple[int, int, int]:
    """Continues for about `budget` accesses or steps of the walk: (accesses, their bytes, steps)."""
    references = tables[4]
    flat, stride, left, line, control = cursor[3], cursor[4], cursor[5], cursor[6], cursor[7]
    top = levels[0]
    accesses = touched = steps = misses = 0
    while accesses + steps < budget and control[STATUS] == RUNNING:
        if control[REMAINING] == 0:
            steps += advance(tables, cursor)
            if control[REMAINING] == 0:
                continue
        first, count = control[FIRST], control[COUNT]
        n = min(control[REMAINING], (budget - accesses) // count + 1)
        for r in range(count):
            left[r] = 0
            touched += n * element_bytes[references[first + r, 1]]
        done = 0
        while done < n:
            again = same = same_blocks(tables, cursor, first, count, n - done)
            while again > 0:
                quiet = True
                for r in range(count):
                    write = references[first + r, 2]
                    base = row_of(top, line[r])
                    row = words[base : base + top[WAYS]]
                    if row[0] >> 1 == line[r]:
                        row[0] |= write
                        continue
                    pushed = touch(row, line[r] << 1 | write)
                    if pushed != FOUND:
                        # No set gets more lines in an iteration than there are references. With at least as many ways,
                        # none of them is pushed out again. The next iteration over the same lines only hits, and leaves
                        # the rows as they are.
                        quiet = count <= top[WAYS]
                        misses += 1
                        out[0] = pushed
                        missed = 1 if write and claims else ask_below(line[r], levels, words, out, tallies)
                        for k in range(missed - 1, -1, -1):  # the lowest level makes room first
                            write_back_down(out[k], k, tallies, levels, words)
                again = 0 if quiet else again - 1
            for r in range(count):
                flat[r] += stride[r] * same
                left[r] -= same
            done += same
        accesses += n * count
        control[REMAINING] -= n
    tallies[0, MISSES] += misses
    tallies[0, HITS] += accesses - misses
    return accesses, touched, steps


run_plain = compiled(_run_plain)
