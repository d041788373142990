"""Estimates: what is called exact is what `predict` finds, and everything else is an upper bound."""

from __future__ import annotations

from typing import Any

import pytest

from roofdsl.advise import evaluate
from roofdsl.advise.evaluate import Case, estimate_at_most, estimate_exactly, levels_cost
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped, shipped_models, standard_sizes
from roofdsl.predict.kernel import predict
from roofdsl.predict.level_traffic import Hierarchy
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from tests.predict.machines import kernel_of, machine


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


@pytest.mark.parametrize("name", ["bicg", "atax", "winograd_images", "conv2d_padded"])
def test_on_a_gpu_each_launch_has_its_own_accesses(name: str) -> None:
    """Also where a kernel is several launches; the other levels move no more than counted."""
    own, given = pick(name), load_machine("a100_80")
    sizes = {p.name: n for p, n in zip(own.parameters, (6, 10, 12, 8, 4), strict=False)}
    quick = estimate_at_most(own, Case(sizes, given, Options(traffic="load_store")))
    exact = predict(own, sizes, given, Options(traffic="load_store"))
    assert quick is not None
    most = {level.name: level.bytes for level in quick.prediction.levels}
    assert {level.name: level.bytes for level in exact.levels if level.name == "L1"} == {"L1": most["L1"]}
    assert all(level.bytes <= most[level.name] for level in exact.levels)
    assert quick.time_s >= exact.bound_s


def test_on_a_gpu_a_store_that_loads_its_sector_counts_both_in_an_upper_bound() -> None:
    """The threads load nothing; L1 loads each sector that they store to, as often as it stores it."""
    own = kernel_of("kernel k(n):\n    out A: f64[n]\n    for i in range(n):\n        A[i] = 1\n")
    case = Case({"n": 4096}, load_machine("v100"), Options(traffic="write_allocate"))
    exact, quick = predict(own, case.values, case.machine, case.options), estimate_at_most(own, case)
    assert quick is not None
    found = {level.name: (level.loads_bytes, level.stores_bytes) for level in quick.prediction.levels}
    assert found["L1"] == (0, 32768)
    assert found["L2"] == found["HBM"] == (32768, 32768)
    assert {level.name: (level.loads_bytes, level.stores_bytes) for level in exact.levels} == found


def pick(name: str) -> Kernel:
    return kernel(load_file(shipped_models()[name].path), name)


def test_more_bytes_from_behind_never_make_an_upper_bound_shorter() -> None:
    """The hits of L1 are faster beside lines from the memory. If these are only known at most, that must not count."""
    given = machine(
        "peak f64 fma 100 TFLOP/s",
        "cache L1 8 KiB, 400 GB/s, beside 20 GB/s, beside_far 400 GB/s, line 64 B, write_allocate",
        "cache L2 16 KiB, 100 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 80 GB/s, line 64 B",
    )
    for name in ("gemm", "mm2", "syrk", "jacobi_2d"):
        own, sizes = kernel(load_file(shipped("polybench")[name]), name), standard_sizes()[name]["mini"]
        quick = estimate_at_most(own, Case(sizes, given, Options()))
        assert quick is not None and quick.time_s >= predict(own, sizes, given).bound_s


def test_there_is_no_upper_bound_if_the_accesses_themselves_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prediction without L1 is no bound on the time with it."""
    monkeypatch.setattr(evaluate, "nearer_levels", lambda *of, **options: Hierarchy(()))
    assert estimate_at_most(pick("gemv"), Case({"n": 64}, load_machine("a100_80"), Options())) is None


@pytest.mark.parametrize("name", ["zen2_epyc_7452", "v100"])
def test_stores_past_the_caches_count_each_time_in_an_upper_bound_too(name: str) -> None:
    """What fits in the caches is stored to the memory 50 times; on a GPU such stores are made as usual."""
    own = kernel_of(
        "kernel k(n, t):\n    in b: f64[n]\n    out a: f64[n]\n"
        "    for s in range(t), i in range(n):\n        stream a[i] = 2 * b[i]\n"
    )
    given, sizes = load_machine(name), {"n": 1000, "t": 50}
    exact, quick = predict(own, sizes, given), estimate_at_most(own, Case(sizes, given, Options()))
    assert quick is not None and quick.time_s >= exact.bound_s
    for level, most in zip(exact.levels, quick.prediction.levels, strict=True):
        assert level.name == most.name and level.bytes <= most.bytes
