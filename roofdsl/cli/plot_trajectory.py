"""`roofdsl plot trajectory`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import machine_option, set_option, traffic_option, type_option, unit_option
from roofdsl.cli.plot_hierarchy import predicted
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.types import TYPES
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.plot.board import check_format
from roofdsl.plot.cited import measured_trajectory
from roofdsl.plot.content import Ceilings
from roofdsl.plot.levels_content import common_sizes, kernels_of, level_roofs
from roofdsl.plot.look import Look
from roofdsl.plot.trajectory import Step, Trajectory, save_trajectory
from roofdsl.predict.kernel import Options
from roofdsl.predict.time import Prediction
from roofdsl.profiler.cited import points_named


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
@machine_option
@click.option("-o", "--output", required=True, metavar="OUT.svg|png|pdf", help="Where to; the ending is the format.")
@set_option
@click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One step per size, in this order.")
@click.option("--level", "levels", multiple=True, metavar="NAME", help="Intensities at these levels; the memory's.")
@click.option("--points", multiple=True, metavar="POINTS.json|NAME", help="Measured points, or a shipped citation.")
@traffic_option
@unit_option
@type_option()
@click.option(
    "--ceilings", type=click.Choice(["few", "all", "none"]), default="few", show_default=True,
    help="Which ceilings: those of what is shown that can be told apart, all, or none.",
)  # fmt: skip
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
    steps = [Step(kernel, float(p.work)) for kernel, p in zip(kernels_of(found), found, strict=True)]
    if not over_sizes:
        return [Trajectory("versions", tuple(steps))]
    pairs = sorted(zip(found, steps, strict=True), key=lambda pair: [p.kernel for p in found].index(pair[0].kernel))
    return [
        Trajectory(name, tuple(step for _, step in group))
        for name, group in groupby(pairs, lambda pair: pair[0].kernel)
    ]
