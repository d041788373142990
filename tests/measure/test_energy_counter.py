"""Energy counters: RAPL in made-up folders, NVML as a made-up module, and the energy of calls read from them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.measure import energy_counter
from roofdsl.measure.energy_counter import NoCounter, Nvml, Rapl, measured_j, measured_w, read_energy, why_missing
from roofdsl.measure.gpu import GpuOptions, measure_gpu
from tests.measure.fake_gpu import FakeGpu
from tests.predict.machines import kernel_of

KERNEL = """\
kernel scale(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = 2 * x[i]
"""


def zone(folder: Path, number: str, name: str, reading: int, most: int = 262_143_328_850) -> Path:
    made = folder / f"intel-rapl:{number}"
    made.mkdir()
    (made / "name").write_text(name + "\n")
    (made / "energy_uj").write_text(f"{reading}\n")
    (made / "max_energy_range_uj").write_text(f"{most}\n")
    return made


def test_packages_and_their_memories_count_once(tmp_path: Path) -> None:
    """Cores are a part of the package, psys is the whole computer; memory has a counter beside the package's."""
    zones = {n: zone(tmp_path, n, name, 1000) for n, name in
             (("0", "package-0"), ("0:0", "core"), ("0:1", "dram"), ("1", "package-1"), ("2", "psys"))}  # fmt: skip
    counter = Rapl(tmp_path)
    assert counter.name == "RAPL: dram, package-0, package-1"
    assert counter.joules() == 0
    for place in zones.values():
        (place / "energy_uj").write_text("2001000\n")
    assert counter.joules() == pytest.approx(6)
    assert counter.joules() == pytest.approx(6)


def test_a_counter_that_starts_anew(tmp_path: Path) -> None:
    place = zone(tmp_path, "0", "package-0", 999_000, most=1_000_000)
    counter = Rapl(tmp_path)
    (place / "energy_uj").write_text("500\n")
    assert counter.joules() == pytest.approx(1500e-6)
    (place / "energy_uj").write_text("400\n")
    assert counter.joules() == pytest.approx((1500 + 999_900) * 1e-6)


def test_why_there_is_no_counter(tmp_path: Path) -> None:
    with pytest.raises(NoCounter, match="shows no energy counter of its processor"):
        Rapl(tmp_path / "nowhere")
    place = zone(tmp_path, "0", "package-0", 5)
    (place / "max_energy_range_uj").write_text("many\n")
    with pytest.raises(NoCounter, match="no usable energy counter"):
        Rapl(tmp_path)
    (place / "energy_uj").unlink()
    (place / "energy_uj").mkdir()  # what cannot be read, even by root
    with pytest.raises(NoCounter, match="only root may, unless an administrator allows it"):
        Rapl(tmp_path)


class Steady:
    """A clock and a counter that know each other: so many watts for every second of the clock."""

    def __init__(self, watts: float) -> None:
        self.watts, self.now, self.name = watts, 0.0, "made up"

    def joules(self) -> float:
        return self.watts * self.now

    def clock(self) -> float:
        return self.now

    def call(self, seconds: float) -> Callable[[int], int]:
        def made(count: int) -> int:
            self.now += count * seconds
            return count

        return made


def test_the_energy_of_a_call() -> None:
    """What `prepare` takes between the bursts does not count."""
    steady = Steady(80.0)

    def prepare() -> None:
        steady.now += 10.0

    found = read_energy(steady, steady.call(1e-3), 1e-3, prepare=prepare, clock=steady.clock)
    assert found.watts == pytest.approx(80)
    assert found.details()["energy"]["energy_j"] == pytest.approx(0.08)
    assert found.seconds >= energy_counter.MEASURED_S["cpu"] and found.calls == pytest.approx(found.seconds / 1e-3)
    single = read_energy(steady, steady.call(0.02), 0.02, single=True, clock=steady.clock)
    assert single.details()["energy"]["energy_j"] == pytest.approx(1.6)


def test_calls_that_are_too_short_and_counters_that_stand_still() -> None:
    steady = Steady(0.0)
    with pytest.raises(NoCounter, match=r"a single call takes 1 ms, too short"):
        read_energy(steady, steady.call(1e-3), 1e-3, single=True, clock=steady.clock)
    with pytest.raises(NoCounter, match="stands still"):
        read_energy(steady, steady.call(1e-3), 1e-3, clock=steady.clock)


def test_bursts_are_no_longer_than_arrays_last() -> None:
    steady = Steady(80.0)
    bursts: list[int] = []

    def call(count: int) -> int:
        bursts.append(count)
        return steady.call(1e-3)(count)

    found = read_energy(steady, call, 1e-3, lasting=lambda calls: min(calls, 12), clock=steady.clock)
    assert set(bursts) == {12} and found.watts == pytest.approx(80)
    with pytest.raises(NoCounter, match="its arrays must be restored after 3 calls, or 3 ms, too short for an energy"):
        read_energy(steady, call, 1e-3, lasting=lambda calls: 3, clock=steady.clock)


# ---- NVML ----


def nvml(watts: float, steady: Steady, error: str = "") -> Any:
    class NVMLError(Exception):
        pass

    def energy(card: str) -> int:
        assert card == "card at 0000:01:00.0"
        if error:
            raise NVMLError(error)
        return round(1000 * watts * steady.now) + 123_456

    return SimpleNamespace(
        NVMLError=NVMLError, nvmlInit=lambda: None, nvmlDeviceGetTotalEnergyConsumption=energy,
        nvmlDeviceGetHandleByPciBusId=lambda bus: f"card at {bus}", nvmlDeviceGetHandleByIndex=lambda k: f"card {k}",
    )  # fmt: skip


def test_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = Steady(0.0)
    monkeypatch.setitem(sys.modules, "pynvml", nvml(300.0, steady))
    counter = Nvml("0000:01:00.0")
    steady.now += 2.0
    assert counter.joules() == pytest.approx(600)
    monkeypatch.setitem(sys.modules, "pynvml", nvml(300.0, steady, "Not Supported"))
    with pytest.raises(NoCounter, match="the GPU's energy cannot be read: Not Supported"):
        Nvml("0000:01:00.0")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoCounter, match="pip install nvidia-ml-py"):
        Nvml()


def test_a_measurement_on_a_gpu_says_why_it_has_no_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(FakeGpu):
        def energy_counter(self) -> Nvml:
            return Nvml("0000:01:00.0")

    monkeypatch.setitem(sys.modules, "pynvml", None)
    kernel = kernel_of(KERNEL)

    def effect(function: str, values: Any) -> None:
        values[1][...] = 2 * values[0]

    found = measure_gpu(kernel, {"n": 64}, GpuOptions(energy=True), driver=Counting(effect))
    assert "nvidia-ml-py" in why_missing(found.details) and measured_j(found.details) is None


def test_the_energy_of_an_execution_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card of 300 W, by the clock of this computer; the device's graph has a hundred executions."""
    import time

    class Counting(FakeGpu):
        def energy_counter(self) -> Any:
            return SimpleNamespace(name="a card", joules=lambda: 300 * time.perf_counter())

    def effect(function: str, values: Any) -> None:
        values[1][...] = 2 * values[0]

    monkeypatch.setitem(energy_counter.BURST_S, "gpu", 0.001)
    monkeypatch.setitem(energy_counter.MEASURED_S, "gpu", 0.01)
    found = measure_gpu(kernel_of(KERNEL), {"n": 64}, GpuOptions(energy=True), driver=Counting(effect))
    assert measured_w(found.details) == pytest.approx(300, rel=0.2)
    assert found.details["energy"]["calls"] % 100 == 0


# ---- the commands ----


@pytest.fixture
def kernel_file(tmp_path: Path) -> str:
    (tmp_path / "k.roof").write_text(KERNEL)
    return str(tmp_path / "k.roof")


def test_measure_says_why_there_is_no_energy(
    kernel_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(energy_counter, "POWERCAP", tmp_path / "none")
    assert run(["measure", kernel_file, "--set", "n=100", "--budget", "0.02", "--energy"]) == 0
    assert "no energy: this computer shows no energy counter of its processor" in capsys.readouterr().out


PROGRAM = "\nprogram whole(n):\n    run halves(n)\n"
HALVES = "kernel halves(n):\n    inout y: f64[n]\n    for i in range(n):\n        y[i] = 0.5 * y[i]\n"


@pytest.mark.parametrize("text", [HALVES, HALVES + PROGRAM], ids=["kernel", "program"])
def test_no_energy_is_read_of_calls_on_denormal_numbers(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a thousand halvings, numbers are denormal; they last a few milliseconds at most."""
    (tmp_path / "k.roof").write_text(text)
    zone(tmp_path, "0", "package-0", 0)
    monkeypatch.setattr(energy_counter, "POWERCAP", tmp_path)
    name = f"{tmp_path / 'k.roof'}:{'whole' if 'program' in text else 'halves'}"
    stored = tmp_path / "r.json"
    assert run(["measure", name, "--set", "n=100", "--budget", "0.05", "--energy", "-o", str(stored)]) == 0
    assert "no energy: its arrays must be restored after" in capsys.readouterr().out
    document = json.loads(stored.read_text())
    assert 1 < document["calls_per_repeat"] <= 1022


def test_measured_and_predicted_energies(
    kernel_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A counter of 40 W that advances with the clock of this computer."""
    import time

    folder = tmp_path / "powercap"
    folder.mkdir()
    place = zone(folder, "0", "package-0", 0)
    real = energy_counter._number
    monkeypatch.setattr(energy_counter, "POWERCAP", folder)
    monkeypatch.setitem(energy_counter.MEASURED_S, "cpu", 0.05)
    monkeypatch.setattr(
        energy_counter, "_number",
        lambda path: round(40e6 * time.perf_counter()) if path == place / "energy_uj" else real(path),
    )  # fmt: skip
    stored = str(tmp_path / "r.json")
    assert run(["measure", kernel_file, "--set", "n=100000", "--budget", "0.1", "--energy", "-o", stored]) == 0
    assert "RAPL: package-0" in capsys.readouterr().out
    details = json.loads(Path(stored).read_text())["details"]
    assert measured_w(details) == pytest.approx(40, rel=0.05)
    (tmp_path / "m.roof").write_text(
        "machine m:\n    peak f64 fma 10 GFLOP/s, energy 100 pJ/FLOP\n"
        "    memory DRAM 1 GiB, 10 GB/s, energy 500 pJ/B\n    constant_power 10 W\n"
    )
    line = ["validate", kernel_file, "--machine", str(tmp_path / "m.roof"), "--results", stored, "--energy"]
    run(line)
    out = capsys.readouterr().out
    assert "energy  " in out and "predicted" in out and " 40" in out
    run([*line, "--json"])
    document = json.loads(capsys.readouterr().out)["comparisons"][0]
    assert document["prediction"]["energy_j"] > 0
    assert document["measurement"]["details"]["energy"]["counter"] == "RAPL: package-0"
    svg = tmp_path / "power.svg"
    drawn = ["plot", "power", kernel_file, "--machine", str(tmp_path / "m.roof"), "--set", "n=100000"]
    assert run([*drawn, "--results", stored, "-o", str(svg)]) == 0
    assert "<!-- measured -->" in svg.read_text() and capsys.readouterr().err == ""
