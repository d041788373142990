"""Kernels of the processor's back end: verified in every variant, timed, recorded; wrong ones never timed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.measure import cpu
from roofdsl.measure.cpu import CpuOptions, build, measure_cpu
from roofdsl.measure.measurement import load, save
from roofdsl.measure.runner import Runner
from roofdsl.measure.timed_arrays import Restorer, aligned
from roofdsl.measure.timing import Plan
from roofdsl.measure.verify import WrongResult, smaller, verify

MODELS = Path(__file__).parents[2] / "models" / "kernels"
BRIEF = Plan(repeats=3, budget_s=0.2, sample_s=1e-4, warm_s=0)


def shipped(name: str) -> Kernel:
    file, _, own = name.partition(":")
    return kernel(load_file(MODELS / f"{file}.roof"), own or file)


CASES = [
    ("gemv", {"n": 33}, "loops", "numba"),
    ("gemv", {"n": 33}, "parallel", "numba"),
    ("minplus_blocked", {"n": 13, "b": 5}, "loops", "numba"),
    ("dot", {"n": 1000}, "loops", "numba"),
    ("daxpy:zaxpy", {"n": 65}, "loops", "cc"),
    ("stencils:jacobi2d", {"n": 21}, "parallel", "cc"),
    ("floyd_warshall", {"n": 11}, "loops", "cc"),
]


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "sizes", "variant", "compiler"), CASES)
def test_variants_are_verified(name: str, sizes: dict[str, int], variant: str, compiler: str) -> None:
    if compiler == "cc" and not any(map(shutil.which, ("gcc", "clang", "cc"))):
        pytest.skip("there is no C compiler")
    found = shipped(name)
    runner = build(found, CpuOptions(variant, compiler))
    verified = verify(found, runner.run, sizes, variant)
    assert verified.of_allowed <= 1 and verified.unverified == 0
    assert runner.threads >= 1 and ("numba" in runner.compiler) == (compiler == "numba")


def test_a_measurement_is_complete(tmp_path: Path) -> None:
    found = measure_cpu(shipped("stream:triad"), {"n": 3000}, CpuOptions(plan=BRIEF))
    assert (found.kernel, found.parameters, found.variant, found.state) == ("triad", (("n", 3000),), "loops", "warm")
    assert found.work == 6000 and found.operation == "FLOP"
    assert found.footprint_bytes == 3 * 8 * 3000 + 8
    assert found.rate_per_s == pytest.approx(6000 / found.median_s)
    assert "fastmath" in found.compiler and found.device["kind"] == "cpu" and found.software["numba"] != "unknown"
    save(tmp_path / "r.json", [found])
    assert load(tmp_path / "r.json") == (found,)
    assert not found.is_stale(shipped("stream:triad")) and found.is_stale(shipped("stream:scale"))


@pytest.mark.thorough
def test_counters_and_cold_caches() -> None:
    text = "kernel k(n):\n    inout a: i32[n]\n    for i in range(n):\n        a[i] += 1\n        count updates 1\n"
    found = measure_cpu(kernel(load_file(Source("k.roof", text)), "k"), {"n": 50}, CpuOptions(plan=BRIEF, cold=True))
    assert found.counters == (("updates", 50),) and found.operation == "OP"
    assert found.state == "cold" and found.calls_per_repeat == 1


def test_a_wrong_kernel_is_an_error_never_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    right = build(shipped("gemv"), CpuOptions())

    def broken(arrays: dict[str, Any], params: Any) -> Any:
        call = right.bind(arrays, params)

        def run() -> None:
            call()
            arrays["y"][-1] *= 1 + 1e-13

        return run

    wrong = Runner("loops", "broken", 1, right.text, broken)
    monkeypatch.setattr(cpu, "build", lambda kernel, options: wrong)
    with pytest.raises(WrongResult, match=r"y\[.*\] is .* is right"):
        measure_cpu(shipped("gemv"), {"n": 30}, CpuOptions(plan=BRIEF))


def test_a_kernel_that_computes_nothing_is_wrong() -> None:
    idle = Runner("loops", "idle", 1, "", lambda arrays, params: lambda: None)
    with pytest.raises(WrongResult):
        verify(shipped("vector_add"), idle.run, {"n": 10}, "the variant `loops`")


@pytest.mark.thorough
def test_verification_takes_smaller_sizes_where_the_reference_would_take_long() -> None:
    found = shipped("matmul_blocked")
    sizes = list(smaller(found, {"n": 1024, "b": 64}))
    assert sizes[0] == {"n": 1024, "b": 64} and sizes[-1]["n"] < 64
    assert all(s["n"] % s["b"] == 0 for s in sizes)
    verified = verify(shipped("gemv"), build(shipped("gemv"), CpuOptions()).run, {"n": 100_000}, "loops")
    assert 20 < dict(verified.parameters)["n"] < 100_000


REFUSED = [
    (CpuOptions("tiled"), {"n": 5}, "no variant `tiled`"),
    (CpuOptions("library", "cc"), {"n": 5}, "does not compile anything"),
    (CpuOptions("library"), {"n": 5}, "not a product that a library has"),
    (CpuOptions(), {}, "needs a number for n"),
    (CpuOptions(), {"n": 5, "q": 1}, "no parameter `q`"),
]


@pytest.mark.parametrize(("options", "sizes", "message"), REFUSED)
def test_what_cannot_be_measured(options: CpuOptions, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        measure_cpu(shipped("vector_add"), sizes, replace(options, plan=BRIEF))


def test_sequential_and_illegal_kernels() -> None:
    chain = (
        "kernel k(n):\n    inout a: f64[n]\n    assume n >= 2\n    for i in range(1, n):\n        a[i] += a[i - 1]\n"
    )
    with pytest.raises(CommandError, match="no loop whose iterations are known to be independent"):
        build(kernel(load_file(Source("k.roof", chain)), "k"), CpuOptions("parallel"))
    outside = "kernel k(n):\n    inout a: f64[n]\n    for i in range(n):\n        a[i + 1] = 0.0\n"
    with pytest.raises(InputError, match="subscript-bounds"):
        measure_cpu(kernel(load_file(Source("k.roof", outside)), "k"), {"n": 4}, CpuOptions(plan=BRIEF))


def test_no_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(CommandError, match="`/nowhere/cc` of the variable CC was not found"):
        build(shipped("gemv"), CpuOptions("loops", "cc"))


def test_buffers_begin_at_lines_and_are_restored() -> None:
    found = shipped("gemv")
    given = {"A": np.asfortranarray(np.random.rand(5, 7)), "x": np.random.rand(7), "y": np.random.rand(5)}
    arrays = aligned(given)
    assert [a.ctypes.data % 64 for a in arrays.values()] == [0, 0, 0]
    assert len({a.ctypes.data % 4096 for a in arrays.values()}) == 3
    assert arrays["A"].flags.f_contiguous and all((arrays[k] == given[k]).all() for k in given)
    restore = Restorer((found, arrays))
    arrays["y"][:] = np.nan
    restore()
    assert (arrays["y"] == given["y"]).all()


def test_where_rounding_says_nothing_a_smaller_size_is_verified() -> None:
    """A sum of a million half-precision products has no error bound; one of thousands has."""
    found = measure_cpu(shipped("dot"), {"n": 1_000_000}, CpuOptions(plan=Plan(repeats=1, budget_s=0.1)))
    at = dict(found.verified.parameters)
    assert 1000 < at["n"] < 1_000_000
