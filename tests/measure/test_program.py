"""Programs measured: every kernel verified, launches in their order, the whole and its parts in one record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.program_at_sizes import ProgramAt, program_at
from roofdsl.machine.find import machine_of
from roofdsl.measure import program_cpu
from roofdsl.measure.cpu import CpuOptions, build
from roofdsl.measure.gpu import GpuOptions
from roofdsl.measure.measurement import load, parse, save
from roofdsl.measure.program import program_hash
from roofdsl.measure.program_cpu import measure_program_cpu
from roofdsl.measure.program_gpu import measure_program_gpu
from roofdsl.measure.runner import Runner
from roofdsl.measure.timing import Plan
from roofdsl.measure.verify import WrongResult
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_at
from roofdsl.validate.compare import compare_program
from tests.measure.fake_gpu import RATES, FakeGpu

MODELS = Path(__file__).parents[2] / "models" / "kernels"
BRIEF = Plan(repeats=3, budget_s=0.2, sample_s=1e-4, warm_s=0)
TEXT = """
kernel product(n):
    in A: f64[n, n], x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = 0
        for j in range(n):
            y[i] += A[i, j] * x[j]

kernel shift(n):
    inout y: f64[n]
    for i in range(n):
        y[i] += 1

program inner(n):
    repeat 2:
        run shift(n)

program steps(n, t = 3):
    run shift(2 * n)
    repeat t:
        run product(n)
        run inner(n)

machine m:
    peak f64 fma 1 TFLOP/s
    cache L1 32 KiB, 1 TB/s, line 64 B
    memory RAM 1 GiB, 100 GB/s
    launch 1 us
"""
CHECKED = load_file(Source("steps.roof", TEXT))
ORDER = [0, 1, 2, 2, 1, 2, 2, 1, 2, 2]  # shift of 2 n, product, shift of n


def steps(n: int = 9, t: int = 3) -> ProgramAt:
    return program_at(CHECKED, "steps", {"n": n, "t": t})


def shipped(file: str, name: str, **sizes: int) -> ProgramAt:
    return program_at(load_file(MODELS / f"{file}.roof"), name, sizes)


def test_launches_run_in_their_order_on_arrays_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, int, int]] = []

    def recording(kernel: Any, options: CpuOptions) -> Runner:
        right = build(kernel, options)

        def bind(arrays: Any, params: Any) -> Any:
            call, own = right.bind(arrays, params), next(iter(arrays.values()))

            def run() -> None:
                ran.append((kernel.name, params["n"], own.ctypes.data))
                call()

            return run

        return Runner(right.variant, right.compiler, right.threads, right.text, bind)

    monkeypatch.setattr(program_cpu, "build", recording)
    measured = measure_program_cpu(steps(), CpuOptions(plan=BRIEF))
    names = [("shift", 18), ("product", 9), ("shift", 9)]
    last = ran[-len(ORDER) :]
    assert [(name, n) for name, n, _ in last] == [names[place] for place in ORDER]
    assert len({address for _, _, address in last}) == 3
    assert [(p.of.kernel, p.of.parameters, p.launches) for p in measured.by_launch] == [
        ("shift", (("n", 18),), 1), ("product", (("n", 9),), 3), ("shift", (("n", 9),), 6),
    ]  # fmt: skip


def test_a_record_is_complete_and_read_back(tmp_path: Path) -> None:
    measured = measure_program_cpu(steps(), CpuOptions("library", plan=BRIEF))
    assert (measured.kernel, measured.parameters, measured.state) == ("steps", (("n", 9), ("t", 3)), "warm")
    assert measured.work == 18 + 3 * 2 * 81 + 6 * 9 == sum(p.launches * p.of.work for p in measured.by_launch)
    assert measured.footprint_bytes == 8 * (18 + 81 + 9 + 9 + 9)
    assert [p.of.variant for p in measured.by_launch] == ["loops", "library", "loops"]
    (note,) = measured.details["notes"]
    assert note.startswith("shift: loops in place of library: kernel shift is not a product")
    assert measured.verified.of_allowed == max(p.of.verified.of_allowed for p in measured.by_launch) <= 1
    save(tmp_path / "r.json", [measured])
    assert load(tmp_path / "r.json") == (measured,)
    assert measured.source_sha256 == program_hash(steps(t=4)) != program_hash(program_at(CHECKED, "inner", {"n": 9}))


def test_cold_launches_add_up() -> None:
    measured = measure_program_cpu(steps(n=5, t=1), CpuOptions(plan=BRIEF, cold=True))
    assert measured.state == "cold" and measured.calls_per_repeat == 1
    each = [[s * p.launches for s in p.of.times_s] for p in measured.by_launch]
    assert measured.times_s == pytest.approx([sum(sample) for sample in zip(*each, strict=True)])


def test_launches_use_the_number_of_threads_that_the_record_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number the environment gave the threads' library."""
    now, used = [1], []

    def on_three(kernel: Any, options: CpuOptions) -> Runner:
        right = build(kernel, CpuOptions())

        def bind(arrays: Any, params: Any) -> Any:
            call = right.bind(arrays, params)

            def run() -> None:
                used.append(now[-1])
                call()

            return run

        def use_threads(count: int) -> int:
            now.append(count)
            return now[-2]

        return Runner("parallel", right.compiler, 3, right.text, bind, use_threads=use_threads)

    monkeypatch.setattr(program_cpu, "build", on_three)
    measured = measure_program_cpu(steps(n=5, t=1), CpuOptions("parallel", plan=BRIEF))
    assert measured.threads == 3 and set(used) == {3} and now[-1] == 1


def test_a_number_of_cores_is_for_kernels() -> None:
    with pytest.raises(CommandError, match="steps is a program, and numbers of cores are for kernels"):
        measure_program_cpu(steps(), CpuOptions("parallel", plan=BRIEF, cores=2))


def test_index_arrays_are_refused_since_nothing_gives_their_values() -> None:
    text = """
kernel gather(n, m):
    in at: i32[n] index(m), x: f64[m]
    out y: f64[n]
    for i in range(n):
        y[i] = x[at[i]]

program twice(n):
    repeat 2:
        run gather(n, n)
"""
    at = program_at(load_file(Source("twice.roof", text)), "twice", {"n": 9})
    message = "kernel gather of program twice has index arrays, and `--data` gives values only to a single kernel"
    with pytest.raises(CommandError, match=message) as caught:
        measure_program_cpu(at, CpuOptions(plan=BRIEF))
    assert caught.value.help == "name the kernel, FILE:gather, in place of the program"
    with pytest.raises(CommandError, match=message):
        measure_program_gpu(at, GpuOptions(plan=BRIEF), driver=FakeGpu())
    with pytest.raises(CommandError, match=message):
        predict_at(at, machine_of(CHECKED, "m"), Options())


def test_a_wrong_kernel_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = Runner("loops", "idle", 1, "", lambda arrays, params: lambda: None)
    monkeypatch.setattr(program_cpu, "build", lambda kernel, options: idle)
    with pytest.raises(WrongResult, match="of kernel shift"):
        measure_program_cpu(steps(), CpuOptions(plan=BRIEF))


def test_what_is_not_measured() -> None:
    with pytest.raises(CommandError, match="makes 300,001 launches; the limit is 100,000"):
        measure_program_cpu(steps(t=100_000), CpuOptions(plan=BRIEF))
    with pytest.raises(CommandError, match="no variant `tiled` on the CPU"):
        measure_program_cpu(steps(), CpuOptions("tiled", plan=BRIEF))


SHIPPED = [
    shipped("conv2d_gemm", "conv2d_im2col", batch=1, h=8, w=7, c=2, f=3, r=3, s=2),
    shipped("lstm", "lstm_forward_unfused", batch=2, sequence=2, features=3, hidden=4),
    shipped("transformer", "attention_naive", batch=1, new=4, context=4, kv=1, group=2, dh=4),
]


@pytest.mark.spread(1)
@pytest.mark.parametrize("found", SHIPPED, ids=lambda p: p.name)
def test_shipped_programs(found: ProgramAt) -> None:
    compiler = "cc" if any(map(shutil.which, ("gcc", "clang", "cc"))) else "numba"  # the quicker one
    measured = measure_program_cpu(found, CpuOptions(compiler=compiler, plan=BRIEF))
    assert sum(p.launches for p in measured.by_launch) == found.launches
    assert measured.work == sum(p.launches * p.of.work for p in measured.by_launch) > 0
    assert all(p.of.verified.unverified < 1 for p in measured.by_launch)


# ---- on the made-up GPU ----


def gpu(at: ProgramAt) -> FakeGpu:
    runners = {part.kernel.name: (part.kernel, build(part.kernel, CpuOptions())) for part in at.launched}

    def effect(function: str, values: Sequence[Any]) -> None:
        kernel, runner = next(found for name, found in runners.items() if function.startswith(name))
        arrays = dict(zip([a.name for a in kernel.arrays], values, strict=False))
        sizes = dict(zip([p.name for p in kernel.parameters], map(int, values[len(arrays) :]), strict=False))
        touched.append(next(iter(arrays.values())).ctypes.data)
        runner.run({n: np.asarray(v) for n, v in arrays.items()}, sizes)

    touched: list[int] = []
    device = FakeGpu(effect)
    device.touched = touched  # type: ignore[attr-defined]
    return device


def test_on_a_gpu_launches_rotate_and_cost_what_the_device_takes() -> None:
    at = steps(n=6, t=2)
    device = gpu(at)
    measured = measure_program_gpu(at, GpuOptions(plan=BRIEF), driver=device)
    assert (measured.backend, measured.state) == ("gpu", "rotated")
    assert measured.median_s == pytest.approx(7 * RATES["replayed"]), "short launches are replayed in a graph"
    assert [p.of.median_s for p in measured.by_launch] == pytest.approx([RATES["launch"]] * 3)
    order = ["shift", "product", "shift", "shift", "product", "shift", "shift"]
    assert [name for name, *_ in device.launched][-7:] == order
    again = device.touched[-14:]  # type: ignore[attr-defined]
    assert len(set(again)) == 14  # no launch of two executions on the arrays of another


def test_a_graph_of_a_program_goes_through_all_copies_of_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph keeps the arrays of its launches; planned samples are shorter than a turn through all of them."""
    at = steps(n=6, t=2)
    device = gpu(at)
    touched: list[int] = device.touched  # type: ignore[attr-defined]
    graphs: list[list[int]] = []

    def captured(calls: Sequence[Any]) -> Any:
        before = len(touched)
        for call in calls:
            call()
        graphs.append(touched[before:])
        return lambda: setattr(device, "clock", device.clock + 1e-6)

    monkeypatch.setattr(device, "captured", captured)
    measured = measure_program_gpu(at, GpuOptions(plan=BRIEF), driver=device)
    (graph,) = graphs
    copies = [p.of.details["copies"] for p in measured.by_launch]
    assert len(graph) == 7 * measured.calls_per_repeat and len(set(graph)) == sum(copies) == 3 * 64


def test_the_library_takes_the_products_and_wrong_ones_are_errors() -> None:
    at = steps(n=6, t=1)
    device = gpu(at)
    measured = measure_program_gpu(at, GpuOptions("library", BRIEF), driver=device)
    assert [p.of.variant for p in measured.by_launch] == ["naive", "library", "naive"]
    with pytest.raises(WrongResult, match="on the GPU"):
        measure_program_gpu(at, GpuOptions(plan=BRIEF), driver=FakeGpu(lambda function, values: None))


@pytest.mark.thorough
def test_a_convolution_by_im2col_and_the_library() -> None:
    at = SHIPPED[0]
    measured = measure_program_gpu(at, GpuOptions("library", BRIEF), driver=gpu(at))
    assert [(p.of.kernel, p.of.variant) for p in measured.by_launch] == [("im2col", "naive"), ("conv_gemm", "library")]
    assert measured.by_launch[1].of.details["operation"] == "gemm"
    with pytest.raises(CommandError, match="BLAS multiplies f64, f32, c128, c64, all of one type"):
        build(at.launched[1].kernel, CpuOptions("library"))


# ---- beside predictions ----


def test_compared_launch_by_launch() -> None:
    at = steps()
    measured = measure_program_cpu(at, CpuOptions(plan=BRIEF))
    m = machine_of(CHECKED, "m")
    p = predict_at(at, m, Options(warm=True))
    compared = compare_program(p, measured, m)
    assert compared.ratio == float(p.total.bound_s) / measured.median_s
    assert [c.ratio for c in compared.by_launch] == pytest.approx(
        [
            float(part.bound_s) / (k.launches * k.of.median_s)
            for part, k in zip(p.parts, measured.by_launch, strict=True)
        ]
    )
    other = program_at(load_file(Source("s.roof", TEXT.replace("repeat 2", "repeat 4"))), "steps", {"n": 9})
    with pytest.raises(CommandError, match="launched other kernels"):
        compare_program(predict_at(other, m), measured, m)


@pytest.mark.parametrize(("change", "message"), [
    (lambda d: d.__setitem__("by_launch", []), "`by_launch` is empty"),
    (lambda d: d["by_launch"].append(3), "not a list of kernels"),
    (lambda d: d["by_launch"][0].__setitem__("launches", 0), "at least 1"),
    (lambda d: d["by_launch"][0].__setitem__("median_s", 1.0), "the times give"),
    (lambda d: d["by_launch"][0].__setitem__("by_launch", []), "not a list of kernels"),
])  # fmt: skip
def test_damaged_records_are_refused(change: Any, message: str, record: dict[str, Any]) -> None:
    document = json.loads(json.dumps(record))
    change(document)
    with pytest.raises(InputError, match=message):
        parse(Source("r.json", json.dumps(document)))


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return measure_program_cpu(program_at(CHECKED, "inner", {"n": 3}), CpuOptions(plan=BRIEF)).to_json()
