"""Measured and cited points as kernels of the figures over several levels: drawn open, as their authors'."""

from __future__ import annotations

from roofdsl.plot.levels_content import Kernel
from roofdsl.plot.trajectory import Step, Trajectory
from roofdsl.profiler.points import Points


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
