"""`roofdsl plot runtime`: run times as bars."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import choose_all, kernels_of, machine_option, set_option, traffic_option, unit_option, warn
from roofdsl.cli.plot_planes import measured
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.measure.results import Measurement
from roofdsl.plot.board import check_format
from roofdsl.plot.levels_content import common_sizes, labels_of
from roofdsl.plot.look import Look
from roofdsl.plot.runtime import Bar, save_runtime
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.predict.time import Prediction


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@machine_option
@click.option("-o", "--output", required=True, metavar="OUT.svg|png|pdf", help="Where to; the ending is the format.")
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
