"""The hierarchical roofline: a line of bandwidth for every level, and every kernel with a symbol for every level."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.board import Board, check_format, roofline_plane, roomy, save_figure
from roofdsl.plot.content import Ceilings
from roofdsl.plot.levels_content import Kernel, LevelRoofs, LevelSlope, levels_with, window_over, with_mixes
from roofdsl.plot.look import OKABE_ITO, USUAL, Look, named, outside, styled
from roofdsl.plot.names import name_line, name_points, name_roofs

MARKERS = ("o", "s", "^", "D", "v", "P")  # by level, nearest first
FILLS = ("full", "left", "top", "right", "bottom")
"""Which part of a kernel's symbols has its colour: told apart where there are more kernels than colours."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
_ROOF: dict[str, Any] = {"linewidth": 1.8}
_CEILING: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.0}


def save_hierarchy(
    path: Path,
    roofs: LevelRoofs,
    kernels: Sequence[Kernel],
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, without a roof to draw, and where the file cannot be written.
    """
    kind = check_format(path)
    if not roofs.roofs:
        raise CommandError("there is no roof to draw", "the machine has no peak for the types asked for")
    save_figure(path, kind, lambda: draw_hierarchy(roofs, kernels, title, look=look, ceilings=ceilings))


@styled
def draw_hierarchy(
    roofs: LevelRoofs,
    kernels: Sequence[Kernel],
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> Any:
    """The matplotlib Figure: same colour, same kernel; same marker, same level; open symbols are not predicted.

    A kernel's symbols stand on one height, joined by a line; from each a dotted line leads up to what its level allows.
    More kernels than colours differ in the part of a symbol that is filled, and in the line that joins them.
    """
    shown = with_mixes(levels_with(roofs, ceilings, kernels), kernels)
    heading = title if title is not None else roofs.title or roofs.name
    return roomy(lambda key: _board(shown, kernels, heading, look, key))


def _board(roofs: LevelRoofs, kernels: Sequence[Kernel], title: str, look: Look, key: bool) -> Board:
    names = list(dict.fromkeys(k.label for k in kernels))
    board = roofs_board(roofs, kernels, title, look, names if key else None)
    numbers = {name: n for n, name in enumerate(names)}
    board.legend([*_levels_legend(board, roofs, kernels), *(_key(board, kernels, numbers) if key else [])])
    for kernel in kernels:
        _spans(board, roofs, kernel, numbers[kernel.label])
    for kernel in kernels:
        draw_symbols(board, roofs, kernel, numbers[kernel.label])
    ends = [(k, (max(x for _, x in k.intensities), k.rate_per_s)) for k in kernels if k.intensities]
    outside(sum(not board.shows(x, k.rate_per_s) for k in kernels for _, x in k.intensities))
    ends = [(k, at) for k, at in ends if board.shows(*at) and not key]
    colors = [look.color(numbers[k.label]) for k, _ in ends]
    name_points(board, [board.pixel(*at) for _, at in ends], [k.label for k, _ in ends], colors)
    return board


def roofs_board(
    roofs: LevelRoofs, kernels: Sequence[Kernel], title: str, look: Look, key: Sequence[str] | None = None
) -> Board:
    """An empty plane with the machine's lines and their names, and room kept where `kernels` will stand."""
    board = roofline_plane(look, window_over(roofs, kernels), title, roofs.operation == "OP", key)
    board.points = [
        board.pixel(x, k.rate_per_s) for k in kernels for _, x in k.intensities if board.shows(x, k.rate_per_s)
    ]
    left, right = board.window.x
    for slope in roofs.slopes:
        for rate, style in ((slope.bytes_per_s, _ROOF), *((c.bytes_per_s, _CEILING) for c in slope.ceilings)):
            start = max(left, board.window.y[0] / rate)
            if roofs.top / rate > start:
                board.line((start, roofs.top / rate), (start * rate, roofs.top), color=look.ink, zorder=3, **style)
    for roof in roofs.roofs:
        style = _CEILING if roof.is_ceiling else _ROOF
        if roof.ridge < right:
            board.line((roof.ridge, right), (roof.rate_per_s, roof.rate_per_s), color=look.ink, zorder=3, **style)
    for slope in roofs.slopes:
        _name_slope(board, roofs, slope)
    name_roofs(board, roofs.roofs, look.ink)
    return board


def _name_slope(board: Board, roofs: LevelRoofs, slope: LevelSlope) -> None:
    """The level's name along its line, low down where lines are far apart and kernels rare; ceilings' below theirs."""
    names = [(slope.bytes_per_s, slope.label, True), *((c.bytes_per_s, c.label, False) for c in slope.ceilings)]
    for rate, label, above in names:
        x = max(board.window.x[0], board.window.y[0] / rate)
        start, end = board.pixel(x, x * rate), board.pixel(roofs.top / rate, roofs.top)
        name_line(board, start, end, label, board.look.ink, prefer=0.12, above=above)


def _spans(board: Board, roofs: LevelRoofs, kernel: Kernel, number: int) -> None:
    """The line that joins a kernel's symbols, and from each the way up to what its level allows."""
    xs, color = [x for _, x in kernel.intensities], board.look.color(number)
    if len(xs) > 1:
        board.line(
            (min(xs), max(xs)), (kernel.rate_per_s, kernel.rate_per_s), color=color, linewidth=1.2, zorder=4,
            linestyle=DASHES[_round(number)],
        )  # fmt: skip
    for level, x in kernel.intensities:
        top = roofs.under(level, x)
        if top > 1.1 * kernel.rate_per_s:
            board.line((x, x), (kernel.rate_per_s, top), color=color, linewidth=0.9, linestyle=":", zorder=2.5)
            board.axes.plot([x], [top], marker=(2, 0, 90), color=color, markersize=6, zorder=3.2)


def _round(number: int) -> int:
    """How often the colours have been used up before this kernel's."""
    return number // len(OKABE_ITO) % len(FILLS)


def _filled(board: Board, origin: str, number: int) -> dict[str, Any]:
    """The filling of a kernel's symbols."""
    color, paper = board.look.color(number), board.look.paper
    if origin != "predicted":
        return {"markerfacecolor": paper, "markeredgecolor": color}
    return {
        "markerfacecolor": color, "markerfacecoloralt": paper, "fillstyle": FILLS[_round(number)],
        "markeredgecolor": color,
    }  # fmt: skip


def draw_symbols(board: Board, roofs: LevelRoofs, kernel: Kernel, number: int) -> None:
    """One symbol for each level of a kernel; open where it is measured or cited. What bounds it has a ring of ink."""
    look = board.look
    names = [s.level for s in roofs.slopes]
    for i, (level, x) in enumerate(kernel.intensities):
        marker = MARKERS[names.index(level) % len(MARKERS)] if level in names else "X"
        same = [n for n, (_, other) in enumerate(kernel.intensities) if abs(log10(other / x)) < 0.02]
        under, over = sum(n < i for n in same), sum(n > i for n in same)  # one on the other: the upper ones smaller
        style = _filled(board, kernel.origin, number)
        if under and kernel.origin == "predicted":
            style["markeredgecolor"] = look.paper
        if not board.shows(x, kernel.rate_per_s):
            continue
        board.axes.plot(
            [x], [kernel.rate_per_s], linestyle="", marker=marker, markersize=8.0 + 4.5 * over, markeredgewidth=1.1,
            zorder=5 + 0.1 * i, **style,
        )  # fmt: skip
        if level in kernel.bounds:
            board.axes.plot(
                [x], [kernel.rate_per_s], "o", color="none", markeredgecolor=look.ink, markeredgewidth=0.9, zorder=4.5,
                markersize=15 + 4.5 * (len(same) - 1),
            )  # fmt: skip


def _levels_legend(board: Board, roofs: LevelRoofs, kernels: Sequence[Kernel]) -> list[Any]:
    """The levels by their symbols, the ring, and what open symbols are."""
    from matplotlib.lines import Line2D

    shown = {level for k in kernels for level, _ in k.intensities}
    look = board.look
    grey = look.grey("#777777")
    handles = [
        Line2D([], [], linestyle="", marker=MARKERS[i % len(MARKERS)], color=grey, markersize=7, label=slope.level)
        for i, slope in enumerate(roofs.slopes)
        if slope.level in shown
    ]
    names = {s.level for s in roofs.slopes}
    if others := ", ".join(sorted(shown - names)):
        handles.append(Line2D([], [], linestyle="", marker="X", color=grey, markersize=7, label=others))
    if any(names.intersection(k.bounds) for k in kernels):
        handles.append(
            Line2D(
                [],
                [],
                linestyle="",
                marker="o",
                color="none",
                markeredgecolor=look.ink,
                markersize=10,
                label="the bound",
            )
        )
    for origin in sorted({k.origin for k in kernels} - {"predicted"}):
        handles.append(
            Line2D([], [], linestyle="", marker="o", color=look.paper, markeredgecolor=grey, markersize=7, label=origin)
        )
    return handles


def _key(board: Board, kernels: Sequence[Kernel], numbers: dict[str, int]) -> list[Any]:
    """The kernels by their colours, fillings and lines."""
    from matplotlib.lines import Line2D

    origins = {k.label: k.origin for k in reversed(kernels)}
    return [
        Line2D(
            [], [], color=board.look.color(n), linestyle=DASHES[_round(n)], linewidth=1.2, marker="o", markersize=7,
            label=named(name, 40), **_filled(board, origins[name], n),
        )
        for name, n in numbers.items()
    ]  # fmt: skip
