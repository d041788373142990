"""Boxes that cover points: all of them, no others, and few."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from roofdsl.sets.boxes import Box, Point, covering


def inside(box: Box) -> set[Point]:
    return set(product(*(range(low, high + 1) for low, high in zip(*box, strict=True))))


@pytest.mark.parametrize("seed", range(60))
def test_boxes_hold_the_points_and_no_others(seed: int) -> None:
    rng = Random(seed)
    dimensions = rng.randint(1, 4)
    points = {tuple(rng.randint(-2, 2) for _ in range(dimensions)) for _ in range(rng.randint(1, 40))}
    boxes = covering(points)
    assert set().union(*map(inside, boxes)) == points
    assert len(boxes) <= len(points)


def test_a_star_is_its_arms() -> None:
    star = {(o, 0, 0) for o in range(-4, 5)} | {(0, o, 0) for o in range(-4, 5)} | {(0, 0, o) for o in range(-4, 5)}
    assert len(covering(star)) == 3


def test_a_cube_is_one_box() -> None:
    assert covering(set(product(range(-1, 2), repeat=3))) == [((-1, -1, -1), (1, 1, 1))]


def test_the_only_point_of_no_dimensions() -> None:
    assert covering({()}) == [((), ())]
