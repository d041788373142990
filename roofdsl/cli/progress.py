"""Progress bars on standard error for long work; nothing if that is not a terminal."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roofdsl import budget


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, str], None]]:
    """Yields `tell(part, step)`, which moves a bar to `part` (0 to 1). The bar disappears afterwards."""
    if not sys.stderr.isatty():
        yield lambda part, step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[step]}"))
    console = Console(file=getattr(sys.stderr, "unfiltered", sys.stderr))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=1.0, step="")
        _bars.append(task)
        try:
            yield lambda part, step: progress.update(task, completed=part, step=step)
        finally:
            _bars.pop()


def tell_step(text: str) -> None:
    """Print what comes next to standard error, if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():  # None: it is closed (2>&-)
        print(text, file=sys.stderr, flush=True)


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yields a function that takes how much of `total` is done (None: unknown)."""
    with progress_bar(title) as tell:
        yield lambda done: tell(done / total if total else 0.0, "")


FIRST_S = 2.0
"""Wall-clock seconds after which a command says that it is still working, and again each time that time has doubled."""

_bars: list[object] = []  # a progress bar, while there is one, reports the progress instead


@contextmanager
def telling_progress(command: str) -> Iterator[None]:
    """Report from time to time on standard error, if that is a terminal, what a long command is doing."""
    if sys.stderr is None or not sys.stderr.isatty() or not hasattr(signal, "setitimer"):
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    begun, wait = time.monotonic(), FIRST_S

    def tell(number: int, frame: object) -> None:
        nonlocal wait
        wait *= 2
        signal.setitimer(signal.ITIMER_REAL, wait / 2)
        if not _bars:
            own = budget.current()
            doing = "" if own is None else own.once or "".join(own.doing[-1:])
            doing = f"{command}: {doing}" if doing else command
            os.write(2, f"{doing} ... {time.monotonic() - begun:.0f} s\n".encode(errors="replace"))

    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, wait)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
