"""Progress bars on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, str], None]]:
    """Gives `tell(part, step)`, which moves a bar to `part` (0 to 1); nothing is printed into a pipe."""
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[step]}"))
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=1.0, step="")

        def tell(part: float, step: str) -> None:
            bar.update(task, completed=part, step=step)

        yield tell
