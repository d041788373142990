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

    def of_class(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (_, c), n in s.operations.items() if c == name)

    def of_function(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (_, f), n in s.functions.items() if f == name)

    def of_type(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (t, _), n in s.operations.items() if t == name)

    types = sorted({t for s in operations for t, _ in s.operations})
    classes = [c for c in OPERATION_CLASSES if any(of_class(c)(s) for s in operations)]
    functions = [f for f in SPECIAL_FUNCTIONS if any(of_function(f)(s) for s in operations)]
    by_class = {} if at is None else {c: sum(n for (_, k), n in at.operations.items() if k == c) for c in classes}
    by_function = {} if at is None else {f: of_function(f)(at) for f in functions}
    return Work(
        sum_of(lambda s: s.total, None if at is None else at.total),
        {c: sum_of(of_class(c), by_class.get(c)) for c in classes},
        {f: sum_of(of_function(f), by_function.get(f)) for f in functions},
        {t: sum_of(of_type(t), None if at is None else at.by_type.get(t, 0)) for t in types},
        sum_of(lambda s: sum(s.fused_pairs.values()), None if at is None else sum(at.fused_pairs.values())),
        sum_of(lambda s: s.cmp, None if at is None else at.cmp),
        sum_of(lambda s: s.casts, None if at is None else at.casts),
    )
