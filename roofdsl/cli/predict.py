"""`roofdsl predict`: the bound on the time of kernels on a machine, and the time that their code should take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Literal

import click

from roofdsl.cli.options import (
    choose,
    in_core_option,
    json_option,
    kernels_of,
    latency_option,
    machine_option,
    math_option,
    set_option,
    show_json,
    size_option,
    traffic_option,
    warn,
)
from roofdsl.cli.text import show_blocks
from roofdsl.codegen.math_mode import Math
from roofdsl.counts.traffic_at import OutOfReach
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.energy_roofline import require_energy
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.in_core_time import Code, Model
from roofdsl.predict.kernel import predict as predict_kernel
from roofdsl.predict.occupancy import Block
from roofdsl.predict.options import Accesses, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.tell import prediction, program_prediction


@click.command()
@click.argument("file")
@machine_option
@set_option
@traffic_option
@click.option("--unit", type=click.Choice(["tensor", "tensor_sparse"]), help="Run contractions on matrix units.")
@click.option(
    "--ceiling",
    "ceilings",
    multiple=True,
    metavar="NAME",
    help="A named ceiling of the machine that limits the code (repeatable).",
)
@click.option(
    "--levels", type=click.Choice(["all", "memory"]), default="all", help="Predict all levels, or only the memory."
)
@click.option(
    "--accesses",
    type=click.Choice(["written", "compiled"]),
    default="written",
    show_default=True,
    help="Accesses to the first cache: as written, or as compiled, with values kept in registers through inner loops.",
)
@click.option("--warm", is_flag=True, help="Start with the caches as a previous launch left them.")
@click.option("--sets", is_flag=True, help="Simulate each cache with its sets to count traffic.")
@click.option(
    "--data",
    "given",
    multiple=True,
    metavar="MEMORY|NAME,...=FILE",
    help="MEMORY: place all data there, reached over links. NAME,...=FILE: values of index arrays, as for derive.",
)
@click.option("--threads", type=click.IntRange(1), help="Threads in a block; also computes the occupancy.")
@click.option("--registers", type=click.IntRange(1), help="32-bit registers per thread.")
@size_option("--shared", "Shared memory per block.")
@size_option("--in-flight", "Bytes that each thread keeps in flight; adds latency ceilings.")
@latency_option
@click.option("--cores", type=click.IntRange(1), metavar="N", help="Run the kernel on N cores of a CPU.")
@in_core_option
@math_option
@click.option("--energy", is_flag=True, help="Also predict energy and power, from what the machine states of them.")
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
    accesses: Accesses,
    warm: bool,
    sets: bool,
    given: tuple[str, ...],
    threads: int | None,
    registers: int | None,
    shared: int | None,
    in_flight: int | None,
    latency: Fraction,
    cores: int | None,
    in_core: Model,
    math: Math,
    energy: bool,
    as_json: bool,
) -> None:
    """Predict the time of the kernels or programs of FILE (or FILE:NAME, or a shipped name) on a machine."""
    machine = load_machine(machine_name)
    chosen = choose(file)
    places, values = [g for g in given if "=" not in g], [g for g in given if "=" in g]
    if len(places) > 1:
        raise click.UsageError(f"the data lie in one memory: --data {places[0]} or --data {places[1]}")
    data = places[0] if places else None
    if threads is None and (registers or shared or in_flight):
        raise click.UsageError("the occupancy needs the number of threads in a block: add --threads 128")
    if energy:
        require_energy(machine)
    block = None if threads is None else Block(threads, registers or 0, shared or 0)
    options = Options(
        traffic, unit, ceilings, levels, data, warm, block, in_flight, accesses, latency, sets, conflicts=True,
        code=Code(in_core, "numba", math), energy=energy,
    )  # fmt: skip
    if cores is not None and chosen.programs:
        raise click.UsageError("--cores predicts kernels: name one as FILE:KERNEL")
    if values and chosen.programs:
        raise click.UsageError("--data gives values to one kernel: name it as FILE:KERNEL")
    each = kernels_of(chosen, settings, values)
    with _naming_sol():
        if cores is None:
            kernels = [predict_kernel(kernel, own, machine, options) for kernel, own in each]
        else:
            from roofdsl.predict.on_cores import on_cores

            kernels = [on_cores(kernel, own, machine, cores, options) for kernel, own in each]
        programs = [predict_launches(chosen.checked, name, settings, machine, options) for name in chosen.programs]
    _show(kernels, programs, machine, as_json)


@contextmanager
def _naming_sol() -> Iterator[None]:
    """Gives a further remedy for bytes that take too long to count. Raises what is raised inside."""
    try:
        yield
    except OutOfReach as error:
        help = f"{error.help}; `roofdsl sol` has a time as written, exactly or at most, for many such kernels"
        raise CommandError(error.message, help) from None


def _show(
    kernels: Sequence[Prediction], programs: Sequence[ProgramPrediction], machine: Machine, as_json: bool
) -> None:
    if as_json:
        documents = [p.to_json() for p in kernels] + [p.to_json() for p in programs]
        show_json(documents[0] if len(documents) == 1 else {"schema": "roofdsl.predict/1", "kernels": documents})
    else:
        told = [prediction.blocks(p, machine) for p in kernels]
        show_blocks(*told, *(program_prediction.blocks(p, machine) for p in programs))
    warn(*(w for p in (*kernels, *(q.total for q in programs)) for w in p.warnings))
