"""The arrays that kernels are timed on: where they begin, and how long they keep numbers that take ordinary times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from roofdsl.codegen.storage import STORAGE
from roofdsl.lang.types import TYPES
from roofdsl.loops.array_placement import places
from roofdsl.measure.timed_arrays import Restorer, aligned
from roofdsl.measure.timing import Plan, time_calls
from tests.predict.machines import kernel_of

HALVES = kernel_of(
    "kernel halves(n):\n    in x: f64[n]\n    inout y: f64[n]\n"
    "    for i in range(n):\n        y[i] = 0.5 * y[i] + 0 * x[i]\n"
)


def test_arrays_begin_where_the_model_assumes() -> None:
    arrays = {a.name: np.zeros(100) for a in HALVES.arrays}
    begun = {name: array.ctypes.data % 4096 for name, array in aligned(arrays).items()}
    assert begun == {name: at % 4096 for name, at in places(HALVES, {"n": 100}).items()} == {"x": 0, "y": 320}
    assert all(np.dtype(STORAGE[name]).itemsize == TYPES[name].bytes for name in STORAGE)


@pytest.mark.parametrize(
    ("step", "most"),
    [
        (lambda y: np.multiply(y, 0.5, out=y), 512),  # 2 ** -1024 is denormal, 2 ** -2048 zero, and 2 ** -512 neither
        (lambda y: np.multiply(y, 2.0, out=y), 512),  # 2 ** 1024 is infinite
        (lambda y: np.maximum(y, 0.0, out=y), 4096),  # zeros from the first call on
    ],
)
def test_calls_last_as_long_as_numbers_are_ordinary(step: Callable[[np.ndarray], object], most: int) -> None:
    arrays = {"x": np.ones(3), "y": np.array([1.0, 0.0, -1.0])}
    restore = Restorer((HALVES, arrays))
    with np.errstate(all="ignore"):
        assert restore.lasting(lambda: step(arrays["y"]), 4096) == most
    assert arrays["y"].tolist() == [1.0, 0.0, -1.0]


def test_denormal_numbers_at_first_do_not_count() -> None:
    arrays = {"x": np.ones(1), "y": np.array([5e-324, np.inf, 1.0])}
    assert Restorer((HALVES, arrays)).lasting(lambda: None, 64) == 64


def test_a_sample_makes_no_more_calls_than_last() -> None:
    now = iter(range(10**9))
    found = time_calls([lambda: None], Plan(5, 1e9, 1e6, 0.0), clock=lambda: next(now) / 1.0, lasting=lambda calls: 7)
    assert found.calls == 7
