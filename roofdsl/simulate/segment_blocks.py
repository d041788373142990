"""The tables of loops whose iterations repeat, for an LRU list of segments."""

from __future__ import annotations

from typing import NamedTuple

from roofdsl.simulate.walk import Ints

# Columns of a loop's notes: its PERIOD; whether a block has begun (VALID), and then the segments KEPT at its beginning,
# whether these were all, the time, the accesses, the steps and the lines entered; the oldest frame that was cut and the
# newest that was dropped since; the number of segments to keep; the blocks to WAIT before the next examination, and the
# failures so far (PATIENCE), from which that wait follows; whether blocks may repeat exactly (EXACT), or only grow; the
# loop's variable at the first look at this execution of it, and the number of its executions.
PERIOD, VALID, KEPT, WHOLE, BEGAN, BEGIN_ACCESSES, BEGIN_STEPS, BEGIN_ENTERED = range(8)
CUT, GONE, MOST, WAIT, PATIENCE, EXACT, FIRST_SEEN, EXECUTIONS = range(8, 16)
LOOP_NOTES = 16
FIRST_KEPT, MOST_KEPT = 64, 1024 + 8
LONGEST_WAIT = 32  # the largest PATIENCE; the wait is a quarter of it
MOST_PLACES = 4096  # blocks of a loop for which failed looks for growth are remembered
MANY = 64  # a list with more segments is compacted when a loop begins


class Blocks(NamedTuple):
    """The loops that repeat, one row for each: their notes; the loop of a variable, or -1; the lines by which an array
    moves in a period; the segments at the beginning of a block, newest first; the tallies there. vain: for each block
    of a loop, the last execution in which a look for growth failed there. rebuilt, touched: work space.
    """

    notes: Ints
    of_variable: Ints
    moves: Ints
    kept: Ints
    counts: Ints
    vain: Ints
    rebuilt: Ints
    touched: Ints
