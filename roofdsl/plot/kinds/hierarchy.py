"""The hierarchical roofline: a bandwidth line for every level, and every kernel with one symbol per level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import log10
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.board import Board, roomy, symbol
from roofdsl.plot.kind import POINTS, Asked, Kind, Option, at_option, units_of
from roofdsl.plot.labels import Box, joined
from roofdsl.plot.look import DPI, OKABE_ITO, USUAL, Look, named, outside, styled
from roofdsl.plot.names import Name, name_points
from roofdsl.plot.roofline_plane import origin_symbols, ridge_names, roofs_board
from roofdsl.plot.roofline_points import Point, measured_points, points_of
from roofdsl.plot.roofs import Ceilings, Roofs, level_roofs, require_roof, with_ceilings, with_mixes
from roofdsl.predict.occupancy import Block
from roofdsl.predict.options import Options
from roofdsl.profiler.cited import points_named

MARKERS = ("o", "s", "^", "D", "v", "P")  # by level, nearest first
FILLS = ("full", "left", "top", "right", "bottom")
"""The coloured part of a kernel's symbols, to distinguish kernels if there are more than colours."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))


@styled
def draw_hierarchy(
    roofs: Roofs,
    points: Sequence[Point],
    title: str | None = None,
    *,
    look: Look = USUAL,
    ceilings: Ceilings = "few",
) -> Any:
    """The matplotlib Figure: colours stand for kernels, markers for levels; open symbols are not predicted.

    A kernel's symbols are at the same height, joined by a line; from each, a dotted line leads up to the roof of its
    level. If there are more kernels than colours, they differ in the part of a symbol that is filled, and in the line
    that joins them. Raises CommandError without a roof.
    """
    require_roof(roofs.roofs)
    shown = with_mixes(with_ceilings(roofs, ceilings, points), points)
    heading = title if title is not None else roofs.title or roofs.name
    return roomy(lambda key: _board(shown, points, heading, look, key))


def _board(roofs: Roofs, points: Sequence[Point], title: str, look: Look, key: bool) -> Board:
    labels = list(dict.fromkeys(p.label for p in points))
    board = roofs_board(look, [roofs], points, title, key=labels if key else None)
    numbers = {label: n for n, label in enumerate(labels)}
    board.legend([*_levels_legend(board, roofs, points), *(_key(board, points, numbers) if key else [])])
    for point in points:
        _spans(board, roofs, point, numbers[point.label])
    for point in points:
        _symbols(board, roofs, point, numbers[point.label])
    outside(sum(not board.shows(x, p.rate_per_s) for p in points for _, x in p.places))
    ends = [(p, (max(x for _, x in p.places), p.rate_per_s)) for p in points if p.places and not key]
    names = [Name(board.pixel(*at), p.label, look.color(numbers[p.label])) for p, at in ends if board.shows(*at)]
    name_points(board, [*names, *ridge_names(board, roofs)])
    return board


def _spans(board: Board, roofs: Roofs, point: Point, number: int) -> None:
    """The line that joins a kernel's symbols, and from each a line up to the roof of its level."""
    xs, color = [x for _, x in point.places], board.look.color(number)
    if len(xs) > 1:
        board.line(
            (min(xs), max(xs)), (point.rate_per_s, point.rate_per_s), color=color, linewidth=1.2, zorder=4,
            linestyle=DASHES[_round(number)],
        )  # fmt: skip
    for level, x in point.places:
        top = roofs.under(level, x)
        if top > 1.1 * point.rate_per_s:
            board.line((x, x), (point.rate_per_s, top), color=color, linewidth=0.9, linestyle=":", zorder=2.5)
            board.axes.plot([x], [top], marker=(2, 0, 90), color=color, markersize=6, zorder=3.2)


def _round(number: int) -> int:
    """How many times all colours have been used up before this kernel."""
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


def _symbols(board: Board, roofs: Roofs, point: Point, number: int) -> None:
    """One symbol for each level of a kernel; open if it is measured or cited. The levels that bound it have a ring of
    ink.
    """
    look = board.look
    names = [s.level for s in roofs.levels]
    ringed = _bounding_levels(roofs, point)
    for i, (level, x) in enumerate(point.places):
        marker = MARKERS[names.index(level) % len(MARKERS)] if level in names else "X"
        same = [n for n, (_, other) in enumerate(point.places) if abs(log10(other / x)) < 0.02]
        under, over = sum(n < i for n in same), sum(n > i for n in same)  # if they overlap: the upper ones are smaller
        style = _filled(board, point.origin, number)
        if under and point.origin == "predicted":
            style["markeredgecolor"] = look.paper
        if not board.shows(x, point.rate_per_s):
            continue
        board.axes.plot(
            [x], [point.rate_per_s], linestyle="", marker=marker, markersize=8.0 + 4.5 * over, markeredgewidth=1.1,
            zorder=5 + 0.1 * i, **style,
        )  # fmt: skip
        if over:  # names keep away from usual symbols, and from larger ones that are taken
            (px, py), r = board.pixel(x, point.rate_per_s), (8.0 + 4.5 * over) / 2 * DPI / 72 + 3
            board.taken.append(Box(px - r, py - r, px + r, py + r))
        if level in ringed:
            board.axes.plot(
                [x], [point.rate_per_s], "o", color="none", markeredgecolor=look.ink, markeredgewidth=0.9, zorder=4.5,
                markersize=15 + 4.5 * (len(same) - 1),
            )  # fmt: skip


def _bounding_levels(roofs: Roofs, point: Point) -> list[str]:
    """The levels that bound a kernel, if no other term of the time is larger: a kernel that is bound by compute has
    none, even if a level takes almost as long.
    """
    names = {s.level for s in roofs.levels}
    return list(takewhile(names.__contains__, point.bounds))


def _levels_legend(board: Board, roofs: Roofs, points: Sequence[Point]) -> list[Any]:
    """The levels with their symbols, the ring, and the meaning of open symbols."""
    shown = {level for p in points for level, _ in p.places}
    look, grey = board.look, board.look.grey("#777777")
    markers = {s.level: MARKERS[i % len(MARKERS)] for i, s in enumerate(roofs.levels)}
    handles = [symbol(m, level, face=grey, edge=grey) for level, m in markers.items() if level in shown]
    if others := ", ".join(sorted(shown.difference(markers))):
        handles.append(symbol("X", others, face=grey, edge=grey))
    if any(_bounding_levels(roofs, p) for p in points):
        handles.append(symbol("o", "the bound", face="none", edge=look.ink, size=10))
    return handles + origin_symbols(look, points)


def _key(board: Board, points: Sequence[Point], numbers: dict[str, int]) -> list[Any]:
    """The kernels with their colours, fillings and lines."""
    origins = {p.label: p.origin for p in reversed(points)}
    handles = []
    for label, n in numbers.items():
        style = {"color": board.look.color(n), "linestyle": DASHES[_round(n)], "linewidth": 1.2}
        style |= _filled(board, origins[label], n)
        handles.append(symbol("o", named(label, 40), face=style["color"], edge=style["markeredgecolor"], **style))
    return handles


# ---- the command ----


def _figure(
    asked: Asked,
    *,
    points: tuple[str, ...],
    threads: int | None,
    registers: int | None,
    shared: int | None,
    in_flight: int | None,
) -> Any:
    if threads is None and (registers or shared or in_flight):
        raise CommandError("the occupancy needs the number of threads in a block", "add --threads 128")
    block = None if threads is None else Block(threads, registers or 0, shared or 0)
    predictions = asked.predicted(Options(asked.traffic, asked.unit, block=block, in_flight_bytes=in_flight))
    latency = dict.fromkeys(found.ceiling() for p in predictions for found in p.latency if found.binds)
    shown = points_of(predictions)
    for p in predictions:
        if not p.work:
            asked.warn(f"{p.kernel} has no operations, so it has no intensity")
    if predictions and not shown:
        raise CommandError("none of these kernels has operations", "`roofdsl plot roofline` shows their bandwidth")
    for name in points:
        measured = measured_points(points_named(name))
        if bare := [p.label for p in measured if not p.places]:
            asked.warn(
                f"{joined(bare)} of {name} left out: no bytes of any level are known, so there is no intensity; "
                f"`plot trajectory --points {name}` draws rate over work"
            )
        shown += [p for p in measured if p.places]
    roofs = level_roofs(asked.machine, asked.types_of(predictions), units_of(predictions), tuple(latency))
    return draw_hierarchy(roofs, shown, asked.title(predictions), look=asked.look, ceilings=asked.ceilings)


KIND = Kind(
    "Draw a symbol for each kernel and memory level.",
    "Draw the hierarchical roofline: a symbol for each kernel and memory level, under the bandwidths of all levels.",
    (
        "machine",
        "set",
        at_option("A size to draw, or a range of sizes (repeatable)."),
        "traffic",
        "unit",
        "type",
        POINTS,
        Option("--threads", "Threads in a block, for the latency ceilings.", takes="count"),
        Option("--registers", "32-bit registers per thread.", takes="count"),
        Option("--shared", "Shared memory per block.", "SIZE", takes="size"),
        Option("--in-flight", "Bytes that each thread keeps in flight.", "SIZE", takes="size"),
        "ceilings",
    ),
    _figure,
)
