"""Energy counters of this computer: RAPL of the processor, NVML of a GPU; and the energy of a call, from one of them.

RAPL (running average power limit) counts the energy of each processor package, and of its memory if the processor
measures that, in microjoules, about a thousand times a second; Linux shows it under /sys/class/powercap. NVML counts
the energy of a whole card in millijoules. Both count everything that the package or the card does, for all programs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Protocol

POWERCAP = Path("/sys/class/powercap")

BURST_S = {"cpu": 0.05, "gpu": 0.5}
"""The seconds of calls between two readings: many updates of the counter."""

MEASURED_S = {"cpu": 0.5, "gpu": 2.0}
"""The seconds of calls in total."""

SHORTEST_S = 5e-3
"""The shortest single call whose energy a counter can tell: a few updates."""


class NoCounter(Exception):
    """No energy can be read on this computer; the message is one sentence that says why."""


class EnergyCounter(Protocol):
    """A counter that only grows. name: what is counted."""

    name: str

    def joules(self) -> float:
        """Joules since the counter was opened. Raises NoCounter if it cannot be read any more."""
        ...


# ---- RAPL ----


@dataclass
class _Zone:
    """One counter of RAPL, which wraps around after `range_uj`."""

    path: Path
    range_uj: int
    last_uj: int


class Rapl:
    """All packages of this computer, and their memories if these are counted separately."""

    def __init__(self, folder: Path | None = None) -> None:
        """Raises NoCounter."""
        folder = POWERCAP if folder is None else folder
        names, self._zones = [], list[_Zone]()
        for zone in sorted(folder.glob("intel-rapl:*")):
            name = _text(zone / "name") or ""
            if not (name.startswith("package") or name == "dram"):
                continue  # parts of a package, or the platform with all of them
            reading, most = _number(zone / "energy_uj"), _number(zone / "max_energy_range_uj")
            if reading is None and (zone / "energy_uj").exists():
                only = "only root may, unless an administrator allows it"
                raise NoCounter(f"{zone / 'energy_uj'} cannot be read: {only}")
            if reading is None or not most:
                raise NoCounter(f"{zone} has no usable energy counter")
            names.append(name)
            self._zones.append(_Zone(zone / "energy_uj", most, reading))
        if not self._zones:
            raise NoCounter(f"this computer shows no energy counter of its processor (no intel-rapl in {folder})")
        self.name = f"RAPL: {', '.join(sorted(names))}"
        self._total_uj = 0

    def joules(self) -> float:
        for zone in self._zones:
            now = _number(zone.path)
            if now is None:
                raise NoCounter(f"{zone.path} can no longer be read")
            step = now - zone.last_uj
            self._total_uj += step if step >= 0 else step + zone.range_uj
            zone.last_uj = now
        return self._total_uj / 1e6


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.isdigit() and len(text) < 30 else None


# ---- NVML ----


class Nvml:
    """The card with this PCI bus id, or the first one, through nvidia-ml-py."""

    def __init__(self, bus_id: str | None = None) -> None:
        """Raises NoCounter."""
        try:
            import pynvml
        except ImportError:
            raise NoCounter("reading a GPU's energy needs nvidia-ml-py: `pip install nvidia-ml-py`") from None
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            if bus_id is None:
                self._card = pynvml.nvmlDeviceGetHandleByIndex(0)
            else:
                self._card = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)
            self._start_mj = pynvml.nvmlDeviceGetTotalEnergyConsumption(self._card)
        except pynvml.NVMLError as error:
            raise NoCounter(f"the GPU's energy cannot be read: {error}") from None
        self.name = "NVML: the whole card"

    def joules(self) -> float:
        try:
            now = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._card)
        except self._nvml.NVMLError as error:
            raise NoCounter(f"the GPU's energy can no longer be read: {error}") from None
        return float(now - self._start_mj) / 1000


# ---- the energy of a call ----


@dataclass(frozen=True)
class EnergyReading:
    """Joules that were counted during `calls` calls, which took `seconds` together; counter: what was counted."""

    joules: float
    seconds: float
    calls: int
    counter: str

    @property
    def watts(self) -> float:
        """The average power."""
        return self.joules / self.seconds

    def details(self) -> dict[str, Any]:
        """For the record of a measurement."""
        each = self.joules / self.calls
        found = {"energy_j": each, "average_power_w": self.watts, "calls": self.calls, "counter": self.counter}
        return {ENERGY: found}


ENERGY = "energy"
"""The key of a measurement's `details` with the energy of a call, or, under `missing`, with the reason why there is
none.
"""


def read_energy(
    counter: EnergyCounter,
    call: Callable[[int], int],
    call_s: float,
    *,
    backend: str = "cpu",
    prepare: Callable[[], object] = lambda: None,
    single: bool = False,
    lasting: Callable[[int], int] = lambda calls: calls,
    clock: Callable[[], float] = time.perf_counter,
) -> EnergyReading:
    """The energy of calls, in bursts between two readings of the counter. `call(n)` makes about n of them, and returns
    how many.

    call_s: the seconds of one. prepare: runs before each burst, and is not counted. single: every call must be prepared
    for. lasting: how many of the calls planned for a burst may follow each other before `prepare` has to run again.
    Raises NoCounter if the counter fails or stands still, or if a single call, or those that may follow each other, are
    too short for it.
    """
    if single and call_s < SHORTEST_S:
        raise NoCounter(f"a single call takes {1000 * call_s:.2g} ms, too short for an energy counter")
    planned = 1 if single else max(1, ceil(BURST_S[backend] / call_s))
    calls = lasting(planned) if planned > 1 else 1
    if calls < planned and calls * call_s < SHORTEST_S:
        raise NoCounter(
            f"its arrays must be restored after {calls} calls, or {1000 * calls * call_s:.2g} ms, too short for an "
            "energy counter"
        )
    joules = seconds = 0.0
    made = 0
    while seconds < MEASURED_S[backend]:
        prepare()
        start_j, start_s = counter.joules(), clock()
        made += call(calls)
        seconds += max(clock() - start_s, 1e-9)
        joules += counter.joules() - start_j
    if joules <= 0:
        raise NoCounter("the energy counter stands still")
    return EnergyReading(joules, seconds, made, counter.name)


def measured_j(details: Mapping[str, Any]) -> float | None:
    """The energy of a call in these details of a measurement, in joules; None if it was not measured."""
    return _measured(details, "energy_j")


def measured_w(details: Mapping[str, Any]) -> float | None:
    """The average power while the energy was read, in watts; None if it was not measured."""
    return _measured(details, "average_power_w")


def _measured(details: Mapping[str, Any], key: str) -> float | None:
    found = details.get(ENERGY)
    value = found.get(key) if isinstance(found, Mapping) else None
    return float(value) if isinstance(value, (int, float)) and 0 < value < float("inf") else None


def why_missing(details: Mapping[str, Any]) -> str:
    """Why the energy was not measured; empty if it was, or if nobody asked for it."""
    found = details.get(ENERGY)
    return str(found.get("missing", "")) if isinstance(found, Mapping) else ""


def details_of(read: Callable[[], EnergyReading]) -> dict[str, Any]:
    """What a record says about energy: the reading, or why there is none."""
    try:
        return read().details()
    except NoCounter as error:
        return {ENERGY: {"missing": str(error)}}
