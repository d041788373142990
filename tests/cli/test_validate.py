"""`roofdsl validate`: measured here and now, and from stored results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ADD = "kernel add(n):\n    out A: f64[n]\n    in B, C: f64[n]\n    for i in range(n):\n        A[i] = B[i] + C[i]\n"
SLOW = "machine slow:\n    peak f64 fma 1 kFLOP/s\n    memory RAM 1 GiB, 1 kB/s\n"
FAST = "machine fast:\n    peak f64 fma 1000 PFLOP/s\n    memory RAM 1 GiB, 1000000 TB/s\n"
QUICK = ("--set", "n=2000", "--budget", "0.02")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("add.roof", ADD), ("slow.roof", SLOW), ("fast.roof", FAST)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.thorough
def test_a_violation_is_told_with_its_causes(roofdsl: Run, files: Path) -> None:
    result = roofdsl("validate", str(files / "add.roof"), "--machine", str(files / "slow.roof"), *QUICK)
    assert result.returncode == 1, result.stderr
    assert "above the roof" in result.stdout
    assert "is faster than the model allows" in result.stdout


@pytest.mark.thorough
def test_the_tolerance_decides_what_is_slow(roofdsl: Run, files: Path) -> None:
    given = ("validate", str(files / "add.roof"), "--machine", str(files / "fast.roof"), *QUICK)
    strict = roofdsl(*given)
    assert strict.returncode == 1, strict.stderr
    assert "slower than predicted" in strict.stdout
    assert roofdsl(*given, "--tolerance", "1").returncode == 0


def test_stored_results_are_compared_again(roofdsl: Run, files: Path) -> None:
    kernel, results, figure = (str(files / n) for n in ("add.roof", "r.json", "o.svg"))
    first = roofdsl(
        "validate", kernel, "--machine", str(files / "slow.roof"), "--json", "-o", results, "--budget", "0.02",
        "--at", "n=1000", "--at", "n=2000", fresh=True,
    )  # fmt: skip
    again = roofdsl("validate", kernel, "--machine", str(files / "slow.roof"), "--json", "--results", results, "--plot",
                    figure)  # fmt: skip
    document = json.loads(first.stdout)
    assert document["schema"] == "roofdsl.validate/1"
    assert document == json.loads(again.stdout)
    rows = document["comparisons"]
    assert [r["parameters"] for r in rows] == [{"n": 1000}, {"n": 2000}]
    for row in rows:
        assert row["predicted_s"] == pytest.approx(24 * row["parameters"]["n"] / 1e3)
        assert row["ratio"] == pytest.approx(row["predicted_s"] / row["measured_s"])
        assert row["measured_s"] == row["measurement"]["median_s"]
    assert Path(figure).read_text(encoding="utf-8").startswith("<?xml")
    one = roofdsl("validate", kernel, "--machine", str(files / "slow.roof"), "--json", "--results", results, "--set",
                  "n=2000")  # fmt: skip
    assert [r["parameters"]["n"] for r in json.loads(one.stdout)["comparisons"]] == [2000]


@pytest.mark.thorough
def test_stale_results_are_said_to_be_stale(roofdsl: Run, files: Path) -> None:
    results = str(files / "r.json")
    roofdsl("validate", str(files / "add.roof"), "--machine", str(files / "slow.roof"), *QUICK, "-o", results)
    (files / "add.roof").write_text(ADD.replace("B[i] + C[i]", "B[i] + 2 * C[i]"), encoding="utf-8")
    later = roofdsl("validate", str(files / "add.roof"), "--machine", str(files / "slow.roof"), "--results", results)
    assert "its text has changed since" in later.stderr


@pytest.mark.thorough
def test_a_rate_of_other_work_is_refused(roofdsl: Run, files: Path) -> None:
    """Work and rate were changed together, and the text is the one that was measured."""
    add, slow, results = (str(files / name) for name in ("add.roof", "slow.roof", "r.json"))
    roofdsl("validate", add, "--machine", slow, *QUICK, "-o", results)
    document = json.loads(Path(results).read_text(encoding="utf-8"))
    changed = document | {"work_flops": 10 * document["work_flops"], "flops_per_s": 10 * document["flops_per_s"]}
    Path(results).write_text(json.dumps(changed), encoding="utf-8")
    result = roofdsl("validate", add, "--machine", slow, "--results", results)
    assert (result.returncode, result.stdout) == (2, "")
    assert "the result of add at n = 2000 says 20,000 operations, but it does 2,000" in result.stderr


@pytest.mark.thorough
def test_bad_input(roofdsl: Run, files: Path) -> None:
    add, slow = str(files / "add.roof"), str(files / "slow.roof")
    (files / "half.json").write_text('{"schema": "roofdsl.measurement/1", "kern', encoding="utf-8")
    for arguments, status, words in (
        (("--variant", "naive", "--set", "n=10"), 2, "there is no variant `naive` on the CPU"),
        (("--results", str(files / "none.json")), 2, "cannot be read"),
        (("--results", str(files / "half.json")), 1, "not a complete result file"),
        (("--set", "n=10", "--plot", str(files / "o.bmp")), 2, "end its name in .svg, .png or .pdf"),
        ((), 2, "n"),
    ):
        result = roofdsl("validate", add, "--machine", slow, *arguments)
        assert result.returncode == status, result.stderr
        assert words in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.thorough
def test_a_profile_is_set_beside_the_prediction(roofdsl: Run, tmp_path: Path) -> None:
    points = tmp_path / "points.json"
    assert roofdsl("import", "ncu", "tests/profiler/data/wide.csv", "-o", str(points)).returncode == 0
    given = ("validate", "daxpy", "--set", "n=1000000", "--machine", "v100", "--results", str(points))
    named = (*given, "--point", "daxpy=axpy")
    figure = tmp_path / "overlay.svg"
    result = roofdsl(*named, "--plot", str(figure))
    assert result.returncode == 1 and figure.stat().st_size > 1000
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["HBM", "24", "MB", "24", "MB", "1.00"] in rows
    assert "slower than predicted" in result.stdout
    assert roofdsl(*named, "--tolerance", "0.5").returncode == 0
    (found,) = json.loads(roofdsl(*named, "--json").stdout)["points"]
    assert [x["measured_over_predicted"] for x in found["levels"]] == [1.0, 1.0, 1.0]
    unnamed = roofdsl(*given)
    assert unnamed.returncode == 2 and '--point "daxpy=LABEL"' in unnamed.stderr
    assert roofdsl(*given[:-2], "--point", "daxpy=axpy").returncode == 2
    assert "not of the form" in roofdsl(*given, "--point", "daxpy").stderr
