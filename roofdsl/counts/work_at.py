"""W at given sizes, exact: the operations of every statement (`operations`) times its executions."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.counts.operations import operation_counts
from roofdsl.counts.work_record import WorkAt, weighed
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized


def work_at(kernel: Kernel, params: Mapping[str, int]) -> WorkAt:
    """Exact operation counts at `params`. Raises CommandError for missing or illegal sizes, TooHard."""
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number
    from roofdsl.sets.library import limited

    at = sized(kernel, params)
    if is_indirect(at.kernel):
        from roofdsl.counts.data_at import work_of_data

        return work_of_data(at)
    with limited(f"W at these sizes of kernel {kernel.name}"):
        access_sets = build(at.kernel, at.values, None)
        return weighed(operation_counts(at.kernel), [number(cardinality(d.executions)) for d in access_sets.domains])
