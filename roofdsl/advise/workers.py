"""Tasks in child processes, a few at a time. Each is stopped when its time is up; its last report counts.

Time limits are in processor time, so that answers do not depend on what else is running. A wall-clock limit ends tasks
that only wait.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from roofdsl import budget
from roofdsl.overtime import forking

Tell = Callable[[Any], None]
Task = Callable[[Tell], None]
"""A task reports its findings, possibly several times; the last report counts."""

CAN_FORK = hasattr(os, "fork") and hasattr(signal, "setitimer")

PATIENCE = 5
"""Wall-clock seconds allowed per second of a task's processor time. A task's processor time does not include that of
children that the counting library starts, so only this limit ends them."""

LEAST_S = 0.25
"""The least processor time of a task, even if the command's budget has less left."""


def run_all(tasks: Sequence[Task], seconds: float, progress: Callable[[int], None], left_out: str = "") -> list[Any]:
    """The last report of each task within `seconds` of processor time; None if it reported nothing.

    `progress` gets the number of tasks done. Once the command's budget is spent, no more tasks are started;
    `left_out` is what messages call those that were not started.

    If the system cannot fork, all tasks run in this process, one after another and without a limit.
    """
    found: list[Any] = [None] * len(tasks)
    if not CAN_FORK:
        for k, task in enumerate(tasks):
            task(lambda told, k=k: found.__setitem__(k, told))  # type: ignore[misc]
            progress(k + 1)
        return found
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    running: dict[Connection, tuple[int, Any, float]] = {}
    waiting = list(enumerate(tasks))[::-1]
    done = 0
    try:
        while waiting or running:
            while waiting and len(running) < cores:
                left = budget.left_s()
                if left <= 0:
                    budget.leave_out(left_out or "what was not begun")
                    waiting.clear()
                    break
                k, task = waiting.pop()
                reading, child = _begin(task, min(seconds, max(LEAST_S, left / cores)))
                running[reading] = (k, child, time.monotonic() + PATIENCE * seconds)
            if not running:
                break
            now = time.monotonic()
            ready = wait(list(running), max(0.0, min(end for _, _, end in running.values()) - now))
            for reading in [r for r in running if r in ready]:
                try:
                    found[running[reading][0]] = reading.recv()
                except EOFError:
                    _end(reading, running.pop(reading)[1])
                    done += 1
                    progress(done)
            for reading, (_, child, end) in list(running.items()):
                if time.monotonic() > end:
                    del running[reading]
                    _end(reading, child)
                    done += 1
                    progress(done)
    finally:  # an interrupt from the keyboard must not leave children behind
        for reading, (_, child, _) in running.items():
            _end(reading, child)
    return found


def _begin(task: Task, seconds: float) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(task, seconds, writing))
    with forking():
        child.start()
    writing.close()
    return reading, child


def _work(task: Task, seconds: float, writing: Connection) -> None:
    os.setpgid(0, 0)  # its own process group, so that children of the counting library end with it
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # also ends native code, which a Python handler would not
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    task(writing.send)


def _end(reading: Connection, child: Any) -> None:
    """End a child and the children it started."""
    reading.close()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has already ended, or had no process group yet
        child.kill()
    child.join()
