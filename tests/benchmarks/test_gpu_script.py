"""What of `benchmarks/gpu/run.sh` needs no GPU: its plan, its report, and what it says where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks.gpu.__main__ as gpu
from benchmarks.gpu.plan import VARIANTS, Plan, PlannedRun, planned
from benchmarks.gpu.results import key_of
from benchmarks.gpu.sizing import TARGETS_S, chosen, estimated
from benchmarks.kernels import ROOT, fresh, shipped
from benchmarks.sizes import is_legal
from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.machine.find import shipped_names
from roofdsl.measure.measurement import load, save, source_hash
from tests.measure.examples import EXAMPLE
from tests.measure.host_gpu import HostGpu

pytestmark = pytest.mark.thorough

SCRIPT = ROOT / "benchmarks" / "gpu" / "run.sh"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run(["bash", str(SCRIPT), *arguments], capture_output=True, text=True, check=False, env=env)


def test_the_plan_has_every_kernel_at_legal_sizes_in_every_variant_it_has() -> None:
    every, plan = shipped(), planned()
    assert {run.kernel for run in plan.runs} == set(every), "python -m benchmarks.gpu.sizing makes the plan anew"
    kernels = {name: fresh(checked, name) for name, checked in every.items()}
    for run in (*plan.runs, *plan.ragged):
        assert is_legal(kernels[run.kernel], run.sizes), run
    assert len({key_of(run) for run in plan.runs}) == len(plan.runs)
    told = {(r.kernel, r.variant) for r in (*plan.runs, *plan.refused)}
    assert told == {(name, variant) for name in every for variant in VARIANTS}
    assert all(run.seconds <= 0.5 for run in plan.runs if run.variant == "naive"), "no launch takes long"
    wanted = {"gemm_f16": "default", "gemm_tf32": "tf32", "matmul_bf16": "default", "matmul": "default"}
    for name, mode in wanted.items():
        sizes = [r.sizes for r in plan.runs if (r.kernel, r.variant, r.math_mode) == (name, "library", mode)]
        assert max(next(iter(s.values())) for s in sizes) == 8192, "products that fill the matrix units"


def test_ragged_runs_have_tiles_that_are_no_multiple_of_16() -> None:
    ragged = [r for r in planned().ragged if r.variant == "tiled"]
    assert {r.kernel for r in ragged} == {"matmul_blocked", "matmul_tiled", "minplus_blocked"}
    assert all(r.sizes["b"] % 16 for r in ragged) and all(50 <= r.sizes["n"] <= 130 for r in ragged)


def test_estimates_tell_one_thread_from_many() -> None:
    every = shipped()
    serial, parallel = (fresh(every[name], name) for name in ("trsv", "gemv"))
    codes = [generate(k, "cuda", free=parallel_loops(k)) for k in (serial, parallel)]
    slow, fast = (estimated(k, code, {"n": 4096}).seconds for k, code in zip((serial, parallel), codes, strict=True))
    assert slow > 100 * fast, "17 million steps, one after the other"
    (sizes, *_), _ = chosen(serial, codes[0])
    assert estimated(serial, codes[0], sizes).seconds <= max(TARGETS_S)
    assert estimated(parallel, codes[1], {"n": 1 << 17}).too_large


def test_the_report_sets_stored_measurements_beside_predictions(tmp_path: Path) -> None:
    text = shipped_names("machines")["v100_deck"].read_text(encoding="utf-8")
    body = text.split("machine v100_deck ")[1].split("\nmachine ")[0].split("\n#")[0]
    (tmp_path / "machine.roof").write_text(f"machine v100_deck {body}\n", encoding="utf-8")
    kernel = fresh(shipped()["gemv"], "gemv")
    measured = replace(
        EXAMPLE, kernel="gemv", parameters=(("n", 4096),), backend="gpu", variant="naive", state="rotated",
        times_s=(1.6e-4, 1.7e-4, 1.8e-4), work=2 * 4096**2, source_sha256=source_hash(kernel),
    )  # fmt: skip
    (tmp_path / "kernels").mkdir()
    save(tmp_path / "kernels" / "gemv.json", [measured])
    (tmp_path / "kernels" / "gemv.refused.json").write_text(
        '[{"variant": "tiled", "sizes": {"n": 9}, "reason": "it has no tile", "when": "2026-01-01T00:00:00+00:00"}]',
        encoding="utf-8",
    )
    result = run(str(tmp_path), "report")
    assert result.returncode == 0, result.stderr
    report = (tmp_path / "README.md").read_text(encoding="utf-8")
    predicted_s = 8 * (4096**2 + 3 * 4096) / 900e9
    assert f"| {predicted_s / 1.7e-4:.2f} |" in report
    assert "tiled: it has no tile" in report
    for picture in ("overlay.svg", "ratios.svg"):
        assert (tmp_path / picture).read_text(encoding="utf-8").startswith("<?xml")
    assert "another now" not in result.stdout


RUNS = (
    PlannedRun("triad", "naive", {"n": 1000}),
    PlannedRun("triad", "naive", {"n": 3000}),
    PlannedRun("dot_f64", "library", {"n": 1 << 20}),
    PlannedRun("matmul_tiled", "tiled", {"n": 96, "b": 24}),
    PlannedRun("daxpy", "library", {"n": 64}),
)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> HostGpu:
    found = HostGpu()
    for place in ("gpu", "gpu_driver", "characterize_gpu"):
        monkeypatch.setattr(f"roofdsl.measure.{place}.find_driver", lambda: found)
    monkeypatch.setattr("benchmarks.gpu.plan.planned", lambda: Plan(RUNS, RUNS[:4], ()))
    return found


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")
def test_all_parts_on_a_made_up_gpu(
    tmp_path: Path, device: HostGpu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The generated code itself is executed, thread by thread; the tools are scripts that say what real ones say."""
    for name, text in TOOLS.items():
        (tmp_path / name).write_text(f"#!{sys.executable}\n{text}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("sys.argv", ["run.sh", "--pack", str(tmp_path / "all.tar.gz"), str(tmp_path / "out")])
    gpu.main()
    folder = tmp_path / "out"
    assert "Made-up 100" in (folder / "machine.roof").read_text(encoding="utf-8")
    found = load(folder / "kernels" / "triad.json")
    assert [(m.variant, dict(m.parameters)) for m in found] == [("naive", {"n": 1000}), ("naive", {"n": 3000})]
    assert found[0].details["card"]["watts"] == [412.5, 412.5] and found[0].details["card"]["throttled_by"] == "0x4"
    tiled = load(folder / "kernels" / "matmul_tiled.json")[0]
    assert tiled.verified.holds and set(device.executed) == {"triad", "matmul_tiled"}
    (refused,) = json.loads((folder / "kernels" / "daxpy.refused.json").read_text(encoding="utf-8"))
    assert refused["variant"] == "library" and "scaled addition" in refused["reason"]
    traffic = json.loads((folder / "traffic.json").read_text(encoding="utf-8"))
    assert traffic[1]["metrics"]["dram__bytes_read.sum"] == 2 * 4096 and traffic[1]["launches"] == 2
    (bad,) = [o for o in json.loads((folder / "memcheck.json").read_text(encoding="utf-8")) if o.get("errors")]
    assert (bad["kernel"], bad["errors"]) == ("dot_f64", 1) and bad["first"].startswith("Invalid __shared__ read")
    report = (folder / "README.md").read_text(encoding="utf-8")
    assert report.count("| triad | naive |") == 4, "times and traffic"
    assert "4 executions checked, 1 with errors" in report
    with tarfile.open(tmp_path / "all.tar.gz") as archive:
        assert "./README.md" in archive.getnames()
    before = (folder / "kernels" / "triad.json").stat().st_mtime_ns
    executed = len(device.executed)
    gpu.main()
    assert (folder / "kernels" / "triad.json").stat().st_mtime_ns == before, "what is there is not run again"
    assert len(device.executed) == executed


TOOLS = {
    "nvidia-smi": """
import time
while True:
    print("2026/11/23 03:00:00.000, 1980, 3201, 41, 412.50, 0x0000000000000004", flush=True)
    time.sleep(0.02)
""",
    "ncu": """
import json, sys
if "--query-metrics" in sys.argv:
    print("dram__bytes_read  Counter  byte  # of bytes read")
    sys.exit()
runs = json.load(open(next(a for a in sys.argv if a.endswith("runs.json"))))
print("==PROF== Connected to process 1")
print('"ID","Kernel Name","dram__bytes_read.sum"')
print('"","","byte"')
at = 0
for k, run in enumerate(runs):
    print("begun", k, run["kernel"], run["variant"])
    for name in ("roofdsl_mark()", *[run["kernel"] + "(int)"] * (k + 1)):
        print(f'"{at}","{name}","4,096"')
        at += 1
    print("ended", k)
""",
    "compute-sanitizer": """
import json, sys
runs = json.load(open(next(a for a in sys.argv if a.endswith("runs.json"))))
print("========= COMPUTE-SANITIZER")
for k, run in enumerate(runs):
    print("begun", k, run["kernel"], run["variant"])
    if run["kernel"] == "dot_f64" and "memcheck" in sys.argv:
        print("========= Invalid __shared__ read of size 16 bytes")
        print("=========     at matmul+0x230")
    print("ended", k)
print("========= ERROR SUMMARY: 1 error")
""",
}


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    try:
        import cupy  # noqa: F401

        pytest.skip("cupy is installed here")
    except ImportError:
        pass
    result = run(str(tmp_path / "out"), "machine")
    assert result.returncode == 1
    assert "cupy" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    result = run(str(tmp_path), "everything")
    assert result.returncode == 2
    assert "no part is named everything" in result.stderr
