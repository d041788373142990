"""The bytes of stores that bypass the caches (`stream A[i] = e`): each executed one moves its element to the memory.

They are the same for every cache and every convention, like the stored bytes of scalars, but depend on the sizes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from roofdsl.counts.computed_once import NoClosedForm, form_within
from roofdsl.loops.model import Assign, Kernel
from roofdsl.loops.sized import Sized
from roofdsl.loops.streams import has_streams
from roofdsl.sets.library import MAX_OPERATIONS
from roofdsl.sets.quasi import Quasi

if TYPE_CHECKING:
    from roofdsl.sets.access_sets import AccessSets, Domain


def streamed_at(at: Sized) -> int:
    """The bytes at given sizes. Raises TooHard."""
    return _streamed_at(at.kernel, tuple(at.values.items())) if has_streams(at.kernel) else 0


@lru_cache(maxsize=64)
def _streamed_at(kernel: Kernel, values: tuple[tuple[str, int], ...]) -> int:
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number
    from roofdsl.sets.library import limited

    with limited(f"the stores of kernel {kernel.name} that bypass the caches"):
        domains = executions_past_caches(build(kernel, dict(values), None))
        return sum(size * number(cardinality(executions)) for executions, size in domains)


def streamed_form(kernel: Kernel) -> Quasi:
    """The bytes in the parameters of a kernel with its directives applied. Raises NoClosedForm."""
    if not has_streams(kernel):
        return Quasi.constant(0)
    what = f"the closed form of the stores of kernel {kernel.name} that bypass the caches"
    return form_within(lambda: _streamed_form(kernel), what, MAX_OPERATIONS)


def _streamed_form(kernel: Kernel) -> Quasi:
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cases import closed_form

    access_sets = build(kernel, {}, None)
    total = None
    for count, size in streamed(access_sets):
        part = count.scale_val(size)
        total = part if total is None else total.add(part)
    found = closed_form(total, access_sets.context, access_sets.sizes.meaning(), ()).single
    if found is None:
        raise NoClosedForm("the number of stores that bypass the caches has a form for some of the sizes only")
    return found


def executions_past_caches(access_sets: AccessSets) -> list[tuple[Any, int]]:
    """(an isl.Set of the executions, bytes that each moves) for every statement that makes such stores."""
    return [(d.executions, _bytes(d)) for d in access_sets.domains if _bytes(d)]


def streamed(access_sets: AccessSets) -> list[tuple[Any, int]]:
    """(the number of executions as an isl.PwQPolynomial, bytes that each moves), as `executions_past_caches`."""
    from roofdsl.sets.cardinality import cardinality

    return [(cardinality(executions), size) for executions, size in executions_past_caches(access_sets)]


def _bytes(domain: Domain) -> int:
    statement = domain.placed.statement
    return statement.target.array.type.bytes if isinstance(statement, Assign) and statement.stream else 0
