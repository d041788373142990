"""`roofdsl characterize --backend gpu`."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import columns
from roofdsl.machine.quantities import show_bandwidth, show_rate, show_size, show_time
from roofdsl.measure.characterize_gpu import GpuCharacterization, characterize_gpu
from roofdsl.measure.gpu_machine import gpu_machine_text
from roofdsl.measure.machine_file import save_machine
from roofdsl.measure.trust import trusted_gpu
from roofdsl.plot.look import Look


def run(
    output: Path, plot: Path | None, quick: bool, name: str | None, *, keep_noisy: bool = False, look: Look
) -> None:
    """Measures the GPU, writes the machine, prints what it has, and draws the sweep where asked."""
    with progress_bar("characterize") as tell:
        found = characterize_gpu(quick, tell)
    if not keep_noisy:
        found = trusted_gpu(found)
    save_machine(output, gpu_machine_text(found, name))
    click.echo(_report(found))
    click.echo(f"written to {output}")
    if plot is not None:
        from roofdsl.plot.sweep import gpu_sweep_figure, save_sweep

        save_sweep(plot, gpu_sweep_figure(found), look=look)
    for note in found.notes:
        warn(note)


def _report(found: GpuCharacterization) -> str:
    rows = [["peak", "rate", "spread"]]
    for peak in found.peaks:
        unit = "OP" if peak.type.startswith("i") else "FLOP"
        rows.append([f"{peak.type} {peak.cls}", show_rate(peak.rate.per_s, unit), f"{peak.rate.spread:.0%}"])
    lines = columns(rows, right=(1, 2))
    rows = [["level", "size", "bandwidth"]]
    rows += [[v.name, show_size(v.capacity_bytes), show_bandwidth(v.bandwidth.bytes_per_s)] for v in found.levels]
    return "\n".join([*lines, "", *columns(rows, right=(1, 2)), "", f"a launch {show_time(found.launch_s)}", ""])
