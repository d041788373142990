"""Where text came from: a source file and the spans of it that nodes and messages point at."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from roofdsl.lang.record import Record


class Span(NamedTuple):
    """A stretch of source text; lines and columns count from 1, the end column is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.line, self.column, other.end_line, other.end_column)


class Source(Record):
    """The text of one `.roof` file and the name that messages use for it (a path, or `<stdin>`)."""

    name: str
    text: str

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def line(self, number: int) -> str:
        """Line `number` (from 1) without its newline; empty if there is no such line."""
        return self._lines[number - 1].rstrip("\r") if 0 < number <= len(self._lines) else ""


class Comment(Record):
    """`# ...`; `own_line` distinguishes one on a line of its own from one after code."""

    text: str
    own_line: bool
    span: Span
