"""Running the program as people do: in a process of its own, its output captured as in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
Run = Callable[..., subprocess.CompletedProcess[str]]
Said = Callable[..., None]


@pytest.fixture
def roofdsl() -> Run:
    """`roofdsl("check", "a.roof", stdin="...")`: runs in the repository's root, never raises for an exit status."""

    def run(*args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "roofdsl", *args],
            input=stdin, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120,
            env={**os.environ, "COLUMNS": "100", **env},
        )  # fmt: skip

    return run


def _words(line: str) -> list[str]:
    """The words of a command line; a no-break space stands for a space within a word."""
    return [word.replace("\u00a0", " ") for word in line.split(" ")]


@pytest.fixture
def prints(roofdsl: Run, golden: Callable[[Path, str], None]) -> Said:
    """`prints("derive_lstm", "derive lstm_forward")`: it prints golden/derive_lstm.txt, and nothing is wrong."""

    def check(name: str, line: str) -> None:
        result = roofdsl(*_words(line))
        assert (result.returncode, result.stderr) == (0, "")
        golden(GOLDEN / f"{name}.txt", result.stdout)

    return check


@pytest.fixture
def fails(roofdsl: Run, golden: Callable[[Path, str], None]) -> Said:
    """`fails("no_file", "predict missing.roof", 2)`: that exit status, golden/error_no_file.txt and no traceback."""

    def check(name: str, line: str, status: int = 2) -> None:
        result = roofdsl(*_words(line))
        assert (result.returncode, result.stdout) == (status, "")
        assert "Traceback" not in result.stderr
        golden(GOLDEN / f"error_{name}.txt", result.stderr)

    return check
