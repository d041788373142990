"""Answers and submissions that are none: they get zero points and a message, and the next one is graded as ever."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from roofdsl.classroom.exercise_file import course
from roofdsl.classroom.grade_submissions import grade_all, grade_submission
from roofdsl.classroom.isolate import Limits, run_all
from roofdsl.classroom.judge_answers import Result, judge
from roofdsl.classroom.sheet import right_answer
from roofdsl.classroom.student_version import StudentVersion, student_version
from roofdsl.classroom.submissions import MAX_ANSWERS_BYTES

EXERCISES = course()
CHOSEN = [EXERCISES[n] for n in ("gemv", "ridge-point", "summit-streams", "fuse", "measure-triad")]
ALPHABET = [
    *"()+-*/%^&|~<>=!?,.;:'\"`\\@#$[]{} \t\n\0\x1b\x7f",
    *(
        "n",
        "m",
        "0",
        "1",
        "9",
        "1e99",
        "**",
        "//",
        "sqrt",
        "min(",
        "log2(",
        "floor(",
        "lambda",
        "import",
        "GB",
        "s",
        "\u202e",
    ),
    *(
        "\ud800",
        "\U0001f4a9",
        "²",
        "π",
        "𝟙",
        "é",
        "eval(",
        "__class__",
        "9**",
        "-",
        "None",
        "nan",
        "inf",
        "0x",
        "1_",
        "e",
    ),
]
BY_HAND = [
    "__import__('os').system('touch /tmp/pwned')",
    "().__class__.__bases__[0].__subclasses__()",
    "exec('1')",
    "open('/etc/passwd').read()",
    "9**9**9",
    "9**9**9**9**9",
    "2**(2**(2**(2**64)))",
    "10**64*10**64*10**64*10**64*10**64",
    "(n**64)**64",
    "n" + "**2" * 30,
    "n**8",
    "1/n**8",
    "n**9",
    "1e-99/n**2",
    "1/(n-n)",
    "0/0",
    "(-1)**(1/2)",
    "(-n)**(1/3)",
    "sqrt(sqrt(sqrt(n)))**8",
    "log2(log2(log2(log2(n))))",
    "((((" * 90,
    "min(" * 40 + "1" + ",1)" * 40,
    "floor(" * 41 + "n" + ")" * 41,
    "-" * 400,
    "n*" * 240 + "n",
    "1" * 499,
    "1e" + "9" * 400,
    "0.0000000000000000000000000000000000001",
    "\u202e n*2",
    "\x1b[31mred\x1b[0m",
    "\x00",
    "\ud800",
    "n\r\n=1+1",
    "<script>alert(1)</script>",
    "{n}",
    "{0.__class__}",
    "%s%s%s%n",
    "'; DROP TABLE grades; --",
    "$(reboot)",
    "`reboot`",
    "nan",
    "inf",
    "None",
    "True",
    "a" * 100_000,
    " " * 100_000,
    "/etc/passwd",
    "../../../../etc/passwd.roof",
    "answers.toml",
]
KERNELS = [
    'use "/etc/passwd"\n',
    "kernel k(n):\n",
    "kernel k(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    for i in range(n * n * n):\n        y[0] += 1\n",
    "kernel k(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    temp t: f64[n * n * n]\n    t[0] = 1\n",
    "kernel k(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    for i in range(n):\n        y[i + 1] = 0\n",
    "kernel k(n, b):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    y[0] = 0\n",
    "kernel k(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    y[0] = 1 / (a - a)\n",
    "kernel k(n):\n    y[0] = 1\n" * 3,
    "kernel k(n):\n" + "".join(f"{'    ' * k}for i{k} in range(n):\n" for k in range(1, 16)),
    "machine m:\n    memory HBM 1 GB, 1 GB/s\n",
    "kernel k(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    y[0] = " + "(" * 5000,
    "\x00\x01\x02",
]
ODD = [None, True, False, [], {}, [[[]]], {"a": 1}, 10**400, -(10**400), 1e308, float("nan"), float("inf"), -0.0, ""]


def _made(seed: int) -> str:
    rng = random.Random(seed)
    return "".join(rng.choice(ALPHABET) for _ in range(rng.choice((1, 3, 10, 40, 200))))


@pytest.mark.thorough
def test_hostile_answers_are_survived() -> None:
    """More than two hundred, each as the answer to a part of every kind: no points, and a message that is plain."""
    versions = [student_version(e, "ada") for e in CHOSEN]
    answers = [*BY_HAND, *ODD, *(_made(seed) for seed in range(160))]
    assert len(answers) > 200
    for answer in answers:
        for version in versions:
            begun = time.process_time()
            result = judge(version, {p.part.id: answer for p in version.parts})
            for part, version_part in zip(result.parts, version.parts, strict=True):
                if part.correct:  # by chance: a letter of a choice, a positive number as a prediction
                    assert version_part.options or version_part.part.kind == "prediction", (answer, part)
                assert part.message and part.message.replace("\n", "").isprintable(), (answer, part)
                assert len(part.message) < 1600
            json.dumps(result.to_json()).encode("utf-8")
            assert time.process_time() - begun < 20, answer
    assert not Path("/tmp/pwned").exists()


@pytest.mark.parametrize("text", KERNELS)
def test_hostile_kernels_are_survived(text: str) -> None:
    version = student_version(EXERCISES["fuse"], "ada")
    part = judge(version, {"kernel": text}).parts[1]
    assert not part.correct and part.message and "Traceback" not in part.message


def _submission(how: str, path: Path) -> None:
    """Makes the damaged submission `how` at `path`."""
    (path.parent).mkdir(exist_ok=True)
    own = path / "answers.toml"
    match how:
        case "missing":
            return
        case "empty file":
            path.with_suffix(".toml").write_text("")
            return
        case "fifo":
            os.mkfifo(path)
            return
        case "link loop":
            path.symlink_to(path)
            return
        case "link away":
            path.symlink_to("/etc")
            return
        case "zip":
            path.write_bytes(b"PK\x03\x04" + bytes(1000))
            return
    path.mkdir()
    match how:
        case "empty folder":
            return
        case "binary":
            own.write_bytes(bytes(range(256)) * 50)
        case "huge":
            with own.open("wb") as file:
                file.truncate(50 * MAX_ANSWERS_BYTES)
        case "deep toml":
            own.write_text("a = " + "[" * 50_000)
        case "deep json":
            (path / "answers.json").write_text('{"gemv":' * 20_000)
        case "answers are a folder":
            own.mkdir()
        case "answers are a fifo":
            os.mkfifo(own)
        case "answers are a link":
            own.symlink_to("/etc/passwd")
        case "a folder in itself":
            (path / "inner").symlink_to(path)
        case "thousands of files":
            for k in range(1100):
                (path / f"{k}.toml").touch()
        case "a list":
            (path / "answers.json").write_text("[1, 2, 3]")
        case "wrong kinds":
            own.write_text("gemv = 3\n[ridge-point]\nridge = []\nattained = 1979-05-27\n[fuse]\nkernel = {}\n")
        case "unknown exercises":
            own.write_text('[nothing]\nW = "1"\n')
        case "files that are not there":
            own.write_text(
                '[fuse]\nkernel = "missing.roof"\nbefore = "../answers.roof"\n[measure-triad]\nresult = "x.json"\n'
            )
        case "a kernel that is a fifo":
            os.mkfifo(path / "k.roof")
            own.write_text('[fuse]\nkernel = "k.roof"\n')


DAMAGED = (
    "missing", "empty file", "fifo", "link loop", "link away", "zip", "empty folder", "binary", "huge", "deep toml",
    "deep json", "answers are a folder", "answers are a fifo", "answers are a link", "a folder in itself",
    "thousands of files", "a list", "wrong kinds", "unknown exercises", "files that are not there",
    "a kernel that is a fifo",
)  # fmt: skip


@pytest.mark.parametrize("how", DAMAGED)
def test_damaged_submissions_get_nothing(how: str, tmp_path: Path) -> None:
    path = tmp_path / "student"
    _submission(how, path)
    if how == "empty file":
        path = path.with_suffix(".toml")
    grade = grade_submission(path, "student", CHOSEN)
    assert grade.score == 0 and grade.max_score == sum(e.points for e in CHOSEN)
    assert all(p.message for r in grade.results for p in r.parts)
    names = ("wrong kinds", "unknown exercises", "files that are not there", "a kernel that is a fifo")
    assert bool(grade.problem) == (how not in names)


def _broken(text: bytes, rng: random.Random) -> bytes:
    """A file of answers with bytes lost, changed, doubled or put in."""
    data = bytearray(text)
    for _ in range(rng.choice((1, 3, 30))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                del data[at : at + rng.randrange(20)]
            case 1:
                data[at : at + 1] = rng.randbytes(1)
            case 2:
                data[at:at] = _made(rng.randrange(10**6)).encode("utf-8", "surrogatepass")
            case _:
                data[at:at] = data[at : at + rng.randrange(400)] * rng.randrange(4)
    return bytes(data)


def test_broken_submissions_are_graded(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Files of answers damaged at random: a grade for each, never more than all points, the sound ones all points."""
    chosen = [EXERCISES[n] for n in ("gemv", "ridge-point", "interchange")]
    version = {e.id: student_version(e, "ada") for e in chosen}
    document = "".join(
        f"[{e.id}]\n"
        + "".join(
            f"{p.part.id} = {json.dumps(version[e.id].kernels['model'] if p.part.reference else right_answer(p))}\n"
            for p in version[e.id].parts
        )
        for e in chosen
    ).encode()
    count: int = request.config.getoption("--submissions")
    rng = random.Random(17)
    for k in range(count):
        own = tmp_path / f"{k:05}"
        own.mkdir()
        sound = k % 8 == 0
        (own / "answers.toml").write_bytes(document if sound else _broken(document, rng))
    submissions = [("ada", path) for path in sorted(tmp_path.iterdir())]
    grades = grade_all(submissions, chosen, jobs=2)
    points = sum(e.points for e in chosen)
    assert all(g.score == points for g in grades[::8])
    assert all(0 <= g.score <= points and g.results for g in grades)
    assert any(g.problem for g in grades) and any(0 < g.score < points for g in grades)


@pytest.mark.thorough
def test_no_submission_harms_the_next(tmp_path: Path) -> None:
    """A class in which every second submission is damaged: the others get what they get alone."""
    good = '[ridge-point]\nridge = "1"\nattained = "225 GFLOP/s"\n'
    for k, how in enumerate(DAMAGED[1:]):
        _submission(how, tmp_path / f"{k:02}b")
        own = tmp_path / f"{k:02}c"
        own.mkdir()
        (own / "answers.toml").write_text(good)
    chosen = [EXERCISES["ridge-point"]]
    submissions = [(p.name, p) for p in sorted(tmp_path.iterdir())]
    grades = grade_all(submissions, chosen, jobs=2)
    assert [g.student for g in grades] == [name for name, _ in submissions]
    for g, (name, path) in zip(grades, submissions, strict=True):
        if name.endswith("c"):
            assert g == grade_submission(path, name, chosen)
            assert not g.problem
        else:
            assert g.score == 0


def _forever() -> str:
    while True:
        time.sleep(0.01)


def _busy() -> str:
    while True:
        pass


def _hungry() -> str:
    held = []
    while True:
        held.append(bytearray(50 << 20))


def _talkative() -> str:
    return "x" * (2 << 20)


def _crashing() -> str:
    os.abort()


def _failing() -> str:
    raise ValueError("this is a fault of the grader")


def _forking() -> str:
    if os.fork() == 0:
        time.sleep(600)
    return "left a child behind"


STOPPED: list[tuple[Callable[[], str], str]] = [
    (_busy, "more than 2 s of processor time"),
    (_hungry, "memory"),
    (_talkative, "wrote far more"),
    (_crashing, "crashed"),
    (_failing, "the grader failed on it (ValueError"),
]


def test_limits_of_time_memory_and_output() -> None:
    limits = Limits(cpu_s=2, memory_bytes=300 << 20, output_bytes=1 << 20)
    told: list[int] = []
    tasks = [lambda: "fine", *(task for task, _ in STOPPED), lambda: "fine too"]
    outcomes = run_all(tasks, 3, limits, lambda k, outcome: told.append(k))
    assert outcomes[0].text == "fine" and outcomes[-1].text == "fine too"
    for outcome, (_, says) in zip(outcomes[1:-1], STOPPED, strict=True):
        assert outcome.text is None and says in outcome.problem, outcome
    assert sorted(told) == list(range(len(tasks)))


def test_what_sleeps_or_leaves_a_child_behind_is_ended() -> None:
    told: list[int] = []
    tasks = [_forever, _forking, lambda: "fine"]
    sleeps, forks, other = run_all(tasks, 3, Limits(wall_s=3), lambda k, outcome: told.append(k))
    assert sleeps.text is None and "longer than 3 s" in sleeps.problem and other.text == "fine"
    assert forks.text is None and "longer than 3 s" in forks.problem
    assert sorted(told) == [0, 1, 2]


@pytest.mark.thorough
def test_one_answer_that_hangs_costs_one_exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission that had to be stopped is graded again, exercise by exercise."""
    from roofdsl.classroom import grade_submissions

    def hanging(version: StudentVersion, answers: Mapping[str, Any]) -> Result:
        if version.exercise.id == "gemv":
            _busy()
        return judge(version, answers)

    chosen = [EXERCISES["gemv"], EXERCISES["ridge-point"]]
    version = student_version(EXERCISES["ridge-point"], "ada")
    own = tmp_path / "ada"
    own.mkdir()
    answers = "".join(f'{p.part.id} = "{right_answer(p)}"\n' for p in version.parts)
    (own / "answers.toml").write_text(f'[gemv]\nW = "2*n**2"\n[ridge-point]\n{answers}')
    monkeypatch.setattr(grade_submissions, "judge", hanging)
    (grade,) = grade_all([("ada", own)], chosen, jobs=2, limits=Limits(cpu_s=2))
    assert [r.score for r in grade.results] == [0, 2]
    assert "more than 2 s of processor time" in grade.results[0].parts[0].message
