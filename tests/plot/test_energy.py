"""`plot energy` and `plot power`: the curves' data, points predicted and measured, and texts that do not overlap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from matplotlib.path import Path as Polygon

from roofdsl.cli.main import run
from roofdsl.machine.energy_roofline import EnergyRoofline, energy_roofline
from roofdsl.machine.find import load_machine
from roofdsl.measure.measurement import save
from roofdsl.plot.energy_plane import Arch, Quantity, Spot, draw_energy
from roofdsl.plot.look import USUAL, Look
from tests.measure.examples import EXAMPLE
from tests.plot.drawn import beyond, collisions, outlines

FREE = EnergyRoofline(100e-12, 500e-12, 120.0, 1.5e12, 190e9)
CAPPED = EnergyRoofline(100e-12, 500e-12, 120.0, 1.5e12, 190e9, 244.0)
HALF_AS_FAST = EnergyRoofline(210e-12, 500e-12, 120.0, 0.2e12, 190e9)
SERIES: dict[str, list[Arch]] = {
    "one": [Arch("f32", "FLOP", FREE)],
    "capped": [Arch("f32", "FLOP", CAPPED)],
    "two": [Arch("f32", "FLOP", FREE), Arch("f64", "FLOP", HALF_AS_FAST)],
}


def spots(count: int, arch: Arch, quantity: Quantity) -> list[Spot]:
    dice, found = Random(count), []
    for k in range(count):
        x = 10 ** dice.uniform(-1, 2.5)
        found.append(Spot(f"kernel_{k}", x, arch.value(quantity, x) * dice.choice((1, 0.8)), is_measured=k % 3 == 2))
    return found


@pytest.mark.spread(1, 8)
@pytest.mark.parametrize("count", [0, 5, 20])
@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("quantity", ["efficiency", "power"])
def test_texts_neither_overlap_nor_leave_the_figure(quantity: Quantity, series: str, count: int) -> None:
    look = (USUAL, Look(font_scale=1.3, dark=True), Look(size_in=(11, 5.5)))[(count + len(series)) % 3]
    arches = SERIES[series]
    figure = draw_energy(quantity, arches, spots(count, arches[0], quantity), "A machine", look=look)
    assert collisions(figure) == []
    assert beyond(figure) == []


@pytest.mark.thorough
def test_names_are_shortened() -> None:
    long = [Spot(f"kernel_{k} with a name {'and more ' * 20}", 0.1 * k + 0.1, 1e9) for k in range(20)]
    figure = draw_energy("efficiency", SERIES["one"], long)
    assert beyond(figure) == [] and len(figure.axes[0].get_legend().get_texts()) == 21


def longest(figure: Any) -> tuple[list[float], list[float]]:
    """The data of the curve."""
    line = max(figure.axes[0].lines, key=lambda line: len(line.get_xdata()))
    return list(line.get_xdata()), list(line.get_ydata())


def test_the_arch_is_the_sum_of_energies() -> None:
    xs, ys = longest(draw_energy("efficiency", SERIES["one"]))
    for x, y in zip(xs, ys, strict=True):
        seconds = max(1 / 1.5e12, 1 / (190e9 * x))
        assert y == pytest.approx(1 / (100e-12 + 500e-12 / x + 120 * seconds))


def test_power_ends_at_the_cap() -> None:
    figure = draw_energy("power", SERIES["capped"])
    xs, ys = longest(figure)
    for x, y in zip(xs, ys, strict=True):
        free = max(1 / 1.5e12, 1 / (190e9 * x))
        dynamic = 100e-12 + 500e-12 / x
        assert y == pytest.approx(min(244, 120 + dynamic / free))
    shown = [text for text, _ in outlines(figure)]
    assert "power cap 244 W" in shown and "constant power 120 W" in shown
    assert max(longest(draw_energy("power", SERIES["one"]))[1]) > 244


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "points.csv"
    table.write_text("card,flop_per_byte,gflop_per_s,watt\n0,0.5,80,230\n0,4,190,200\n")
    on = ["triad", "--machine", "gtx_580", "--set", "n=1e6", "--points", str(table)]
    for kind, point in (("energy", "mine=1@0.5 GFLOP/J"), ("power", "mine=1@230 W")):
        svg = tmp_path / f"{kind}.svg"
        assert run(["plot", kind, *on, "--measured", point, "-o", str(svg)]) == 0, capsys.readouterr().err
        text = svg.read_text()
        for label in ("triad n=1,000,000", "mine", "measured", "predicted"):
            assert f"<!-- {label} -->" in text
    assert run(["plot", "energy", "--machine", "v100", "-o", str(tmp_path / "no.svg")]) == 2
    assert "v100 does not state its constant power" in capsys.readouterr().err
    for option, value, message in (
        ("--measured", "mine", "is not of the form LABEL=I@EFFICIENCY"),
        ("--measured", "mine=1@5 W", "is not an efficiency"),
        ("--measured", "mine=x@5 GFLOP/J", "`x` is not an intensity"),
        ("--measured", "mine=0@5 GFLOP/J", "above 0 and below 1e12 operations per byte, and `0` is not"),
        ("--measured", "mine=1e12@5 GFLOP/J", "below 1e12 operations per byte, and `1e12` is not"),
        ("--points", str(tmp_path / "none.csv"), "cannot be read"),
    ):
        assert run(["plot", "energy", "--machine", "gtx_580", option, value, "-o", str(tmp_path / "no.svg")]) == 2
        assert message in capsys.readouterr().err
    for row, message in (
        ("1,2,-3", "line 2: `watt` must be above 0 and below 1e9"),
        ("1,1e15,3", "line 2: `gflop_per_s` must be above 0 and below 1e15"),
        ("nan,2,3", "line 2: `flop_per_byte` must be above 0 and below 1e12"),
    ):
        table.write_text(f"flop_per_byte,gflop_per_s,watt\n{row}\n")
        line = ["plot", "power", "--machine", "gtx_580", "--points", str(table), "-o", str(tmp_path / "no.svg")]
        assert run(line) == 2
        assert message in capsys.readouterr().err
    assert run(["plot", "energy", "--machine", "gh200_96", "--type", "f16", "-o", str(tmp_path / "no.svg")]) == 2


def test_results_that_are_left_out_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a measured energy or power, and of a kernel that moves data but has no operations."""
    stored, svg = tmp_path / "r.json", tmp_path / "e.svg"
    energy, power = {"energy": {"energy_j": 1e-4}}, {"energy": {"average_power_w": 50.0}}
    for kind, name, details, why in (
        ("energy", "triad", energy, ""),
        ("power", "triad", power, ""),
        ("energy", "triad", power, "the result of triad n=1,000 has no measured energy"),
        ("power", "triad", energy, "the result of triad n=1,000 has no measured power"),
        ("energy", "copy", energy, "the result of copy n=1,000 left out: it has no operations, or moves nothing"),
    ):
        save(stored, [replace(EXAMPLE, kernel=name, work=2000 if name == "triad" else 0, details=details)])
        line = ["plot", kind, name, "--machine", "gtx_580", "--set", "n=1000", "--results", str(stored), "-o", str(svg)]
        assert run(line) == 0
        told = capsys.readouterr().err
        assert ("the result of" in told, why in told) == (bool(why), True), told
        assert ("<!-- measured -->" in svg.read_text()) == (not why)


@pytest.mark.parametrize("types", [("f32",), ("f64",), ("f32", "f64")])
@pytest.mark.parametrize("machine", ["gtx_580", "core_i7_950"])
def test_the_name_of_the_roofline_of_time_is_clear_of_the_arches(machine: str, types: tuple[str, ...]) -> None:
    """On these machines, it rises along the arches."""
    figure = draw_energy("efficiency", [Arch(t, "FLOP", energy_roofline(load_machine(machine), t)) for t in types])
    (corners,) = [corners for text, corners in outlines(figure) if text == "roofline of time, scaled"]
    axes = figure.axes[0]
    arches = [line for line in axes.lines if len(line.get_xdata()) > 100]
    assert len(arches) == len(types)
    for line in arches:
        assert not Polygon(corners).contains_points(axes.transData.transform(line.get_xydata())).any()
