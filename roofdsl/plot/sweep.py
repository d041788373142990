"""The sweep of a characterization: bandwidth against working set, with the levels that were read off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.machine.quantities import show_bandwidth, show_size
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.characterize_gpu import GpuCharacterization
from roofdsl.measure.sweep import STREAMS
from roofdsl.plot.board import INK, OKABE_ITO, PAPER, check_format, save_figure
from roofdsl.plot.labels import stack


@dataclass(frozen=True)
class Curve:
    """Points (working set in bytes, bytes per second), ascending. `thin`: of a part of the machine."""

    label: str
    points: tuple[tuple[float, float], ...]
    thin: bool = False


@dataclass(frozen=True)
class Mark:
    """A level: it ends at `capacity_bytes` of working set (None for the memory), and streams at `bytes_per_s`."""

    name: str
    capacity_bytes: float | None
    bytes_per_s: float


@dataclass(frozen=True)
class SweepFigure:
    """What the figure shows, before anything is drawn."""

    title: str
    x_label: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]


def sweep_figure(found: Characterization) -> SweepFigure:
    """The curves of all cores together, those of one core thin beside them, and the levels of the machine.

    Working sets are per core, so that a private cache ends where its own capacity does, and a shared one at its share.
    """
    sweeps = [(found.all_cores, False)]
    if found.cores > 1:
        sweeps.append((found.one_core, True))
    curves = []
    for sweep, thin in sweeps:
        who = "one core" if sweep.cores == 1 else f"{sweep.cores} cores"
        for pattern in STREAMS:
            points = tuple((float(p.working_set_bytes), p.bytes_per_s) for p in sweep.of(pattern))
            curves.append(Curve(f"{pattern.name}, {who}", points, thin))
    marks = []
    for level in found.levels:
        copies = 1 if level.reported is None else min(level.reported.copies, found.cores)
        end = None if level is found.levels[-1] else level.capacity_bytes * copies / found.cores
        marks.append(Mark(f"{level.name} {show_size(level.capacity_bytes)}", end, level.all_cores.bytes_per_s))
    marks[-1] = Mark(found.levels[-1].name, None, found.levels[-1].all_cores.bytes_per_s)
    per = "Working set per core" if found.cores > 1 else "Working set"
    return SweepFigure(f"{found.cpu.name}, {found.when[:10]}", per, tuple(curves), tuple(marks))


def gpu_sweep_figure(found: GpuCharacterization) -> SweepFigure:
    """The same of a GPU, whose working sets are those of all multiprocessors together."""
    curves = [
        Curve(p.name, tuple((float(x.working_set_bytes), x.bytes_per_s) for x in found.sweep.of(p))) for p in STREAMS
    ]
    cache, memory = found.levels
    marks = (
        Mark(f"{cache.name} {show_size(cache.capacity_bytes)}", cache.capacity_bytes, cache.bandwidth.bytes_per_s),
        Mark(memory.name, None, memory.bandwidth.bytes_per_s),
    )
    return SweepFigure(f"{found.name}, {found.when[:10]}", "Working set", tuple(curves), marks)


def save_sweep(path: Path, figure: SweepFigure) -> None:
    """Draws into `path`, whose ending (svg, png or pdf) is the format.

    Raises CommandError for another ending, and where the file cannot be written.
    """
    save_figure(path, check_format(path), lambda: draw_sweep(figure))


def draw_sweep(figure: SweepFigure) -> Any:
    """The matplotlib Figure, not bound to any display."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8.0, 5.2), dpi=100, facecolor=PAPER)
    axes = drawn.add_axes((0.115, 0.11, 0.855, 0.80))
    xs = [x for c in figure.curves for x, _ in c.points]
    ys = [y for c in figure.curves for _, y in c.points] + [m.bytes_per_s for m in figure.marks]
    _axes(axes, figure, (min(xs) / 1.3, max(xs) * 1.3), (min(ys) / 1.5, max(ys) * 2.2))
    _marks(axes, figure.marks, (min(xs), max(xs) * 1.3), (min(ys) / 1.5, max(ys) * 2.2))
    plain = [c for c in figure.curves if not c.thin]
    for k, curve in enumerate(plain):
        _curve(axes, curve, OKABE_ITO[k % 6], linewidth=1.8, markersize=4.5)
    for k, curve in enumerate(c for c in figure.curves if c.thin):
        _curve(axes, curve, OKABE_ITO[k % 6], linewidth=0.9, markersize=0, linestyle=(0, (3, 2)))
    axes.legend(loc="lower left", frameon=False, fontsize=8.5, ncols=2 if len(plain) < len(figure.curves) else 1)
    return drawn


def _curve(axes: Any, curve: Curve, color: str, **style: Any) -> None:
    xs, ys = [x for x, _ in curve.points], [y for _, y in curve.points]
    axes.plot(xs, ys, marker="o", color=color, label=curve.label, zorder=4, **style)


def _axes(axes: Any, figure: SweepFigure, x: tuple[float, float], y: tuple[float, float]) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(x)
    axes.set_ylim(y)
    powers = [2.0**k for k in range(0, 60, 2) if x[0] <= 2.0**k <= x[1]]
    axes.xaxis.set_major_locator(FixedLocator(powers))
    axes.xaxis.set_major_formatter(FixedFormatter([show_size(round(p)) for p in powers]))
    axes.xaxis.set_minor_locator(NullLocator())
    decades = range(floor(log10(y[0])), ceil(log10(y[1])) + 1)
    ticks = [m * 10.0**d for d in decades for m in (1, 2, 5) if y[0] <= m * 10.0**d <= y[1]]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([show_bandwidth(t) for t in ticks]))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(figure.x_label, fontsize=10.5)
    axes.set_ylabel("Bandwidth", fontsize=10.5)
    axes.set_title(figure.title, fontsize=11.5, loc="left", color=INK)
    axes.grid(True, which="major", color="#E9E9E9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _marks(axes: Any, marks: Sequence[Mark], x: tuple[float, float], y: tuple[float, float]) -> None:
    """Each level's bandwidth as a line over the working sets that are in it, its end as a dashed one, named on top."""
    (left, right), (low, high) = x, y
    start = left
    middles, texts = [], []
    for mark in marks:
        end = mark.capacity_bytes or right
        axes.plot([start, end], [mark.bytes_per_s] * 2, color=INK, linewidth=3.5, alpha=0.22, zorder=2)
        if mark.capacity_bytes is not None:
            axes.plot([end, end], [low, high], color=INK, linewidth=0.8, alpha=0.55, linestyle=(0, (4, 3)), zorder=1)
        middles.append((start * end) ** 0.5)
        texts.append(f"{mark.name}\n{show_bandwidth(mark.bytes_per_s, 3)}")
        start = end
    per_pixel = log10(right / (left / 1.3)) / 692  # decades to a pixel of the axes' width
    width = 78 * per_pixel
    places = stack([log10(m) - width / 2 for m in middles], width)
    for place, text in zip(places, texts, strict=True):
        axes.text(
            10 ** (place + width / 2), high / 1.06, text, fontsize=8.5, color=INK, ha="center", va="top", zorder=5
        )
