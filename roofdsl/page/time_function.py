"""Writes the time model (`predict.time_model`) for a page, in the counts for which a page has closed forms.

`predict.compute` decides which operations run at which rate. The expression becomes a JavaScript function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine, MatrixUnitsOnly
from roofdsl.predict.compute import parts_of, seconds_in
from roofdsl.predict.time_model import ComputePart, Largest, Sum, Terms

Key = tuple[str, str]
"""(type, class), with classes as in `count_forms.WorkForms`."""


class Rates(Record):
    """The compute time T_comp in counts named like `f64 pair`: a type, and a class of `count_forms.WorkForms`.

    assumptions: what the rates assume, in words. missing: why the kernel does not run on this machine; then there is no
    time.
    """

    compute: Largest | None
    assumptions: tuple[str, ...] = ()
    missing: str = ""


def rates_of(
    machine: Machine, counts: frozenset[Key], unit: str | None, costs: Mapping[str, Fraction] | None = None
) -> Rates:
    """The rates of the operations in `counts` (those that occur at all) on `machine`, on matrix units if requested."""
    made: dict[str, tuple[ComputePart, ...]] = {}
    notes: list[str] = []
    try:
        for key in sorted(counts):
            one = _one(key, machine, unit)
            if one is not None:
                made[" ".join(key)], assumed = parts_of(one, machine, unit=unit, costs=costs)
                notes += assumed
    except MatrixUnitsOnly as error:
        return Rates(None, missing=f"{error.message}; choose matrix units")
    except CommandError as error:
        return Rates(None, missing=error.message + (f"; {error.help}" if error.help else ""))
    return Rates(seconds_in(made, machine, unit), tuple(dict.fromkeys(notes)))


def _one(key: Key, machine: Machine, unit: str | None) -> WorkAt | None:
    """One operation or fused pair of this type and class; None for a count whose operations are timed through
    other counts.
    """
    t, cls = key
    if unit is not None:  # a matrix unit has one rate for operations of every class, so any class stands for all
        return WorkAt({(t, "mul"): 1}, {}) if cls == "all" else None
    unneeded = ("all", "pair", "add_left", "mul_left") if machine.pipes_separate else ("all", "add", "mul")
    if cls in unneeded:
        return None
    if cls == "pair":
        return WorkAt({(t, "add"): 1, (t, "mul"): 1}, {t: 1})
    if cls in SPECIAL_FUNCTIONS:
        return WorkAt({(t, "special"): 1}, {}, functions={key: 1})
    return WorkAt({(t, cls.removesuffix("_left")): 1}, {})


# ---- JavaScript ----


def seconds_function(terms: Terms) -> str:
    """The terms as a function that takes a function from the name of a count to its number.

    It returns [[name, seconds], ...] in the order of `terms`.
    """
    rows = ", ".join(f"[{json.dumps(name)}, {_largest(of)}]" for name, of in terms)
    return f"(count) => [{rows}]"


def _largest(of: Largest) -> str:
    sums = [_sum(one) for one in of.sums]
    return sums[0] if len(sums) == 1 else f"Math.max({', '.join(sums)})"


def _sum(one: Sum) -> str:
    return " + ".join(_product(name, weight) for name, weight in one if weight) or "0"


def _product(name: str, weight: Fraction) -> str:
    """The count times its weight: a quotient if float64 represents the rate exactly, so that it is rounded once."""
    rate = 1 / weight
    by = f"/ {float(rate)!r}" if Fraction(float(rate)) == rate else f"* {float(weight)!r}"
    return f"count({json.dumps(name)}) {by}"
