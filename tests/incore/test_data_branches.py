"""Branches that data decide: how often a predictor errs that takes the more frequent outcome of each iteration."""

from __future__ import annotations

import numpy as np
import pytest

from roofdsl.incore.data_branches import DataBranches
from tests.incore.machines import rates


def test_equal_lengths_are_predicted() -> None:
    seen = DataBranches(remembered=0.0)
    assert [seen.left(0, 7, 100) for _ in range(20)] == [0] * 20
    assert seen.left(0, 8, 100) == 2  # expected to end after 7, and then unexpectedly after 8
    assert seen.left(0, 7, 100) == 0


def test_what_a_launch_repeats_is_remembered() -> None:
    rng = np.random.default_rng(1)
    seen = DataBranches(remembered=1.0)
    assert not any(seen.left(0, int(n), 64) for n in rng.integers(1, 60, 300))
    assert seen.left(0, 65, 64) == 1  # beyond what the core counts


def test_a_part_is_remembered() -> None:
    """A core that remembers a quarter of the mispredictions makes three quarters of them, spread over the launch."""
    lengths = [int(n) for n in np.random.default_rng(2).integers(1, 9, 4000)]
    nothing, quarter = DataBranches(remembered=0.0), DataBranches(remembered=0.25)
    every, some = ([seen.left(0, n, 64) for n in lengths] for seen in (nothing, quarter))
    assert nothing.guessed_wrong == quarter.guessed_wrong == sum(every) > 3000
    assert sum(some) == pytest.approx(0.75 * sum(every), abs=1)
    assert sum(some[:2000]) == pytest.approx(0.75 * sum(every[:2000]), abs=1)


def test_a_core_remembers_a_number_of_mispredictions() -> None:
    several = rates(remembered=8000)
    assert [several.remembers(m, 10**6) for m in (0, 4000, 8000, 16000)] == [1.0, 1.0, 1.0, 0.5]
    by_rows = rates(learned=4096)  # a machine file that only states how many rows are learned
    assert [by_rows.remembers(2000, rows) for rows in (4096, 4097)] == [1.0, 0.0]
    assert rates().remembers(2000, 10) == 0.0


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.1, 0.2, 0.7), (0.6, 0.0, 0.3, 0.1), (0.2,) * 5])
def test_lengths_in_no_order(chances: tuple[float, ...]) -> None:
    """In iteration t, a loop ends with the chance h = P(T = t) / P(T >= t); the better guess errs by min(h, 1 - h)."""
    p = np.array(chances)
    going = p[::-1].cumsum()[::-1]
    errors = sum(g * min(x / g, 1 - x / g) for x, g in zip(p, going, strict=True) if g > 0)
    rng = np.random.default_rng(3)
    seen = DataBranches(remembered=0.0)
    lengths = 1 + rng.choice(len(p), 4000, p=p)
    found = sum(seen.left(0, int(n), 100) for n in lengths) / len(lengths)
    assert found == pytest.approx(errors, abs=0.03)


def test_branches_that_leave_no_loop() -> None:
    seen = DataBranches(remembered=0.0)
    assert not any(seen.branched(1, k % 2 == 0) for k in range(50))  # one way and the other, in turns
    rng = np.random.default_rng(5)
    taken = rng.random(4000) < 0.3
    wrong = sum(seen.branched(2, bool(t)) for t in taken)
    assert wrong / 4000 == pytest.approx(0.3, abs=0.03)
