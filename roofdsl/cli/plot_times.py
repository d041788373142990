"""`roofdsl plot complexity`, `plot time`, `plot complexity-time`, `plot runtime`: figures of run times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from roofdsl.cli.look import figure_option, look_options
from roofdsl.cli.options import (
    choose_all,
    kernels_of,
    machine_option,
    set_option,
    traffic_option,
    type_option,
    unit_option,
    warn,
)
from roofdsl.cli.plot_levels import predicted
from roofdsl.cli.subjects import subjects_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.measure.results import Measurement
from roofdsl.plot.board import check_format
from roofdsl.plot.levels_content import common_sizes, labels_of
from roofdsl.plot.look import Look
from roofdsl.plot.planes import save_plane
from roofdsl.plot.planes_content import Kind, Series, compared_series, plane_of, points_series, predicted_series
from roofdsl.plot.runtime import Bar, save_runtime
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.predict.time import Prediction
from roofdsl.profiler.cited import points_named
from roofdsl.validate.compare import Comparison

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("files", nargs=-1, metavar="[FILE...]"),
    machine_option,
    figure_option,
    set_option,
    click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One step per size, in this order."),
    click.option("--level", metavar="NAME", help="Level whose bytes and bandwidth are used; by default the memory."),
    click.option("--points", multiple=True, metavar="POINTS.json|NAME", help="Measured points, or a shipped citation."),
    click.option(
        "--results", multiple=True, metavar="RESULT.json", help="Measured times of the FILEs, from `measure`."
    ),
    traffic_option,
    unit_option,
    type_option(),
    look_options(),
)


def _command(kind: Kind, about: str) -> click.Command:
    def run(
        *,
        files: tuple[str, ...],
        machine_name: str,
        output: str,
        settings: dict[str, int],
        sizes: tuple[str, ...],
        level: str | None,
        points: tuple[str, ...],
        results: tuple[str, ...],
        traffic: Traffic | None,
        unit: str | None,
        types: tuple[str, ...],
        look: Look,
    ) -> None:
        check_format(Path(output))
        machine = load_machine(machine_name)
        at = level or machine.main_memory.name
        options = Options(traffic, unit)
        found = predicted(files, machine, settings, sizes, options)
        shown = types or tuple(dict.fromkeys(p.type for p in found if p.type is not None))
        units = tuple(dict.fromkeys(p.unit for p in found if p.unit is not None)) or ((unit,) if unit else ())
        plane = plane_of(machine, shown, units, level)
        series: list[Series] = predicted_series(found, at)
        series += compared_series(measured(files, results, machine, options, settings=settings, sizes=sizes), at)
        for name in points:
            more, notes = points_series(points_named(name), Path(name).stem, at, machine)
            series += more
            for note in notes:
                warn(note)
        if not any(s.spots for s in series):
            raise CommandError("there is nothing to draw", "give FILEs, or measured points by --points")
        title = "\n".join(filter(None, [plane.title, common_sizes(found)]))
        save_plane(Path(output), kind, plane, series, title, look=look)

    run.__doc__ = about
    command: Any = run
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.command(kind)(command)


def measured(
    files: tuple[str, ...],
    results: tuple[str, ...],
    machine: Machine,
    options: Options,
    *,
    settings: dict[str, int],
    sizes: tuple[str, ...],
) -> list[Comparison]:
    """The measurements of RESULT files beside their predictions, of the kernels, programs and sizes asked for.

    The predictions are cold ones, whatever was measured: they are the points drawn, whose run times these are.

    Raises CommandError for results without the kernels they are of, and what reading them raises.
    """
    from roofdsl.measure.results import load
    from roofdsl.validate.run import compare_all

    if not results:
        return []
    stored = [m for path in results for m in load(Path(path))]
    chosen = choose_all(files, settings, sizes)
    kernels = list(dict.fromkeys(k for c, each in chosen for given in each for k, _ in subjects_of(c, given)))
    if not kernels:
        raise CommandError(
            "measured times are of kernels and programs, and there is none", "give their FILEs before --results"
        )
    found: list[Comparison] = []
    for _, each in chosen:
        for given in each:
            some = compare_all(kernels, stored, machine, sizes=given, options=options, warm=False)
            found += [c for c in some if c not in found]
    return found


complexity = _command("complexity", "Draw work over bytes: the balance, launches as a box, lines of equal intensity.")
time = _command("time", "Draw compute time over bandwidth time: launches as a box, lines of equal run time.")
complexity_time = _command(
    "complexity-time", "Draw work and bytes (closed) and run time (open) of each kernel together."
)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@machine_option
@figure_option
@set_option
@click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One bar per size, in this order.")
@click.option("--results", multiple=True, metavar="RESULT.json", help="Measured times of the FILEs, from `measure`.")
@traffic_option
@unit_option
@look_options()
def runtime(
    *,
    files: tuple[str, ...],
    machine_name: str,
    output: str,
    settings: dict[str, int],
    sizes: tuple[str, ...],
    results: tuple[str, ...],
    traffic: Traffic | None,
    unit: str | None,
    look: Look,
) -> None:
    """Draw expected run times as bars, those of programs by kernel, with the overhead of their launches."""
    check_format(Path(output))
    machine = load_machine(machine_name)
    options = Options(traffic, unit)
    found: list[tuple[Prediction, ProgramPrediction | None]] = []
    for chosen, each in choose_all(files, settings, sizes):
        for given in each:
            found += [(predict(k, own, machine, options), None) for k, own in kernels_of(chosen, given)]
            programs = [predict_launches(chosen.checked, p, given, machine, options) for p in chosen.programs]
            found += [(p.total, p) for p in programs]
    predictions = [p for p, _ in found]
    for message in dict.fromkeys(w for p in predictions for w in p.warnings):
        warn(message)
    times = {
        (m.kernel, m.parameters): m
        for m in (c.measurement for c in measured(files, results, machine, options, settings=settings, sizes=sizes))
    }
    bars = []
    for (p, program), label in zip(found, labels_of(predictions), strict=True):
        rows = program.by_kernel if program is not None else ()
        parts = [(row.total.kernel, float(row.total.expected_s)) for row in rows] or [(p.kernel, float(p.expected_s))]
        m = times.get((p.kernel, p.parameters))
        spread = None if m is None else (m.low_s, m.median_s, m.high_s)
        bars.append(Bar(label, tuple(parts), float(p.launch_s), spread, () if m is None else _by_kernel(m)))
    title = "\n".join(filter(None, [machine.title or machine.name, common_sizes(predictions)]))
    save_runtime(Path(output), bars, title, look=look)


def _by_kernel(m: Measurement) -> tuple[tuple[str, float], ...]:
    """Seconds of a measured program's kernels, each at all its sizes together; nothing for a kernel."""
    found: dict[str, float] = {}
    for part in m.by_launch:
        found[part.of.kernel] = found.get(part.of.kernel, 0.0) + part.median_s
    return tuple(found.items())
