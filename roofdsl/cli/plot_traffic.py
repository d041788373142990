"""`roofdsl plot traffic`."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.look import figure_option, look_options
from roofdsl.cli.options import choose_kernels, kernels_of, set_option, size_option, traffic_option, warn
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.plot.look import Look
from roofdsl.plot.traffic import check_name, save_traffic
from roofdsl.plot.traffic_content import traffic_content


@click.command()
@click.argument("file")
@figure_option
@set_option
@traffic_option
@size_option("--line", "Size of a line; without one, that of the machine's last cache, else an element.")
@click.option("--machine", "machine_name", metavar="NAME|FILE[:NAME]", help="Mark the caches of a machine.")
@look_options()
def traffic(
    *,
    file: str,
    output: str,
    settings: dict[str, int],
    traffic: Traffic | None,
    line: int | None,
    machine_name: str | None,
    look: Look,
) -> None:
    """Draw Q(Z) of one kernel: exact, by its closed form where there is one, its plateaus, and simulated points."""
    from roofdsl.loops.numbers import numbers

    check_name(Path(output))
    machine = load_machine(machine_name) if machine_name is not None else None
    chosen = choose_kernels(file, "the figure shows a kernel")
    kernels = kernels_of(chosen, settings)
    if len(kernels) != 1:
        raise CommandError("the figure shows one kernel", f"pick one of {', '.join(chosen.kernels)}")
    kernel, own = kernels[0]
    values = numbers(kernel, own)
    convention: Traffic = traffic or kernel.traffic or "load_store"
    content = traffic_content(kernel, values, convention, line, machine=machine)
    save_traffic(Path(output), content, look=look)
    if content.note and not content.plateaus:
        warn(f"no plateaus in closed form: {content.note}")
    if content.curve_note:
        warn(f"the curve is not drawn: {content.curve_note}")
