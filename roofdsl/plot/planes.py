"""The planes of the time-based roofline: complexity (W over Q), time, and both in one figure of four axes.

Closed symbols are complexity, W and Q or the times W / P and Q / beta; open symbols are run time, split by rule 17. An
open symbol lies on its closed one's diagonal, further out by the factor that is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, cos, degrees, floor, log10, sin
from pathlib import Path
from typing import Any, Literal

from roofdsl.machine.quantities import show_number, show_time
from roofdsl.plot.board import (
    DPI,
    INK,
    NORMAL,
    OKABE_ITO,
    PAPER,
    SIZE_IN,
    SMALL,
    Board,
    check_format,
    prefixed,
    save_figure,
)
from roofdsl.plot.content import Window
from roofdsl.plot.hierarchy import name_points
from roofdsl.plot.labels import Box as Rectangle
from roofdsl.plot.planes_content import (
    Plane,
    Series,
    Spot,
    boxes_of,
    complexity_window,
    peak_name,
    time_window,
)

Kind = Literal["complexity", "time", "complexity-time"]
SHAPES = {"predicted": "o", "measured": "s", "cited": "D"}
GREY, FAINT = "#666666", "#9A9A9A"
_PLAIN = (0.115, 0.115, 0.85, 0.795)
_FOUR = (0.115, 0.115, 0.775, 0.735)  # with axes on the right and above


def save_plane(path: Path, kind: Kind, plane: Plane, series: Sequence[Series], title: str | None = None) -> None:
    """Draws the figure into `path`, whose ending (svg, png or pdf) is the format. The same input gives the same file.

    Raises CommandError for another ending, where nothing is to be drawn, and where the file cannot be written.
    """
    ending = check_format(path)
    save_figure(path, ending, lambda: draw_plane(kind, plane, series, title))


def draw_plane(kind: Kind, plane: Plane, series: Sequence[Series], title: str | None = None) -> Any:
    """The matplotlib Figure, not bound to any display."""
    board = _board(kind, plane, series, title if title is not None else plane.title)
    colors = _colors(series)
    places = [(s, [_places(board, kind, plane, spot) for spot in s.spots]) for s in series]
    board.points += [board.pixel(*p) for _, found in places for pair in found for p in pair if p is not None]
    _legend(board, kind, series, colors)
    _boxes(board, kind, plane, series)
    _diagonals(board, kind, plane)
    _regions(board, kind, plane, series)
    if kind != "complexity":
        _equal_times(board, kind, plane)
    anchors, texts, tints = [], [], []
    for (s, found), color in zip(places, colors, strict=True):
        _track(board, kind, s, found, color)
        named_open = kind == "time" and not _crowd(board, [o for _, o in found if o is not None])
        for spot, (closed, opened) in zip(s.spots, found, strict=True):
            at = opened if named_open else closed
            if at is not None and spot.label:
                anchors.append(board.pixel(*at))
                texts.append(spot.label)
                tints.append(color)
    name_points(board, anchors, texts, tints)
    return board.figure


# ---- the plane ----


def _board(kind: Kind, plane: Plane, series: Sequence[Series], title: str) -> Board:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_IN, dpi=DPI, facecolor=PAPER)
    rectangle = _FOUR if kind == "complexity-time" else _PLAIN
    rectangle = (*rectangle[:3], rectangle[3] - 0.035 * title.count("\n"))
    axes = figure.add_axes(rectangle)
    window = time_window(plane, series) if kind == "time" else complexity_window(plane, series, kind != "complexity")
    if kind == "time":
        labels = (f"Bandwidth time at {plane.slope.label}", f"Compute time at {plane.peak.label}")
        _scale(axes, window, (show_time, show_time), labels)
    else:
        labels = (f"Bytes Q, {plane.level}", f"Work W ({plane.operation})")
        _scale(axes, window, (lambda v: f"{prefixed(v)}B", prefixed), labels)
        axes.grid(True, which="major", color="#EEEEEE", linewidth=0.6)
    axes.set_axisbelow(True)
    if kind == "complexity-time":
        _second_axes(axes, window, plane, title)
    else:
        axes.set_title(title, fontsize=NORMAL + 2, loc="left", color=INK)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return Board(figure, axes, window, rectangle)


def _scale(axes: Any, window: Window, write: tuple[Any, Any], labels: tuple[str, str]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(window.x)
    axes.set_ylim(window.y)
    for axis, limits, text, label in zip((axes.xaxis, axes.yaxis), (window.x, window.y), write, labels, strict=True):
        _ticks(axis, limits, text)
        axis.set_label_text(label, fontsize=NORMAL + 1)
    axes.tick_params(labelsize=NORMAL)


def _ticks(axis: Any, limits: tuple[float, float], write: Any) -> None:
    """At powers of ten; where there are fewer than three, at 2 and 5 too."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    low, high = limits
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [10.0**e for e in decades if low <= 10.0**e <= high]
    if len(ticks) < 3:
        ticks = [d * 10.0**e for e in decades for d in (1, 2, 5) if low <= d * 10.0**e <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([write(t) for t in ticks]))
    axis.set_minor_formatter(NullFormatter())


def _second_axes(axes: Any, window: Window, plane: Plane, title: str) -> None:
    """Times above and on the right: bytes over the bandwidth, work over the peak."""
    right, above = axes.twinx(), axes.twiny()
    times = [tuple(v / plane.peak.rate_per_s for v in window.y), tuple(v / plane.bytes_per_s for v in window.x)]
    for second, axis, limits, set_limits, scale in (
        (right, right.yaxis, times[0], right.set_ylim, right.set_yscale),
        (above, above.xaxis, times[1], above.set_xlim, above.set_xscale),
    ):
        scale("log")
        set_limits(limits)
        _ticks(axis, (limits[0], limits[1]), show_time)
        second.tick_params(labelsize=SMALL, colors=GREY)
        second.set_zorder(0)
    right.set_ylabel(f"Compute time at {plane.peak.label}", fontsize=NORMAL, color=GREY)
    above.set_xlabel(f"Bandwidth time at {plane.slope.label}", fontsize=NORMAL, color=GREY, labelpad=5)
    axes.set_zorder(1)
    axes.patch.set_visible(False)
    axes.set_title(title, fontsize=NORMAL + 2, loc="left", color=INK, pad=34)


def _corner(board: Board, kind: Kind, plane: Plane, seconds: float) -> tuple[float, float]:
    """The point at which both times are `seconds`."""
    if kind == "time":
        return seconds, seconds
    return seconds * plane.bytes_per_s, seconds * plane.peak.rate_per_s


def _boxes(board: Board, kind: Kind, plane: Plane, series: Sequence[Series]) -> None:
    """The overhead boxes, each named below or above its upper edge."""
    left, bottom = board.window.x[0], board.window.y[0]
    boxes = boxes_of(series)
    for box in boxes:
        x, y = _corner(board, kind, plane, box.launch_s)
        board.axes.fill_between([left, x], [bottom, bottom], [y, y], color="#999999", alpha=0.10, linewidth=0, zorder=1)
        style = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (2, 2)), "zorder": 2}
        board.line((left, x), (y, y), **style)
        board.line((x, x), (bottom, y), **style)
    tops = [board.pixel(left, _corner(board, kind, plane, box.launch_s)[1])[1] for box in boxes]
    for box, top in zip(boxes, tops, strict=True):
        width, height = board.size(box.label, SMALL)
        x0 = board.frame.x0 + 5
        room = [Rectangle(x0, top + lift, x0 + width, top + lift + height) for lift in (-height - 2, 3)]
        spot = min(room, key=lambda r: _crowded(board, r, [t for t in tops if t != top]))
        board.text(spot.x0, spot.y0 + 1, box.label, SMALL, color=GREY, ha="left", va="bottom")
        board.taken.append(spot)


def _crowded(board: Board, spot: Rectangle, lines: Sequence[float]) -> float:
    """How bad a place for a text is: over other texts, over level lines at these heights, out of the frame."""
    covered = sum(spot.overlap(t) for t in board.taken)
    return covered + 500 * sum(spot.y0 < y < spot.y1 for y in lines) + 1000 * (not spot.within(board.frame))


def _regions(board: Board, kind: Kind, plane: Plane, series: Sequence[Series]) -> None:
    """What is above and below the balance, in the two corners, outside the overhead boxes."""
    inside = [
        Rectangle(board.frame.x0, board.frame.y0, *board.pixel(*_corner(board, kind, plane, box.launch_s)))
        for box in boxes_of(series)
    ]
    for text, right in (("compute-bound", False), ("bandwidth-bound", True)):
        width, height = board.size(text, SMALL)
        px = board.frame.x1 - width - 6 if right else board.frame.x0 + 6
        for step in range(40):
            py = board.frame.y0 + 6 + 5 * step if right else board.frame.y1 - height - 4 - 5 * step
            spot = Rectangle(px, py, px + width, py + height)
            if not board.hides_point([spot]) and not any(spot.overlap(t) for t in [*board.taken, *inside]):
                board.text(spot.x0, spot.y0, text, SMALL, color=GREY, ha="left", va="bottom", style="italic")
                board.taken.append(spot)
                break


def _diagonals(board: Board, kind: Kind, plane: Plane) -> None:
    """The machine balance, those of lower roofs, and in bytes and operations the lines of equal intensity."""
    per_second = plane.bytes_per_s / plane.peak.rate_per_s if kind == "time" else 1.0
    lines = [
        (plane.balance, f"balance {show_number(plane.balance)}, {peak_name(plane.peak, plane.operation)}", 1.8, "-")
    ]
    for roof in plane.others:
        balance = roof.rate_per_s / plane.bytes_per_s
        text = f"{show_number(balance)}, {peak_name(roof, plane.operation)}"
        lines.append((balance, text, 1.0, "--"))
    if kind == "complexity":
        (x0, x1), (y0, y1) = board.window.x, board.window.y
        for e in range(floor(log10(y0 / x1)), ceil(log10(y1 / x0)) + 1):
            near = any(abs(log10(10.0**e / balance)) < 0.12 for balance, *_ in lines[: 1 + len(plane.others)])
            if not near:
                lines.append((10.0**e, f"I = {show_number(10.0**e)}", 0.8, ":"))
    for intensity, text, width, style in lines:
        color = INK if style != ":" else FAINT
        ends = _diagonal(board, intensity * per_second)
        if ends is None:
            continue
        (xa, ya), (xb, yb) = ends
        draw = board.axes.plot if style == ":" else board.line  # names may cross the many faint ones
        draw((xa, xb), (ya, yb), color=color, linewidth=width, linestyle=style, zorder=2.2)
        _name_diagonal(board, ends, text, color if style != ":" else GREY, style == ":")


def _diagonal(board: Board, slope: float) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Where y = slope x enters and leaves the window."""
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    low, high = max(x0, y0 / slope), min(x1, y1 / slope)
    return ((low, low * slope), (high, high * slope)) if high > low * 1.05 else None


def _name_diagonal(
    board: Board, ends: tuple[tuple[float, float], tuple[float, float]], text: str, color: str, at_end: bool
) -> None:
    """Along the line above it, near its upper end, where no symbol and no other name is."""
    (ax, ay), (bx, _) = (board.pixel(*p) for p in ends)
    along = (cos(board.angle), sin(board.angle))
    width, _ = board.size(text, SMALL)
    length = (bx - ax) / along[0]
    if length < width + 24:
        return
    spots = []
    for i in range(25):
        at = length - width / 2 - 8 - (length - width - 16) * i / 24
        px, py = ax + at * along[0] - 4 * along[1], ay + at * along[1] + 4 * along[0]
        steps = [(px + along[0] * width * j / 10, py + along[1] * width * j / 10) for j in range(-5, 6)]
        boxes = [Rectangle(x - 8, y - 3, x + 8, y + 13) for x, y in steps]
        covered = sum(b.overlap(t) for b in boxes for t in board.taken)
        outside = sum(not b.within(board.frame) for b in boxes)
        spots.append(((outside, board.hides_point(boxes), covered, i if at_end else abs(i - 5)), px, py, boxes))
    cost, px, py, boxes = min(spots, key=lambda s: s[0])
    if at_end and any(cost[:3]):  # of the many lines of equal intensity some may go without a name
        return
    board.text(
        px, py, text, SMALL, color=color, rotation=degrees(board.angle), rotation_mode="anchor", ha="center",
        va="baseline",
    )  # fmt: skip
    board.taken += boxes


def _equal_times(board: Board, kind: Kind, plane: Plane) -> None:
    """Lines of equal run time, max(compute, bandwidth), at powers of ten, named on the left."""
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    one = _corner(board, kind, plane, 1.0)
    first, last = log10(min(x0 / one[0], y0 / one[1])), log10(max(x1 / one[0], y1 / one[1]))
    for e in range(floor(first), ceil(last) + 1):
        x, y = one[0] * 10.0**e, one[1] * 10.0**e
        style: dict[str, Any] = {"color": FAINT, "linewidth": 0.8, "linestyle": ":", "zorder": 2}
        if y0 < y < y1:
            board.axes.plot((x0, max(x0, min(x, x1))), (y, y), **style)
        if x0 < x < x1:
            board.axes.plot((x, x), (y0, max(y0, min(y, y1))), **style)
        text = f"T = {show_time(10.0**e)}"
        width, height = board.size(text, SMALL)
        if y0 < y < y1 and x > x0:
            px, py = board.frame.x1 - width - 6, board.pixel(x0, y)[1] + 2
            px = min(px, board.pixel(min(x, x1), y)[0] - width - 4)
            if px > board.frame.x0 + 2:
                spot = Rectangle(px, py, px + width, py + height)
                free = not board.hides_point([spot]) and not any(spot.overlap(t) for t in board.taken)
                if free and spot.within(board.frame):
                    board.text(spot.x0, spot.y0, text, SMALL, color=GREY, ha="left", va="bottom")
                    board.taken.append(spot)


def _crowd(board: Board, places: Sequence[tuple[float, float]]) -> bool:
    """Whether neighbours stand one on the other, so that names at them would be a heap."""
    pixels = [board.pixel(*p) for p in places]
    return any(abs(ax - bx) + abs(ay - by) < 16 for (ax, ay), (bx, by) in pairwise(pixels))


# ---- spots ----

Place = tuple[float, float] | None


def _places(board: Board, kind: Kind, plane: Plane, spot: Spot) -> tuple[Place, Place]:
    """(where the closed symbol stands, where the open one), in data; a count of 0 stands on the edge."""
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


def _track(board: Board, kind: Kind, series: Series, found: Sequence[tuple[Place, Place]], color: str) -> None:
    """Symbols, the line from closed to open, and arrows along the series: solid by complexity, dashed by time."""
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
            _symbol(board, _shape(series, spot), at, color, closed=True)
        if time is not None:
            _symbol(board, _shape(series, spot), time, color, closed=False)


def _shape(series: Series, spot: Spot) -> str:
    """By whose it is; a triangle on the edge where there is no work (pointing right) or nothing moves (up)."""
    return SHAPES[series.origin] if spot.work and spot.bytes else (">" if spot.bytes else "^")


def _symbol(board: Board, shape: str, at: tuple[float, float], color: str, *, closed: bool) -> None:
    """Open symbols are rings, wide enough to show a closed one inside."""
    board.axes.plot(
        [at[0]], [at[1]], shape, color=color if closed else "none", markeredgecolor=color,
        markersize=5.5 if closed else 9.5, markeredgewidth=1.5, zorder=5, clip_on=False,
    )  # fmt: skip


def _colors(series: Sequence[Series]) -> list[str]:
    """One for each series; measurements have the colour of what they are measurements of."""
    names = list(dict.fromkeys(s.beside or s.name for s in series))
    return [OKABE_ITO[names.index(s.beside or s.name) % len(OKABE_ITO)] for s in series]


def _legend(board: Board, kind: Kind, series: Sequence[Series], colors: Sequence[str]) -> None:
    """Series by colour where there are several, what closed and open mean, whose the shapes are."""
    from matplotlib.lines import Line2D

    handles = []
    shown = [(s, c) for s, c in zip(series, colors, strict=True) if any(p.work or p.bytes for p in s.spots)]
    if len({s.beside or s.name for s, _ in shown}) > 1:
        seen: dict[str, str] = {}
        for s, color in shown:
            seen.setdefault(s.beside or s.name, color)
        handles += [Line2D([], [], color=color, linewidth=2, label=name) for name, color in seen.items()]

    def symbol(face: str, shape: str, label: str) -> Any:
        size = 5.5 if face != PAPER else 8.5
        return Line2D(
            [], [], linestyle="", marker=shape, color=face, markeredgecolor=GREY, markersize=size, label=label
        )

    if kind != "complexity":
        model = "W / P and Q / bandwidth" if kind == "time" else "complexity: W, Q"
        handles += [symbol(GREY, "o", model), symbol(PAPER, "o", "run time")]
    origins = list(dict.fromkeys(s.origin for s, _ in shown))
    if len(origins) > 1 or "cited" in origins:
        for origin in origins:
            sources = dict.fromkeys(s.source for s, _ in shown if s.origin == origin and s.source)
            handles.append(symbol(GREY, SHAPES[origin], "; ".join([origin, *sources])))
    if not handles:
        return
    board.axes.legend(handles=handles, loc="lower right", fontsize=SMALL, edgecolor="none", framealpha=0.85)
    width = max(board.size(str(h.get_label()), SMALL)[0] for h in handles) + 45
    board.taken.append(Rectangle(board.frame.x1 - width, 0, board.frame.x1, board.frame.y0 + 20 * len(handles) + 14))
