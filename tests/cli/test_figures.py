"""Options that every figure has, and user text in figures, by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.cli.main import run

MATHTEXT = r"""machine m "a $\frac$ b":
    peak f64 7 TFLOP/s
    memory HBM 16 GiB, 900 GB/s
    ceiling "x $\input{/etc/passwd}$ y" f64 1 TFLOP/s
"""
PLOTS = {
    "roofline": "plot roofline gemv --set n=64",
    "hierarchy": "plot hierarchy gemv --set n=64",
    "trajectory": "plot trajectory gemv --at n=64 --at n=128",
    "complexity": "plot complexity gemv --set n=64",
    "runtime": "plot runtime gemv --set n=64",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", PLOTS)
def test_dollars_in_names_are_dollars(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine, out = tmp_path / "m.roof", tmp_path / "a.svg"
    machine.write_text(MATHTEXT)
    assert run([*PLOTS[kind].split(), "--machine", str(machine), "-o", str(out)]) == 0, capsys.readouterr().err
    assert out.stat().st_size > 5000


def test_letters_without_a_glyph_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "a.png")
    assert run([*PLOTS["roofline"].split(), "--machine", "v100", "-o", out, "--title", "x \U0001e900 $ y"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: no font on this computer has the letters \U0001e900")
    assert err.count("\n") == 1


def test_the_look_of_a_figure(tmp_path: Path) -> None:
    from matplotlib.image import imread

    out = tmp_path / "a.png"
    look = ["--size", "6x4", "--dark", "--font-scale", "1.2", "--xlim", "0.01:100", "--ylim", "1G:10T"]
    assert run([*PLOTS["roofline"].split(), "--machine", "v100", "-o", str(out), *look]) == 0
    pixels = imread(out)
    assert pixels.shape[:2] == (800, 1200)
    assert pixels[0, 0, :3].max() < 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "8"], "not a width and height in inches"),
        (["--size", "8000x5"], "2 to 60 inches"),
        (["--size", "2x2", "--font-scale", "4"], "too small for its axes"),
        (["--xlim", "5"], "not a pair of limits"),
        (["--xlim", "100:1"], "not below the second"),
        (["--xlim", "1:1e30"], "the second limit of `1:1e30` must be below 1e30"),
        (["--xlim", "0:1"], "logarithmic"),
        (["--ylim", "a:b"], "not a pair of limits"),
    ],
)
def test_looks_that_cannot_be(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.svg"
    assert run([*PLOTS["roofline"].split(), "--machine", "v100", "-o", str(out), *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


@pytest.mark.parametrize("kind", ["ecm", "runtime"])
def test_bar_charts_offer_no_limits_of_an_axis_without_numbers(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", kind, "gemv", "--machine", "v100", "--set", "n=64", "--ylim", "1:2", "-o", "a.svg"]) == 2
    assert "No such option" in capsys.readouterr().err
    assert run(["plot", kind, "--help"]) == 0
    assert "--xlim" in (told := capsys.readouterr().out) and "--ylim" not in told


def test_looks_are_of_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", "matmul", "--machine", "v100", "--set", "n=64", "--dark"]) == 2
    assert "add --plot" in capsys.readouterr().err


def test_points_beyond_the_limits_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "a.svg")
    assert run([*PLOTS["roofline"].split(), "--machine", "v100", "-o", out, "--xlim", "10:100"]) == 0
    assert "1 point lies outside the axis limits" in capsys.readouterr().err


def test_ceilings_of_other_operations_are_not_drawn(tmp_path: Path) -> None:
    from roofdsl.machine.find import load_machine
    from roofdsl.plot.roofline_points import Point
    from roofdsl.plot.roofs import roofs_of, with_ceilings

    path = tmp_path / "m.roof"
    lines = ["machine m:", "peak f64 fma 50 GFLOP/s", "memory RAM 16 GiB, 30 GB/s"]
    lines += ['ceiling "exp, f64" f64 special 1 GFLOP/s']
    lines += [f'ceiling "c{k}" RAM {rate} GB/s' for k, rate in enumerate((29, 28, 20, 19, 12, 5))]
    path.write_text("\n    ".join(lines) + "\n")
    roofs = roofs_of(load_machine(str(path)), ["f64"])
    plain, special = Point("k", 1.0), Point("k", 1.0, uses=frozenset({("f64", "special")}))
    for points, drawn in (([], False), ([plain], False), ([plain, special], True)):
        few = with_ceilings(roofs, "few", points)
        assert any("exp" in r.label for r in few.roofs) == drawn
        assert [s.bytes_per_s for s in few.slopes] == [30e9, 20e9, 12e9]
    assert with_ceilings(roofs, "all") == roofs
    assert not any(r.is_ceiling for r in with_ceilings(roofs, "none").roofs)
