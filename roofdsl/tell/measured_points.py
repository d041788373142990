"""Measured points of a profiler, or of a document."""

from __future__ import annotations

from roofdsl.machine.quantities import show_bytes, show_number, show_operations, show_rate, show_time
from roofdsl.profiler.measured_points import Points
from roofdsl.tell.blocks import Block, figures


def blocks(found: Points) -> list[Block]:
    """One line for each point: time, work, rate, bytes and intensity at every level."""
    levels = list(dict.fromkeys(x.name for p in found.points for x in p.levels))
    head = ("kernel", "launches", "time", "work", "rate", "fused", *(t for n in levels for t in (n, f"I {n}")))
    rows = []
    for p in found.points:
        moved = {x.name: x.bytes for x in p.levels}
        cells = [p.label, str(p.launches), "" if p.time_s is None else show_time(p.time_s)]
        cells.append("" if p.work_flops is None else show_operations(p.work_flops))
        cells.append("" if p.flops_per_s is None else show_rate(p.flops_per_s))
        cells.append("" if p.fma_fraction is None else f"{100 * p.fma_fraction:.1f} %")
        for name in levels:
            intensity = p.intensity(name)
            cells.append(show_bytes(moved[name]) if name in moved else "")
            cells.append("" if intensity is None else show_number(intensity))
        rows.append(tuple(cells))
    return [figures(rows, head, range(1, len(head)), depth=0)]
