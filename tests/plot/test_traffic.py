"""Figures of Q(Z)."""

from __future__ import annotations

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.plot.traffic_content import traffic_content
from tests.oracle.loading import kernel_of


def test_nothing_is_drawn_of_what_touches_nothing() -> None:
    text = "kernel late(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(5, n):\n        y[i] = x[i - 5]\n"
    with pytest.raises(CommandError, match="touches nothing"):
        traffic_content(kernel_of(text), {"n": 3}, "load_store", None)
