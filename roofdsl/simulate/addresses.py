"""The addresses of a kernel's accesses, in order, where data may choose them. Imports numba.

`walk.advance` stops at every piece of straight-line code, and evaluates every place in it anew. Most loops over index
arrays have one such piece, in which places are `a + b * k` or the element of an index array at such a place: `col[k]`,
`x[col[k]]`. Their iterations are written one after another, without `advance`.
"""

from __future__ import annotations

import numpy as np

from roofdsl.simulate.compiled_kernel import CONST, GATHER, MADD, NEXT, RUN, Program
from roofdsl.simulate.walk import (
    COUNT,
    CULPRIT,
    FIRST,
    OUTSIDE,
    PC,
    REMAINING,
    RUNNING,
    STATUS,
    Cursor,
    Ints,
    Tables,
    advance,
    compiled,
)

OFFSET, PER_ITERATION, DATA, LENGTH = range(4)
"""Columns of the places in short loops: where the place is now, how far it moves, and where the index array begins that
it is a place in, with its length (-1: the place is that of the element itself).
"""


def short_loops(program: Program) -> tuple[Ints, Ints]:
    """(by instruction, the group of references that a NEXT repeats, or -1; the places of all references)."""
    group_of = np.full(len(program.code), -1, dtype=np.int64)
    places = np.zeros((max(1, len(program.references)), 4), dtype=np.int64)
    for pc, (op, variable, step, back, _, _) in enumerate(program.code):
        if op != NEXT or back != pc - 1 or program.code[back][0] != RUN:
            continue
        first, count = program.groups[program.code[back][1]]
        every = (_place(program, program.references[r][0], variable, step) for r in range(first, first + count))
        found = [place for place in every if place is not None]
        if len(found) == count:
            group_of[pc] = program.code[back][1]
            places[first : first + count] = found
    return group_of, places


def _place(program: Program, expression: int, variable: int, step: int) -> tuple[int, int, int, int] | None:
    """The row of a place, with an OFFSET of 0; None for a place of another form."""
    begin, end = program.spans[expression]
    terms = program.terms[begin:end]
    data, length = 0, -1
    if terms[-1][0] == GATHER:
        (_, data, length), terms = terms[-1], terms[:-1]
    if not terms or terms[0][0] != CONST or any(op != MADD for op, _, _ in terms[1:]):
        return None
    return 0, step * sum(factor for _, of, factor in terms[1:] if of == variable), data, length


def _write_short_loop(  # noqa: PLR0917
    tables: Tables, cursor: Cursor, trace: Ints, begins: Ints, sizes: Ints, group: int, offsets: Ints
) -> int:
    """Writes the iterations of a short loop from the next one on, as many as fit; returns the number of accesses."""
    code, terms, spans, groups, references, places = tables
    env, stops, control = cursor[0], cursor[1], cursor[7]
    variable, step = code[control[PC], 1], code[control[PC], 2]
    first, count = groups[group, 0], groups[group, 1]
    n = min((stops[variable] - env[variable] - 1) // step, trace.shape[0] // count)
    if n <= 0:
        return 0
    for r in range(first, first + count):
        t = spans[references[r, 0], 0]
        offset = terms[t, 1]
        t += 1
        while t < spans[references[r, 0], 1] and terms[t, 0] == MADD:
            offset += terms[t, 2] * env[terms[t, 1]]
            t += 1
        offsets[r, OFFSET] = offset
    made = 0
    for _ in range(n):
        for r in range(first, first + count):
            array = references[r, 1]
            offsets[r, OFFSET] += offsets[r, PER_ITERATION]
            flat = offsets[r, OFFSET]
            if offsets[r, LENGTH] >= 0:
                flat = env[offsets[r, DATA] + flat] if 0 <= flat < offsets[r, LENGTH] else -1
            if flat < 0 or flat >= places[array, 3]:
                control[CULPRIT], control[STATUS] = array, OUTSIDE
                return made
            trace[made] = (begins[array] + flat * sizes[array]) << 1 | references[r, 2]
            made += 1
    env[variable] += n * step
    return made


write_short_loop = compiled(_write_short_loop)


def _write_addresses(  # noqa: PLR0917
    tables: Tables, cursor: Cursor, trace: Ints, begins: Ints, sizes: Ints, group_of: Ints, offsets: Ints
) -> int:
    """Writes the next accesses into `trace`, each as twice its address, plus 1 for a write; returns their number.

    begins, sizes: of each array and its elements, in units of addresses. group_of, offsets: those of `short_loops`.
    """
    references = tables[4]
    flat, stride, control = cursor[3], cursor[4], cursor[7]
    room = trace.shape[0]
    made = steps = 0
    while control[STATUS] == RUNNING and steps <= room:
        if control[REMAINING] == 0:
            group = group_of[control[PC]]
            if group >= 0:
                made += write_short_loop(tables, cursor, trace[made:], begins, sizes, group, offsets)
                if room - made < tables[3][group, 1] or control[STATUS] != RUNNING:
                    break
            steps += advance(tables, cursor)
            if control[REMAINING] == 0:
                continue
        first, count = control[FIRST], control[COUNT]
        n = min(control[REMAINING], (room - made) // count)
        if n == 0:
            break
        for _ in range(n):
            for r in range(count):
                array = references[first + r, 1]
                trace[made] = (begins[array] + flat[r] * sizes[array]) << 1 | references[first + r, 2]
                flat[r] += stride[r]
                made += 1
        control[REMAINING] -= n
    return made


write_addresses = compiled(_write_addresses)
