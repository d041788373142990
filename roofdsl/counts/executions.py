"""How often the statements of a kernel are executed."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.loops.model import Kernel
from roofdsl.store.memo import recall


def statement_executions(kernel: Kernel, values: Mapping[str, int]) -> tuple[int, ...]:
    """How often each statement of a kernel without directives is executed, in the order of the text. Raises TooHard."""
    return recall("statement_executions", kernel, (dict(values),), lambda: _statement_executions(kernel, values))


def _statement_executions(kernel: Kernel, values: Mapping[str, int]) -> tuple[int, ...]:
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number
    from roofdsl.sets.library import limited

    with limited(f"W at these sizes of kernel {kernel.name}"):
        return tuple(number(cardinality(d.executions)) for d in build(kernel, dict(values), None).domains)
