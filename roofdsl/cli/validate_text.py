"""Comparisons of prediction and measurement, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofdsl.cli.text import bold, columns
from roofdsl.machine.quantities import show_bandwidth, show_rate, show_time
from roofdsl.validate.compare import Comparison, Distribution, distribution

SCHEMA = "roofdsl.validate/1"


def table(comparisons: Sequence[Comparison]) -> str:
    """One line for each comparison, then the causes of violations, then the distribution of all ratios."""
    machines = list(dict.fromkeys(c.prediction.machine for c in comparisons))
    rows = [["kernel", "variant", "predicted", "measured", "10 - 90 %", "rate", "ratio", "bound", ""]]
    for c in comparisons:
        p, m = c.prediction, c.measurement
        sizes = ", ".join(f"{n}={v}" for n, v in p.parameters)
        on = f" on {p.machine}" if len(machines) > 1 else ""
        rate = show_rate(m.rate_per_s, p.operation) if p.work else show_bandwidth(p.memory.bytes / m.median_s)
        spread = f"{show_time(m.low_s, 3)} - {show_time(m.high_s, 3)}"
        state = "" if m.state == "warm" else f", {m.state}"
        times = (show_time(c.predicted_s), show_time(c.measured_s))
        row = [f"{p.kernel} {sizes}".strip() + on, m.variant + state, *times, spread, rate]
        rows.append([*row, f"{c.ratio:.2f}", p.bound, "" if c.verdict == "as predicted" else c.verdict])
    lines = columns(rows, right=(2, 3, 4, 5, 6))
    out = [bold(lines[0]), *lines[1:]]
    for c in comparisons:
        if c.causes:
            sizes = ", ".join(f"{n}={v}" for n, v in c.prediction.parameters)
            out += ["", f"{c.prediction.kernel} {sizes} is faster than the model allows. It may be that"]
            out += [f"  - {cause}" for cause in c.causes]
    if len(comparisons) > 1:
        out += ["", f"measured / predicted performance: {spread_of(distribution([c.ratio for c in comparisons]))}"]
    return "\n".join(out)


def spread_of(d: Distribution) -> str:
    """`median 0.91, quartiles 0.84 and 0.95, from 0.31 to 1.01, of 24 runs`."""
    return (
        f"median {d.median:.2f}, quartiles {d.quarter:.2f} and {d.three_quarters:.2f}, "
        f"from {d.least:.2f} to {d.greatest:.2f}, of {d.count} runs"
    )


def to_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The document `roofdsl.validate/1`: predictions, measurements, ratios and verdicts."""
    return {
        "schema": SCHEMA,
        "comparisons": [
            {
                "kernel": c.prediction.kernel,
                "machine": c.prediction.machine,
                "parameters": dict(c.prediction.parameters),
                "predicted_s": c.predicted_s,
                "measured_s": c.measured_s,
                "low_s": c.measurement.low_s,
                "high_s": c.measurement.high_s,
                "ratio": c.ratio,
                "bound": c.prediction.bound,
                "verdict": c.verdict,
                "causes": list(c.causes),
                "prediction": c.prediction.to_json(),
                "measurement": c.measurement.to_json(),
            }
            for c in comparisons
        ],
    }
