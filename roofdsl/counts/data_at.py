"""Counts at given sizes of a kernel whose index arrays have values.

How often its statements run follows from the sizes (`loops.summed`) or from the data; what they load and store is
simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.indirect_groups import Counted
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.work_record import WorkAt, weighed
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import Access, scalar_bytes
from roofdsl.loops.model import For
from roofdsl.loops.sized import Sized


class _Executed(Record):
    """How often a statement runs, or the bounds of a loop are read (`is_bound`), and what is accessed each time."""

    times: int
    accesses: Sequence[Access]
    is_bound: bool


def work_of_data(at: Sized) -> WorkAt:
    """Operation counts. Raises CommandError for a kernel that runs too long to be gone through."""
    return weighed(operation_counts(at.kernel), [e.times for e in _executions(at) if not e.is_bound])


def accesses_of_data(at: Sized) -> int:
    """The number of array accesses, those of index arrays included. Raises as `work_of_data`."""
    return sum(e.times * len(e.accesses) for e in _executions(at))


def accesses_of_first_with_data(at: Sized, loop: For) -> Callable[[int], int]:
    """The number of array accesses in the first iterations of a loop, for any number of these from 0 to all. If the
    loop is inside others, those in all of its executions together.

    Raises CommandError for a kernel that runs too long to be gone through.
    """
    import numpy as np

    from roofdsl.matrices.points import iterations_of, touching

    each = np.zeros(0, dtype=np.int64)
    for touched in touching(at.kernel):
        if not touched.accesses or not any(around is loop for around in touched.placed.loops):
            continue
        counts = len(touched.accesses) * iterations_of(at, touched.placed, loop)
        each = np.pad(each, (0, max(0, len(counts) - len(each))))
        each[: len(counts)] += counts
    until = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(each)))
    return lambda number: int(until[min(number, len(each))])


def register_bytes_of_data(at: Sized) -> tuple[int, int]:
    """(loaded, stored) bytes between the registers and the nearest cache (rule 10). Raises as `work_of_data`."""
    loaded, stored = scalar_bytes(at.kernel)
    for executed in _executions(at):
        for access in executed.accesses:
            size = access.element.array.type.bytes * executed.times
            loaded, stored = (loaded, stored + size) if access.is_write else (loaded + size, stored)
    return loaded, stored


def _executions(at: Sized) -> list[_Executed]:
    """The executions of all statements, in the order of the text: in closed form, or by going through the data."""
    try:
        counted = Counted(at.kernel, at.values, None)
        forms = [counted.closed.weighted([int(other is nest) for other in counted.nests]) for nest in counted.nests]
    except (CommandError, NoClosedForm):
        return _unfolded(at)
    pairs = zip(counted.nests, forms, strict=True)
    return [_Executed(int(form.evaluate(at.values)), nest.accesses(), nest.bound) for nest, form in pairs]


def _unfolded(at: Sized) -> list[_Executed]:
    """Every iteration, with the data given. Raises CommandError."""
    from roofdsl.matrices.points import touching, unfolded

    found = touching(at.kernel)
    return [_Executed(unfolded(at, t.placed).number, t.accesses, t.is_bound) for t in found]
