"""Advice as bars: the predicted time of a kernel as it is and after each change, coloured by what then bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_number, show_time
from roofdsl.plot.look import USUAL, Look, fitted, no_y_limits, styled, text_width
from roofdsl.plot.ticks import time_axis

WIDTH_IN = 8.0
LEAST = 0.5
"""Rows may be squeezed to this fraction of their usual height; below it, their labels no longer fit."""
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
"""Used in addition to the colours, for print in grey."""

WIDE = 8
"""If times differ by more than this factor, the axis is logarithmic."""

STYLES = ((0, (4, 2)), (0, (1, 1.4)))


@dataclass(frozen=True)
class Change:
    """One bar: a description of the change, its time, and what bounds it then; at_most: the time is an upper bound."""

    label: str
    time_s: float
    bound: str
    at_most: bool = False


@dataclass(frozen=True)
class Floor:
    """A lower bound on the time, drawn as a line with a description."""

    label: str
    time_s: float


@styled
def draw_advice(changes: Sequence[Change], floors: Sequence[Floor], title: str, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure; the first change is the kernel as it is."""
    no_y_limits(look, "bars")
    scale, width = look.font_scale, look.size((WIDTH_IN, 1.0))[0]
    longest = max(12, int(width * 0.36 * 72 / (0.58 * look.normal)))
    labels = [fitted(c.label, longest, 6) for c in changes]
    rows = [(0.30 + 0.14 * label.count("\n")) * scale for label in labels]
    heading = look.heading(title, width - 0.3)
    bounds = list(dict.fromkeys(c.bound for c in changes))
    each = [max([0.5, *(look.width_in(t) for t in texts)]) + 0.55 * scale for texts in _legend_texts(bounds, floors)]
    columns = [max(1, int((width - 0.2) / e)) for e in each]
    lines = [ceil(len(t) / c) for t, c in zip(_legend_texts(bounds, floors), columns, strict=True)]
    above, below = 0.24 + 0.2 * scale * (heading.count("\n") + 1), (0.62 + 0.2 * sum(lines)) * scale
    height = look.size_in[1] if look.size_in else above + below + sum(rows)
    if height - above - below < LEAST * sum(rows):
        what = f"{len(rows)} bars do not fit into {height:g} inches"
        raise CommandError(what, "use a larger --size, or omit it")
    figure = Look(dark=look.dark, size_in=(width, height)).figure((width, height))
    left = 0.2 / width + max(text_width(label, look.normal) for label in labels) / 72 / width
    axes = figure.add_axes((left, below / height, 0.97 - left, 1 - (above + below) / height))
    inches = (0.97 - left) * width
    low, high, logarithmic = _window(changes, floors, look, inches)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(sum(rows), 0)
    y = 0.0
    places = []
    for change, row in zip(changes, rows, strict=True):
        places.append(y + row / 2)
        y += row
        place = (bounds.index(change.bound), low, high, logarithmic)
        _bar(axes, change, changes[0], places[-1], place=place, look=look)
    for f, style in zip(floors, STYLES, strict=False):
        axes.axvline(f.time_s, color=look.ink, linewidth=1.3, linestyle=style, zorder=4)
    name = "Predicted time" + (" (logarithmic)" if logarithmic else "")
    time_axis(axes, look, (low, high), inches, name, logarithmic=logarithmic)
    axes.set_yticks(places, labels, fontsize=look.normal)
    axes.tick_params(axis="y", length=0)
    figure.text(0.02, 1 - 0.1 / height, heading, fontsize=look.large, color=look.ink, va="top")
    _legend(figure, bounds, floors, height, columns=(columns[0], columns[1], lines[1]), look=look)
    return figure


def _legend_texts(bounds: Sequence[str], floors: Sequence[Floor]) -> tuple[list[str], list[str]]:
    return [f"bound by {b}" for b in bounds], [f.label for f in floors]


def _written(change: Change, now: Change) -> str:
    """The text next to a bar."""
    text = ("<= " if change.at_most else "") + show_time(change.time_s, 3)
    if change is not now:
        text += f"   {'>= ' if change.at_most else ''}{show_number(now.time_s / change.time_s, 3)}x"
    return text


def _window(changes: Sequence[Change], floors: Sequence[Floor], look: Look, inches: float) -> tuple[float, float, bool]:
    """The limits of the axis, with room for the text next to the longest bar, and whether it is logarithmic."""
    times = [c.time_s for c in changes]
    shortest, longest = min([*times, *(f.time_s for f in floors)]), max(times)
    room = min(0.6, max(look.width_in(_written(c, changes[0])) for c in changes) / inches + 0.03)
    if longest <= WIDE * shortest:
        low, high = look.limits((0.0, longest / (1 - room)), "x", logarithmic=False)
        return low, high, False
    low = shortest / 1.8
    low, high = look.limits((low, low * (longest / low) ** (1 / (1 - room))), "x")
    return low, high, True


def _bar(
    axes: Any, change: Change, now: Change, y: float, *, place: tuple[int, float, float, bool], look: Look
) -> None:
    number, low, high, logarithmic = place
    axes.barh(
        y, change.time_s - low, left=low, height=0.2 * look.font_scale, color=look.color(number),
        edgecolor=look.paper, linewidth=0.6, hatch=HATCHES[number % len(HATCHES)], zorder=3,
    )  # fmt: skip
    if not low <= change.time_s <= high:
        return
    behind = change.time_s * (high / low) ** 0.012 if logarithmic else change.time_s + 0.012 * high
    axes.text(
        behind, y, _written(change, now), fontsize=look.small, color=look.ink, va="center", zorder=6,
        bbox={"facecolor": look.paper, "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip


def _legend(
    figure: Any,
    bounds: Sequence[str],
    floors: Sequence[Floor],
    height: float,
    *,
    columns: tuple[int, int, int],
    look: Look,
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    named, floors_named = _legend_texts(bounds, floors)
    patches = [
        Patch(facecolor=look.color(k), edgecolor=look.paper, hatch=HATCHES[k % len(HATCHES)], label=text)
        for k, text in enumerate(named)
    ]
    lines = [
        Line2D([], [], color=look.ink, linewidth=1.3, linestyle=style, label=text)
        for text, style in zip(floors_named, STYLES, strict=False)
    ]
    down = 0.2 * look.font_scale * columns[2]
    style = {"loc": "lower left", "frameon": False, "fontsize": look.small, "borderaxespad": 0, "columnspacing": 1.4}
    shown = figure.legend(handles=patches, bbox_to_anchor=(0.01, (0.04 + down) / height), ncols=columns[0], **style)
    for k, text in enumerate(shown.get_texts()):
        text.set_color(look.letters(look.color(k)))
    if lines:
        figure.legend(handles=lines, bbox_to_anchor=(0.01, 0.04 / height), ncols=columns[1], **style)
