"""`roofdsl plot roofline`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from roofdsl.cli.look import ceilings_option, figure_option, look_options
from roofdsl.cli.options import choose_all, kernels_of, set_option, traffic_option, type_option, unit_option, warn
from roofdsl.lang.units import UnitError, parse_rate
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.quantities import show_number
from roofdsl.plot.content import Ceilings, MachineRoofs, Point, explained_point, roofs_of, with_launches
from roofdsl.plot.labels import joined
from roofdsl.plot.levels_content import common_sizes, labels_of
from roofdsl.plot.look import Look
from roofdsl.plot.roofline import save_roofline
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.predict.time import Prediction
from roofdsl.profiler.cited import points_named

_POINT = re.compile(r"(?P<label>.+)=(?P<intensity>[^=@]+)@(?P<rate>[^=@]+)")


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--machine", "machine_names", multiple=True, required=True, metavar="NAME|FILE[:NAME]")
@figure_option
@set_option
@click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One point per size (repeatable).")
@traffic_option
@unit_option
@type_option()
@click.option("--measured", multiple=True, metavar="LABEL=I@RATE", help='A measured point, "mine=0.25@200 GFLOP/s".')
@click.option("--measured-file", "measured_files", multiple=True, metavar="POINTS.json", help="From `import ncu`.")
@click.option("--level", default=None, metavar="NAME", help="Level whose bytes place these points; else the memory.")
@click.option("--launches", is_flag=True, help="Draw W over the launches' time as ceilings.")
@click.option("--by-kernel", is_flag=True, help="Draw each program's kernels, with their share of its time.")
@ceilings_option
@look_options()
def roofline(
    *,
    files: tuple[str, ...],
    machine_names: tuple[str, ...],
    output: str,
    settings: dict[str, int],
    sizes: tuple[str, ...],
    traffic: Traffic | None,
    unit: str | None,
    types: tuple[str, ...],
    measured: tuple[str, ...],
    measured_files: tuple[str, ...],
    level: str | None,
    launches: bool,
    by_kernel: bool,
    ceilings: Ceilings,
    look: Look,
) -> None:
    """Draw kernels (FILEs, FILE:KERNELs, shipped names) under the roofs of machines."""
    machines = [load_machine(name) for name in machine_names]
    options = Options(traffic, unit)
    predictions: list[Prediction] = []
    parts: list[Point] = []
    for chosen, each in choose_all(files, settings, sizes):
        for machine in machines:
            for given in each:
                predictions += [predict(k, own, machine, options) for k, own in kernels_of(chosen, given)]
                for name in chosen.programs:
                    found = predict_launches(chosen.checked, name, given, machine, options)
                    predictions.append(found.total)
                    parts += _kernels(found) if by_kernel else []
    for message in dict.fromkeys(w for p in predictions for w in p.warnings):
        warn(message)
    shown_types = types or tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))
    units = tuple(dict.fromkeys(p.unit for p in predictions if p.unit is not None))
    roofs = [roofs_of(m, shown_types, units) for m in machines]
    if launches:
        roofs = [_with_launches(r, [p for p in predictions if p.machine == r.name]) for r in roofs]
    points: list[Point] = []
    for machine in machines:
        own = [p for p in predictions if p.machine == machine.name]
        labels = [p.kernel for p in own] if parts else labels_of(own)
        points += [explained_point(p, label) for p, label in zip(own, labels, strict=True)]
    points += [*parts, *(_measured(text) for text in measured)]
    title = None
    if len(machines) == 1 and not parts:
        title = "\n".join(filter(None, [roofs[0].title or roofs[0].name, common_sizes(predictions)]))
    points += [p for name in measured_files for p in _profiled(name, level or machines[0].main_memory.name)]
    save_roofline(Path(output), roofs, points, title, look=look, ceilings=ceilings)


def _kernels(program: ProgramPrediction) -> list[Point]:
    """The kernels of a program as points, each with its share of the time; collectives are under no roof."""
    return [
        explained_point(row.total, f"{row.total.kernel}, {show_number(100 * row.share, 2)} %")
        for row in program.by_kernel
        if not row.collectives
    ]


def _with_launches(roofs: MachineRoofs, predictions: list[Prediction]) -> MachineRoofs:
    changed, above = with_launches(roofs, predictions)
    for text in above:
        warn(f"the ceiling of {text}")
    return changed


def _measured(text: str) -> Point:
    """`LABEL=I@RATE`. Raises click.BadParameter."""
    match = _POINT.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"`{text}` is not of the form LABEL=I@RATE", param_hint="--measured")
    try:
        intensity, rate = float(match["intensity"]), float(parse_rate(match["rate"]))
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--measured") from None
    except ValueError:
        raise click.BadParameter(f"`{match['intensity']}` is not an intensity", param_hint="--measured") from None
    if not 0 < intensity < 1e12:
        raise click.BadParameter("an intensity is positive, in operations per byte", param_hint="--measured")
    return Point(match["label"], intensity, rate, "measured")


def _profiled(name: str, level: str) -> list[Point]:
    """The points of a document that have a time, and operations and bytes at `level`; warns of the others."""
    found, bare = [], []
    for p in points_named(name).points:
        intensity, rate = p.intensity(level), p.flops_per_s
        moved = next((x.bytes for x in p.levels if x.name == level), None)
        if intensity is None or rate is None or moved is None or not p.time_s:
            bare.append(p.label)
        else:
            found.append(Point(p.label, intensity or None, rate, "measured", bytes_per_s=moved / p.time_s))
    if bare:
        known = "" if found else f"; `plot trajectory --points {name}` draws rate over work where these are known"
        warn(f"{joined(bare)} of {name} left out: no time, no operations or no bytes at {level} are known{known}")
    return found
