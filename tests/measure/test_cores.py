"""`--cores 1,2`: the variants that run, their threads, and the predictions for as many cores."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.measure import cpu
from roofdsl.measure.cpu import CpuOptions, build, measure_cpu
from roofdsl.measure.measurement import CORES, Measurement, load, save, source_hash
from roofdsl.measure.timing import Plan, usable_cores
from roofdsl.plot.kinds.scaling import draw_scaling
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.on_cores import on_cores, scaling
from roofdsl.predict.options import Options
from roofdsl.validate.run import compare_all
from tests.measure.examples import EXAMPLE
from tests.predict.machines import kernel_of, machine

TRIAD = kernel_of(
    "kernel triad(n):\n    in A, B: f64[n]\n    out C: f64[n]\n    for i in range(n):\n        C[i] = A[i] + 3 * B[i]\n"
)
SUM = kernel_of("kernel chain(n):\n    inout x: f64[n]\n    for i in range(1, n):\n        x[i] = 0.5 * x[i - 1]\n")
N = 10**6
SHORT = Plan(repeats=3, budget_s=0.05)
COMPILERS = ["numba", pytest.param("cc", marks=pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"))]


def four() -> Machine:
    """Four cores, of which two saturate the memory."""
    return machine(
        "peak f64 fma 160 GFLOP/s", "transfers overlap",
        "cache L1 32 KiB, 800 GB/s, line 64 B, copies 4, write_allocate",
        "cache L2 1 MiB, 400 GB/s, line 64 B, copies 4, write_allocate",
        "memory DRAM 16 GiB, 20 GB/s", 'ceiling "one core, DRAM" DRAM 12 GB/s', "units 4", "clock 2 GHz",
        "core dispatch 4, window 192, waiting 60, mispredict 15 cycles",
        "instruction add f64 256 bits, latency 3 cycles, throughput 1 cycle",
        "instruction mul f64 256 bits, latency 5 cycles, throughput 0.5 cycles",
        "instruction fma f64 256 bits, latency 5 cycles, throughput 0.5 cycles",
        "instruction load 256 bits, latency 7 cycles, throughput 0.5 cycles",
        "instruction store 256 bits, throughput 1 cycle",
    )  # fmt: skip


def made_up(cores: int, seconds: float) -> Measurement:
    return replace(
        EXAMPLE, kernel="triad", parameters=(("n", N),), times_s=(seconds,) * 5, state="warm", threads=cores,
        variant="loops" if cores == 1 else "parallel", work=2 * N, footprint_bytes=24 * N,
        details={CORES: cores, "math": "relaxed"}, source_sha256=source_hash(TRIAD),
    )  # fmt: skip


@pytest.mark.spread(1)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.skipif(len(usable_cores()) < 2, reason="one core only")
def test_each_number_of_cores_runs_on_so_many_threads(compiler: str) -> None:
    for cores, variant in ((1, "loops"), (2, "parallel")):
        options = CpuOptions(variant, compiler, SHORT, cores=cores)
        found = measure_cpu(TRIAD, {"n": 20_000}, options)
        assert (found.variant, found.threads, found.details[CORES]) == (variant, cores, cores)
        assert found.verified.holds


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_number_of_threads_is_set_for_the_run_alone(compiler: str) -> None:
    runner = replace(build(TRIAD, CpuOptions("parallel", compiler)), threads=1)
    assert runner.use_threads is not None
    usual = runner.use_threads(1)
    runner.use_threads(usual)
    with runner.on_threads():
        assert runner.use_threads(1) == 1
    assert runner.use_threads(usual) == usual


def test_what_cannot_run_on_so_many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "usable_cores", lambda: [0, 1])
    for variant, cores, message in (
        ("parallel", 3, "3 cores were requested, but this process can use only 2"),
        ("loops", 2, "`loops` does not run on 2 cores"),
        ("parallel", 1, "`parallel` does not run on 1 cores"),
        ("library", 1, "`library` does not run on 1 cores"),
    ):
        with pytest.raises(CommandError, match=message):
            build(TRIAD, CpuOptions(variant, cores=cores))
    with pytest.raises(CommandError, match="no loop whose iterations are known to be independent"):
        build(SUM, CpuOptions("parallel", cores=2))


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_it_is_compared_with_the_prediction_for_as_many_cores(cores: int) -> None:
    (found,) = compare_all([TRIAD], [made_up(cores, 1e-3)], four())
    code = Options(warm=True, accesses="compiled", code=Code("auto"))
    said = on_cores(TRIAD, {"n": N}, four(), cores, code)
    assert found.cores == cores and found.prediction == said
    assert said.expected is not None and found.expected_s == float(said.expected.expected_s)
    # 32 bytes an iteration at 12 GB/s from one core, and never more than 20 GB/s together
    assert found.bound_s == pytest.approx(32 * N / min(12e9 * cores, 20e9))


def test_a_damaged_number_of_cores_is_an_error() -> None:
    with pytest.raises(CommandError, match="states 'many' as its number of cores"):
        compare_all([TRIAD], [replace(made_up(2, 1e-3), details={CORES: "many"})], four())


def test_measured_speedups_are_drawn_beside_the_curve() -> None:
    options = Options(warm=True, accesses="compiled", code=Code("stated"))
    found = scaling(TRIAD, {"n": N}, four(), range(1, 5), options)
    figure = draw_scaling([found], ["triad"], "title", [{1: 1.0, 2: 1.5, 4: 1.6}])
    points = [line for line in figure.axes[0].lines if line.get_linestyle() == "None" and len(line.get_xdata()) == 3]
    assert [(list(p.get_xdata()), list(p.get_ydata())) for p in points] == [([1, 2, 4], [1.0, 1.5, 1.6])]


FILE = """\
kernel triad(n):
    in A, B: f64[n]
    out C: f64[n]
    for i in range(n):
        C[i] = A[i] + 3 * B[i]
"""


def test_the_figure_of_stored_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("triad.roof").write_text(FILE, encoding="utf-8")
    save(Path("r.json"), [made_up(1, 2e-3), made_up(2, 1.2e-3)])
    assert [m.details[CORES] for m in load(Path("r.json"))] == [1, 2]
    asked = ["plot", "scaling", "triad.roof", "--set", f"n={N}", "--machine", "haswell_e5_2695v3", "-o", "o.svg"]
    assert run([*asked, "--results", "r.json"]) != 0, "haswell_e5_2695v3 has one core"
    assert "has a single core, not 2" in capsys.readouterr().err


ONE_WARM, TWO_WARM, ONE_COLD, TWO_COLD = (
    replace(made_up(cores, seconds), state=state)
    for cores, seconds, state in ((1, 2e-3, "warm"), (2, 1e-3, "warm"), (1, 6e-3, "cold"), (2, 4e-3, "cold"))
)


def drawn(kind: str, measured: list[Measurement], monkeypatch: pytest.MonkeyPatch, *more: str) -> Any:
    """The bars, panels or speedups that a figure of stored results draws."""
    module = import_module(f"roofdsl.plot.kinds.{kind}")
    draw, seen = getattr(module, f"draw_{kind}"), list[Any]()

    def record(*args: Any, **given: Any) -> Any:
        seen.append(args[3] if kind == "scaling" else args[0])
        return draw(*args, **given)

    monkeypatch.setattr(module, f"draw_{kind}", record)
    Path("triad.roof").write_text(FILE, encoding="utf-8")
    save(Path("r.json"), measured)
    line = ["plot", kind, "triad.roof", "--set", f"n={N}", "--machine", "skylake_gold_6148", "--results", "r.json"]
    assert run([*line, "-o", "o.svg", *more]) == 0
    return seen[0][0]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("several", [[ONE_COLD, TWO_COLD, ONE_WARM], [TWO_WARM, ONE_WARM, ONE_COLD]])
def test_the_parts_of_the_time_stand_beside_one_core_with_caches_alike(
    several: list[Measurement], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = drawn("ecm", [ONE_COLD], monkeypatch, "--in-core", "stated")
    assert alone.measured is not None
    assert "the bars are for" not in capsys.readouterr().err
    assert drawn("ecm", several, monkeypatch, "--in-core", "stated").measured == alone.measured
    assert "was measured" not in capsys.readouterr().err
    assert drawn("ecm", [TWO_COLD], monkeypatch, "--in-core", "stated").measured is None
    assert "was measured on several cores, and the bars are for one" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_the_parts_of_the_time_are_those_of_one_core(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    panel = drawn("ecm", [ONE_COLD], monkeypatch, "--in-core", "stated")
    skylake = load_machine("skylake_gold_6148")
    options = Options(accesses="compiled", code=Code("stated"))
    single = on_cores(TRIAD, {"n": N}, skylake, 1, options).expected
    assert single is not None and skylake.clock_hz is not None
    assert panel.expected == pytest.approx(float(single.expected_s * skylake.clock_hz) * 8 / N)  # 8 elements a line
    # 32 bytes an iteration at what one core gets from the memory, 24.85 GB/s
    assert {bar.name: bar.length for bar in panel.bars}["DRAM"] == pytest.approx(32 * 8 / 24.85 * 2.4, rel=0.01)
    assert "together" not in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_bars_for_all_cores_say_what_is_missing_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plot", "ecm", "triad.roof", "--set", f"n={N}", "--machine", "zen1_epyc_7451", "--in-core", "stated"]
    Path("triad.roof").write_text(FILE, encoding="utf-8")
    assert run([*line, "-o", "o.svg"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "the bars are for all 24 cores together" in said
    assert "does not state what a single core gets from DRAM" in said


@pytest.mark.usefixtures("here")
def test_run_times_are_the_fastest_with_cold_caches_and_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for several in ([ONE_COLD, TWO_COLD, ONE_WARM], [TWO_COLD, TWO_WARM, ONE_COLD]):
        assert drawn("runtime", several, monkeypatch).measured_s[1] == TWO_COLD.median_s
        said = "was measured 2 times, and only the fastest is drawn: parallel on 2 threads, cold caches"
        assert said in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_speedups_are_between_runs_with_caches_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [ONE_COLD, TWO_COLD, ONE_WARM, TWO_WARM]
    assert drawn("scaling", every, monkeypatch) == {1: 1.0, 2: 1.5}
    assert drawn("scaling", every[::-1], monkeypatch, "--warm") == {1: 1.0, 2: 2.0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cores", "x"], "not a list of numbers of cores"),
        (["--cores", "0"], "not a list of numbers of cores"),
        (["--cores", "1", "--variant", "loops"], "omit --variant"),
        (["--cores", "1", "--backend", "gpu"], "omit it with --backend gpu"),
    ],
)
def test_options_that_conflict(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "triad", "--set", "n=1000", *words]) == 2
    assert message in capsys.readouterr().err
