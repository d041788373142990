"""`plot complexity`, `plot time`, `plot complexity-time`, `plot runtime` and `plot roofline --launches` as commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.cli.main import run

LSTM = ["lstm_forward", "lstm_backward", "--machine", "v100_time_paper", "--at", "batch=16", "--at", "batch=128"]


@pytest.mark.spread(1)
@pytest.mark.parametrize("kind", ["complexity", "complexity-time"])
def test_planes(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plane.svg"
    assert run(["plot", kind, *LSTM, "--points", "lstm_launches", "--type", "f16", "-o", str(out)]) == 0
    assert out.read_text().startswith("<?xml")
    assert "TensorFlow 1 of lstm_launches has no operations: only its launches are drawn" in capsys.readouterr().err


@pytest.mark.thorough
def test_runtime_and_launches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "bars.svg"
    assert run(["plot", "runtime", *LSTM, "-o", str(out)]) == 0
    assert out.stat().st_size > 5000
    wide = ["conv2d", "lstm_forward", "--machine", "v100_time_paper", "--launches", "-o", str(out)]
    assert run(["plot", "roofline", *wide]) == 0
    text = "the ceiling of conv2d, 1 launch (849.6 TFLOP/s) is above the roof and is not drawn"
    assert text in capsys.readouterr().err


@pytest.mark.thorough
def test_measured_times_of_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine, result = tmp_path / "m.roof", tmp_path / "r.json"
    machine.write_text("machine m:\n    peak f64 fma 50 GFLOP/s\n    memory RAM 1 GiB, 10 GB/s\n    launch 1 us\n")
    measured = ["gemv", "--at", "n=64", "--at", "n=128", "--repeats", "3", "--budget", "0.1", "-o", str(result)]
    assert run(["measure", *measured]) == 0
    both = ["gemv", "--machine", str(machine), "--at", "n=64", "--at", "n=128", "--results", str(result)]
    for kind in ("time", "complexity-time", "runtime"):
        out = tmp_path / f"{kind}.svg"
        assert run(["plot", kind, *both, "-o", str(out)]) == 0
        assert out.stat().st_size > 5000
    capsys.readouterr()
    assert run(["plot", "time", "--machine", str(machine), "--results", str(result), "-o", str(out)]) == 2
    assert "measured results are of kernels" in capsys.readouterr().err


@pytest.mark.parametrize(("line", "message"), [
    ("complexity --machine v100", "there is nothing to draw"),
    ("time gemv --machine v100 --set n=8 --level L3", "machine v100 has no level L3"),
    ("time gemv --machine v100 --set n=8 --type f63", "there is no type `f63`"),
    ("complexity-time gemv --machine v100 --set n=8 -o x.gif", "is not an svg, png or pdf file"),
    ("runtime --machine v100", "Missing argument 'FILE...'"),
])  # fmt: skip
def test_what_goes_wrong(line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plot", *line.split()]
    words += [] if "-o" in words else ["-o", str(tmp_path / "x.svg")]
    assert run(words) == 2
    assert message in capsys.readouterr().err
