"""The figure of Q(Z): traffic over cache size, both logarithmic."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from math import log2
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.machine.quantities import show_bytes, show_size
from roofdsl.plot.board import Frame, frame_of, log_axes, size_ticks
from roofdsl.plot.kind import Asked, Kind, Option
from roofdsl.plot.look import OKABE_ITO, USUAL, Look, named, styled, text_width
from roofdsl.plot.ticks import log_ticks, set_ticks
from roofdsl.plot.traffic_content import TrafficContent, traffic_content

_EXACT, _POINT, _BOUND, _BEST = OKABE_ITO[0], OKABE_ITO[1], OKABE_ITO[2], OKABE_ITO[3]


@styled
def draw_traffic(content: TrafficContent, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure, not bound to any display. Raises CommandError for nothing to draw."""
    if content.curve is None and not content.plateaus and not content.points:
        raise CommandError("there is nothing to draw: no plateau was derived, and the run is too long to simulate")
    left, right, low, high = _window(content)
    (left, right), (low, high) = look.limits((left, right), "x"), look.limits((low, high), "y")
    shown = log_ticks(low, high, most=9)
    frame = frame_of(look, content.title, [show_bytes(t) for t in shown], own=(8.0, 5.0), top_in=0.16, right_in=0.32)
    axes = frame.axes
    log_axes(axes, look, (left, right), (low, high), ("Cache size Z", "Traffic Q"))
    size_ticks(frame, look, left, right)
    set_ticks(axes.yaxis, shown, show_bytes)
    _caches(frame, content, look)
    if content.bound is not None:
        axes.plot(*content.bound, color=_BOUND, linewidth=1.5, linestyle=(0, (1, 1.5)), label="I/O lower bound")
    _best(frame, content, right)
    if content.curve is not None:
        sizes, values = content.curve
        axes.plot(
            [*sizes, max(right, sizes[-1])], [*values, values[-1]], drawstyle="steps-post", color=_EXACT,
            linewidth=2.0, label=content.curve_label, zorder=4,
        )  # fmt: skip
    for k, p in enumerate(content.plateaus):
        end = min(p.end_bytes or right, right)
        if p.traffic_bytes <= 0 or end <= left:
            continue
        axes.plot(
            [max(p.start_bytes, left), end], [p.traffic_bytes] * 2, color=look.grey("#777777"), linewidth=6,
            alpha=0.35, solid_capstyle="butt", zorder=3, label="plateau, closed form" if k == 0 else None,
        )  # fmt: skip
    _name_plateaus(frame, content, look)
    for kind in dict.fromkeys(p.kind for p in content.points):
        own = [p for p in content.points if p.kind == kind and p.traffic_bytes > 0]
        axes.plot(
            [p.cache_bytes for p in own], [p.traffic_bytes for p in own], "o", color=look.paper,
            markeredgecolor=_POINT, markersize=6, markeredgewidth=1.5, label=kind, zorder=5,
        )  # fmt: skip
    _dress(frame, content, look)
    return frame.figure


def _best(frame: Frame, content: TrafficContent, right: float) -> None:
    """Draw the line of the best replacement, and the band between it and the curve of LRU."""
    if content.best is None:
        return
    sizes, values = content.best
    end = max(right, sizes[-1])
    frame.axes.plot(
        [*sizes, end], [*values, values[-1]], drawstyle="steps-post", color=_BEST, linewidth=1.2, zorder=3.5,
        label="Q(Z), best replacement",
    )  # fmt: skip
    if content.curve is None:
        return
    edges = sorted({*sizes, *content.curve[0], end} - {z for z in sizes if z < content.curve[0][0]})
    upper, lower = (_at(steps, edges) for steps in (content.curve, content.best))
    frame.axes.fill_between(edges, upper, lower, step="post", color=_BEST, alpha=0.18, linewidth=0, zorder=2)


def _at(steps: tuple[Sequence[float], Sequence[float]], sizes: Sequence[float]) -> list[float]:
    """The traffic at each of `sizes`; below the first step, that of the first step."""
    return [steps[1][max(0, bisect_right(steps[0], z) - 1)] for z in sizes]


def _caches(frame: Frame, content: TrafficContent, look: Look) -> None:
    """A line for each cache of the machine, with its name; names of caches of similar size are moved apart."""
    axes = frame.axes
    (left, right), high = axes.get_xlim(), axes.get_ylim()[1]
    line = look.small * 1.35 / 72 / frame.inches[0]  # of the axes' width
    last = 0.0
    for name, size in sorted(content.caches, key=lambda c: c[1]):
        if not left <= size <= right:
            continue
        axes.axvline(size, color=look.grey("#BBBBBB"), linewidth=1.2, zorder=2.2)
        last = max(log2(size / left) / log2(right / left), last + line)
        axes.text(
            left * (right / left) ** last, high, f" {named(name)} {show_size(size)} ", fontsize=look.small,
            color=look.grey("#555555"), rotation=90, ha="right", va="top", zorder=2,
            bbox={"facecolor": look.paper, "edgecolor": "none", "alpha": 0.75, "pad": 0.2},
        )  # fmt: skip


def _window(content: TrafficContent) -> tuple[float, float, float, float]:
    """Left, right, low and high: all steps and caches, with room on every side."""
    xs = [float(s) for s in (content.curve[0] if content.curve else ())]
    xs += [p.start_bytes for p in content.plateaus] + [float(p.cache_bytes) for p in content.points]
    xs += [float(size) for _, size in content.caches]
    ys = [float(v) for v in (content.curve[1] if content.curve else ()) if v > 0]
    ys += [p.traffic_bytes for p in content.plateaus if p.traffic_bytes > 0]
    ys += [float(p.traffic_bytes) for p in content.points if p.traffic_bytes > 0]
    ys = ys or [1.0]
    return min(xs) / 1.5, max(xs) * 4, min(ys) / 1.8, max(ys) * 1.8


def _name_plateaus(frame: Frame, content: TrafficContent, look: Look) -> None:
    """Write the formula above each plateau: in the middle if the plateau is wide enough; otherwise from its left end
    on, or up to the right end of the axes. A formula that would cover another one is left out.
    """
    axes = frame.axes
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    width, height = log2(right / left), log2(high / low)
    inches = frame.inches
    tall = look.small * 1.7 / 72 / inches[1]
    # label, its beginning, end, and height, as fractions of the axes
    wide: list[tuple[str, float, float, float]] = []
    narrow: list[tuple[str, float, float, float]] = []
    for p in content.plateaus:
        start, end = max(p.start_bytes, left), min(p.end_bytes or right, right)
        if p.traffic_bytes <= 0 or end <= start or not p.label or not low <= p.traffic_bytes <= high:
            continue
        begin, stop = log2(start / left) / width, log2(end / left) / width
        needs = text_width(re.sub(r"\\[a-z]+|[{}^$ ]", "", p.label), look.small) * 1.15 / 72 / inches[0]
        fits = needs < stop - begin
        beside = begin + 4 / 72 / inches[0]  # keep the step that leads down to it visible
        at = (begin + stop - needs) / 2 if fits else min(beside, 1 - needs)
        (wide if fits else narrow).append((p.label, at, at + needs, log2(p.traffic_bytes / low) / height))
    taken: list[tuple[float, float, float]] = []
    for label, begin, stop, level in [*wide, *narrow]:
        if any(begin < b and a < stop and abs(level - c) < tall for a, b, c in taken):
            continue
        taken.append((begin, stop, level))
        axes.annotate(
            label, ((begin + stop) / 2, level), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points",
            fontsize=look.small, color=look.grey("#444444"), ha="center", va="bottom", zorder=6, parse_math=True,
            bbox={"facecolor": look.paper, "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        )  # fmt: skip


def _dress(frame: Frame, content: TrafficContent, look: Look) -> None:
    axes = frame.axes
    inches, high = frame.inches
    axes.text(
        0, 1.012, named(content.subtitle, int((inches + 0.1) * 72 / (0.52 * look.small))), transform=axes.transAxes,
        fontsize=look.small, color=look.grey("#555555"), va="bottom",
    )  # fmt: skip
    entries = axes.get_legend_handles_labels()[1]
    size = (0.3 if not entries else max(look.width_in(e) for e in entries) + 0.6 * look.font_scale) / inches
    tall = (0.19 * look.font_scale * len(entries) + 0.15) / high
    axes.legend(
        loc=_free_place(axes, content, (size, tall)), fontsize=look.small, facecolor=look.paper, edgecolor="none",
        framealpha=0.8,
    )  # fmt: skip


def _free_place(axes: Any, content: TrafficContent, size: tuple[float, float]) -> str:
    """Where a legend of that size, in fractions of the axes, covers the least of the curves, the plateaus and the
    caches.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    points: list[tuple[float, float]] = []
    for steps in (content.curve, content.best, content.bound):
        if steps is not None:  # evenly along the axis, however many steps there are
            even = [left * (right / left) ** (k / 60) for k in range(61)]
            points += [(z, _at(steps, [z])[0]) for z in even if z >= steps[0][0]]
            points += zip(*steps, strict=True) if len(steps[0]) < len(even) else ()
    for p in content.plateaus:
        end = p.end_bytes or right
        points += [(p.start_bytes * (end / p.start_bytes) ** (k / 20), p.traffic_bytes) for k in range(21)]
    points += [(p.cache_bytes, p.traffic_bytes) for p in content.points]
    points += [(z, high / (high / low) ** (k / 40)) for _, z in content.caches for k in range(12)]  # their names
    places = [(log2(z / left) / log2(right / left), log2(q / low) / log2(high / low)) for z, q in points if q > 0]

    def covered(place: str) -> int:
        up, aside = place.split()
        bottom = {"lower": 0.0, "center": (1 - size[1]) / 2, "upper": 1 - size[1]}[up]
        start = 0.0 if aside == "left" else 1 - size[0]
        return sum(start <= x <= start + size[0] and bottom <= y <= bottom + size[1] for x, y in places)

    return min(("lower left", "upper right", "lower right", "upper left", "center right", "center left"), key=covered)


# ---- the command ----


def _figure(asked: Asked, *, line: int | None) -> Any:
    if len(asked.subjects) != 1:
        raise CommandError("the figure shows one kernel", f"pick one of {', '.join(k.name for k, _ in asked.subjects)}")
    ((kernel, sizes),) = asked.subjects
    assert isinstance(kernel, Kernel)
    machine = next(iter(asked.machines), None)
    convention = asked.traffic or kernel.traffic or "load_store"
    content = traffic_content(kernel, numbers(kernel, sizes), convention, line, machine=machine)
    figure = draw_traffic(content, look=asked.look)
    if content.note and not content.plateaus:
        asked.warn(f"no plateaus in closed form: {content.note}")
    if content.curve_note:
        asked.warn(f"the curve is not drawn: {content.curve_note}")
    return figure


KIND = Kind(
    "Draw Q(Z): traffic over cache size.",
    "Draw Q(Z) of one kernel, exactly: its closed form if there is one, plateaus, simulated points, Q(Z) under the "
    "best replacement, and the lower bound for any order.",
    (
        "set",
        "traffic",
        Option(
            "--line", "Size of a line; by default, that of the machine's last cache, otherwise an element.", "SIZE",
            takes="size",
        ),
        "optional machine",
    ),
    _figure,
    files="FILE",
)  # fmt: skip
