"""Few boxes in place of many points: what the references of a stencil touch in one iteration."""

from __future__ import annotations

from collections.abc import Collection
from itertools import permutations, product

Point = tuple[int, ...]
Box = tuple[Point, Point]
"""Least and greatest coordinates, both inside."""


def covering(points: Collection[Point]) -> list[Box]:
    """Boxes that contain the points and no other, and may overlap: the largest first, until all are inside one."""
    inside = frozenset(points)
    largest = {_grown(p, order, inside) for p in inside for order in permutations(range(len(p)))}
    members = {box: frozenset(_points(box)) for box in largest}
    left, found = set(inside), list[Box]()
    while left:
        best = max(members, key=lambda box: (len(members[box] & left), box))
        found.append(best)
        left -= members[best]
    return found


def _grown(start: Point, order: Collection[int], inside: frozenset[Point]) -> Box:
    """The box around a point that is grown along one dimension after the other while it stays inside."""
    low, high = list(start), list(start)
    for d in order:
        for end, step in ((low, -1), (high, 1)):
            while all(p in inside for p in _points((_at(low, d, end[d] + step), _at(high, d, end[d] + step)))):
                end[d] += step
    return tuple(low), tuple(high)


def _at(point: list[int], dimension: int, value: int) -> Point:
    return (*point[:dimension], value, *point[dimension + 1 :])


def _points(box: Box) -> product[Point]:
    return product(*(range(low, high + 1) for low, high in zip(*box, strict=True)))
