"""Standard output and standard error without control characters: names and titles are other people's text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roofdsl.lang.visible import visible


class VisibleStream:
    """A text stream that writes `visible` text; all else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        """The characters taken, as of a text stream."""
        self.unfiltered.write(visible(text) if isinstance(text, str) else text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Each as `write` does."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def exact_output() -> Any:
    """Standard output for what must stay as it is, such as a file laid out; visible all the same on a terminal."""
    return sys.stdout if sys.stdout.isatty() else getattr(sys.stdout, "unfiltered", sys.stdout)


@contextmanager
def visible_output() -> Iterator[None]:
    """Standard output and standard error as VisibleStreams."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None:  # nobody may want it (>&-)
        sys.stdout = VisibleStream(sys.stdout)
    if sys.stderr is not None:
        sys.stderr = VisibleStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
