"""Counts at given sizes of a kernel whose index arrays have values.

How often its statements run follows from the sizes (`loops.summed`); what they load and store is simulated.
"""

from __future__ import annotations

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.indirect_groups import Counted
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.operations import work_at as weigh
from roofdsl.counts.work_at import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import Access, scalar_bytes
from roofdsl.loops.sized import Sized
from roofdsl.loops.summed import Nest


def work_of_data(at: Sized) -> WorkAt:
    """Operation counts. Raises CommandError where executions in sum are not known."""
    return weigh(operation_counts(at.kernel), [times for nest, times in _executions(at) if not nest.bound])


def accesses_of_data(at: Sized) -> int:
    """The number of array accesses, those of index arrays included. Raises as `work_of_data`."""
    return sum(times * len(nest.accesses()) for nest, times in _executions(at))


def register_bytes_of_data(at: Sized) -> tuple[int, int]:
    """(loaded, stored) bytes between the registers and the nearest cache (rule 10). Raises as `work_of_data`."""
    loaded, stored = scalar_bytes(at.kernel)
    touched: list[tuple[Access, int]] = [(a, times) for nest, times in _executions(at) for a in nest.accesses()]
    for access, times in touched:
        size = access.element.array.type.bytes * times
        loaded, stored = (loaded, stored + size) if access.is_write else (loaded + size, stored)
    return loaded, stored


def _executions(at: Sized) -> list[tuple[Nest, int]]:
    """How often each nest of the kernel runs."""
    counted = Counted(at.kernel, at.values, None)
    try:
        forms = [counted.closed.weighted([int(other is nest) for other in counted.nests]) for nest in counted.nests]
    except NoClosedForm as error:
        raise CommandError(f"how often the statements of kernel {at.name} run is not known: {error}") from None
    return [(nest, int(form.evaluate(at.values))) for nest, form in zip(counted.nests, forms, strict=True)]
