"""Run times as bars: programs in parts by kernel, the launches' overhead, measurements beside predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_time
from roofdsl.plot.board import DPI, INK, NORMAL, OKABE_ITO, PAPER, SMALL, check_format, darker, save_figure
from roofdsl.plot.labels import folded

OTHERS = "others"
WIDTH_IN = 8.0
LONGEST_LINE = 34
RIGHT = 0.955
"""Where the axis ends, of the width: half of the last tick's label stands beyond it."""
PALETTE = (*OKABE_ITO, "#004C77", "#8A3C00", "#00664A", "#7E4A68")
"""Colours of kernels, the one that takes longest first: those of other figures, and darker ones of four of them."""

_GREY = "#8A8A8A"


@dataclass(frozen=True)
class Bar:
    """One kernel or program at one size.

    parts: seconds by kernel. launch_s: launches times launch time, a mark on the bar. measured_s: (low, median, high)
    where it was measured too; measured_parts: the same by kernel, of a program.
    """

    label: str
    parts: tuple[tuple[str, float], ...]
    launch_s: float = 0.0
    measured_s: tuple[float, float, float] | None = None
    measured_parts: tuple[tuple[str, float], ...] = ()

    @property
    def total_s(self) -> float:
        """The expected run time."""
        return sum(seconds for _, seconds in self.parts)


def gathered(bars: Sequence[Bar]) -> tuple[list[Bar], list[str]]:
    """The bars, their parts in one order, and that order: the kernel that takes longest in all together first.

    Where there are more kernels than colours, those that take least are `others`.
    """
    totals: dict[str, float] = {}
    for bar in bars:
        for name, seconds in bar.parts:
            totals[name] = totals.get(name, 0.0) + seconds
    order = sorted(totals, key=lambda name: -totals[name])
    kept = order if len(order) <= len(PALETTE) else order[: len(PALETTE)]
    changed = []
    for bar in bars:
        changed.append(replace(bar, parts=_in(kept, bar.parts), measured_parts=_in(kept, bar.measured_parts)))
    return changed, kept if len(kept) == len(order) else [*kept, OTHERS]


def _in(kept: Sequence[str], parts: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """The parts in this order, those of other kernels together at the end."""
    own = sorted((part for part in parts if part[0] in kept), key=lambda part: kept.index(part[0]))
    rest = sum(seconds for name, seconds in parts if name not in kept)
    return (*own, (OTHERS, rest)) if rest else tuple(own)


def save_runtime(path: Path, bars: Sequence[Bar], title: str) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, without a bar, and where the file cannot be written.
    """
    kind = check_format(path)
    if not any(bar.total_s for bar in bars):
        raise CommandError("there is no run time to draw", "give FILEs and a machine")
    save_figure(path, kind, lambda: draw_runtime(bars, title))


def draw_runtime(bars: Sequence[Bar], title: str) -> Any:
    """The matplotlib Figure: a row for each bar, a dashed mark at the launches' overhead, a line for measured times."""
    from matplotlib.figure import Figure

    shown, names = gathered(bars)
    handles = _handles(shown, names)
    below = 0.6 + 0.21 * ceil(len(handles) / 3)  # inches: ticks, the axis's name, the legend
    above = 0.22 + 0.2 * (title.count("\n") + 1)
    labels = [folded(bar.label, LONGEST_LINE) for bar in shown]
    row = 0.5 if any(bar.measured_parts for bar in shown) or any("\n" in label for label in labels) else 0.36
    height = below + above + row * len(shown) + 0.1
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI, facecolor=PAPER)
    left = min(0.42, 0.03 + 0.0098 * max(len(line) for label in labels for line in label.split("\n")))
    axes = figure.add_axes((left, below / height, RIGHT - left, 1 - (below + above) / height))
    colors = _colors(names)
    longest = max(max(bar.total_s, *(bar.measured_s or (0.0,))) for bar in shown)
    most = longest * (1.5 if any(bar.measured_s for bar in shown) else 1.22)  # room for what is written at the bars
    axes.set_xlim(0, most)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    for y, bar in enumerate(shown):
        _bar(axes, y, bar, colors, longest)
    _axis(axes, most)
    axes.set_yticks(range(len(shown)), labels, fontsize=NORMAL)
    axes.tick_params(axis="y", length=0)
    figure.text(0.02, 1 - 0.1 / height, title, fontsize=NORMAL + 2, color=INK, va="top")
    if handles:
        legend = figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.01, 0.05 / height), frameon=False, fontsize=SMALL,
            ncols=3, borderaxespad=0,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_color(darker(colors[text.get_text()]) if text.get_text() in colors else INK)
    return figure


def _colors(names: Sequence[str]) -> dict[str, str]:
    return {name: _GREY if name == OTHERS else PALETTE[k % len(PALETTE)] for k, name in enumerate(names)}


def _bar(axes: Any, y: int, bar: Bar, colors: dict[str, str], longest: float) -> None:
    two = bool(bar.measured_parts)
    end = _stack(axes, bar.parts, colors, (y - 0.17, 0.32) if two else (y, 0.62))
    if two:
        end = max(end, _stack(axes, bar.measured_parts, colors, (y + 0.17, 0.32), measured=True))
    if bar.launch_s:
        axes.plot([bar.launch_s] * 2, [y - 0.4, y + 0.4], color=INK, linewidth=1.3, linestyle=(0, (2, 1)), zorder=5)
    if bar.measured_s is not None:
        low, median, high = bar.measured_s
        at = y + 0.17 if two else y
        axes.plot([low, high], [at, at], color=INK, linewidth=1.4, zorder=6)
        axes.plot([median], [at], "s", color=PAPER, markeredgecolor=INK, markersize=6, markeredgewidth=1.4, zorder=7)
        end = max(end, high)
    text = show_time(bar.total_s, 3)
    if bar.measured_s is not None:
        text += f", measured {show_time(bar.measured_s[1], 3)}"
    axes.text(max(end, bar.launch_s) + longest * 0.012, y, text, fontsize=SMALL, color=INK, va="center", zorder=8)


def _stack(
    axes: Any,
    parts: Sequence[tuple[str, float]],
    colors: dict[str, str],
    place: tuple[float, float],
    measured: bool = False,
) -> float:
    """Draws the parts one after the other at (y, height), measured ones hatched, and gives where they end."""
    start = 0.0
    for name, seconds in parts:
        hatch = "////" if measured else None
        axes.barh(
            place[0], seconds, left=start, height=place[1], color=colors.get(name, _GREY), edgecolor=PAPER,
            linewidth=0.6, hatch=hatch, zorder=3,
        )  # fmt: skip
        start += seconds
    return start


def _axis(axes: Any, most: float) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator

    step = 10 ** floor(log10(most / 3))
    step *= next(f for f in (1, 2, 5, 10) if most / (f * step) <= 8)
    ticks = [k * step for k in range(int(most / step) + 1)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([show_time(t, 3) for t in ticks]))
    axes.set_xlabel("Run time", fontsize=NORMAL + 1)
    axes.grid(True, axis="x", color="#E9E9E9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=NORMAL)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _handles(bars: Sequence[Bar], names: Sequence[str]) -> list[Any]:
    """What the legend lists: the kernels where a bar has several, and what the marks are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    if any(len(bar.parts) > 1 for bar in bars):
        handles += [Patch(color=color, label=name) for name, color in _colors(names).items()]
    if any(bar.launch_s for bar in bars):
        handles.append(Line2D([], [], color=INK, linewidth=1.3, linestyle=(0, (2, 1)), label="launches x launch time"))
    if any(bar.measured_s for bar in bars):
        square = Line2D([], [], color=INK, label="measured, 10 to 90 %", marker="s", markerfacecolor=PAPER)
        handles.append(square)
    if any(bar.measured_parts for bar in bars):
        handles.append(Patch(facecolor=_GREY, edgecolor=PAPER, hatch="////", label="measured, by kernel"))
    return handles
