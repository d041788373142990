"""`roofdsl demo` on a machine that other programs disturb: made-up characterizations and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import roofdsl.cli.demo as command
from roofdsl.counts.work_at import work_at
from roofdsl.loops.model import Kernel
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.measurement import OTHERS, Measurement, load
from roofdsl.validate.run import How, Run
from tests.measure.examples import EXAMPLE
from tests.measure.made_up import characterized
from tests.measure.test_trust import NOISY, scaled, with_peak

BUSY = "other programs took 1.0 of 2 cores"
GOOD = characterized(cores=1)
BAD = replace(with_peak(GOOD, ("f64", "fma"), scaled(0.2, 0.2, NOISY)), disturbed=BUSY)


class Computer:
    """Characterizations one after the other, and runs that take `factor` of the predicted time while others take so
    many cores; the factors are used up one a run, then 1.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.path, self.waits, self.runs = path, 0, []
        self.machines: Iterator[Characterization] = iter(())
        self.factors: Iterator[tuple[float, float]] = iter(())
        cpu = "roofdsl.measure.characterize_cpu.characterize_cpu"
        monkeypatch.setattr(cpu, lambda quick, cores, tell: next(self.machines))
        monkeypatch.setattr("roofdsl.validate.run.measure_run", self.measure)
        monkeypatch.setattr(command, "wait_until_calm", self.wait)

    def wait(self) -> bool:
        self.waits += 1
        return True

    def measure(self, run: Run, how: How, say: object) -> Measurement:
        assert isinstance(run.kernel, Kernel)
        self.runs.append(run.kernel.name)
        seconds = float(command.compare_all([run.kernel], [self.taking(run, 1.0, 0.0)], self.machine)[0].bound_s)
        factor, others = next(self.factors, (1.0, 0.0))
        return self.taking(run, seconds * factor, others)

    @property
    def machine(self) -> command.Machine:
        return command.load_machine(str(self.path / "machine.roof"))

    def taking(self, run: Run, seconds: float, others: float) -> Measurement:
        assert isinstance(run.kernel, Kernel)
        sizes = (*run.kernel.constants, *run.sizes.items())
        return replace(
            EXAMPLE, kernel=run.kernel.name, parameters=sizes, backend="cpu", variant="loops", state="cold",
            times_s=(seconds,), work=work_at(run.kernel, dict(run.sizes)).total, details={OTHERS: others}, warnings=(),
        )  # fmt: skip

    def demo(self) -> Result:
        return CliRunner().invoke(command.demo, ["-o", str(self.path), "--backend", "cpu"], standalone_mode=False)


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Computer:
    monkeypatch.setattr(command, "KERNELS", (("vector_add", {"n": 10**6}, {}), ("gemv", {"n": 1000}, {})))
    return Computer(monkeypatch, tmp_path)


def test_a_calm_machine(computer: Computer) -> None:
    computer.machines = iter((GOOD,))
    done = computer.demo()
    assert done.exit_code == 0 and "inconclusive" not in done.output
    assert (computer.runs, computer.waits) == (["vector_add", "gemv"], 0)


def test_what_others_slow_down_is_measured_again_at_the_end(computer: Computer) -> None:
    computer.machines, computer.factors = iter((GOOD,)), iter(((3.0, 0.9),))
    done = computer.demo()
    assert computer.runs == ["vector_add", "gemv", "vector_add"] and computer.waits == 1
    assert "inconclusive" not in done.output
    assert [m.details[OTHERS] for m in load(computer.path / "results.json")] == [0.0, 0.0]


@pytest.mark.thorough
def test_what_stays_disturbed_is_inconclusive(computer: Computer) -> None:
    computer.machines, computer.factors = iter((GOOD,)), iter(((3.0, 0.9), (1.0, 0.0), (3.0, 0.9), (2.0, 0.9)))
    done = computer.demo()
    assert computer.runs == ["vector_add", "gemv", "vector_add", "vector_add"]
    assert "vector_add n=1000000: inconclusive: other programs took 0.9 of" in done.output
    assert "run the demo again when no other programs are running" in done.output and done.exit_code == 0


def test_a_machine_too_noisy_is_characterized_again(computer: Computer) -> None:
    computer.machines = iter((BAD, GOOD))
    done = computer.demo()
    assert computer.waits == 1 and "in doubt" not in done.output
    assert float(computer.machine.rate("f64", "fma").per_s) == 50e9


def test_a_machine_that_others_took_from_is_in_doubt_though_its_numbers_are_calm(computer: Computer) -> None:
    computer.machines = iter((replace(GOOD, disturbed=BUSY), replace(GOOD, disturbed=BUSY)))
    assert f"the machine's rates are doubtful: {BUSY}" in computer.demo().output


@pytest.mark.thorough
def test_a_machine_that_stays_noisy_has_no_roof_to_be_above(computer: Computer) -> None:
    computer.machines, computer.factors = iter((BAD, BAD)), iter([(0.5, 0.0)] * 6)
    done = computer.demo()
    assert f"gemv n=1000: inconclusive: when the machine was measured, {BUSY}" in done.output
    assert f"the machine's rates are doubtful: {BUSY}" in done.output and "above the roof" not in done.output
