"""Run times as bars: programs divided by kernel, launch overhead, and measurements next to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_time
from roofdsl.plot.chosen_measurements import by_size, fastest, with_state
from roofdsl.plot.kind import Asked, Kind, at_option
from roofdsl.plot.look import OKABE_ITO, USUAL, Look, fitted, named, no_y_limits, styled, text_width
from roofdsl.plot.roofline_points import labels_of
from roofdsl.plot.ticks import time_axis
from roofdsl.validate.compare import Comparison

OTHERS = "others"
WIDTH_IN = 8.0
LONGEST_LINE = 34
PALETTE = (*OKABE_ITO, "#004C77", "#8A3C00", "#00664A", "#7E4A68")
"""Colours of kernels, beginning with the longest-running one: those of other figures, and darker versions of four of
them.
"""

_GREY = "#8A8A8A"


@dataclass(frozen=True)
class Bar:
    """One kernel or program at one size.

    parts: seconds by kernel. launch_s: launches times launch time, a mark on the bar. measured_s: (low, median, high),
    if it was also measured. measured_parts: for a program, the measured seconds by kernel.
    """

    label: str
    parts: tuple[tuple[str, float], ...]
    launch_s: float = 0.0
    measured_s: tuple[float, float, float] | None = None
    measured_parts: tuple[tuple[str, float], ...] = ()

    @property
    def total_s(self) -> float:
        """The run time at the bound."""
        return sum(seconds for _, seconds in self.parts)


def gathered(bars: Sequence[Bar]) -> tuple[list[Bar], list[str]]:
    """The bars with their parts in the same order, and that order: the kernel with the longest total time comes first.

    If there are more kernels than colours, the shortest ones are combined as `others`.
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
    """The parts in this order, with those of other kernels combined at the end."""
    own = sorted((part for part in parts if part[0] in kept), key=lambda part: kept.index(part[0]))
    rest = sum(seconds for name, seconds in parts if name not in kept)
    return (*own, (OTHERS, rest)) if rest else tuple(own)


@styled
def draw_runtime(bars: Sequence[Bar], title: str, *, look: Look = USUAL) -> Any:
    """The matplotlib Figure: bars one below the other, each with its time, coloured by kernel if a bar has several.

    Raises CommandError without a time, and if the bars do not fit into the requested size.
    """
    if not any(bar.total_s for bar in bars):
        raise CommandError("there is no run time to draw", "give FILEs and a machine")
    no_y_limits(look, "bars")
    shown, names = gathered(bars)
    scale = look.font_scale
    colors = _colors(names if any(len(bar.parts) > 1 for bar in shown) else [], look)
    handles = _handles(shown, names, colors, look)
    width = look.size((WIDTH_IN, 1.0))[0]
    columns = max(1, int((width - 0.2) / (0.55 * scale + max([0.0, *(look.width_in(h.get_label()) for h in handles)]))))
    below = (0.6 + 0.21 * -(-len(handles) // columns)) * scale  # inches: ticks, the axis's name, the legend
    heading = look.heading(title, width - 0.3)
    above = 0.22 + 0.2 * scale * (heading.count("\n") + 1)
    longest_line = max(12, int((width * 0.42) * 72 / (0.58 * look.normal)))
    labels = [fitted(bar.label, min(LONGEST_LINE, longest_line), 3) for bar in shown]
    lines = max(label.count("\n") for label in labels)
    row = (0.5 if any(bar.measured_parts for bar in shown) else 0.36) + 0.15 * lines
    height = look.size_in[1] if look.size_in else below + above + row * scale * len(shown) + 0.1
    if height - below - above < 0.1 * len(shown):
        raise CommandError(f"{len(shown)} bars do not fit into {height:g} inches", "use a larger --size, or omit it")
    figure = Look(dark=look.dark, size_in=(width, height)).figure((width, height))
    left = 0.25 / width + max(text_width(label, look.normal) for label in labels) / 72 / width
    last = 0.5 * look.width_in("200 us", look.normal) / width
    axes = figure.add_axes((left, below / height, 1 - 0.02 - last - left, 1 - (below + above) / height))
    longest = max(max(bar.total_s, *(bar.measured_s or (0.0,))) for bar in shown)
    texts = [_written(bar) for bar in shown]
    inches = (1 - 0.02 - last - left) * width
    room = min(0.6, max(look.width_in(t) for t in texts) / inches + 0.03)  # for the text next to the bars
    low, most = look.limits((0, longest / (1 - room)), "x", logarithmic=False)
    axes.set_xlim(low, most)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    for y, (bar, text) in enumerate(zip(shown, texts, strict=True)):
        end = _bar(axes, y, bar, colors, look)
        if low <= end <= most:
            axes.text(
                end + (most - low) * 0.008, y, text, fontsize=look.small, color=look.ink, va="center", zorder=8,
                clip_on=False,
            )  # fmt: skip
    time_axis(axes, look, (low, most), inches, "Run time")
    axes.set_yticks(range(len(shown)), labels, fontsize=look.normal)
    axes.tick_params(axis="y", length=0)
    figure.text(0.1 / width, 1 - 0.1 / height, heading, fontsize=look.large, color=look.ink, va="top")
    if handles:
        legend = figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.01, 0.05 / height), frameon=False,
            fontsize=look.small, ncols=columns, borderaxespad=0,
        )  # fmt: skip
        for entry in legend.get_texts():
            entry.set_color(look.letters(colors[entry.get_text()]) if entry.get_text() in colors else look.ink)
    return figure


def _written(bar: Bar) -> str:
    """The text next to a bar."""
    text = show_time(bar.total_s, 3)
    return text if bar.measured_s is None else f"{text}, measured {show_time(bar.measured_s[1], 3)}"


def _colors(names: Sequence[str], look: Look) -> dict[str, str]:
    own = [look.letters(c) for c in OKABE_ITO[:4]] if look.dark else PALETTE[len(OKABE_ITO) :]
    palette = (*OKABE_ITO, *own)
    return {name: _GREY if name == OTHERS else palette[k % len(palette)] for k, name in enumerate(names)}


def _bar(axes: Any, y: int, bar: Bar, colors: dict[str, str], look: Look) -> float:
    """Draw one bar and return where it ends."""
    two = bool(bar.measured_parts)
    end = _stack(axes, bar.parts, colors, (y - 0.17, 0.32) if two else (y, 0.62), look=look)
    if two:
        end = max(end, _stack(axes, bar.measured_parts, colors, (y + 0.17, 0.32), look=look, measured=True))
    if bar.launch_s:
        axes.plot(
            [bar.launch_s] * 2, [y - 0.4, y + 0.4], color=look.ink, linewidth=1.3, linestyle=(0, (2, 1)), zorder=5
        )
    if bar.measured_s is not None:
        low, median, high = bar.measured_s
        at = y + 0.17 if two else y
        axes.plot([low, high], [at, at], color=look.ink, linewidth=1.4, zorder=6)
        axes.plot(
            [median], [at], "s", color=look.paper, markeredgecolor=look.ink, markersize=6, markeredgewidth=1.4, zorder=7
        )
        end = max(end, high)
    return max(end, bar.launch_s)


def _stack(
    axes: Any,
    parts: Sequence[tuple[str, float]],
    colors: dict[str, str],
    place: tuple[float, float],
    *,
    look: Look,
    measured: bool = False,
) -> float:
    """Draw the parts next to each other at (y, height), measured ones hatched, and return where they end."""
    start = 0.0
    for name, seconds in parts:
        hatch = "////" if measured else None
        axes.barh(
            place[0], seconds, left=start, height=place[1], color=colors.get(name, _GREY if colors else OKABE_ITO[0]),
            edgecolor=look.paper,
            linewidth=0.6, hatch=hatch, zorder=3,
        )  # fmt: skip
        start += seconds
    return start


def _handles(bars: Sequence[Bar], names: Sequence[str], colors: dict[str, str], look: Look) -> list[Any]:
    """The entries of the legend: the kernels if a bar has several, and the meaning of the marks."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    if any(len(bar.parts) > 1 for bar in bars):
        handles += [Patch(color=colors[name], label=named(name)) for name in names]
    if any(bar.launch_s for bar in bars):
        dashes: Any = (0, (2, 1))
        handles.append(Line2D([], [], color=look.ink, linewidth=1.3, linestyle=dashes, label="launches x launch time"))
    if any(bar.measured_s for bar in bars):
        square = Line2D([], [], color=look.ink, label="measured, 10 to 90 %", marker="s", markerfacecolor=look.paper)
        handles.append(square)
    if any(bar.measured_parts for bar in bars):
        handles.append(Patch(facecolor=_GREY, edgecolor=look.paper, hatch="////", label="measured, by kernel"))
    return handles


# ---- the command ----


def _figure(asked: Asked) -> Any:
    found = asked.launched()
    predictions = [p for p, _ in found]
    times = by_size(asked.measured(asked.options))
    bars = []
    for (p, program), label in zip(found, labels_of(predictions), strict=True):
        rows = program.by_kernel if program is not None else ()
        parts = [(row.total.kernel, float(row.total.bound_s)) for row in rows] or [(p.kernel, float(p.bound_s))]
        bar = Bar(label, tuple(parts), float(p.launch_s))
        named_label = label if p.kernel in label else f"{p.kernel} {label}"
        runs = with_state(times.get((p.kernel, p.parameters), []), warm=False)
        measured = fastest(runs, named_label, asked.warn)
        bars.append(bar if measured is None else _measured(bar, measured))
    return draw_runtime(bars, asked.title(predictions), look=asked.look)


def _measured(bar: Bar, found: Comparison) -> Bar:
    """The bar with its measured time; for a program also by kernel, each kernel with all its sizes combined."""
    m, parts = found.measurement, dict[str, float]()
    for part in m.by_launch:
        parts[part.of.kernel] = parts.get(part.of.kernel, 0.0) + part.median_s
    return replace(bar, measured_s=(m.low_s, m.median_s, m.high_s), measured_parts=tuple(parts.items()))


KIND = Kind(
    "Draw run times as bars.",
    "Draw run times at the bound as bars, with the launch overhead; the bars of programs are split by kernel.",
    (
        "machine",
        "set",
        at_option("A size to draw, or a range of sizes (repeatable); drawn in the order given."),
        "results",
        "traffic",
        "unit",
    ),
    _figure,
    files="FILE...",
    has_bars=True,
)
