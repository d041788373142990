"""W and its parts as quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.derived import Quantity, Work
from roofdsl.counts.quantity_of import quantity
from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.operation_classes import OPERATION_CLASSES, SPECIAL_FUNCTIONS


def work_quantities(closed: ClosedForms, given: Mapping[str, int], at: WorkAt | None) -> Work:
    """W by class, function and type: forms, and the values `at` the given sizes (None: what the forms give)."""
    operations = closed.operations

    def sum_of(weight: Callable[[Any], int], value: int | None) -> Quantity:
        return quantity(lambda: closed.weighted([weight(s) for s in operations]), given, value)

    def both(weight: Callable[[Any], int]) -> Quantity:
        # one statement and the whole kernel have the same fields, so the same sum gives the form and the value
        return sum_of(weight, None if at is None else weight(at))

    def of_class(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (_, c), n in s.operations.items() if c == name)

    def of_function(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (_, f), n in s.functions.items() if f == name)

    def of_type(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (t, _), n in s.operations.items() if t == name)

    types = sorted({t for s in operations for t, _ in s.operations})
    classes = [c for c in OPERATION_CLASSES if any(of_class(c)(s) for s in operations)]
    functions = [f for f in SPECIAL_FUNCTIONS if any(of_function(f)(s) for s in operations)]
    return Work(
        both(lambda s: s.total),
        {c: both(of_class(c)) for c in classes},
        {f: both(of_function(f)) for f in functions},
        {t: both(of_type(t)) for t in types},
        both(lambda s: sum(s.fused_pairs.values())),
        both(lambda s: s.cmp),
        both(lambda s: s.casts),
    )
