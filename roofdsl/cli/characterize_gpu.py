"""`roofdsl characterize --backend gpu`."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import show_blocks
from roofdsl.measure.characterize_gpu import characterize_gpu
from roofdsl.measure.gpu_machine import gpu_machine_text
from roofdsl.measure.machine_file import save_machine
from roofdsl.measure.trust import trusted_gpu
from roofdsl.plot.look import Look
from roofdsl.tell.characterization import of_gpu


def run(
    output: Path, plot: Path | None, quick: bool, name: str | None, *, keep_noisy: bool = False, look: Look
) -> None:
    """Measures the GPU, writes the machine, prints what it has, and draws the sweep where asked."""
    with progress_bar("characterize") as tell:
        found = characterize_gpu(quick, tell)
    if not keep_noisy:
        found = trusted_gpu(found)
    save_machine(output, gpu_machine_text(found, name))
    show_blocks(of_gpu(found))
    click.echo(f"written to {output}")
    if plot is not None:
        from roofdsl.plot.sweep import gpu_sweep_figure, save_sweep

        save_sweep(plot, gpu_sweep_figure(found), look=look)
    for note in found.notes:
        warn(note)
