"""The boxes of launch overhead in the planes of the time-based roofline, and the names of the two regions."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.plot.board import Board
from roofdsl.plot.labels import Box as Rectangle
from roofdsl.plot.look import named
from roofdsl.plot.planes_content import Plane, Series, Which, boxes_of


def corner(kind: Which, plane: Plane, seconds: float) -> tuple[float, float]:
    """The point at which both times are `seconds`."""
    if kind == "time":
        return seconds, seconds
    return seconds * plane.bytes_per_s, seconds * plane.peak.rate_per_s


def draw_boxes(board: Board, kind: Which, plane: Plane, series: Sequence[Series]) -> None:
    """Draw the overhead boxes, each with its name below or above its upper edge, or next to its right one."""
    left, bottom = board.window.x[0], board.window.y[0]
    grey, small = board.look.grey("#666666"), board.look.small
    boxes = boxes_of(series)
    for box in boxes:
        x, y = corner(kind, plane, box.launch_s)
        board.axes.fill_between([left, x], [bottom, bottom], [y, y], color="#999999", alpha=0.12, linewidth=0, zorder=1)
        style = {"color": grey, "linewidth": 1.0, "linestyle": (0, (2, 2)), "zorder": 2}
        board.line((left, x), (y, y), **style)
        board.line((x, x), (bottom, y), **style)
    corners = [board.pixel(*corner(kind, plane, box.launch_s)) for box in boxes]
    x, y = corner(kind, plane, 1.0)  # corners lie on the machine balance
    balance = diagonal(board, y / x)
    steep = None if balance is None else (board.pixel(*balance[0]), board.pixel(*balance[1]))
    for box, (right, top) in zip(boxes, corners, strict=True):
        text = named(box.label)
        width, height = board.size(text, small)
        x0, y0 = board.frame.x0 + 5, board.frame.y0 + 3
        begins = [(x0, top - height - 2), (x0, top + 3), (right + 4, y0)]
        room = [Rectangle(x, y, x + width, y + height) for x, y in begins]
        others = [t for _, t in corners if t != top]
        spot = min(room, key=lambda r: _crowded(board, r, others) + 500 * (steep is not None and _crosses(steep, r)))
        if spot.within(board.frame):
            board.text(spot.x0, spot.y0 + 1, text, small, color=grey, ha="left", va="bottom")
            board.taken.append(spot)


def _crosses(line: tuple[tuple[float, float], tuple[float, float]], spot: Rectangle) -> bool:
    """Whether a rising line, given by two of its points, passes through the rectangle."""
    (xa, ya), (xb, yb) = line
    low, high = (xa + (y - ya) * (xb - xa) / (yb - ya) for y in (spot.y0, spot.y1))
    return low < spot.x1 and high > spot.x0


def _crowded(board: Board, spot: Rectangle, lines: Sequence[float]) -> float:
    """How bad a place for a text is: on other texts, on horizontal lines at these heights, or outside the frame."""
    covered = sum(spot.overlap(t) for t in board.taken)
    return covered + 500 * sum(spot.y0 < y < spot.y1 for y in lines) + 1000 * (not spot.within(board.frame))


def name_regions(board: Board, kind: Which, plane: Plane, series: Sequence[Series]) -> None:
    """Name the regions above and below the balance, in the two corners, outside the overhead boxes."""
    inside = [
        Rectangle(board.frame.x0, board.frame.y0, *board.pixel(*corner(kind, plane, box.launch_s)))
        for box in boxes_of(series)
    ]
    small = board.look.small
    for text, right in (("compute-bound", False), ("bandwidth-bound", True)):
        width, height = board.size(text, small)
        px = board.frame.x1 - width - 6 if right else board.frame.x0 + 6
        for step in range(40):
            py = board.frame.y0 + 6 + 5 * step if right else board.frame.y1 - height - 4 - 5 * step
            spot = Rectangle(px, py, px + width, py + height)
            if board.free([spot]) and not any(spot.overlap(t) for t in inside):
                grey = board.look.grey("#666666")
                board.text(spot.x0, spot.y0, text, small, color=grey, ha="left", va="bottom", style="italic")
                board.taken.append(spot)
                break


def diagonal(board: Board, slope: float) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Where y = slope x enters and leaves the window; None if hardly any of it lies there."""
    (x0, x1), (y0, y1) = board.window.x, board.window.y
    low, high = max(x0, y0 / slope), min(x1, y1 / slope)
    return ((low, low * slope), (high, high * slope)) if high > low * 1.05 else None
