"""Bounds of polynomials over sets of many dimensions."""

from __future__ import annotations

import islpy as isl
import pytest

from roofdsl.sets import native_calls
from roofdsl.sets.polynomial_bounds import bounds
from roofdsl.sets.quasi import Quasi

N, D1, D4 = (Quasi.symbol(name) for name in ("n", "d1", "d4"))


def test_dimensions_that_do_not_matter_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound in many dimensions takes a child process; one in two of six does not."""
    monkeypatch.setattr(native_calls, "in_child", lambda *_: pytest.fail("a child was started"))
    where = "n >= 9 and 0 <= a <= b < n and b <= c < d < 2n and 0 <= e <= b <= f < n"
    assert bounds(isl.Set(f"[n] -> {{ T[a, b, c, d, e, f] : {where} }}"), N * D4 + D1) == (Quasi.constant(0), N * N - 1)
