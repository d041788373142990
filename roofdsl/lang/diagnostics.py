"""Errors for people: what is wrong, where, and what to write instead."""

from __future__ import annotations

from roofdsl.lang.record import Record
from roofdsl.lang.source import Source, Span


class Diagnostic(Record):
    """One finding about a file. `code` is stable (documented, used by tests and editors)."""

    code: str
    message: str
    span: Span
    help: str = ""
    severity: str = "error"


class InputError(Exception):
    """The input was read and is wrong (exit status 1); carries every diagnostic, in order."""

    def __init__(self, source: Source, diagnostics: list[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = sorted(diagnostics, key=lambda d: (d.span.line, d.span.column))
        super().__init__("\n".join(render(source, d) for d in self.diagnostics))


class CommandError(Exception):
    """The command could not be carried out (exit status 2): a missing file, parameter, machine, a limit."""

    def __init__(self, message: str, help: str = "") -> None:
        self.message, self.help = message, help
        super().__init__(message + (f"\nhelp: {help}" if help else ""))


_SHOWN = 160


def render(source: Source, diagnostic: Diagnostic) -> str:
    """`FILE:LINE:COLUMN: severity[code]: message`, the source line with the part underlined, the help.

    If the line is long, the part around the fault is shown; characters with an effect on terminals are replaced.
    """
    span = diagnostic.span
    text = source.line(span.line)
    end = span.end_column if span.end_line == span.line else len(text) + 1
    first = max(0, span.column - 1 - _SHOWN // 2) if len(text) > _SHOWN else 0
    part = text[first : first + _SHOWN].replace("\t", " ")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in part)
    width = max(1, min(end - 1 - first, len(shown)) - (span.column - 1 - first))
    gutter = f"{span.line:>4} | "
    place = f"{source.name}:{span.line}:{span.column}"
    lines = [
        f"{place}: {diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}",
        gutter + shown,
        " " * (len(gutter) - 2) + "| " + " " * (span.column - 1 - first) + "^" * width,
    ]
    if diagnostic.help:
        lines.append(f"     = help: {diagnostic.help}")
    return "\n".join(lines)
