"""Standard output and standard error without control characters, since names and titles may come from others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roofdsl.lang.visible import visible


class VisibleStream:
    """A text stream that writes `visible` text; everything else is the underlying stream's."""

    def __init__(self, stream: Any) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        """Write the text; returns the number of characters, like a text stream."""
        self.unfiltered.write(visible(text) if isinstance(text, str) else text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each line as `write` does."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def exact_output() -> Any:
    """Standard output for text that must stay unchanged, such as a formatted file. On a terminal, control characters
    are made visible even there.
    """
    return sys.stdout if sys.stdout.isatty() else getattr(sys.stdout, "unfiltered", sys.stdout)


@contextmanager
def visible_output() -> Iterator[None]:
    """Make standard output and standard error VisibleStreams."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None:  # it may be closed (>&-)
        sys.stdout = VisibleStream(sys.stdout)
    if sys.stderr is not None:
        sys.stderr = VisibleStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
