"""Files as other systems write them, disks that are full, outputs that are no files, an interrupt while writing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.lang.units import UnitError, parse_size, parse_time
from roofdsl.loops.load import decode, load_file
from roofdsl.machine.find import shipped_names
from roofdsl.measure.atomic import write_whole
from roofdsl.measure.results import parse as parse_results
from roofdsl.profiler.points import parse_points
from roofdsl.profiler.tables import parse as parse_table
from roofdsl.profiler.tables import read as read_table
from roofdsl.sweep.ranges import parse_ranges
from tests.cli.conftest import ROOT

GEMV = shipped_names("kernels")["gemv"]
FULL = Path("/dev/full")
PREDICT = ("--machine", "v100_deck", "--set", "n=64")


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + GEMV.read_bytes(),
        GEMV.read_bytes().replace(b"\n", b"\r\n"),
        GEMV.read_bytes().replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + GEMV.read_bytes().replace(b"\n", b"\r\n").rstrip(),
    ],
    ids=["byte order mark", "windows", "old mac", "all of windows"],
)
def test_texts_of_other_systems_mean_the_same(data: bytes, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "gemv.roof").write_bytes(data)
    assert run(["predict", str(tmp_path / "gemv.roof"), *PREDICT]) == 0
    told = capsys.readouterr().out
    assert run(["predict", str(GEMV), *PREDICT]) == 0
    assert told == capsys.readouterr().out


def test_utf16_is_named() -> None:
    for order in ("utf-16", "utf-16-le", "utf-16-be"):
        data = ("" if order == "utf-16" else "\ufeff").encode(order) + "kernel f(n):\n".encode(order)
        with pytest.raises(InputError, match="UTF-16"):
            decode(data, "f.roof")


def test_a_report_that_powershell_redirected(tmp_path: Path) -> None:
    """`ncu --csv > report.csv` is UTF-16 there, with \\r\\n."""
    original = ROOT / "tests" / "profiler" / "data" / "wide.csv"
    (tmp_path / "r.csv").write_bytes(original.read_text("utf-8").replace("\n", "\r\n").encode("utf-16"))
    assert read_table(tmp_path / "r.csv") == read_table(original)


# ---- writing ----


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["models", "sweep gemv --machine v100_deck --set n=64,128"])
def test_a_full_disk_behind_standard_output(command: str) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "roofdsl", *command.split()],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_behind_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    svg = tmp_path / "f.svg"
    svg.symlink_to(FULL)
    for arguments in (
        ["emit", "gemv", "--to", "c", "-o", str(FULL)],
        ["plot", "roofline", "gemv", *PREDICT, "-o", str(svg)],
    ):
        assert run(arguments) == 2
        assert "No space left on device" in capsys.readouterr().err
    assert not FULL.is_file()


def test_outputs_that_are_no_files(tmp_path: Path) -> None:
    """A pipe is written to, not replaced; a link's file is replaced, not the link; a folder is refused."""
    read, write = os.pipe()
    write_whole(Path(f"/dev/fd/{write}"), "whole") if Path("/dev/fd").exists() else os.write(write, b"whole")
    assert os.read(read, 10) == b"whole"
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    with pytest.raises(CommandError, match="directory"):
        write_whole(tmp_path, "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize("writer", ["fmt", "emit", "plot", "sweep"])
def test_an_interrupt_while_writing_leaves_the_old_file(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C as the new content reaches the disk: the old file is there, whole, and nothing else."""
    path = tmp_path / {"fmt": "f.roof", "emit": "f.c", "plot": "f.svg", "sweep": "f.csv"}[writer]
    old = "kernel   f(n):\n    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i]\n"
    path.write_text(old)

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    arguments = {
        "fmt": ["fmt", str(path)],
        "emit": ["emit", "gemv", "--to", "c", "-o", str(path)],
        "plot": ["plot", "roofline", "gemv", *PREDICT, "-o", str(path)],
        "sweep": ["sweep", "gemv", "--machine", "v100_textbook", "--set", "n=64", "-o", str(path)],
    }[writer]
    monkeypatch.setattr(os, "fsync", interrupted)
    assert run(arguments) == 130
    assert path.read_text() == old and list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    assert run(arguments) == 0 and path.read_text() != old


# ---- readers ----

SENSIBLE = st.text(st.characters(codec="utf-8"), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | SENSIBLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SENSIBLE, inner, max_size=4),
    max_leaves=12,
)
RESULT = {
    "schema": st.just("roofdsl.measurement/1") | JSON,
    "kernel": st.just("gemv") | JSON,
    "parameters": st.just({"n": 4}) | JSON,
    "times_s": st.just([1.0, 2.0]) | JSON,
    "kernels": JSON,
    "device": st.just({"kind": "cpu"}) | JSON,
    "software": JSON,
    "when": SENSIBLE | JSON,
    "verified": st.just({"against": "numpy", "max_error": 0.0}) | JSON,
}
POINTS = {"schema": st.just("roofdsl.points/1") | JSON, "origin": SENSIBLE | JSON, "points": JSON, "kind": JSON}


@settings(max_examples=60, deadline=None)
@given(st.one_of(SENSIBLE, JSON.map(json.dumps), st.fixed_dictionaries({}, optional=RESULT).map(json.dumps)))
def test_result_files(text: str) -> None:
    """Whatever stands in a result file, it is read or refused with a place."""
    try:
        parse_results(Source("r.json", text))
    except InputError as refused:
        assert refused.diagnostics and "r.json:" in str(refused)


@settings(max_examples=60, deadline=None)
@given(st.one_of(SENSIBLE, JSON.map(json.dumps), st.fixed_dictionaries({}, optional=POINTS).map(json.dumps)))
def test_documents_of_points(text: str) -> None:
    try:
        parse_points(Source("p.json", text))
    except InputError as refused:
        assert refused.diagnostics and "p.json:" in str(refused)


CELLS = st.sampled_from(
    ["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value", "gpu__time_duration.sum", "ns", "1,234", "n/a",
     "", '"', "==PROF==", "Duration", "Invocations", "Avg", "1e999", "-5", "byte", "dram__bytes.sum", "Calls", "Time",
     "\x00"]
) | SENSIBLE  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=6).map(",".join), max_size=6).map("\n".join))
def test_reports_of_profilers(text: str) -> None:
    try:
        parse_table(Source("r.csv", text))
    except InputError as refused:
        assert refused.diagnostics and "r.csv:" in str(refused)


MACHINE = Path(ROOT / "models" / "machines" / "v100.roof").read_text("utf-8")[:2500]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(MACHINE)), st.integers(0, 40), SENSIBLE)
def test_machine_files(place: int, cut: int, put: str) -> None:
    """A machine file with something cut out of it and something put in."""
    try:
        load_file(Source("m.roof", MACHINE[:place] + put + MACHINE[place + cut :]))
    except InputError as refused:
        assert refused.diagnostics and "m.roof:" in str(refused)
    except CommandError as refused:  # `use` of a file that is not there
        assert "use" in MACHINE or "use" in put or refused.message


WORDS = st.text("0123456789.,_eE+-*/: KMGTiBsunFLOPhz=n..x", max_size=30) | SENSIBLE


@settings(max_examples=200, deadline=None)
@given(WORDS)
def test_quantities_and_ranges(text: str) -> None:
    for parse in (parse_size, parse_time):
        try:
            assert parse(text) >= 0
        except UnitError as refused:
            assert refused.code
    try:
        assert all(v > 0 for values in parse_ranges(text).values() for v in values)
    except CommandError as refused:
        assert refused.message
