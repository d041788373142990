"""The figure that a question is about: a roofline, or Q(Z), with the student's own values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roofdsl.classroom.query import kernel_of
from roofdsl.classroom.student_version import StudentVersion
from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.traffic_content import traffic_content


def save(version: StudentVersion, path: Path) -> None:
    """Draws the exercise's figure into `path`. Raises CommandError if there is none or the file cannot be written."""
    plot = version.exercise.plot
    if not plot:
        raise CommandError(f"exercise {version.exercise.id} has no figure")
    match plot.get("kind"):
        case "roofline":
            _roofline(version, plot, path)
        case "traffic":
            _traffic(version, plot, path)
        case other:
            raise version.fail(f"a plot of the kind `{other}`; there are roofline and traffic")


def _roofline(version: StudentVersion, plot: Mapping[str, Any], path: Path) -> None:
    from roofdsl.plot.board import save_figure
    from roofdsl.plot.kinds.roofline import draw_roofline
    from roofdsl.plot.roofline_points import point_of
    from roofdsl.plot.roofs import roofs_of
    from roofdsl.predict.kernel import predict
    from roofdsl.predict.options import Options

    machine = version.machine(plot["machine"])
    options = Options(levels="memory")
    points = []
    for entry in plot.get("points", ()):
        at = {n: version.whole(v) for n, v in entry["set"].items()}
        prediction = predict(kernel_of(version.kernels[entry["kernel"]], at), at, machine, options)
        points.append(point_of(prediction, entry["label"]))
    types = tuple(version.fill(t) for t in plot.get("types", ()))
    title = version.fill(plot.get("title", machine.title))
    save_figure(path, draw_roofline([roofs_of(machine, types)], points, title))


def _traffic(version: StudentVersion, plot: Mapping[str, Any], path: Path) -> None:
    from dataclasses import replace

    from roofdsl.plot.board import save_figure
    from roofdsl.plot.kinds.traffic import draw_traffic

    at = {n: version.whole(v) for n, v in plot["set"].items()}
    kernel = kernel_of(version.kernels[plot["kernel"]], at)
    line = version.bytes(plot["line"]) if "line" in plot else None
    convention = plot.get("traffic", kernel.traffic or "load_store")
    content = traffic_content(kernel, at, convention, line, with_best=False)
    content = replace(content, plateaus=(), note="")  # the formulas would give the answer away
    save_figure(path, draw_traffic(content))
