"""The measurements of a machine: peaks, levels, and the cost of a call or a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roofdsl.machine.model import operation
from roofdsl.machine.quantities import show_bandwidth, show_energy_per, show_power, show_rate, show_size, show_time
from roofdsl.tell.blocks import Block, Gap, figures, line

if TYPE_CHECKING:
    from roofdsl.measure.characterize_cpu import Characterization
    from roofdsl.measure.characterize_gpu import GpuCharacterization


def of_cpu(found: Characterization) -> list[Block]:
    """Tables of peaks and levels, for all cores and for one core."""
    from roofdsl.measure.machine_file import approximate_size

    cores = f"{found.cores} core{'s' if found.cores > 1 else ''}"
    peaks = []
    for peak in found.peaks:
        rates = [show_rate(r.per_s, operation(peak.type)) for r in (peak.all_cores, peak.one_core)]
        peaks.append([f"{peak.type} {peak.cls}", *rates])
    levels = []
    for level in found.levels:
        seen = "" if level.seen_bytes is None else approximate_size(level.seen_bytes)
        rates = [show_bandwidth(w.bytes_per_s) for w in (level.all_cores, level.one_core)]
        levels.append([level.name, show_size(level.capacity_bytes), *rates, seen])
    return [
        figures(peaks, ("peak", cores, "one core"), (1, 2), depth=0),
        Gap(),
        figures(levels, ("level", "size", cores, "one core", "read off the curve"), (1, 2, 3, 4), depth=0),
        Gap(),
        line(f"a call {show_time(found.call_s)}", 0),
        Gap(),
        *_energy(found),
    ]


def _energy(found: Characterization) -> list[Block]:
    """The fitted energies, and how well they describe the powers that were read."""
    if found.energy is None:
        return []
    fit, operations = found.energy.fit, {p.type for p in found.peaks}
    rows = [("constant power", show_power(fit.constant_w)), ("idle", show_power(found.energy.idle_w))]
    for name, joules in fit.energies_j.items():
        rows.append((name, show_energy_per(joules, operation(name) if name in operations else "B")))
    error = f"mean error {fit.mean_error:.1%}, greatest {fit.greatest_error:.1%}, {fit.points} loops"
    return [figures(rows, ("energy", ""), (1,), depth=0), line(f"({error}; {found.energy.counter})"), Gap()]


def of_gpu(found: GpuCharacterization) -> list[Block]:
    """Tables of peaks and levels."""
    peaks = [
        [f"{p.type} {p.cls}", show_rate(p.rate.per_s, operation(p.type)), f"{p.rate.spread:.0%}"] for p in found.peaks
    ]
    levels = [[v.name, show_size(v.capacity_bytes), show_bandwidth(v.bandwidth.bytes_per_s)] for v in found.levels]
    return [
        figures(peaks, ("peak", "rate", "spread"), (1, 2), depth=0),
        Gap(),
        figures(levels, ("level", "size", "bandwidth"), (1, 2), depth=0),
        Gap(),
        line(f"a launch {show_time(found.launch_s)}", 0),
        Gap(),
    ]
