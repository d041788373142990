"""The plane of a roofline with the lines of machines and their names, for one or several memory levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import Any

from roofdsl.plot.board import Board, Window, plane, symbol
from roofdsl.plot.look import Look, named
from roofdsl.plot.names import Name, name_line, name_roofs
from roofdsl.plot.roofline_points import Point
from roofdsl.plot.roofs import Roof, Roofs, operation_of

ORIGINS = ("predicted", "expected", "measured", "cited")


def window_of(machines: Sequence[Roofs], points: Sequence[Point]) -> Window:
    """Limits that show every ridge and point with some margin, at whole or half decades in x.

    With several levels, the lines of the nearer ones are far above the points, so y begins just below the points.
    """
    several = any(len(m.levels) > 1 for m in machines)
    slowest = [min(s.bytes_per_s for s in m.levels) for m in machines]
    xs = [r.rate_per_s / low for m, low in zip(machines, slowest, strict=True) for r in m.roofs]
    xs += [r.ridge for m in machines for r in m.roofs] + [x for p in points for _, x in p.places]
    before, after = (2, 4) if several else (3, 8)
    left, right = 10 ** (floor(2 * log10(min(xs) / before)) / 2), 10 ** (ceil(2 * log10(max(xs) * after)) / 2)
    start = left * min(slowest if several else [s.bytes_per_s for m in machines for s in m.slopes])
    # A measured point may have only a spread or, without work, only a bandwidth, which stands on the left edge.
    rates = [p.rate_per_s for p in points if p.rate_per_s]
    ys = [*rates, *(p.error[0] for p in points if p.error and p.error[0] > 0)]
    ys += [p.bytes_per_s * left for p in points if not p.places and p.bytes_per_s and not p.rate_per_s]
    lowest = min(ys, default=start)
    bottom = min(max(lowest / 4, start / 3), lowest / 1.6) if several else min(start, lowest) / 1.6
    return Window((left, right), (bottom, 3 * max([*(m.top for m in machines), *rates])))


def place_of(point: Point, roofs: Roofs, window: Window) -> tuple[float, float]:
    """The position of a point by its intensity at the memory. A point without work is on the left edge, at the height
    at which the line of its bandwidth begins.

    A point that computes but moves nothing (from warm caches) is on the right edge.
    """
    if point.intensity is not None:
        return point.intensity, point.rate_per_s
    if point.rate_per_s:
        return window.x[1], point.rate_per_s
    return window.x[0], (point.bytes_per_s or roofs.bandwidth) * window.x[0]


def roofs_board(
    look: Look,
    machines: Sequence[Roofs],
    points: Sequence[Point],
    title: str,
    *,
    key: Sequence[str] | None = None,
    colors: Sequence[str] = (),
) -> Board:
    """A plane with the machines' lines in these colours (ink by default), their names, and room reserved for the
    points.
    """
    operation = operation_of([r for m in machines for r in m.roofs])
    labels = (f"Arithmetic intensity I ({operation}/byte)", f"Performance P ({operation}/s)")
    board = plane(look, window_of(machines, points), title, labels, key=key)
    at = [(x, p.rate_per_s) for p in points for _, x in p.places]
    at += [place_of(p, machines[0], board.window) for p in points if not p.places]
    board.points = [board.pixel(*place) for place in at if board.shows(*place)]
    drawn = list(zip(machines, colors or [look.ink] * len(machines), strict=True))
    for roofs, color in drawn:
        _draw_roofs(board, roofs, color)
    for roofs, color in drawn:
        _name_slopes(board, roofs, color)
    for roofs, color in drawn:
        name_roofs(board, roofs.roofs, color)
    return board


def line_style(is_ceiling: bool) -> dict[str, Any]:
    """Roofs are solid, ceilings dashed."""
    return {"linestyle": (0, (4, 3)), "linewidth": 1.0} if is_ceiling else {"linewidth": 2.0}


def _draw_roofs(board: Board, roofs: Roofs, color: str) -> None:
    """Draw slopes up to the highest roof, and roofs from the fastest slope on; with one level, also ridges as rings."""
    right = board.window.x[1]
    for slope in roofs.slopes:
        rate, start = slope.bytes_per_s, _start(board, slope.bytes_per_s)
        if roofs.top / rate > start:
            style = line_style(slope.is_ceiling)
            board.line((start, roofs.top / rate), (start * rate, roofs.top), color=color, zorder=3, **style)
    for roof in roofs.roofs:
        if roof.ridge < right:
            style = line_style(roof.is_ceiling)
            board.line((roof.ridge, right), (roof.rate_per_s, roof.rate_per_s), color=color, zorder=3, **style)
    if ridges := _ridges(roofs):
        board.axes.plot(
            [r.ridge for r in ridges], [r.rate_per_s for r in ridges], "o", color=board.look.paper,
            markeredgecolor=color, markersize=5.5, markeredgewidth=1.4, zorder=4,
        )  # fmt: skip


def _start(board: Board, bytes_per_s: float) -> float:
    """The intensity at which a slope enters the window."""
    return max(board.window.x[0], board.window.y[0] / bytes_per_s)


def _name_slopes(board: Board, roofs: Roofs, color: str) -> None:
    """Write the names of levels above their lines, and those of ceilings below theirs. With several levels, they are at
    the lower ends, where lines are far apart and points are rare.
    """
    prefer = 0.42 if len(roofs.levels) == 1 else 0.12
    for slope in roofs.slopes:
        rate, x = slope.bytes_per_s, _start(board, slope.bytes_per_s)
        start, end = board.pixel(x, x * rate), board.pixel(roofs.top / rate, roofs.top)
        name_line(board, start, end, slope.label, color, prefer=prefer, above=not slope.is_ceiling)


def _ridges(roofs: Roofs) -> list[Roof]:
    return [r for r in roofs.roofs if not r.is_ceiling] if len(roofs.levels) == 1 else []


def ridge_names(board: Board, roofs: Roofs) -> Iterator[Name]:
    """The names of the ridges, which are written as far as there is room."""
    for roof in _ridges(roofs):
        if board.shows(roof.ridge, roof.rate_per_s):
            at, grey = board.pixel(roof.ridge, roof.rate_per_s), board.look.grey("#555555")
            yield Name(at, roof.ridge_label, grey, board.look.small, optional=True)


def origin_symbols(look: Look, points: Sequence[Point], sources: Sequence[str] = ()) -> list[Any]:
    """The meaning of closed and open symbols, if there are open ones, and of the percentages beside measured points;
    cited ones with their sources.
    """
    found = {p.origin for p in points}
    shares = any(p.beside for p in points)
    shown = [*(o for o in ORIGINS if o in found), *sorted(found.difference(ORIGINS))]
    grey, handles = look.grey("#777777"), []
    for origin in shown if shown != ["predicted"] else ():
        if origin == "expected":
            handles.append(symbol("_", "expected", face=grey, edge=grey, size=13, markeredgewidth=2.2))
            continue
        label = named(f"cited: {'; '.join(sources)}", 72) if sources and origin == "cited" else origin
        label = "bound" if origin == "predicted" and (shares or "expected" in found) else label
        label = "measured, in % of the bound" if origin == "measured" and shares else label
        handles.append(symbol("o", label, face=grey if origin == "predicted" else look.paper, edge=grey))
    return handles
