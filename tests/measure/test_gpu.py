"""The GPU's back end without one: a made-up device that does what launches should, in known times."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.inputs import random_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import machine_of
from roofdsl.matrices.attach import with_data
from roofdsl.measure import gpu_driver
from roofdsl.measure.bandwidth_curve import PATTERNS
from roofdsl.measure.characterize_gpu import characterize_gpu
from roofdsl.measure.cpu import CpuOptions, build
from roofdsl.measure.gpu import GpuOptions, Known, measure_gpu
from roofdsl.measure.gpu_machine import gpu_machine_text
from roofdsl.measure.gpu_microkernels import ARITHMETIC, arithmetic_source, stream_source
from roofdsl.measure.gpu_probes import SOURCE
from roofdsl.measure.gpu_timing import time_launches
from roofdsl.measure.measurement import load, save
from roofdsl.measure.timing import Plan
from roofdsl.measure.verify import WrongResult, verify
from tests.measure.fake_gpu import L2_BYTES, RATES, UNITS, FakeGpu, peak_of
from tests.measure.host_gpu import HostGpu
from tests.oracle.loading import kernel_of

MODELS = Path(__file__).parents[2] / "models" / "kernels"
BRIEF = Plan(repeats=5, budget_s=1, sample_s=1e-5, warm_s=0)


def shipped(name: str) -> Kernel:
    file, _, own = name.partition(":")
    return kernel(load_file(MODELS / f"{file}.roof"), own or file)


def by_loops(kernel_: Kernel) -> Callable[[str, Sequence[Any]], None]:
    """What a launch should do, done by the processor's own code for the kernel."""
    runner = build(kernel_, CpuOptions())
    arrays = [a.name for a in kernel_.arrays]

    def effect(function: str, values: Sequence[Any]) -> None:
        given = dict(zip(arrays, values, strict=False))
        sizes = {p.name: int(v) for p, v in zip(kernel_.parameters, values[len(arrays) :], strict=False)}
        assert all(isinstance(v, np.int64) for v in values[len(arrays) :])
        runner.run({n: np.asarray(v).reshape(-1) if np.ndim(v) == 0 else v for n, v in given.items()}, sizes)

    return effect


def test_generated_code_is_verified_timed_and_recorded(tmp_path: Path) -> None:
    found = shipped("stream:triad")
    device = FakeGpu(by_loops(found))
    measured = measure_gpu(found, {"n": 1000}, GpuOptions(plan=BRIEF), driver=device)
    assert (measured.backend, measured.variant, measured.state) == ("gpu", "naive", "rotated")
    assert measured.median_s == pytest.approx(RATES["replayed"]), "short launches are replayed in a graph"
    assert measured.details["launched_by"] == "graph"
    assert measured.details["stream_median_s"] == pytest.approx(RATES["launch"])
    assert measured.details["copies"] == 64 and measured.details["launches"] == 1
    (shape,) = measured.details["shapes"]
    assert shape["grid"][0] * shape["block"][0] >= 1000
    assert "__global__" in device.sources[0] and measured.compiler == "nvrtc 13.0"
    save(tmp_path / "r.json", [measured])
    assert load(tmp_path / "r.json")[0].times_s == measured.times_s


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")
def test_threads_have_memory_for_their_copies() -> None:
    """Verified with the results of the generated code; the launches of all copies of the arguments share the memory."""
    found = kernel_of(
        "kernel rows(m, n):\n    in A: f64[m, n]\n    out B: f64[m, n]\n    temp T: f64[n]\n    for i in range(m):\n"
        "        for j in range(n):\n            T[j] = 2 * A[i, j]\n"
        "        for j in range(n):\n            B[i, j] = T[n - 1 - j]\n"
    )
    device = HostGpu()
    measured = measure_gpu(found, {"m": 37, "n": 5}, GpuOptions(plan=BRIEF), driver=device)
    assert measured.details["launches"] == 1 and measured.details["parallel_loops"][0] == "i"
    assert "T_each" in device.sources[0] and device.executed == ["rows_1"]


def test_a_graph_has_every_buffer_and_a_refused_one_is_done_without() -> None:
    found = shipped("stream:triad")
    device = FakeGpu(by_loops(found))
    graphs: list[int] = []

    def captured(calls: Sequence[Callable[[], object]]) -> None:
        graphs.append(len(calls))

    device.captured = captured  # type: ignore[method-assign,assignment]
    plan = Plan(repeats=5, budget_s=1, sample_s=0, warm_s=0)
    measured = measure_gpu(found, {"n": 1000}, GpuOptions(plan=plan), driver=device)
    assert graphs == [64] == [measured.details["copies"]], "otherwise a replay would find its buffers in the L2 cache"
    assert measured.details["launched_by"] == "stream"
    assert measured.median_s == pytest.approx(RATES["launch"])


def test_long_launches_are_not_replayed() -> None:
    calls = [0]

    def effect(function: str, values: Sequence[Any]) -> None:
        device.clock += 1e-3
        calls[0] += 1

    device = FakeGpu(effect)
    run = lambda: device.launch("triad", (1, 1, 1), (1, 1, 1), 0, [])  # noqa: E731
    timed = time_launches(device, [run], BRIEF, lambda: None)
    assert timed.by == "stream" and timed.times.median_s == pytest.approx(1e-3 + RATES["launch"])


def test_a_graph_goes_through_all_copies_equally_often() -> None:
    """Otherwise the next replay would begin with arrays that are still in a cache."""
    ran: list[int] = []
    device = FakeGpu(lambda function, values: ran.append(values[0]))

    def launch(copy: int) -> Callable[[], None]:
        return lambda: device.launch("triad", (1, 1, 1), (1, 1, 1), 0, [copy])

    timed = time_launches(device, [launch(k) for k in range(7)], BRIEF, lambda: None)
    assert timed.by == "graph" and timed.times.calls == 7
    timed = time_launches(device, [launch(k) for k in range(4)], BRIEF, lambda: None)
    assert timed.times.calls == 8  # five or six fill the shortest sample
    assert ran[-16:] == [0, 1, 2, 3] * 4


def test_what_was_verified_is_not_run_against_the_reference_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, int]] = []

    def spied(kernel_: Kernel, run: Any, values: Mapping[str, int], *rest: Any) -> Any:
        asked.append(values)
        return verify(kernel_, run, values, *rest)

    monkeypatch.setattr("roofdsl.measure.gpu.verify", spied)
    found = shipped("stream:triad")
    options = GpuOptions(plan=BRIEF, known={})
    first = measure_gpu(found, {"n": 1000}, options, driver=FakeGpu(by_loops(found)))
    again = measure_gpu(found, {"n": 3000}, options, driver=FakeGpu(by_loops(found)))
    assert asked == [{"n": 1000}] and again.verified == first.verified


def test_a_library_is_verified_for_every_kernel_and_math_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a library's code is the same for products of all types."""
    asked: list[tuple[str, str]] = []

    def spied(kernel_: Kernel, run: Any, values: Mapping[str, int], *rest: Any) -> Any:
        asked.append((kernel_.arrays[0].type.name, rest[1] or "as written"))
        return verify(kernel_, run, values, *rest)

    monkeypatch.setattr("roofdsl.measure.gpu.verify", spied)
    known: Known = {}
    for type_name, mode in (("f32", "default"), ("f64", "default"), ("f32", "tf32"), ("f32", "default")):
        found = kernel_of(
            f"kernel product(n):\n    in A, B: {type_name}[n, n]\n    inout C: {type_name}[n, n]\n"
            "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n"
        )
        options = GpuOptions("library", BRIEF, math_mode=mode, known=known)
        measure_gpu(found, {"n": 8}, options, driver=FakeGpu(by_loops(found)))
    assert asked == [("f32", "as written"), ("f64", "as written"), ("f32", "tf32")]


def test_arrays_are_filled_on_the_device_with_numbers_that_do_not_repeat_by_rows() -> None:
    found = shipped("matmul_half:gemm_f16")
    blocks = random_blocks(found, {"m": 64, "n": 100, "k": 50}, most=1013)
    a = FakeGpu().filled(*blocks["A"])
    assert a.shape == (64, 50) and a.dtype == np.uint16
    halves = a.view(np.float16).astype(float)
    assert len(np.unique(halves)) > 400, "with all bits, since power depends on them"
    assert not any((halves[i] == halves[j]).all() for i in range(64) for j in range(i))
    assert abs(halves).max() <= 1 and abs(halves.mean()) < 0.1
    factor = random_blocks(shipped("triangular:cholesky"), {"n": 40})["A"]
    whole = FakeGpu().filled(*factor)
    assert (np.diag(whole) >= 40).all(), "what divides by a diagonal gets a large one"
    (s,) = [b for name, b in random_blocks(shipped("dot"), {"n": 40}).items() if name == "s"]
    assert s.shape == (1,) and s.numbers.view(np.float16)[0] != s.numbers.view(np.float16)[0]


def test_large_arrays_are_not_copied_and_wrong_results_are_errors() -> None:
    found = shipped("stream:copy")
    device = FakeGpu(by_loops(found))
    measured = measure_gpu(found, {"n": L2_BYTES // 8}, GpuOptions(plan=BRIEF), driver=device)
    assert measured.details["copies"] == 1 and measured.state == "warm"
    with pytest.raises(WrongResult, match="on the GPU"):
        measure_gpu(found, {"n": 100}, GpuOptions(plan=BRIEF), driver=FakeGpu(lambda function, values: None))


@pytest.mark.parametrize(("name", "sizes"), [("gemv", {"n": 20}), ("batched_gemm", {"batch": 3, "n": 6})])
def test_the_library(name: str, sizes: Mapping[str, int]) -> None:
    device = FakeGpu()
    measured = measure_gpu(shipped(name), sizes, GpuOptions("library", BRIEF, math_mode="pedantic"), driver=device)
    assert set(device.modes) == {"pedantic"} and measured.details["math_mode"] == "pedantic"
    assert measured.details["operation"] in ("gemv", "batched gemm")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gemv", GpuOptions("loops"), "no variant `loops` on the GPU"),
        ("gemv", GpuOptions("library", math_mode="fast"), "no math mode `fast`"),
        ("daxpy", GpuOptions("library"), "a scaled addition"),
        ("minplus", GpuOptions("library"), "not a product that a library has"),
    ],
)
def test_what_cannot_be_measured(name: str, options: GpuOptions, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        measure_gpu(shipped(name), {"n": 8}, options, driver=FakeGpu())


def test_index_arrays_are_refused() -> None:
    """Even with their values: copies on the device hold repeated random numbers, which are no subscripts."""
    found, sizes = with_data(shipped("sparse:spmv_csr"), ["rowptr,col=banded:n=50,w=1"], {})
    for asked in (found, shipped("sparse:spmv_csr")):
        with pytest.raises(
            CommandError, match="spmv_csr has index arrays, and such kernels are measured only on the CPU"
        ):
            measure_gpu(asked, sizes, GpuOptions(plan=BRIEF), driver=FakeGpu())


def test_without_cupy_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(gpu_driver, "import_module", missing)
    with pytest.raises(CommandError, match="measuring on a GPU needs cupy, which is not installed"):
        measure_gpu(shipped("gemv"), {"n": 8})


def test_a_known_gpu_is_characterized() -> None:
    steps: list[float] = []
    found = characterize_gpu(quick=True, progress=lambda part, what: steps.append(part), driver=FakeGpu())
    for peak in found.peaks:
        expected = RATES["tensor"] if peak.cls == "tensor" else peak_of(peak.type, peak.cls)
        assert peak.rate.per_s == pytest.approx(expected, rel=0.01)
    assert {p.type for p in found.peaks if p.cls == "tensor"} == {"f16", "bf16", "tf32", "i8"}
    assert any("no matrix product in f64: no f64 here" in note for note in found.notes)
    cache, memory = found.levels
    assert cache.bandwidth.bytes_per_s == pytest.approx(RATES["stream"][0], rel=0.01)
    assert memory.bandwidth.bytes_per_s == pytest.approx(RATES["stream"][1], rel=0.01)
    assert cache.seen_bytes is not None and 0.7 < cache.seen_bytes / L2_BYTES < 1.5
    assert found.launch_s == pytest.approx(RATES["replayed"])
    assert found.stream_launch_s == pytest.approx(RATES["launch"])
    assert (found.probes.l1.per_s, found.probes.shared.per_s) == pytest.approx((2e13, 3e13), rel=0.01)
    assert dict(found.probes.latencies_s) == pytest.approx({"L1": 30e-9, "L2": 250e-9, "HBM": 600e-9}, rel=0.01)
    for _, law in found.probes.laws:
        assert law.latency_s == pytest.approx(700e-9, rel=0.02) and law.exponent == pytest.approx(2.0, abs=0.11)
        assert law.bandwidth_bytes_per_s == pytest.approx(1e12, rel=0.02) and law.error < 0.02
    assert steps == sorted(steps) and steps[0] >= 0 and steps[-1] <= 1
    text = gpu_machine_text(found)
    assert format_source(Source("x.roof", text)) == text
    machine = machine_of(load_file(Source("x.roof", text)), None)
    assert machine.name == "made_up_100_measured" and machine.units == UNITS
    fused = machine.stated("f32", "fma")
    assert fused is not None and float(fused.rate_per_s) == pytest.approx(peak_of("f32", "fma"), rel=0.01)
    assert float(machine.rate("tf32", "tensor").per_s) == pytest.approx(RATES["tensor"], rel=0.01)
    assert machine.main_memory.name == "HBM" and float(machine.launch_s or 0) == pytest.approx(RATES["replayed"])
    assert {s.direction for s in machine.sustained} == {"read", "mixed"}
    assert float(machine.sustained[0].latency_s) == pytest.approx(700e-9, rel=0.02)
    assert machine.multiprocessor is not None and machine.multiprocessor.warps == 64
    assert "# Latency of dependent loads: L1 30 ns, L2 250 ns, HBM 600 ns." in text


@pytest.mark.thorough
def test_the_cuda_of_the_characterization_compiles(tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    text = (
        stream_source()
        + SOURCE
        + "".join(
            arithmetic_source(a).replace("from(", f"from_{k}(").replace("never(", f"never_{k}(")
            for k, a in enumerate(ARITHMETIC)
        )
    )
    (tmp_path / "k.cu").write_text(text)
    command = ["nvcc", "-arch=sm_90", "-Werror", "all-warnings", "-ptx", "-o", str(tmp_path / "k.ptx")]
    done = subprocess.run([*command, str(tmp_path / "k.cu")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "k.ptx").read_text()
    parts = {part.split("(")[0].split()[-1]: part for part in made.split(".visible .entry")[1:]}
    first = parts["stream_load"].split("add.f64")[0]
    assert first.count("ld.global.cg.v2.f64") == 4, "four loads before the first is used"
    assert "div." not in "".join(parts[f"stream_{p.name}"] for p in PATTERNS), (
        "a division a pass, before the first load"
    )
    loop = parts["peak_f32_fma"]
    assert loop.count("fma.rn.f32") >= 64 and "mov.f32" not in loop.split("fma.rn.f32", 1)[1].split("bra")[0]
    assert parts["probe_l1"].count("ld.global.ca") >= 2 and parts["probe_shared"].count("ld.shared.v2.f64") >= 2
    for instruction in ("fma.rn.f32", "fma.rn.f64", "min.f32", "ld.global.cg.v2.f64", "fma.rn.f16x2", "sqrt.rn.f64"):
        assert instruction in made
