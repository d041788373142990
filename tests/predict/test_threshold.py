"""From which size on what bounds a kernel or program: against predictions on both sides, and published sizes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped, shipped_names
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_launches
from roofdsl.predict.threshold import Bounds, Question, kernel_bounds, program_bounds
from tests.predict.machines import kernel_of, machine
from tests.predict.test_levels_in_turn import three

SEEDS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "reference/seeds.json").read_text())
V100 = load_machine("v100_time_paper")


def bounds(name: str, m: Machine, over: str, options: Options = DEFAULTS, **sizes: int) -> Bounds:
    found = kernel(load_file(shipped_names("kernels")[name]), name, sizes)
    return kernel_bounds(found, sizes, m, Question(over, options))


def largest_term(p: Prediction) -> str:
    return max(p.terms, key=lambda term: term[1])[0]


def test_the_guides_product_is_compute_bound_from() -> None:
    found = bounds("matmul_bf16", load_machine("h100_guide"), "n", Options(unit="tensor_sparse"))
    assert [i.names for i in found.intervals] == [("HBM",), ("compute",)]
    assert found.intervals[1].first == SEEDS["interactive_guide"]["matmul"]["compute_bound_from_N"]
    assert found.searched_to is None


def test_the_decks_product_is_compute_bound_from() -> None:
    """75 n GFLOP/s reach 7000 between n = 93 and 94."""
    found = bounds("matmul", load_machine("v100_textbook"), "n")
    assert found.first_without("HBM") == 94


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "over"), [
    ("lstm_forward", "batch"), ("lstm_forward", "sequence"), ("lstm_forward", "features"), ("lstm_backward", "hidden"),
])  # fmt: skip
def test_programs_by_prediction_on_both_sides(name: str, over: str) -> None:
    checked = load_file(shipped("kernels")["lstm"])
    whole, parts = program_bounds(checked, name, {}, V100, Question(over))
    assert whole.searched_to is None
    ends = sorted({n for b in (whole, *parts) for i in b.intervals for n in (i.first, i.last) if n is not None})
    for n in ends[-6:]:
        found = predict_launches(checked, name, {over: n}, V100)
        at = [next(i for i in b.intervals if i.first <= n and (i.last is None or n <= i.last)) for b in (whole, *parts)]
        assert at[0].names == (largest_term(found.total),)
        if len(found.parts) == len(parts):  # at some sizes two launches are one and the same
            assert [i.names for i in at[1:]] == [(largest_term(p),) for p in found.parts]


def test_the_batch_at_which_launches_stop_being_overhead() -> None:
    """At the paper's sizes none is; one launch leaves at 1,134, their sum at 4,616, the last at 10,866."""
    checked = load_file(shipped("kernels")["lstm"])
    whole, parts = program_bounds(checked, "lstm_forward", {}, V100, Question("batch"))
    default = SEEDS["time_based_roofline_paper"]["lstm_default"]["batch"]
    firsts = [b.first_without("launch") for b in parts]
    assert all(first is not None and first > 128 >= default for first in firsts)
    moved = 27136 * 4616 + 73728  # of the sum: HBM takes as long as 36 launches
    assert whole.first_without("launch") == 4616
    assert V100.launch_s is not None
    beta = V100.main_memory.bandwidth_bytes_per_s
    assert moved / beta >= 36 * V100.launch_s > (moved - 27136) / beta
    assert min(f for f in firsts if f) == 1134
    assert max(f for f in firsts if f) == 10866


def test_one_launch_at_the_tensor_peak_has_to_do_the_papers_work() -> None:
    giga = SEEDS["time_based_roofline_paper"]["lstm_break_even_GFLOP"]["one_launch"]
    found = kernel(load_file(shipped_names("kernels")["lstm_input_product"]), "lstm_input_product")
    question = Question("rows", Options(unit="tensor"), ("launch", "compute"))
    found_bounds = kernel_bounds(found, {"features": 32, "columns": 64}, V100, question)
    first = found_bounds.first_without("launch")
    assert first is not None
    work = predict(found, {"rows": first, "features": 32, "columns": 64}, V100).work
    assert work / 1e9 == pytest.approx(giga, rel=2e-4)


def test_only_the_terms_asked_for() -> None:
    checked = load_file(shipped("kernels")["lstm"])
    whole, _ = program_bounds(checked, "lstm_forward", {}, V100, Question("batch", terms=("launch", "compute")))
    (low, high) = whole.intervals
    assert (low.names, high.names) == (("launch",), ("compute",))
    for n, launched in ((low.last, True), (high.first, False)):
        total = predict_launches(checked, "lstm_forward", {"batch": n or 0}, V100).total
        assert (total.launch_s > total.compute_s) == launched
    with pytest.raises(CommandError, match="no term is named L2") as error:
        program_bounds(checked, "lstm_forward", {}, V100, Question("batch", terms=("launch", "L2")))
    assert error.value.help == "on v100_time_paper the terms are compute, HBM, launch"


def test_a_search_finds_what_the_closed_forms_say() -> None:
    """A cache that holds everything has the compulsory traffic of a machine without."""
    lines = ("peak f64 fma 100 GFLOP/s", "launch 2 us")
    plain, cached = machine(*lines), machine(*lines, "cache L 1 GiB, 100 TB/s")
    for name, over, sizes in (("gemv", "n", {}), ("matmul", "n", {}), ("matmul_blocked", "n", {"b": 8})):
        exact = bounds(name, plain, over, **sizes)
        found = kernel(load_file(shipped_names("kernels")[name]), name, {})
        searched = kernel_bounds(found, sizes, cached, Question(over, Options(levels="memory"), search_to=512))
        assert (exact.searched_to, searched.searched_to) == (None, 512)
        below = [i for i in exact.intervals if i.first <= 512]
        assert [(i.first, i.names) for i in searched.intervals] == [(i.first, i.names) for i in below]
        assert "behind the caches" in searched.why


def test_sizes_that_break_an_assumption_do_not_count() -> None:
    found = bounds("matmul_blocked", load_machine("v100_textbook"), "n", b=8)
    assert [(i.first, i.last, i.names) for i in found.intervals] == [(8, 88, ("HBM",)), (96, None, ("compute",))]


@pytest.mark.parametrize(("assumption", "launch_ns"), [("n % 40 <= 4", 740), ("n % 64 == 0", 8000)])
def test_a_search_finds_the_first_of_the_allowed_values(assumption: str, launch_ns: int) -> None:
    """DRAM takes longer than the launch from n = 44 and n = 142 on; 44 is in the middle of allowed values, and 192 is
    the last one up to 200.
    """
    cached = machine(
        "peak f64 fma 100 TFLOP/s", f"launch {launch_ns} ns", "cache L 1 MiB, 1 TB/s", "memory DRAM 16 GiB, 20 GB/s"
    )
    own = kernel_of(
        f"kernel k(n):\n    assume {assumption}\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
        "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n"
    )
    found = kernel_bounds(own, {}, cached, Question("n", search_to=200))
    allowed = [n for n in range(1, 201) if all(c.holds({"n": n}) for c in own.assumptions)]
    for n in allowed:
        (interval,) = (i for i in found.intervals if i.first <= n <= (i.last or 0))
        assert interval.names == (largest_term(predict(own, {"n": n}, cached)),)
    assert found.searched_to == allowed[-1] and len(found.intervals) == 2


def test_levels_in_turn_bound_a_program_as_they_bound_its_prediction() -> None:
    """One launch has DRAM and L2 in turn, the others L1 alone: the sum has all three, at each size."""
    text = (
        "kernel far(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
        "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n\n"
        "kernel near(n):\n    in x: f64[n]\n    inout s: f64\n"
        "    for t in range(40), i in range(n):\n        s += x[i]\n\n"
        "program p(n):\n    run far(n)\n    repeat 4:\n        run near(80)\n"
    )
    checked, given = load_file(Source("p.roof", text)), three(", beside 100 GB/s", more="launch 1 ns")
    found, _ = program_bounds(checked, "p", {}, given, Question("n", search_to=300))
    for n in (1, 20, 60, 100, 255, 300):
        (interval,) = (i for i in found.intervals if i.first <= n <= (i.last or 0))
        assert interval.names == (largest_term(predict_launches(checked, "p", {"n": n}, given).total),)
    assert {i.names for i in found.intervals} == {("DRAM + L1",), ("DRAM + L2 + L1",)}


@pytest.mark.thorough
def test_floors_of_a_convolution() -> None:
    checked = load_file(shipped("kernels")["conv2d_gemm"])
    whole, _ = program_bounds(checked, "conv2d_housekept", {"batch": 1}, V100, Question("h", Options(unit="tensor")))
    for n in (3, 4, 8, 21, 22, *(i.first for i in whole.intervals), *(i.last for i in whole.intervals if i.last)):
        found = predict_launches(checked, "conv2d_housekept", {"batch": 1, "h": n}, V100, Options(unit="tensor"))
        (interval,) = (i for i in whole.intervals if i.first <= n and (i.last is None or n <= i.last))
        assert largest_term(found.total) in interval.names


NONE_ALLOWED = """
kernel none(n, m = 3):
    assume n < m, n > 5
    out y: f64[n]
    for i in range(n):
        y[i] = 1
"""


def test_what_cannot_be_asked() -> None:
    for over, message in (("s", "`s` is a `const` parameter"), ("q", "has no parameter `q`")):
        with pytest.raises(CommandError, match=message):
            bounds("conv2d", V100, over)
    with pytest.raises(CommandError, match="needs a number for features"):
        bounds("lstm_recurrent_product".replace("recurrent", "input"), V100, "rows", columns=3)
    with pytest.raises(CommandError, match="no value of n was found"):
        kernel_bounds(kernel_of(NONE_ALLOWED), {}, machine("peak f64 1 GFLOP/s"), Question("n"))
    gives = "program p(n):\n    run every(8, n)\n"
    strided = "kernel every(n, const s):\n    out y: f64[n * s]\n    for i in range(n):\n        y[s * i] = 1\n"
    with pytest.raises(CommandError, match="`n` for the `const` parameter `s` of every"):
        program_bounds(load_file(Source("p.roof", strided + gives)), "p", {}, V100, Question("n"))
    for argument in ("n % 2 + 1", "min(n, 64)", "n // 10000 + 1"):
        part = load_file(Source("p.roof", strided + f"program p(n):\n    run every(8, {argument})\n"))
        with pytest.raises(CommandError, match="`n` for the `const` parameter `s` of every"):
            program_bounds(part, "p", {}, V100, Question("n"))


def test_launches_are_no_term_where_they_take_no_time() -> None:
    m = machine("peak f64 fma 1 TFLOP/s")
    assert {n for i in bounds("gemv", m, "n").intervals for n in i.names} == {"HBM"}
    assert m.launch_s is None
    assert Fraction(0) == predict(kernel_of(NONE_ALLOWED.replace(", n > 5", "")), {"n": 1}, m).launch_s
