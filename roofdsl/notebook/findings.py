"""What is wrong with a text, shown in place: the lines with the parts underlined, and what to write instead."""

from __future__ import annotations

import html

from roofdsl.lang.diagnostics import Diagnostic, InputError, render
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source

AROUND = 2
"""Lines shown before and after one with a finding; a text of WHOLE lines or fewer is shown whole."""

WHOLE = 30
MOST = 50
"""Findings shown in place; the others are counted."""

_COLOURS = {"error": "#c62828", "warning": "#a05a00"}


class Findings(Record):
    """The findings about one text: as text what the command line prints, as HTML the text with the parts underlined."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]

    def __str__(self) -> str:
        return "\n".join(render(self.source, d) for d in self.diagnostics)

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: object, cycle: bool) -> None:
        printer.text(str(self))  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        shown = self.diagnostics[:MOST]
        lines = self.source.text.rstrip("\n").split("\n")
        wanted = set(range(1, len(lines) + 1)) if len(lines) <= WHOLE else set[int]()
        for d in shown:
            wanted |= set(range(d.span.line - AROUND, d.span.line + AROUND + 1))
        rows = []
        before = 0
        for number in sorted(n for n in wanted if 0 < n <= max(len(lines), 1)):
            if number != before + 1:
                rows.append('<div style="opacity: 0.6">&#8942;</div>')
            before = number
            rows.append(_line(number, self.source.line(number), [d for d in shown if d.span.line == number]))
        rest = len(self.diagnostics) - len(shown)
        more = f"<div>and {rest} more</div>" if rest else ""
        style = "font-family: monospace; white-space: pre-wrap; line-height: 1.5; margin: 0.3em 0"
        return f'<div class="roofdsl-findings" style="{style}">{"".join(rows)}{more}</div>'


def of_error(error: InputError) -> Findings:
    """The findings that an error carries."""
    return Findings(error.source, tuple(error.diagnostics))


def _line(number: int, text: str, found: list[Diagnostic]) -> str:
    """A line with its findings underlined, and their messages below it."""
    marks: dict[int, str] = {}
    for d in found:
        end = d.span.end_column if d.span.end_line == number else len(text) + 1
        for column in range(d.span.column, max(end, d.span.column + 1)):
            marks.setdefault(column, d.severity)
    parts = []
    column = 1
    padded = text + " " * max(0, max(marks, default=0) - len(text))
    while column <= len(padded):
        severity = marks.get(column)
        stop = column
        while stop <= len(padded) and marks.get(stop) == severity:
            stop += 1
        piece = html.escape(padded[column - 1 : stop - 1])
        if severity is not None:
            colour = _COLOURS[severity]
            piece = (
                f'<span style="text-decoration: underline wavy {colour}; text-decoration-skip-ink: none">{piece}</span>'
            )
        parts.append(piece)
        column = stop
    gutter = f'<span style="opacity: 0.6">{number:>4} | </span>'
    said = "".join(_said(d) for d in found)
    return f"<div>{gutter}{''.join(parts)}</div>{said}"


def _said(d: Diagnostic) -> str:
    colour = _COLOURS[d.severity]
    help = f'<div style="opacity: 0.8">       help: {html.escape(d.help)}</div>' if d.help else ""
    head = f'<b style="color: {colour}">{html.escape(d.severity)}</b>'
    return f"<div>       {head} [{html.escape(d.code)}]: {html.escape(d.message)}</div>{help}"
