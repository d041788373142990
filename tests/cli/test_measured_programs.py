"""Programs measured, validated and drawn as commands; what is timed takes milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.measure.measurement import load

TEXT = """
kernel scale(n):
    inout x: f64[n]
    for i in range(n):
        x[i] *= 0.5

kernel total(n):
    in x: f64[n]
    out s: f64
    s = 0
    for i in range(n):
        s += x[i]

program both(n, t = 2):
    repeat t:
        run scale(n)
    run total(n)

machine slow:
    peak f64 fma 1 kFLOP/s
    memory RAM 1 GiB, 1 kB/s
    launch 1 us
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "both.roof"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.thorough
def test_measured_compared_and_drawn(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result, machine = tmp_path / "r.json", f"{file}:slow"
    assert run(["measure", str(file), "--at", "n=50", "--at", "n=60", "--repeats", "3", "--budget", "0.05",
                "-o", str(result)]) == 0  # fmt: skip
    out = capsys.readouterr().out
    assert "both n=50, t=2" in out
    rows = [line.split() for line in out.splitlines()]
    assert [row[:4] for row in rows if "launches" not in row and row[:1] in (["scale"], ["total"])].count(
        ["scale", "n=50", "loops", "2"]
    ) == 1  # fmt: skip
    assert [m.kernel for m in load(result)] == ["both", "both"]
    again = ["validate", str(file), "--machine", machine, "--results", str(result)]
    assert run([*again, "--set", "n=50", "--json"]) == 1  # far above this roof
    (compared,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert compared["kernel"] == "both" and compared["verdict"] == "above the roof"
    assert {(p["kernel"], p["launches"], p["parameters"]["n"]) for p in compared["by_launch"]} == {
        ("scale", 2, 50), ("total", 1, 50),
    }  # fmt: skip
    assert compared["predicted_s"] == pytest.approx((2 * 2 * 8 * 50 + 8 * 50 + 8) / 1e3)  # bytes at 1 kB/s
    assert run([*again, "--plot", str(tmp_path / "o.svg")]) == 1
    assert "launches of both, grouped by kernel and size:" in capsys.readouterr().out
    for kind in ("runtime", "complexity", "time", "complexity-time"):
        drawn = tmp_path / f"{kind}.svg"
        given = ["plot", kind, str(file), "--machine", machine, "--set", "n=50", "-o", str(drawn)]
        assert run(given) == 0
        without = drawn.read_text()
        assert run([*given, "--results", str(result)]) == 0
        assert drawn.read_text() != without
    capsys.readouterr()
    file.write_text(TEXT.replace("0.5", "0.25"), encoding="utf-8")
    assert run(again) == 1
    assert "both was measured on" in capsys.readouterr().err


def test_what_a_program_does_not_have(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(file), "--set", "n=5,m=3"]) == 2
    assert "program both has no parameter `m`" in capsys.readouterr().err
    assert run(["measure", "layer_parallel", "--set", "new=8"]) == 2
    assert "has a collective (line 14), but only one device is measured" in capsys.readouterr().err
    assert run(["measure", str(file)]) == 2
    assert "program both needs a number for n" in capsys.readouterr().err
