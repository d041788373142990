"""What a person sees of a figure: the outlines of its texts, and whether they lie on one another."""

from __future__ import annotations

from math import cos, radians, sin
from typing import Any

Corners = list[tuple[float, float]]


def outlines(figure: Any) -> list[tuple[str, Corners]]:
    """Every text that is drawn, with the corners of the ink it covers, in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    found = []
    for text in figure.findobj(Text):
        if not text.get_text().strip() or not text.get_visible() or not _seen(text):
            continue
        found.append((text.get_text(), _corners(text, renderer)))
    return found


def _seen(text: Any) -> bool:
    """Whether a text belongs to something that is drawn: labels of ticks beyond the limits are not."""
    axes = text.axes
    if axes is None:
        return True
    ticks = [*axes.xaxis.get_ticklabels(which="both"), *axes.yaxis.get_ticklabels(which="both")]
    if any(text is t for t in ticks):
        x, y = text.get_position()
        (x0, x1), (y0, y1) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        on_x = any(text is t for t in axes.xaxis.get_ticklabels(which="both"))
        return bool(x0 <= x <= x1 if on_x else y0 <= y <= y1)
    return True


def _corners(text: Any, renderer: Any) -> Corners:
    angle = text.get_rotation()
    if angle % 90 == 0:
        box = text.get_window_extent(renderer)
        return [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]
    assert (text.get_rotation_mode(), text.get_ha(), text.get_va()) == ("anchor", "center", "baseline")
    from matplotlib.textpath import TextPath

    points = text.get_fontsize()
    ink = TextPath((0, 0), text.get_text().replace("$", r"\$"), size=points).get_extents()
    scale = text.figure.dpi / 72
    px, py = text.get_transform().transform(text.get_position())
    c, s = cos(radians(angle)), sin(radians(angle))
    half = ink.width * scale / 2
    flat = [(-half, ink.y0 * scale), (half, ink.y0 * scale), (half, ink.y1 * scale), (-half, ink.y1 * scale)]
    return [(px + c * x - s * y, py + s * x + c * y) for x, y in flat]


def overlaps(one: Corners, other: Corners, touch: float = 2.5) -> bool:
    """Whether two rectangles, turned as they may be, share more than a rim of `touch` pixels."""
    for corners in (one, other):
        for k in range(4):
            (ax, ay), (bx, by) = corners[k], corners[(k + 1) % 4]
            length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5 or 1.0
            nx, ny = (by - ay) / length, (ax - bx) / length
            first = [x * nx + y * ny for x, y in one]
            second = [x * nx + y * ny for x, y in other]
            if min(max(first), max(second)) - max(min(first), min(second)) <= touch:
                return False
    return True


def collisions(figure: Any) -> list[tuple[str, str]]:
    """Pairs of texts that lie on one another."""
    found = outlines(figure)
    return [(a, b) for k, (a, one) in enumerate(found) for b, other in found[:k] if overlaps(one, other)]


def beyond(figure: Any) -> list[str]:
    """Texts that leave the figure."""
    width, height = figure.bbox.x1, figure.bbox.y1
    return [
        text
        for text, corners in outlines(figure)
        if any(not (-1 <= x <= width + 1 and -1 <= y <= height + 1) for x, y in corners)
    ]
