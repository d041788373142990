"""`roofdsl sweep` as people run it: its tables and files, an interrupt in the middle, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError
from roofdsl.sweep import single_points
from tests.cli.conftest import ROOT, Run, roofdsl

GOLDEN = Path(__file__).parent / "golden"
GEMV = ("sweep", "gemv", "--machine", "v100_textbook")

__all__ = ["roofdsl"]


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "arguments"),
    {
        "rows": (*GEMV, "--machine", "v100_deck", "--set", "n=64..512:*2"),
        "tiles": ("sweep", "matmul_tiled", "--machine", "v100_textbook", "--set", "n=60..480:*2,b=7,12,20", "--per=n"),
        "caches": ("sweep", "transpose", "--machine", "v100_deck", "--set", "n=64", "--cache", "16KiB..64KiB:*2"),
        "program": ("sweep", "models/kernels/lstm.roof:lstm_forward", "--machine", "v100_time_paper", "--set",
                    "batch=16,sequence=8..32:*2,features=64,hidden=64,512"),
        "warm": (*GEMV[:3], "v100_deck", "--set", "n=256..1024:*2", "--warm"),
    }.items(),
)  # fmt: skip
def test_golden(name: str, arguments: tuple[str, ...], roofdsl: Run, golden: Callable[[Path, str], None]) -> None:
    done = roofdsl(*arguments, "--jobs", "1")
    assert done.returncode == 0
    golden(GOLDEN / f"{name}.txt", done.stdout + "".join(f"! {line}\n" for line in done.stderr.splitlines()))


@pytest.mark.parametrize(("heading", "column"), [
    ("rate", "flops_per_s"), ("I", "intensity"), ("W", "work_flops"), ("time", "time_s"), ("HBM", "HBM_bytes"),
])  # fmt: skip
def test_a_column_is_also_named_by_its_heading(heading: str, column: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for name in (heading, column):
        line = [*GEMV, "--set", "n=64..512:*2", "--best", name, "--pareto", f"{name},compute_s", "--json"]
        assert run(line) == 0
        document = json.loads(capsys.readouterr().out)
        found.append((document["best"], document["pareto"]))
    assert found[0] == found[1]
    assert heading in run_shown(capsys), "the heading is printed"


def run_shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The headings of the table of a sweep."""
    assert run([*GEMV, "--set", "n=64..512:*2"]) == 0
    return capsys.readouterr().out.splitlines()[2].split()


@pytest.mark.thorough
def test_files_hold_the_same(tmp_path: Path, roofdsl: Run) -> None:
    arguments = (*GEMV, "--set", "n=8..64:*2", "--json")
    done = roofdsl(*arguments, "-o", str(tmp_path / "t.csv"), "--plot", str(tmp_path / "t.svg"))
    document = json.loads(done.stdout)
    assert document["schema"] == "roofdsl.sweep/1" and document["points"] == 4
    columns = document["columns"]
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert list(rows[0]) == list(columns)
    for name, values in columns.items():
        assert [r[name] for r in rows] == [repr(v) if isinstance(v, float) else str(v) for v in values]
    roofdsl(*arguments, "-o", str(tmp_path / "t.json"))
    assert json.loads((tmp_path / "t.json").read_text())["columns"] == columns
    assert document["best"] == [{n: v[3] for n, v in columns.items()}]
    assert (tmp_path / "t.svg").read_text().startswith("<?xml")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.json", "t.svg"]
    one = json.loads(roofdsl("predict", "gemv", "--machine", "v100_textbook", "--set", "n=32", "--json").stdout)
    assert [columns[n][2] for n in ("time_s", "flops_per_s", "bound")] == [
        one[n] for n in ("time_s", "flops_per_s", "bound")
    ]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.thorough
def test_an_interrupted_sweep_goes_on(tmp_path: Path, roofdsl: Run) -> None:
    """Ctrl-C in the middle leaves a journal and no table; the same command then counts only what is left."""
    out, journal = tmp_path / "t.csv", tmp_path / "t.csv.journal"
    arguments = ["sweep", "gemv", "--machine", "v100_deck", "--set", "n=901..1051:+6", "--jobs", "1", "-o", str(out)]
    running = subprocess.Popen(
        [sys.executable, "-m", "roofdsl", *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not journal.exists() or journal.read_bytes().count(b"\n") < 4):
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130 and "continues from there" in said
    assert [p.name for p in tmp_path.iterdir()] == [journal.name]
    kept = journal.read_bytes().count(b"\n") - 1
    assert 3 <= kept < 26
    done = roofdsl(*arguments)
    assert done.returncode == 0 and not journal.exists()
    fresh = tmp_path / "fresh.csv"
    roofdsl(*arguments[:-1], str(fresh))
    assert out.read_text() == fresh.read_text() and out.read_text().count("\n") == 27


@pytest.mark.spread(4)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*GEMV, "--set", "n=8..4"), "ends before it begins"),
        ((*GEMV, "--set", "m=8"), "no parameter `m`"),
        ((*GEMV, "--set", "n=8", "--ceiling", "fast"), "no ceiling named"),
        ((*GEMV, "--set", "n=8", "--cache", "1MiB"), "has no cache"),
        ((*GEMV, "--set", "n=8", "--cache", "1"), "a size needs a unit"),
        ((*GEMV, "--set", "n=8", "--machine", "v100_txtbook"), "no shipped machine"),
        ((*GEMV, "--set", "n=8", "-o", "t.xlsx"), "not a csv, json or parquet"),
        ((*GEMV, "--set", "n=8", "-o", "/nowhere/t.csv"), "no directory"),
        ((*GEMV, "--set", "n=8,16", "--best", "speed"), "no column of numbers named `speed`"),
        ((*GEMV, "--set", "n=8,16", "--pareto", "time_s"), "not two columns"),
        ((*GEMV, "--set", "n=8,16", "--pareto", "tim,rate"), "did you mean `time`?"),
        ((*GEMV, "--set", "n=8", "--plot", "t.gif"), "is not an svg"),
        (("sweep", "lstm_add_bias", "--machine", "v100_deck", "--set", "batch=4"), "needs a number for hidden"),
        (("sweep", "gemv", "--machine", "v100_deck", "--set", "n=1..1000000", "--cache", "1MiB..70MiB:+1MiB"),
         "70,000,000 points"),
        (("sweep", "matmul", "--machine", "skylake_gold_6148", "--set", "n=1000..2000", "--most-counted", "10"),
         "no closed form"),
        (("sweep", "models/kernels/lstm.roof", "--machine", "v100_deck", "--set", "batch=8"), "several programs"),
        (("sweep", "llama3_8b_decode", "--machine", "h200", "--set", "b=8"), "no parameter `b`"),
        (("sweep", "models/kernels/stream.roof", "--machine", "v100_deck", "--set", "n=8"), "several kernels"),
        (("sweep", "matmul_tiled", "--machine", "v100_deck", "--set", "n=7,b=3"), "no point of the sweep meets"),
        ((*GEMV, "--set", "n=8", "--scheduler", "tcp://x:1", "--jobs", "2"), "choose one"),
    ],
)  # fmt: skip
def test_refused(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(list(arguments)) == 2
    told = capsys.readouterr().err
    assert message in told and "Traceback" not in told


COPY = """kernel copied({0}, {1}):
    in x: f64[{0}, {1}]
    out y: f64[{0}, {1}]
    for i in range({0}), j in range({1}):
        y[i, j] = x[i, j]
"""


def test_a_parameter_that_is_called_like_a_unit_is_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`n_s` and `row_bytes` were shown as `10 s` and `3 kB`, and curves over other parameters ignored `row_bytes`."""
    file, figure = tmp_path / "c.roof", tmp_path / "c.svg"
    file.write_text(COPY.format("n_s", "row_bytes"))
    sizes = ("--set", "n_s=16,32", "--set", "row_bytes=3000,4000", "--plot", str(figure), "--over", "n_s")
    assert run(["sweep", str(file), "--machine", "v100_textbook", *sizes]) == 0
    head, first = capsys.readouterr().out.splitlines()[2:4]
    assert head.split()[:2] == ["n_s", "row_bytes"] and first.split()[:2] == ["16", "3000"]
    assert "row_bytes = 3000" in figure.read_text() and "row_bytes = 4000" in figure.read_text()


@pytest.mark.parametrize("name", ["time_s", "intensity", "launches", "HBM_bytes", "cache_bytes", "how"])
def test_a_parameter_does_not_take_the_place_of_a_column(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The predicted times of a kernel with a parameter `time_s` stood where its values belong."""
    file = tmp_path / "c.roof"
    file.write_text(COPY.format("n", name))
    assert run(["sweep", str(file), "--machine", "v100_textbook", "--set", f"n=8,{name}=8,16"]) == 2
    assert f"parameter `{name}` has the name of another column" in capsys.readouterr().err


def test_numbers_that_shape_too_many_kernels_or_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each combination of `const` parameters is a kernel, or a program, to analyze."""
    file = tmp_path / "shaped.roof"
    file.write_text(
        "kernel k(n, const b):\n    inout a: f64[n]\n    for i in range(n):\n        a[i] = a[i] + 1 / b\n\n"
        "program p(n, const b, const c):\n    run k(n * c, b)\n"
    )
    for name, values, said in (
        ("k", "n=8,b=1..1001", "b shapes kernel k, and 1,001 combinations"),
        ("p", "n=8,b=1..100,c=1..100", "b and c shape program p, and 10,000 combinations"),
    ):
        assert run(["sweep", f"{file}:{name}", "--machine", "v100_deck", "--set", values]) == 2
        assert said in capsys.readouterr().err


def test_a_sweep_without_a_single_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every point says why it failed, and the message is about the points rather than about a missing column."""

    def fails(*args: Any) -> Any:
        raise CommandError("it takes too long")

    monkeypatch.setattr(single_points, "predict", fails)
    assert run(["sweep", "transpose", "--machine", "v100_deck", "--set", "n=1500,1501", "--jobs", "1"]) == 2
    told = capsys.readouterr()
    assert "n = 1500: it takes too long" in told.err and "n = 1501: it takes too long" in told.err
    assert "error: no point of the sweep could be predicted" in told.err and not told.out


@pytest.mark.spread(1)
@pytest.mark.parametrize("order", [("v100_deck", "skylake_gold_6148"), ("skylake_gold_6148", "v100_deck")])
def test_the_front_takes_the_memory_of_each_machine(order: tuple[str, ...], roofdsl: Run) -> None:
    """At each size, both machines move the same bytes to their memories, and the GPU takes a seventh of the time."""
    named = [word for name in order for word in ("--machine", name)]
    sizes = ("--set", "n=2048,4096", "--levels", "memory", "--per", "n", "--json", "--jobs", "1")
    front = json.loads(roofdsl("sweep", "gemv", *named, *sizes).stdout)["pareto"]
    assert [(row["machine"], row["n"]) for row in front] == [("v100_deck", 2048), ("v100_deck", 4096)]


def test_caches_of_one_machine_are_not_the_memory_of_another(roofdsl: Run) -> None:
    """Both move the same bytes from HBM. The one without a launch time is faster, and has no column for L2."""
    named = ("--machine", "v100_textbook", "--machine", "v100", "--set", "n=256", "--json", "--jobs", "1")
    found = json.loads(roofdsl("sweep", "gemv", *named).stdout)
    assert [row["machine"] for row in found["pareto"]] == ["v100_textbook"]


def test_a_program_of_collectives_launches_nothing(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "only.roof"
    path.write_text("program p(n = 8):\n    collective all_reduce Y: f32[n, n] among 4 by ring\n")
    of = (f"{path}:p", "--machine", "h100_sxm")
    for command in (("sweep", *of, "--set", "n=8,16"), ("threshold", *of, "--over", "n", "--formula")):
        done = roofdsl(*command)
        assert done.returncode == 2 and "program p launches nothing" in done.stderr
        assert "use `roofdsl collective`" in done.stderr
