"""Launches after which another one changes nothing: the claim holds for kernels run twice, and saves their stores."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from roofdsl.codegen.inputs import random_inputs
from roofdsl.codegen.reference import reference
from roofdsl.incore.result import InCore, Step
from roofdsl.lang.record import replace
from roofdsl.predict.idempotent_kernels import CAUSE, changes_nothing_again
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.predict.machines import kernel_of, machine, moving_of

HEAD = "kernel k(n):\n    in a, b: f64[n]\n    inout c, d: f64[n]\n    for i in range(n):\n        "
RELU = "c[i] = max(c[i], 0)"


@pytest.mark.parametrize(
    ("body", "claimed"),
    [
        (RELU, True),
        ("c[i] min= a[i] + b[i]", True),
        ("c[i] = max(b[i], c[i])", True),
        ("c[i] max= a[i]\n        d[i] max= b[i]", True),
        ("c[i] max= d[i] + 1\n        d[i] max= c[i]", False),
        ("c[i] max= a[i]\n        c[i] min= b[i]", False),  # one statement may undo what the other one did
        ("c[i] += a[i]", False),
        ("c[i] = max(a[i], b[i])", False),  # nothing changes here either, but every element is stored
        ("c[i] = max(c[i] + 1, 0)", False),
    ],
)
def test_a_second_launch_changes_nothing_where_this_is_claimed(body: str, claimed: bool) -> None:
    kernel = kernel_of(f"{HEAD}{body}\n")
    assert changes_nothing_again(kernel) == claimed
    inputs = random_inputs(kernel, {"n": 40})
    once = reference(kernel, {"n": 40}, inputs).values
    twice = reference(kernel, {"n": 40}, {**inputs, **once}).values
    if claimed:
        assert all(np.array_equal(once[name], twice[name]) for name in once)


def test_masked_stores_that_write_nothing_dirty_no_line() -> None:
    """L2 at 64 GB/s: the lines come in again, and none goes out."""
    given = machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
        "cache L2 1 MiB, 64 GB/s, line 64 B, written 8 GB/s, write_allocate",
        "memory DRAM 16 GiB, 4 GB/s",
    )
    kernel, n = kernel_of(f"{HEAD}{RELU}\n"), 4096
    options = Options(warm=True)
    found = predict(kernel, {"n": n}, given, options)
    moving = moving_of(found, kernel, {"n": n}, given, options)
    core = InCore("by hand", (Step("", "", 0.0, 0.0),), 0.0)
    stored = composed(found, core, given, moving=moving).expected
    masked = composed(found, replace(core, masked=True), given, moving=moving).expected
    assert stored is not None and stored.expected_s == Fraction(8 * n, 8 * 10**9)
    assert masked is not None and masked.expected_s == Fraction(8 * n, 64 * 10**9) < found.bound_s
    assert {c.cause: c.share_s for c in masked.causes}[CAUSE] == masked.expected_s - found.bound_s
    assert not moving_of(found, kernel, {"n": n}, given, Options()).unchanged  # a first launch changes elements
