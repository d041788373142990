"""`roofdsl plot hierarchy` and `plot trajectory`: kernels under the bandwidths of all levels of a machine."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import click

from roofdsl.cli.look import ceilings_option, figure_option, look_options
from roofdsl.cli.options import (
    choose_all,
    kernels_of,
    machine_option,
    set_option,
    size_option,
    traffic_option,
    type_option,
    unit_option,
    warn,
)
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.types import TYPES
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.plot.board import check_format
from roofdsl.plot.cited import measured_steps, measured_trajectory
from roofdsl.plot.content import Ceilings
from roofdsl.plot.hierarchy import save_hierarchy
from roofdsl.plot.labels import joined
from roofdsl.plot.levels_content import Kernel, common_sizes, level_roofs
from roofdsl.plot.levels_content import kernels_of as kernels_of_predictions
from roofdsl.plot.look import Look
from roofdsl.plot.trajectory import Step, Trajectory, save_trajectory
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.occupancy import Block
from roofdsl.predict.program import predict_program
from roofdsl.predict.time import Prediction
from roofdsl.profiler.cited import points_named


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
@machine_option
@figure_option
@set_option
@click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One kernel per size (repeatable).")
@traffic_option
@unit_option
@type_option()
@click.option("--points", multiple=True, metavar="POINTS.json|NAME", help="Measured points, or a shipped citation.")
@click.option("--threads", type=click.IntRange(1), help="Threads of a block, for the latency ceilings.")
@click.option("--registers", type=click.IntRange(1), help="32-bit registers of a thread.")
@size_option("--shared", "Shared memory of a block.")
@size_option("--in-flight", "Bytes each thread keeps in flight.")
@ceilings_option
@look_options()
def hierarchy(
    *,
    files: tuple[str, ...],
    machine_name: str,
    output: str,
    settings: dict[str, int],
    sizes: tuple[str, ...],
    traffic: Traffic | None,
    unit: str | None,
    types: tuple[str, ...],
    points: tuple[str, ...],
    threads: int | None,
    registers: int | None,
    shared: int | None,
    in_flight: int | None,
    ceilings: Ceilings,
    look: Look,
) -> None:
    """Draw kernels with a symbol for every memory level, under the bandwidths of all levels of a machine."""
    check_format(Path(output))
    machine = load_machine(machine_name)
    if threads is None and (registers or shared or in_flight):
        raise click.UsageError("the occupancy needs the threads of a block: add --threads 128")
    block = None if threads is None else Block(threads, registers or 0, shared or 0)
    predictions = predicted(
        files, machine, settings, sizes, Options(traffic, unit, block=block, in_flight_bytes=in_flight)
    )
    shown = types or tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))
    units = tuple(dict.fromkeys(p.unit for p in predictions if p.unit is not None))
    latency = dict.fromkeys(found.ceiling() for p in predictions for found in p.latency if found.binds)
    title = "\n".join(filter(None, [machine.title or machine.name, common_sizes(predictions)]))
    kernels = with_work(predictions)
    for name in points:
        measured = [step.kernel for step in measured_steps(points_named(name))]
        if bare := [kernel.label for kernel in measured if not kernel.intensities]:
            warn(
                f"{joined(bare)} of {name} left out: no bytes of any level are known, and so no intensity; "
                f"`plot trajectory --points {name}` draws rate over work"
            )
        kernels += [kernel for kernel in measured if kernel.intensities]
    roofs = level_roofs(machine, shown, units, tuple(latency))
    save_hierarchy(Path(output), roofs, kernels, title, look=look, ceilings=ceilings)


def predicted(
    files: tuple[str, ...], machine: Machine, settings: dict[str, int], sizes: tuple[str, ...], options: Options
) -> list[Prediction]:
    """A prediction for every kernel or program of `files` at every size; warnings go to standard error."""
    found: list[Prediction] = []
    for chosen, each in choose_all(files, settings, sizes):
        for given in each:
            found += [predict(k, own, machine, options) for k, own in kernels_of(chosen, given)]
            found += [predict_program(chosen.checked, p, given, machine, options) for p in chosen.programs]
    for message in dict.fromkeys(w for p in found for w in p.warnings):
        warn(message)
    return found


def with_work(predictions: list[Prediction]) -> list[Kernel]:
    """The kernels that have an intensity. Raises CommandError where there are predictions and none of them has."""
    kernels = kernels_of_predictions(predictions)
    for p in predictions:
        if not p.work:
            warn(f"{p.kernel} has no operations, and so no intensity to draw it at")
    if predictions and not kernels:
        raise CommandError("none of these kernels has operations", "`roofdsl plot roofline` shows their bandwidth")
    return kernels


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
@machine_option
@figure_option
@set_option
@click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One step per size, in this order.")
@click.option(
    "--level", "levels", multiple=True, metavar="NAME", help="Show intensities at these levels; by default the memory."
)
@click.option("--points", multiple=True, metavar="POINTS.json|NAME", help="Measured points, or a shipped citation.")
@traffic_option
@unit_option
@type_option()
@ceilings_option
@look_options()
def trajectory(
    *,
    files: tuple[str, ...],
    machine_name: str,
    output: str,
    settings: dict[str, int],
    sizes: tuple[str, ...],
    levels: tuple[str, ...],
    points: tuple[str, ...],
    traffic: Traffic | None,
    unit: str | None,
    types: tuple[str, ...],
    ceilings: Ceilings,
    look: Look,
) -> None:
    """Draw a kernel over sizes (--at), or several versions of a code, one after another, joined by arrows."""
    check_format(Path(output))
    machine = load_machine(machine_name)
    documents = {name: points_named(name) for name in points}
    cited = [measured_trajectory(document, Path(name).stem) for name, document in documents.items()]
    known = [*(c.name for c in machine.caches), machine.main_memory.name]
    wrong = next((name for name in levels if name not in known), None)
    if wrong is not None:
        raise CommandError(f"machine {machine.name} has no level {wrong}", f"its levels are {', '.join(known)}")
    found = predicted(files, machine, settings, sizes, Options(traffic, unit))
    own = [p.type for p in found] + [w.type for d in documents.values() for p in d.points for w in p.work or ()]
    shown = types or tuple(dict.fromkeys(t for t in own if t in TYPES))
    units = tuple(dict.fromkeys(p.unit for p in found if p.unit is not None))
    title = "\n".join(filter(None, [machine.title or machine.name, common_sizes(found)]))
    roofs = level_roofs(machine, shown, units)
    paths = [*_trajectories(found, len(sizes) > 1), *cited]
    save_trajectory(Path(output), roofs, paths, levels, title, look=look, ceilings=ceilings)


def _trajectories(found: list[Prediction], over_sizes: bool) -> list[Trajectory]:
    """One trajectory for each kernel over its sizes, or one over all the versions given."""
    found = [p for p in found if p.work]
    if not found:
        return []
    steps = [Step(kernel, float(p.work)) for kernel, p in zip(kernels_of_predictions(found), found, strict=True)]
    if not over_sizes:
        return [Trajectory("versions", tuple(steps))]
    pairs = sorted(zip(found, steps, strict=True), key=lambda pair: [p.kernel for p in found].index(pair[0].kernel))
    return [
        Trajectory(name, tuple(step for _, step in group))
        for name, group in groupby(pairs, lambda pair: pair[0].kernel)
    ]
