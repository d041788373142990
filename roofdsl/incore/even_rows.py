"""Loops over rows of different lengths as loops over rows of their average length, for a walk through compiled code.

A walk needs to know how often each loop runs. Offsets that rise from 0 to nnz are taken to rise evenly, by the rounded
average length of a row; the time of the walk is then that of so many entries, and is scaled to nnz.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.incore.model import InCore, NoInCore, Step
from roofdsl.incore.state import Even
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import bound_accesses, indices, statements
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Assign, Element, Kernel, Rises


class EvenRows(Record):
    """The offsets by array: first value and what each adds. scale: the entries over those of the walk."""

    offsets: Mapping[str, tuple[int, int]]
    scale: float
    assumptions: tuple[str, ...] = ()


def even_rows(kernel: Kernel, values: Mapping[str, int]) -> EvenRows:
    """The average rows of a kernel at these sizes; no offsets and the scale 1 for an affine one.

    Raises NoInCore for kernels that write at places that data choose, since such writes may have to wait for each
    other, and for loops over more than one array of offsets.
    """
    if not is_indirect(kernel):
        return EvenRows({}, 1.0)
    placed = tuple(statements(kernel.body))
    targets = [p.statement.target for p in placed if isinstance(p.statement, Assign)]
    if any(isinstance(t, Element) and next(indices(t), None) is not None for t in targets):
        raise NoInCore("stores at places that data choose may depend on each other")
    read = dict.fromkeys(a.element.array.name for p in placed for loop in p.loops for a in bound_accesses(loop))
    rises = [f for f in kernel.facts if isinstance(f, Rises) and f.array in read]
    if len(read) != len(rises) or len(rises) > 1:
        raise NoInCore("how often its loops run depends on the data")
    if not rises:
        return EvenRows({}, 1.0)
    (fact,) = rises
    array = next(a for a in kernel.arrays if a.name == fact.array)
    rows = array.dims[0].evaluate(values) - 1
    first, last = fact.first.evaluate(values), fact.last.evaluate(values)
    length = max(1, round((last - first) / rows))
    note = f"every row of {fact.array} is as long as the average, {length} iterations"
    return EvenRows({fact.array: (first, length)}, (last - first) / (rows * length), (note,))


def placed_at(rows: EvenRows, kernel: Kernel, at: Mapping[str, int], values: Mapping[str, int]) -> list[Even]:
    """The offsets in memory, for arrays at these addresses."""
    found = []
    for array in kernel.arrays:
        if array.name in rows.offsets:
            size, count = array.type.bytes, array.dims[0].evaluate(values)
            found.append(Even(at[array.name], at[array.name] + size * count, size, *rows.offsets[array.name]))
    return found


def scaled(found: InCore, rows: EvenRows) -> InCore:
    """The time of all entries, from that of rows of the average length."""
    if not rows.offsets:
        return found
    steps = tuple(Step(s.cause, s.remedy, s.overlapping_s * rows.scale, s.loads_s * rows.scale) for s in found.steps)
    return replace(found, steps=steps, assumptions=found.assumptions + rows.assumptions)
