"""The prediction of a program: the sum, as for a kernel, then its kernels by time."""

from __future__ import annotations

from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import group, show_bytes, show_energy, show_number, show_operations, show_time
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction
from roofdsl.tell import prediction
from roofdsl.tell.blocks import Block, Gap, figures, line


def blocks(found: ProgramPrediction, machine: Machine | None = None) -> list[Block]:
    """The sum of all launches, the table of kernels sorted by time, and the time by the bounds of the launches."""
    head, *rows = _rows(found)
    numbers = range(1, head.index("bound"))
    out = [*prediction.blocks(found.total, machine), Gap(), line("kernels, by time:"), figures(rows, head, numbers)]
    whole = found.total.bound_s
    taken = [(bound, time) for bound, time in found.time_by_bound if time]
    if len(taken) > 1:
        shares = (f"{show_number(100 * time / whole, 3)} % {bound}" for bound, time in taken)
        out += [Gap(), line(f"time by the bound of each launch: {', '.join(shares)}")]
    return out


def _work(p: Prediction) -> str:
    return show_operations(p.work, p.operation)


def _rows(found: ProgramPrediction) -> list[tuple[str, ...]]:
    with_units = any(row.total.unit for row in found.by_kernel)
    energies = any(row.total.energy for row in found.by_kernel)
    expected = any(row.total.expected for row in found.by_kernel)
    more = (*(["energy"] * energies), "bound", *(["unit"] * with_units))
    rows: list[tuple[str, ...]] = [("", "launches", "W", "Q", "I", "time", "", *(["expected"] * expected), *more)]
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
            *(["" if p.expected is None else show_time(p.expected.expected_s)] * expected),
            *(["" if p.energy is None else show_energy(p.energy.total_j)] * energies),
            "; ".join(row.bounds),
        )
        rows.append((*cells, *([p.unit or ""] * with_units)))
    return rows
