"""The tables of `segment_skip.py`, `segment_growth.py` and `segment_copies.py` for a compiled kernel: the loops whose
iterations repeat, and work space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roofdsl.simulate.compiled_kernel import Program
from roofdsl.simulate.segment_blocks import (
    EXACT,
    FIRST_KEPT,
    LOOP_NOTES,
    MOST,
    MOST_KEPT,
    MOST_PLACES,
    PERIOD,
    Blocks,
)
from roofdsl.simulate.segments import LINES, MOST_SEGMENTS, SEGMENT, empty_list
from roofdsl.simulate.shifts import copied_loops, repeating_loops
from roofdsl.simulate.walk import LEAST, NEVER, STRIDE, Cursor, Ints

if TYPE_CHECKING:
    from roofdsl.simulate.segment_copies import Copies
    from roofdsl.simulate.segment_new_lines import Growth
    from roofdsl.simulate.segment_pieces import Sweep
    from roofdsl.simulate.segments import List

MOST_GROWING = 256 + 4  # segments of a growing top
MOST_NEW = 1024
MOST_COLUMNS = 512  # of segments that one block touches, with those emptied meanwhile
MOST_RECORDS = 256  # the longest period of an outer loop for which records are kept
MOST_LINES, MOST_FIRST_LINES = 1 << 26, 1 << 23  # of a compiled kernel, and of all records


def repeating_blocks(program: Program, cursor: Cursor) -> Blocks:
    """The loops whose iterations repeat, exactly or growing.

    Sets the alarms of `cursor` for those that repeat exactly: all references to an array move by the same number of
    lines.
    """
    arrays = len(program.layouts)
    exact = {loop.variable for loop in repeating_loops(program)}
    loops = repeating_loops(program, growing=True)
    notes = np.zeros((len(loops), LOOP_NOTES), dtype=np.int64)
    moves = np.zeros((len(loops), arrays), dtype=np.int64)
    of_variable = np.full(max(1, program.variables), -1, dtype=np.int64)
    for k, loop in enumerate(loops):
        ways: dict[int, set[int]] = {}
        for reference, lines in loop.lines.items():
            ways.setdefault(program.references[reference][1], set()).add(lines)
        moves[k] = [min(ways.get(a, {0})) for a in range(arrays)]
        of_variable[loop.variable] = k
        notes[k, PERIOD], notes[k, MOST] = loop.period, FIRST_KEPT
        notes[k, EXACT] = loop.variable in exact and all(len(own) == 1 for own in ways.values())
        cursor[8][loop.variable, LEAST] = loop.step * (2 * loop.period + 2) if notes[k, EXACT] else NEVER
        cursor[8][loop.variable, STRIDE] = loop.step
    return Blocks(
        notes,
        of_variable,
        moves,
        np.zeros((len(loops), SEGMENT, MOST_KEPT), dtype=np.int64),
        np.zeros((len(loops), arrays, 4), dtype=np.int64),
        np.full((len(loops), MOST_PLACES), -NEVER, dtype=np.int64),
        np.zeros((SEGMENT, MOST_SEGMENTS), dtype=np.int64),
        np.zeros((3, MOST_COLUMNS), dtype=np.int64),
    )


def growth_of(tables: Cursor, cursor: Cursor, totals: Ints, sweep: Sweep, cache: List, blocks: Blocks) -> Growth:  # noqa: PLR0917
    """Work space for blocks that grow. Sets the alarms of `cursor` for all loops of `blocks`."""
    from roofdsl.simulate.segment_new_lines import NEW, Growth

    def twice(table: Ints) -> Ints:
        """The table with numbers (value, change) that do not change yet."""
        return np.stack([table, np.zeros_like(table)], axis=-1)

    for variable, loop in enumerate(blocks.of_variable):
        if loop >= 0:
            cursor[8][variable, LEAST] = cursor[8][variable, STRIDE] * (2 * blocks.notes[loop, PERIOD] + 2)
    walk = tuple(twice(table) for table in cursor)
    walk[8][:] = 0
    walk[8][..., 0] = NEVER
    top = np.zeros((SEGMENT, 4 * MOST_GROWING, 2), dtype=np.int64)
    return Growth(
        np.zeros(1, dtype=np.int64),
        tuple(twice(table) for table in tables),
        walk,
        type(sweep)(*(twice(table) for table in sweep)),
        type(cache)(top, twice(cache.notes), twice(cache.tallies)),
        twice(totals),
        np.zeros((SEGMENT, MOST_GROWING, 2), dtype=np.int64),
        np.zeros((MOST_NEW, NEW, 2), dtype=np.int64),
        np.zeros((2, 2), dtype=np.int64),
    )


def repeating_starts(program: Program, cursor: Cursor, cache: List, blocks: Blocks) -> Copies:
    """The loops that begin by repeating what they did in an earlier iteration of the loop around them, if records of
    that can be kept.
    """
    from roofdsl.simulate.first_lines import work_space
    from roofdsl.simulate.segment_copies import (
        COPY_NOTES,
        FIRST,
        MOST_DIRTY,
        MOST_RECORDED,
        OUTER,
        OUTER_STEP,
        RECORD,
        REPEATS,
        Copies,
    )

    arrays, lines = len(program.layouts), int(cache.notes[LINES])
    found, moves = [], []
    for loop in copied_loops(program) if program.lines <= MOST_LINES else ():
        ways: dict[int, set[int]] = {}
        for reference, by in loop.lines.items():
            ways.setdefault(program.references[reference][1], set()).add(by)
        outer, inner = blocks.of_variable[loop.outer], blocks.of_variable[loop.inner]
        known = inner >= 0 and (outer < 0 or not blocks.notes[outer, EXACT])
        few = loop.period <= MOST_RECORDS and loop.period * lines <= MOST_FIRST_LINES
        if known and few and all(len(own) == 1 for own in ways.values()):
            found.append(loop)
            moves.append([min(ways.get(a, {0})) for a in range(arrays)])
    n, records = len(found), max((loop.period for loop in found), default=1)
    of_variable = np.full(len(blocks.of_variable), -1, dtype=np.int64)
    notes = np.zeros((n, COPY_NOTES), dtype=np.int64)
    around = np.full((n, max((len(loop.around) for loop in found), default=0)), -1, dtype=np.int64)
    for k, loop in enumerate(found):
        of_variable[loop.inner] = k
        notes[k, OUTER], notes[k, OUTER_STEP], notes[k, REPEATS] = loop.outer, loop.step, loop.period
        notes[k, FIRST] = NEVER
        around[k, : len(loop.around)] = loop.around
    return Copies(
        of_variable,
        notes,
        around,
        np.full_like(around, NEVER),
        np.array(moves, dtype=np.int64).reshape(n, arrays),
        np.zeros((n, SEGMENT, MOST_RECORDED), dtype=np.int64),
        np.zeros((n, arrays, 3), dtype=np.int64),
        np.zeros((n, records, RECORD), dtype=np.int64),
        np.zeros((n, records, SEGMENT, MOST_RECORDED), dtype=np.int64),
        np.zeros((n, records, arrays, 3), dtype=np.int64),
        np.zeros((n, records, 2, lines if n else 0), dtype=np.int32),
        np.zeros((n, records + 1, 1 + MOST_DIRTY), dtype=np.int32),
        empty_list(lines, cache.tallies),
        work_space(cursor, program.lines if n else 0, lines if n else 0),
    )
