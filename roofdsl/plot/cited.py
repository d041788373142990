"""Measured and cited points as kernels of the figures over several levels: drawn open, as their authors'."""

from __future__ import annotations

from dataclasses import replace

from roofdsl.plot.content import Point, point_of
from roofdsl.plot.levels_content import Kernel
from roofdsl.plot.trajectory import Step, Trajectory
from roofdsl.profiler.points import Points
from roofdsl.validate.points import PointCheck


def measured_steps(points: Points) -> list[Step]:
    """The points that have a rate, with their work and the intensities at the levels that were measured."""
    kind = "cited" if points.origin == "cited" else "measured"
    found = []
    for p in points.points:
        if not p.flops_per_s:
            continue
        pairs = ((level.name, p.intensity(level.name)) for level in p.levels)
        intensities = tuple((name, value) for name, value in pairs if value)
        found.append(Step(Kernel(p.label, p.flops_per_s, intensities, kind), p.work_flops))
    return found


def measured_trajectory(points: Points, name: str) -> Trajectory:
    """The points in the order of their document, with its source."""
    return Trajectory(name, tuple(measured_steps(points)), points.source if points.origin == "cited" else "")


def overlay_point(check: PointCheck) -> tuple[Point, ...]:
    """The predicted point, and the measured one where there is a time: at its own operations and bytes of memory where
    these were measured, else at those of the prediction."""
    predicted, p = point_of(check.prediction), check.prediction
    if check.measured_s is None or check.ratio is None:
        return (predicted,)
    work = check.measured_work if check.measured_work is not None else float(p.work)
    moved = next((x.measured_bytes for x in check.levels if x.level == p.memory.name), float(p.memory.bytes))
    measured = replace(
        predicted,
        kind="measured",
        intensity=work / moved if work and moved else None,
        flops_per_s=work / check.measured_s,
        bytes_per_s=moved / check.measured_s,
        beside=f"{100 * check.ratio:.0f} %",
    )
    return predicted, measured
