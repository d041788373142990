"""Names on a board: along lines, at roofs, at points, such that they cover neither each other nor what they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import atan2, cos, degrees, hypot, sin

from roofdsl.machine.quantities import show_named_rates
from roofdsl.plot.board import Board
from roofdsl.plot.labels import Box, joined, place, shared, shared_area, stack
from roofdsl.plot.look import DPI, named
from roofdsl.plot.roofs import Roof

Pixel = tuple[float, float]

MOST_NAMES = 16
"""The maximum number of names at points that a reader can survey; more go into a key."""

_LONGEST_NAME = 64
"""The maximum number of characters in the name of a roof."""

FAR = 62
"""If a name is at least this many pixels from its point, readers have to search for the point."""


def name_line(
    board: Board,
    start: Pixel,
    end: Pixel,
    text: str,
    color: str,
    *,
    prefer: float = 0.42,
    above: bool = True,
    must: bool = True,
) -> bool:
    """Write `text` along the straight line between two pixels, near the fraction `prefer` of its length.

    The text is above or below the line (`above` says which is tried first), inside the frame, and not on points, texts
    or other lines. If there is no such place, it is left out, unless it `must` be written: then it gets the least bad
    place. Returns whether it was written.
    """
    seen = board.within(start, end)
    if seen is None:
        return False
    (ax, ay), (bx, by) = seen
    points, length = board.look.small, hypot(bx - ax, by - ay)
    width = board.size(text, points)[0]
    if length < width + 8 and not must:
        return False
    angle = atan2(by - ay, bx - ax)
    along = (cos(angle), sin(angle))
    tall = points * DPI / 72
    lifts = (0.36 * tall, -1.08 * tall) if above else (-1.08 * tall, 0.36 * tall)
    room = max(0.0, length - width - 16)
    spots = []
    for side, i in product((0, 1), range(33)):
        at, lift = 8 + width / 2 + room * i / 32, lifts[side]
        pixel = (ax + at * along[0] - lift * along[1], ay + at * along[1] + lift * along[0])
        spots.append((side, abs(i / 32 - prefer), pixel, strip(*pixel, width, tall, along)))
    clear = _clear(board, [boxes for *_, boxes in spots])
    crossed = crossings(board, [pixel for _, _, pixel, _ in spots], width, tall, along)
    order = [(*c, n, *spot[:2], k) for k, (c, n, spot) in enumerate(zip(clear, crossed, spots, strict=True))]
    best = min(order)
    if any(best[:3]) and not must:
        return False
    _, _, (px, py), boxes = spots[best[-1]]
    board.text(
        px, py, text, points, color=color, rotation=degrees(angle), rotation_mode="anchor", ha="center", va="baseline"
    )  # fmt: skip
    board.taken += boxes
    return True


def strip(px: float, py: float, width: float, tall: float, along: tuple[float, float]) -> list[Box]:
    """The area of a rotated text, centred at a pixel on its baseline, as small upright rectangles."""
    half = 0.5 * tall
    mx, my = px - 0.3 * tall * along[1], py + 0.3 * tall * along[0]
    count = max(2, int(width // half))
    steps = [width * (k / count - 0.5) for k in range(count + 1)]
    return [
        Box(mx + s * along[0] - half, my + s * along[1] - half, mx + s * along[0] + half, my + s * along[1] + half)
        for s in steps
    ]


def _clear(board: Board, spots: Sequence[Sequence[Box]]) -> list[tuple[int, float, int]]:
    """For each text, how much of it is outside the frame, on other texts, or on points."""
    boxes = [b for spot in spots for b in spot]
    over = [sum(row) for row in shared_area(boxes, board.taken)]
    points = [sum(a > 0 for a in row) for row in shared_area(boxes, board.around_points())]
    found, start = [], 0
    for spot in spots:
        part = slice(start, start + len(spot))
        beyond = sum(not b.within(board.frame) for b in spot)
        found.append((beyond, round(sum(over[part]), -1), sum(points[part])))
        start += len(spot)
    return found


def crossings(board: Board, at: Sequence[Pixel], width: float, tall: float, along: tuple[float, float]) -> list[int]:
    """How many pieces of lines are under a rotated text at each of these pixels."""
    import numpy as np

    if not board.crossed:
        return [0] * len(at)
    middles = np.array([((b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2) for b in board.crossed])
    away = middles[None, :, :] - np.array(at)[:, None, :]
    across = -away[..., 0] * along[1] + away[..., 1] * along[0]
    near = np.abs(away[..., 0] * along[0] + away[..., 1] * along[1]) < width / 2 + 2
    found: list[int] = (near & (across > -0.3 * tall) & (across < 0.95 * tall)).sum(axis=1).tolist()
    return found


def name_roofs(board: Board, roofs: Sequence[Roof], color: str) -> None:
    """Names at the lines, the lowest first: above or below them, at the right end or, if necessary, farther left."""
    look = board.look
    height = look.small * 1.45 * DPI / 72
    low, high = board.window.y
    shown = _as_one(board, [r for r in sorted(roofs, key=lambda r: r.rate_per_s) if low <= r.rate_per_s <= high])
    lines = [board.pixel(board.window.x[1], r.rate_per_s)[1] for r, _ in shown]
    for (roof, label), line, stacked in zip(shown, lines, stack([p + 3 for p in lines], height), strict=True):
        text = named(label, _LONGEST_NAME)
        width, _ = board.size(text, look.small)
        ridge = max(board.frame.x0, board.pixel(roof.ridge, roof.rate_per_s)[0])
        ends = [board.frame.x1 - 4 - 12 * i for i in range(100)]
        room = [px for px in ends if px - width > ridge + 8] or ends[:1]
        above = [line + 3]
        if not any(line + 3 < other < stacked + 3 for other in lines):  # beyond another line, it would be that one's
            above.append(stacked)
        rows = [y for y in (*above, line - height) if y + height < board.frame.y1 + 12]
        spots = [Box(px - width, y, px, y + height) for y in rows or [line - height] for px in room]
        best = spots[_least_covered(board, spots)]
        board.text(best.x1, best.y0, text, look.small, color=color, ha="right", va="bottom")
        board.taken.append(best)


def _as_one(board: Board, roofs: Sequence[Roof]) -> list[tuple[Roof, str]]:
    """The roofs, lowest first, with their names. Lines too close to be told apart share one, since there is room for
    only one.
    """
    groups: list[list[Roof]] = []
    for roof in roofs:
        near = [*groups[-1], roof] if groups else []
        lines = [board.pixel(board.window.x[1], r.rate_per_s)[1] for r in near]
        if (
            near
            and lines[-1] - lines[0] <= 3
            and roof.operation == near[0].operation
            and len(_shared_name(near)) <= _LONGEST_NAME
        ):
            groups[-1] = near
        else:
            groups.append([roof])
    return [(group[0], _shared_name(group)) for group in groups]


def _shared_name(roofs: Sequence[Roof]) -> str:
    """The names of roofs, with their rates."""
    return show_named_rates([(r.name, r.rate_per_s) for r in roofs], roofs[0].operation)


def _least_covered(board: Board, spots: Sequence[Box]) -> int:
    """The first of these places where a text hides the fewest points, and otherwise covers the least."""
    around, wide = board.around_points(), [Box(b.x0 - 12, b.y0 - 12, b.x1 + 12, b.y1 + 12) for b in spots]
    parts = [shared_area(spots, around), shared_area(wide, around), shared_area(spots, board.taken)]
    points, near, names = ([[a > 0 for a in row] for row in parts[0]], parts[1], parts[2])
    lines = shared_area(spots, board.crossed)
    costs = [
        (sum(p), round(3 * sum(t) + sum(c), -2) + 100 * sum(a > 0 for a in n))
        for p, n, t, c in zip(points, near, names, lines, strict=True)
    ]
    return costs.index(min(costs))


@dataclass(frozen=True)
class Name:
    """A text to write near a pixel, and its colour; points: its font size, None for the usual one.

    optional: whether it may be left out if there is no room. If there is no room for another name, the board counts as
    crowded.
    """

    at: Pixel
    text: str
    color: str
    points: float | None = None
    optional: bool = False


def name_points(board: Board, names: Sequence[Name]) -> None:
    """Write names near their places, not on symbols, lines and other names; with a leader line if far away.

    Symbols of one colour at the same place share one name.
    """
    look = board.look
    board.crowded = board.crowded or len({n.text for n in names}) > MOST_NAMES
    groups = [[names[k] for k in g] for g in shared([n.at for n in names], [(n.color, n.points) for n in names])]
    groups.sort(key=lambda group: all(n.optional for n in group))
    written = [named(joined([n.text for n in group])) for group in groups]
    points = [group[0].points or look.normal for group in groups]
    sizes = [board.size(text, size) for text, size in zip(written, points, strict=True)]
    hard = [*board.taken, *(Box(x - 8, y - 8, x + 8, y + 8) for x, y in board.points)]
    found = place([group[0].at for group in groups], sizes, board.frame, hard, board.crossed)
    for group, text, size, placed in zip(groups, written, points, found, strict=True):
        if all(n.optional for n in group) and (not placed.clear or placed.distance > FAR / 2):
            continue
        board.crowded = board.crowded or not placed.clear or placed.distance >= FAR
        (ax, ay), color, box = group[0].at, group[0].color, placed.box
        if placed.distance > 21:
            near = (min(max(ax, box.x0), box.x1), min(max(ay, box.y0), box.y1))
            (x0, y0), (x1, y1) = board.data(ax, ay), board.data(*near)
            board.axes.plot([x0, x1], [y0, y1], color=color, linewidth=0.7, zorder=2)
        board.text((box.x0 + box.x1) / 2, box.y0 + 2, text, size, color=look.letters(color), ha="center", va="bottom")
        board.taken.append(box)
