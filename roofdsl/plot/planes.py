"""The planes of the time-based roofline: complexity (W over Q), time, and both in one figure with four axes.

Filled symbols are complexity (W and Q) or the times W / P and Q / beta; hollow symbols are run time, split by rule 17.
A hollow symbol is on the diagonal of its filled one, farther out by the ratio of the run time to the time of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_number, show_time
from roofdsl.plot.board import Board, plane, roomy, symbol
from roofdsl.plot.kind import POINTS, Asked, Kind, Option, at_option, units_of
from roofdsl.plot.labels import Box as Rectangle
from roofdsl.plot.look import SIGNS, USUAL, Look, named, outside, style_of, styled
from roofdsl.plot.names import Name, name_line, name_points
from roofdsl.plot.overhead_boxes import corner, diagonal, draw_boxes, name_regions
from roofdsl.plot.planes_content import (
    Plane,
    Series,
    Spot,
    Which,
    compared_series,
    complexity_window,
    plane_of,
    points_series,
    predicted_series,
    time_window,
)
from roofdsl.plot.ticks import log_ticks, power, prefixed, set_ticks
from roofdsl.profiler.cited import points_named

SHAPES = {"predicted": "o", "measured": "s", "cited": "D"}
MEASURED_OR_CITED = (SHAPES["measured"], SHAPES["cited"])


@styled
def draw_plane(
    kind: Which, plane: Plane, series: Sequence[Series], title: str | None = None, *, look: Look = USUAL
) -> Any:
    """The matplotlib Figure, not bound to any display."""
    heading = title if title is not None else plane.title
    return roomy(lambda key: _drawn(kind, plane, series, heading, look=look, key=key))


def _drawn(kind: Which, plane: Plane, series: Sequence[Series], title: str, *, look: Look, key: bool) -> Board:
    shown = [s for s in series if any(p.work or p.bytes for p in s.spots)]
    names = list(dict.fromkeys(s.beside or s.name for s in shown))
    meant = [] if kind == "complexity" else [MODEL[kind], "run time"]
    board = _board(kind, plane, series, title, look=look, key=[*names, *meant] if key else None)
    colors = _colors(series, look)
    places = [(s, [_places(board, kind, plane, spot) for spot in s.spots]) for s in series]
    every = [p for _, found in places for pair in found for p in pair if p is not None]
    board.points += [board.pixel(*p) for p in every if board.shows(*p)]
    outside(sum(not board.shows(*p) for p in every))
    board.crowded = len(names) > MOST_LISTED
    board.legend(_legend(board, kind, series, colors))
    draw_boxes(board, kind, plane, series)
    _diagonals(board, kind, plane, [s for one in series for s in one.spots])
    name_regions(board, kind, plane, series)
    if kind != "complexity":
        _equal_times(board, kind, plane)
    for (s, found), color in zip(places, colors, strict=True):
        _track(board, kind, s, found, (color, _signs(series)[s.beside or s.name]))
        _spreads(board, kind, plane, s, color)
    _name_spots(board, kind, places, colors)
    return board


MODEL = {"time": "W / P and Q / bandwidth", "complexity-time": "complexity: W, Q"}
"""The meaning of closed symbols."""

MOST_LISTED = 8
"""The maximum number of series in a legend inside the axes."""


def _name_spots(
    board: Board, kind: Which, places: Sequence[tuple[Series, list[tuple[Place, Place]]]], colors: Sequence[str]
) -> None:
    """Names at the spots; if a series is long, or there are many series, only as many as there is room for.

    A key lists the series, and has no sizes.
    """
    names, many = [], len(places) > MOST_LISTED
    for (s, found), color in zip(places, colors, strict=True):
        named_open = kind == "time" and not _crowd(board, [o for _, o in found if o is not None])
        for k, (spot, (closed, opened)) in enumerate(zip(s.spots, found, strict=True)):
            at = opened if named_open else closed
            if at is None or not spot.label or not board.shows(*at) or (board.key and len(s.spots) == 1):
                continue
            may_go = many or (len(s.spots) > 6 and 0 < k < len(s.spots) - 1)
            names.append(Name(board.pixel(*at), spot.label, color, optional=may_go))
    name_points(board, names)


# ---- the plane ----


def _board(
    kind: Which, shown: Plane, series: Sequence[Series], title: str, *, look: Look, key: Sequence[str] | None
) -> Board:
    if kind == "time":
        labels = (f"Bandwidth time at {shown.slope.label}", f"Compute time at {shown.peak.label}")
        return plane(look, time_window(shown, series), title, labels, (show_time, show_time), key=key)
    window = complexity_window(shown, series, kind != "complexity")
    labels = (f"Bytes Q, {shown.level}", f"Work W ({shown.operation})")
    more = {"right_in": 0.95, "top_in": 0.45} if kind == "complexity-time" else {}
    board = plane(look, window, title, labels, (lambda v: f"{prefixed(v)}B", prefixed), key=key, **more)
    if kind == "complexity-time":
        _second_axes(board, shown)
    return board


def _second_axes(board: Board, shown: Plane) -> None:
    """Times at the top and on the right: bytes over the bandwidth, work over the peak."""
    axes, look = board.axes, board.look
    right, above = axes.twinx(), axes.twiny()
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    compute = (y0 / shown.peak.rate_per_s, y1 / shown.peak.rate_per_s)
    bandwidth = (x0 / shown.bytes_per_s, x1 / shown.bytes_per_s)
    right.set_yscale("log")
    right.set_ylim(compute)
    above.set_xscale("log")
    above.set_xlim(bandwidth)
    set_ticks(right.yaxis, log_ticks(*compute, most=9), show_time)
    widest = max(board.size(show_time(t), look.small)[0] for t in log_ticks(*bandwidth, most=60)) + 14
    most = max(2, int((board.frame.x1 - board.frame.x0) / widest))
    set_ticks(above.xaxis, log_ticks(*bandwidth, most=most), show_time)
    for second, visible in ((right, "right"), (above, "top")):
        look.dress(second)
        for side, spine in second.spines.items():
            spine.set_visible(side in (visible, "left", "bottom"))
        second.tick_params(which="both", labelsize=look.small, labelcolor=look.grey("#666666"))
        second.set_zorder(0)
        second.patch.set_visible(False)
    grey = look.grey("#666666")
    right.set_ylabel(f"Compute time at {shown.peak.label}", fontsize=look.small, color=grey)
    above.set_xlabel(f"Bandwidth time at {shown.slope.label}", fontsize=look.small, color=grey, labelpad=5)
    axes.set_zorder(1)
    axes.patch.set_visible(False)


def _diagonals(board: Board, kind: Which, plane: Plane, spots: Sequence[Spot]) -> None:
    """The machine balance, the balances of lower roofs, and in the plane of complexity lines of equal intensity."""
    per_second = plane.bytes_per_s / plane.peak.rate_per_s if kind == "time" else 1.0
    look = board.look
    lines: list[tuple[float, str, dict[str, Any]]] = [
        (
            plane.balance, f"balance {show_number(plane.balance)}, {plane.peak.name}",
            {"color": look.ink, "linewidth": 1.8, "linestyle": "-"},
        )
    ]  # fmt: skip
    for roof in plane.others:
        balance = roof.rate_per_s / plane.bytes_per_s
        text = f"{show_number(balance)}, {roof.name}"
        lines.append((balance, text, {"color": look.ink, "linewidth": 1.0, "linestyle": "--"}))
    if kind == "complexity":
        equal = equal_intensities(spots, [line[0] for line in lines])
        faint = {"color": look.grey("#9A9A9A"), "linewidth": 0.8, "linestyle": ":"}
        lines += [(i, f"I = {intensity_text(i)}", faint) for i in equal]
    for intensity, text, style in lines:
        ends = diagonal(board, intensity * per_second)
        if ends is None:
            continue
        (xa, ya), (xb, yb) = ends
        is_faint = style["linestyle"] == ":"  # names may cross these many faint lines
        (board.axes.plot if is_faint else board.line)((xa, xb), (ya, yb), zorder=2.2, **style)
        color = look.grey("#666666") if is_faint else look.ink
        name_line(
            board, board.pixel(*ends[0]), board.pixel(*ends[1]), text, color, prefer=1.0 if is_faint else 0.8,
            must=not is_faint,
        )  # fmt: skip


def equal_intensities(spots: Sequence[Spot], balances: Sequence[float]) -> list[float]:
    """The powers of ten at which lines of equal intensity help to read the spots: between the spots and around the
    balances, at most one per decade and about ten in total, none on a balance.
    """
    known = [s.work / s.bytes for s in spots if s.work and s.bytes]
    low, high = floor(log10(min([*known, *balances]))), ceil(log10(max([*known, *balances])))
    step = max(1, -(-(high - low + 1) // 10))
    found = [10.0**e for e in range(low, high + 1) if e % step == 0]
    return [i for i in found if not any(abs(log10(i / balance)) < 0.12 for balance in balances)]


def intensity_text(intensity: float) -> str:
    """`0.01`, `10⁻⁶`."""
    return show_number(intensity) if 0.999e-3 < intensity < 1.001e4 else power(intensity)


def _equal_times(board: Board, kind: Which, plane: Plane) -> None:
    """Lines of equal run time, max(compute, bandwidth), at powers of ten, named near the ends of their level parts."""
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    one = corner(kind, plane, 1.0)
    grey, small = board.look.grey("#666666"), board.look.small
    first, last = log10(min(x0 / one[0], y0 / one[1])), log10(max(x1 / one[0], y1 / one[1]))
    for e in range(floor(first), ceil(last) + 1):
        x, y = one[0] * 10.0**e, one[1] * 10.0**e
        style: dict[str, Any] = {"color": board.look.grey("#9A9A9A"), "linewidth": 0.8, "linestyle": ":", "zorder": 2}
        if y0 < y < y1:
            board.axes.plot((x0, max(x0, min(x, x1))), (y, y), **style)
        if x0 < x < x1:
            board.axes.plot((x, x), (y0, max(y0, min(y, y1))), **style)
        text = f"T = {show_time(10.0**e)}"
        width, height = board.size(text, small)
        if y0 < y < y1 and x > x0:
            px, py = board.frame.x1 - width - 6, board.pixel(x0, y)[1] + 2
            px = min(px, board.pixel(min(x, x1), y)[0] - width - 4)
            while px > board.frame.x0 + 2:
                spot = Rectangle(px, py, px + width, py + height)
                if board.free([spot]):
                    board.text(spot.x0, spot.y0, text, small, color=grey, ha="left", va="bottom")
                    board.taken.append(spot)
                    break
                px -= width / 2


def _crowd(board: Board, places: Sequence[tuple[float, float]]) -> bool:
    """Whether neighbours overlap, so that names at them would be unreadable."""
    pixels = [board.pixel(*p) for p in places]
    return any(abs(ax - bx) + abs(ay - by) < 16 for (ax, ay), (bx, by) in pairwise(pixels))


# ---- spots ----

Place = tuple[float, float] | None


def _places(board: Board, kind: Which, plane: Plane, spot: Spot) -> tuple[Place, Place]:
    """The positions of the closed symbol and of the open one, in data coordinates; a count of 0 is on the edge."""
    times = plane.times(spot)
    if not spot.work and not spot.bytes:
        return None, None
    if kind == "time":
        if times is None:
            return None, None
        closed = _inside(board, times.model_bandwidth_s, times.model_compute_s)
        return closed, _inside(board, times.bandwidth_s, times.compute_s)
    closed = _inside(board, spot.bytes, spot.work)
    if kind == "complexity" or times is None:
        return closed, None
    return closed, _inside(board, spot.bytes * times.lost, spot.work * times.lost)


def _inside(board: Board, x: float, y: float) -> tuple[float, float]:
    return max(x, board.window.x[0]), max(y, board.window.y[0])


def _track(
    board: Board, kind: Which, series: Series, found: Sequence[tuple[Place, Place]], style: tuple[str, str]
) -> None:
    """Symbols, the line from closed to open, and arrows along the series: solid by complexity, dashed by time."""
    color, sign = style
    opened = [o for _, o in found if o is not None]
    closed = [c for c, _ in found if c is not None]
    main = opened if kind == "time" else closed
    beside = bool(series.beside)
    if series.joined:
        for a, b in pairwise(main):
            board.arrow(a, b, color, linestyle="--" if beside or kind == "time" else "-")
        if kind == "complexity-time":
            for a, b in pairwise(opened):
                board.arrow(a, b, color, linestyle="--")
    for (at, time), spot in zip(found, series.spots, strict=True):
        if at is not None and time is not None:
            board.line(
                (at[0], time[0]), (at[1], time[1]), color=color, linewidth=0.9, linestyle=(0, (1, 1.5)), zorder=3
            )
        if at is not None and not (beside and kind != "complexity"):
            _symbol(board, _shape(series, spot, sign), at, color, closed=True)
        if time is not None:
            _symbol(board, _shape(series, spot, sign), time, color, closed=False)


def _spreads(board: Board, kind: Which, plane: Plane, series: Series, color: str) -> None:
    """The 10th to the 90th percentile of measured run times, as thick lines on the diagonals of the spots."""
    for spot in series.spots:
        if spot.spread_s is None or not (spot.work and spot.bytes):
            continue
        low, high = (_places(board, kind, plane, replace(spot, run_s=s))[1] for s in spot.spread_s)
        if low is not None and high is not None and board.shows(*low) and board.shows(*high):
            ends = (low[0], high[0]), (low[1], high[1])
            board.axes.plot(*ends, color=color, linewidth=3, alpha=0.5, solid_capstyle="butt", zorder=4)


def _shape(series: Series, spot: Spot, sign: str) -> str:
    """The series' own shape if it is predicted, else the shape of its origin; a triangle on the edge if there is no
    work (pointing right) or no traffic (pointing up).
    """
    if not (spot.work and spot.bytes):
        return ">" if spot.bytes else "^"
    return sign if series.origin == "predicted" else SHAPES[series.origin]


def _symbol(board: Board, shape: str, at: tuple[float, float], color: str, *, closed: bool) -> None:
    """Open symbols are rings, wide enough to show a closed one inside."""
    if not board.shows(*at):
        return
    board.axes.plot(
        [at[0]], [at[1]], shape, color=color if closed else "none", markeredgecolor=color,
        markersize=5.5 if closed else 9.5, markeredgewidth=1.5, zorder=5, clip_on=False,
    )  # fmt: skip


def _colors(series: Sequence[Series], look: Look) -> list[str]:
    """A colour for each series; measurements have the colour of the series they measure."""
    names = list(dict.fromkeys(s.beside or s.name for s in series))
    return [look.color(names.index(s.beside or s.name)) for s in series]


def _signs(series: Sequence[Series]) -> dict[str, str]:
    """The symbol of each series for its predicted points, other than those of measured and cited points."""
    styles = style_of([s.beside or s.name for s in series])
    free = [sign for sign in SIGNS if sign not in MEASURED_OR_CITED]
    return {name: free[number % len(free)] for name, (number, _) in styles.items()}


def _legend(board: Board, kind: Which, series: Sequence[Series], colors: Sequence[str]) -> list[Any]:
    """The series with their colours if there are several, the meaning of closed and open symbols, and of the shapes."""
    grey, paper, signs = board.look.grey("#666666"), board.look.paper, _signs(series)
    shown = [(s, c) for s, c in zip(series, colors, strict=True) if any(p.work or p.bytes for p in s.spots)]
    seen: dict[str, tuple[str, str]] = {}
    for s, color in shown:
        sign = signs[s.beside or s.name] if s.origin == "predicted" or s.beside else SHAPES[s.origin]
        seen.setdefault(s.beside or s.name, (color, sign))
    handles = [
        symbol(sign, named(name, 40), face=color, edge=color, size=5.5, linestyle="-", linewidth=1.5)
        for name, (color, sign) in seen.items()
        if len(seen) > 1
    ]
    if kind != "complexity":
        handles.append(symbol("o", MODEL[kind], face=grey, edge=grey, size=5.5))
        handles.append(symbol("o", "run time", face=paper, edge=grey, size=8.5))
    origins = list(dict.fromkeys(s.origin for s, _ in shown))
    if len(origins) > 1 or "cited" in origins:
        for origin in origins:
            sources = dict.fromkeys(s.source for s, _ in shown if s.origin == origin and s.source)
            text = named("; ".join([origin, *sources]), 72)
            handles.append(symbol(SHAPES[origin], text, face=grey, edge=grey, size=5.5))
    return handles


# ---- the commands ----


def plane_kind(which: Which, line: str, about: str) -> Kind:
    """One of the three as a kind of figure."""

    def figure(asked: Asked, *, level: str | None, points: tuple[str, ...]) -> Any:
        machine, where = asked.machine, level or asked.machine.main_memory.name
        found = asked.predicted()
        units = units_of(found) or ((asked.unit,) if asked.unit else ())
        shown = plane_of(machine, asked.types_of(found), units, level)
        series = [*predicted_series(found, where), *compared_series(asked.measured(asked.options), where)]
        for name in points:
            more, notes = points_series(points_named(name), Path(name).stem, where, machine)
            series += more
            for note in notes:
                asked.warn(note)
        if not any(s.spots for s in series):
            raise CommandError("there is nothing to draw", "give FILEs, or measured points with --points")
        return draw_plane(which, shown, series, asked.title(found), look=asked.look)

    level = Option("--level", "The level whose bytes and bandwidth to use; by default, the memory.", "NAME")
    sizes = at_option("A size to draw, or a range of sizes (repeatable); drawn in the order given.")
    return Kind(line, about, ("machine", "set", sizes, level, POINTS, "results", "traffic", "unit", "type"), figure)
