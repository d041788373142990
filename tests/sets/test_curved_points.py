"""Counts of points under curved conditions, against counts by hand."""

from __future__ import annotations

import islpy as isl

from roofdsl.sets.curved_points import count_positive
from roofdsl.sets.quasi import Quasi


def test_sums_beyond_64_bits_are_exact() -> None:
    """Each of 64 values of d0 leaves almost 2**60 values of d1: 2**66 in all."""
    domain = isl.Set(f"{{ [i, j] : 0 <= i < 64 and 0 <= j < {2**60} }}")
    i, j = Quasi.symbol("d0"), Quasi.symbol("d1")
    # j > i * i: all but i * i + 1 of them
    found = count_positive(domain, j - i * i, 1000)
    assert found == 64 * 2**60 - sum(k * k + 1 for k in range(64))
