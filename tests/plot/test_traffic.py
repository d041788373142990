"""Figures of Q(Z)."""

from __future__ import annotations

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import find_model
from roofdsl.plot.traffic_content import traffic_content
from tests.oracle.loading import kernel_of


def test_nothing_is_drawn_of_what_touches_nothing() -> None:
    text = "kernel late(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(5, n):\n        y[i] = x[i - 5]\n"
    with pytest.raises(CommandError, match="touches nothing"):
        traffic_content(kernel_of(text), {"n": 3}, "load_store", None)


def test_plateaus_are_drawn_where_the_exact_curve_is_level() -> None:
    """A triangular kernel's reuse distances have long ranges, in which Q(Z) is on no plateau."""
    target = find_model("cholesky")
    content = traffic_content(kernel(load_file(target.path), target.name), {"n": 60}, "load_store", None)
    assert content.curve is not None
    sizes, moved = content.curve
    for plateau in content.plateaus[:-1]:
        assert plateau.end_bytes is not None and plateau.start_bytes <= plateau.end_bytes
        on_it = [q for z, q in zip(sizes, moved, strict=True) if plateau.start_bytes <= z < plateau.end_bytes]
        assert all(q > 0.9 * plateau.traffic_bytes for q in on_it)
    ends = [p.end_bytes or 0 for p in content.plateaus[:-1]]
    starts = [p.start_bytes for p in content.plateaus[1:]]
    assert any(end < start / 10 for end, start in zip(ends, starts, strict=True))
