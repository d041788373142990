"""Comparisons of prediction and measurement, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofdsl.machine.quantities import (
    group,
    show_bandwidth,
    show_bytes,
    show_energy,
    show_operations,
    show_power,
    show_rate,
    show_time,
)
from roofdsl.measure.energy_counter import why_missing
from roofdsl.predict.prediction import Prediction
from roofdsl.tell.blocks import Block, Gap, figures, items, line
from roofdsl.tell.measurement import variant_of
from roofdsl.tell.titles import short_sizes
from roofdsl.validate.compare import Comparison, Distribution, LaunchComparison, distribution
from roofdsl.validate.compare_points import PointCheck

SCHEMA = "roofdsl.validate/1"
NUMBERS = (2, 3, 4, 5, 6)
"""Columns of both tables that are aligned to the right."""


def blocks(comparisons: Sequence[Comparison]) -> list[Block]:
    """One line for each comparison, then the causes of violations, then the distribution of all ratios."""
    machines = list(dict.fromkeys(c.prediction.machine for c in comparisons))
    expects = any(c.expected_s is not None for c in comparisons)
    rows = []
    for c in comparisons:
        p, m = c.prediction, c.measurement
        place = f" on {p.machine}" if len(machines) > 1 else ""
        rate = show_rate(m.rate_per_s, p.operation) if p.work else show_bandwidth(p.memory.bytes / m.median_s)
        spread = f"{show_time(m.low_s, 3)} - {show_time(m.high_s, 3)}"
        state = "" if m.state == "warm" else f", {m.state}"
        both = [show_time(c.bound_s), "" if c.expected_s is None else show_time(c.expected_s)]
        times = (*both[: 1 + expects], show_time(c.measured_s))
        row = [_kernel(p) + place, variant_of(m) + state, *times, spread, rate]
        said = [] if c.verdict == "as predicted" else [str(c.verdict)]
        said += [] if m.verified.holds else ["cannot be verified"]
        rows.append([*row, f"{c.ratio:.2f}", p.bound, ", ".join(said)])
    times_of, limit = (("bound", "expected"), "bound by") if expects else (("predicted",), "bound")
    head = ("kernel", "variant", *times_of, "measured", "10 - 90 %", "rate", "ratio", limit, "")
    numbers = (*NUMBERS, 7) if expects else NUMBERS
    out: list[Block] = [figures(rows, head, numbers, depth=0, strong=True)]
    out += _below_the_roof(comparisons)
    for c in comparisons:
        out += _by_launch(c, len(machines) > 1)
    for c in comparisons:
        if c.causes:
            said_of = f"{c.prediction.kernel} {short_sizes(c.prediction.parameters)}"
            out += [Gap(), line(f"{said_of} is faster than the model allows. It may be that", 0)]
            out += [items(c.causes, 1, "- ")]
    for c in comparisons:
        if c.disturbed:
            out += [
                Gap(),
                line(f"{_kernel(c.prediction)}: inconclusive: {c.disturbed}; measure it again on a quiet computer", 0),
            ]
    out += _energies(comparisons)
    if len(comparisons) > 1:
        spread = spread_of(distribution([c.ratio for c in comparisons]))
        out += [Gap(), line(f"measured / {'expected' if expects else 'predicted'} performance: {spread}", 0)]
    if len(comparisons) > 1 and expects:
        spread = spread_of(distribution([c.bound_ratio for c in comparisons]))
        out += [line(f"measured performance / bound: {spread}", 0)]
    return out


def _energies(comparisons: Sequence[Comparison]) -> list[Block]:
    """Predicted and measured energies and powers, of runs that have one of the two; then what is missing, and why."""
    rows, missing = [], dict[str, None]()
    for c in comparisons:
        p, joules, watts = c.prediction, c.measured_j, c.measured_w
        both = ["", ""] if p.energy is None else [show_energy(p.energy.total_j), show_power(p.energy.average_w)]
        seen = ["", ""] if joules is None or watts is None else [show_energy(joules), show_power(watts)]
        if p.energy is not None or joules is not None:
            ratio = "" if p.energy is None or joules is None else f"{joules / float(p.energy.total_j):.2f}"
            rows.append([_kernel(p), both[0], seen[0], ratio, both[1], seen[1]])
        missing |= dict.fromkeys(filter(None, (p.no_energy, why_missing(c.measurement.details))))
    out: list[Block] = []
    if rows:
        head = ("energy", "predicted", "measured", "ratio", "power", "measured")
        out += [Gap(), figures(rows, head, range(1, 6), depth=0)]
    return out + ([Gap()] if missing else []) + [line(f"no energy: {why}", 0) for why in missing]


FAR_BELOW = 0.75
"""Of the bound's performance: runs below it are listed with what is expected to keep them there."""

LEAST_SHARE = 0.01
"""Of the expected time: a smaller cause explains nothing."""

UNKNOWN = "none that the model knows"


def _below_the_roof(comparisons: Sequence[Comparison]) -> list[Block]:
    """The largest expected cause for every run that is far below the roof, or not as expected but not above it."""
    rows = []
    for c in comparisons:
        if c.expected_s is None or c.verdict == "above the roof":
            continue
        if c.bound_ratio >= FAR_BELOW and c.verdict == "as predicted":
            continue
        cause = c.largest_cause
        share = 0.0 if cause is None else float(cause.share_s) / c.expected_s
        named = [UNKNOWN, "", ""]
        if cause is not None and share >= LEAST_SHARE:
            named = [cause.cause, f"{100 * share:.0f} %", cause.remedy]
        rows.append([_kernel(c.prediction), f"{c.bound_ratio:.2f}", *named])
    if not rows:
        return []
    head = ("", "of the bound", "largest cause", "of the time", "")
    return [Gap(), line("below the roof:", 0), figures(rows, head, (1, 3))]


def _kernel(p: Prediction) -> str:
    """`gemv n=64`."""
    return f"{p.kernel} {short_sizes(p.parameters)}".strip()


def _by_launch(c: Comparison, several: bool) -> list[Block]:
    """The launches of a program, the longest measured time first."""
    if not c.by_launch:
        return []
    whole = c.measured_s
    rows = []
    for part in sorted(c.by_launch, key=lambda part: -part.measured.median_s):
        p, m = part.prediction, part.measured
        predicted_s = p.bound_s if p.expected is None else p.expected.expected_s
        times = [
            show_time(predicted_s),
            show_time(m.median_s),
            f"{100 * m.median_s / whole:.1f} %",
            f"{part.ratio:.2f}",
        ]
        verdict = "" if part.verdict == "as predicted" else part.verdict
        rows.append([_kernel(p), m.of.variant, group(m.launches), *times, p.bound, verdict])
    place = f" on {c.prediction.machine}" if several else ""
    head = ("", "variant", "launches", "predicted", "measured", "", "ratio", "bound", "")
    return [
        Gap(),
        line(f"launches of {c.prediction.kernel}{place}, grouped by kernel and size:", 0),
        figures(rows, head, NUMBERS),
    ]


def of_points(checks: Sequence[PointCheck]) -> list[Block]:
    """Time, operations and bytes of every point next to the prediction, one per line; then the levels whose bytes only
    one side has.
    """
    several = len({c.prediction.machine for c in checks}) > 1
    rows, notes = [], []
    for c in checks:
        p = c.prediction
        name = _kernel(p) + (f" on {p.machine}" if several else "")
        lines = []
        if c.measured_s is not None and c.ratio is not None:
            verdict = "" if c.verdict == "as predicted" else str(c.verdict)
            lines.append(["time", show_time(c.bound_s), show_time(c.measured_s), f"{1 / c.ratio:.2f}", verdict])
        if c.measured_work is not None and p.work:
            shown = [show_operations(w, p.operation) for w in (p.work, c.measured_work)]
            lines.append(["work", *shown, f"{c.measured_work / p.work:.2f}", ""])
        for x in c.levels:
            shown = [show_bytes(x.predicted_bytes), show_bytes(x.measured_bytes)]
            lines.append([x.level, *shown, f"{x.ratio:.2f}", "" if x.verdict == "as predicted" else x.verdict])
        of = f" / {c.executions}" if c.executions > 1 else ""
        heads = [[name, f"{c.point.label} ({c.origin}){of}"], *([["", ""]] * (len(lines) - 1))]
        rows += [[*head, *line] for head, line in zip(heads, lines, strict=True)]
        for what, levels in (("measured", c.not_measured), ("predicted", c.not_predicted)):
            if levels:
                notes.append(f"{c.point.label}: the bytes of {', '.join(levels)} are not {what}")
    head = ("kernel", "point", "", "predicted", "measured", "measured / predicted", "")
    return [figures(rows, head, (3, 4, 5), depth=0, strong=True), items(notes, 0)]


def spread_of(d: Distribution) -> str:
    """`median 0.91, quartiles 0.84 and 0.95, from 0.31 to 1.01, of 24 runs`."""
    return (
        f"median {d.median:.2f}, quartiles {d.quarter:.2f} and {d.three_quarters:.2f}, "
        f"from {d.least:.2f} to {d.greatest:.2f}, of {d.count} runs"
    )


def to_json(comparisons: Sequence[Comparison], checks: Sequence[PointCheck] = ()) -> dict[str, Any]:
    """The document `roofdsl.validate/1`: predictions, measurements, ratios and verdicts; points separately."""
    return {
        "schema": SCHEMA,
        **({"points": [_point_json(c) for c in checks]} if checks else {}),
        "comparisons": [
            {
                "kernel": c.prediction.kernel,
                "machine": c.prediction.machine,
                "parameters": dict(c.prediction.parameters),
                "predicted_s": c.bound_s,
                "expected_s": c.expected_s,
                "measured_s": c.measured_s,
                "low_s": c.measurement.low_s,
                "high_s": c.measurement.high_s,
                "ratio": c.ratio,
                "bound_ratio": c.bound_ratio,
                "bound": c.prediction.bound,
                "verdict": c.verdict,
                "causes": list(c.causes),
                "disturbed": c.disturbed or None,
                **({"by_launch": [_launch_json(part) for part in c.by_launch]} if c.by_launch else {}),
                "prediction": c.prediction.to_json(),
                "measurement": c.measurement.to_json(),
            }
            for c in comparisons
        ],
    }


def _launch_json(part: LaunchComparison) -> dict[str, Any]:
    return {
        "kernel": part.prediction.kernel,
        "parameters": dict(part.prediction.parameters),
        "variant": part.measured.of.variant,
        "launches": part.measured.launches,
        "predicted_s": float(part.prediction.bound_s),
        "expected_s": None if part.prediction.expected is None else float(part.prediction.expected.expected_s),
        "measured_s": part.measured.median_s,
        "ratio": part.ratio,
        "bound_ratio": part.bound_ratio,
        "bound": part.prediction.bound,
        "verdict": part.verdict,
    }


def _point_json(c: PointCheck) -> dict[str, Any]:
    return {
        "kernel": c.prediction.kernel,
        "machine": c.prediction.machine,
        "parameters": dict(c.prediction.parameters),
        "point": c.point.label,
        "origin": c.origin,
        "source": c.source,
        "executions": c.executions,
        "predicted_s": c.bound_s,
        "measured_s": c.measured_s,
        "ratio": c.ratio,
        "bound": c.prediction.bound,
        "verdict": c.verdict,
        "predicted_work_flops": c.prediction.work,
        "measured_work_flops": c.measured_work,
        "levels": [
            {
                "name": x.level,
                "predicted_bytes": x.predicted_bytes,
                "measured_bytes": x.measured_bytes,
                "measured_over_predicted": x.ratio,
                "verdict": x.verdict,
            }
            for x in c.levels
        ],
        "not_measured": list(c.not_measured),
        "not_predicted": list(c.not_predicted),
        "missing": list(c.point.missing),
    }
