"""What `roofdsl advise` prints, its JSON, and what it says to wrong questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from tests.cli.conftest import Run, Said

PRINTED = {
    "advise_triad": "triad --machine skylake_gold_6148 --set n=10000000",
    "advise_triad_json": "triad --machine skylake_gold_6148 --set n=10000000 --keep-rounding --json",
    "advise_seidel": "seidel_2d --machine skylake_gold_6148 --set n=100,tsteps=4 --all",
    "advise_lstm": "lstm_forward --machine v100",
    "advise_apply": "triad --machine skylake_gold_6148 --set n=10000000 --apply 2",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, prints: Said) -> None:
    prints(name, "advise " + PRINTED[name])


FAILS = {
    "advise_no_size": "matmul --machine v100",
    "advise_no_number": "gemv --machine v100 --apply 77",
    "advise_no_text": "lstm_forward --machine v100 --apply 1",
    "advise_several": "models/kernels/stream.roof --machine v100 --set n=100 --apply 1",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, fails: Said) -> None:
    fails(name, "advise " + FAILS[name])


@pytest.mark.thorough
def test_what_is_applied_is_predicted(roofdsl: Run, tmp_path: Path) -> None:
    """The printed kernel lies canonically, checks clean, and is predicted as the ranking says."""
    line = ("triad", "--machine", "skylake_gold_6148", "--set", "n=1000000")
    document = json.loads(roofdsl("advise", *line, "--json").stdout)
    assert document["schema"] == "roofdsl.advise/1"
    last = document["advice"][-1]
    path = tmp_path / "changed.roof"
    path.write_text(roofdsl("advise", *line, "--apply", str(last["rank"])).stdout)
    assert path.read_text() == last["text"]
    assert roofdsl("fmt", "--check", str(path)).returncode == 0
    assert roofdsl("check", "--deep", str(path)).returncode == 0
    then = json.loads(roofdsl("predict", str(path), *line[1:], "--json").stdout)
    assert last["exact"] and then["time_s"] == last["time_s"]
    now = json.loads(roofdsl("predict", *line, "--json").stdout)
    assert now["time_s"] == document["now"]["time_s"]
    assert last["gain"] == pytest.approx(now["time_s"] / then["time_s"])


@pytest.mark.parametrize(
    ("traffic", "said"),
    [("load_store", "1.6 GB, loads and stores together"), ("once", "800 MB, each datum once")],
)
def test_compulsory_traffic_is_told_as_it_is_counted(
    traffic: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An array of 800 MB that is loaded and stored."""
    file = tmp_path / "scale.roof"
    file.write_text("kernel scale(n):\n    inout a: f64[n]\n    for i in range(n):\n        a[i] = 2 * a[i]\n")
    line = ["advise", str(file), "--machine", "v100_textbook", "--set", "n=100000000", "--traffic", traffic]
    assert run(line) == 0
    assert f"all traffic of HBM is compulsory: {said}, at 900 GB/s" in capsys.readouterr().out


SOFTMAX = """
import numpy as np

def softmax(x: "f32[n, m]"):
    e = np.exp(x - x.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]
"""


def test_a_python_function_that_gains_by_fused_loops_says_so(roofdsl: Run, tmp_path: Path) -> None:
    """The time that it names is what `--fused` then gives; with `--fused`, or for a `.roof` file, nothing is said."""
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    line = ("advise", str(path), "--machine", "skylake_gold_6148", "--set", "n=4096,m=1024")
    plain, fused = roofdsl(*line), roofdsl(*line, "--fused")
    (said,) = (row for row in plain.stdout.splitlines() if "with fused loops" in row)
    (now,) = (row for row in fused.stdout.splitlines() if row.startswith("  now: "))
    assert said.split(": ")[1].split(",")[0] == now.split(": ")[1].split(",")[0]
    assert "with fused loops" not in fused.stdout
    assert "with fused loops" not in roofdsl("advise", "triad", *line[2:4], "--set", "n=1000").stdout
