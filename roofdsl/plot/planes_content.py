"""The content of the planes of the time-based roofline: work, bytes and run times of kernels, and a machine's balance.

Wang et al., Time-Based Roofline for Deep Learning Performance Analysis, section II, with the errata of docs/errata.md;
docs/rules.md, rules 15 to 18 (docs/planes.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import group, show_time
from roofdsl.plot.board import Window
from roofdsl.plot.roofline_points import differing_sizes, labels_of
from roofdsl.plot.roofs import Roof, Slope, require_roof, roofs_of, slopes_of
from roofdsl.predict.measured_times import MeasuredTimes, measured_times
from roofdsl.predict.prediction import Prediction
from roofdsl.profiler.measured_points import Points
from roofdsl.validate.compare import Comparison

Which = Literal["complexity", "time", "complexity-time"]
Origin = Literal["predicted", "measured", "cited"]


@dataclass(frozen=True)
class Spot:
    """A kernel or program: `work` in operations, `bytes` at the plane's level, `run_s` (None if unknown).

    launch_s: the launch time of all its launches together; spread_s: (low, high) of a measured run time.
    """

    label: str
    work: float
    bytes: float
    run_s: float | None
    launches: int = 1
    launch_s: float = 0.0
    spread_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class Series:
    """Spots of one colour, in order; `joined` by arrows if they are one kernel over a parameter.

    beside: for measurements, the name of the series of the same kernels, whose colour they take.
    """

    name: str
    spots: tuple[Spot, ...]
    origin: Origin = "predicted"
    joined: bool = True
    source: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Box:
    """The region in which launches take longer than computing and moving bytes: up to `launch_s` for both."""

    launches: int
    launch_s: float
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        what = f"{group(self.launches)} launch{'es' if self.launches > 1 else ''}: {show_time(self.launch_s)}"
        return f"{', '.join(self.names)}, {what}" if self.names else what


@dataclass(frozen=True)
class Plane:
    """A machine for the planes: the highest roof P, and the bandwidth of one level (of a duplex one, both ways).

    others: further roofs, whose balances are thinner lines.
    """

    title: str
    peak: Roof
    others: tuple[Roof, ...]
    level: str
    slope: Slope
    operation: str = "FLOP"

    @property
    def bytes_per_s(self) -> float:
        return self.slope.bytes_per_s

    @property
    def balance(self) -> float:
        """P over the bandwidth, in operations per byte."""
        return self.peak.rate_per_s / self.bytes_per_s

    def times(self, spot: Spot) -> MeasuredTimes | None:
        """The compute and bandwidth times that follow from the run time (rule 17), and those of the model.

        None without a run time, and for a spot with neither operations nor bytes.
        """
        if not spot.run_s or not (spot.work or spot.bytes):
            return None
        return measured_times(spot.work, spot.bytes, spot.run_s, self.peak.rate_per_s, self.bytes_per_s)


def plane_of(machine: Machine, types: Sequence[str], units: Sequence[str], level: str | None = None) -> Plane:
    """The plane of a machine with the roofs of `types` and `units` (all float types if empty).

    Raises CommandError for a level that the machine does not have, and without a roof.
    """
    solid = [r for r in roofs_of(machine, types, units).roofs if not r.is_ceiling]
    require_roof(solid)
    slopes = {each.name: slopes_of(each)[0] for each in machine.hierarchy}
    name = level or machine.main_memory.name
    if name not in slopes:
        raise CommandError(f"machine {machine.name} has no level {name}", f"its levels are {', '.join(slopes)}")
    operation = "OP" if all(r.operation == "OP" for r in solid) else "FLOP"
    return Plane(machine.title or machine.name, solid[0], tuple(solid[1:]), name, slopes[name], operation)


# ---- spots ----


def spot_of(prediction: Prediction, label: str, level: str) -> Spot:
    """A predicted kernel or program at the bound of its time. Raises CommandError if the level was not counted."""
    moved = next((found.bytes for found in prediction.levels if found.name == level), None)
    if moved is None:
        raise CommandError(f"the bytes of {prediction.kernel} at {level} were not found", "leave out --level")
    return Spot(
        label, float(prediction.work), float(moved), float(prediction.bound_s), prediction.launches,
        float(prediction.launch_s),
    )  # fmt: skip


def predicted_series(predictions: Sequence[Prediction], level: str) -> list[Series]:
    """One series for each kernel or program over its sizes."""
    found: dict[str, list[Spot]] = {}
    for p, label in zip(predictions, labels_of(predictions), strict=True):
        found.setdefault(p.kernel, []).append(spot_of(p, differing_sizes(p, predictions) or label, level))
    return [Series(name, tuple(spots)) for name, spots in found.items()]


def compared_series(comparisons: Sequence[Comparison], level: str) -> list[Series]:
    """Measured run times with the predicted work and bytes, as one series for each kernel and variant."""
    found: dict[tuple[str, str], list[Spot]] = {}
    for c in comparisons:
        spot = spot_of(c.prediction, "", level)
        m = c.measurement
        spot = replace(spot, run_s=m.median_s, spread_s=(m.low_s, m.high_s))
        found.setdefault((m.kernel, m.variant), []).append(spot)
    several = len({variant for _, variant in found}) > 1
    return [
        Series(f"{kernel}, {variant}" if several else kernel, tuple(spots), "measured", beside=kernel)
        for (kernel, variant), spots in found.items()
    ]


def points_series(points: Points, name: str, level: str, machine: Machine) -> tuple[list[Series], list[str]]:
    """The points of a document as a series, and messages about those that are left out or shown only as a box.

    A point without operations or bytes at the level shows its launches, if the machine states their time.
    """
    origin: Origin = "cited" if points.origin == "cited" else "measured"
    each = float(machine.launch_s or 0)
    spots, notes = [], []
    for p in points.points:
        moved = next((x.bytes for x in p.levels if x.name == level), None)
        spot = Spot(p.label, p.work_flops or 0.0, moved or 0.0, p.time_s, p.launches, p.launches * each)
        if p.work_flops is None or moved is None:
            lacking = "operations" if p.work_flops is None else f"bytes at {level}"
            if spot.launch_s:
                notes.append(f"{p.label} of {name} has no {lacking}: only its launches are drawn")
                spots.append(replace(spot, work=0.0, bytes=0.0))
            else:
                notes.append(f"{p.label} of {name} has no {lacking}, and is left out")
            continue
        spots.append(spot)
    return [Series(name, tuple(spots), origin, False, points.source if origin == "cited" else "")], notes


# ---- boxes, lines, windows ----


def boxes_of(series: Sequence[Series]) -> list[Box]:
    """The overhead boxes, the largest first, named if they differ; of a joined series, only its first and last one."""
    found: dict[float, tuple[int, dict[str, None]]] = {}
    for s in series:
        counts = list(dict.fromkeys(spot.launch_s for spot in s.spots if spot.launch_s))
        kept = [*counts[:1], *counts[-1:]] if s.joined else counts
        for spot in s.spots:
            if spot.launch_s in kept:
                name = _box_name(s, spot, several=len(series) > 1)
                found.setdefault(spot.launch_s, (spot.launches, {}))[1][name] = None
    boxes = [Box(n, launch_s, tuple(names)) for launch_s, (n, names) in found.items()]
    if len(boxes) == 1:
        boxes = [replace(boxes[0], names=())]
    return sorted(boxes, key=lambda b: -b.launch_s)


def _box_name(series: Series, spot: Spot, several: bool) -> str:
    name = series.beside or series.name
    if series.origin == "cited":
        return f"{spot.label} (cited)"
    if len({s.launch_s for s in series.spots}) > 1 and spot.label:
        return f"{name} {spot.label}" if several and series.joined else spot.label
    return name


def complexity_window(plane: Plane, series: Sequence[Series], with_times: bool = False) -> Window:
    """Limits in bytes (x) and operations (y) that show every spot and box, and on request the scaled run times."""
    xs, ys = [], []
    for s in series:
        for spot in s.spots:
            times = plane.times(spot) if with_times else None
            scale = times.lost if times is not None else 1.0
            xs += [spot.bytes, spot.bytes * scale]
            ys += [spot.work, spot.work * scale]
    for box in boxes_of(series):
        xs.append(box.launch_s * plane.bytes_per_s)
        ys.append(box.launch_s * plane.peak.rate_per_s)
    return Window(_limits(xs, "bytes"), _limits(ys, "operations"))


def time_window(plane: Plane, series: Sequence[Series]) -> Window:
    """Limits in seconds of bandwidth time (x) and compute time (y)."""
    xs, ys = [], []
    for s in series:
        for spot in s.spots:
            times = plane.times(spot)
            if times is not None:
                xs += [times.bandwidth_s, times.model_bandwidth_s]
                ys += [times.compute_s, times.model_compute_s]
    for box in boxes_of(series):
        xs.append(box.launch_s)
        ys.append(box.launch_s)
    return Window(_limits(xs, "run time"), _limits(ys, "run time"))


def _limits(values: Sequence[float], what: str) -> tuple[float, float]:
    """Limits half a decade beyond the positive values, and at least two decades apart."""
    positive = [v for v in values if v > 0]
    if not positive:
        raise CommandError(f"there is no {what} to draw", "give a kernel that computes and moves something")
    low, high = log10(min(positive)) - 0.45, log10(max(positive)) + 0.45
    room = max(0.0, 2 - (high - low)) / 2
    return 10 ** (low - room), 10 ** (high + room)
