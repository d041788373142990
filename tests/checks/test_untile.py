"""Loops over tiles that a bound leaves out: those that nothing but the loop inside depends on."""

from __future__ import annotations

import pytest

from roofdsl.checks.untile import untiled
from roofdsl.loops.model import For
from tests.oracle.loading import kernel_of

TILED = """
kernel k(n, m, b):
    in A: f64[n, m]
    inout y: f64[n]
    assume n % b == 0
    for ii in range(0, n, b):
        for i in range(ii, ii + b):
            for j in range(m):
                y[i] += {value}
"""


def _loops(value: str) -> list[str]:
    node, found = untiled(kernel_of(TILED.format(value=value))).body[0], []
    while isinstance(node, For):
        found.append(node.var)
        node = node.body[0]
    return found


@pytest.mark.parametrize("value", ["A[i, j]", "A[i, j] * j", "select(A[i, j] > i, A[i, j], 0)"])
def test_tiles_are_left_out(value: str) -> None:
    assert _loops(value) == ["i", "j"]


@pytest.mark.parametrize(
    "value", ["A[ii, j]", "A[i, j] * ii", "select(A[i, j] > ii, A[i, j], 0)", "sqrt(A[i, j] + ii)"]
)
def test_tiles_whose_place_is_a_value_stay(value: str) -> None:
    assert _loops(value) == ["ii", "i", "j"]
