"""Ends this process when its time is over, even inside native code, where Python handles no signals for minutes.

A small copy of the process sleeps beside it and checks its processor time every half second, on systems that report it
in /proc. `budget` says at which time the process is to end, and can postpone that as long as it runs.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

LOOK_S = 0.5
"""Time between two looks."""

_TIME = struct.Struct("d")

_forks: list[None] = []  # one for each that has begun and not ended


@contextmanager
def forking() -> Iterator[None]:
    """While this process makes a copy of itself.

    Around a fork, Python and its libraries take locks and give them back. A signal's handler that forks in between, as
    `budget`'s does to begin a Watcher, would wait for these locks for ever: `is_forking` tells it to come back later.
    """
    _forks.append(None)
    try:
        yield
    finally:
        del _forks[-1:]  # none is left in the copy


def is_forking() -> bool:
    """Whether a fork has begun and not ended."""
    return bool(_forks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forks.clear)


class Watcher:
    """Watches this process until `stop`. Prints `last_words` and kills the process when it reaches the processor time
    `end_at`.
    """

    def __init__(self, last_words: str) -> None:
        self._shared = mmap.mmap(-1, _TIME.size)
        self._parent = os.getpid()
        self.end_at(inf)
        with forking():
            self._child = os.fork()
        if not self._child:
            try:
                self._watch(last_words.encode(errors="replace"))
            finally:
                os._exit(0)

    @staticmethod
    def is_possible() -> bool:
        """Whether the system provides what it needs."""
        return hasattr(os, "fork") and Path("/proc/self/stat").exists()

    def end_at(self, processor_s: float) -> None:
        """The processor time of this process and its ended children, in seconds, at which it is to be killed."""
        if os.getpid() == self._parent:  # not in a copy of it
            self._shared[:] = _TIME.pack(processor_s)

    def stop(self) -> None:
        """Stops watching."""
        if os.getpid() == self._parent:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)

    def _watch(self, last_words: bytes) -> None:
        for number in (signal.SIGINT, signal.SIGPROF):
            signal.signal(number, signal.SIG_IGN)
        # Readers of our output, or of a pipe to another child, see its end only once every process has closed it.
        os.closerange(0, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        while os.getppid() == self._parent:
            (end_at,) = _TIME.unpack(self._shared[:])
            if _processor_s(self._parent) > end_at:
                os.write(2, last_words)
                os.kill(self._parent, signal.SIGKILL)
                return
            time.sleep(LOOK_S)


def _processor_s(process: int) -> float:
    """Processor time of a process and its children that have ended; source: proc(5), fields 14 to 17 of stat."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
