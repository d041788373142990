"""A class with odd names, a course key, strange tables and forged files: it costs nobody else anything."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from roofdsl.classroom import gradescope
from roofdsl.classroom.exercise_file import course
from roofdsl.classroom.grade_submissions import Judging, grade_submission
from roofdsl.classroom.judge_answers import judge
from roofdsl.classroom.roster import everyone, file_names
from roofdsl.classroom.sheet import right_answer
from roofdsl.classroom.student_version import drawn, student_version
from roofdsl.classroom.submissions import Missing, read
from roofdsl.classroom.versions import code_of, course_key, version_of
from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError

EXERCISES = course()
GEMV = '[gemv]\nW = "2n^2"\n'
KEY = "0123456789abcdef-a-course-key"


def _hand_in(folder: Path, *names: str, text: str = GEMV) -> None:
    for name in names:
        own = folder / name
        own.mkdir(parents=True)
        (own / "answers.toml").write_text(text)


def _grade(folder: Path, *options: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit status, and grades.csv by student."""
    status = run(["exercise", "grade", str(folder), "-o", str(folder.parent / "out"), "--jobs", "2", *options])
    rows = csv.DictReader(io.StringIO((folder.parent / "out" / "grades.csv").read_text()))
    return status, {r["student"]: r for r in rows}


# ---- names ----

LONG = "𝒂" * 62 + "!"
ODD = ("grades.csv", "summary.csv", "Grades.CSV", LONG, "..a", "a b", "-x", "é", "x" * 255, "a:b", "con", "💥")


@pytest.mark.thorough
def test_odd_names_cost_nobody_a_grade(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [n for n in ODD if not n.startswith(".")]
    _hand_in(tmp_path / "class", "ada", "zed", *names)
    status, rows = _grade(tmp_path / "class", "--only", "gemv")
    assert status == 0 and "Traceback" not in capfd.readouterr().err
    assert len(rows) == len(names) + 2
    assert all(r["score"] == "1" and not r["problem"] for r in rows.values())
    results = sorted((tmp_path / "out").glob("*/results.json"))
    assert len(results) == len(rows)
    assert all(json.loads(path.read_text())["score"] == 1 for path in results)
    assert (tmp_path / "out" / "summary.csv").read_text().startswith("exercise,part")


def test_two_submissions_of_one_student_are_both_graded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "class"
    _hand_in(folder, "alice", "bob")
    (folder / "alice.toml").write_text('[gemv]\nW = "n^2"\n')
    (folder / "alice.json").write_text('{"gemv": {"W": "1"}}')
    status, rows = _grade(folder, "--only", "gemv")
    assert status == 0
    assert {name: r["score"] for name, r in rows.items()} == {
        "alice": "1",
        "alice.toml": "0",
        "alice.json": "0",
        "bob": "1",
    }
    out = capfd.readouterr().out
    assert out.count("3 submissions are from this student (alice, alice.json, alice.toml)") == 3


def test_names_that_no_file_can_have() -> None:
    names = ["grades.csv", "SUMMARY.csv", "a", "A", "a?", "a*", LONG, LONG + "!", "x\ud800"]
    found = file_names(names)
    assert len({f.casefold() for f in found}) == len(names)
    assert all(len(os.fsencode(f)) <= 200 and "/" not in f for f in found)
    assert found[2] == "a" and not {"grades.csv", "summary.csv"} & {f.casefold() for f in found}


def test_a_result_that_cannot_be_written_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _hand_in(tmp_path / "class", "ada", "bob")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ada").write_text("a file where a folder has to be")
    status, rows = _grade(tmp_path / "class", "--only", "gemv")
    assert status == 0 and rows["ada"]["score"] == rows["bob"]["score"] == "1"
    assert "ada: graded, but the results.json is not written" in capfd.readouterr().out


# ---- the course key ----


def test_versions_under_a_key_follow_from_nothing_that_students_have() -> None:
    students = [f"student{k}" for k in range(60)]
    exercise = next(e for e in EXERCISES.values() if any(len(v) > 2 for v in e.vary.values()))
    plain = [drawn(exercise, version_of(s)) for s in students]
    keyed = [drawn(exercise, version_of(s, KEY)) for s in students]
    other = [drawn(exercise, version_of(s, KEY + "2")) for s in students]
    assert keyed not in (plain, other)
    assert plain == [drawn(exercise, s) for s in students], "without a key, versions are today's"
    assert keyed == [drawn(exercise, version_of("anybody", code=code_of(KEY, s))) for s in students]
    assert len({code_of(KEY, s) for s in students}) == len(students)
    assert version_of("José", KEY) == version_of(unicodedata.normalize("NFD", "José"), KEY)


def test_a_class_under_a_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each student solves the version of the own code; the grader knows it by the key; no code is in the results."""
    key = tmp_path / "course.key"
    key.write_text(KEY + "\n")
    assert run(["exercise", "codes", "ada", "bob", "--key-file", str(key)]) == 0
    codes = dict(line.split(",") for line in capfd.readouterr().out.splitlines()[1:])
    assert codes == {s: code_of(KEY, s) for s in ("ada", "bob")}
    ids = [e.id for e in EXERCISES.values() if e.vary and not any(p.kind == "kernel" for p in e.parts)][:12]
    points = 0
    for student, code in codes.items():
        text = ""
        for name in ids:
            parts = [
                p for p in student_version(EXERCISES[name], version_of("", code=code)).parts if p.answer is not None
            ]
            points += sum(p.part.points for p in parts) if student == "ada" else 0
            text += f"[{name}]\n" + "".join(f"{p.part.id} = {json.dumps(right_answer(p))}\n" for p in parts)
        _hand_in(tmp_path / "class", student, text=text)
    status, rows = _grade(tmp_path / "class", "--only", ",".join(ids), "--key-file", str(key))
    assert status == 0 and {r["score"] for r in rows.values()} == {str(points)}
    written = "".join(p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert KEY not in written and not any(code in written for code in codes.values())
    _, without = _grade(tmp_path / "class", "--only", ",".join(ids))
    assert any(float(r["score"]) < points for r in without.values())


def test_a_student_checks_the_own_version_with_the_code(capfd: pytest.CaptureFixture[str]) -> None:
    code = code_of(KEY, "ada")
    version = student_version(EXERCISES["stream-triad"], version_of("", code=code))
    answer = f"Q={right_answer(next(p for p in version.parts if p.part.id == 'Q'))}"
    assert run(["exercise", "show", "stream-triad", "--student", "ada", "--code", code]) == 0
    assert f"--student ada --code {code}" in capfd.readouterr().out
    run(["exercise", "check", "stream-triad", answer, "--code", code])
    assert "Q: right" in capfd.readouterr().out
    assert run(["exercise", "show", "gemv", "--code", "sesame"]) == 2
    assert "is not a version code" in capfd.readouterr().err


def test_the_key_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "course.key"
    path.write_text(f"{KEY}\n")
    assert course_key(None) == "" and course_key(path) == KEY
    monkeypatch.setenv("ROOFDSL_COURSE_KEY", KEY + "x")
    assert course_key(None) == KEY + "x" and course_key(path) == KEY
    for text in ("short", "", "a line\n of two lines, long enough", "x" * 9000):
        path.write_text(text)
        with pytest.raises(CommandError):
            course_key(path)
    path.write_bytes(b"\xff" * 40)
    for missing in (path, tmp_path / "nothing", tmp_path):
        with pytest.raises(CommandError):
            course_key(missing)


def test_the_key_is_in_the_autograder_and_used(tmp_path: Path) -> None:
    gradescope.write_zip(tmp_path / "a.zip", ["gemv"], None, KEY)
    from zipfile import ZipFile

    with ZipFile(tmp_path / "a.zip") as archive:
        assert archive.read("course.key").decode().strip() == KEY
        assert b"--key-file course.key" in archive.read("run_autograder")
    gradescope.write_zip(tmp_path / "b.zip", ["gemv"], None)
    with ZipFile(tmp_path / "b.zip") as archive:
        assert "course.key" not in archive.namelist() and b"--key-file" not in archive.read("run_autograder")


# ---- what no exercise asks for ----

STRANGE = [
    ('[gemvv]\nW = "2n^2"\n', "there is no exercise `gemvv`; did you mean `gemv`?"),
    ('[Gemv]\nW = "2n^2"\n', "there is no exercise `Gemv`; did you mean `gemv`?"),
    ('[gemv]\nw = "2n^2"\n', "[gemv] has `w`, and its parts are `W`, `Q`, `I` and `limit`; did you mean `W`?"),
    ('[gemv]\nlimits = "2n^2"\n', "did you mean `limit`?"),
    ('[gemv]\nzzz = 3\n', "the table [gemv] has `zzz`, and its parts are `W`, `Q`, `I` and `limit`"),
    ('W = "2n^2"\n', "`W` is outside a table; write the exercise in brackets above it"),
    ('[cooking]\nsalt = 1\n', "there is no exercise `cooking`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), STRANGE)
def test_strange_tables_and_keys_are_named(text: str, says: str, tmp_path: Path) -> None:
    _hand_in(tmp_path, "ada", text=text)
    grade = grade_submission(tmp_path / "ada", "ada", [EXERCISES["gemv"]])
    assert grade.score == 0 and any(says in note for note in grade.notes), grade.notes
    messages = {p.id: p.message for r in grade.results for p in r.parts}
    if "cooking" not in says:
        assert messages["W"].startswith("There is no answer to `W`: "), messages
    document = gradescope.results(grade, {}, 1)
    assert says in document["output"] and "?." not in document["output"]


def test_a_strange_table_is_named_where_it_is_checked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _hand_in(tmp_path, "ada", text='[gemvv]\nW = "2n^2"\n')
    assert run(["exercise", "check", "gemv", "--answers", str(tmp_path / "ada")]) == 1
    assert "did you mean [gemv]?" in " ".join(capfd.readouterr().out.split())


def test_many_strange_keys_are_not_all_told(tmp_path: Path) -> None:
    text = "[gemv]\n" + "".join(f"k{k} = 1\n" for k in range(500))
    _hand_in(tmp_path, "ada", text=text)
    grade = grade_submission(tmp_path / "ada", "ada", [EXERCISES["gemv"]])
    assert len(grade.notes) == 9 and "492 more" in grade.notes[-1]


READ = [
    ({"Answers.toml": GEMV}, "a name in capitals"),
    ({"week1.toml": GEMV + '[dot]\nW = "1"\n'}, "tables in a file of another name"),
    ({"gemv.toml": GEMV}, "a table in a file of its own name"),
    ({"answers.toml": "\ufeff" + GEMV}, "a mark of UTF-8"),
    ({"answers.toml": GEMV.replace("\n", "\r\n")}, "lines that end as on Windows"),
]


@pytest.mark.parametrize(("files", "why"), READ)
def test_files_that_honest_students_hand_in(files: dict[str, str], why: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode())
    assert read(tmp_path).of("gemv", {}) == {"W": "2n^2"}, why


def test_a_slip_in_one_line_costs_no_other(tmp_path: Path) -> None:
    """Answers without quotes, with quotes of a text processor, or with one that is not closed."""
    text = '[gemv]\nW = 2*n**2\nQ = “8n²”\nI = "n/(4n)\nlimit = 1/4 FLOP/B # mine\n[dot]\nW = "1"\nQ =\n'
    (tmp_path / "answers.toml").write_text(text)
    found = read(tmp_path)
    assert found.of("gemv", {}) == {"W": "2*n**2", "Q": "8n²", "I": "n/(4n)", "limit": "1/4 FLOP/B"}
    assert found.of("dot", {}) == {"W": "1", "Q": ""}


def test_answers_in_utf_16_and_kernels_named_with_a_dot(tmp_path: Path) -> None:
    (tmp_path / "answers.toml").write_bytes('[fuse]\nkernel = "./mine.roof"\n'.encode("utf-16"))
    (tmp_path / "mine.roof").write_text("kernel k(n):\n")
    assert read(tmp_path).of("fuse", {"kernel": ".roof"}) == {"kernel": "kernel k(n):\n"}
    version = student_version(EXERCISES["fuse"], "ada")
    assert "is none" in judge(version, {"kernel": Missing("it is none")}).parts[1].message


# ---- forged measurements ----


def _forged(**changed: Any) -> str:
    from roofdsl.classroom.query import kernel_of
    from roofdsl.measure.measurement import Measurement, Verified, source_hash

    version = student_version(EXERCISES["measure-triad"], "ada")
    n = changed.pop("n", version.values["n"])
    kernel = kernel_of(version.kernels["triad"])
    verified = Verified("numpy", 0.0, 0.0, 0.0, (("n", 100),))
    work, footprint = changed.pop("work", 2 * n), changed.pop("footprint", 24 * n)
    times = changed.pop("times", None) or (24 * n / 1e10,) * 5
    m = Measurement(
        "triad", (("n", n),), "cpu", "loops", {}, {}, "2026-11-21T12:00:00+00:00", (0.01,) * 5, 1, "cold", 1,
        True, "numba", 2, "FLOP", 24, verified, "triad", source_hash(kernel), "0" * 64,
    )  # fmt: skip
    document = m.to_json() | {"work_flops": work, "footprint_bytes": footprint, "times_s": list(times)}
    median = sorted(times)[len(times) // 2]
    stated = {"median_s": median, "low_s": min(times), "high_s": max(times)}
    try:
        stated["flops_per_s"] = work / median
    except OverflowError:
        stated["flops_per_s"] = 1e300
    return json.dumps(document | stated | changed)


FORGED = [
    ({}, ""),
    ({"work": 10**400}, "`work_flops` is too large: it has 1329 bits"),
    ({"times": (1e-300,) * 5}, "not a possible time of a call"),
    ({"times": (1e300,) * 5}, "not a possible time of a call"),
    ({"times": (1e-10,) * 5}, "no computer can have measured"),
    ({"times": (10**400,) * 5, "median_s": 10**400}, "is too large: it has 401 digits"),
    ({"footprint": 10**400}, "`footprint_bytes` is too large: it has 1329 bits"),
    ({"footprint": 10**12}, "are not those of the kernel"),
    ({"n": 10**400, "times": (1.0,) * 5}, "`n` is too large: it has 1329 bits"),
    ({"n": 10**17}, ""),
    ({"parameters": {"n": 0}}, "is less than 1"),
    ({"parameters": {"n": 10**18 + 1}}, "too large for any computer"),
    ({"work": 1}, "are not those of the kernel"),
    ({"median_s": 10**400}, "is too large: it has 401 digits"),
    ({"parameters": {"m": 5}}, ""),
    ({"parameters": {}}, ""),
]


@pytest.mark.parametrize(("changed", "says"), FORGED)
def test_forged_measurements_get_a_verdict(changed: dict[str, Any], says: str) -> None:
    version = student_version(EXERCISES["measure-triad"], "ada")
    text = _forged(**changed)
    _, part, _ = judge(version, {"prediction": "0.8 GFLOP/s", "result": text, "why": "a"}).parts
    assert part.correct == (not changed), part.message
    assert says in part.message and "Traceback" not in part.message


# ---- interrupted ----


def test_an_interrupted_autograder_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "autograder.zip"
    gradescope.write_zip(path, ["gemv"], None)
    before = path.read_bytes()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gradescope, "_sources", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gradescope.write_zip(path, ["gemv"], None)
    with pytest.raises(KeyboardInterrupt):
        gradescope.write_zip(tmp_path / "new.zip", ["gemv"], None)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["autograder.zip"]


ORPHAN = """
import os, sys, time
from roofdsl.classroom.isolate import run_all
def task():
    print_to = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
    os.write(print_to, str(os.getpid()).encode())
    while True:
        time.sleep(0.05)
run_all([task], 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limits end what is left")
def test_no_child_outlives_a_killed_grader(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    grader = subprocess.Popen([sys.executable, "-c", ORPHAN, str(told)])
    try:
        child = _wait_for(lambda: int(told.read_text()) if told.exists() and told.read_text() else 0)
        assert child and _is_running(child)
        grader.kill()
        grader.wait()
        assert _wait_for(lambda: not _is_running(child))
    finally:
        grader.kill()
        grader.wait()


def _wait_for(condition: Any) -> Any:
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.05)
    return None


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# ---- the seed ----


@pytest.mark.thorough
def test_the_seed_is_reported_and_can_be_given(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = EXERCISES["fuse"].kernels["one"]
    _hand_in(tmp_path / "class", "ada", text="[fuse]\nkernel = '''" + text + "'''\n")
    seeds = set()
    for _ in range(2):
        status, rows = _grade(tmp_path / "class", "--only", "fuse")
        assert status == 0 and rows["ada"]["score"] == "2"
        out = capfd.readouterr().out
        seed = out.partition("--seed ")[2].split()[0]
        assert f"seed {seed}" in json.loads((tmp_path / "out" / "ada" / "results.json").read_text())["output"]
        seeds.add(seed)
    assert len(seeds) == 2
    assert _grade(tmp_path / "class", "--only", "fuse", "--seed", "42")[0] == 0
    assert "--seed 42 " in capfd.readouterr().out
    assert run(["exercise", "check", "fuse", f"kernel={text}", "--seed", "42"]) == 1
    assert "--seed 42 " in capfd.readouterr().out


def test_judging_with_one_seed_is_the_same_again(tmp_path: Path) -> None:
    _hand_in(tmp_path, "ada", text="[fuse]\nkernel = '''" + EXERCISES["fuse"].kernels["without"] + "'''\n")
    grades = [grade_submission(tmp_path / "ada", "ada", [EXERCISES["fuse"]], Judging(5, KEY)) for _ in range(2)]
    assert grades[0] == grades[1]
    assert everyone(tmp_path)[0].student == "ada"
