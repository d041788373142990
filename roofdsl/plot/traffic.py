"""The figure of Q(Z): traffic over cache size, both logarithmic."""

from __future__ import annotations

import os
import re
from io import BytesIO
from math import log2
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_bytes, show_size
from roofdsl.plot.board import FORMATS, INK, OKABE_ITO, PAPER
from roofdsl.plot.traffic_content import TrafficContent

_SIZE_IN = (8.0, 5.0)
_DPI = 100
_SMALL, _NORMAL = 8.5, 9.5
_EXACT, _PLATEAU, _POINT, _BOUND = OKABE_ITO[0], "#777777", OKABE_ITO[1], OKABE_ITO[2]


def check_name(path: Path) -> str:
    """The format that a file name asks for. Raises CommandError for one that there is not, before any work is done."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise CommandError(f"`{path}` is no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}", "end its name in .svg")
    if not path.absolute().parent.is_dir():
        raise CommandError(f"`{path}` cannot be written: there is no folder `{path.parent}`")
    return kind


def save_traffic(path: Path, content: TrafficContent) -> None:
    """Draws the figure into `path`, whose ending is the format; whole or not at all, the same for the same input.

    Raises CommandError for another ending, what `draw_traffic` raises, and where the file cannot be written.
    """
    kind = check_name(path)
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = draw_traffic(content)
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        drawn = BytesIO()
        figure.savefig(drawn, format=kind, dpi=2 * _DPI, metadata=metadata)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(drawn.getvalue())
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise CommandError(f"`{path}` cannot be written: {error.strerror or error}") from None


def draw_traffic(content: TrafficContent) -> Any:
    """The matplotlib Figure, not bound to any display. Raises CommandError for nothing to draw."""
    if content.curve is None and not content.plateaus and not content.points:
        raise CommandError("there is nothing to draw: no plateau was derived, and the run is too long to simulate")
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_IN, dpi=_DPI, facecolor=PAPER)
    axes = figure.add_axes((0.105, 0.115, 0.865, 0.775))
    left, right, low, high = _window(content)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    for name, size in content.caches:
        if left <= size <= right:
            axes.axvline(size, color="#BBBBBB", linewidth=1.2, zorder=1)
            axes.text(
                size, high, f" {name} {show_size(size)}", fontsize=_SMALL, color="#555555", rotation=90, ha="right",
                va="top", zorder=2,
            )  # fmt: skip
    if content.bound is not None:
        axes.plot(*content.bound, color=_BOUND, linewidth=1.5, linestyle=(0, (1, 1.5)), label="I/O lower bound")
    if content.curve is not None:
        sizes, values = content.curve
        axes.plot(
            [*sizes, right], [*values, values[-1]], drawstyle="steps-post", color=_EXACT, linewidth=2.0,
            label=content.curve_label, zorder=4,
        )  # fmt: skip
    for k, p in enumerate(content.plateaus):
        end = min(p.end_bytes or right, right)
        if p.traffic_bytes <= 0 or end <= left:
            continue
        axes.plot(
            [max(p.start_bytes, left), end], [p.traffic_bytes] * 2, color=_PLATEAU, linewidth=6, alpha=0.35,
            solid_capstyle="butt", zorder=3, label="plateau, closed form" if k == 0 else None,
        )  # fmt: skip
    _name_plateaus(axes, content, (left, right))
    for kind in dict.fromkeys(p.kind for p in content.points):
        own = [p for p in content.points if p.kind == kind and p.traffic_bytes > 0]
        axes.plot(
            [p.cache_bytes for p in own], [p.traffic_bytes for p in own], "o", color=PAPER, markeredgecolor=_POINT,
            markersize=6, markeredgewidth=1.5, label=kind, zorder=5,
        )  # fmt: skip
    _dress(axes, content, (left, right))
    return figure


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


def _name_plateaus(axes: Any, content: TrafficContent, window: tuple[float, float]) -> None:
    """The formula above each plateau, in its middle, where it is wide enough; else from its left, or up to the right
    end, unless it would lie on another.
    """
    left, right = window
    low, high = axes.get_ylim()
    width, height = log2(right / left), log2(high / low)
    wide: list[
        tuple[str, float, float, float]
    ] = []  # label, where it begins, ends, and its height, in parts of the axes
    narrow: list[tuple[str, float, float, float]] = []
    for p in content.plateaus:
        start, end = max(p.start_bytes, left), min(p.end_bytes or right, right)
        if p.traffic_bytes <= 0 or end <= start or not p.label:
            continue
        begin, stop = log2(start / left) / width, log2(end / left) / width
        needs = len(re.sub(r"\\[a-z]+|[{}^$ ]", "", p.label)) * 0.011
        fits = needs < stop - begin
        at = (begin + stop - needs) / 2 if fits else min(begin, 1 - needs)
        (wide if fits else narrow).append((p.label, at, at + needs, log2(p.traffic_bytes / low) / height))
    taken: list[tuple[float, float, float]] = []
    for label, begin, stop, level in [*wide, *narrow]:
        if any(begin < b and a < stop and abs(level - c) < 0.06 for a, b, c in taken):
            continue
        taken.append((begin, stop, level))
        axes.annotate(
            label, ((begin + stop) / 2, level), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points",
            fontsize=_SMALL, color="#444444", ha="center", va="bottom", zorder=6,
            bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        )  # fmt: skip


def _dress(axes: Any, content: TrafficContent, window: tuple[float, float]) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullFormatter, NullLocator

    left, right = window
    first, last = int(log2(left)) + 1, int(log2(right))
    step = max(1, -(-(last - first + 1) // 12))
    ticks = [2.0**e for e in range(first, last + 1, step)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([show_size(int(t)) if t >= 1 else "" for t in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: show_bytes(v)))
    low, high = axes.get_ylim()
    if high / low > 30:
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda v, _: show_bytes(v, 2)))
    axes.set_xlabel("Cache size Z", fontsize=_NORMAL + 1)
    axes.set_ylabel("Traffic Q", fontsize=_NORMAL + 1)
    axes.set_title(content.title, fontsize=_NORMAL + 2, loc="left", color=INK, pad=18)
    axes.text(0, 1.012, content.subtitle, transform=axes.transAxes, fontsize=_SMALL, color="#555555", va="bottom")
    axes.grid(True, which="major", color="#E4E4E4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=_SMALL, which="both")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="lower left", frameon=False, fontsize=_SMALL)
