"""On a machine of multiprocessors a closed form stands only where the order of accesses makes no difference."""

from __future__ import annotations

import pytest

from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.find import load_machine
from roofdsl.predict.options import Options
from roofdsl.sweep.exact_forms import KernelForms
from tests.sweep.test_equal import assert_equal, known_places, swept

TEXT = """
kernel apart(n):
    in B: f64[n, n]
    inout C: f64[n, n]
    out D: f64[n, n]
    parallel for i in range(n):
        parallel for j in range(n):
            C[i, j] += 2.0 * B[i, j]
            D[i, j] = B[i, j]

kernel mixed(n):
    inout A: f64[n, 2]
    parallel for i in range(n):
        A[i, 0] = A[i, 1]

kernel halves(n):
    inout A: f64[2 * n]
    in B: f64[n]
    parallel for i in range(n):
        A[i] = B[i] + A[n + i]
"""


def written(name: str) -> Kernel:
    return kernel(load_file(Source("blocks.roof", TEXT)), name)


@pytest.mark.parametrize(
    ("name", "convention", "stands"),
    [
        ("apart", "load_store", True),
        ("apart", "write_allocate", True),
        ("mixed", "load_store", False),
        ("mixed", "write_allocate", True),
        ("mixed", "once", True),
        ("halves", "load_store", False),
    ],
)
def test_orders(name: str, convention: Traffic, stands: bool) -> None:
    k = written(name)
    assert KernelForms(k, {}).same_in_any_order(convention) is stands
    v100, options = load_machine("v100"), Options(traffic=convention, levels="memory")
    found = swept(k, v100, {"n": (8, 32, 40, 128)}, options)
    places = known_places(found.table)
    assert len(places) == (4 if stands else 0)
    for place in places[1:3]:
        assert_equal(k, found.table, place, v100, options)


def test_private_caches_and_warps_are_counted() -> None:
    found = swept(written("apart"), load_machine("v100"), {"n": (8, 32)})
    assert found.counted == 2
