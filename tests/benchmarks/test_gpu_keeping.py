"""A run on a lent GPU loses nothing: kernels that fail or hang, a device that is lost, a folder in one file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from benchmarks.gpu import once
from benchmarks.gpu.__main__ import Lost, Work
from benchmarks.gpu.keep import LOST, Pack, watched
from benchmarks.gpu.meter import sample_of, summary
from benchmarks.gpu.plan import Plan, PlannedRun
from benchmarks.gpu.profile import by_turns
from benchmarks.gpu.report import at_most
from benchmarks.gpu.results import Results, run_json
from benchmarks.kernels import ROOT, fresh, shipped
from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.measurement import load
from tests.measure.fake_gpu import FakeGpu
from tests.measure.host_gpu import HostGpu
from tests.measure.test_gpu import by_loops


class Breaking(FakeGpu):
    """Works until something is launched; from then on nothing does."""

    broken = False

    def launch(
        self, function: str, grid: Sequence[int], block: Sequence[int], shared_bytes: int, values: Sequence[Any]
    ) -> None:
        self.broken = True
        raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        if self.broken:
            raise RuntimeError("cudaErrorIllegalAddress")
        return super().put(array)


def of(name: str, kind: type[FakeGpu] = FakeGpu) -> FakeGpu:
    return kind(by_loops(fresh(shipped()[name], name)))


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tuple(PlannedRun(name, "naive", {"n": n}) for name, n in (("triad", 1000), ("copy", 1000), ("copy", 3000)))
    monkeypatch.setattr("benchmarks.gpu.plan.planned", lambda: Plan(runs, (), ()))


def use(monkeypatch: pytest.MonkeyPatch, device: FakeGpu) -> None:
    for place in ("gpu", "gpu_driver", "characterize_gpu"):
        monkeypatch.setattr(f"roofdsl.measure.{place}.find_driver", lambda: device)


@pytest.mark.thorough
@pytest.mark.usefixtures("two")
def test_a_lost_device_is_left_with_the_reason_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, of("triad", Breaking))
    with pytest.raises(Lost):
        Work(tmp_path, 0.0, (), lambda: False).kernels()
    reasons = json.loads((tmp_path / "kernels" / "triad.refused.json").read_text(encoding="utf-8"))
    assert [one["reason"] for one in reasons] == [
        "RuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered"
    ]
    use(monkeypatch, of("copy"))  # the new process
    Work(tmp_path, 0.0, (), lambda: False).kernels()
    assert [m.kernel for m in load(tmp_path / "kernels" / "copy.json")] == ["copy", "copy"]
    assert not list(tmp_path.rglob("*.begun"))


@pytest.mark.thorough
@pytest.mark.usefixtures("two")
def test_a_run_that_hung_is_not_begun_again_and_those_before_it_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, of("copy"))
    saved: list[int] = []

    class Hung(Exception):
        """In place of the end of the process."""

    def hangs(self: Work, run: PlannedRun, results: Results) -> str:
        if run.sizes["n"] == 3000:
            saved.append(len(load(tmp_path / "kernels" / "copy.json")))
            kept.append((tmp_path / "kernels.begun").read_text(encoding="utf-8"))
            raise Hung
        return measure(self, run, results)

    kept: list[str] = []
    measure = Work._measure
    monkeypatch.setattr(Work, "_measure", hangs)
    with pytest.raises(Hung):
        Work(tmp_path, 0.0, ("copy",), lambda: False).kernels()
    assert saved == [1], "every run is saved before the next begins"
    monkeypatch.setattr(Work, "_measure", measure)
    (tmp_path / "kernels.begun").write_text(kept[0], encoding="utf-8")  # as a process that was ended leaves it
    Work(tmp_path, 0.0, ("copy",), lambda: False).kernels()
    (refused,) = json.loads((tmp_path / "kernels" / "copy.refused.json").read_text(encoding="utf-8"))
    assert refused["sizes"] == {"n": 3000} and "did not end within" in refused["reason"]
    assert [dict(m.parameters) for m in load(tmp_path / "kernels" / "copy.json")] == [{"n": 1000}]


@pytest.mark.thorough
@pytest.mark.usefixtures("two")
def test_again_makes_anew_what_is_older_than_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, of("copy"))
    Work(tmp_path, 0.0, ("copy",), lambda: False).kernels()
    first = load(tmp_path / "kernels" / "copy.json")
    assert len(Results(tmp_path / "kernels").done) == 2
    assert Results(tmp_path / "kernels", since=time.time() + 60).done == set()
    Work(tmp_path, time.time() + 60, ("copy",), lambda: False).kernels()
    again = load(tmp_path / "kernels" / "copy.json")
    assert len(again) == len(first) == 2


def test_a_characterization_that_fails_does_not_stop_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Breaking())
    with pytest.raises(Lost):
        Work(tmp_path, 0.0, (), lambda: False).machine()
    use(monkeypatch, FakeGpu())
    Work(tmp_path, 0.0, (), lambda: False).machine()  # the new process leaves it
    assert not (tmp_path / "machine.roof").exists()
    assert "did not end" in capsys.readouterr().out


def test_what_takes_too_long_is_given_up(tmp_path: Path) -> None:
    mark, given_up = tmp_path / "k.begun", threading.Event()
    with watched(mark, 0.01, given_up.set):
        assert mark.exists()
        assert given_up.wait(10)
    given_up.clear()
    with watched(mark, 60, given_up.set):
        pass
    assert not mark.exists()
    assert not given_up.is_set()


@pytest.mark.thorough
def test_nothing_is_begun_when_time_is_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Work(tmp_path, 0.0, ("triad",), lambda: True).kernels()
    assert "out of time" in capsys.readouterr().out
    assert not list((tmp_path / "kernels").iterdir())


def test_a_folder_in_one_file(tmp_path: Path) -> None:
    folder, file = tmp_path / "a", tmp_path / "results.tar.gz"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "x.json").write_text("[]", encoding="utf-8")
    pack = Pack(file, folder)
    pack.write(now=False)
    assert not file.exists(), "not so soon again"
    pack.write()
    other = Pack(file, tmp_path / "b")
    other.unpack()
    assert (tmp_path / "b" / "kernels" / "x.json").read_text(encoding="utf-8") == "[]"
    (tmp_path / "b" / "kernels" / "x.json").write_text("[1]", encoding="utf-8")
    other.unpack()
    assert (tmp_path / "b" / "kernels" / "x.json").read_text(encoding="utf-8") == "[1]", "what is there stays"
    Pack(None, folder).write()


def test_the_script_goes_on_in_a_new_process(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ "$(wc -l < {tmp_path}/calls)" -ge 3 ] || exit {LOST}\n'
    )
    fake.chmod(0o755)
    script = ROOT / "benchmarks" / "gpu" / "run.sh"
    env = {**os.environ, "PYTHON": str(fake)}
    done = subprocess.run(["bash", str(script), "--again", "out"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert len(calls) == 3
    assert len({call.split()[3] for call in calls}) == 1, "time counts from the first"
    assert all(call.endswith(" --again out") for call in calls)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run generated CUDA with")
def test_a_profiler_sees_one_execution_of_each_run_after_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = HostGpu()
    use(monkeypatch, device)
    runs = [PlannedRun("triad", "naive", {"n": 100}), PlannedRun("daxpy", "library", {"n": 9}),
            PlannedRun("dot_f64", "naive", {"n": 77})]  # fmt: skip
    (tmp_path / "runs.json").write_text(json.dumps([run_json(run) for run in runs]), encoding="utf-8")
    once.main([str(tmp_path / "runs.json"), "--profile", "--no-pool"])
    assert [function for function, *_ in device.launched] == [
        once.MARK, "triad", once.MARK, "dot_f64__1", "dot_f64__2"
    ]  # fmt: skip
    assert not device.pool
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said] == [
        ["begun", "0"], ["ended", "0"], ["begun", "1"], ["refused", "1"], ["begun", "2"], ["ended", "2"]
    ]  # fmt: skip


def test_a_tool_that_hangs_loses_only_its_own_runs(tmp_path: Path) -> None:
    runs = [PlannedRun(name, "naive", {"n": 9}) for name in ("a", "b", "c")]
    said = "begun 0 a naive\nended 0\nbegun 1 b naive\n========= Invalid __global__ read of size 8 bytes\n"
    found = by_turns(runs, said, "it took too long")
    assert [one.get("errors") for one in found] == [0, 1, None] and found[2]["reason"] == "it took too long"


def test_the_card_beside_a_series() -> None:
    sample = sample_of("2026/11/23 03:00:00.000, 1755, 3201, 61, 688.12, 0x0000000000000004")
    idle = sample_of("2026/11/23 03:00:00.500, 345, 3201, [N/A], 75.00, 0x0000000000000001")
    assert summary([sample, idle]) == {
        "card": {"samples": 2, "sm_mhz": [345, 1755], "memory_mhz": [3201, 3201], "celsius": [61, 61],
                 "watts": [75, 688.12], "throttled_by": "0x4"}
    }  # fmt: skip
    assert summary([]) == {}


def test_a_prediction_that_takes_too_long_is_left_out() -> None:
    begun = time.monotonic()
    with pytest.raises(CommandError, match=r"takes longer than 0\.1 s"), at_most(0.1):
        while time.monotonic() - begun < 20:
            pass
    with at_most(0.05):
        pass
    time.sleep(0.1)  # no alarm is left behind
