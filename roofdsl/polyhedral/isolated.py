"""Native code that may run for hours or crash, run in a forked child within a limit of processor time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

CAN_FORK = hasattr(os, "fork") and hasattr(signal, "setitimer")


class Stopped(Exception):
    """The child ran past its limit or crashed."""


def in_child(task: Callable[[], str], seconds: float) -> str:
    """The text that `task` returns, computed in a forked copy of this process within `seconds` of processor time.

    Raises Stopped where the copy takes longer, crashes or fails. Where the system cannot fork, `task` runs here,
    without a limit.
    """
    if not CAN_FORK:
        return task()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(task, seconds, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
    except BaseException:  # an interrupt from the keyboard must not leave the child behind
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise Stopped
    return answer.decode()


def _answer(task: Callable[[], str], seconds: float, writing: int) -> None:
    """In the child: write the answer and end at once, without the parent's exit handlers and buffers."""
    code = 1
    try:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # ends native code too, which a Python handler would not
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(task().encode())
        code = 0
    finally:
        os._exit(code)
