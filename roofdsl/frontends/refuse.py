"""`Refused`: code in another language that cannot be read: the node, one sentence about it, what to write instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source, Span

MOST_OTHERS = 4
"""The most functions that the help of an error names."""


class Refused(Exception):
    """An unsupported construct. `code` is one of the codes of front ends in `roofdsl.lang.codes`."""

    def __init__(self, code: str, message: str, node: Any, help: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.node, self.help = code, message, node, help


class PartlyRead(InputError):
    """Some functions of a file cannot be read. read: the others, as a file of their own, which may have no kernels.

    alone: the errors of all refused functions, also those in other files that the file includes, without the hint at
    the functions that can be read.
    """

    def __init__(self, errors: Mapping[Source, Sequence[Diagnostic]], read: CheckedFile) -> None:
        parts = [InputError(where, list(found)) for where, found in errors.items()]
        self.read, self.alone = read, "\n".join(map(str, parts))
        where, found = next(iter(errors.items()))
        super().__init__(where, naming_the_others(found, read.kernels, read.source.name))
        self.args = ("\n".join((str(self), *map(str, parts[1:]))),)


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
