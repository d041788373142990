"""The instructor's guide says what there is, and its example works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from roofdsl.classroom.engine import _ASKS
from roofdsl.classroom.exercise_file import KINDS, Exercise, Part, course, load
from roofdsl.classroom.kernels import COUNTS
from roofdsl.classroom.student_version import MEASURED
from tests.classroom.spellings import one, right_answers, versions, wrong_answers
from tests.cli.conftest import Run, roofdsl

__all__ = ["roofdsl"]

GUIDE = (Path(__file__).parents[2] / "docs" / "exercises.md").read_text(encoding="utf-8")


def test_the_example_is_an_exercise(tmp_path: Path) -> None:
    example = re.search(r"<!-- test: an exercise -->\n```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert example is not None
    path = tmp_path / "scaling.toml"
    path.write_text(example[1])
    for version in versions(load(path)):
        for part in version.parts:
            assert all(one(version, part, text).correct for text in right_answers(part, version))
            for text, told in wrong_answers(part, version):
                assert one(version, part, text).message.endswith(told[0])


def test_the_sheet_of_a_file_names_the_file(roofdsl: Run, tmp_path: Path) -> None:
    """Its last line is a command that works as it stands."""
    example = re.search(r"<!-- test: an exercise -->\n```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert example is not None
    path = tmp_path / "scaling.toml"
    path.write_text(example[1])
    sheet = roofdsl("exercise", "show", str(path)).stdout
    command = sheet.rpartition("Check: roofdsl ")[2]
    assert str(path) in command
    answered = roofdsl(*shlex.split(command.replace("'...'", "1")))
    assert answered.returncode in (0, 1), answered.stderr
    assert "there is no exercise" not in answered.stderr


def test_the_session_is_as_shown(roofdsl: Run) -> None:
    """What the guide's first check answers, it does answer."""
    example = re.search(r"^\$ roofdsl (exercise check gemv .*)\n((?:.*\n)*?)\.\.\.\n", GUIDE, re.MULTILINE)
    assert example is not None
    assert roofdsl(*shlex.split(example[1])).stdout.startswith(example[2])


def test_everything_is_described() -> None:
    words = set(re.findall(r"\w+", GUIDE))
    for name in (*_ASKS, *KINDS, *COUNTS, *MEASURED, *Part.__match_args__):
        assert name in words, name
    for name in Exercise.__match_args__:
        assert name in words or name in ("id", "parts", "folder"), name
    assert f"{len(course())} exercises" in GUIDE
