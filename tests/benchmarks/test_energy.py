"""The benchmark of energy on made-up cards whose law is known, one of them within its power cap."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.energy import answer
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.energy_roofline import EnergyRoofline
from roofdsl.machine.find import load_machine

LAW = {"P0": 150.0, "byte": 60e-12, "operation": 5e-12}
BANDWIDTH, CAP, CLOCK = 680.0e9, 300.0, 1740.0


def card(name: str, cap: float | None) -> list[str]:
    """Rows of a stream with more and more operations per byte; under the cap the clock falls with the performance."""
    peak = float(load_machine("a40").peak("f32").per_s)
    of = EnergyRoofline(LAW["operation"], LAW["byte"], LAW["P0"], peak, BANDWIDTH, cap)
    free = EnergyRoofline(LAW["operation"], LAW["byte"], LAW["P0"], peak, BANDWIDTH)
    rows = []
    for k in range(40):
        x = 0.25 + 2.5 * k
        rate = 1 / float(of.seconds(x))
        clock = CLOCK * float(free.seconds(x)) / float(of.seconds(x))
        rows.append(f"a40,{name},{x},{rate / x / 1e9!r},{rate / 1e9!r},{clock!r},{float(of.watts(x))!r}")
    return rows


def test_laws_come_back(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    head = "device,card,flop_per_byte,gb_per_s,gflop_per_s,mhz,watt"
    path.write_text("\n".join([head, *card("0", None), *card("1", CAP)]))
    lines = answer(path).splitlines()
    wanted = "150.0 | 60.0 | 5.00 | 0.0 % | 0.0 % | 0.0 % |"
    assert [line for line in lines if line.startswith("| a40 ")][:3] == [
        f"| a40 | {name} | {count} | {wanted}" for name, count in (("all", 80), ("0", 40), ("1", 40))
    ]
    (capped,) = [line for line in lines if line.startswith("| a40 | 1 | 300 |")]
    error, without, clock, modeled, measured = (cell.strip() for cell in capped.split("|")[4:9])
    assert error == "0.0 %" and float(without.removesuffix(" %")) > 10
    assert clock == modeled == measured and 0.5 < float(clock) < 1


def test_what_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nothing to fit"):
        answer(None)
    (tmp_path / "x.csv").write_text("device,card\na40,0\n")
    with pytest.raises(CommandError, match="no column `flop_per_byte`"):
        answer(tmp_path / "x.csv")
