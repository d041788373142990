"""Intervals of affine expressions and of loop bounds, against enumerated values."""

from __future__ import annotations

import random
from itertools import product

import pytest

from roofdsl.counts.distinct_units import distinct_units
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.loop_intervals import Form, LoopIntervals, Values
from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Sym, add, mul
from roofdsl.loops.model import For
from tests.oracle.loading import kernel_of


def in_runs(values: Values) -> list[int]:
    starts = range(values.first, values.last + 1, values.step)
    return [v for start in starts for v in range(start, start + values.run) if v <= values.last]


@pytest.mark.parametrize("seed", range(60))
def test_intervals_are_those_of_the_values(seed: int) -> None:
    chance = random.Random(seed)
    names = "ijk"[: chance.randint(1, 3)]
    expression: IntExpr = Const(chance.randint(-9, 9))
    env = {}
    for name in names:
        expression = add(expression, mul(Const(chance.choice([-3, -1, 0, 1, 2, 5])), Sym(name)))
        first, step, more = chance.randint(0, 5), chance.randint(1, 4), chance.randint(0, 4)
        run = chance.choice([1, 1, chance.randint(1, step)])  # runs of values in a row, or single values
        env[name] = Values(first, first + step * more + run - 1, step, run)
    every = product(*map(in_runs, env.values()))
    values = sorted({expression.evaluate(dict(zip(names, one, strict=True))) for one in every})
    form = Form.of(expression)
    assert form.interval(env) == (values[0], values[-1])
    assert {v for low, high in form.intervals(env, 1) for v in range(low, high + 1)} == set(values)
    wide = form.intervals(env, 3)
    assert all(any(low <= v <= high for low, high in wide) for v in values)


def test_a_division_has_a_value_only_where_its_loops_stand_still() -> None:
    form = Form.of(add(Const(3), FloorDiv(Sym("i"), Const(4))))
    assert form.interval({"i": Values(9, 9)}) == (5, 5)
    with pytest.raises(NoAnswer):
        form.interval({"i": Values(8, 9)})


@pytest.mark.parametrize("n", [60, 64, 70, 75, 80, 90])
def test_one_turn_of_a_loop_in_chunks_has_gaps(n: int) -> None:
    """Chunks of 16 in turns of 4, the last chunk cut short by n or empty in this turn."""
    kernel = kernel_of(
        f"kernel k():\n    inout a: f64[100]\n    for turn in range(0, 16, 4), ii in range(0, {n}, 16):\n"
        f"        for i in range(ii + turn, min({n}, ii + 16, ii + turn + 4)):\n            a[i] = 2 * a[i]\n"
    )
    loop = kernel.body[0]
    for _ in range(2):
        assert isinstance(loop, For)
        (loop,) = loop.body
    assert isinstance(loop, For)
    intervals, form = LoopIntervals({"i"}), Form.of(Sym("i"))
    for first, last in ((0, 0), (8, 8), (12, 12), (0, 4), (4, 12), (0, 12)):
        env = {"turn": Values(first, last, 4), "ii": Values(0, (n - 1) // 16 * 16, 16)}
        every = {
            i for t in range(first, last + 1, 4) for ii in range(0, n, 16) for i in range(ii + t, min(n, ii + t + 4))
        }
        found = intervals.hull(loop, env)
        assert found is not None
        assert {v for a, b in form.intervals({"i": found}, 1) for v in range(a, b + 1)} == every


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
    assert intervals.values(inner, {"ii": Values(80, 80, 16)}) == range(80, 90, 4)
    assert intervals.hull(outer, {}) == Values(0, 80, 16)
    assert intervals.hull(inner, {"ii": Values(0, 80, 16)}) == Values(0, 88, 4)


def test_a_loop_whose_bounds_move_with_a_subscript() -> None:
    """`A[i, j]` in a band has as many elements as the box at the middle of i, and `x[j]` those of all i."""
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[100, 100], x: f64[100]\n    inout y: f64[100]\n    for i in range(100):\n"
        "        for j in range(max(0, i - 2), min(100, i + 3)):\n            y[i] += A[i, j] * x[j]\n"
    )
    (outer,) = kernel.body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    found = LoopIntervals({"i", "j"}).hull(inner, {"i": Values(10, 20)})
    assert found is not None
    assert found.for_access(["i", "j"])[:2] == (13, 17)
    assert found.for_access(["j"])[:2] == (8, 22)
    alone = LoopIntervals({"i", "j"}).hull(inner, {"i": Values(10, 10)})
    assert alone == Values(8, 12)


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
