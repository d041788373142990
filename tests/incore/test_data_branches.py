"""Branches that data decide: how often a predictor errs that takes the more frequent outcome of each iteration."""

from __future__ import annotations

import numpy as np
import pytest

from roofdsl.incore.data_branches import DataBranches


def test_equal_lengths_are_predicted() -> None:
    seen = DataBranches(known=False)
    assert [seen.left(0, 7, 100) for _ in range(20)] == [0] * 20
    assert seen.left(0, 8, 100) == 2  # expected to end after 7, and then unexpectedly after 8
    assert seen.left(0, 7, 100) == 0


def test_what_a_launch_repeats_is_known() -> None:
    rng = np.random.default_rng(1)
    seen = DataBranches(known=True)
    assert not any(seen.left(0, int(n), 64) for n in rng.integers(1, 60, 300))
    assert seen.left(0, 65, 64) == 1  # beyond what the core counts


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.1, 0.2, 0.7), (0.6, 0.0, 0.3, 0.1), (0.2,) * 5])
def test_lengths_in_no_order(chances: tuple[float, ...]) -> None:
    """In iteration t, a loop ends with the chance h = P(T = t) / P(T >= t); the better guess errs by min(h, 1 - h)."""
    p = np.array(chances)
    going = p[::-1].cumsum()[::-1]
    errors = sum(g * min(x / g, 1 - x / g) for x, g in zip(p, going, strict=True) if g > 0)
    rng = np.random.default_rng(3)
    seen = DataBranches(known=False)
    lengths = 1 + rng.choice(len(p), 4000, p=p)
    found = sum(seen.left(0, int(n), 100) for n in lengths) / len(lengths)
    assert found == pytest.approx(errors, abs=0.03)


def test_branches_that_leave_no_loop() -> None:
    seen = DataBranches(known=False)
    assert not any(seen.branched(1, k % 2 == 0) for k in range(50))  # one way and the other, in turns
    rng = np.random.default_rng(5)
    taken = rng.random(4000) < 0.3
    wrong = sum(seen.branched(2, bool(t)) for t in taken)
    assert wrong / 4000 == pytest.approx(0.3, abs=0.03)
