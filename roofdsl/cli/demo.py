"""`roofdsl demo`: the whole program on this computer, in under two minutes."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import choose, kernels_of, warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import bold
from roofdsl.cli.validate_text import table
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_rate
from roofdsl.measure.atomic import check_writable
from roofdsl.measure.results import save
from roofdsl.plot.content import overlay, roofs_of
from roofdsl.plot.roofline import save_roofline
from roofdsl.validate.run import Backend, How, Run, compare_all, measure_runs

# Kernel, size on a CPU core, size on a GPU: out of every cache where memory is the bound, a second or less where
# arithmetic is.
KERNELS = (
    ("vector_add", {"n": 20_000_000}, {"n": 100_000_000}),
    ("gemv", {"n": 8_000}, {"n": 16_384}),
    ("matmul", {"n": 500}, {"n": 4_096}),
    ("minplus", {"n": 500}, {"n": 4_096}),
    ("matmul_blocked", {"n": 480, "b": 48}, {"n": 4_096, "b": 32}),
)


@click.command()
@click.option("-o", "--output", default="roofdsl-demo", show_default=True, metavar="FOLDER", help="Where files go.")
@click.option("--backend", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", show_default=True)
def demo(*, output: str, backend: str) -> None:
    """Characterize this computer, predict and measure five kernels, and draw the measurements on the model.

    Takes the GPU where there is one, else one core of the processor. Under two minutes.
    """
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"`{folder}` cannot be made: {error.strerror or error}") from None
    paths = [folder / name for name in ("machine.roof", "results.json", "overlay.svg")]
    for path in paths:
        check_writable(path)
    machine_path, results_path, figure_path = paths
    chosen: Backend = "gpu" if backend == "gpu" or (backend == "auto" and _has_gpu()) else "cpu"
    machine = _characterize(chosen, machine_path)
    beta = show_bandwidth(float(machine.main_memory.bandwidth_bytes_per_s))
    click.echo(bold(f"{machine.title}: f64 {show_rate(float(machine.peak('f64').per_s))}, memory {beta}"))
    runs = []
    for name, on_cpu, on_gpu in KERNELS:
        ((kernel, own),) = kernels_of(choose(name), on_gpu if chosen == "gpu" else on_cpu)
        runs.append(Run(kernel, own, "loops" if chosen == "cpu" else "naive"))
    with progress_bar("measure") as tell:
        # Cold, as the model starts: so that every kernel has a traffic and a place on the roofline.
        measured = measure_runs(runs, How(chosen, cold=True, budget_s=4, repeats=10), tell)
    save(results_path, measured)
    compared = compare_all([r.kernel for r in runs], measured, machine)
    click.echo(table(compared))
    types = tuple(dict.fromkeys(c.prediction.type for c in compared if c.prediction.type is not None))
    save_roofline(figure_path, [roofs_of(machine, types)], [p for c in compared for p in overlay(c)])
    click.echo(f"\nwritten: {', '.join(map(str, paths))}")
    for message in dict.fromkeys(w for m in measured for w in m.warnings):
        warn(message)


def _has_gpu() -> bool:
    from roofdsl.measure.gpu_driver import find_driver

    try:
        find_driver()
    except CommandError:
        return False
    return True


def _characterize(backend: Backend, path: Path) -> Machine:
    """This computer as a machine, written to `path`: the GPU, or one core."""
    from roofdsl.measure.machine_file import machine_text, save_machine

    with progress_bar("characterize") as tell:
        if backend == "gpu":
            from roofdsl.measure.characterize_gpu import characterize_gpu
            from roofdsl.measure.gpu_machine import gpu_machine_text

            text = gpu_machine_text(characterize_gpu(True, tell))
        else:
            from roofdsl.measure.characterize_cpu import characterize_cpu

            text = machine_text(characterize_cpu(True, 1, tell))
    save_machine(path, text)
    return load_machine(str(path))
