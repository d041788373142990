"""Files as other systems write them, disks that are full, outputs that are no files, an interrupt while writing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.classroom.exercise_file import load as load_exercise
from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.load import decode
from roofdsl.machine.find import shipped_names
from roofdsl.profiler.tables import read as read_table
from roofdsl.store.atomic import write_whole
from tests.cli.conftest import ROOT
from tests.hardening import guided, readers

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


@pytest.mark.thorough
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


@pytest.mark.thorough
@given(st.one_of(SENSIBLE, JSON.map(json.dumps), st.fixed_dictionaries({}, optional=RESULT).map(json.dumps)))
def test_result_files(text: str) -> None:
    """Whatever stands in a result file, it is read or refused with a place."""
    readers.results(text.encode())


@given(st.one_of(SENSIBLE, JSON.map(json.dumps), st.fixed_dictionaries({}, optional=POINTS).map(json.dumps)))
def test_documents_of_points(text: str) -> None:
    readers.points(text.encode())


CELLS = st.sampled_from(
    ["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value", "gpu__time_duration.sum", "ns", "1,234", "n/a",
     "", '"', "==PROF==", "Duration", "Invocations", "Avg", "1e999", "-5", "byte", "dram__bytes.sum", "Calls", "Time",
     "\x00"]
) | SENSIBLE  # fmt: skip


@given(st.lists(st.lists(CELLS, min_size=1, max_size=6).map(",".join), max_size=6).map("\n".join))
def test_reports_of_profilers(text: str) -> None:
    readers.reports(text.encode())


def cut_and_put(text: str) -> st.SearchStrategy[str]:
    """The text with something cut out of it and something put in."""
    return st.builds(
        lambda place, cut, put: text[:place] + put + text[place + cut :],
        st.integers(0, len(text)), st.integers(0, 40), SENSIBLE,
    )  # fmt: skip


@given(cut_and_put(Path(ROOT / "models" / "machines" / "v100.roof").read_text("utf-8")[:2500]))
def test_machine_files(text: str) -> None:
    readers.machines(text.encode())


@given(cut_and_put(Path(ROOT / "models" / "exercises" / "gemv.toml").read_text("utf-8")))
def test_exercise_files(text: str) -> None:
    readers.exercise_files(text.encode())


WORDS = st.text("0123456789.,_eE+-*/: KMGTiBsunFLOPhz=n..x", max_size=30) | SENSIBLE


@given(WORDS)
def test_quantities_and_ranges(text: str) -> None:
    readers.quantities(text.encode())


PIECES = ["n", "b", "2n", "1/3", ".5", "1e3", *"+-*/%(),^", "**", "//", "floor(", "min(", "sqrt(", ">=", "=="]
FORMULA = st.lists(st.sampled_from(PIECES) | SENSIBLE, max_size=12)


@pytest.mark.thorough
@given(FORMULA.map(" ".join))
def test_formulas_of_students(text: str) -> None:
    readers.answers(text.encode())


@given(JSON.map(json.dumps) | cut_and_put(readers.seeds("cache")[0].decode()))
def test_entries_of_the_cache(text: str) -> None:
    readers.kept_entries(text.encode())


@pytest.mark.parametrize(
    "damage",
    [
        ("n = ", "n = 7 #"),  # a symbol that is a number
        ("n = ", "n = {multiple_of = 3} #"),
        ("hints = [", "hints = [{a = 1}, "),
        ("show = [", "show = [[1], "),
        ("level = 2", f"level = {'9' * 5000}"),
        ("[kernels]", '[kernels]\nown = "file a\\u0000b.roof"'),
    ],
    ids=lambda d: d[1][:20],
)
def test_exercise_files_that_are_wrong(damage: tuple[str, str], tmp_path: Path) -> None:
    text = Path(ROOT / "models" / "exercises" / "gemv.toml").read_text("utf-8")
    assert damage[0] in text
    path = tmp_path / "wrong.toml"
    path.write_text(text.replace(*damage, 1), "utf-8")
    with pytest.raises(CommandError, match=r"wrong\.toml"):
        load_exercise(path)


@pytest.mark.parametrize("reader", sorted(readers.READERS))
def test_what_guided_fuzzing_begins_with(reader: str) -> None:
    seeds = readers.seeds(reader)
    assert seeds
    for seed in seeds[:3]:
        readers.READERS[reader][0](seed)


@pytest.mark.parametrize("reader", sorted(readers.READERS))
def test_guided(reader: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Coverage-guided, where it is asked for and atheris is there."""
    seconds = request.config.getoption("--guided")
    if not seconds:
        pytest.skip("takes --guided SECONDS")
    if importlib.util.find_spec("atheris") is None:
        pytest.skip(guided.MISSING)
    command = [
        sys.executable,
        "-m",
        "tests.hardening.guided",
        reader,
        "--seconds",
        str(seconds),
        "--found",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [path.read_bytes() for path in tmp_path.iterdir()]
    assert done.returncode == 0 and not found, (found, done.stderr[-3000:])


@pytest.mark.thorough
def test_guided_fuzzing_says_what_it_lacks() -> None:
    command = [sys.executable, "-m", "tests.hardening.guided"]
    hidden = "import sys; sys.modules['atheris'] = None; from tests.hardening import guided; guided.main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, f"{guided.MISSING}\n")
    listed = subprocess.run([*command, "list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.split() == list(readers.READERS)
