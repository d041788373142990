"""`Refused`: code in another language that cannot be read: the node, one sentence about it, what to write instead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.record import replace
from roofdsl.lang.source import Span

MOST_OTHERS = 4
"""The most functions that the help of an error names."""


class Refused(Exception):
    """An unsupported construct. `code` is one of the codes of front ends in `roofdsl.lang.codes`."""

    def __init__(self, code: str, message: str, node: Any, help: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.node, self.help = code, message, node, help


def too_deep(span: Span) -> Diagnostic:
    """Code that is nested deeper than Python's recursion goes."""
    help = "split it into several statements"
    return Diagnostic("limit-nesting", "an expression or a block is nested too deep", span, help)


def naming_the_others(diagnostics: Sequence[Diagnostic], others: Collection[str], file: str) -> list[Diagnostic]:
    """The errors of some functions of a file, with how to read the others: the help of the last one names them."""
    if not others:
        return list(diagnostics)
    *before, last = diagnostics
    names = ", ".join(f"`{name}`" for name in list(others)[:MOST_OTHERS])
    more = ", ..." if len(others) > MOST_OTHERS else ""
    instead = f"{names}{more} can be read: name one, as in {file}:{next(iter(others))}"
    return [*before, replace(last, help=f"{last.help}; {instead}" if last.help else instead)]
