"""What whole iterations touch, as few boxes: exactly the same elements, and the misses that a cache sees."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import islpy as isl
import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.loops.transform import apply
from roofdsl.sets.previous import claimed_previous
from roofdsl.sets.reuse import Touched, _joined, by_array, union
from roofdsl.sets.whole_iterations import Box, Offset, cover, touched_boxes, without_place
from roofdsl.simulate.distances import miss_curve
from tests.models.shipped import model
from tests.oracle.loading import kernel_of


def inside(box: Box) -> list[Offset]:
    return list(product(*(range(a, b + 1) for a, b in zip(*box, strict=True))))


@pytest.mark.parametrize("seed", range(40))
def test_boxes_contain_the_points_and_no_others(seed: int) -> None:
    pick = random.Random(seed)
    dims = pick.randint(0, 4)
    points = {tuple(pick.randint(-2, 2) for _ in range(dims)) for _ in range(pick.randint(1, 40))}
    boxes = cover(points)
    assert {p for box in boxes for p in inside(box)} == points
    assert len(boxes) <= len(points)


def test_a_star_is_a_row_in_every_direction() -> None:
    star = [o for o in product(range(-2, 3), repeat=3) if sum(map(bool, o)) <= 1]
    assert Counter(len(inside(box)) for box in cover(star)) == {5: 3}


def test_large_sets_of_points_are_left_as_they_are() -> None:
    many = list(product(range(20), range(20)))
    assert len(cover(many)) == len(many)


@pytest.mark.parametrize("name", ["heat3d_time", "stencil27", "gsrb_fp", "jacobi2d_time"])
def test_boxes_touch_what_the_references_touch(name: str) -> None:
    access_sets = ClosedForms(model(name), {}).large_size_sets
    groups = by_array(access_sets)
    touched = Touched(groups, access_sets.line_bytes)
    for array, references in groups.items():
        boxes = touched_boxes(references, touched._images[array])
        assert boxes.is_equal(without_place(union(references)))
        assert len(boxes.get_basic_maps()) <= len(references)


TWO_BODIES = """
kernel two(steps, n):
    assume n >= 8
    inout A, B: f64[n, n]
    for t in range(steps):
        for i in range(2, n - 2), j in range(2, n - 2):
            B[i, j] = A[i, j] + A[i - 2, j] + A[i - 1, j] + A[i + 1, j] + A[i + 2, j] + A[i, j - 1] + A[i, j + 1]
        for i in range(1, n - 1), j in range(1, n - 1):
            let low = B[i - 1, j - 1] + B[i - 1, j] + B[i - 1, j + 1] + B[i, j - 1]
            A[i, j] = low + B[i, j] + B[i, j + 1] + B[i + 1, j - 1] + B[i + 1, j] + B[i + 1, j + 1]
"""


def test_misses_of_two_stencils_in_turn_are_what_a_cache_sees(pytestconfig: pytest.Config) -> None:
    kernel, size = kernel_of(TWO_BODIES), {"steps": 3, "n": 12}
    curve = miss_curve(apply(kernel), size, None)
    forms = ClosedForms(kernel, size)
    caches = (8, 24, 40, 64, 96, 120, 160, 280, 300, 400, 420, 600, 900, 1200, 1600, 2000, 2304, 3000)
    for cache in caches if pytestconfig.option.thorough else caches[2::5]:
        for convention in ("load_store", "once"):
            found = forms.at_cache(cache, convention).total.evaluate({})
            assert found == curve.bytes(cache, convention), (cache, convention)


def test_two_bodies_are_counted_in_boxes() -> None:
    access_sets = ClosedForms(kernel_of(TWO_BODIES), {}).large_size_sets
    touched = Touched(by_array(access_sets), access_sets.line_bytes)
    assert touched._boxes is not None
    assert sum(len(box.get_basic_maps()) for box in touched._boxes.values()) == 5  # two rows, a square, two results


def test_a_box_that_was_cut_across_is_one_again() -> None:
    below = isl.Set("[n] -> { [i, j] : 0 <= i < n and 0 <= j < n and 2i + j < n }")
    above = isl.Set("[n] -> { [i, j] : 0 <= i < n and 0 <= j < n and 2i + j >= n }")
    corner = isl.Set("[n] -> { [i, j] : 0 <= i < n and 0 <= j < n and 2i + j >= n and i + j < 2n - 2 }")
    whole = isl.Set("[n] -> { [i, j] : 0 <= i < n and 0 <= j < n }")
    assert _joined([below, above]).is_equal(whole)
    assert len(_joined([below, above]).get_basic_sets()) == 1
    assert _joined([below, corner]).is_equal(below.union(corner))


def test_the_same_question_about_previous_accesses_is_asked_once() -> None:
    touch = isl.Map("[n] -> { T[i, j] -> A[i + j] : 0 <= i < n and 0 <= j < n }")
    assert claimed_previous(touch) is claimed_previous(isl.Map(str(touch)))
    assert claimed_previous(touch) is not claimed_previous(touch.set_tuple_name(isl.dim_type.out, "B"))
