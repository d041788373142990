"""Counts of points by products of groups of dimensions, against counts of them one by one and the library's own."""

from __future__ import annotations

import random
from itertools import product

import islpy as isl
import pytest

from roofdsl.sets import cardinality as counting
from roofdsl.sets.cardinality import cardinality

SIZES = (0, 1, 4, 6)


def _bounds(draw: random.Random, outer: list[str], name: str) -> str:
    """Bounds of one dimension by numbers, the parameter and outer dimensions, at times one value or every other one."""
    others = ["0", "1", "n", "n - 2", *outer, *(f"{o} + 1" for o in outer), *(f"n - {o}" for o in outer)]
    low, high = draw.choice(others), draw.choice(others)
    text = f"{name} == {low}" if draw.random() < 0.2 else f"{low} <= {name} <= {high} + {draw.randrange(3)}"
    return text + (f" and {name} % 2 == 1" if draw.random() < 0.15 else "") + f" and -3 <= {name} <= 9"


def _part(draw: random.Random) -> str:
    names = ["i", "a", "b", "c"]
    return " and ".join(_bounds(draw, draw.sample(names[:k], min(k, 2)), name) for k, name in enumerate(names))


@pytest.mark.spread(3)
@pytest.mark.parametrize("seed", range(24))
def test_a_count_is_the_number_of_points(seed: int) -> None:
    """Of a map's images for every input, and of a set's points, at sizes one by one."""
    draw = random.Random(seed)
    parts = " or ".join(f"({_part(draw)})" for _ in range(draw.randrange(1, 5)))
    condition = parts.replace("==", "=")
    of_map = cardinality(isl.Map(f"[n] -> {{ T[i] -> A[a, b, c] : {condition} }}"))
    of_set = cardinality(isl.Set(f"[n] -> {{ A[i, a, b, c] : {condition} }}"))
    holds = compile(parts, "", "eval")
    for n in SIZES:
        inside = [p for p in product(range(-3, 10), repeat=4) if eval(holds, dict(zip("iabc", p, strict=True), n=n))]
        assert of_set.eval(isl.Set(f"[n] -> {{ : n = {n} }}").sample_point()).to_python() == len(inside)
        for i in range(-3, 10):
            at = isl.Set(f"[n] -> {{ T[i] : n = {n} and i = {i} }}").sample_point()
            assert of_map.eval(at).to_python() == sum(p[0] == i for p in inside)


def test_groups_that_are_the_same_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four disjoint boxes of three dimensions are twelve intervals, of which five are different."""
    monkeypatch.setattr(counting, "_counts", {})
    boxes = " or ".join(
        f"(10*{k} <= a < 10*{k} + 3 and t <= b < n and {low} <= c < n)" for k in range(2) for low in ("0", "t")
    )
    _ = cardinality(isl.Map(f"[n] -> {{ T[t] -> A[a, b, c] : 0 <= t < n and ({boxes}) }}"))
    assert len(counting._counts) == 5
