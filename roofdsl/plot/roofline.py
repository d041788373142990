"""The roofline figure: log-log, roofs and ceilings named along their lines, points named without overlap."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, degrees, hypot, log10, sin
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_bandwidth
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
from roofdsl.plot.content import MachineRoofs, Point, Window, ridge_label, window_of
from roofdsl.plot.labels import Box, hidden_under, joined, place, shared, stack


def save_roofline(
    path: Path, machines: Sequence[MachineRoofs], points: Sequence[Point] = (), title: str | None = None
) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, for no machine with a roof, and where the file cannot be written.
    """
    kind = check_format(path)
    shown = [m for m in machines if m.roofs]
    if not shown:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    save_figure(path, kind, lambda: draw_roofline(shown, points, title))


def draw_roofline(machines: Sequence[MachineRoofs], points: Sequence[Point] = (), title: str | None = None) -> Any:
    """The matplotlib Figure, not bound to any display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_IN, dpi=DPI, facecolor=PAPER)
    axes = figure.add_axes(AXES)
    window = window_of(machines, points)
    draw_axes(
        axes,
        window,
        title if title is not None else _title(machines),
        any(" OP/s" in r.label for m in machines for r in m.roofs),
    )
    board = Board(figure, axes, window)
    colors = {m.name: INK if len(machines) == 1 else OKABE_ITO[i % 6] for i, m in enumerate(machines)}
    board.points = [board.pixel(*_place_of(p, machines, window)) for p in points]
    drawn = [m if len(machines) == 1 else m.without_ceilings() for m in machines]
    for machine in drawn:
        _lines(board, machine, colors[machine.name])
    for machine in drawn:
        _name_slopes(board, machine, colors[machine.name])
    for machine in drawn:
        name_roofs(board, machine, colors[machine.name])
    handles = _legend(machines, points, colors)
    if handles:
        axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=SMALL)
        width = max(board.size(h.get_label(), SMALL)[0] for h in handles) + 50
        board.taken.append(Box(board.frame.x1 - width, 0, board.frame.x1, board.frame.y0 + 20 * len(handles) + 8))
    _points(board, points, machines, colors)
    return figure


def _title(machines: Sequence[MachineRoofs]) -> str:
    return machines[0].title or machines[0].name if len(machines) == 1 else ""


def _lines(board: Board, machine: MachineRoofs, color: str) -> None:
    """Roofs solid, ceilings dashed; slopes end at the highest roof, roofs begin at the slope."""
    left, right = board.window.x
    for slope in machine.slopes:
        end = machine.top / slope.bytes_per_s
        style = {"linestyle": (0, (4, 3)), "linewidth": 1.0} if slope.is_ceiling else {"linewidth": 2.0}
        board.line((left, end), (left * slope.bytes_per_s, machine.top), color=color, zorder=3, **style)
    for roof in machine.roofs:
        style = {"linestyle": (0, (4, 3)), "linewidth": 1.0} if roof.is_ceiling else {"linewidth": 2.0}
        board.line((roof.ridge, right), (roof.rate_per_s, roof.rate_per_s), color=color, zorder=3, **style)
    ridges = [r for r in machine.roofs if not r.is_ceiling]
    board.axes.plot(
        [r.ridge for r in ridges], [r.rate_per_s for r in ridges], "o", color=PAPER, markeredgecolor=color,
        markersize=5.5, markeredgewidth=1.4, zorder=4,
    )  # fmt: skip


def _name_slopes(board: Board, machine: MachineRoofs, color: str) -> None:
    """The memory's name above its line, those of ceilings below, one under the other where lines are close.

    Where other machines' lines or names are in the way, the memory's too goes below.
    """
    height = SMALL * 1.3 * DPI / 72
    along = (cos(board.angle), sin(board.angle))
    across = board.per_decade_y * along[0]  # pixels between lines a decade of bandwidth apart
    left, end = board.window.x[0], machine.top / machine.bandwidth
    start, stop = board.pixel(left, left * machine.bandwidth), board.pixel(end, machine.top)
    length = hypot(stop[0] - start[0], stop[1] - start[1])
    widths = [board.size(s.label, SMALL)[0] for s in machine.slopes]
    below = [log10(machine.bandwidth / s.bytes_per_s) * across + 3 for s in machine.slopes[1:]]
    above = [-height * 0.35, *(o + height * 0.75 for o in stack(below, height))]
    under = [height * 0.75, *(o + height * 1.75 for o in stack(below, height))]

    def spots(part: float, shifts: Sequence[float]) -> list[tuple[float, float, list[Box]]]:
        """Where each name goes, with its middle `part` of the line's length up, and what it covers."""
        found = []
        for width, shift in zip(widths, shifts, strict=True):
            px = start[0] + part * length * along[0] + shift * along[1]
            py = start[1] + part * length * along[1] - shift * along[0]
            steps = [(px + along[0] * width * i / 10, py + along[1] * width * i / 10) for i in range(-5, 6)]
            found.append((px, py, [Box(x - 8, y - 2, x + 8, y + 12) for x, y in steps]))
        return found

    margin = min(0.5, (max(widths) / 2 + 12) / length)
    parts = sorted((margin + (1 - 2 * margin) * i / 16 for i in range(17)), key=lambda p: abs(p - 0.42))
    found = [spots(p, shifts) for shifts in (above, under) for p in parts]
    best = min(found, key=lambda spots: cover(board, [b for *_, boxes in spots for b in boxes]))
    for slope, (px, py, boxes) in zip(machine.slopes, best, strict=True):
        board.text(
            px, py, slope.label, SMALL, color=color, rotation=degrees(board.angle), rotation_mode="anchor",
            ha="center", va="baseline",
        )  # fmt: skip
        board.taken += boxes


def name_roofs(board: Board, machine: MachineRoofs, color: str) -> None:
    """Names above the lines, pushed up where two are close, at the right end or as far left as points ask for.

    Where another machine's line or name is in the way, below the line.
    """
    height = SMALL * 1.45 * DPI / 72
    roofs = machine.roofs[::-1]
    lines = [board.pixel(board.window.x[1], r.rate_per_s)[1] for r in roofs]
    for roof, line, y in zip(roofs, lines, stack([p + 3 for p in lines], height), strict=True):
        width, _ = board.size(roof.label, SMALL)
        ridge = board.pixel(roof.ridge, roof.rate_per_s)[0]
        ends = [board.frame.x1 - 4 - 12 * i for i in range(100)]
        room = [px for px in ends if px - width > ridge + 8] or ends[:1]
        spots = [Box(px - width, low, px, low + height) for low in (y, line - height) for px in room]
        best = min(spots, key=lambda box: cover(board, [box]))
        board.text(best.x1, best.y0, roof.label, SMALL, color=color, ha="right", va="bottom")
        board.taken.append(best)


def cover(board: Board, boxes: Sequence[Box]) -> tuple[int, float]:
    """How many points these rectangles hide, and how much of names and lines, a hundredth of which is nothing."""
    names = sum(b.overlap(t) for b in boxes for t in board.taken)
    lines = sum(b.overlap(t) for b in boxes for t in board.crossed)
    return board.hides_point(boxes), round(3 * names + lines, -2)


def _place_of(point: Point, machines: Sequence[MachineRoofs], window: Window) -> tuple[float, float]:
    """Where a point stands; without work, on the left edge at the height at which its bandwidth's line begins.

    What computes and moves nothing (from caches that are warm) stands on the right edge.
    """
    if point.intensity is not None:
        return point.intensity, point.flops_per_s
    if point.flops_per_s:
        return window.x[1], point.flops_per_s
    return window.x[0], (point.bytes_per_s or machines[0].bandwidth) * window.x[0]


def _points(board: Board, points: Sequence[Point], machines: Sequence[MachineRoofs], colors: dict[str, str]) -> None:
    """Filled symbols for predictions, open ones with their spread for measurements; names where there is room."""
    anchors, texts, tints = [], [], []
    places = [board.pixel(*_place_of(p, machines, board.window)) for p in points]
    labels = list(dict.fromkeys(p.label for p in points))
    predicted = {(p.label, p.machine): _place_of(p, machines, board.window) for p in points if p.kind == "predicted"}
    for point in points:
        several = len(machines) > 1 and point.machine in colors
        tints.append(colors[point.machine] if several else OKABE_ITO[labels.index(point.label) % 6])
    for point, tint, over in zip(points, tints, hidden_under(places, tints), strict=True):
        x, y = _place_of(point, machines, board.window)
        if point.beside:
            marker, text = "o" if point.intensity is not None else ">", point.beside
            x0, y0 = predicted[point.label, point.machine]
            board.line((x0, x), (y0, y), color=tint, linewidth=1.1, linestyle=(0, (1, 1.5)), zorder=4)
        elif point.intensity is None and point.flops_per_s:
            marker, text = ">", f"{point.label}: nothing from memory"
        elif point.intensity is None:
            marker, text = ">", f"{point.label}: {show_bandwidth(point.bytes_per_s or 0)}, no operations"
        else:
            marker, text = "o", point.label
        face = tint if point.kind == "predicted" else PAPER
        if point.error is not None and (point.intensity is not None or point.flops_per_s):
            board.axes.plot([x, x], point.error, color=tint, linewidth=1.3, zorder=4)
        board.axes.plot(
            [x], [y], marker, color=face, markeredgecolor=tint, markersize=7.5 + 4.5 * min(over, 4),
            markeredgewidth=1.6, zorder=5, clip_on=False,
        )  # fmt: skip
        anchors.append(board.pixel(x, y))
        texts.append((text, SMALL if point.beside else NORMAL))
    groups = shared(anchors, [(tint, size) for tint, (_, size) in zip(tints, texts, strict=True)])
    anchors, tints = [anchors[g[0]] for g in groups], [tints[g[0]] for g in groups]
    texts = [(joined([texts[k][0] for k in g]), texts[g[0]][1]) for g in groups]
    if len(machines) == 1:
        for roof in machines[0].roofs:
            if not roof.is_ceiling:
                anchors.append(board.pixel(roof.ridge, roof.rate_per_s))
                texts.append((ridge_label(roof), SMALL))
                tints.append("#555555")
    sizes = [board.size(text, points) for text, points in texts]
    boxes = place(anchors, sizes, board.frame, board.taken, board.crossed)
    for (ax, ay), (text, points_), tint, placed in zip(anchors, texts, tints, boxes, strict=True):
        box = placed.box
        if placed.distance > 21:
            near = (min(max(ax, box.x0), box.x1), min(max(ay, box.y0), box.y1))
            (x0, y0), (x1, y1) = board.data(ax, ay), board.data(*near)
            board.axes.plot([x0, x1], [y0, y1], color=tint, linewidth=0.7, zorder=2)
        board.text((box.x0 + box.x1) / 2, box.y0 + 2, text, points_, color=darker(tint), ha="center", va="bottom")


def _legend(machines: Sequence[MachineRoofs], points: Sequence[Point], colors: dict[str, str]) -> list[Any]:
    """What the legend lists: the machines where there are several, open and filled symbols where both occur."""
    from matplotlib.lines import Line2D

    handles = []
    if len(machines) > 1:
        handles += [Line2D([], [], color=colors[m.name], linewidth=2, label=m.title or m.name) for m in machines]
    kinds = {p.kind for p in points}
    for kind, face in (("predicted", "#777777"), ("measured", PAPER)):
        if len(kinds) > 1:
            handles.append(Line2D([], [], linestyle="", marker="o", color=face, markeredgecolor="#777777", label=kind))
    return handles
