"""Running the program as people do: in a process of its own, its output captured as in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


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
