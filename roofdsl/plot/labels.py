"""Placement of labels such that they cover neither each other nor what they name. Plain geometry in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import cos, radians, sin

_ANGLES = (45, 135, -45, -135, 0, 180, 90, -90, 20, 160, -20, -160, 70, 110, -70, -110)
_DISTANCES = (9, 14, 21, 32, 46, 62, 80)
_TOUCH = 6.0  # square pixels of overlap of two labels that nobody notices


def folded(text: str, longest: int) -> str:
    """A long label in lines of at most `longest` characters, broken at spaces; a longer word stays whole."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > longest:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


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
        """Whether it is inside `other`."""
        return self.x0 >= other.x0 and self.y0 >= other.y0 and self.x1 <= other.x1 and self.y1 <= other.y1


@dataclass(frozen=True)
class Placed:
    """A label's rectangle, its distance from its anchor, and whether it is inside the frame and covers only lines."""

    box: Box
    distance: float
    clear: bool = True


def place(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    obstacles: Iterable[Box] = (),
    lines: Iterable[Box] = (),
) -> list[Placed]:
    """A rectangle for every label, in order: near its anchor and, if possible, inside `frame` and not on labels,
    obstacles and anchors.

    `lines` are avoided as well if there is a choice. The algorithm is greedy, and always gives the same result.
    """
    hard = [*obstacles, *(Box(x - 5, y - 5, x + 5, y + 5) for x, y in anchors)]
    soft = list(lines)
    placed: list[Placed] = []
    for (x, y), (width, height) in zip(anchors, sizes, strict=True):
        candidates = [_beside((x, y), (width, height), a, d) for d in _DISTANCES for a in _ANGLES]
        inside = [c for c in candidates if c.box.within(frame)] or candidates
        boxes = [c.box for c in inside]
        over, crossing = shared_area(boxes, hard), shared_area(boxes, soft)
        costs = [
            50 * sum(o) + 2 * sum(c) + 4 * one.distance for o, c, one in zip(over, crossing, inside, strict=True)
        ]  # fmt: skip
        k = costs.index(min(costs))
        clear = boxes[k].within(frame) and max(over[k], default=0.0) <= _TOUCH
        placed.append(replace(inside[k], clear=clear))
        hard.append(boxes[k])
    return placed


def shared_area(boxes: Sequence[Box], others: Sequence[Box]) -> list[list[float]]:
    """The common area of every box with every one of `others`, a row for each box."""
    import numpy as np

    if not boxes or not others:
        return [[] for _ in boxes]
    one = np.array([(b.x0, b.y0, b.x1, b.y1) for b in boxes])[:, None, :]
    two = np.array([(b.x0, b.y0, b.x1, b.y1) for b in others])[None, :, :]
    width = np.minimum(one[..., 2], two[..., 2]) - np.maximum(one[..., 0], two[..., 0])
    height = np.minimum(one[..., 3], two[..., 3]) - np.maximum(one[..., 1], two[..., 1])
    found: list[list[float]] = (np.clip(width, 0, None) * np.clip(height, 0, None)).tolist()
    return found


def _beside(anchor: tuple[float, float], size: tuple[float, float], angle: float, distance: float) -> Placed:
    """The rectangle whose near side or corner is at `distance` from the anchor, in that direction."""
    dx, dy = cos(radians(angle)), sin(radians(angle))
    (x, y), (width, height) = anchor, size
    x0 = x + dx * distance + (width * (dx - 1) / 2)
    y0 = y + dy * distance + (height * (dy - 1) / 2)
    return Placed(Box(x0, y0, x0 + width, y0 + height), distance)


def stack(positions: Sequence[float], height: float) -> list[float]:
    """Offsets for labels of lines at `positions` (ascending): each at its line or directly after the previous label."""
    offsets: list[float] = []
    free = float("-inf")
    for position in positions:
        offset = max(position, free)
        offsets.append(offset)
        free = offset + height
    return offsets


def stack_up_to(positions: Sequence[float], height: float, end: float) -> list[float]:
    """Like `stack`, pushed back if the last labels would extend beyond `end`."""
    offsets, limit = stack(positions, height), end - height
    for k in reversed(range(len(offsets))):
        offsets[k] = min(offsets[k], limit)
        limit = offsets[k] - height
    return offsets


_SAME = 4.0  # pixels between symbols that hide one another


def hidden_under(anchors: Sequence[tuple[float, float]], colors: Sequence[str]) -> list[int]:
    """For each symbol, how many other colours are drawn on top of it: the more there are, the larger it must be."""
    later = [list(zip(anchors, colors, strict=True))[k + 1 :] for k in range(len(anchors))]
    return [
        len({c for other, c in above if c != color and _near(anchor, other)})
        for anchor, color, above in zip(anchors, colors, later, strict=True)
    ]


def shared(anchors: Sequence[tuple[float, float]], keys: Sequence[object]) -> list[list[int]]:
    """Which labels are combined: those of overlapping symbols with the same key (colour), in order."""
    groups: list[list[int]] = []
    for k, anchor in enumerate(anchors):
        same = next((g for g in groups if keys[g[0]] == keys[k] and _near(anchors[g[0]], anchor)), None)
        if same is None:
            groups.append([k])
        else:
            same.append(k)
    return groups


def joined(texts: Sequence[str]) -> str:
    """`n=1, n=2, n=3`; if all end alike, `gemv, matmul n=8`; of many texts, only the first and the last."""
    texts = list(dict.fromkeys(texts))
    ends = {t.partition(" ")[2] for t in texts}
    if len(texts) > 1 and len(ends) == 1 and ends != {""}:
        return f"{joined([t.partition(' ')[0] for t in texts])} {ends.pop()}"
    return ", ".join(texts) if len(texts) < 5 else f"{texts[0]} to {texts[-1]}"


def _near(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return abs(a[0] - b[0]) < _SAME and abs(a[1] - b[1]) < _SAME
