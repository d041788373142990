"""Intervals of affine expressions and of loop bounds, against enumerated values."""

from __future__ import annotations

import random
from itertools import product

import pytest

from roofdsl.counts.distinct_units import distinct_units
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.loop_intervals import Form, LoopIntervals
from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Sym, add, mul
from roofdsl.loops.model import For
from tests.oracle.loading import kernel_of


@pytest.mark.parametrize("seed", range(60))
def test_intervals_are_those_of_the_values(seed: int) -> None:
    chance = random.Random(seed)
    names = "ijk"[: chance.randint(1, 3)]
    expression: IntExpr = Const(chance.randint(-9, 9))
    env = {}
    for name in names:
        expression = add(expression, mul(Const(chance.choice([-3, -1, 0, 1, 2, 5])), Sym(name)))
        first, step, more = chance.randint(0, 5), chance.randint(1, 4), chance.randint(0, 4)
        env[name] = first, first + step * more, step
    every = product(*(range(first, last + 1, step) for first, last, step in env.values()))
    values = sorted({expression.evaluate(dict(zip(names, one, strict=True))) for one in every})
    form = Form.of(expression)
    assert form.interval(env) == (values[0], values[-1])
    assert {v for low, high in form.intervals(env, 1) for v in range(low, high + 1)} == set(values)
    wide = form.intervals(env, 3)
    assert all(any(low <= v <= high for low, high in wide) for v in values)


def test_a_division_has_a_value_only_where_its_loops_stand_still() -> None:
    form = Form.of(add(Const(3), FloorDiv(Sym("i"), Const(4))))
    assert form.interval({"i": (9, 9, 1)}) == (5, 5)
    with pytest.raises(NoAnswer):
        form.interval({"i": (8, 9, 1)})


def test_a_loop_in_a_chunk_has_the_values_of_all_chunks() -> None:
    kernel = kernel_of(
        "kernel k(n):\n    inout a: f64[100]\n    for ii in range(0, 90, 16):\n"
        "        for i in range(ii, min(ii + 16, 90), 4):\n            a[i] = 2 * a[i]\n"
    )
    (outer,) = kernel.body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    intervals = LoopIntervals({"i"})
    assert intervals.values(inner, {"ii": (80, 80, 16)}) == range(80, 90, 4)
    assert intervals.hull(outer, {}) == (0, 80, 16)
    assert intervals.hull(inner, {"ii": (0, 80, 16)}) == (0, 88, 4)
    with pytest.raises(NoAnswer):
        LoopIntervals({"i", "ii"}).hull(inner, {"ii": (0, 80, 16)})


@pytest.mark.parametrize("seed", range(60))
def test_units_are_those_of_the_elements_wherever_the_boxes_lie(seed: int) -> None:
    chance = random.Random(seed)
    element, unit = chance.choice([2, 4, 8]), chance.choice([32, 64])
    dims = (40, 30, chance.choice([unit // element, 3 * unit // element]))
    boxes = []
    for _ in range(chance.randint(1, 4)):
        ends = [sorted(chance.choices(range(d if k == 2 else 5), k=2)) for k, d in enumerate(dims)]
        boxes.append(tuple((low, high) for low, high in ends))
    for rows, columns in ((0, 0), (chance.randint(1, 34), chance.randint(1, 24))):
        moved = [((a + rows, b + rows), (c + columns, d + columns), last) for (a, b), (c, d), last in boxes]
        touched = {
            ((x * dims[1] + y) * dims[2] + z) * element // unit
            for (a, b), (c, d), (e, f) in moved
            for x in range(a, b + 1)
            for y in range(c, d + 1)
            for z in range(e, f + 1)
        }
        assert distinct_units(moved, dims, element, unit) == len(touched)
