"""Compute time: operations over rates, class by class and type by type (docs/rules.md, rules 12 to 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.work_record import StatementOperations, WorkAt, weighed
from roofdsl.lang.operation_classes import OPERATION_CLASSES, SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.machine.model import ComputeCeiling, Machine
from roofdsl.predict.time_model import PIPE_NAMES, ComputePart, Largest, compute_seconds, pipe_cost, pipe_of


class ComputeTime(Record):
    """T_comp and its parts.

    time_s: seconds; with `pipes`, the time of the busiest pipe or set of units (rule 13), otherwise the sum of the
    parts. peak_per_s: the machine's highest rate for the dominant type, in operations per second (None if W = 0). type:
    the type that dominates the time (None if W = 0).
    """

    time_s: Fraction
    parts: tuple[ComputePart, ...]
    type: str | None
    peak_per_s: Fraction | None
    assumptions: tuple[str, ...]


def compute_time(
    work: WorkAt,
    machine: Machine,
    *,
    unit: str | None = None,
    costs: Mapping[str, Fraction] | None = None,
    ceilings: tuple[ComputeCeiling, ...] = (),
) -> ComputeTime:
    """T_comp of `work` on `machine`, in seconds.

    `unit` is "tensor" or "tensor_sparse" if a contraction runs on matrix units; all its operations then run at that
    rate. `ceilings` cap the rates of their types and classes. Raises CommandError if the machine lacks a type.
    """
    parts, notes = parts_of(work, machine, unit=unit, costs=costs)
    time = compute_seconds(parts, machine, unit, ceilings).at({part.count: part.operations for part in parts})
    dominant = _dominant(parts)
    peak = machine.peak(dominant, unit).per_s if dominant else None
    return ComputeTime(time, parts, dominant, peak, notes)


def statement_seconds(
    operations: Sequence[StatementOperations],
    machine: Machine,
    *,
    unit: str | None = None,
    costs: Mapping[str, Fraction] | None = None,
    ceilings: Sequence[ComputeCeiling] = (),
) -> Largest:
    """T_comp in terms of executions of statements: count `0` for the first one, `1` for the next, ...

    Raises what `compute_time` raises.
    """
    each = [parts_of(weighed([s], [1]), machine, unit=unit, costs=costs)[0] for s in operations]
    return seconds_in({str(k): parts for k, parts in enumerate(each)}, machine, unit, ceilings)


def seconds_in(
    made: Mapping[str, Sequence[ComputePart]],
    machine: Machine,
    unit: str | None,
    ceilings: Sequence[ComputeCeiling] = (),
) -> Largest:
    """T_comp in terms of other counts: one unit of the count `name` stands for the operations `made[name]`."""
    kinds = {part.count: part for parts in made.values() for part in parts}
    operations = {name: {part.count: part.operations for part in parts} for name, parts in made.items()}
    return compute_seconds(tuple(kinds.values()), machine, unit, ceilings).made_of(operations)


def parts_of(
    work: WorkAt, machine: Machine, *, unit: str | None = None, costs: Mapping[str, Fraction] | None = None
) -> tuple[tuple[ComputePart, ...], tuple[str, ...]]:
    """The operations of `work` by the rates they run at, and the assumptions behind these rates, in words.

    Raises CommandError if the machine lacks a type.
    """
    parts: list[ComputePart] = []
    notes: list[str] = []
    for type_name, total in work.by_type.items():
        if total:
            parts += _parts_of(work, type_name, machine, unit, costs=costs or {}, notes=notes)
    if machine.pipes_separate and unit is None:
        notes += [note for part in parts for note in _pipe_notes(part, machine)]
    return tuple(parts), tuple(dict.fromkeys(notes))


def _parts_of(
    work: WorkAt,
    type_name: str,
    machine: Machine,
    unit: str | None,
    *,
    costs: Mapping[str, Fraction],
    notes: list[str],
) -> list[ComputePart]:
    """The parts of one type; the assumptions behind their rates are added to `notes`."""
    if unit is not None:
        total = work.by_type[type_name]
        return [ComputePart(type_name, unit, total, machine.rate(type_name, unit).per_s)]
    counts = {c: work.operations.get((type_name, c), 0) for c in OPERATION_CLASSES}
    pairs = work.fused_pairs.get(type_name, 0)
    if machine.pipes_separate:
        pairs = 0  # each half of a pair goes to its own pipe
    counts["add"] -= pairs
    counts["mul"] -= pairs
    counts = {"fma": 2 * pairs, **counts, **_functions_apart(work, type_name, machine, costs)}
    counts["special"] -= sum(counts[f] for f in SPECIAL_FUNCTIONS if f in counts)
    parts = []
    for cls, operations in counts.items():
        if operations:
            rate = machine.rate(type_name, cls, costs)
            if not machine.pipes_separate:
                notes.extend(rate.assumptions)
            parts.append(ComputePart(type_name, cls, operations, rate.per_s))
    return parts


def _functions_apart(work: WorkAt, type_name: str, machine: Machine, costs: Mapping[str, Fraction]) -> dict[str, int]:
    """The operations of special functions that have their own rate or ceiling."""
    capped = {(c.type, c.cls) for c in machine.ceilings if isinstance(c, ComputeCeiling)}
    return {
        f: n
        for f in SPECIAL_FUNCTIONS
        if (n := work.functions.get((type_name, f), 0))
        and (machine.has_own_rate(type_name, f, costs) or (type_name, f) in capped)
    }


def _pipe_notes(part: ComputePart, machine: Machine) -> tuple[str, ...]:
    """The pipe that runs a class whose rate the machine does not state, and at what cost."""
    cost = pipe_cost(part, machine)
    if cost is None or part.cls in ("add", "mul"):
        return ()
    return (f"{part.type}: {part.cls} on the {PIPE_NAMES[pipe_of(part.cls, machine)]}, cost {cost}",)


def _dominant(parts: Sequence[ComputePart]) -> str | None:
    times: dict[str, Fraction] = {}
    for part in parts:
        times[part.type] = times.get(part.type, Fraction(0)) + part.time_s
    return max(times, key=lambda t: times[t]) if times else None
