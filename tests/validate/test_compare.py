"""Ratios, verdicts and their causes, and the points that show them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from roofdsl.lang import record
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Traffic
from roofdsl.loops.program_at_sizes import ProgramOf
from roofdsl.machine.find import load_machine, machine_of, shipped_names
from roofdsl.machine.model import Machine
from roofdsl.measure.measurement import OTHERS, Launches, Measurement
from roofdsl.plot.roofline_points import overlay
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Accesses, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_at
from roofdsl.tell.as_text import to_text
from roofdsl.tell.validation import blocks, to_json
from roofdsl.validate.compare import Comparison, Limits, compare, distribution, on_doubtful_machine
from roofdsl.validate.run import How, Run, check_work, clock_here, compare_all, measure_run, measure_settled
from tests.measure.examples import EXAMPLE

MACHINE = load_machine("v100_deck")


def predicted(name: str, n: int, traffic: Traffic = "write_allocate") -> Prediction:
    return predict(kernel(load_file(shipped_names("kernels")[name]), name), {"n": n}, MACHINE, Options(traffic))


def measured(prediction: Prediction, ratio: float, **changes: object) -> Measurement:
    """A measurement at `ratio` of the predicted performance, with a spread of 10 % to both sides."""
    time_s = float(prediction.bound_s) / ratio
    times = tuple(time_s * k for k in (0.9, 0.95, 1.0, 1.05, 1.1))
    return replace(
        EXAMPLE,
        kernel=prediction.kernel,
        parameters=prediction.parameters,
        work=prediction.work,
        footprint_bytes=prediction.footprint_bytes,
        times_s=times,
        **changes,  # type: ignore[arg-type]
    )


def comparison(name: str, n: int, ratio: float, **changes: object) -> Comparison:
    p = predicted(name, n)
    return compare(p, measured(p, ratio, **changes), MACHINE)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.3, "slower than predicted"), (0.74, "slower than predicted"), (0.76, "as predicted"), (1.04, "as predicted"),
     (1.06, "above the roof"), (3, "above the roof")],
)  # fmt: skip
def test_verdicts(ratio: float, verdict: str) -> None:
    found = comparison("gemv", 4096, ratio)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(ratio)
    assert bool(found.causes) == (verdict == "above the roof")


def test_the_tolerance_never_hides_a_violation() -> None:
    p = predicted("gemv", 4096)
    assert compare(p, measured(p, 1.5), MACHINE, Limits(tolerance=0.99)).verdict == "above the roof"
    assert compare(p, measured(p, 0.02), MACHINE, Limits(tolerance=0.99)).verdict == "as predicted"


def test_caches_larger_than_stated_are_named_first() -> None:
    assert "stays in the caches (6 MiB" in comparison("vector_add", 200_000, 2).causes[0]
    assert not any("stays in the caches" in c for c in comparison("vector_add", 10_000_000, 2).causes)


def test_a_peak_that_is_passed_is_said_so() -> None:
    causes = comparison("matmul", 512, 1.3).causes
    assert any("higher clock" in c for c in causes)
    assert not any("caches" in c for c in causes)


def test_registers_are_named_where_the_first_cache_is_the_bound() -> None:
    text = (
        "machine near:\n    peak f64 fma 100 TFLOP/s\n    cache L1 32 KiB, 1 GB/s, line 64 B\n"
        "    memory RAM 1 GiB, 1 GB/s\n"
    )
    machine = machine_of(load_file(Source("<test>", text)), None)
    p = predict(kernel(load_file(shipped_names("kernels")["matmul"]), "matmul"), {"n": 40}, machine)
    assert p.bounds == ("L1",)
    assert any("in registers" in c for c in compare(p, measured(p, 2), machine).causes)
    assert not any("in registers" in c for c in comparison("gemv", 4096, 2).causes)


def test_compiled_code_is_compared_with_accesses_as_compiled() -> None:
    """C[i, j] stays in a register through the inner loop; a library does not run the loops of the kernel."""
    text = (
        "machine near:\n    peak f64 fma 100 TFLOP/s\n    cache L1 32 KiB, 1 GB/s, line 64 B\n"
        "    memory RAM 1 GiB, 1 GB/s\n"
    )
    machine = machine_of(load_file(Source("<test>", text)), None)
    gemv = kernel(load_file(shipped_names("kernels")["gemv"]), "gemv")
    p = predict(gemv, {"n": 40}, machine)

    def first_cache_bytes(accesses: Accesses | None = None, **changes: object) -> int:
        (found,) = compare_all([gemv], [measured(p, 1, **changes)], machine, accesses=accesses)
        return found.prediction.levels[0].bytes

    written, compiled = 32 * 40**2, 16 * 40**2 + 16 * 40
    assert first_cache_bytes(backend="cpu", variant="loops") == compiled
    assert first_cache_bytes("written", backend="cpu", variant="parallel") == written
    assert first_cache_bytes(backend="cpu", variant="library") == written
    assert first_cache_bytes("compiled", backend="cpu", variant="library") == compiled
    assert first_cache_bytes(backend="gpu", variant="naive") == written


def test_products_of_f32_in_the_mode_tf32_are_compared_with_the_rate_of_tf32() -> None:
    text = (
        "kernel product(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n"
        "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n\n"
        "machine plain:\n    peak f32 fma 10 TFLOP/s\n    memory RAM 1 GiB, 90 TB/s\n\n"
        "machine units:\n    peak f32 fma 10 TFLOP/s\n    peak tf32 tensor 80 TFLOP/s\n    memory RAM 1 GiB, 90 TB/s\n"
    )
    checked = load_file(Source("<test>", text))
    product, plain, units = kernel(checked, None), machine_of(checked, "plain"), machine_of(checked, "units")
    p = predict(product, {"n": 64}, plain)
    assert p.bound == "compute"

    def found(machine: Machine, mode: str, operation: str = "gemm") -> Comparison:
        ran = measured(p, 6, backend="gpu", variant="library", details={"math_mode": mode, "operation": operation})
        (one,) = compare_all([product], [ran], machine)
        check_work([product], [one])
        return one

    fast = found(units, "tf32")
    assert (fast.prediction.type, fast.verdict) == ("tf32", "as predicted") and fast.ratio == pytest.approx(6 / 8)
    for other in (found(units, "default"), found(units, "tf32", "gemv"), found(plain, "tf32")):
        assert (other.prediction.type, other.verdict) == ("f32", "above the roof")


def test_launches_that_a_library_ran_on_matrix_units_are_compared_with_their_rates() -> None:
    """The other launches of the program are not: `sums` ran as `naive`, and its products would have a unit."""
    product = "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n\n"
    text = (
        f"kernel product(n):\n    in A, B: f16[n, n]\n    inout C: f16[n, n]\n{product}"
        f"kernel sums(n):\n    in A, B: f16[n, n]\n    inout C: f16[n, n]\n{product}"
        f"kernel single(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n{product}"
        "program all(n):\n    run product(n)\n    run sums(n)\n    run single(n)\n\n"
        "machine units:\n    peak f16 fma 10 TFLOP/s\n    peak f32 fma 5 TFLOP/s\n"
        "    peak f16 tensor 80 TFLOP/s\n    peak tf32 tensor 40 TFLOP/s\n    memory RAM 1 GiB, 90 TB/s\n"
    )
    checked = load_file(Source("<test>", text))
    machine, whole = machine_of(checked, "units"), ProgramOf(checked, "all")
    p = predict_at(whole.at({"n": 64}), machine)
    library = {"variant": "library", "details": {"math_mode": "tf32", "operation": "gemm"}}
    runs: list[dict[str, object]] = [library, {"variant": "naive"}, library]
    of = [measured(part, 1, backend="gpu", **run) for part, run in zip(p.parts, runs, strict=True)]
    launches = tuple(Launches(1, one) for one in of)
    ran = replace(measured(p.total, 1, backend="gpu", variant="library"), by_launch=launches)
    (found,) = compare_all([whole], [ran], machine)
    predictions = [part.prediction for part in found.by_launch]
    assert [(one.type, one.unit) for one in predictions] == [("f16", "tensor"), ("f16", None), ("tf32", "tensor")]
    work = 2 * 64**3
    assert [float(one.bound_s) for one in predictions] == pytest.approx([work / 80e12, work / 10e12, work / 40e12])
    assert found.bound_s == pytest.approx(work / 80e12 + work / 10e12 + work / 40e12)


def test_lines_stored_beside_those_loaded_are_named() -> None:
    assert any("`duplex`" in c for c in comparison("daxpy", 10_000_000, 2).causes)
    assert not any("`duplex`" in c for c in comparison("matmul", 512, 1.3).causes)


def test_more_threads_than_cores_are_said_so() -> None:
    machine = load_machine("v100")
    p = predicted("gemv", 4096)
    causes = compare(p, measured(p, 2, threads=200), machine).causes
    assert any("200 threads" in c and "80 cores" in c for c in causes)
    one = compare(p, measured(p, 2, threads=2), record.replace(machine, units=1)).causes
    assert any(c.endswith("has 1 core") for c in one)


def test_data_that_were_not_counted_are_not_said_to_stay_in_the_caches() -> None:
    """The cause said `part of its 0 B of data`."""
    p = record.replace(predicted("gemv", 4096), footprint_bytes=None)
    assert not any("0 B of data" in c for c in compare(p, measured(p, 2), MACHINE).causes)


def test_another_size_is_no_comparison() -> None:
    p = predicted("gemv", 4096)
    other = replace(measured(p, 1), parameters=(("n", 100),))
    with pytest.raises(CommandError, match=r"n = 4096.*n = 100"):
        compare(p, other, MACHINE)


def test_the_points_lie_one_above_the_other() -> None:
    model, real = overlay(comparison("gemv", 4096, 0.5))
    assert real.intensity == model.intensity
    assert real.rate_per_s == pytest.approx(model.rate_per_s / 2)
    assert real.error is not None
    assert real.error[0] < real.rate_per_s < real.error[1]
    assert (model.origin, real.origin, real.beside) == ("predicted", "measured", "50 %")


@pytest.mark.thorough
def test_without_work_bandwidths_are_compared() -> None:
    model, real = overlay(comparison("transpose", 4096, 0.5))
    assert model.intensity is None
    assert real.bytes_per_s == pytest.approx(model.bytes_per_s / 2)


def test_distribution_is_that_of_numpy() -> None:
    ratios = list(np.random.default_rng(5).uniform(0.1, 2, 37))
    found = distribution(ratios)
    quartiles = np.quantile(ratios, [0, 0.25, 0.5, 0.75, 1])
    got = (found.least, found.quarter, found.median, found.three_quarters, found.greatest)
    assert np.allclose(got, quartiles)
    assert found.count == 37
    with pytest.raises(ValueError, match="no runs"):
        distribution([])


# ---- on a machine that does something else meanwhile ----


def noisy(prediction: Prediction, ratio: float, fastest: float) -> Measurement:
    """The median at `ratio` of the predicted performance, a fifth of the samples at `fastest`."""
    median_s, fastest_s = (float(prediction.bound_s) / r for r in (ratio, fastest))
    return replace(measured(prediction, ratio), times_s=(fastest_s,) * 2 + (median_s,) * 8)


@pytest.mark.parametrize(
    ("ratio", "others", "verdict"),
    [(0.5, 0.9, "inconclusive"), (0.05, 0.9, "slower than predicted"), (0.5, 0.1, "slower than predicted"),
     (0.9, 0.9, "as predicted"),
     (2.0, 0.9, "above the roof")],  # others never make it faster
)  # fmt: skip
def test_what_others_slow_down_is_inconclusive(ratio: float, others: float, verdict: str) -> None:
    found = comparison("gemv", 4096, ratio, details={OTHERS: others})
    assert found.verdict == verdict
    assert ("other programs took 0.9 of" in found.disturbed) == (verdict == "inconclusive")
    text = "\n".join(to_text(blocks([found])))
    assert ("gemv n=4096: inconclusive: other programs took 0.9 of" in text) == (verdict == "inconclusive")
    assert to_json([found])["comparisons"][0]["disturbed"] == (found.disturbed or None)


@pytest.mark.parametrize(("fastest", "verdict"), [(1.0, "inconclusive"), (0.6, "slower than predicted")])
def test_samples_that_disagree_are_inconclusive(fastest: float, verdict: str) -> None:
    p = predicted("gemv", 4096)
    found = compare(p, noisy(p, 0.4, fastest), MACHINE)
    assert found.verdict == verdict


def test_a_roof_measured_under_load_is_not_contradicted() -> None:
    above, slow = comparison("gemv", 4096, 2.0), comparison("gemv", 4096, 0.5)
    found = on_doubtful_machine(above, "other programs took 0.9 of 2 cores")
    assert (found.verdict, found.causes) == ("inconclusive", ())
    assert found.disturbed == "when the machine was measured, other programs took 0.9 of 2 cores"
    assert on_doubtful_machine(slow, "busy") == slow


class Machinery:
    """Runs whose times are made up: for each time that one is made, (seconds, cores taken by others)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **times: list[tuple[float, float]]) -> None:
        self.times, self.made, self.waits = times, [], 0
        monkeypatch.setattr("roofdsl.validate.run.measure_run", self.measure)

    def measure(self, run: Run, how: How, say: object) -> Measurement:
        name = run.kernel.name
        seconds, others = self.times[name][self.made.count(name)]
        self.made.append(name)
        return replace(EXAMPLE, kernel=name, times_s=(seconds,), details={OTHERS: others})

    def wait(self) -> None:
        self.waits += 1

    def clock(self) -> float:
        return 10.0 * len(self.made)

    def settled(self, *names: str, most_s: float = 100.0) -> list[float]:
        runs = [Run(kernel(load_file(shipped_names("kernels")[n]), n), {}, "loops") for n in names]
        found = measure_settled(
            runs, How(), lambda m: m.details[OTHERS] > 0.25, None, self.wait, most_s=most_s, clock=self.clock
        )
        return [m.median_s for m in found]


def test_what_is_inconclusive_is_measured_again_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Machinery(monkeypatch, gemv=[(3.0, 0.9), (1.0, 0.0)], matmul=[(2.0, 0.0)])
    assert runs.settled("gemv", "matmul") == [1.0, 2.0]
    assert (runs.made, runs.waits) == (["gemv", "matmul", "gemv"], 1)


def test_it_ends_on_a_machine_that_is_never_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Machinery(monkeypatch, gemv=[(3.0, 0.9), (2.0, 0.9), (5.0, 0.9)])
    assert runs.settled("gemv") == [2.0]  # still inconclusive: the fastest of them
    assert (runs.made, runs.waits) == (["gemv"] * 3, 2)
    hurried = Machinery(monkeypatch, gemv=[(3.0, 0.9), (2.0, 0.9), (5.0, 0.9)])
    assert hurried.settled("gemv", most_s=15.0) == [2.0] and len(hurried.made) == 2


def test_only_a_machine_of_this_processor_states_the_clock_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.validate.run.processor_name", lambda: "EPYC 1234")
    known = record.replace(MACHINE, clock_hz=Fraction(3_000_000_000))
    here, there = (record.replace(known, processor=f"EPYC {n}") for n in (1234, 5678))
    assert clock_here([here, there]) == clock_here([here]) == 3e9
    assert clock_here([there]) is None and clock_here([record.replace(here, clock_hz=None)]) is None


def test_a_run_tells_what_others_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.validate.run._measured", lambda run, how, say: EXAMPLE)

    class Half:
        def cores(self) -> float:
            return 0.5

    run = Run(kernel(load_file(shipped_names("kernels")["gemv"]), "gemv"), {"n": 8}, "loops")
    assert measure_run(run, How(), print, Half).details[OTHERS] == 0.5  # type: ignore[arg-type]
