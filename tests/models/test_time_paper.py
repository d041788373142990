"""The Time-Based Roofline paper: every number it states that a model can produce has a test, and what was left is here.

Figures that are only cited (the frameworks' launches) are compared with the citation, never with a model.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, shipped
from roofdsl.predict.given_counts import predict_counts
from roofdsl.predict.measured_times import measured_times
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches, predict_program
from roofdsl.predict.threshold import Question, program_bounds
from tests.predict.machines import work

TESTS = Path(__file__).parents[1]
SEEDS: dict[str, Any] = json.loads((TESTS / "reference/seeds.json").read_text())
TIME = SEEDS["time_based_roofline_paper"]
V100 = load_machine("v100_time_paper")
LSTM = load_file(shipped("kernels")["lstm"])
CONVOLUTIONS = load_file(shipped("kernels")["conv2d_gemm"])

ELSEWHERE = {
    "machine": "predict/test_seeds.py",
    "conv2d_default": "predict/test_seeds.py",
    "conv2d_sweeps": "predict/test_seeds.py",
    "conv2d_stride_elements": "predict/test_seeds.py",
    "lstm_default": "models/test_traits.py",
    "lstm_launches_forward": "models/test_traits.py",
    "lstm_launches_forward_parts": "models/test_traits.py",
    "lstm_overhead_us": "predict/test_seeds.py",
    "lstm_break_even_GFLOP": "predict/test_seeds.py",
}
HERE = {"overhead", "overhead_ceiling", "times_of_a_measured_kernel", "traits"}


def test_every_number_of_the_paper_has_a_test() -> None:
    assert set(TIME) == set(ELSEWHERE) | HERE
    for key, file in ELSEWHERE.items():
        assert f'TIME["{key}"]' in (TESTS / file).read_text(), key


# ---- overhead ----


@pytest.mark.parametrize("launches", [1, 36])
def test_overhead_is_launches_times_launch_time(launches: int) -> None:
    """A kernel is bound by it where both other times are below; beyond, it is not."""
    assert V100.launch_s is not None
    overhead = launches * V100.launch_s
    balanced = int(overhead * V100.rate("f16", "fma").per_s) // 2  # pairs
    moved = int(overhead * V100.main_memory.bandwidth_bytes_per_s)
    for pairs, moving, bound in ((balanced // 2, moved // 2, "launch"), (balanced * 2, moved // 2, "compute"),
                                 (balanced // 2, moved * 2, "HBM")):  # fmt: skip
        p = predict_counts("k", {}, work("f16", pairs=pairs), moving, V100, launches=launches)
        assert (p.launch_s, p.bound) == (overhead, bound)


def test_the_ceiling_of_the_launches() -> None:
    """FLOP / (launches x overhead) is what a program bound by them reaches (figure 2(a))."""
    p = predict_program(LSTM, "lstm_forward", {}, V100)
    assert p.rate_per_s == Fraction(p.work) / (36 * Fraction(42, 10**7))


def test_the_printed_peaks_need_another_clock() -> None:
    """Erratum: 80 multiprocessors with 64 lanes of two operations at 1.312 GHz do 13.43 and 26.87 TFLOP/s."""
    assert V100.units is not None and V100.clock_hz is not None
    lanes = V100.units * 64 * 2 * V100.clock_hz
    assert [round(float(k * lanes) / 1e12, 2) for k in (1, 2)] == [13.43, 26.87]
    needed = [float(V100.rate(t, "fma").per_s / lanes * V100.clock_hz) / k / 1e9 for t, k in (("f32", 1), ("f16", 2))]
    assert [round(f, 2) for f in needed] == [1.48, 1.42]
    (erratum,) = (e for e in SEEDS["errata"] if e["printed"].startswith("15.16"))
    assert erratum["correct"] == "13.43 and 26.87 at that clock"


def test_the_printed_equations_give_the_models_times() -> None:
    """Erratum: with AI = W / Q both arguments of each minimum are equal, whatever the run time was."""
    peak, beta = float(V100.rate("f16", "tensor").per_s), float(V100.main_memory.bandwidth_bytes_per_s)
    p = predict_program(CONVOLUTIONS, "conv2d_half", {}, V100, Options(unit="tensor"))
    w, q, ai = p.work, p.memory.bytes, p.work / p.memory.bytes
    for run in (1e-4, 1e-2):
        found = measured_times(w, q, run, peak, beta)
        assert (w / peak, q / beta) == pytest.approx((q * ai / peak, w / ai / beta))
        assert (found.model_compute_s, found.model_bandwidth_s) == pytest.approx((w / peak, q / beta))
        assert max(found.compute_s, found.bandwidth_s) == pytest.approx(run)


# ---- traits ----


@pytest.mark.thorough
def test_the_convolutions_sweeps() -> None:
    """Intensity stays with the batch, grows with filters and kernel size, and falls with the stride."""
    sweeps, options = TIME["conv2d_sweeps"], Options(unit="tensor")

    def over(name: str, values: list[int]) -> list[float]:
        found = [predict_program(CONVOLUTIONS, "conv2d_half", {name: n}, V100, options) for n in values]
        assert {p.launches for p in found} == {1}
        return [float(p.intensity or 0) for p in found]

    batch, filters, kernel = over("batch", sweeps["batch"]), over("f", sweeps["C_out"]), over("r", sweeps["kernel"])
    stride = over("s", sweeps["stride"])
    assert max(batch) / min(batch) < 1.002
    for growing in (filters, kernel, stride[::-1]):
        assert growing == sorted(growing)
        assert len(set(growing)) == len(growing)


@pytest.mark.spread(2)
@pytest.mark.parametrize(("over", "largest"), [("batch", 128), ("sequence", 128), ("features", 128), ("hidden", 128)])
@pytest.mark.parametrize("name", ["lstm_forward", "lstm_backward", "lstm_forward_fused"])
def test_the_lstms_four_sweeps_are_bound_by_launches(name: str, over: str, largest: int) -> None:
    """Every launch, at every value of the sweep and between: the closed forms say so for all of them at once."""
    default = TIME["lstm_default"]
    _, parts = program_bounds(LSTM, name, {n: v for n, v in default.items() if n != over}, V100, Question(over))
    for part in parts:
        first = part.intervals[0]
        assert (first.first, first.names) == (1, ("launch",))
        assert first.last is None or first.last >= largest


def test_time_is_proportional_to_the_sequence_at_one_intensity() -> None:
    fused = [predict_launches(LSTM, "lstm_forward_fused", {"sequence": n}, V100).total for n in (16, 32, 64, 128)]
    assert [p.bound_s / fused[0].bound_s for p in fused] == [1, 2, 4, 8]
    assert len({p.intensity for p in fused}) == 1
    assert len({p.rate_per_s for p in fused}) == 1
