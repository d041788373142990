"""How students write right answers, and what stays wrong: a table of each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from roofdsl.classroom.answer_language import show
from roofdsl.classroom.exercise_file import load
from roofdsl.classroom.formula_errors import FormulaError
from roofdsl.classroom.judge_answers import PartResult
from roofdsl.classroom.student_version import StudentVersion
from roofdsl.classroom.typed import readings
from tests.classroom.spellings import one

HERE = Path(__file__).parent


@cache
def _version() -> StudentVersion:
    return StudentVersion(load(HERE / "written.toml"), {})


def told(part: str, text: str) -> PartResult:
    """What is answered to a text as the answer to a part."""
    version = _version()
    return one(version, next(p for p in version.parts if p.part.id == part), text)  # type: ignore[no-any-return]


def _table(name: str) -> dict[str, list[str]]:
    """The answers in a file, by part."""
    found: dict[str, list[str]] = {}
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        part, colon, text = line.partition(": ")
        if colon and not line.startswith("#"):
            found.setdefault(part, []).append(text)
    return found


RIGHT = _table("right_answers.txt")
WRONG = _table("wrong_answers.txt")


def _rows(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(part, text) for part, texts in table.items() for text in texts]


def test_the_tables_are_long() -> None:
    assert len(set(_rows(RIGHT))) >= 200 and len(set(_rows(WRONG))) >= 100


@pytest.mark.spread(4)
@pytest.mark.parametrize("part", RIGHT)
def test_right_answers_however_they_are_written(part: str) -> None:
    lost = [(text, told(part, text).message) for text in RIGHT[part] if not told(part, text).correct]
    assert not lost, lost


@pytest.mark.spread(6)
@pytest.mark.parametrize("part", WRONG)
def test_wrong_answers_stay_wrong(part: str) -> None:
    given = [(text, told(part, text).message) for text in WRONG[part] if told(part, text).correct]
    assert not given, given


@pytest.mark.thorough
def test_every_answer_is_told_how_it_was_read() -> None:
    for part, text in (*_rows(RIGHT), *_rows(WRONG)):
        found = told(part, text)
        assert found.message.startswith("You wrote `"), (text, found.message)
        assert not found.correct or ", read as `" in found.reading, (text, found.message)
    assert told("W", "2n^2").message == "You wrote `2n^2`, read as `2*n**2`. Right."
    assert told("intensity", "1/2 FLOP/B").message == "You wrote `1/2 FLOP/B`, read as `(1/2) FLOP/B`. Right."


def test_what_is_shown_is_what_was_read() -> None:
    """A formula as it is shown is read again as the same."""
    nested = [("", "(n^2)^3"), ("", "(n^(1/3))^3*2n"), ("", "2^(3^n)")]
    for _, text in [*_rows({p: RIGHT[p] for p in ("cube", "triangle", "root", "product", "log")}), *nested]:
        for node in readings(text, ("n", "m", "b")):
            assert readings(show(node), ("n", "m", "b"))[0] == node, text


TWO_READINGS = [
    ("1/2n", ["1/2*n", "1/(2*n)"]),
    ("n/4(n+3)", ["n/4*(n + 3)", "n/(4*(n + 3))"]),
    ("1/2*n", ["1/2*n"]),
    ("1/(2n)", ["1/(2*n)"]),
    ("(1/2)n", ["1/2*n"]),
]


@pytest.mark.parametrize(("text", "expected"), TWO_READINGS)
def test_texts_with_two_readings(text: str, expected: list[str]) -> None:
    assert [show(node) for node in readings(text, ("n",))] == expected


REFUSED = [
    ("n2", "write n**2, or 2*n"),
    ("log(n)", "write logarithms as log2(...)"),
    ("2 3", "something is missing before `3`"),
    ("x + 1", "`x` is not known here"),
    ("24nB", "`nB` is not known here; write `n B`"),
    ("n = m = 2", "only the right-hand side"),
    ("2n GB", "`GB` is not known"),
    ("(" * 60 + "n" + ")" * 60, "nested more than 40"),
    ("n" * 600, "limit is 500"),
    ("\ufdfa" * 200, "characters"),
    ("2\u202en", "U+202E"),
    ("1" * 60, "more digits"),
    ("nmnmnmnmnmnm", "is not known here"),
    ("nnnnnnnn " * 50, "more than 250 names and numbers"),
    ("½" * 400, "more than 250 names and numbers"),
    (r"\sqrt[3]{n}", "write roots other than square roots as powers"),
]


@pytest.mark.spread(5)
@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_cannot_be_read_is_told(text: str, says: str) -> None:
    with pytest.raises(FormulaError) as error:
        readings(text, ("n", "m"))
    assert says in str(error.value)


BOMBS = [
    "9^9^9^9",
    "9⁹⁹⁹⁹",
    "(((9^64)^64)^64)^64",
    "1e99*" * 80 + "1",
    "n^64" * 100,
    "√" * 160 + "n",
    "½" * 160,
    "½" * 400,
    "nnnnnnnn " * 50,
    "2^(2^(2^(2^9)))",
]


@pytest.mark.spread(2)
@pytest.mark.parametrize("text", BOMBS)
def test_no_answer_takes_long(text: str) -> None:
    import time

    begun = time.process_time()
    assert not told("W", text).correct and not told("peak", text).correct
    assert time.process_time() - begun < 10


def test_a_wrong_answer_is_shown_in_both_readings() -> None:
    """A right one only in the reading that is right."""
    assert "read as `1/2*n` or `1/(2*n)`." in told("W", "1/2n").reading
    assert "read as `n/(4*n + 12)`." in told("I", "n/(4n + 12)").reading
