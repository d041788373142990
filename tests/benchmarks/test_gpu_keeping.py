"""A run on a lent GPU loses nothing: kernels that fail or hang, a device that is lost, a folder in one file."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from benchmarks.gpu import once
from benchmarks.gpu.__main__ import Lost, Work
from benchmarks.gpu.keep import LOST, Pack, watched
from benchmarks.kernels import ROOT, fresh, shipped
from roofdsl.measure.measurement import load
from tests.measure.fake_gpu import FakeGpu
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
    monkeypatch.setattr("benchmarks.gpu.plan.SIZES", {"triad": ({"n": 1000},), "copy": ({"n": 1000},)})


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
        Work(tmp_path, False, (), lambda: False).kernels()
    reasons = json.loads((tmp_path / "kernels" / "triad.refused.json").read_text(encoding="utf-8"))
    assert reasons == [
        "naive: RuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered",
        "tiled: not run, since the device was lost before",
        "library: not run, since the device was lost before",
    ]
    use(monkeypatch, of("copy"))  # the new process
    Work(tmp_path, False, (), lambda: False).kernels()
    assert [m.kernel for m in load(tmp_path / "kernels" / "copy.json")] == ["copy"]
    assert not list(tmp_path.rglob("*.begun"))


@pytest.mark.thorough
@pytest.mark.usefixtures("two")
def test_a_kernel_that_hung_is_not_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "triad.begun").touch()
    use(monkeypatch, of("copy"))
    Work(tmp_path, False, (), lambda: False).kernels()
    assert "did not end within" in (tmp_path / "kernels" / "triad.refused.json").read_text(encoding="utf-8")
    assert not (tmp_path / "kernels" / "triad.json").exists()
    assert (tmp_path / "kernels" / "copy.json").exists()
    assert not list(tmp_path.rglob("*.begun"))


def test_a_characterization_that_fails_does_not_stop_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Breaking())
    with pytest.raises(Lost):
        Work(tmp_path, False, (), lambda: False).machine()
    use(monkeypatch, FakeGpu())
    Work(tmp_path, False, (), lambda: False).machine()  # the new process leaves it
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
    Work(tmp_path, False, ("triad",), lambda: True).kernels()
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
    assert [" --resumed " in call for call in calls] == [False, True, True]
    assert len({call.split()[3] for call in calls}) == 1, "time counts from the first"
    assert all(call.endswith(" --again out") for call in calls)


@pytest.mark.thorough
def test_a_profiler_sees_one_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    device = of("triad")
    use(monkeypatch, device)
    once.run("triad", "naive", {"n": 1000})
    assert [function for function, *_ in device.launched] == ["triad"]
