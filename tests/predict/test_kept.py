"""A last cache of which code keeps a part: the bound has all of it, the expected time loads the rest again."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.incore.result import InCore, Step
from roofdsl.machine.kept import found_again
from roofdsl.machine.model import Machine
from roofdsl.predict.expected import Expected
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.predict.machines import kernel_of, machine, moving_of

KIB = 1 << 10
UPDATED = kernel_of(
    "kernel updated(n):\n    in x: f64[n]\n    inout y: f64[n]\n    for i in range(n):\n        y[i] += x[i]\n"
)
TWICE = kernel_of(
    "kernel twice(n):\n    in x: f64[n]\n    inout y: f64[n]\n    for r in range(2), i in range(n):\n"
    "        y[i] += x[i]\n"
)
NOTHING = InCore("by hand", (Step("", "", 0.0, 0.0),), 0.0)


def made(holds: str = ", holds 32 KiB") -> Machine:
    return machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
        f"cache L2 128 KiB, 640 GB/s, line 64 B, write_allocate{holds}",
        "memory DRAM 16 GiB, 16 GB/s",
    )


def expected(given: Machine, kernel: object, n: int, *, warm: bool) -> tuple[Expected, Fraction]:
    options = Options(warm=warm)
    found = predict(kernel, {"n": n}, given, options)  # type: ignore[arg-type]
    moving = moving_of(found, kernel, {"n": n}, given, options)  # type: ignore[arg-type]
    found = composed(found, NOTHING, given, moving=moving)
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected, found.bound_s


def test_data_that_outgrow_what_is_kept_come_from_memory_in_part() -> None:
    """64 KiB of x and y: of a pass over them 20 % are found again, the rest is loaded, and y is stored."""
    n = 4 * KIB
    found, bound = expected(made(), UPDATED, n, warm=True)
    lost = 1 - found_again(64 * KIB, 32 * KIB)
    assert bound == Fraction(3 * 8 * n, 640 * 10**9)  # all from L2: two arrays loaded, one stored
    assert float(found.expected_s) == pytest.approx(lost * 3 * 8 * n / 16e9, rel=1e-3)
    assert found.causes[0].cause == "other users leave 32 KiB of L2"


def test_data_that_are_kept_cost_nothing_more() -> None:
    n = 2 * KIB
    assert expected(made(), UPDATED, n, warm=True) == expected(made(""), UPDATED, n, warm=True)


def test_a_pass_of_the_same_launch_finds_as_much() -> None:
    """A cold launch loads everything once in any case; its second pass loads the share that is lost."""
    n = 4 * KIB
    found, bound = expected(made(), TWICE, n, warm=False)
    once = 3 * 8 * n
    assert bound == Fraction(once, 16 * 10**9)
    lost = 1 - found_again(64 * KIB, 32 * KIB)
    assert float(found.expected_s) == pytest.approx((1 + lost) * once / 16e9, rel=1e-3)
