"""Measurements that students hand in: whole result files of `roofdsl measure`, compared with the own prediction."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from roofdsl.classroom.engine import kernel_of
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.forms import number
from roofdsl.classroom.formula import Node
from roofdsl.classroom.settle import Settled, SettledPart, shown
from roofdsl.classroom.units import value_of
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.source import Source

if TYPE_CHECKING:
    from roofdsl.classroom.judge import Verdict


def judge_measurement(settled: Settled, part: SettledPart, text: str, known: Mapping[str, Node]) -> Verdict:
    """Whether the file is a whole measurement of the exercise's kernel; what it says beside the prediction.

    A file that was edited is refused (`measure.results`); whether the student ran it is not for a program to know.
    """
    from roofdsl.classroom.judge import Verdict
    from roofdsl.measure.results import parse

    try:
        found = parse(Source("your result", text))
    except InputError as error:
        first = error.diagnostics[0]
        return Verdict(False, f"{first.message[:1].upper()}{first.message[1:]}. {first.help}".rstrip())
    if len(found) != 1:
        return Verdict(False, f"Hand in one measurement; the file has {len(found)}.")
    measurement = found[0]
    kernel = kernel_of(settled.kernels[part.part.reference], dict(measurement.parameters))
    if measurement.kernel != kernel.name or measurement.is_stale(kernel):
        return Verdict(False, f"This measures another kernel than `{kernel.name}` as the exercise has it.")
    time_s = Fraction(measurement.median_s)
    values: dict[str, Node] = {
        "measured_time": number(time_s),
        "measured_rate": number(Fraction(measurement.work) / time_s),
        "footprint": number(measurement.footprint_bytes or 0),
        "measured_bandwidth": number(Fraction(measurement.footprint_bytes or 0) / time_s),
        **{n: v for n, v in known.items() if n == "prediction"},
    }
    for requirement in part.part.require:
        if not settled.fulfilled(requirement.when, values):
            return Verdict(False, settled.fill(requirement.why))
    if "prediction" not in known:
        return Verdict(False, "The prediction comes first: answer that part too.")
    return Verdict(True, _told(settled, part, values), values)


def _told(settled: Settled, part: SettledPart, values: Mapping[str, Node]) -> str:
    asked = next(p for p in settled.exercise.parts if p.id == part.part.prediction)
    _, kind = value_of(asked.unit)
    prediction = evaluate(values["prediction"], {})
    unit = "s" if kind.seconds == 1 else "B/s" if kind.bytes else "FLOP/s"
    name = {"s": "measured_time", "B/s": "measured_bandwidth", "FLOP/s": "measured_rate"}[unit]
    ratio = float(evaluate(values[name], {}) / prediction)
    both = f"Measured {shown(values[name], unit)}, predicted {shown(values['prediction'], unit)}"
    return f"{both}: {ratio:.2f} of the prediction."
