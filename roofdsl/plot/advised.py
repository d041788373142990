"""Advice as bars: the predicted time of a kernel as it is and after each change, by what then bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from textwrap import wrap
from typing import Any

from roofdsl.machine.quantities import show_number, show_time
from roofdsl.plot.board import DPI, INK, NORMAL, OKABE_ITO, PAPER, SMALL, check_format, darker, save_figure

WIDTH_IN = 8.0
LONGEST_LINE = 36
LEFT = 0.385
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
"""With the colours, for print in grey."""

WIDE = 8
"""Times that are further apart than this factor are drawn on a logarithmic axis."""

STYLES = ((0, (4, 2)), (0, (1, 1.4)))


@dataclass(frozen=True)
class Change:
    """One bar: the change in words, its time, what bounds it then; at_most: the time is an upper bound."""

    label: str
    time_s: float
    bound: str
    at_most: bool = False


@dataclass(frozen=True)
class Floor:
    """A time that is not passed, as a line: what it is, in words."""

    label: str
    time_s: float


def save_advice(path: Path, changes: Sequence[Change], floors: Sequence[Floor], title: str) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    The first change is the kernel as it is. Raises CommandError for another ending, or where it cannot be written.
    """
    save_figure(path, check_format(path), lambda: draw_advice(changes, floors, title))


def draw_advice(changes: Sequence[Change], floors: Sequence[Floor], title: str) -> Any:
    """The matplotlib Figure."""
    from matplotlib.figure import Figure

    labels = ["\n".join(wrap(c.label, LONGEST_LINE)) for c in changes]
    rows = [0.30 + 0.14 * label.count("\n") for label in labels]
    above, below = 0.24 + 0.2 * (title.count("\n") + 1), 0.62 + 0.2 * ceil((1 + len(floors)) / 2)
    below += 0.2 * ((len({c.bound for c in changes}) - 1) // 5)
    height = above + below + sum(rows)
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes((LEFT, below / height, 0.98 - LEFT, sum(rows) / height))
    low, high, logarithmic = _window(changes, floors)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(sum(rows), 0)
    bounds = list(dict.fromkeys(c.bound for c in changes))
    y = 0.0
    places = []
    for change, row in zip(changes, rows, strict=True):
        places.append(y + row / 2)
        y += row
        _bar(axes, change, changes[0], places[-1], (bounds.index(change.bound), low, high, logarithmic))
    for f, style in zip(floors, STYLES, strict=False):
        axes.axvline(f.time_s, color=INK, linewidth=1.3, linestyle=style, zorder=4)
    _axis(axes, low, high, logarithmic)
    axes.set_yticks(places, labels, fontsize=NORMAL)
    axes.tick_params(axis="y", length=0)
    figure.text(0.02, 1 - 0.1 / height, title, fontsize=NORMAL + 2, color=INK, va="top")
    _legend(figure, bounds, floors, height)
    return figure


def _window(changes: Sequence[Change], floors: Sequence[Floor]) -> tuple[float, float, bool]:
    """The axis, with room for what is written behind the longest bar."""
    times = [c.time_s for c in changes]
    shortest, longest = min([*times, *(f.time_s for f in floors)]), max(times)
    if longest <= WIDE * shortest:
        return 0.0, longest * 1.42, False
    low = shortest / 1.8
    return low, longest * (longest / low) ** 0.36, True


def _bar(axes: Any, change: Change, now: Change, y: float, place: tuple[int, float, float, bool]) -> None:
    number, low, high, logarithmic = place
    color = OKABE_ITO[number % len(OKABE_ITO)]
    axes.barh(
        y, change.time_s - low, left=low, height=0.2, color=color, edgecolor=PAPER, linewidth=0.6,
        hatch=HATCHES[number % len(HATCHES)], zorder=3,
    )  # fmt: skip
    text = ("<= " if change.at_most else "") + show_time(change.time_s, 3)
    if change is not now:
        text += f"   {'>= ' if change.at_most else ''}{show_number(now.time_s / change.time_s, 3)}x"
    behind = change.time_s * (high / low) ** 0.012 if logarithmic else change.time_s + 0.012 * high
    axes.text(
        behind, y, text, fontsize=SMALL, color=INK, va="center", zorder=6,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip


def _axis(axes: Any, low: float, high: float, logarithmic: bool) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    if logarithmic:
        factors = (1, 3) if high / low < 3000 else (1,)
        decades = range(floor(log10(low)), ceil(log10(high)) + 1)
        ticks = [f * 10.0**d for d in decades for f in factors if low <= f * 10.0**d <= high]
    else:
        step = 10 ** floor(log10(high / 3))
        step *= next(f for f in (1, 2, 5, 10) if high / (f * step) <= 6)
        ticks = [k * step for k in range(int(high / step) + 1)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FixedFormatter([show_time(t, 3) for t in ticks]))
    axes.set_xlabel("Predicted time" + (" (logarithmic)" if logarithmic else ""), fontsize=NORMAL + 1)
    axes.grid(True, axis="x", color="#E9E9E9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=NORMAL)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _legend(figure: Any, bounds: Sequence[str], floors: Sequence[Floor], height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    patches = [
        Patch(
            facecolor=OKABE_ITO[k % len(OKABE_ITO)], edgecolor=PAPER, hatch=HATCHES[k % len(HATCHES)],
            label=f"bound by {bound}",
        )
        for k, bound in enumerate(bounds)
    ]  # fmt: skip
    lines = [
        Line2D([], [], color=INK, linewidth=1.3, linestyle=style, label=f.label)
        for f, style in zip(floors, STYLES, strict=False)
    ]
    down = 0.2 * ceil(len(lines) / 2)
    shown = figure.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(0.01, (0.04 + down) / height), frameon=False,
        fontsize=SMALL, ncols=5, borderaxespad=0, columnspacing=1.4,
    )  # fmt: skip
    for k, text in enumerate(shown.get_texts()):
        text.set_color(darker(OKABE_ITO[k % len(OKABE_ITO)]))
    if lines:
        figure.legend(
            handles=lines, loc="lower left", bbox_to_anchor=(0.01, 0.04 / height), frameon=False, fontsize=SMALL,
            ncols=2, borderaxespad=0, columnspacing=1.4,
        )  # fmt: skip
