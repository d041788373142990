"""Counts and bounds that are asked for together come from one child process, and are those of single calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import islpy as isl
import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.sets import child_process
from roofdsl.sets.cardinality import cardinalities, cardinality, count_ahead
from roofdsl.sets.child_process import CAN_FORK
from roofdsl.sets.native_calls import bound, bounds, is_counted_in_child
from tests.models.shipped import model

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="children are forked")


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of processes of every group that is started in this process."""
    started: list[int] = []
    fork = child_process._in_copies

    def counted(tasks: Sequence[Callable[[], bytes]], seconds: float) -> list[bytes]:
        started.append(len(tasks))
        return fork(tasks, seconds)

    monkeypatch.setattr(child_process, "_in_copies", counted)
    return started


def corners(width: int) -> isl.Set:
    """Five squares along a diagonal, at a distance from each other."""
    parts = (f"{10 * width * k} <= i < {10 * width * k} + n and {10 * width * k} <= j < n" for k in range(5))
    return isl.Set(f"[n] -> {{ A[i, j] : {' or '.join(parts)} }}")


def test_sets_are_counted_in_one_child_and_then_known(children: list[int]) -> None:
    sets = [corners(width) for width in range(11, 16)]
    assert all(map(is_counted_in_child, sets))
    count_ahead([*sets, sets[0], isl.Set("[n] -> { A[i, j] : 0 <= i, j < n }")])
    assert children == [1]
    for each in sets:
        assert str(cardinality(each)) == str(isl.PwQPolynomial(str(each.card())))
    count_ahead(sets)
    assert children == [1]


def test_maps_are_counted_in_one_child(children: list[int]) -> None:
    parts = (f"{10 * k} <= j < {10 * k} + n and (i + j) mod 2 = 0" for k in range(4))
    hard = isl.Map(f"[n] -> {{ T[i] -> A[j] : 0 <= i < n and ({' or '.join(parts)}) }}")
    easy = isl.Map("[n] -> { T[i] -> A[j] : 0 <= i, j < n }")
    maps = [hard, easy, hard.fix_val(isl.dim_type.in_, 0, isl.Val(4))]
    together = cardinalities(maps)
    assert children == [1]
    assert list(map(str, together)) == [str(cardinality(each)) for each in maps]


def test_bounds_of_many_dimensions_come_from_one_child(children: list[int]) -> None:
    box = "0 < a, b, c, d < n"
    polynomials = [isl.PwQPolynomial(f"[n] -> {{ A[a, b, c, d] -> {k}*a + b*c + d : {box} }}") for k in range(1, 6)]
    polynomials.insert(2, isl.PwQPolynomial("[n] -> { A[a] -> a : 0 <= a < n }"))
    together = bounds(polynomials, isl.fold.min, isl.fold.max)
    assert children == [1]
    alone = [bound(p, isl.fold.min, isl.fold.max) for p in polynomials]
    assert [list(map(str, folds)) for folds in together] == [list(map(str, folds)) for folds in alone]


@pytest.mark.thorough
def test_plateaus_start_few_processes(children: list[int]) -> None:
    """Of all the bounds and counts of a class of sizes, none has a process of its own."""
    ClosedForms(model("fft_rows"), {}, None).plateau_forms("once")
    assert len(children) < 40  # it was 118, with the same counts


def test_a_set_of_many_dimensions_with_a_floor_is_counted_in_a_child(children: list[int]) -> None:
    """One with eight dimensions takes 15 s, which nothing can interrupt in this process."""
    inside = "0 <= a, b, c, d, e < 5 and 16 x <= 7 a + 3 b + c + d + e < 16 x + 16 and (a + b) mod 3 = 0"
    own = isl.Set(f"{{ [T[a, b, c, d, e] -> A[x]] : {inside} }}")
    count = cardinality(own)
    points = sum((a + b) % 3 == 0 for a, b, _, _, _ in product(range(5), repeat=5))  # each has one x
    assert children == [1] and str(count) == f"{{ {points} }}"
