"""The hierarchical roofline: a line of bandwidth for every level, and every kernel with a symbol for every level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import cos, degrees, log10, sin
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
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
    darker,
    draw_axes,
    save_figure,
)
from roofdsl.plot.labels import Box, joined, place, shared, stack
from roofdsl.plot.levels_content import Kernel, LevelRoofs, LevelSlope, window_over, with_mixes

MARKERS = ("o", "s", "^", "D", "v", "P")  # by level, nearest first
_ROOF: dict[str, Any] = {"linewidth": 1.8}
_CEILING: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.0}


def save_hierarchy(path: Path, roofs: LevelRoofs, kernels: Sequence[Kernel], title: str | None = None) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, without a roof to draw, and where the file cannot be written.
    """
    kind = check_format(path)
    if not roofs.roofs:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    save_figure(path, kind, lambda: draw_hierarchy(roofs, kernels, title))


def draw_hierarchy(roofs: LevelRoofs, kernels: Sequence[Kernel], title: str | None = None) -> Any:
    """The matplotlib Figure: same colour, same kernel; same marker, same level; open symbols are not predicted.

    A kernel's symbols stand on one height, joined by a line; from each a dotted line leads up to what its level allows.
    """
    roofs = with_mixes(roofs, kernels)
    board = roofs_board(roofs, kernels, title if title is not None else roofs.title or roofs.name)
    _legend(board, roofs, kernels)
    colors = {k.label: OKABE_ITO[i % len(OKABE_ITO)] for i, k in enumerate(kernels)}
    for kernel in kernels:
        _spans(board, roofs, kernel, colors[kernel.label])
    for kernel in kernels:
        draw_symbols(board, roofs, kernel, colors[kernel.label])
    anchors = [board.pixel(max(x for _, x in k.intensities), k.rate_per_s) for k in kernels if k.intensities]
    texts = [k.label for k in kernels if k.intensities]
    name_points(board, anchors, texts, [colors[t] for t in texts])
    return board.figure


def roofs_board(roofs: LevelRoofs, kernels: Sequence[Kernel], title: str) -> Board:
    """An empty plane with the machine's lines and their names, and room kept where `kernels` will stand."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_IN, dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes(AXES)
    window = window_over(roofs, kernels)
    draw_axes(axes, window, title, roofs.operation == "OP")
    board = Board(figure, axes, window)
    board.points = [board.pixel(x, k.rate_per_s) for k in kernels for _, x in k.intensities]
    left, right = window.x
    for slope in roofs.slopes:
        for rate, style in ((slope.bytes_per_s, _ROOF), *((c.bytes_per_s, _CEILING) for c in slope.ceilings)):
            start = max(left, window.y[0] / rate)
            board.line((start, roofs.top / rate), (start * rate, roofs.top), color=INK, zorder=3, **style)
    for roof in roofs.roofs:
        style = _CEILING if roof.is_ceiling else _ROOF
        board.line((roof.ridge, right), (roof.rate_per_s, roof.rate_per_s), color=INK, zorder=3, **style)
    for slope in roofs.slopes:
        _name_slope(board, roofs, slope)
    _name_roofs(board, roofs)
    return board


def _name_slope(board: Board, roofs: LevelRoofs, slope: LevelSlope) -> None:
    """The level's name along its line, above it, low down where lines are far apart and kernels rare; those of the
    ceilings below it, one under the other."""
    across = board.per_decade_y * cos(board.angle)  # pixels between lines a decade of bandwidth apart
    depths = [log10(slope.bytes_per_s / c.bytes_per_s) * across for c in slope.ceilings]
    below = [max(o for o in depths if o < d + 13.5) + 12.5 for d in depths]  # below lines that are close, too
    names = [(slope.bytes_per_s, slope.label, 5.0)]
    for ceiling, depth, offset in zip(slope.ceilings, depths, stack(below, 13.5), strict=True):
        names.append((ceiling.bytes_per_s, ceiling.label, depth - offset))
    for rate, label, lift in names:
        _name_line(board, roofs, rate, label, (lift,) if lift > 0 else (lift, 5.0))


def _name_line(board: Board, roofs: LevelRoofs, rate: float, label: str, lifts: Sequence[float]) -> None:
    """A name so many pixels above a line of bandwidth, where it covers least of other names and lines."""
    along = (cos(board.angle), sin(board.angle))
    width, _ = board.size(label, SMALL)
    start = board.pixel(*_entry(board, rate))
    stop = board.pixel(roofs.top / rate, roofs.top)
    length = (stop[0] - start[0]) / along[0]
    spots = []
    for lift, i in product(lifts, range(33)):
        at = 14 + width / 2 + (length - width - 34) * i / 32
        px = start[0] + at * along[0] - lift * along[1]
        py = start[1] + at * along[1] + lift * along[0]
        steps = [(px + along[0] * width * j / 10, py + along[1] * width * j / 10) for j in range(-5, 6)]
        # no taller than a name, so that names of neighbouring lines may stand one under the other
        spots.append((px, py, [Box(x - 8, y - 1, x + 8, y + 10) for x, y in steps]))
    lines = [sum(b.overlap(c) for b in bs for c in board.crossed) for _, _, bs in spots]
    covered = [round(_covered(board, bs) + 0.3 * n, -2) for (_, _, bs), n in zip(spots, lines, strict=True)]
    costs = [(board.hides_point(b), c, _beside_points(board, b)) for (_, _, b), c in zip(spots, covered, strict=True)]
    px, py, boxes = spots[costs.index(min(costs))]
    board.text(
        px, py, label, SMALL, color=INK, rotation=degrees(board.angle), rotation_mode="anchor", ha="center",
        va="baseline",
    )  # fmt: skip
    board.taken += boxes


def _covered(board: Board, boxes: Sequence[Box]) -> float:
    return sum(b.overlap(t) for b in boxes for t in board.taken)


def _beside_points(board: Board, boxes: Sequence[Box]) -> int:
    """How many points would have their names pushed away."""
    return board.hides_point([Box(b.x0 - 15, b.y0 - 15, b.x1 + 15, b.y1 + 15) for b in boxes])


def _entry(board: Board, rate: float) -> tuple[float, float]:
    """Where a line of bandwidth comes into the window."""
    x = max(board.window.x[0], board.window.y[0] / rate)
    return x, x * rate


def _name_roofs(board: Board, roofs: LevelRoofs) -> None:
    """Names above or below the roofs, where no other roof is, at the right end or as far left as symbols ask for."""
    height = SMALL * 1.45 * DPI / 72
    lines = [board.pixel(board.window.x[1], r.rate_per_s)[1] for r in roofs.roofs]
    for roof, line in zip(roofs.roofs, lines, strict=True):
        width, _ = board.size(roof.label, SMALL)
        ridge = board.pixel(roof.ridge, roof.rate_per_s)[0]
        rows = [y for y in (line + 3, line - height) if not any(y - 2 < o < y + height for o in lines)]
        ends = [board.frame.x1 - 4 - 12 * i for i in range(60)]
        room = [px for px in ends if px - width > ridge + 8] or ends[:1]
        spots = [(px, y) for y in rows or [line + 3] for px in room]
        boxes = {spot: Box(spot[0] - width, spot[1], spot[0], spot[1] + height) for spot in spots}
        px, y = min(spots, key=lambda s: (board.hides_point([boxes[s]]), _covered(board, [boxes[s]])))
        board.text(px, y, roof.label, SMALL, color=INK, ha="right", va="bottom")
        board.taken.append(boxes[px, y])


def _spans(board: Board, roofs: LevelRoofs, kernel: Kernel, color: str) -> None:
    """The line that joins a kernel's symbols, and from each the way up to what its level allows."""
    xs = [x for _, x in kernel.intensities]
    if len(xs) > 1:
        board.line((min(xs), max(xs)), (kernel.rate_per_s, kernel.rate_per_s), color=color, linewidth=1.2, zorder=4)
    for level, x in kernel.intensities:
        top = roofs.under(level, x)
        if top > 1.1 * kernel.rate_per_s:
            board.line((x, x), (kernel.rate_per_s, top), color=color, linewidth=0.9, linestyle=":", zorder=2.5)
            board.axes.plot([x], [top], marker=(2, 0, 90), color=color, markersize=6, zorder=3.2)


def draw_symbols(board: Board, roofs: LevelRoofs, kernel: Kernel, color: str) -> None:
    """One symbol for each level of a kernel; open where it is measured or cited. What bounds it has a ring of ink."""
    names = [s.level for s in roofs.slopes]
    for i, (level, x) in enumerate(kernel.intensities):
        marker = MARKERS[names.index(level) % len(MARKERS)] if level in names else "X"
        same = [n for n, (_, other) in enumerate(kernel.intensities) if abs(log10(other / x)) < 0.02]
        under, over = sum(n < i for n in same), sum(n > i for n in same)  # one on the other: the upper ones smaller
        face = color if kernel.origin == "predicted" else PAPER
        edge = PAPER if under and kernel.origin == "predicted" else color
        board.axes.plot(
            [x], [kernel.rate_per_s], marker, color=face, markeredgecolor=edge, markersize=8.0 + 4.5 * over,
            markeredgewidth=1.1, zorder=5 + 0.1 * i,
        )  # fmt: skip
        if level in kernel.bound.split(" and "):
            board.axes.plot(
                [x], [kernel.rate_per_s], "o", color="none", markeredgecolor=INK, markersize=15 + 4.5 * (len(same) - 1),
                markeredgewidth=0.9, zorder=4.5,
            )  # fmt: skip


def name_points(
    board: Board, anchors: Sequence[tuple[float, float]], texts: Sequence[str], colors: Sequence[str]
) -> None:
    """Names near their anchors (in pixels), off symbols, lines and other names; with a leader where far away.

    Symbols of one colour that stand at one place have one name.
    """
    groups = shared(anchors, colors)
    anchors, colors = [anchors[g[0]] for g in groups], [colors[g[0]] for g in groups]
    texts = [joined([texts[k] for k in g]) for g in groups]
    sizes = [board.size(t, NORMAL) for t in texts]
    hard = [*board.taken, *(Box(x - 11, y - 11, x + 11, y + 11) for x, y in board.points)]
    for (ax, ay), text, color, placed in zip(
        anchors, texts, colors, place(anchors, sizes, board.frame, hard, board.crossed), strict=True
    ):
        box = placed.box
        if placed.distance > 21:
            near = (min(max(ax, box.x0), box.x1), min(max(ay, box.y0), box.y1))
            (x0, y0), (x1, y1) = board.data(ax, ay), board.data(*near)
            board.axes.plot([x0, x1], [y0, y1], color=color, linewidth=0.7, zorder=2)
        board.text((box.x0 + box.x1) / 2, box.y0 + 2, text, NORMAL, color=darker(color), ha="center", va="bottom")


def _legend(board: Board, roofs: LevelRoofs, kernels: Sequence[Kernel]) -> None:
    """The levels by their symbols, the ring, and what open symbols are."""
    from matplotlib.lines import Line2D

    shown = {level for k in kernels for level, _ in k.intensities}
    grey = "#777777"
    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[i % len(MARKERS)], color=grey, markersize=7, label=slope.level)
        for i, slope in enumerate(roofs.slopes)
        if slope.level in shown
    ]
    names = {s.level for s in roofs.slopes}
    if others := ", ".join(sorted(shown - names)):
        handles.append(Line2D([], [], linestyle="", marker="X", color=grey, markersize=7, label=others))
    if any(set(k.bound.split(" and ")) & names for k in kernels):
        handles.append(
            Line2D(
                [], [], linestyle="", marker="o", color="none", markeredgecolor=INK, markersize=10, label="the bound"
            )
        )
    for origin in sorted({k.origin for k in kernels} - {"predicted"}):
        handles.append(
            Line2D([], [], linestyle="", marker="o", color=PAPER, markeredgecolor=grey, markersize=7, label=origin)
        )
    if not handles:
        return
    board.axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=SMALL, labelspacing=0.6)
    width = max(board.size(str(h.get_label()), SMALL)[0] for h in handles) + 45
    board.taken.append(Box(board.frame.x1 - width, 0, board.frame.x1, board.frame.y0 + 22 * len(handles) + 8))
