"""Compute time: operations over rates, class by class and type by type (counting_and_time.md, rules 12 to 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.results import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.functions import OPERATION_CLASSES, SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.machine.model import UNFUSED, ComputeCeiling, Machine

# Where the adder and the multiplier are two pipes, these run on the multiplier's; all else on the adder's.
PIPES = ("add", "mul", "div")
_PIPE_NAMES = {"add": "adder", "mul": "multiplier", "div": "divider"}


class ComputePart(Record):
    """Operations of one type that run at one rate. `cls` is a peak class, or "add" and "mul" left unfused.

    Special functions stand apart where the machine or the file gives them a rate of their own, else as "special".
    """

    type: str
    cls: str
    operations: int
    rate_per_s: Fraction

    @property
    def time_s(self) -> Fraction:
        return self.operations / self.rate_per_s


class ComputeTime(Record):
    """T_comp and what it is made of.

    time_s: seconds; with `pipes separate` the busier pipe's, else the sum of the parts.
    peak_per_s: the machine's highest rate for the dominant type, in operations per second (None where W = 0).
    type: the type that dominates the time (None where W = 0).
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

    `unit` is "tensor" or "tensor_sparse" where a contraction runs on matrix units: all its operations then take
    that rate. `ceilings` caps the rate of their types. Raises CommandError where the machine lacks a type.
    """
    parts: list[ComputePart] = []
    notes: list[str] = []
    for type_name, total in work.by_type.items():
        if total:
            parts += _parts_of(work, type_name, machine, unit, costs=costs or {}, notes=notes)
    if machine.pipes_separate and unit is None:
        time = _pipes_time(parts, machine, notes)
    else:
        time = sum((p.time_s for p in parts), Fraction(0))
    for ceiling in ceilings:
        under = [p for p in parts if is_under(ceiling, p)]
        others = Fraction(0) if machine.pipes_separate else sum(p.time_s for p in parts if p not in under)
        time = max(time, sum(p.operations for p in under) / ceiling.rate_per_s + others)
    dominant = _dominant(parts)
    peak = machine.peak(dominant, unit).per_s if dominant else None
    return ComputeTime(time, tuple(parts), dominant, peak, tuple(dict.fromkeys(notes)))


def is_under(ceiling: ComputeCeiling, part: ComputePart) -> bool:
    """Whether a ceiling caps these operations."""
    special = ceiling.cls == "special" and part.cls in SPECIAL_FUNCTIONS
    return ceiling.type == part.type and (special or ceiling.cls in ("", part.cls))


def _parts_of(
    work: WorkAt,
    type_name: str,
    machine: Machine,
    unit: str | None,
    *,
    costs: Mapping[str, Fraction],
    notes: list[str],
) -> list[ComputePart]:
    """The parts of one type; what the rates assume goes to `notes`."""
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
    """The operations of special functions that have a rate, or a ceiling, of their own."""
    capped = {(c.type, c.cls) for c in machine.ceilings if isinstance(c, ComputeCeiling)}
    return {
        f: n
        for f in SPECIAL_FUNCTIONS
        if (n := work.functions.get((type_name, f), 0))
        and (machine.has_own_rate(type_name, f, costs) or (type_name, f) in capped)
    }


def _pipes_time(parts: list[ComputePart], machine: Machine, notes: list[str]) -> Fraction:
    """The maximum over the adder, the multiplier and, where it is apart, the divider."""
    return max(busy_pipes(parts, machine, notes).values())


def busy_pipes(parts: Sequence[ComputePart], machine: Machine, notes: list[str]) -> dict[str, Fraction]:
    """Seconds that the adder and the multiplier are busy: each runs at half the rate of the two together.

    That rate is the fused peak where the machine states one, else the unfused one (73.6 GFLOP/s together are
    36.8 additions and 36.8 multiplications). Classes go to pipes as `pipe_of` says; one with its own rate keeps it.
    """
    busy = dict.fromkeys(PIPES if machine.divider_separate else PIPES[:2], Fraction(0))
    for part in parts:
        pipe = pipe_of(part.cls, machine)
        if _has_peak(part, machine):
            busy[pipe] += part.time_s
            continue
        unfused = machine.rate(part.type, UNFUSED).per_s
        cost = unfused / part.rate_per_s  # what rule 12 makes of the class, in unfused operations
        busy[pipe] += part.operations * cost / (machine.peak(part.type).per_s / 2)
        if part.cls not in ("add", "mul"):
            notes.append(f"{part.type}: {part.cls} on the {_PIPE_NAMES[pipe]}, cost {cost}")
    return busy


def _has_peak(part: ComputePart, machine: Machine) -> bool:
    """Whether the part's rate is stated, by a `peak` of its own or, of a special function, by that of all of them."""
    if machine.stated(part.type, part.cls) is not None:
        return True
    special = machine.stated(part.type, "special") if part.cls in SPECIAL_FUNCTIONS else None
    return special is not None and special.rate_per_s == part.rate_per_s


def pipe_of(cls: str, machine: Machine) -> str:
    """Which pipe of a machine with separate ones a class runs on, one of PIPES: minimum and maximum on the adder, div
    and special functions on the divider where that is apart, else on the multiplier.
    """
    if cls in ("div", "special", *SPECIAL_FUNCTIONS):
        return "div" if machine.divider_separate else "mul"
    return "mul" if cls == "mul" else "add"


def _dominant(parts: list[ComputePart]) -> str | None:
    times: dict[str, Fraction] = {}
    for part in parts:
        times[part.type] = times.get(part.type, Fraction(0)) + part.time_s
    return max(times, key=lambda t: times[t]) if times else None


def check_unit(unit: str | None, contraction: bool, kernel: str) -> None:
    """Matrix units are for contractions only (rule 14). Raises CommandError for another kernel."""
    if unit is not None and not contraction:
        raise CommandError(
            f"{kernel} is not a contraction, so {unit} rates do not apply to it",
            "matrix units take sums of products of two arrays, as in `C[i, j] += A[i, k] * B[k, j]`",
        )
