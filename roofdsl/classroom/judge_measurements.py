"""Measurements that students hand in: complete result files of `roofdsl measure`, compared with our own prediction."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from roofdsl.classroom.answer_language import Node
from roofdsl.classroom.answer_units import value_of
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.forms_as_formulas import number
from roofdsl.classroom.query import kernel_of
from roofdsl.classroom.student_version import StudentVersion, VersionPart, shown
from roofdsl.classroom.verdict import Verdict
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source

if TYPE_CHECKING:
    from roofdsl.loops.model import Kernel
    from roofdsl.measure.measurement import Measurement

SHORTEST_S, LONGEST_S = 1e-9, 1e7
"""The plausible range of the time of one execution, in seconds."""

LARGEST_COUNT = 10**18
"""The maximum number of operations, bytes or elements in a plausible file."""


def judge_measurement(version: StudentVersion, part: VersionPart, text: str, known: Mapping[str, Node]) -> Verdict:
    """Whether the file is a complete measurement of the exercise's kernel, and how it compares with the prediction.

    A file is refused if it contradicts itself, the kernel or what computers can do. No program can know whether the
    student really measured it.
    """
    from roofdsl.measure.measurement import parse

    try:
        found = parse(Source("your result", text))
    except InputError as error:
        first = error.diagnostics[0]
        return Verdict(False, f"{first.message[:1].upper()}{first.message[1:]}. {first.help}".rstrip())
    if len(found) != 1:
        return Verdict(False, f"Submit a single measurement; the file has {len(found)}.")
    measurement = found[0]
    if problem := _implausible(measurement):
        return Verdict(False, problem)
    try:
        kernel = kernel_of(version.kernels[part.part.reference], dict(measurement.parameters))
    except (InputError, CommandError):
        return Verdict(False, "The sizes in the file are not those of the exercise's kernel.")
    if measurement.kernel != kernel.name or measurement.is_stale(kernel):
        return Verdict(False, f"This measures a kernel that differs from the exercise's `{kernel.name}`.")
    if not _counts_agree(measurement, kernel):
        return Verdict(False, "The operations or bytes in the file are not those of the kernel at its sizes.")
    time_s = Fraction(measurement.median_s)
    values: dict[str, Node] = {
        "measured_time": number(time_s),
        "measured_rate": number(Fraction(measurement.work) / time_s),
        "footprint": number(measurement.footprint_bytes or 0),
        "measured_bandwidth": number(Fraction(measurement.footprint_bytes or 0) / time_s),
        **{n: v for n, v in known.items() if n == "prediction"},
    }
    for requirement in part.part.require:
        if not version.fulfilled(requirement.when, values):
            return Verdict(False, version.fill(requirement.why))
    if "prediction" not in known:
        return Verdict(False, "Answer the prediction first.")
    return Verdict(True, _told(version, part, values), values)


def _implausible(measurement: Measurement) -> str:
    """A message about a value that cannot come from a measurement; empty if all values are plausible."""
    sizes = [value for _, value in measurement.parameters]
    if any(value < 1 for value in sizes):
        return "A size in the file is less than 1, so that there is nothing to measure."
    if any(value > LARGEST_COUNT for value in sizes):
        return "The sizes in the file are too large for any computer."
    if not SHORTEST_S <= measurement.median_s <= LONGEST_S:
        return (
            f"The file says that one execution takes {measurement.median_s:.3g} s, which no computer can have measured."
        )
    if max(measurement.work, measurement.footprint_bytes or 0) > LARGEST_COUNT:
        return "The file has more operations or bytes than any computer can have measured."
    return ""


def _counts_agree(measurement: Measurement, kernel: Kernel) -> bool:
    """Whether W in the file agrees with the kernel's, and the footprint too, except for scalars and padding."""
    from roofdsl.counts.work_at import work_at

    sizes = dict(measurement.parameters)
    try:
        work = work_at(kernel, sizes).total
        footprint = sum(a.type.bytes * a.element_count(sizes) for a in kernel.arrays)
    except (InputError, CommandError, KeyError):
        return False
    stated = measurement.footprint_bytes
    return work == measurement.work and (stated is None or abs(stated - footprint) <= footprint // 100)


def _told(version: StudentVersion, part: VersionPart, values: Mapping[str, Node]) -> str:
    asked = next(p for p in version.exercise.parts if p.id == part.part.prediction)
    _, kind = value_of(asked.unit)
    prediction = evaluate(values["prediction"], {})
    if kind.seconds == 1:
        name, unit = "measured_time", "s"
    elif kind.bytes:
        name, unit = "measured_bandwidth", "B/s"
    else:
        name, unit = "measured_rate", "FLOP/s"
    ratio = float(evaluate(values[name], {}) / prediction)
    both = f"Measured {shown(values[name], unit)}, predicted {shown(values['prediction'], unit)}"
    return f"{both}: {ratio:.2f} of the prediction."
