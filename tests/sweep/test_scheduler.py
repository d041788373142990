"""A scheduler that ends in the middle of a sweep: the sweep ends too, and says what it has and how to go on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

pytest.importorskip("distributed")

ENDS_S = 240
"""Seconds on the clock by which everything here ends: what hangs is killed then, and the test fails."""

POINTS = ("--machine", "v100_deck", "--set", "n=901..1135:+6")

Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a scheduler or a worker at an address."""
    begun: list[subprocess.Popen[str]] = []

    def run(what: str, address: str) -> subprocess.Popen[str]:
        own = (
            ["scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2]]
            if what == "scheduler"
            else ["worker", address, "--nthreads", "1", "--no-nanny", "--death-timeout", "60"]
        )
        begun.append(
            subprocess.Popen(
                [sys.executable, "-m", "dask", *own, "--no-dashboard"],
                cwd=ROOT, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        )  # fmt: skip
        return begun[-1]

    yield run  # type: ignore[misc]
    for process in begun:
        process.kill()
        process.wait()


def _free_address() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


def _await_scheduler(address: str) -> None:
    host, port = address.removeprefix("tcp://").split(":")
    deadline = time.monotonic() + ENDS_S
    while time.monotonic() < deadline:
        with socket.socket() as found:
            if found.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the scheduler does not start")


def _lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["killed", "restarted", "stopped"])
def test_a_scheduler_that_ends(how: str, tmp_path: Path, start: Callable[[str, str], subprocess.Popen[str]]) -> None:
    """Killed, killed and started again with a worker, or stopped: in each case an error of one sentence and status 2,
    the points done are kept, and the same command without a scheduler goes on from them.
    """
    address, out, journal = _free_address(), tmp_path / "t.csv", tmp_path / "t.csv.journal"
    scheduler = start("scheduler", address)
    _await_scheduler(address)
    start("worker", address)
    arguments = [sys.executable, "-m", "roofdsl", "sweep", "gemv", *POINTS, "-o", str(out)]
    running = subprocess.Popen(
        [*arguments, "--scheduler", address], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + ENDS_S
        while time.monotonic() < deadline and _lines(journal) < 3 and running.poll() is None:
            time.sleep(0.02)
        os.kill(scheduler.pid, signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
        if how == "restarted":
            scheduler.wait()
            start("scheduler", address)
            _await_scheduler(address)
            start("worker", address)
        _, said = running.communicate(timeout=ENDS_S)
    finally:
        running.kill()
    assert running.returncode == 2
    assert f"error: the scheduler at `{address}` no longer responds" in said
    assert f"are in {journal}; the same command continues from there" in said and "without --scheduler" in said
    assert len(said.splitlines()) == 2, said
    kept = _lines(journal) - 1
    assert 2 <= kept < 40 and not out.exists()
    if how != "killed":  # the rest is the same
        return
    done = subprocess.run(arguments, check=False, cwd=ROOT, text=True, capture_output=True, timeout=ENDS_S)
    assert done.returncode == 0 and out.read_text().count("\n") == 41 and not journal.exists()
