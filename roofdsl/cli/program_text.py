"""The prediction of a program as text: the sum as of one kernel, then its kernels by the time they take."""

from __future__ import annotations

from roofdsl.cli.predict_text import describe
from roofdsl.cli.text import columns
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import group, show_bytes, show_number, show_rate, show_time
from roofdsl.predict.program import ProgramPrediction
from roofdsl.predict.time import Prediction


def describe_program(found: ProgramPrediction, machine: Machine) -> str:
    """The sum of all launches, the table of kernels sorted by time, and the time by what bounds the launches."""
    lines = [describe(found.total, machine), "", "  kernels, by time:"]
    lines += [f"  {line}" for line in columns(_rows(found), right=(1, 2, 3, 4, 5, 6))]
    whole = found.total.expected_s
    if len(found.time_by_bound) > 1 and whole:
        shares = (f"{show_number(100 * time / whole, 3)} % {bound}" for bound, time in found.time_by_bound)
        lines += ["", f"  time by the bound of each launch: {', '.join(shares)}"]
    return "\n".join(lines)


def _work(p: Prediction) -> str:
    return show_rate(p.work, p.operation).removesuffix("/s")


def _rows(found: ProgramPrediction) -> list[tuple[str, ...]]:
    with_units = any(row.total.unit for row in found.by_kernel)
    rows: list[tuple[str, ...]] = [("", "launches", "W", "Q", "I", "time", "", "bound", *(["unit"] * with_units))]
    for row in found.by_kernel:
        p = row.total
        intensity = p.intensity
        amounts = ("", "") if row.collectives else (_work(p), show_bytes(p.memory.bytes))
        cells = (
            p.kernel,
            group(row.collectives or p.launches),
            *amounts,
            "" if intensity is None else show_number(intensity),
            show_time(p.expected_s),
            f"{show_number(100 * row.share, 3)} %",
            "; ".join(row.bounds),
        )
        rows.append((*cells, *([p.unit or ""] * with_units)))
    return rows
