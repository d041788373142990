"""Progress bars on standard error, for what takes its time; nothing where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, str], None]]:
    """Gives `tell(part, step)`, which moves a bar to `part` (0 to 1). The bar is gone afterwards."""
    if not sys.stderr.isatty():
        yield lambda part, step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[step]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=1.0, step="")
        yield lambda part, step: progress.update(task, completed=part, step=step)


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function that is told how far the work is, of `total` (None: nobody knows)."""
    with progress_bar(title) as tell:
        yield lambda done: tell(done / total if total else 0.0, "")
