"""`predict` with its levels and occupancy, `plot hierarchy` and `plot trajectory`, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofdsl.cli.main import run

GPU = "tests/lang/good/multiprocessor.roof"


@pytest.mark.thorough
def test_levels_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "gemv", "--machine", "v100", "--set", "n=256", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [level["name"] for level in document["levels"]] == ["L1", "L2", "HBM"]
    assert document["levels"][0]["nearer"] == "registers"
    times = [level["time_s"] for level in document["levels"]]
    assert document["time_s"] == max([*times, document["compute_s"], document["launch_s"]])
    assert run(["predict", "gemv", "--machine", "v100", "--set", "n=256", "--json", "--levels", "memory"]) == 0
    alone = json.loads(capsys.readouterr().out)["levels"]
    assert alone == document["levels"][-1:]


def test_occupancy_in_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--threads", "128", "--registers", "186", "--in-flight", "8B"]
    assert run(["predict", "gemv", "--machine", GPU, "--set", "n=64", *asked]) == 0
    text = capsys.readouterr().out
    assert "8 of 64 warps per multiprocessor (2 blocks, limited by registers)" in text
    assert "at most 409.6 GB/s" in text
    assert run(["predict", "gemv", "--machine", GPU, "--set", "n=64", *asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["occupancy"]["warps"] == 8
    assert {found["level"]: found["binds"] for found in document["latency"]} == {"HBM": True, "L1": True}
    assert document["levels"][-1]["bandwidth_bytes_per_s"] == 409.6e9
    assert run(["predict", "gemv", "--machine", GPU, "--registers", "32"]) == 2
    assert "--threads" in capsys.readouterr().err


def test_the_mix_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "models/kernels/stencils.roof:jacobi2d", "--machine", "v100", "--set", "n=64"]) == 0
    text = capsys.readouterr().out
    assert "ceiling      3.9 TFLOP/s, 50 % of the f64 peak" in text
    assert "80 % add, 20 % mul" in text


@pytest.mark.thorough
def test_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "h.svg")
    assert run(["plot", "hierarchy", "gemv", "minplus", "--set", "n=64", "--machine", "v100", "-o", out]) == 0
    assert Path(out).read_text().startswith("<?xml")
    assert run(["plot", "trajectory", "gemv", "--at", "n=32", "--at", "n=64", "--machine", "v100", "-o", out]) == 0
    cited = ["gemv", "--set", "n=64", "--machine", "v100", "--points", "gpp_deck", "-o", out]
    assert run(["plot", "trajectory", *cited]) == 0
    assert run(["plot", "hierarchy", *cited]) == 0
    assert "v1.collapse3 to v9.block of gpp_deck left out: no bytes of any level" in capsys.readouterr().err
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hierarchy", "gemv", "--machine", "v100", "-o", "h.gif"], "not an svg, png or pdf"),
        (["hierarchy", "gemv", "--machine", "v100", "-o", "h.svg", "--type", "f65"], "no type `f65`"),
        (["hierarchy", "gemv", "--machine", "v100", "-o", "h.svg", "--registers", "3"], "--threads"),
        (["hierarchy", "transpose", "--set", "n=8", "--machine", "v100", "-o", "h.svg"], "none of these kernels"),
        (["trajectory", "gemv", "--machine", "v100", "-o", "h.svg", "--level", "L4"], "no level L4"),
        (["trajectory", "gemv", "--set", "n=8", "--machine", "v100", "-o", "h.svg"], "at least two points"),
        (["trajectory", "--points", "missing.json", "--machine", "v100", "-o", "h.svg"], "missing.json"),
    ],
)
def test_bad_plots(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", *arguments]) == 2
    assert message in capsys.readouterr().err
