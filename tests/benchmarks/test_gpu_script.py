"""What of `benchmarks/gpu/run.sh` needs no GPU: its plan, its report, and what it says where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gpu.__main__ import Work
from benchmarks.gpu.plan import SIZES, job
from benchmarks.kernels import ROOT, fresh, shipped
from benchmarks.sizes import is_legal
from roofdsl.machine.find import shipped_names
from roofdsl.measure.measurement import load, save, source_hash
from tests.measure.examples import EXAMPLE
from tests.measure.fake_gpu import FakeGpu
from tests.measure.test_gpu import by_loops

SCRIPT = ROOT / "benchmarks" / "gpu" / "run.sh"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run(["bash", str(SCRIPT), *arguments], capture_output=True, text=True, check=False, env=env)


def test_the_plan_names_shipped_kernels_at_legal_sizes() -> None:
    every = shipped()
    for name, sizes in SIZES.items():
        kernel = fresh(every[name], name)
        for size in sizes:
            assert is_legal(kernel, size), (name, size)
    assert job(fresh(every["triad"], "triad")).sizes == SIZES["triad"]
    other = job(fresh(every["transpose"], "transpose"))
    assert other.sizes
    assert not other.refused


@pytest.mark.thorough
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
    (tmp_path / "kernels" / "gemv.refused.json").write_text('["tiled: it has no tile"]', encoding="utf-8")
    result = run(str(tmp_path), "report")
    assert result.returncode == 0, result.stderr
    report = (tmp_path / "README.md").read_text(encoding="utf-8")
    predicted_s = 8 * (4096**2 + 3 * 4096) / 900e9
    assert f"| {predicted_s / 1.7e-4:.2f} |" in report
    assert "tiled: it has no tile" in report
    for picture in ("overlay.svg", "ratios.svg"):
        assert (tmp_path / picture).read_text(encoding="utf-8").startswith("<?xml")
    assert "another now" not in result.stdout


@pytest.mark.thorough
def test_all_parts_on_a_made_up_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triad = fresh(shipped()["triad"], "triad")
    device = FakeGpu(by_loops(triad))
    monkeypatch.setattr("roofdsl.measure.gpu.find_driver", lambda: device)
    monkeypatch.setattr("roofdsl.measure.characterize_gpu.find_driver", FakeGpu)
    monkeypatch.setattr("benchmarks.gpu.plan.SIZES", {"triad": ({"n": 1000}, {"n": 3000})})
    work = Work(tmp_path, again=False, names=("triad",), late=lambda: False)
    work.machine()
    assert "Made-up 100" in (tmp_path / "machine.roof").read_text(encoding="utf-8")
    work.kernels()
    found = load(tmp_path / "kernels" / "triad.json")
    assert [(m.variant, dict(m.parameters)) for m in found] == [("naive", {"n": 1000}), ("naive", {"n": 3000})]
    refused = (tmp_path / "kernels" / "triad.refused.json").read_text(encoding="utf-8")
    assert "tiled: " in refused
    assert "library: " in refused
    before = (tmp_path / "kernels" / "triad.json").stat().st_mtime_ns
    work.kernels()
    assert (tmp_path / "kernels" / "triad.json").stat().st_mtime_ns == before, "a part that is there is not run again"
    work.report()
    report = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert report.count("| triad | naive |") == 2


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
