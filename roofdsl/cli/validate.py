"""`roofdsl validate`: compares predictions with measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import click

from roofdsl.cli.baseline import Reports, baseline_options, status_beside
from roofdsl.cli.look import look_options
from roofdsl.cli.option_groups import as_one
from roofdsl.cli.options import (
    choose_all,
    cores_option,
    json_option,
    math_option,
    parse_steps,
    refuse_strict,
    set_option,
    show_json,
    traffic_option,
    variants_on,
    warn,
)
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.subjects import subjects_of
from roofdsl.cli.text import show_blocks
from roofdsl.codegen.math_mode import Math
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.measure.measurement import Measurement, load, save
from roofdsl.plot.board import check_format, save_figure
from roofdsl.plot.kinds.roofline import draw_roofline
from roofdsl.plot.look import Look
from roofdsl.plot.roofline_points import overlay, overlay_point
from roofdsl.plot.roofs import roofs_of
from roofdsl.predict.options import Accesses, Options
from roofdsl.profiler.cited import holds_points, points_named
from roofdsl.profiler.measured_points import Points
from roofdsl.store.atomic import check_writable
from roofdsl.tell import regressions
from roofdsl.tell.validation import blocks, of_points, to_json
from roofdsl.validate.baseline import Regressions
from roofdsl.validate.compare import DEFAULTS, Comparison, Limits
from roofdsl.validate.compare_points import PointCheck, compare_points, points_held
from roofdsl.validate.run import (
    Backend,
    How,
    Run,
    Subject,
    check_work,
    clock_here,
    compare_all,
    measure_settled,
    stale,
)

VARIANTS = {"cpu": ("loops", "grouped", "parallel", "library"), "gpu": ("naive", "tiled", "library")}


_limit_options = as_one(
    "limits",
    Limits,
    of=("tolerance", "margin"),
    options=(
        click.option(
            "--tolerance",
            type=click.FloatRange(0, 1),
            default=DEFAULTS.tolerance,
            show_default=True,
            metavar="T",
            help="A run is slower than predicted if its rate is below 1 - T of the expected rate (its time is above "
            "1/(1 - T) of the expected time), and faster if its time is below 1 - T of the expected time. Without an "
            "expected time, the rate is compared with the bound, and can only be too low.",
        ),
        click.option(
            "--margin",
            type=click.FloatRange(0, 1),
            default=DEFAULTS.margin,
            show_default=True,
            help="How far performance may exceed the bound.",
        ),
    ),
)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--machine",
    "machine_names",
    multiple=True,
    required=True,
    metavar="NAME|FILE[:NAME]",
    help="A shipped machine, or a file with one (repeatable).",
)
@set_option
@click.option(
    "--at",
    "sizes",
    multiple=True,
    metavar="n=64|n=8..64:*2",
    help="A size to measure at, or a range of sizes (repeatable).",
)
@click.option(
    "--results",
    multiple=True,
    metavar="FILE.json",
    help="Compare stored results or points, without measuring (repeatable).",
)
@click.option(
    "--point",
    "point_names",
    multiple=True,
    metavar="KERNEL=LABEL",
    help="The stored point of a kernel, if its label differs (repeatable).",
)
@click.option(
    "--backend", type=click.Choice(["cpu", "gpu"]), default="cpu", show_default=True, help="Where the code runs."
)
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="As in `roofdsl measure` (repeatable).")
@click.option(
    "--compiler",
    type=click.Choice(["numba", "cc"]),
    default="numba",
    show_default=True,
    help="The compiler for CPU code.",
)
@click.option("--cold", is_flag=True, help="Empty the caches before each repeat, and predict cold caches.")
@click.option(
    "--budget",
    type=click.FloatRange(0.01, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for one measurement; when it is over, measuring stops as soon as there are five repeats.",
)
@traffic_option
@click.option(
    "--accesses",
    type=click.Choice(["written", "compiled"]),
    help="Accesses to the first cache: as written, or as compiled, with values kept in registers. The default is "
    "compiled for code that was compiled for a CPU, and written otherwise.",
)
@_limit_options
@click.option("--plot", metavar="OUT.svg|png|pdf", help="Draw predictions and measurements on the roofline.")
@math_option
@cores_option
@click.option(
    "--energy",
    is_flag=True,
    help="Also compare predicted and measured energies, where the machine states them and this computer counts them.",
)
@look_options("plot")
@click.option("-o", "--output", metavar="RESULT.json", help="Write the new measurements to this file.")
@baseline_options
@json_option
def validate(
    *,
    files: tuple[str, ...],
    machine_names: tuple[str, ...],
    settings: dict[str, int],
    sizes: tuple[str, ...],
    results: tuple[str, ...],
    point_names: tuple[str, ...],
    backend: Backend,
    variants: tuple[str, ...],
    compiler: str,
    cold: bool,
    budget: float,
    traffic: Traffic | None,
    accesses: Accesses | None,
    limits: Limits,
    math: Math,
    cores: tuple[int, ...],
    energy: bool,
    plot: str | None,
    look: Look,
    output: str | None,
    reports: Reports,
    as_json: bool,
) -> int:
    """Measure the kernels and programs of FILEs on this computer, and compare the times with a machine's predictions.

    The exit status is 1 if a measurement is above the roof, is slower or faster than predicted as --tolerance says, or
    has results that cannot be verified. For a profiler's points, it is also 1 if the bytes of a level differ by more
    than --tolerance. A run that other programs slowed down is measured again at the end. If it stays slow, it is
    inconclusive, and the exit status is 2 if nothing else is wrong.

    With --baseline, the exit status is 1 if a run is slower than its baseline by more than --allow and by more than
    noise, is above the roof, or cannot be verified.
    """
    _check(variants, backend, math, plot, output)
    machines = [load_machine(name) for name in machine_names]
    pairs = _pairs(files, settings, sizes)
    kernels = list(dict.fromkeys(kernel for kernel, _ in pairs))
    stored = _stored(results, point_names, cores)
    options = Options(traffic, accesses=accesses or "written", energy=energy)
    against = partial(compare_all, kernels, options=options, limits=limits, accesses=accesses)
    found = stored.measurements
    if not results:
        ways = variants_on(cores, variants or (() if cores else VARIANTS[backend][:1]), backend)
        runs = [Run(kernel, own, *way) for kernel, own in pairs for way in ways]
        how = How(backend, compiler, cold, budget, math=math, energy=energy, clock_hz=clock_here(machines))
        found = _measured(runs, how, lambda new: [c for m in machines for c in against(new, m)], reports, output)
    checks = _checked(pairs, stored, machines, options=options, limits=limits)
    # results measured just now have the sizes of `settings` anyway
    steps = [(settings if results else {}) | at for at in parse_steps(sizes)] if found else []
    compared = _each_once(c for m in machines for at in steps for c in against(found, m, sizes=at))
    check_work(kernels, compared)
    beside = reports.beside(compared)
    _show(compared, checks, beside, as_json)
    reports.write(compared, checks, beside)
    _draw(plot, compared, checks, machines, look)
    warn(*stale(kernels, stored.measurements), *(w for m in found for w in m.warnings))
    return _status(compared, checks) if beside is None else status_beside(beside)


def _check(variants: Sequence[str], backend: Backend, math: Math, plot: str | None, output: str | None) -> None:
    """Raise click.UsageError for a variant or a math mode that the backend does not have, and CommandError for a file
    that cannot be written: all before anything is measured.
    """
    refuse_strict(backend, math)
    for name in variants:
        if name not in VARIANTS[backend]:
            message = f"there is no variant `{name}` on the {backend.upper()}; there are {', '.join(VARIANTS[backend])}"
            raise click.BadParameter(message, param_hint="--variant")
    if plot is not None:
        check_format(Path(plot))
    for path in (plot, output):
        if path is not None:
            check_writable(Path(path))


class _Stored(Record):
    """What files hold: measurements, points of profilers, and the label of the point of each kernel that `--point`
    names.
    """

    measurements: list[Measurement]
    points: list[Points]
    labels: dict[str, str]


def _stored(results: Sequence[str], point_names: Sequence[str], cores: Sequence[int]) -> _Stored:
    if cores and results:
        raise click.UsageError("stored results state on how many cores they ran; omit --cores with --results")
    points = [points_named(path) for path in results if holds_points(path)]
    if point_names and not points:
        raise click.UsageError("--point names the stored point of a kernel: pass the points with --results")
    labels = dict(_point_of(text) for text in point_names)
    return _Stored([m for path in results if not holds_points(path) for m in load(Path(path))], points, labels)


def _checked(
    pairs: Sequence[tuple[Subject, dict[str, int]]],
    stored: _Stored,
    machines: Sequence[Machine],
    *,
    options: Options,
    limits: Limits,
) -> list[PointCheck]:
    """The comparisons of the stored points. Raises CommandError if there are points, but nothing to compare."""
    alone = [(kernel, own) for kernel, own in pairs if isinstance(kernel, Kernel)]
    found = [
        check
        for machine in machines
        for check in compare_points(alone, stored.points, stored.labels, machine, options=options, limits=limits)
    ]
    if stored.points and not found and not stored.measurements:
        raise _no_point([kernel for kernel, _ in pairs], stored.points)
    return found


def _measured(
    runs: list[Run],
    how: How,
    against: Callable[[list[Measurement]], list[Comparison]],
    reports: Reports,
    output: str | None,
) -> list[Measurement]:
    """Measure the runs, and write them to `output`. Those inconclusive in a comparison with one of the machines or, if
    there is a baseline, with that are measured again at the end.
    """
    reports.before_measuring(how.backend)

    def inconclusive(measured: Measurement) -> bool:
        compared = against([measured])
        if reports.baseline is not None:
            beside = reports.beside(compared)
            return beside is not None and any(c.verdict == "inconclusive" for c in beside.changes)
        return any(c.verdict == "inconclusive" for c in compared)

    with progress_bar("validate") as tell:
        found = measure_settled(runs, how, inconclusive, tell)
    if output is not None:
        save(Path(output), found)
    return found


def _each_once(found: Iterable[Comparison]) -> list[Comparison]:
    """The comparisons without duplicates; they are not hashable."""
    kept: list[Comparison] = []
    for comparison in found:
        if comparison not in kept:
            kept.append(comparison)
    return kept


def _no_point(kernels: Sequence[Subject], documents: Sequence[Points]) -> CommandError:
    kernel = kernels[0].name
    return CommandError(
        f"the results contain no point of {', '.join(dict.fromkeys(k.name for k in kernels))}",
        f'{points_held(documents)}; --point "{kernel}=LABEL" names the one for {kernel}',
    )


def _show(
    compared: Sequence[Comparison], checks: Sequence[PointCheck], beside: Regressions | None, as_json: bool
) -> None:
    if as_json:
        baseline = {} if beside is None else {"baseline": regressions.to_json(beside)}
        show_json(to_json(compared, checks) | baseline)
        return
    told = [*([blocks(compared)] if compared else []), *([of_points(checks)] if checks else [])]
    show_blocks(*told, *([] if beside is None else [regressions.blocks(beside)]))


def _draw(
    path: str | None,
    compared: Sequence[Comparison],
    checks: Sequence[PointCheck],
    machines: Sequence[Machine],
    look: Look,
) -> None:
    """Draw the measured points on the rooflines of the machines, if a file is named."""
    if path is None:
        return
    predictions = [c.prediction for c in compared] + [c.prediction for c in checks]
    types = tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))
    points = [p for c in compared for p in overlay(c)] + [p for c in checks for p in overlay_point(c)]
    save_figure(Path(path), draw_roofline([roofs_of(m, types) for m in machines], points, look=look))


def _status(compared: Sequence[Comparison], checks: Sequence[PointCheck]) -> int:
    """The exit status: 1 if a measurement contradicts the model or is not verified, else 2 if one is inconclusive."""
    told = {c.verdict for c in compared}
    verified = all(c.measurement.verified.holds for c in compared)
    contradicted = told & {"slower than predicted", "faster than predicted", "above the roof"}
    if contradicted or not verified or not all(c.agrees for c in checks):
        return 1
    return 2 if "inconclusive" in told else 0


def _point_of(text: str) -> tuple[str, str]:
    """`KERNEL=LABEL`. Raises click.BadParameter."""
    kernel, equals, label = text.partition("=")
    if not (kernel and equals and label):
        raise click.BadParameter(f"`{text}` is not of the form KERNEL=LABEL", param_hint="--point")
    return kernel, label


def _pairs(
    files: tuple[str, ...], settings: dict[str, int], sizes: tuple[str, ...]
) -> list[tuple[Subject, dict[str, int]]]:
    found: list[tuple[Subject, dict[str, int]]] = []
    for chosen, each in choose_all(files, settings, sizes):
        found += [pair for given in each for pair in subjects_of(chosen, given)]
    return found
