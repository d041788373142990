"""What lets a run on a lent GPU lose nothing: one file with all results, and kernels that hang left behind."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roofdsl.store.atomic import write_whole

LOST = 75
"""Exit status that asks for a new process: the device's context was lost, or a kernel hangs in it."""

EVERY_S = 20.0
"""Seconds after which the file is written anew."""


class Pack:
    """A folder in one .tar.gz file, always a whole one; without a file it does nothing."""

    def __init__(self, file: Path | None, folder: Path) -> None:
        self.file, self.folder = file, folder
        self.written = time.monotonic()

    def unpack(self) -> None:
        """Fills a folder that is not there with what the file holds."""
        if self.file is not None and self.file.exists() and not self.folder.exists():
            self.folder.mkdir(parents=True)
            with tarfile.open(self.file) as archive:
                archive.extractall(self.folder, filter="data")

    def write(self, *, now: bool = True) -> None:
        """The folder as it is; not `now`, where the last time is not long ago."""
        if self.file is None or not self.folder.exists() or (not now and time.monotonic() - self.written < EVERY_S):
            return
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w:gz") as archive:
            archive.add(self.folder, arcname=".")
        write_whole(self.file, held.getvalue())
        self.written = time.monotonic()


@contextmanager
def watched(mark: Path, most_s: float, give_up: Callable[[], None] | None = None, holds: str = "") -> Iterator[None]:
    """`mark`, with the text `holds`, is there as long as the block runs; after `most_s` the process ends with LOST and
    leaves it there.
    """
    mark.write_text(holds, encoding="utf-8")
    timer = threading.Timer(most_s, give_up or _leave)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        mark.unlink(missing_ok=True)


def _leave() -> None:
    print("it hangs: continuing in a new process", flush=True)
    sys.stdout.flush()
    os._exit(LOST)
