"""Ctrl-C in the middle of long commands: one word, the old file, and no process left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

AFTER_S = 0.7
"""From the beginning of a command on; each of them takes many times as long. None compiles with numba meanwhile, whose
callbacks now and then swallow an interrupt."""

LONG = {
    "derive, in child processes": "derive conv2d",
    "explore": "explore conv2d --machine v100_deck -o out",
    "sweep": "sweep matmul --machine v100 --set n=200..1000:+1 -o out",
    "suite": "suite polybench --machine v100_deck --size large",
}

# What a terminal does: every process of the command gets the signal.
SCRIPT = f"""
import os, signal, sys
from roofdsl.cli.main import main
signal.signal(signal.SIGALRM, lambda *_: os.killpg(os.getpgrp(), signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, {AFTER_S})
main(sys.argv[1:])
"""


def gone(group: int) -> bool:
    """Whether no process of the group is left, in a while."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.usefixtures("interruptible")
@pytest.mark.spread(1)
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes here")
@pytest.mark.parametrize("what", LONG)
def test_an_interrupted_command_leaves_nothing_half_done(what: str, tmp_path: Path) -> None:
    ending = {"explore": ".html", "sweep": ".csv"}.get(what, ".txt")
    old = tmp_path / f"out{ending}"
    old.write_text("old")
    command = LONG[what].replace("-o out", f"-o out{ending}").split()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *command],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, told.splitlines()[-1]) == (130, "interrupted"), told
    assert "Traceback" not in told
    assert old.read_text() == "old"
    left = {path.name for path in tmp_path.iterdir() if path != old}
    # A sweep keeps the points that it has counted by then, and says where.
    assert left == ({"out.csv.journal"} if "counted points are in out.csv.journal" in told else set())
    assert gone(process.pid)
