"""The tables of `skip_repeats.py` for a program: the loops that repeat themselves, and work space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from roofdsl.simulate import skip_repeats
from roofdsl.simulate.compiled_kernel import Program
from roofdsl.simulate.line_renaming import ABSENT, ALIKE, MIXED, MOST_FAMILIES, Loops, Names
from roofdsl.simulate.shifts import Repeating, repeating_loops
from roofdsl.simulate.skipped_list import Cache
from roofdsl.simulate.walk import LEAST, STRIDE, Cursor, cursor_of

MOST_BYTES = 1 << 30
"""The limit of the work space; if more is needed, nothing is skipped."""


def prepare(program: Program, cursor: Cursor, cache_bytes: int, shared: tuple[Any, ...]) -> Callable[..., int] | None:
    """A function that continues like `run_lru` but skips what repeats; None if nothing can be skipped.

    Sets the alarms of `cursor`. shared: the engine's links, state, stamps, owners, tallies and totals.
    """
    sizes = {a.line_bytes for a in program.layouts}
    loops = repeating_loops(program) if len(sizes) == 1 else ()
    if not loops:
        return None
    line = sizes.pop()
    capacity = max(1, min(cache_bytes // line, program.lines))
    if program.lines * 24 + capacity * (24 + 5 * len(loops)) > MOST_BYTES:
        return None

    for loop in loops:
        cursor[8][loop.variable, LEAST] = loop.step * (3 * loop.period + 1)
        cursor[8][loop.variable, STRIDE] = loop.step
    bounds = np.array([(a.first, a.first + a.count - 1) for a in program.layouts], dtype=np.int64)
    links, state, stamp, owner, tallies, totals = shared
    cache = Cache(links, state, stamp, owner, tallies, totals, np.array([line], dtype=np.int64), bounds)
    seen, shift, listed, place, old, found = np.zeros((6, program.lines + 1), dtype=np.int32)
    names = Names(
        np.zeros(1, dtype=np.int32),
        *(seen, shift, listed, place, old, found),
        np.zeros((MOST_FAMILIES, 5), dtype=np.int64),
        np.zeros(capacity + 1, dtype=np.int32),
        np.zeros(capacity + 1, dtype=np.int64),
        np.zeros(capacity + 1, dtype=np.uint8),
        np.zeros(capacity, dtype=np.int32),
        np.zeros(capacity, dtype=np.uint8),
    )
    second, known = cursor_of(program), _loops(program, loops, capacity)

    def run(tables: Any, first: Any, budget: int, line_bytes: Any, cache_bytes: int) -> int:
        looked: int = skip_repeats.run_skipping(
            tables, first, second, budget, line_bytes, cache_bytes, cache, known, names
        )
        return looked

    return run


def _loops(program: Program, loops: tuple[Repeating, ...], capacity: int) -> Any:

    n, arrays, references, variables = len(loops), len(program.layouts), len(program.references), program.variables
    notes = np.zeros((n, skip_repeats.NOTES), dtype=np.int64)
    of_variable = np.full(variables, -1, dtype=np.int64)
    moved = np.zeros((n, references), dtype=np.int64)
    kinds = np.full((n, arrays), ABSENT, dtype=np.int64)
    alike = np.zeros((n, arrays), dtype=np.int64)
    for k, loop in enumerate(loops):
        of_variable[loop.variable] = k
        notes[k, skip_repeats.PERIOD] = notes[k, skip_repeats.BLOCK] = loop.period
        notes[k, skip_repeats.BODY], notes[k, skip_repeats.MOST] = loop.body, min(skip_repeats.FIRST_KEPT, capacity)
        ways: dict[int, set[int]] = {}
        for reference, lines in loop.lines.items():
            moved[k, reference] = lines
            ways.setdefault(program.references[reference][1], set()).add(lines)
        for array, own in ways.items():
            kinds[k, array] = ALIKE if len(own) == 1 else MIXED
            alike[k, array] = min(own)
    mixed = np.array([MIXED in row for row in kinds], dtype=np.int64)
    return Loops(
        notes,
        of_variable,
        moved,
        kinds,
        alike,
        mixed,
        np.zeros((n, max(1, variables)), dtype=np.int64),
        np.zeros((n, capacity + 1), dtype=np.int32),
        np.zeros((n, capacity + 1), dtype=np.uint8),
        np.zeros((n, arrays, 3), dtype=np.int64),
    )
