"""Cores: one core's part of a machine, speed up to saturation, and published numbers of cores."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.incore.model import InCore, Step
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict import in_core_time
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import Options
from roofdsl.predict.scaling import one_core, scaling, shared_levels
from tests.predict.machines import machine
from tests.predict.test_ecm import CLOCK, FIVE_POINTS, SNB

CODE = Options(code=Code("stated"), accesses="compiled")


@pytest.mark.parametrize(("serial", "cycles", "cores"), [(SNB, 36.7, 3)])
def test_the_stencil_saturates_where_published(
    serial: str, cycles: float, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stengel et al., ICS 2015: {9.5 || 8 | 10 | 6 | 12.7} gives n_s = ceil(36.7 / 12.7) = 3 cores."""
    lines = 5998**2 / 8

    def published(*given: object) -> InCore:
        core, loads = (c * lines / CLOCK[serial] for c in (9.5, 8))
        return InCore("IACA, as published", (Step("", "", core, loads),), 0.0)

    monkeypatch.setattr(in_core_time, "_core", published)
    found = scaling(FIVE_POINTS, {"m": 6000, "n": 6000}, load_machine(serial), range(1, 9), CODE)
    assert found.saturation == cores and found.shared[0] == "DRAM"
    per_line = [float(t) * CLOCK[serial] / lines for t in found.times_s]
    assert per_line[0] == pytest.approx(cycles, rel=0.02)
    assert per_line[1] == pytest.approx(cycles / 2, rel=0.02)
    assert per_line[cores - 1 :] == pytest.approx([12.7] * (9 - cores), abs=0.05)


def eight(*more: str) -> Machine:
    return machine(
        "peak f64 fma 80 GFLOP/s",
        "cache L1 32 KiB, 800 GB/s, line 64 B, copies 8, write_allocate",
        "cache L2 1 MiB, 400 GB/s, line 64 B, copies 4, write_allocate",
        "cache L3 16 MiB, 300 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 100 GB/s",
        'ceiling "one core, DRAM" DRAM 20 GB/s',
        "units 8",
        *more,
    )


def test_one_core_of_eight() -> None:
    one = one_core(eight())
    assert shared_levels(eight()) == ("L2", "L3", "DRAM")
    assert [p.rate_per_s for p in one.peaks] == [10 * 10**9]
    assert [c.bandwidth_bytes_per_s for c in one.caches] == [
        100 * 10**9, 50 * 10**9, Fraction(300, 8) * 10**9,
    ]  # fmt: skip
    assert (one.units, one.main_memory.bandwidth_bytes_per_s) == (1, 20 * 10**9)
    assert one_core(load_machine(SNB)) == load_machine(SNB)


def test_launches_do_not_scale(kernel: Kernel = FIVE_POINTS) -> None:
    given = load_machine("haswell_e5_2695v3")
    alone = scaling(kernel, {"m": 40, "n": 40}, given, [1, 2, 4], CODE)
    expected = alone.single.expected
    assert expected is not None
    work = expected.expected_s - expected.launch_s
    assert alone.times_s[0] == work + expected.launch_s
    assert alone.times_s[1] == max(Fraction(work, 2), alone.shared[1]) + expected.launch_s


def test_a_shared_memory_is_five_times_as_fast_as_one_core_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All data from memory, at 20 GB/s for one core and 100 GB/s for all: five cores, and then no more."""
    monkeypatch.setattr(in_core_time, "_core", lambda *_: InCore("nothing", (Step("", "", 0.0, 0.0),), 0.0))
    found = scaling(FIVE_POINTS, {"m": 2000, "n": 2000}, eight("transfers overlap"), range(1, 9), CODE)
    assert found.saturation == 5
    assert [found.times_s[0] / t for t in found.times_s] == [1, 2, 3, 4, 5, 5, 5, 5]


def test_a_machine_of_many_cores_states_what_one_of_them_gets() -> None:
    with pytest.raises(CommandError, match="does not state what a single core gets from DRAM"):
        scaling(FIVE_POINTS, {"m": 40, "n": 40}, load_machine("skylake_gold_6148"), [1, 2], CODE)


def test_without_an_expected_time_there_is_a_reason() -> None:
    with pytest.raises(CommandError, match="states no instructions"):
        scaling(FIVE_POINTS, {"m": 40, "n": 40}, eight(), [1, 2], CODE)


def test_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "s.svg"
    line = ["plot", "scaling", "jacobi2d", "triad", "--set", "n=2000", "--machine", "haswell_e5_2695v3", "-o", str(out)]
    assert run([*line, "--cores", "6"]) == 0, capsys.readouterr().err
    assert out.stat().st_size > 5000
    assert run([*line, "--cores", "5000"]) == 2
    assert "too many" in capsys.readouterr().err
