"""A class graded: results and CSV, the autograder's zip run as Gradescope runs it, exercises of one's own."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import pytest

from benchmarks.grading import write_class
from roofdsl.classroom.engine import answer
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.exercise_file import course, load
from roofdsl.classroom.grade_submissions import Grade, grade_submission, table
from roofdsl.classroom.gradescope import write_zip
from roofdsl.classroom.judge_answers import NO_ANSWER
from roofdsl.classroom.query import Query
from roofdsl.classroom.sheet import right_answer
from roofdsl.classroom.student_version import student_version
from roofdsl.classroom.submissions import read
from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError

EXERCISES = course()
NAMES = ("gemv", "ridge-point", "summit-streams", "interchange")
CHOSEN = [EXERCISES[n] for n in NAMES]


@pytest.mark.thorough
def test_a_class_of_twelve(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What the command writes is what each submission gets alone; right answers get all points."""
    folder = tmp_path / "class"
    students = [f"student{k:02}" for k in range(11)]
    write_class(folder, students, CHOSEN, 5)
    best = folder / "=ada@example.org"
    best.mkdir()
    answers = {}
    for exercise in CHOSEN:
        version = student_version(exercise, best.name)
        answers[exercise.id] = {
            p.part.id: version.kernels[p.part.solution_kernel]
            if p.part.kind == "kernel"
            else right_answer(p).split(". ")[0]
            if p.options
            else right_answer(p)
            for p in version.parts
        }
    (best / "answers.json").write_text(json.dumps(answers))
    assert run(["exercise", "grade", str(folder), "--only", ",".join(NAMES), "--jobs", "2"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("12 submissions, 4 exercises, mean ")
    results = tmp_path / "class-results"
    rows = list(csv.DictReader(io.StringIO((results / "grades.csv").read_text())))
    points = sum(e.points for e in CHOSEN)
    by_name = {r["student"]: r for r in rows}
    assert len(rows) == 12 and by_name["'=ada@example.org"]["score"] == str(points)
    order = [e.id for e in course().values() if e.id in NAMES]
    answered: Counter[tuple[str, str]] = Counter()
    for student in students:
        alone = grade_submission(folder / student, student, [EXERCISES[n] for n in order])
        row = by_name[student]
        assert float(row["score"]) == alone.score and row["problem"] == alone.problem
        assert [float(row[n]) for n in order] == [r.score for r in alone.results]
        if not alone.problem:
            answered.update((r.exercise, p.id) for r in alone.results for p in r.parts if p.message != NO_ANSWER)
        document = json.loads((results / student / "results.json").read_text())
        assert document["score"] == alone.score
        assert [t["output"] for t in document["tests"]] == [p.message for r in alone.results for p in r.parts]
        assert sum(t["max_score"] for t in document["tests"]) == points
    assert any(float(by_name[s]["score"]) > 0 for s in students)
    lines = {(r["exercise"], r["part"]): r for r in csv.DictReader(io.StringIO((results / "summary.csv").read_text()))}
    assert len(lines) == sum(len(e.parts) for e in CHOSEN)
    graded = sum(not r["problem"] for r in rows)
    total = sum(float(r["score"]) for r in rows)
    points_of = {(e.id, p.id): p.points for e in CHOSEN for p in e.parts}
    answered.update(lines.keys())  # the twelfth has answered everything
    assert {key: int(r["answers"]) for key, r in lines.items()} == {key: answered[key] for key in lines}
    assert 0 < min(answered.values()) < graded, "some parts have no answer, which is none"
    assert sum(int(r["right"]) * points_of[key] for key, r in lines.items()) == total
    assert any(by_name[s]["problem"] for s in students)


def test_no_cell_is_a_formula() -> None:
    text = table([Grade("=1+1", (), ""), Grade("@cmd", (), "-x"), Grade("a\x1b", (), "")], [])
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == ["'=1+1", "'@cmd", "a\ufffd"]


def _autograder(root: Path, exercises: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Unpacks the zip and runs run_autograder as Gradescope does, in a tree of its own."""
    write_zip(root / "autograder.zip", exercises, folder)
    with zipfile.ZipFile(root / "autograder.zip") as archive:
        archive.extractall(root / "source")
        for name in ("setup.sh", "run_autograder"):
            assert archive.getinfo(name).external_attr >> 16 & 0o111
    environment = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    return subprocess.run(
        ["bash", str(root / "source" / "run_autograder")], env=environment, capture_output=True, text=True, check=False
    )


def _results(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / "results" / "results.json").read_text())
    return found


def test_the_autograder(tmp_path: Path) -> None:
    """With an exercise of the instructor's own beside shipped ones."""
    own = tmp_path / "mine"
    own.mkdir()
    (own / "mine.toml").write_text(OWN)
    shutil.copy(Path(EXERCISES["ridge-point"].folder) / "ridge-point.toml", own)
    double = 2 * student_version(load(own / "mine.toml"), "ada@example.org").values["n"]
    version = student_version(EXERCISES["ridge-point"], "ada@example.org")
    (tmp_path / "submission").mkdir()
    answers = "".join(f'{p.part.id} = "{right_answer(p)}"\n' for p in version.parts)
    (tmp_path / "submission" / "answers.toml").write_text(f"[mine]\nx = {double}\n[ridge-point]\n{answers}")
    users = {"users": [{"email": "Ada@Example.org", "id": 7}]}
    (tmp_path / "submission_metadata.json").write_text(json.dumps(users))
    done = _autograder(tmp_path, ["mine", "ridge-point"], own)
    assert done.returncode == 0, done.stderr
    document = _results(tmp_path)
    assert document["score"] == 3 and document["visibility"] == "visible"
    assert [t["status"] for t in document["tests"]] == ["passed"] * 3  # type: ignore[attr-defined]
    setup = (tmp_path / "source" / "setup.sh").read_text()
    assert subprocess.run(["bash", "-n"], input=setup, text=True, check=False).returncode == 0
    pinned = (tmp_path / "source" / "requirements.txt").read_text().splitlines()
    assert f"sympy=={metadata.version('sympy')}" in pinned and all(len(line.split("==")) == 2 for line in pinned)
    assert f"in python3.{sys.version_info.minor} " in setup


@pytest.mark.thorough
def test_the_autograder_always_writes_results(tmp_path: Path) -> None:
    """Without a submission, and without the file that says whose it is."""
    done = _autograder(tmp_path, ["ridge-point"])
    assert done.returncode == 0
    document = _results(tmp_path)
    assert document["score"] == 0 and "does not name the student" in str(document["output"])


def test_setup_that_failed_still_leaves_results(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", ["ridge-point"], None)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "source")
    environment = {"AUTOGRADER_ROOT": str(tmp_path), "PATH": os.environ["PATH"]}
    command = ["bash", str(tmp_path / "source" / "run_autograder")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert _results(tmp_path)["score"] == 0


def test_the_same_zip_for_the_same_input(tmp_path: Path) -> None:
    counts = [write_zip(tmp_path / name, ["gemv"], None) for name in ("a.zip", "b.zip")]
    assert counts[0] == counts[1] > 100
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_answers_file_by_file(tmp_path: Path) -> None:
    """One file for each exercise, in a folder that was packed as a whole, is the same as one file for all."""
    own = tmp_path / "ada" / "homework"
    own.mkdir(parents=True)
    (own / "ridge-point.toml").write_text('ridge = "7.78"\n')
    (own / "gemv.json").write_text('{"W": "2*n**2"}')
    (own / "fuse.roof").write_text("kernel k(n):\n")
    (own / "triad.json").write_text('{"schema": "roofdsl.measurement/1"}')
    (own / "answers.toml").write_text('[ridge-point]\nattained = 225\n[fuse]\nkernel = "fuse.roof"\n')
    found = read(tmp_path / "ada")
    assert found.of("ridge-point", {}) == {"ridge": "7.78", "attained": 225}
    assert found.of("gemv", {}) == {"W": "2*n**2"}
    assert found.of("fuse", {"kernel": ".roof"}) == {"kernel": "kernel k(n):\n"}
    assert set(found.answers) == {"ridge-point", "gemv", "fuse"}
    assert read(own / "ridge-point.toml").of("ridge-point", {}) == {"ridge": "7.78"}


OWN = """
title = "Mine"
unit = "machines"
[vary]
n = [2, 3]
[[part]]
id = "x"
kind = "number"
ask = "Twice {n}?"
answer = "2*n"
"""
FAULTY = [
    ("title = ", "is not valid TOML"),
    (OWN.replace("machines", "nothing"), "there is no unit `nothing`"),
    (OWN.replace("kind", "kinds"), "an unknown key `kinds`"),
    (OWN.replace('answer = "2*n"', ""), "lacks `answer`"),
    (OWN.replace('"number"', '"riddle"'), "kind `riddle`"),
    (OWN.replace('"Mine"', "3"), "`title` of the file has the wrong type"),
    (OWN.partition("[[part]]")[0], "lacks `part`"),
    (OWN.replace("[vary]", 'show = ["triad"]\n[vary]'), "there is no kernel `triad`"),
    (OWN + 'prediction = "y"\n', "refers to a part `y`"),
    (OWN + 'unit = "GFLOPS"\n', "part `x`: there is no unit `GFLOPS`"),
    (OWN + 'unit = "%"\n', "part `x`: there is no unit `%`"),
]


@pytest.mark.parametrize(("text", "says"), FAULTY)
def test_faulty_exercises_are_told(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(CommandError) as error:
        load(path)
    assert says in str(error.value)


TWO = "".join(f"kernel {k}(n):\n    out x: f64[n]\n    for i in range(n):\n        x[i] = 0\n" for k in ("one", "two"))
SETTLING = [
    (OWN.replace("2*n", "2*k"), "`k` is not known"),
    (OWN.replace("{n}", "{k}"), "no value called `k`"),
    (OWN.replace('"2*n"', '"1/(n-n)"'), "divides by zero"),
    (OWN + '[quantities]\nQ = { ask = "taste" }\n', "`taste`"),
    (OWN + '[quantities]\nQ = "R + 1"\nR = "2*Q"\n', "depends on itself"),
    (OWN + '[quantities]\nQ = { ask = "W", kernel = "k" }\n[kernels]\nk = "kernel k(n):"\n', "quantity Q"),
    (
        OWN + f'[quantities]\nQ = {{ ask = "W", kernel = "k" }}\n[kernels]\nk = """\n{TWO}"""\n',
        "this text has one, two",
    ),
    (OWN + '[quantities]\nQ = { ask = "peak", machine = "cray" }\n', "no shipped machine `cray`"),
]


@pytest.mark.parametrize(("text", "says"), SETTLING)
def test_faulty_formulas_are_told(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    version = student_version(load(path), "ada")
    with pytest.raises(CommandError) as error:
        _ = version.parts[0].value
        for name in version.exercise.quantities:
            version.quantity(name)
    assert says in str(error.value)


def test_an_intensity_at_sizes_is_a_number() -> None:
    """W = 2nm and Q = 4(nm + n + m) by hand: `set` used to be left out of the question without a word."""
    mv = "in A: f32[n, m], x: f32[m]\n    out y: f32[n]\n"
    loops = "    for i in range(n):\n        y[i] = 0\n        for j in range(m):\n            y[i] += A[i, j] * x[j]\n"
    text = f"kernel mv(n, m):\n    {mv}{loops}"
    query = Query("intensity", text, settings=(("n", 30), ("m", 50)), traffic="load_store")
    assert evaluate(answer(query), {}) == Fraction(2 * 30 * 50, 4 * (30 * 50 + 30 + 50))


def test_exercises_of_ones_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    double = 2 * student_version(load(tmp_path / "mine.toml"), "ada").values["n"]
    arguments = ["exercise", "check", "mine", f"x={double}", "--folder", str(tmp_path), "--student", "ada"]
    assert run(arguments) == 0
    assert run([*arguments[:3], "x=17", *arguments[4:]]) == 1
    capfd.readouterr()
    assert run(["exercise", "list", "--folder", str(tmp_path)]) == 0
    assert "1 exercises, 1 points" in capfd.readouterr().out
