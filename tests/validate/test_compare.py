"""Ratios, verdicts and their causes, and the points that show them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine, machine_of, shipped_names
from roofdsl.measure.results import Measurement
from roofdsl.plot.content import overlay
from roofdsl.predict.kernel import Accesses, Options, predict
from roofdsl.predict.time import Prediction
from roofdsl.validate.compare import Comparison, Limits, compare, distribution
from roofdsl.validate.run import compare_all
from tests.measure.examples import EXAMPLE

MACHINE = load_machine("v100_deck")


def predicted(name: str, n: int, traffic: Traffic = "write_allocate") -> Prediction:
    return predict(kernel(load_file(shipped_names("kernels")[name]), name), {"n": n}, MACHINE, Options(traffic))


def measured(prediction: Prediction, ratio: float, **changes: object) -> Measurement:
    """A measurement at `ratio` of the predicted performance, with a spread of 10 % to both sides."""
    time_s = float(prediction.expected_s) / ratio
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
    assert "stay in part in the caches, 6 MiB" in comparison("vector_add", 200_000, 2).causes[0]
    assert not any("stay in part" in c for c in comparison("vector_add", 10_000_000, 2).causes)


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


def test_lines_stored_beside_those_loaded_are_named() -> None:
    assert any("`duplex`" in c for c in comparison("daxpy", 10_000_000, 2).causes)
    assert not any("`duplex`" in c for c in comparison("matmul", 512, 1.3).causes)


def test_more_threads_than_cores_are_said_so() -> None:
    machine = load_machine("v100")
    p = predicted("gemv", 4096)
    causes = compare(p, measured(p, 2, threads=200), machine).causes
    assert any("200 threads" in c and "80 cores" in c for c in causes)


def test_another_size_is_no_comparison() -> None:
    p = predicted("gemv", 4096)
    other = replace(measured(p, 1), parameters=(("n", 100),))
    with pytest.raises(CommandError, match=r"n = 4096.*n = 100"):
        compare(p, other, MACHINE)


def test_the_points_lie_one_above_the_other() -> None:
    model, real = overlay(comparison("gemv", 4096, 0.5))
    assert real.intensity == model.intensity
    assert real.flops_per_s == pytest.approx(model.flops_per_s / 2)
    assert real.error is not None
    assert real.error[0] < real.flops_per_s < real.error[1]
    assert (model.kind, real.kind, real.beside) == ("predicted", "measured", "50 %")


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
