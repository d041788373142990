"""The sweep of a characterization: bandwidth over working set, with the levels that were identified in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

from roofdsl.machine.quantities import show_bandwidth
from roofdsl.plot.board import Frame, frame_of, log_axes, size_ticks
from roofdsl.plot.labels import stack_up_to
from roofdsl.plot.look import SIGNS, USUAL, Look, styled
from roofdsl.plot.ticks import log_ticks, set_ticks


@dataclass(frozen=True)
class Curve:
    """Points (working set in bytes, bytes per second), ascending. `thin`: the curve is for a part of the machine."""

    label: str
    points: tuple[tuple[float, float], ...]
    thin: bool = False


@dataclass(frozen=True)
class Mark:
    """A level: it ends at a working set of `capacity_bytes` (None for the memory), and streams at `bytes_per_s`."""

    name: str
    capacity_bytes: float | None
    bytes_per_s: float


@dataclass(frozen=True)
class SweepFigure:
    """The content of the figure, before anything is drawn."""

    title: str
    x_label: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]


@styled
def draw_sweep(figure: SweepFigure, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure, not bound to any display."""
    xs = [x for c in figure.curves for x, _ in c.points]
    ys = [y for c in figure.curves for _, y in c.points] + [m.bytes_per_s for m in figure.marks]
    x = look.limits((min(xs) / 1.3, max(xs) * 1.3), "x")
    y = look.limits((min(ys) / 2.6, max(ys) * 2.4), "y")
    shown = log_ticks(*y, most=9)
    frame = frame_of(look, figure.title, [show_bandwidth(t) for t in shown], right_in=0.32)
    axes = frame.axes
    log_axes(axes, look, x, y, (figure.x_label, "Bandwidth"))
    size_ticks(frame, look, *x)
    set_ticks(axes.yaxis, shown, show_bandwidth)
    _marks(frame, figure.marks, x, y, look)
    plain = [c for c in figure.curves if not c.thin]
    for k, curve in enumerate(plain):
        _curve(axes, curve, k, look, linewidth=1.8, markersize=4.5)
    for k, curve in enumerate(c for c in figure.curves if c.thin):
        _curve(axes, curve, k, look, linewidth=0.9, markersize=0, linestyle=(0, (3, 2)))
    axes.legend(loc="lower left", frameon=False, fontsize=look.small, ncols=2 if len(plain) < len(figure.curves) else 1)
    return frame.figure


def _curve(axes: Any, curve: Curve, number: int, look: Look, **style: Any) -> None:
    xs, ys = [x for x, _ in curve.points], [y for _, y in curve.points]
    axes.plot(
        xs, ys, marker=SIGNS[number % len(SIGNS)], color=look.color(number), label=curve.label, zorder=4, **style
    )  # fmt: skip


def _marks(frame: Frame, marks: Sequence[Mark], x: tuple[float, float], y: tuple[float, float], look: Look) -> None:
    """Draw each level's bandwidth as a line over its working sets, and its capacity as a dashed line with its name."""
    (left, right), (low, high) = x, y
    axes, start = frame.axes, left
    middles, texts = [], []
    for mark in marks:
        end = mark.capacity_bytes or right
        axes.plot([start, end], [mark.bytes_per_s] * 2, color=look.ink, linewidth=3.5, alpha=0.22, zorder=2)
        if mark.capacity_bytes is not None:
            axes.plot(
                [end, end], [low, high], color=look.ink, linewidth=0.8, alpha=0.55, linestyle=(0, (4, 3)), zorder=1
            )
        if left <= (start * end) ** 0.5 <= right:
            middles.append((max(left, start) * min(right, end)) ** 0.5)
            texts.append(f"{mark.name}\n{show_bandwidth(mark.bytes_per_s, 3)}")
        start = end
    if not texts:
        return
    per_inch = log10(right / left) / frame.inches[0]
    width = (max(look.width_in(t) for t in texts) + 0.1) * per_inch
    places = stack_up_to([log10(m) - width / 2 for m in middles], width, log10(right))
    for place, text in zip(places, texts, strict=True):
        axes.text(
            10 ** (place + width / 2), high / (high / low) ** 0.012, text, fontsize=look.small, color=look.ink,
            ha="center", va="top", zorder=5,
        )  # fmt: skip
