"""Runs each task in its own process, a fork of this one, with limits on time, memory and output.

The parent has imported and derived everything before, so that a task costs a fork and its own work. A task that
crashes, hangs, fills memory or never stops writing does not affect the others.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record

_CHUNK = 1 << 16
_MEMORY, _RAISED = 4, 3
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Limits(Record):
    """The limits of one task. memory_bytes is in addition to what the parent holds."""

    wall_s: float = 60.0
    cpu_s: int = 45
    memory_bytes: int = 2 << 30
    output_bytes: int = 4 << 20
    file_bytes: int = 64 << 20


DEFAULTS = Limits()


class Outcome(Record):
    """The text that a task returned; None if it failed or was stopped, and then `problem` says why."""

    text: str | None
    problem: str = ""


class _Child:
    """A running task: its process, its pipe, and its output so far."""

    def __init__(self, index: int, pid: int, pipe: int, end: float) -> None:
        self.index, self.pid, self.pipe, self.end = index, pid, pipe, end
        self.data = bytearray()
        self.ended = False


def run_all(
    tasks: Sequence[Callable[[], str]],
    jobs: int,
    limits: Limits = DEFAULTS,
    done: Callable[[int, Outcome], None] | None = None,
) -> list[Outcome]:
    """Runs the tasks, `jobs` at a time, and returns their outcomes; `done` gets each outcome as its task ends.

    A task that raises also gives an Outcome. Raises CommandError if the system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise CommandError("grading needs forked processes, which this system does not have")
    found: dict[int, Outcome] = {}
    waiting = list(range(len(tasks)))[::-1]
    running: dict[int, _Child] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    child = _start(waiting[-1], tasks[waiting.pop()], limits)
                    running[child.pipe] = child
                    selector.register(child.pipe, selectors.EVENT_READ)
                for pipe in _ready(selector, running, limits):
                    child = running.pop(pipe)
                    selector.unregister(pipe)
                    outcome = found[child.index] = _finish(child, limits)
                    if done is not None:
                        done(child.index, outcome)
        finally:
            for child in running.values():
                _finish(child, limits)
    return [found[k] for k in range(len(tasks))]


def _ready(selector: selectors.BaseSelector, running: dict[int, _Child], limits: Limits) -> list[int]:
    """Reads the available output; returns the pipes of children that are done or have to be stopped."""
    first = min(c.end for c in running.values())
    for key, _ in selector.select(max(0.0, min(1.0, first - time.monotonic()))):
        child = running[key.fd]
        data = os.read(child.pipe, _CHUNK)
        child.data += data
        child.ended = not data
    now = time.monotonic()
    return [pipe for pipe, c in running.items() if c.ended or c.end <= now or len(c.data) > limits.output_bytes]


def _start(index: int, task: Callable[[], str], limits: Limits) -> _Child:
    reading, writing = os.pipe()
    parent = os.getpid()
    _ = _prctl()  # loaded here once, not in every child
    pid = os.fork()
    if pid == 0:
        status = _RAISED
        try:
            _die_with(parent)
            os.close(reading)
            _confine(limits)
            _write(writing, task().encode("utf-8", "replace"))
            status = 0
        except MemoryError:
            status = _MEMORY
        except Exception as error:
            _write(writing, f"{type(error).__name__}: {error}"[:1000].encode("utf-8", "replace"))
        finally:  # not sys.exit, which would run the parent's exit handlers here
            os._exit(status)
    os.close(writing)
    os.set_blocking(reading, True)
    return _Child(index, pid, reading, time.monotonic() + limits.wall_s)


@cache
def _prctl() -> Any:
    """Linux's prctl; None on other systems."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None


def _die_with(parent: int) -> None:
    """Makes this process end when its parent ends, for whatever reason. On systems without such a call, its limits end
    it.
    """
    prctl = _prctl()
    if prctl is None:
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the system was told
        os._exit(_RAISED)


def _confine(limits: Limits) -> None:
    """Sets the limits, puts the process into its own group, and disconnects it from the terminal."""
    import faulthandler
    import resource

    faulthandler.disable()
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nowhere, handle)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    held = _held_bytes()
    for what, least in (
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
        *(((resource.RLIMIT_AS, held + limits.memory_bytes),) if held else ()),
    ):
        _, hard = resource.getrlimit(what)
        value = least if hard == resource.RLIM_INFINITY else min(least, hard)
        resource.setrlimit(what, (value, value))


def _held_bytes() -> int:
    """The size of this process's address space in bytes; 0 if the system does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _write(pipe: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


def _finish(child: _Child, limits: Limits) -> Outcome:
    """Stops the remaining processes of the child's group and returns its outcome."""
    os.close(child.pipe)
    if not child.ended:
        _kill(child.pid)
    if hasattr(os, "waitid"):  # not on every macOS
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        _kill(child.pid)  # any processes it forked; its number cannot be reused before we wait for it
    _, status = os.waitpid(child.pid, 0)
    if len(child.data) > limits.output_bytes:
        return Outcome(None, "it wrote far more than a result needs")
    if not child.ended:
        return Outcome(None, f"it took longer than {limits.wall_s:g} s")
    code = os.waitstatus_to_exitcode(status)
    text = child.data.decode("utf-8", "replace")
    if code == 0:
        return Outcome(text)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(None, f"it took more than {limits.cpu_s} s of processor time, or too much memory")
    if code < 0:
        return Outcome(None, f"it crashed ({signal.Signals(-code).name})")
    return Outcome(None, "it needed too much memory" if code == _MEMORY else f"the grader failed on it ({text})")


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
