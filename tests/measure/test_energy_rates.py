"""`characterize --energy`: a made-up processor whose powers follow a known law, and what goes into its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of
from roofdsl.measure import energy_counter, energy_rates
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.energy_counter import NoCounter
from roofdsl.measure.energy_rates import MachineEnergy, energy_or_reason, machine_energy
from roofdsl.measure.level_overlap import Place
from roofdsl.measure.machine_file import machine_text, to_machine
from roofdsl.measure.microkernels import polynomial
from roofdsl.tell.as_text import to_text
from roofdsl.tell.characterization import of_cpu
from tests.measure.made_up import characterized

LAW = {"f64": 30e-12, "f32": 14e-12, "L1": 2e-12, "L2": 10e-12, "DRAM": 300e-12}
CONSTANT_W = 35.0
PLACES = (Place("L1", 32 << 10, 400e9), Place("L2", 1 << 20, 100e9), Place("DRAM", 8 << 20, 20e9))
PEAK = {8: 40e9, 4: 80e9}
"""Operations per second by the bytes of a number."""


class MadeUp:
    """A processor that runs the loops in no time: clock and counter advance as its rates and powers say."""

    def __init__(self) -> None:
        self.name, self.now, self.spent_j = "made up", 0.0, 0.0

    def joules(self) -> float:
        return self.spent_j

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.spent_j += 12.0 * seconds

    def together(self, loop: Any, arguments: list[tuple[Any, ...]], count: int, team: Any) -> None:
        """One run of `polynomial(pairs)`, whose pairs are known from the loop."""
        array = arguments[0][0]
        operations = count * array.size * (2 * loop.pairs + 1) * len(arguments)
        moved = count * array.nbytes * len(arguments)
        level = next(k for k, place in enumerate(PLACES) if array.nbytes <= place.share_bytes)
        seconds = max(operations / PEAK[array.itemsize], *(moved / p.loads_per_s for p in PLACES[: level + 1]))
        self.now += seconds
        self.spent_j += CONSTANT_W * seconds + operations * LAW["f64" if array.itemsize == 8 else "f32"]
        self.spent_j += sum(moved * LAW[p.name] for p in PLACES[: level + 1])


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def processor(patch: pytest.MonkeyPatch) -> MadeUp:
    made = MadeUp()

    class Loop:
        def __init__(self, pairs: int) -> None:
            self.pairs = pairs

        def __call__(self, *arguments: object) -> None:
            pass

    patch.setattr(energy_rates, "polynomial", Loop)
    patch.setattr(energy_rates, "together", made.together)
    patch.setattr(energy_rates, "count_for", lambda *_: 70)
    patch.setattr(energy_rates, "clock", made.clock)
    return made


def measured(processor: MadeUp, types: tuple[str, ...] = ("f64", "f32")) -> MachineEnergy:
    blocks = [np.random.default_rng(1).uniform(0.5, 1, 1 << 19) for _ in range(2)]
    return machine_energy(
        processor, PLACES, blocks, [0, 1], types=types, tell=lambda part, what: None, sleep=processor.sleep
    )


@pytest.fixture(scope="module")
def found(processor: MadeUp) -> MachineEnergy:
    return measured(processor)


def test_the_law_comes_back(found: MachineEnergy) -> None:
    assert found.fit.constant_w == pytest.approx(CONSTANT_W, rel=1e-6)
    assert dict(found.fit.energies_j) == pytest.approx(LAW, rel=1e-4)
    assert found.idle_w == pytest.approx(12) and found.fit.greatest_error < 1e-6


def test_powers_that_say_nothing(processor: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_rates, "PAIRS", (2,))
    with pytest.raises(NoCounter, match="the powers that were read do not tell energies apart"):
        measured(processor, ("f64",))


def test_a_computer_without_a_counter_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_counter, "POWERCAP", tmp_path)
    found, why = energy_or_reason(PLACES, [], [0], quick=True, tell=lambda part, what: None)
    assert found is None and why.startswith("no energies: this computer shows no energy counter")


@pytest.mark.parametrize("pairs", [0, 3])
def test_the_loop_does_what_is_counted(pairs: int) -> None:
    """Each element through so many multiply-adds, and all of them added up."""
    a = np.array([1.0, 2.0, -0.5, 8.0])
    wanted = a.copy()
    for _ in range(pairs):
        wanted = wanted * 0.5 + 0.25
    assert polynomial(pairs)(a, 0.5, 0.25, 2) == pytest.approx(2 * wanted.sum())


def with_energies(found: MachineEnergy) -> Characterization:
    energies = {**found.fit.energies_j, "L3": 0.0}
    return replace(characterized(), energy=replace(found, fit=replace(found.fit, energies_j=energies)))


def test_the_file_states_them(found: MachineEnergy) -> None:
    stating = with_energies(found)
    machine = machine_of(load_file(Source("m.roof", machine_text(stating))), None)
    assert machine.constant_power_w is not None and float(machine.constant_power_w) == pytest.approx(CONSTANT_W)
    source = machine.source_of("constant_power")
    assert "idle 12 W" in source and "mean error 0.0%" in source
    stated = {p.type: float(p.energy_j) for p in machine.peaks if p.energy_j is not None}
    assert stated == pytest.approx({"f64": 30e-12, "f32": 14e-12})
    assert {c.name: c.energy_j_per_byte is not None for c in machine.caches} == {"L1": True, "L2": True, "L3": False}
    assert float(machine.main_memory.energy_j_per_byte or 0) == pytest.approx(300e-12)
    assert to_machine(stating.alone()).constant_power_w is None
    assert "energy" not in machine_text(characterized())


def test_the_summary_has_the_error_of_the_fit(found: MachineEnergy) -> None:
    shown = "\n".join(to_text(of_cpu(with_energies(found))))
    assert "constant power" in shown and "300 pJ/B" in shown and "30 pJ/FLOP" in shown
    assert "mean error 0.0%, greatest 0.0%, 24 loops; made up" in shown
