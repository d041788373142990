"""`roofdsl validate --baseline`: stored results beside stored results, as in a project's own tests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from roofdsl.cli.main import run
from roofdsl.measure.measurement import load, save
from roofdsl.tell.schemas.commands import schema_of

ADD = "kernel add(n):\n    out A: f64[n]\n    in B, C: f64[n]\n    for i in range(n):\n        A[i] = B[i] + C[i]\n"
FAST = "machine fast:\n    peak f64 fma 1000 PFLOP/s\n    memory RAM 1 GiB, 1000000 TB/s\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """add.roof, two machines, results.json with made-up times, and slow.json with twice these times."""
    found = tmp_path_factory.mktemp("baseline")
    (found / "add.roof").write_text(ADD)
    (found / "fast.roof").write_text(FAST)
    (found / "slow.roof").write_text(FAST.replace("1000000 TB/s", "1 kB/s").replace("fast", "slow"))
    measured = found / "results.json"
    assert run(["measure", str(found / "add.roof"), "--set", "n=2000", "--budget", "0.05", "-o", str(measured)]) == 0
    (one,) = load(measured)
    times = 1e-5 * np.exp(0.02 * np.random.default_rng(1).standard_normal(20))
    for name, factor in (("results", 1), ("slow", 2)):
        save(found / f"{name}.json", [replace(one, details={}, times_s=tuple(map(float, factor * times)))])
    return found


def validate(folder: Path, results: str, *more: str, machine: str = "fast") -> int:
    given = [str(folder / "add.roof"), "--machine", str(folder / f"{machine}.roof"), "--results", str(folder / results)]
    return run(["validate", *given, *more])


def test_twice_the_time_fails_with_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = ("--junit", str(folder / "r.xml"), "--markdown", str(folder / "r.md"))
    baseline = ("--baseline", str(folder / "results.json"))
    assert validate(folder, "slow.json", *baseline, *reports) == 1
    assert "slower than its baseline" in capsys.readouterr().out
    root = ElementTree.parse(folder / "r.xml").getroot()
    assert root.get("failures") == "1"
    assert "100 % slower" in (folder / "r.md").read_text()
    assert validate(folder, "slow.json", *baseline, "--allow", "150%") == 0
    assert validate(folder, "results.json", *baseline, *reports, "--allow", "0") == 0
    assert ElementTree.parse(folder / "r.xml").getroot().get("failures") == "0"


def test_above_the_bound_fails(folder: Path) -> None:
    assert validate(folder, "results.json", "--baseline", str(folder / "results.json"), machine="slow") == 1


def test_json_of_validate_is_a_baseline_and_has_its_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    validate(folder, "results.json", "--json")
    (folder / "b.json").write_text(capsys.readouterr().out)
    assert validate(folder, "slow.json", "--baseline", str(folder / "b.json"), "--json") == 1
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("validate")).validate(document)
    assert [r["verdict"] for r in document["baseline"]["runs"]] == ["slower than its baseline"]
    assert validate(folder, "slow.json", "--baseline", str(folder / "b.json"), machine="slow") == 2
    assert "was compared with machine fast, and this is slow" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["x", "-1%", "nan", "inf", "", "5%%", "2000%"])
def test_shares_are_numbers(folder: Path, share: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(folder, "slow.json", "--baseline", str(folder / "results.json"), "--allow", share) == 2
    assert "is not a share such as 5% or 0.05" in capsys.readouterr().err


def test_another_processor_is_refused_before_anything_is_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = load(folder / "results.json")
    save(folder / "other.json", [replace(one, device={**one.device, "name": "Z80"})])
    monkeypatch.setattr("roofdsl.cli.validate.measure_settled", None)
    given = ["validate", str(folder / "add.roof"), "--machine", str(folder / "fast.roof"), "--set", "n=2000"]
    assert run([*given, "--baseline", str(folder / "other.json")]) == 2
    assert "was measured on Z80, but this computer has" in capsys.readouterr().err


def test_a_run_is_measured_and_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["validate", str(folder / "add.roof"), "--machine", str(folder / "fast.roof"), "--set", "n=2000"]
    status = run([*given, "--budget", "0.05", "--baseline", str(folder / "results.json"), "--allow", "1000%"])
    assert status == 0, capsys.readouterr()
    assert "baseline" in capsys.readouterr().out


def test_files_are_looked_at_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(folder, "slow.json", "--baseline", str(folder / "none.json")) == 2
    assert "none.json" in capsys.readouterr().err
    assert validate(folder, "slow.json", "--junit", str(folder / "no" / "where.xml")) == 2
    assert "where.xml" in capsys.readouterr().err
