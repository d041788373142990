"""What the commands print, held against golden files; their errors and exit statuses; figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.cli.main import run

GOLDEN = Path(__file__).parent / "golden"
Compare = Callable[[Path, str], None]

PRINTED = {
    "list": ["list"],
    "list_blocking.json": ["list", "--unit", "blocking", "--json"],
    "show_gemv": ["show", "gemv", "--student", "ada"],
    "show_gemv_hints": ["show", "gemv", "--student", "ada", "--hint", "1"],
    "show_gemv_solution": ["show", "gemv", "--student", "ada", "--solution"],
    "show_gemv.json": ["show", "gemv", "--student", "ada", "--hint", "2", "--solution", "--json"],
    "show_summit-streams": ["show", "summit-streams", "--solution"],
    "show_interchange": ["show", "interchange", "--student", "ada", "--solution"],
    "template_fuse": ["show", "fuse", "--student", "ada", "--template"],
    "check_right": ["check", "gemv", "W=n*2*n", "Q=8*n*(n+2)", "I=1/(4+8/n)", "limit=0.25 FLOP/B"],
    "check_wrong": ["check", "gemv", "W=2n", "Q=4*n**2+8*n", "I=n", "limit=4 B"],
    "check.json": ["check", "ridge-point", "ridge=7.78", "attained=7 TFLOP/s", "--json"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str, golden: Compare, capfd: pytest.CaptureFixture[str]) -> None:
    status = run(["exercise", *PRINTED[name]])
    out = capfd.readouterr().out
    assert status == (1 if name in ("check_wrong", "check.json") else 0)
    golden(GOLDEN / (name if "." in name else f"{name}.txt"), out)


def test_a_question_says_how_exact_its_answer_has_to_be(capfd: pytest.CaptureFixture[str]) -> None:
    """A number may be rounded to one percent; the sheet and the file to fill in name the smaller tolerances."""
    assert run(["exercise", "show", "gib-and-gb"]) == 0
    assert "bytes (a number in GB, within 0.5 %; 1 point)" in capfd.readouterr().out
    assert run(["exercise", "show", "largest-tile"]) == 0
    assert "b (an exact number; 1 point)" in capfd.readouterr().out
    assert run(["exercise", "show", "largest-tile", "--template"]) == 0
    assert "(an exact number)" in capfd.readouterr().out


def test_the_document_of_a_check(capfd: pytest.CaptureFixture[str]) -> None:
    """The keys that scripts rely on."""
    assert run(["exercise", "check", "gemv", "W=2*n**2", "--json"]) == 1
    document = json.loads(capfd.readouterr().out)
    assert set(document) == {"schema", "exercise", "score", "max_score", "parts"}
    assert (document["schema"], document["exercise"]) == ("roofdsl.exercise/1", "gemv")
    assert (document["score"], document["max_score"]) == (1, 4)
    assert all(set(p) == {"id", "correct", "score", "max_score", "message"} for p in document["parts"])
    assert [p["correct"] for p in document["parts"]] == [True, False, False, False]


@pytest.mark.parametrize(("answer", "told"), [
    ((), "rate: not answered, 0 of 1\n"),
    (("rate=1 parsec",), "`parsec` is not a unit of a rate of operations; give a number with a unit,\n  such as"),
    (("rate=2 +",), "This cannot be read as a number. The formula ends where a number or a name is\n  expected.\n"),
])  # fmt: skip
def test_answers_that_are_missing_or_no_numbers(
    answer: tuple[str, ...], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rates.toml"
    part = '[[part]]\nid = "{}"\nkind = "number"\nunit = "GFLOP/s"\nask = "How fast?"\nanswer = "{}*10**9"\n'
    head = 'title = "Rates"\nunit = "time"\nlevel = 1\ntext = "Two rates."\n'
    path.write_text(head + part.format("rate", 225) + part.format("other", 3), encoding="utf-8")
    assert run(["exercise", "check", str(path), *answer, "other=3"]) == 1
    assert told in capfd.readouterr().out


ERRORS = [
    (["show", "gem"], "there is no exercise `gem`", "gemv"),
    (["show", "../../etc/passwd"], "there is no exercise", ""),
    (["check", "gemv"], "no answers to check", "PART=ANSWER"),
    (["check", "gemv", "V=3"], "none of W=..., Q=...", ""),
    (["check", "gemv", "--answers", "missing.toml"], "nothing to read", ""),
    (["check", "fuse", "kernel=missing.roof"], "`missing.roof` cannot be read", ""),
    (["list", "--unit", "cooking"], "no unit `cooking`", ""),
    (["grade", "missing"], "is not a folder", ""),
    (["grade", "tests", "--only", "cooking"], "no exercise or unit `cooking`", ""),
    (["show", "gemv", "-o", "figure.svg"], "has no figure", ""),
    (["autograder", "-o", "missing/a.zip"], "cannot be written", ""),
]


@pytest.mark.parametrize(("arguments", "says", "helps"), ERRORS)
def test_errors(arguments: list[str], says: str, helps: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["exercise", *arguments]) == 2
    err = capfd.readouterr().err
    assert says in err and helps in err and "Traceback" not in err


def test_answers_from_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The template, filled in, is a file of answers; a kernel may stand in a file beside it."""
    assert run(["exercise", "show", "interchange", "--template"]) == 0
    text = capfd.readouterr().out.replace('kernel = ""', 'kernel = "sums.roof"')
    (tmp_path / "answers.toml").write_text(text)
    arguments = ["exercise", "check", "interchange", "--answers", str(tmp_path)]
    assert run(arguments) == 1
    assert "sums.roof" in capfd.readouterr().out
    from roofdsl.classroom.exercise_file import course
    from roofdsl.classroom.student_version import student_version

    (tmp_path / "sums.roof").write_text(student_version(course()["interchange"], "").kernels["model"])
    assert run(arguments) == 0
    assert run(["exercise", "check", "interchange", f"kernel={tmp_path / 'sums.roof'}"]) == 0


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["read-roofline", "read-traffic"])
def test_figures(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A figure is drawn, and gives no answer away in words."""
    path = tmp_path / "figure.svg"
    assert run(["exercise", "show", name, "--student", "ada", "--plot", str(path)]) == 0
    assert path.read_text().startswith("<?xml")
    assert len(path.read_bytes()) > 10_000
