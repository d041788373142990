"""`plot ecm`: where its bars begin, its marks, and what it leaves out; expected rates and ceilings on the roofline."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.incore.core_ceilings import core_ceilings
from roofdsl.incore.lines_of_work import lines_of_work
from roofdsl.machine.find import load_machine
from roofdsl.plot.kinds.ecm import Bar, Panel, bars_of, draw_ecm
from roofdsl.plot.look import USUAL, Look
from roofdsl.plot.roofs import roofs_of
from roofdsl.predict.expected import Expected
from roofdsl.predict.expected_level_times import combined
from tests.plot.drawn import beyond, collisions
from tests.predict.machines import kernel_of

TIMES = {"L2": Fraction(4), "L3": Fraction(6), "DRAM": Fraction(5)}


def expected(overlap: Fraction | None, launch: int = 0) -> Expected:
    data = combined([Fraction(2), *TIMES.values()], overlap)
    whole = max(Fraction(3), data) + launch
    transfers = tuple(TIMES.items())
    return Expected(whole, "by hand", (), Fraction(3), Fraction(2), transfers, data, Fraction(launch), overlap)


def test_bars_begin_when_they_can() -> None:
    serial = {b.name: (round(b.start, 9), round(b.start + b.length, 9)) for b in bars_of(expected(Fraction(0)), 1.0)}
    assert serial == {
        "arithmetic": (0, 3), "loads, stores": (0, 2), "L2": (2, 6), "L3": (6, 12), "DRAM": (12, 17),
    }  # fmt: skip
    together = bars_of(expected(Fraction(1), launch=10), 2.0)
    assert [(b.name, b.start) for b in together[:2]] == [("call", 0.0), ("arithmetic", 20.0)]
    assert {round(b.start, 9) for b in together[1:]} == {20.0}


@pytest.mark.parametrize("overlap", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1), None])
def test_the_last_bar_ends_with_the_data(overlap: Fraction | None) -> None:
    found = expected(overlap)
    bars = [b for b in bars_of(found, 1.0) if b.name != "arithmetic"]
    assert max(b.start + b.length for b in bars) == pytest.approx(float(found.data_s))
    assert [b.start for b in bars] == sorted(b.start for b in bars)


def panels(count: int) -> list[Panel]:
    bars = tuple(Bar(name, 2.0 * k, 1.5 + k) for k, name in enumerate(("call", "arithmetic", "loads, stores", "L2")))
    return [
        Panel(f"kernel {k}: 1.2 us", bars, 11.0 + k, 5.0, (10.0, 11.5, 13.0) if k % 2 else None) for k in range(count)
    ]


@pytest.mark.spread(1)
@pytest.mark.parametrize("look", [USUAL, Look(font_scale=1.3, dark=True)])
@pytest.mark.parametrize("count", [1, 4])
def test_texts_neither_overlap_nor_leave_the_figure(count: int, look: Look) -> None:
    figure = draw_ecm(panels(count), "A processor\nassembly of numba", "cycles for a cache line of work", look=look)
    assert beyond(figure) == []
    assert collisions(figure) == []


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ecm.svg"
    line = ["plot", "ecm", "gemv", "--set", "n=100", "--machine", "haswell_e5_2695v3", "-o", str(out)]
    assert run(line) == 0
    assert out.stat().st_size > 5000
    capsys.readouterr()
    assert run([*line, "--math", "loose"]) == 2
    assert "`--math loose` is not known" in capsys.readouterr().err
    both = [*line[:3], "jacobi2d", *line[3:-1], str(tmp_path / "both.svg")]
    assert run(both) == 0
    assert "n=100" in (tmp_path / "both.svg").read_text()  # panels do not repeat what they share
    capsys.readouterr()
    assert run([*line[:6], "v100", "-o", str(out)]) == 2
    err = capsys.readouterr().err
    assert "v100 is a GPU" in err and "warning" not in err


@pytest.mark.thorough
def test_times_measured_otherwise_are_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A warm measurement beside bars of a cold launch would lie below the bound."""
    result = str(tmp_path / "gemv.json")
    assert run(["measure", "gemv", "--set", "n=20", "--repeats", "5", "--math", "strict", "-o", result]) == 0
    line = ["plot", "ecm", "gemv", "--set", "n=20", "--machine", "haswell_e5_2695v3", "--results", result]
    capsys.readouterr()
    assert run([*line, "-o", str(tmp_path / "cold.svg")]) == 0
    err = capsys.readouterr().err
    assert "was measured with warm caches, and the bars are for cold ones: give --warm" in err
    assert "was measured with strict math, and the bars are for relaxed math: give --math strict" in err
    assert run([*line, "--warm", "--math", "strict", "-o", str(tmp_path / "warm.svg")]) == 0
    assert "was measured" not in capsys.readouterr().err


def test_a_line_of_work() -> None:
    text = "kernel k(n):\n    in A: f32[n, n], x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n"
    text += "        y[i] = x[i]\n        for j in range(n):\n            y[i] += A[i, j] * x[j]\n"
    assert lines_of_work(kernel_of(text), {"n": 32}) == 32 * 32 / 8


def test_marks_at_expected_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "roof.svg"
    line = ["plot", "roofline", "gemv", "--set", "n=100", "--expected", "-o", str(out)]
    assert run([*line, "--machine", "haswell_e5_2695v3"]) == 0
    assert capsys.readouterr().err == ""
    assert run([*line, "--machine", "v100_deck"]) == 0
    assert "no mark at an expected rate: expected times need the" in capsys.readouterr().err


def test_ceilings_without_simd_and_ilp() -> None:
    """Haswell: 2 FMA of 4 doubles a cycle, latency 5; scalar 2 a cycle. Sandy Bridge: an add and a mul a cycle."""
    haswell = {c.name: c.per_s for c in core_ceilings(load_machine("haswell_e5_2695v3"), "f64")}
    assert haswell == pytest.approx({"f64 no SIMD": 2.3e9 * 2 * 2, "f64 no ILP": 2.3e9 * 2 * 4 / 5})
    sandy = {c.name: c.per_s for c in core_ceilings(load_machine("sandy_bridge_e5_2680"), "f32")}
    assert sandy == pytest.approx({"f32 no SIMD": 2.7e9 * 2, "f32 no ILP": 2.7e9 * 8 / 3})
    assert core_ceilings(load_machine("v100"), "f64") == ()
    names = [roof.name for roof in roofs_of(load_machine("haswell_e5_2695v3"), ["f64"]).roofs]
    assert "f64 no SIMD" in names and "f64 no ILP" in names
