"""Where labels go so that they overlap neither each other nor what they name. Plain geometry in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import cos, radians, sin

_ANGLES = (45, 135, -45, -135, 0, 180, 90, -90, 20, 160, -20, -160, 70, 110, -70, -110)
_DISTANCES = (9, 14, 21, 32, 46, 62)


@dataclass(frozen=True)
class Box:
    """An upright rectangle."""

    x0: float
    y0: float
    x1: float
    y1: float

    def overlap(self, other: Box) -> float:
        """The common area."""
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        return width * height if width > 0 and height > 0 else 0.0

    def within(self, other: Box) -> bool:
        """Whether it lies inside `other`."""
        return self.x0 >= other.x0 and self.y0 >= other.y0 and self.x1 <= other.x1 and self.y1 <= other.y1


@dataclass(frozen=True)
class Placed:
    """A label's rectangle, and how far it is from its anchor."""

    box: Box
    distance: float


def place(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    obstacles: Iterable[Box] = (),
    lines: Iterable[Box] = (),
) -> list[Placed]:
    """A rectangle for every label, in order: near its anchor, inside `frame`, off labels, obstacles and anchors.

    `lines` are to be avoided too where there is a choice. Greedy, so that it is the same every time.
    """
    hard = [*obstacles, *(Box(x - 5, y - 5, x + 5, y + 5) for x, y in anchors)]
    soft = list(lines)
    placed: list[Placed] = []
    for (x, y), (width, height) in zip(anchors, sizes, strict=True):
        candidates = [_beside((x, y), (width, height), a, d) for d in _DISTANCES for a in _ANGLES]
        inside = [c for c in candidates if c.box.within(frame)] or candidates
        best = min(inside, key=lambda c: _cost(c, hard, soft))
        placed.append(best)
        hard.append(best.box)
    return placed


def _beside(anchor: tuple[float, float], size: tuple[float, float], angle: float, distance: float) -> Placed:
    """The rectangle whose near side or corner is `distance` away from the anchor, in that direction."""
    dx, dy = cos(radians(angle)), sin(radians(angle))
    (x, y), (width, height) = anchor, size
    x0 = x + dx * distance + (width * (dx - 1) / 2)
    y0 = y + dy * distance + (height * (dy - 1) / 2)
    return Placed(Box(x0, y0, x0 + width, y0 + height), distance)


def _cost(candidate: Placed, hard: Sequence[Box], soft: Sequence[Box]) -> float:
    over = sum(candidate.box.overlap(b) for b in hard)
    crossing = sum(candidate.box.overlap(b) for b in soft)
    return 50 * over + crossing + 4 * candidate.distance


def stack(positions: Sequence[float], height: float) -> list[float]:
    """Offsets for labels of lines that lie at `positions` (ascending): each at its line or just past the one before."""
    offsets: list[float] = []
    free = float("-inf")
    for position in positions:
        offset = max(position, free)
        offsets.append(offset)
        free = offset + height
    return offsets
