"""`Refused`: code in another language that cannot be read: the node, one sentence about it, what to write instead."""

from __future__ import annotations

from typing import Any

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.source import Span


class Refused(Exception):
    """An unsupported construct. `code` is one of the codes of front ends in `roofdsl.lang.codes`."""

    def __init__(self, code: str, message: str, node: Any, help: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.node, self.help = code, message, node, help


def too_deep(span: Span) -> Diagnostic:
    """Code that is nested deeper than Python's recursion goes."""
    help = "split it into several statements"
    return Diagnostic("limit-nesting", "an expression or a block is nested too deep", span, help)
