"""Running the program as people do: in a process of its own, its output captured as in a pipe.

The process is a fork of the one that runs the tests, which has imported the package already: imports take most of the
time of a short command.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from roofdsl.__main__ import main

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
Run = Callable[..., subprocess.CompletedProcess[str]]
Said = Callable[..., None]


LIMIT_S = 120


@pytest.fixture
def roofdsl() -> Run:
    """`roofdsl("check", "a.roof", stdin="...")`: runs in the repository's root, never raises for an exit status.

    fresh: in a new process, for what depends on the memory, the modules or the threads of the one that runs the tests.
    """

    def run(*args: str, stdin: str = "", fresh: bool = False, **env: str) -> subprocess.CompletedProcess[str]:
        environment = {"COLUMNS": "100", **env}
        if not fresh and hasattr(os, "fork"):
            return _copied(args, stdin, environment)
        return subprocess.run(
            [sys.executable, "-m", "roofdsl", *args],
            input=stdin, capture_output=True, text=True, cwd=ROOT, check=False, timeout=LIMIT_S,
            env={**os.environ, **environment},
        )  # fmt: skip

    return run


def _copied(args: tuple[str, ...], stdin: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        child = os.fork()
        if child == 0:
            _run_and_exit(args, [given.fileno(), out.fileno(), err.fileno()], env)
        if not _ends_within(child, LIMIT_S):
            os.kill(child, 9)
            os.waitpid(child, 0)
            raise subprocess.TimeoutExpired(args, LIMIT_S)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(args, status, out.read().decode(), err.read().decode())


def _ends_within(child: int, seconds: float) -> bool:
    """Whether the process ends in that time. Where the system can wait for it, that takes none of the child's."""
    if hasattr(os, "pidfd_open"):
        watched = os.pidfd_open(child)
        try:
            return bool(select.select([watched], [], [], seconds)[0])
        finally:
            os.close(watched)
    end = time.monotonic() + seconds
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _run_and_exit(args: tuple[str, ...], files: list[int], env: dict[str, str]) -> NoReturn:
    status = 70
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdin, sys.stdout, sys.stderr = (open(k, mode, closefd=False) for k, mode in enumerate("rww"))  # noqa: SIM115
        os.chdir(ROOT)
        os.environ.update(env)
        sys.argv[1:] = args
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


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
