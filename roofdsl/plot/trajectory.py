"""Trajectories: a kernel over a parameter, or versions of a code one after another, as symbols joined by arrows.

Under the roofs of a machine where intensities are known; else rate over work, with lines of equal time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_rate, show_time
from roofdsl.plot.board import (
    AXES,
    DPI,
    INK,
    NORMAL,
    OKABE_ITO,
    PAPER,
    SIZE_IN,
    SMALL,
    Board,
    check_format,
    draw_axes,
    save_figure,
)
from roofdsl.plot.content import Roof, Window
from roofdsl.plot.hierarchy import MARKERS, name_points, roofs_board
from roofdsl.plot.labels import Box
from roofdsl.plot.levels_content import Kernel, LevelRoofs

_ORIGINS = ("predicted", "measured", "cited")


@dataclass(frozen=True)
class Step:
    """One point of a trajectory. work: operations, None where not known; kernel: its rate and intensities."""

    kernel: Kernel
    work: float | None = None


@dataclass(frozen=True)
class Trajectory:
    """Steps in order; `source` says whose they are, for points that a document states."""

    name: str
    steps: tuple[Step, ...]
    source: str = ""


def save_trajectory(
    path: Path, roofs: LevelRoofs, paths: Sequence[Trajectory], levels: Sequence[str] = (), title: str | None = None
) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    `levels` are those whose intensities are drawn, the memory's by default. Raises CommandError for another ending,
    without a roof, with fewer than two points in all, and where neither intensities nor work are known of all.
    """
    kind = check_format(path)
    if not roofs.roofs:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    if sum(len(p.steps) for p in paths) < 2:
        raise CommandError("a trajectory has at least two points", "give --at twice, several files, or --points")
    save_figure(path, kind, lambda: draw_trajectory(roofs, paths, levels, title))


def draw_trajectory(
    roofs: LevelRoofs, paths: Sequence[Trajectory], levels: Sequence[str] = (), title: str | None = None
) -> Any:
    """The matplotlib Figure; one colour for each trajectory (and level), open symbols for what is not predicted."""
    wanted = tuple(levels) or (roofs.slopes[-1].level,)
    steps = [s for p in paths for s in p.steps]
    heading = title if title is not None else roofs.title or roofs.name
    if all(any(level in wanted for level, _ in s.kernel.intensities) for s in steps):
        board = roofs_board(roofs, [_only(s.kernel, wanted) for s in steps], heading)
        tracks = [(p, level, _along(p, level)) for p in paths for level in wanted]
    elif all(s.work is not None for s in steps):
        board = _work_board(roofs, steps, heading)
        tracks = [(p, "", [(s, float(s.work or 0)) for s in p.steps]) for p in paths]
    else:
        raise CommandError(
            "these points have neither intensities nor work in common",
            "give every point an `intensity` at the level, or `work_flops`",
        )
    tracks = [(p, level, points) for p, level, points in tracks if points]
    colors = [OKABE_ITO[i % len(OKABE_ITO)] for i in range(len(tracks))]
    _legend(board, tracks, colors)
    anchors: list[tuple[float, float]] = []
    texts: list[str] = []
    tints: list[str] = []
    for (path, level, points), color in zip(tracks, colors, strict=True):
        _track(board, points, color, MARKERS[wanted.index(level) % len(MARKERS)] if level else "o")
        if path.name in texts or level == wanted[-1] or not level:
            anchors += [board.pixel(x, s.kernel.rate_per_s) for s, x in points]
            texts += [s.kernel.label for s, _ in points]
            tints += [color] * len(points)
    name_points(board, anchors, texts, tints)
    return board.figure


def _only(kernel: Kernel, levels: Sequence[str]) -> Kernel:
    kept = tuple(pair for pair in kernel.intensities if pair[0] in levels)
    return Kernel(kernel.label, kernel.rate_per_s, kept, kernel.origin)


def _along(path: Trajectory, level: str) -> list[tuple[Step, float]]:
    return [(s, dict(s.kernel.intensities)[level]) for s in path.steps if level in dict(s.kernel.intensities)]


def _track(board: Board, points: Sequence[tuple[Step, float]], color: str, marker: str) -> None:
    """Symbols, and an arrow from each to the next where they are not one on the other."""
    for (one, x), (other, there) in pairwise(points):
        board.arrow((x, one.kernel.rate_per_s), (there, other.kernel.rate_per_s), color)
    for step, x in points:
        face = color if step.kernel.origin == "predicted" else PAPER
        board.axes.plot(
            [x], [step.kernel.rate_per_s], marker, color=face, markeredgecolor=color, markersize=7.5,
            markeredgewidth=1.5, zorder=5,
        )  # fmt: skip


def _work_board(roofs: LevelRoofs, steps: Sequence[Step], title: str) -> Board:
    """Rate over work: the roofs across, and lines of equal time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_IN, dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes(AXES)
    works = [s.work for s in steps if s.work]
    rates = [s.kernel.rate_per_s for s in steps]
    shown = [r for r in roofs.roofs if r.rate_per_s < 4 * max(rates)] or [roofs.roofs[-1]]
    x = (min(works) / 1.6, max(works) * 1.6)
    y = (min(rates) / 1.8, max([*rates, *(r.rate_per_s for r in shown)]) * 1.5)
    window = Window(x, y)
    draw_axes(axes, window, title, roofs.operation == "OP")
    axes.set_xlabel(f"Work W ({roofs.operation})", fontsize=NORMAL + 1)
    _ticks(axes, window)
    board = Board(figure, axes, window)
    board.points = [board.pixel(float(s.work or 0), s.kernel.rate_per_s) for s in steps]
    for roof in shown:
        _across(board, roof)
    _equal_times(board)
    return board


def _ticks(axes: Any, window: Window) -> None:
    """Ticks at 1, 2 and 5 in every decade: these planes often span less than one."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    for axis, (low, high) in ((axes.xaxis, window.x), (axes.yaxis, window.y)):
        ticks = [d * 10.0**e for e in range(floor(log10(low)), ceil(log10(high)) + 1) for d in (1, 2, 3, 5, 7)]
        shown = [t for t in ticks if low <= t <= high]
        axis.set_major_locator(FixedLocator(shown))
        axis.set_major_formatter(FixedFormatter([show_rate(t, "").removesuffix("/s") for t in shown]))


def _across(board: Board, roof: Roof) -> None:
    style: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.0} if roof.is_ceiling else {"linewidth": 1.8}
    board.line(board.window.x, (roof.rate_per_s, roof.rate_per_s), color=INK, zorder=3, **style)
    px, py = board.frame.x1 - 4, board.pixel(board.window.x[1], roof.rate_per_s)[1] + 3
    width, height = board.size(roof.label, SMALL)
    while (in_the_way := [b for b in board.taken if b.overlap(Box(px - width, py, px, py + height))]) and px > width:
        px = min(b.x0 for b in in_the_way) - 12
    board.text(px, py, roof.label, SMALL, color=INK, ha="right", va="bottom")
    board.taken.append(Box(px - width, py, px, py + height))


def _equal_times(board: Board) -> None:
    """Dotted lines P = W / T at times of one digit, named where they leave the window below or on the left."""
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    for exponent in range(floor(log10(x0 / y1)), ceil(log10(x1 / y0)) + 1):
        for digit in (1, 2, 5):
            time = digit * 10.0**exponent
            low, high = max(x0, y0 * time), min(x1, y1 * time)
            if low >= high * 0.98:
                continue
            board.line((low, high), (low / time, high / time), color="#9A9A9A", linewidth=0.9, linestyle=":", zorder=2)
            text = f"T = {show_time(time)}"
            px, py = board.pixel(low, low / time)
            width, height = board.size(text, SMALL)
            box = Box(px + 6, py + 5, px + 6 + width, py + 5 + height)
            if box.within(board.frame) and not any(box.overlap(t) for t in board.taken):
                board.text(box.x0, box.y0, text, SMALL, color="#666666", ha="left", va="bottom")
                board.taken.append(box)


def _legend(board: Board, tracks: Sequence[tuple[Trajectory, str, Any]], colors: Sequence[str]) -> None:
    """Trajectories by colour, where there are several, and what open symbols are; sources beneath."""
    from matplotlib.lines import Line2D

    handles = []
    if len(tracks) > 1:
        for (path, level, _), color in zip(tracks, colors, strict=True):
            name = f"{path.name}, {level}" if level else path.name
            handles.append(Line2D([], [], color=color, linewidth=2, label=name))
    origins = [o for o in _ORIGINS if any(s.kernel.origin == o for p, _, _ in tracks for s in p.steps)]
    for origin in origins:
        face = "#777777" if origin == "predicted" else PAPER
        sources = dict.fromkeys(p.source for p, _, _ in tracks if p.source and origin == "cited")
        label = f"cited: {'; '.join(sources)}" if sources else origin
        if origin != "predicted" or len(origins) > 1:
            handles.append(Line2D([], [], linestyle="", marker="o", color=face, markeredgecolor="#777777", label=label))
    if handles:
        board.axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=SMALL)
        width = max(board.size(str(h.get_label()), SMALL)[0] for h in handles) + 50
        height = 20 * len(handles) + 8
        board.taken.append(Box(board.frame.x1 - width, 0, board.frame.x1, board.frame.y0 + height))
