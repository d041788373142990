"""`roofdsl characterize`: measures this machine's ceilings and writes them as a machine file."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import show_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_size
from roofdsl.measure.bandwidth_curve import STREAMS
from roofdsl.measure.characterize_cpu import Characterization, characterize_cpu
from roofdsl.measure.characterize_gpu import GpuCharacterization, characterize_gpu
from roofdsl.measure.gpu_machine import gpu_machine_text
from roofdsl.measure.machine_file import machine_text, save_machine, to_machine
from roofdsl.measure.noisy_peaks import trusted, trusted_gpu
from roofdsl.measure.timing import usable_cores
from roofdsl.plot.bandwidth_curve import Curve, Mark, SweepFigure, draw_sweep
from roofdsl.plot.board import check_format, save_figure
from roofdsl.plot.look import Look
from roofdsl.store.atomic import check_writable
from roofdsl.tell.characterization import of_cpu, of_gpu


@click.command()
@click.option(
    "--backend", type=click.Choice(["cpu", "gpu"]), default="cpu", show_default=True, help="What to characterize."
)
@click.option("-o", "--output", required=True, metavar="MACHINE.roof", help="The machine file to write.")
@click.option("--plot", metavar="OUT.svg|png|pdf", help="Draw bandwidth against working set.")
@look_options("plot")
@click.option("--quick", is_flag=True, help="Take about a minute, with fewer sizes, types and samples.")
@click.option("--cores", type=click.IntRange(min=1), help="Number of cores to use; by default, all available ones.")
@click.option("--one-core", metavar="MACHINE.roof", help="Also write a one-core machine from the same run.")
@click.option("--name", metavar="NAME", help="The machine's name; by default, the processor's.")
@click.option("--energy", is_flag=True, help="Also fit constant power and energies, where this computer counts them.")
@click.option("--keep-noisy", is_flag=True, help="Write all numbers, however far their samples spread.")
def characterize(
    *,
    backend: str,
    output: str,
    plot: str | None,
    look: Look,
    quick: bool,
    cores: int | None,
    one_core: str | None,
    name: str | None,
    energy: bool,
    keep_noisy: bool,
) -> None:
    """Measure this machine's peaks, bandwidths and call overhead, and write them as a machine file.

    Other running programs lower the numbers. Numbers that spread, or that contradict other numbers, are measured again.
    A peak that still spreads by more than 25 % is left out. If a bandwidth or the peak of fused operations spreads that
    much, no file is written.
    """
    targets = [Path(p) for p in (output, plot, one_core) if p is not None]
    for path in targets:
        check_writable(path)
    if name is not None and not (name.isidentifier() and name.isascii()):
        message = f"`{name}` cannot name a machine: names have letters, digits and underscores, and no digit first"
        raise click.BadParameter(message, param_hint="--name")
    for option, text in (("-o", output), ("--one-core", one_core)):
        if text is not None and not text.endswith(".roof"):
            raise click.BadParameter(f"`{text}` does not end in .roof", param_hint=option)
    if plot is not None:
        check_format(Path(plot))
    if backend == "gpu" and energy:
        help = "`measure --backend gpu --energy` reads those of kernels"
        raise CommandError("the energies of a GPU's operations and bytes are not characterized", help)
    if backend == "gpu" and (cores is not None or one_core is not None):
        raise click.UsageError("--cores and --one-core are for CPUs")
    if backend == "gpu":
        figure = Path(plot) if plot is not None else None
        _of_gpu(Path(output), figure, quick, name, keep_noisy=keep_noisy, look=look)
        return
    if cores is not None and cores > len(usable_cores()):
        raise CommandError(f"{cores} cores were requested, but this process can use only {len(usable_cores())}")
    with progress_bar("characterize") as tell:
        measured = characterize_cpu(quick, cores, tell, energy=energy)
    found = measured if keep_noisy else trusted(measured)
    save_machine(Path(output), machine_text(found, name))
    show_blocks(of_cpu(found))
    click.echo(f"{to_machine(found, name).name} written to {output}")
    if one_core is not None:
        alone = measured.alone() if keep_noisy else trusted(measured.alone())
        own = f"{name}_1_core" if name else None
        save_machine(Path(one_core), machine_text(alone, own))
        click.echo(f"{to_machine(alone, own).name} written to {one_core}")
    if plot is not None:
        save_figure(Path(plot), draw_sweep(sweep_figure(found), look=look))
    for note in found.notes:
        warn(note)


def _of_gpu(
    output: Path, plot: Path | None, quick: bool, name: str | None, *, keep_noisy: bool = False, look: Look
) -> None:
    """Measure the GPU, write the machine, print a summary, and draw the sweep if requested."""

    with progress_bar("characterize") as tell:
        found = characterize_gpu(quick, tell)
    if not keep_noisy:
        found = trusted_gpu(found)
    save_machine(output, gpu_machine_text(found, name))
    show_blocks(of_gpu(found))
    click.echo(f"written to {output}")
    if plot is not None:
        save_figure(plot, draw_sweep(gpu_sweep_figure(found), look=look))
    for note in found.notes:
        warn(note)


# ---- the figure ----


def sweep_figure(found: Characterization) -> SweepFigure:
    """The curves of all cores together, thin ones for a single core beside them, and the levels of the machine.

    Working sets are per core, so a private cache ends at its own capacity, and a shared one at its share.
    """
    sweeps = [(found.all_cores, False)]
    if found.cores > 1:
        sweeps.append((found.one_core, True))
    curves = []
    for sweep, thin in sweeps:
        who = "one core" if sweep.cores == 1 else f"{sweep.cores} cores"
        for pattern in STREAMS:
            points = tuple((float(p.working_set_bytes), p.bytes_per_s) for p in sweep.of(pattern))
            curves.append(Curve(f"{pattern.name}, {who}", points, thin))
    marks = []
    for level in found.levels:
        copies = 1 if level.reported is None else min(level.reported.copies, found.cores)
        end = None if level is found.levels[-1] else level.capacity_bytes * copies / found.cores
        marks.append(Mark(f"{level.name} {show_size(level.capacity_bytes)}", end, level.all_cores.bytes_per_s))
    marks[-1] = Mark(found.levels[-1].name, None, found.levels[-1].all_cores.bytes_per_s)
    per = "Working set per core" if found.cores > 1 else "Working set"
    return SweepFigure(f"{found.cpu.name}, {found.when[:10]}", per, tuple(curves), tuple(marks))


def gpu_sweep_figure(found: GpuCharacterization) -> SweepFigure:
    """The same for a GPU, whose working sets are those of all multiprocessors together."""
    curves = [
        Curve(p.name, tuple((float(x.working_set_bytes), x.bytes_per_s) for x in found.sweep.of(p))) for p in STREAMS
    ]
    cache, memory = found.levels
    marks = (
        Mark(f"{cache.name} {show_size(cache.capacity_bytes)}", cache.capacity_bytes, cache.bandwidth.bytes_per_s),
        Mark(memory.name, None, memory.bandwidth.bytes_per_s),
    )
    return SweepFigure(f"{found.name}, {found.when[:10]}", "Working set", tuple(curves), marks)
