"""An LRU list of lines after skipped iterations: built at once, from the present list and the renaming of its lines.

`skip_repeats.py` finds out what may be skipped. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate.line_renaming import Lines, Names
from roofdsl.simulate.lru_list import EPOCH, HELD_BYTES, STORED, WRITTEN
from roofdsl.simulate.walk import Ints, compiled

TOUCHED = 128  # a mark in addition to a line's flags


class Cache(NamedTuple):
    """The list and its counts, as in `run_lru`; bounds: the first and the last line of each array."""

    links: Lines
    flags: NDArray[np.uint8]
    stamp: Lines
    owner: NDArray[np.uint16]
    tallies: Ints
    totals: Ints
    line_bytes: Ints
    bounds: Ints


def _skip(most: int, deepest: int, new: int, held: int, whole: bool, epoch: int, cache: Cache, names: Names) -> None:  # noqa: PLR0917
    """Builds the list as it is after `most` more blocks: its top renamed, below it the lines pushed down, then the old
    lines.

    The counts of stored lines change with it, unless the top is the `whole` list.
    """
    links, flags, stored, now = cache.links, cache.flags, cache.tallies[:, STORED], names.now
    then, then_marks, marks = names.then, names.then_marks, names.marks
    top = deepest + new
    # The list grows by `new` lines per block until the cache is full; if the top is the whole list, it keeps its
    # length.
    length = held if whole else min(names.then.shape[0], held + most * new)
    for q in range(held):
        x = now[q]
        marks[q] = flags[x] | (TOUCHED if q < top and (names.moves[q] or cache.stamp[x] >= epoch) else 0)
        # Each skipped block pushes out the lines of places deepest to top - 1, too, under later names.
        if not whole and q >= deepest and flags[x] & WRITTEN:  # stored, unless it is still in the cache at the end
            stored[cache.owner[x]] += 1 + most if q < top else 1
    for q in range(held):
        flags[now[q]] = 0
    # First the top, renamed `most` times ...
    size = 0
    for q in range(top):
        then[size], then_marks[size] = now[q] + most * names.moves[q], marks[q]
        size += 1
    # ... then the lines that each skipped block pushed out of the top, starting with the latest block ...
    for later in range(most - 1 if new else -1, -1, -1):
        if size == length:
            break
        for q in range(deepest, min(top, deepest + length - size)):
            then[size], then_marks[size] = now[q] + later * names.moves[q], marks[q]
            size += 1
    # ... then the lines that were already below, as far as there is room.
    for q in range(top, min(held, top + length - size)):
        then[size], then_marks[size] = now[q], marks[q]
        size += 1
    newer = links.shape[0] - 1  # the head of the doubly linked list
    for q in range(length):
        x = then[q]
        flags[x] = then_marks[q] & ~TOUCHED
        if then_marks[q] & TOUCHED:
            cache.stamp[x] = cache.totals[EPOCH]
        if not whole and q >= deepest and flags[x] & WRITTEN:
            stored[cache.owner[x]] -= 1
        links[x, 1] = newer
        links[newer, 0] = x
        newer = x
    links[newer, 0] = links.shape[0] - 1
    links[-1, 1] = newer
    cache.totals[HELD_BYTES] = length * cache.line_bytes[0]


skip = compiled(_skip)
