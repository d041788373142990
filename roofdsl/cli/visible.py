"""What commands print, made safe for a terminal: names, titles and paths are other people's text.

Control characters (terminal escapes among them) and those that turn the direction of writing are written as JSON does,
`\\u001b`: so documents stay valid JSON and mean the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_OWN = r"\x1b\[[01]m"  # bold, and its end
_UNSAFE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
_ANY = re.compile(f"({_OWN})|{_UNSAFE}")


def visible(text: str) -> str:
    """`text` with such characters as `\\u001b`; bold face, which commands themselves use, stays."""
    if text.isascii() and text.isprintable():
        return text
    return _ANY.sub(lambda m: m[1] or f"\\u{ord(m[0]):04x}", text)


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
