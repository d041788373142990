"""`roofdsl predict`: expected time and rate of kernels on a machine."""

from __future__ import annotations

from typing import Literal

import click

from roofdsl.cli.options import (
    choose,
    json_option,
    kernels_of,
    machine_option,
    set_option,
    show_json,
    traffic_option,
    warn,
)
from roofdsl.cli.predict_text import describe
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import Options
from roofdsl.predict.kernel import predict as predict_kernel
from roofdsl.predict.program import predict_program


@click.command()
@click.argument("file")
@machine_option
@set_option
@traffic_option
@click.option("--unit", type=click.Choice(["tensor", "tensor_sparse"]), help="Run a contraction on matrix units.")
@click.option("--ceiling", "ceilings", multiple=True, metavar="NAME", help="A named ceiling the code cannot pass.")
@click.option("--levels", type=click.Choice(["all", "memory"]), default="all", help="All levels, or the memory alone.")
@click.option("--data", metavar="MEMORY", help="The further memory in which all data lie, reached over links.")
@json_option
def predict(
    *,
    file: str,
    machine_name: str,
    settings: dict[str, int],
    traffic: Traffic | None,
    unit: str | None,
    ceilings: tuple[str, ...],
    levels: Literal["all", "memory"],
    data: str | None,
    as_json: bool,
) -> None:
    """Predict the time of the kernels of FILE (or FILE:KERNEL, or a shipped kernel's name) on a machine."""
    machine = load_machine(machine_name)
    chosen = choose(file)
    options = Options(traffic, unit, ceilings, levels, data)
    predictions = [predict_kernel(kernel, own, machine, options) for kernel, own in kernels_of(chosen, settings)]
    predictions += [predict_program(chosen.checked, name, settings, machine, options) for name in chosen.programs]
    if as_json:
        documents = [p.to_json() for p in predictions]
        show_json(documents[0] if len(documents) == 1 else {"schema": "roofdsl.predict/1", "kernels": documents})
    else:
        click.echo("\n\n".join(describe(p, machine) for p in predictions))
    for message in dict.fromkeys(w for p in predictions for w in p.warnings):
        warn(message)
