"""The tables of `segment_skip.py` for a program: the loops whose iterations repeat, and work space."""

from __future__ import annotations

import numpy as np

from roofdsl.simulate.compiled_kernel import Program
from roofdsl.simulate.segment_skip import FIRST_KEPT, LOOP_NOTES, MOST, MOST_KEPT, PERIOD, Blocks
from roofdsl.simulate.segments import MOST_SEGMENTS, SEGMENT
from roofdsl.simulate.shifts import repeating_loops
from roofdsl.simulate.walk import LEAST, STRIDE, Cursor


def repeating_blocks(program: Program, cursor: Cursor) -> Blocks:
    """The loops in which all references to an array move by the same number of lines. Sets the alarms of `cursor`."""
    arrays = len(program.layouts)
    loops, moves = [], []
    for loop in repeating_loops(program):
        ways: dict[int, set[int]] = {}
        for reference, lines in loop.lines.items():
            ways.setdefault(program.references[reference][1], set()).add(lines)
        if all(len(own) == 1 for own in ways.values()):
            loops.append(loop)
            moves.append([min(ways.get(a, {0})) for a in range(arrays)])
    notes = np.zeros((len(loops), LOOP_NOTES), dtype=np.int64)
    of_variable = np.full(max(1, program.variables), -1, dtype=np.int64)
    for k, loop in enumerate(loops):
        of_variable[loop.variable] = k
        notes[k, PERIOD], notes[k, MOST] = loop.period, FIRST_KEPT
        cursor[8][loop.variable, LEAST] = loop.step * (3 * loop.period + 1)
        cursor[8][loop.variable, STRIDE] = loop.step
    return Blocks(
        notes,
        of_variable,
        np.array(moves, dtype=np.int64).reshape(len(loops), arrays),
        np.zeros((len(loops), SEGMENT, MOST_KEPT), dtype=np.int64),
        np.zeros((len(loops), arrays, 4), dtype=np.int64),
        np.zeros((SEGMENT, MOST_SEGMENTS), dtype=np.int64),
    )
