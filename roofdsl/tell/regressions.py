"""Runs beside their baseline, as text and as JSON."""

from __future__ import annotations

from typing import Any

from roofdsl.machine.quantities import show_percent, show_time
from roofdsl.measure.measurement import Measurement
from roofdsl.tell.blocks import Block, Gap, figures, items, line
from roofdsl.tell.measurement import variant_of
from roofdsl.tell.titles import short_sizes
from roofdsl.validate.baseline import Compared, Regressions, described


def run_name(m: Measurement) -> str:
    """`gemv n=64 loops`: the name of a run in all tables and reports."""
    state = "" if m.state == "warm" else m.state
    return " ".join(part for part in (m.kernel, short_sizes(m.parameters), variant_of(m), state) if part)


def blocks(found: Regressions) -> list[Block]:
    """A table of all runs with both medians, then the causes, then the runs that were not measured."""
    rows, notes = [], []
    for change in found.changes:
        m = change.comparison.measurement
        said = "" if change.verdict == "not slower" else change.verdict
        if change.before is None or change.slower_by is None:
            rows.append((run_name(m), "", show_time(m.median_s), "", "", said))
            continue
        both = (show_time(change.before.median_s), show_time(m.median_s))
        rows.append((run_name(m), *both, show_percent(change.slower_by, "+.1%"), f"{change.p:.2g}", said))
        if change.verdict in ("slower than its baseline", "inconclusive"):
            notes.append(f"{run_name(m)}: {told(change)}")
    notes += [f"{run_name(m)} is in the baseline, but was not measured now" for m in found.missing]
    allowed = f"{100 * found.allowed:.3g} %"
    head = ("", "baseline", "now", "", "p", "")
    out: list[Block] = [
        line(f"baseline {found.baseline.path}; {allowed} slower is allowed", 0),
        figures(rows, head, (1, 2, 3, 4), depth=0),
    ]
    return [*out, Gap(), items(notes, 0)] if notes else out


def told(change: Compared) -> str:
    """A run compared with its baseline, in a sentence."""
    if change.before is None:
        return "it is not in the baseline"
    if change.verdict == "not slower":
        return "not slower than its baseline"
    if change.verdict == "inconclusive":
        return f"inconclusive: {described(change)}"
    return described(change)


def to_json(found: Regressions) -> dict[str, Any]:
    """The value of `baseline` in the output of `validate --json`."""
    return {
        "file": found.baseline.path,
        "allowed": found.allowed,
        "level": found.level,
        "runs": [_run_json(change) for change in found.changes],
        "missing": [_named(m) for m in found.missing],
    }


def _named(m: Measurement) -> dict[str, Any]:
    return {"kernel": m.kernel, "parameters": dict(m.parameters), "variant": m.variant, "state": m.state}


def _run_json(change: Compared) -> dict[str, Any]:
    return {
        **_named(change.comparison.measurement),
        "machine": change.comparison.prediction.machine,
        "baseline_s": None if change.before is None else change.before.median_s,
        "measured_s": change.comparison.measured_s,
        "slower_by": change.slower_by,
        "p": change.p,
        "verdict": change.verdict,
        "why": change.why or None,
    }
