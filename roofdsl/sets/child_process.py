"""Native code in forked children: isolated if it may crash or run for hours, and on all cores if there is much of it.

If the system cannot fork, everything runs in this process, one task after another and without a limit.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import struct
from collections.abc import Callable, Sequence
from math import inf

from roofdsl import budget, reproducibility
from roofdsl.overtime import forking

CAN_FORK = hasattr(os, "fork") and hasattr(signal, "setitimer")

MOST_TASKS = 10_000
"""A number of task numbers that a pipe certainly holds at once."""

_NUMBER = struct.Struct("<I")


_RAISED = 3
"""Exit status of a child whose task raised an exception."""

_NOT_REPRODUCIBLE = {4: reproducibility.decided_by_clock, 5: reproducibility.decided_by_chance}
"""Exit statuses of a child whose answer depends on the circumstances, and the function that reports this here."""


_is_worker: list[None] = []  # one entry in a copy that works for `in_children`, none elsewhere


class Stopped(Exception):
    """A child exceeded its limit or crashed."""


class Raised(Exception):
    """The task raised an exception in the child; run it in this process to get the exception."""


def in_child(task: Callable[[], str], seconds: float) -> str:
    """The text that `task` returns, computed in a forked copy of this process within `seconds` of processor time.

    Raises Stopped if the copy takes longer or crashes, and Raised if the task raises an exception. Within a task of
    `in_children`, no other copy is made, which takes longer than most tasks: beyond the limit, or if it crashes, the
    copy that works on it ends.
    """
    if not CAN_FORK:
        return task()
    if _is_worker:
        return _within(task, seconds)
    return _in_copies([lambda: task().encode()], seconds)[0].decode()


def in_children(
    tasks: Sequence[Callable[[], str]], seconds: float, together_s: float = inf, ends_all: str | None = None
) -> list[str]:
    """The texts that the tasks return, computed by as many forked copies as there are cores.

    A free copy takes the next task. Each copy gets `seconds` of processor time for all of its tasks, and all copies
    together get `together_s`. After a task that returns the text `ends_all`, no other task is started, and that text
    stands for theirs. Raises as `in_child` does, also if one of them is stopped within a task. On one core, and for one
    task or more than MOST_TASKS, everything runs in this process without a limit.
    """
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, len(tasks))
    if not CAN_FORK or workers < 2 or len(tasks) > MOST_TASKS:
        return _one_by_one(tasks, ends_all)
    queue, waiting = os.pipe()
    os.write(waiting, b"".join(_NUMBER.pack(k) for k in range(len(tasks))))
    os.close(waiting)

    def work() -> bytes:
        _is_worker.append(None)
        done = []
        while number := os.read(queue, _NUMBER.size):
            text = tasks[_NUMBER.unpack(number)[0]]().encode()
            done += [number, _NUMBER.pack(len(text)), text]
            if ends_all is not None and text == ends_all.encode():
                while os.read(queue, _NUMBER.size):  # remove the remaining tasks from the queue
                    pass
        return b"".join(done)

    try:
        answers = _in_copies([work] * workers, min(seconds, together_s / workers))
    finally:
        os.close(queue)
    found: dict[int, str] = {}
    for answer in answers:
        at = 0
        while at < len(answer):
            (k,), (length,) = _NUMBER.unpack_from(answer, at), _NUMBER.unpack_from(answer, at + _NUMBER.size)
            at += 2 * _NUMBER.size
            found[k] = answer[at : at + length].decode()
            at += length
    return [found[k] if k in found or ends_all is None else ends_all for k in range(len(tasks))]


def _within(task: Callable[[], str], seconds: float) -> str:
    """The text that `task` returns, computed here. This process ends if that takes more than `seconds`, or than it has
    left. Raises Raised.
    """
    left = signal.getitimer(signal.ITIMER_VIRTUAL)[0]
    limit = min(left, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        return task()
    except Exception as error:
        raise Raised from error
    finally:
        unused = signal.getitimer(signal.ITIMER_VIRTUAL)[0]
        signal.setitimer(signal.ITIMER_VIRTUAL, max(left - (limit - unused), 1e-6))  # 0 would mean no limit


def _one_by_one(tasks: Sequence[Callable[[], str]], ends_all: str | None) -> list[str]:
    """The texts that the tasks return, as from `in_children`, computed in this process."""
    texts: list[str] = []
    for task in tasks:
        texts.append(task())
        if texts[-1] == ends_all:
            return texts + [texts[-1]] * (len(tasks) - len(texts))
    return texts


def _in_copies(tasks: Sequence[Callable[[], bytes]], seconds: float) -> list[bytes]:
    """The bytes that the tasks return, each computed in its own forked copy, all at once. Raises Stopped and Raised."""
    running: list[tuple[int, int]] = []
    answers: list[bytes] = []
    ends: set[int] = set()
    try:
        for task in tasks:
            reading, writing = os.pipe()
            with forking():
                child = os.fork()
            if child == 0:
                _answer(task, seconds, writing)
            os.close(writing)
            running.append((child, reading))
        while running:
            child, reading = running[0]
            with os.fdopen(reading, "rb", closefd=False) as pipe:
                answers.append(pipe.read())
            del running[0]
            os.close(reading)
            ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    finally:  # an interrupt from the keyboard must not leave children behind
        for child, reading in running:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
    for status, tell in _NOT_REPRODUCIBLE.items():
        if status in ends:
            tell()
    if ends - {0, _RAISED, *_NOT_REPRODUCIBLE}:
        if ends <= {0, _RAISED, *_NOT_REPRODUCIBLE, -signal.SIGVTALRM}:
            reproducibility.decided_by_clock()
        else:
            reproducibility.decided_by_chance()
        raise Stopped
    if _RAISED in ends:
        raise Raised
    return answers


def _answer(task: Callable[[], bytes], seconds: float, writing: int) -> None:
    """In the child: write the answer and exit at once, without the parent's exit handlers and buffers."""
    code = _RAISED
    try:
        faulthandler.disable()  # the parent reports a crash
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)  # also ends native code, which a Python handler would not
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        budget.forked(seconds)
        before = reproducibility.seen()
        answer = task()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        more = reproducibility.since(before)
        code = 4 if more.clock else 0
        if more.chance:
            code = 5
    finally:
        os._exit(code)
