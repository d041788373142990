"""Estimates: what is called exact is what `predict` finds, and everything else is an upper bound."""

from __future__ import annotations

from typing import Any

import pytest

from roofdsl.advise import evaluate
from roofdsl.advise.evaluate import Case, estimate_at_most, estimate_exactly, levels_cost
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import shipped, standard_sizes
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.prediction import Prediction
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


def test_levels_that_the_prediction_leaves_out_are_under_the_ceilings_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """L2 at a tenth of its bandwidth takes ten times as long."""
    given = machine(
        "peak f64 fma 100 TFLOP/s",
        "cache L1 1 KiB, 400 GB/s, line 64 B, write_allocate",
        "cache L2 4 KiB, 100 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 80 GB/s, line 64 B",
        'ceiling "slow" L2 10 GB/s',
    )
    own, sizes = kernel(load_file(shipped("polybench")["gemm"]), "gemm"), standard_sizes()["gemm"]["mini"]

    def without_l2(*of: Any) -> Prediction:
        found = predict(*of)
        return replace(found, levels=tuple(level for level in found.levels if level.name != "L2"))

    monkeypatch.setattr(evaluate, "predict", without_l2)
    free, slow = (Case(sizes, given, Options(ceilings=names)) for names in ((), ("slow",)))
    times = []
    for case in (free, slow):
        found = estimate_exactly(own, case)
        assert found.at_most == ("L2",)
        times += [level.time_s for level in found.prediction.levels if level.name == "L2"]
    assert times[1] == 10 * times[0]
    costs = levels_cost(own, free), levels_cost(own, slow)
    assert costs[0] is not None and costs[1] is not None and costs[1][1] - costs[0][1] == 9 * times[0]
