"""The prediction of a program: the sum, as for a kernel, then its kernels by time."""

from __future__ import annotations

from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import group, show_bytes, show_number, show_operations, show_time
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction
from roofdsl.tell import prediction
from roofdsl.tell.blocks import Block, Gap, figures, line


def blocks(found: ProgramPrediction, machine: Machine | None = None) -> list[Block]:
    """The sum of all launches, the table of kernels sorted by time, and the time by the bounds of the launches."""
    head, *rows = _rows(found)
    out = [*prediction.blocks(found.total, machine), Gap(), line("kernels, by time:"), figures(rows, head, range(1, 7))]
    whole = found.total.bound_s
    if len(found.time_by_bound) > 1 and whole:
        shares = (f"{show_number(100 * time / whole, 3)} % {bound}" for bound, time in found.time_by_bound)
        out += [Gap(), line(f"time by the bound of each launch: {', '.join(shares)}")]
    return out


def _work(p: Prediction) -> str:
    return show_operations(p.work, p.operation)


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
            show_time(p.bound_s),
            f"{show_number(100 * row.share, 3)} %",
            "; ".join(row.bounds),
        )
        rows.append((*cells, *([p.unit or ""] * with_units)))
    return rows
