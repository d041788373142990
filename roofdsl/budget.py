"""How much processor time and memory a command may take, shared by all that it does.

A command line begins one budget; programs that import roofdsl have none. Work that is long and can be left out runs in
a `region`, where `Spent` is raised once nothing is left; the region's caller turns that into a note. A command that
does nothing but analyze is stopped altogether some time later, wherever it is.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import Any

from roofdsl.overtime import Watcher, is_forking

DEFAULT_S = 20.0
DEFAULT_BYTES = 4 << 30

TICK_S, SOON_S = 0.2, 0.001
"""Processor time between two looks at what is left, and until the next look if an interrupt would do harm now."""

GRACE, LEAST_GRACE_S = 0.25, 5.0
"""Time beyond the budget to report what was found: a share of the budget, but at least LEAST_GRACE_S seconds. Then the
command is stopped.
"""

WATCHED_FROM_S, OVERTIME_S = 0.3, 2.0
"""Processor time after which a command is watched from outside (`overtime`), and the time from when it should
have stopped until it is killed.
"""

_LONGER = ((20, "20s"), (120, "2min"), (600, "10min"), (3600, "1h"), (6 * 3600, "6h"), (24 * 3600, "24h"))
"""Budgets to be proposed: seconds, and how they are written."""


class Spent(Exception):
    """The budget is spent. Code that runs in a `region` may meet it between any two of its steps."""


class Budget:
    """The budget of one command; there is one at a time, in the main thread.

    whole: all work counts, and the command is stopped some time after the end of the budget. Otherwise only the work in
    regions counts, since the command has long work of its own (it measures, for example). chosen: whether `--budget`
    could change it.
    """

    def __init__(self, seconds: float, memory_bytes: int, *, whole: bool, chosen: bool = True) -> None:
        self.seconds, self.memory_bytes, self.whole, self.chosen = seconds, memory_bytes, whole, chosen
        self.deadline = seconds
        self.doing: list[str] = []  # the regions that we are in
        self.once = ""  # what is done once on this computer, at the moment
        self.left_out: dict[str, None] = {}  # the names of results left out, in order
        self.on_tick: Callable[[], None] | None = None
        self._uncounted = processor_s()  # processor time: all until now, and some of what follows
        self._left_region = processor_s()
        self._interrupts = False
        self._grace = max(LEAST_GRACE_S, seconds * GRACE)
        self._stop_at = seconds + self._grace
        self._told, self._paused = False, False
        self._handler: Any = None
        self.last_words = ""  # the message if the process has to be killed
        self._watcher: Watcher | None = None

    def spent(self) -> float:
        """Processor time that counts, in seconds."""
        now = processor_s() if self.whole or self.doing else self._left_region
        return now - self._uncounted

    def left(self) -> float:
        """Processor time that is left for the current part, in seconds; negative beyond the end."""
        return self.deadline - self.spent()

    @contextmanager
    def region(self, what: str, on_tick: Callable[[], None] | None) -> Iterator[None]:
        """The work in here is interrupted by Spent once the budget is spent."""
        outermost = not self.doing
        if outermost and not self.whole:
            self._uncounted += processor_s() - self._left_region
        self.doing.append(what)
        before, self.on_tick = self.on_tick, on_tick or self.on_tick
        try:
            if self.left() <= 0:
                raise Spent
            if outermost:
                if not self.whole:
                    _set_timer(TICK_S)
                self._interrupts = True
            yield
        finally:
            if outermost:
                self._interrupts = False
            self.on_tick = before
            self.doing.pop()
            if outermost and not self.whole:
                self._left_region = processor_s()
                _set_timer(0)

    @contextmanager
    def uncounted(self, what: str) -> Iterator[None]:
        """The work in here does not count, and is not interrupted. what: what it is, for people who wait."""
        before, self._paused, begun = self._paused, True, processor_s()
        outer, self.once = self.once, what or self.once
        self._tell_watcher()
        try:
            yield
        finally:
            self.once = outer
            if not before:
                self._uncounted += processor_s() - begun
            self._paused = before
            self._tell_watcher()

    def start(self) -> None:
        """Starts to watch what is left."""
        self._handler = signal.signal(signal.SIGPROF, self._tick)
        if self.whole:
            _set_timer(TICK_S)

    def stop(self) -> None:
        """Stops watching; what is stopped stays so."""
        _set_timer(0)
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None
        signal.signal(signal.SIGPROF, signal.SIG_IGN if self._handler in {None, signal.SIG_DFL} else self._handler)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if self._paused:
            return
        if is_forking():
            signal.setitimer(signal.ITIMER_PROF, SOON_S, TICK_S)
            return
        left = self.left()
        over = resident_bytes() > self.memory_bytes
        if self._watcher is None and self.whole and self.spent() > WATCHED_FROM_S and Watcher.is_possible():
            self._watcher = Watcher(self.last_words)
        self._tell_watcher()
        if self._interrupts and self.on_tick is not None and left > 0:
            self.on_tick()
        if self._interrupts and (left <= 0 or over):
            if _enters_or_leaves(frame) or _imports(frame):
                signal.setitimer(signal.ITIMER_PROF, SOON_S, TICK_S)
                return
            if not self._told:  # there has to be time to report what was found, however late this is
                self._stop_at = max(self._stop_at, self.spent() + self._grace)
                self._told = True
            raise Spent
        if self.whole and (self.spent() > self._stop_at or over):
            raise Spent

    def _tell_watcher(self) -> None:
        """Tells the watcher when to kill the process: OVERTIME_S after `_tick` should have stopped it, which it cannot
        do while native code runs. While work does not count, it is never killed.
        """
        if self._watcher is not None:
            self._watcher.end_at(inf if self._paused else self._uncounted + self._stop_at + OVERTIME_S)


_now: list[Budget] = []


@contextmanager
def beginning(seconds: float, memory_bytes: int, *, whole: bool, chosen: bool = True) -> Iterator[Budget]:
    """Begins the budget of a command; without limits outside the main thread, or if the system has no timers of
    processor time.
    """
    budget = Budget(seconds, memory_bytes, whole=whole, chosen=chosen)
    if not _in_main_thread() or not hasattr(signal, "SIGPROF"):
        yield budget
        return
    _now.append(budget)
    budget.start()
    try:
        yield budget
    finally:
        budget.stop()
        _now.remove(budget)


def current() -> Budget | None:
    """The budget of this thread; None if there is none, and in all threads but the main one."""
    return _now[-1] if _now and _in_main_thread() else None


def forked(seconds: float) -> None:
    """In a forked copy of this process, which is stopped by other means: a budget of `seconds`, if there was one."""
    if _now:
        _now[:] = [Budget(seconds, _now[-1].memory_bytes, whole=True)]


def left_s() -> float:
    """Processor time that is left, in seconds; infinity without a budget."""
    budget = current()
    return inf if budget is None else budget.left()


def spent_s() -> float:
    """Processor time that has counted so far, in seconds; 0 without a budget."""
    budget = current()
    return 0.0 if budget is None else budget.spent()


@contextmanager
def region(what: str, on_tick: Callable[[], None] | None = None) -> Iterator[None]:
    """The work in here may be left out; `what` names its result, for messages. Raises Spent, at once if nothing is
    left.

    on_tick: called now and then while it runs, between two of its steps.
    """
    budget = current()
    if budget is None:
        yield
        return
    with budget.region(what, on_tick):
        yield


@contextmanager
def uncounted(what: str = "") -> Iterator[None]:
    """For work that is done only once on a computer, such as compiling: it does not count, and is not interrupted.

    what: what it is, for people who wait.
    """
    budget = current()
    if budget is None:
        yield
        return
    with budget.uncounted(what):
        yield


@contextmanager
def part(of: int) -> Iterator[None]:
    """One of `of` parts that share what is left: it takes no more than its share, and what it does not need goes to the
    next parts.
    """
    budget = current()
    if budget is None or of <= 1 or budget.deadline == inf:  # a part of infinity has no end either
        yield
        return
    before = budget.deadline
    budget.deadline = before - max(0.0, budget.left()) * (1 - 1 / of)
    try:
        yield
    finally:
        budget.deadline = before


def serve() -> None:
    """From now on, this process answers a call of a server, so that others may be waiting."""
    _served[:] = [True]


def is_served() -> bool:
    """Whether this process answers a call of a server, rather than a command or a program in Python."""
    return _served[0]


_served = [False]


@contextmanager
def anew(seconds: float) -> Iterator[None]:
    """The work in here has `seconds` of its own, whatever was spent before."""
    budget = current()
    if budget is None:
        yield
        return
    before = budget.deadline
    budget.deadline = budget.spent() + seconds
    try:
        yield
    finally:
        budget.deadline = before


@contextmanager
def noting(*, silently: bool = False) -> Iterator[list[str]]:
    """Gives the names of all that the work in here leaves out, once it has ended.

    silently: they are not told at the end of the command, since the caller says it in its own words.
    """
    budget, found = current(), list[str]()
    if budget is None:
        yield found
        return
    before, budget.left_out = budget.left_out, {}
    try:
        yield found
    finally:
        found += budget.left_out
        budget.left_out = before | ({} if silently else budget.left_out)


def note_again(left_out: Iterable[str]) -> None:
    """Notes what an earlier answer, which is given again, had to leave out."""
    budget = current()
    if budget is not None:
        budget.left_out |= dict.fromkeys(left_out)


def leave_out(what: str) -> str:
    """Notes that `what` is left out because the budget is spent; returns the reason and the remedy, for messages."""
    budget = current()
    if budget is None:
        return "left out"
    budget.left_out[what] = None
    if not budget.chosen:
        return f"left out after {shown(budget)}"
    return f"left out to stay within {shown(budget)}; `--budget {longer(budget)}` searches longer"


def is_memory_spent() -> bool:
    """Whether this process uses more memory than its budget allows."""
    budget = current()
    return budget is not None and resident_bytes() > budget.memory_bytes


def shown(budget: Budget) -> str:
    """`20 s of processor time`, or the memory if that is spent."""
    if resident_bytes() > budget.memory_bytes:
        return f"{budget.memory_bytes / 2**30:.3g} GiB of memory"
    return f"{round(budget.seconds, 2) or budget.seconds:g} s of processor time"


def longer(budget: Budget, missing_s: float = 0.0) -> str:
    """A larger budget, as the option is written: four times the memory if that is spent, otherwise more time.

    missing_s: the seconds that the current part needs in addition to those that it has left.
    """
    if resident_bytes() > budget.memory_bytes:
        return f"{budget.seconds:g}s,{budget.memory_bytes * 4 / 2**30:g}GiB"
    whole_s, left_s = budget.seconds - budget.spent(), budget.left()
    share = left_s / whole_s if 0 < left_s < whole_s else 1.0
    least = budget.seconds + missing_s / share
    larger = (text for seconds, text in _LONGER if seconds > budget.seconds and seconds >= least)
    return next(larger, f"{max(budget.seconds * 6, least + 1):.0f}s")


def processor_s() -> float:
    """Processor time of this process and of its children that have ended."""
    ended = os.times()  # of this process it has ticks of 10 ms, which `process_time` does not have
    return time.process_time() + ended.children_user + ended.children_system


def resident_bytes() -> int:
    """Resident memory of this process; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def available_bytes() -> int:
    """The memory that this process may still take: what is left of its budget, or less if the system has less."""
    budget = current()
    left = sys.maxsize if budget is None else budget.memory_bytes - resident_bytes()
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = [int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        found = []
    return max(0, min(left, *found, sys.maxsize))


def _enters_or_leaves(frame: FrameType | None) -> bool:
    """Whether the code to be interrupted opens or closes a region: nothing would catch Spent there."""
    name = None if frame is None else frame.f_globals.get("__name__")
    return name in {__name__, "contextlib"} or (frame is not None and frame.f_code.co_name == "limited")


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported: if interrupted, it would stay incomplete, and fail at its next use."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _set_timer(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
