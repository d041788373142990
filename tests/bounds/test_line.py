"""The bound's line in the figure of Q(Z): never above the exact curve, and level with compulsory traffic at its end."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from roofdsl.loops.model import Traffic
from roofdsl.loops.transform import apply
from roofdsl.plot.traffic_content import bound_line, traffic_content
from roofdsl.simulate.distances import miss_curve
from tests.bounds.test_sound import POLYBENCH, shipped


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "values", "convention", "line"),
    [
        ("gemm", {"ni": 14, "nj": 15, "nk": 16}, "load_store", None),
        ("syrk", {"m": 20, "n": 18}, "once", None),
        ("jacobi_2d", {"n": 14, "tsteps": 9}, "write_allocate", 32),
        ("gramschmidt", {"m": 30, "n": 9}, "load_store", 16),
        ("nussinov", {"n": 25}, "load_store", 8),
    ],
)
def test_below_the_curve(name: str, values: dict[str, int], convention: Traffic, line: int | None) -> None:
    kernel = shipped(next(p for p in POLYBENCH if p.stem == name))
    sizes, moved = miss_curve(apply(kernel), values, line).steps(convention)
    found = bound_line(kernel, values, convention, line)
    if found is None:
        return
    for size, least in zip(*found, strict=True):
        at = bisect_right(list(sizes), size) - 1
        assert at < 0 or least <= moved[at]
    assert found[1][-1] == moved[-1]


def test_there_is_a_line() -> None:
    kernel = shipped(next(p for p in POLYBENCH if p.stem == "gemm"))
    line = bound_line(kernel, {"ni": 14, "nj": 15, "nk": 16}, "load_store", None)
    assert line is not None
    assert traffic_content(kernel, {"ni": 14, "nj": 15, "nk": 16}, "load_store", None).bound == line
    assert line[1][0] > 2 * line[1][-1]
    stream = shipped(next(p for p in POLYBENCH if p.stem == "gesummv"))
    assert bound_line(stream, {"n": 20}, "load_store", None) is None
