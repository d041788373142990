"""Estimates: what is called exact is what `predict` finds, and everything else is an upper bound."""

from __future__ import annotations

import pytest

from roofdsl.advise.evaluate import Case, estimate_at_most, estimate_exactly
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import shipped, standard_sizes
from roofdsl.predict.kernel import Options, predict
from tests.predict.machines import machine


@pytest.mark.parametrize("name", ["gemm", "lu", "jacobi_2d"])
def test_levels_that_take_turns_are_an_upper_bound_if_the_bytes_of_one_are(name: str) -> None:
    """DRAM and L2 add up, and their sum is the longest term; it rests on upper bounds of the bytes of both."""
    given = machine(
        "peak f64 fma 100 TFLOP/s",
        "cache L1 1 KiB, 400 GB/s, line 64 B, write_allocate",
        "cache L2 4 KiB, 100 GB/s, beside 100 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 80 GB/s, line 64 B",
        "launch 1 ns",
    )
    own, sizes = kernel(load_file(shipped("polybench")[name]), name), standard_sizes()[name]["mini"]
    case = Case(sizes, given, Options())
    time_s = predict(own, sizes, given).bound_s
    quick = estimate_at_most(own, case)
    assert quick is not None
    assert quick.prediction.in_turn_term[0] == "DRAM + L2" and quick.time_s == quick.prediction.in_turn_term[1]
    assert quick.time_s > time_s and not quick.exact
    assert quick.sure[0] == "L1" and quick.sure[1] <= time_s
    exact = estimate_exactly(own, case)
    assert exact.exact and exact.time_s == time_s
