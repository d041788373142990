"""`roofdsl demo`: the complete workflow on this computer, in under two minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from roofdsl.cli.options import choose, kernels_of, warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import show_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_rate
from roofdsl.measure.measurement import Measurement, save
from roofdsl.measure.other_load import wait_until_calm
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.roofline import draw_roofline
from roofdsl.plot.roofline_points import overlay
from roofdsl.plot.roofs import roofs_of
from roofdsl.store.atomic import check_writable
from roofdsl.tell.blocks import Title
from roofdsl.tell.validation import blocks
from roofdsl.validate.compare import Comparison, on_doubtful_machine
from roofdsl.validate.run import Backend, How, Run, clock_here, compare_all, measure_settled

# Kernel, size on a CPU core, size on a GPU: larger than every cache if memory is the bound, a second or less if
# arithmetic is.
KERNELS = (
    ("vector_add", {"n": 20_000_000}, {"n": 100_000_000}),
    ("gemv", {"n": 8_000}, {"n": 16_384}),
    ("matmul", {"n": 500}, {"n": 4_096}),
    ("minplus", {"n": 500}, {"n": 4_096}),
    ("matmul_blocked", {"n": 288, "b": 48}, {"n": 4_096, "b": 32}),
)

_SPREAD = "the samples of one number spread"


@click.command()
@click.option(
    "-o", "--output", default="roofdsl-demo", show_default=True, metavar="FOLDER", help="The folder for the results."
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
    show_default=True,
    help="What to measure; auto takes the GPU if there is one.",
)
def demo(*, output: str, backend: str) -> None:
    """Characterize this computer, predict and measure five kernels, and draw predictions and measurements.

    This uses the GPU if there is one, otherwise one core of the processor. It takes under two minutes. Measurements
    that other programs disturb are repeated; those that stay disturbed are marked as inconclusive.
    """
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"`{folder}` cannot be created: {error.strerror or error}") from None
    paths = [folder / name for name in ("machine.roof", "results.json", "overlay.svg")]
    for path in paths:
        check_writable(path)
    machine_path, results_path, figure_path = paths
    chosen: Backend = "gpu" if backend == "gpu" or (backend == "auto" and _has_gpu()) else "cpu"
    machine, doubt = _characterize(chosen, machine_path)
    beta = show_bandwidth(float(machine.main_memory.bandwidth_bytes_per_s))
    show_blocks([Title(f"{machine.title}: f64 {show_rate(float(machine.peak('f64').per_s))}, memory {beta}")])
    runs = []
    for name, on_cpu, on_gpu in KERNELS:
        ((kernel, own),) = kernels_of(choose(name), on_gpu if chosen == "gpu" else on_cpu)
        runs.append(Run(kernel, own, "loops" if chosen == "cpu" else "naive"))
    with progress_bar("measure") as tell:
        # Cold, like the model, so that every kernel has traffic and a place on the roofline.
        how = How(chosen, cold=True, budget_s=4, repeats=10, clock_hz=clock_here([machine]))
        inconclusive = partial(_is_inconclusive, runs, machine, doubt)
        measured = measure_settled(runs, how, inconclusive, tell, wait_until_calm, most_s=60)
    save(results_path, measured)
    compared = _compared(runs, measured, machine, doubt)
    show_blocks(blocks(compared))
    types = tuple(dict.fromkeys(c.prediction.type for c in compared if c.prediction.type is not None))
    points = [p for c in compared for p in overlay(c)]
    save_figure(figure_path, draw_roofline([roofs_of(machine, types)], points))
    click.echo(f"\nwritten: {', '.join(map(str, paths))}")
    warn(*(w for m in measured for w in m.warnings))
    if doubt:
        warn(f"the machine's rates are doubtful: {doubt}")
    if any(c.verdict == "inconclusive" for c in compared):
        warn("some comparisons are inconclusive: run the demo again when no other programs are running")


def _compared(runs: Sequence[Run], measured: Sequence[Measurement], machine: Machine, doubt: str) -> list[Comparison]:
    """Compare predictions with measurements. `doubt`: why the machine's rates may be too low, or empty."""
    found = compare_all([r.kernel for r in runs], measured, machine)
    return [on_doubtful_machine(c, doubt) for c in found] if doubt else found


def _is_inconclusive(runs: Sequence[Run], machine: Machine, doubt: str, measured: Measurement) -> bool:
    return any(c.verdict == "inconclusive" for c in _compared(runs, [measured], machine, doubt))


def _has_gpu() -> bool:
    from roofdsl.measure.gpu_driver import find_driver

    try:
        find_driver()
    except CommandError:
        return False
    return True


def _characterize(backend: Backend, path: Path) -> tuple[Machine, str]:
    """This computer as a machine, written to `path`: the GPU, or one core. A disturbed measurement is repeated once. If
    it stays disturbed, the machine comes with the reason, and with noisy numbers if it would be incomplete without
    them.
    """
    from roofdsl.measure.machine_file import save_machine

    with progress_bar("characterize") as tell:
        text, doubt = _machine_text(backend, tell)
        if doubt:
            tell(0.0, "waiting for other programs")
            wait_until_calm()
            text, doubt = _machine_text(backend, tell)
    save_machine(path, text)
    return load_machine(str(path)), doubt


def _machine_text(backend: Backend, tell: Callable[[float, str], None]) -> tuple[str, str]:
    """The text of the machine, and the reason for doubting it."""
    if backend == "gpu":
        from roofdsl.measure.characterize_gpu import characterize_gpu
        from roofdsl.measure.gpu_machine import gpu_machine_text
        from roofdsl.measure.noisy_peaks import trusted_gpu

        gpu = characterize_gpu(True, tell)
        try:
            return gpu_machine_text(trusted_gpu(gpu)), ""
        except CommandError:
            return gpu_machine_text(gpu), _SPREAD
    from roofdsl.measure.characterize_cpu import characterize_cpu
    from roofdsl.measure.machine_file import machine_text
    from roofdsl.measure.noisy_peaks import trusted

    core = characterize_cpu(True, 1, tell)
    try:
        return machine_text(trusted(core)), core.disturbed
    except CommandError:
        return machine_text(core), core.disturbed or _SPREAD
