"""Blocks of a report as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

from roofdsl.tell.blocks import (
    Block,
    Equation,
    Equations,
    Gap,
    Heading,
    Items,
    Line,
    Paragraph,
    Sentence,
    Table,
    Title,
    distinct,
    without_empty_columns,
)
from roofdsl.tell.line_breaks import WIDTH, aligned


def to_text(blocks: Sequence[Block], width: int = WIDTH, strong: Callable[[str], str] = str) -> Iterator[str]:
    """Lines of plain text; paragraphs and, if possible, tables of prose are at most `width` wide.

    Lines, items, equations and tables of figures are never broken. strong: the style of emphasized words on a terminal.
    """
    for k, block in enumerate(blocks):
        match block:
            case Title(words, rest):
                yield strong(words) + rest
            case Heading(words):
                yield from ([""] if k else [])
                yield words
            case Paragraph(content, depth):
                margin = "  " * (depth + 1)
                yield from wrap(_plain(content), width, initial_indent=margin, subsequent_indent=margin + "    ")
            case Line(content, depth):
                yield "  " * depth + _plain(content)
            case Items(items, depth, mark):
                yield from ("  " * depth + mark + _plain(item) for item in items)
            case Gap():
                yield ""
            case Equations(rows):
                yield from _text_equations(rows)
            case Table():
                yield from _text_table(block, width, strong)


def _text_table(table: Table, width: int, strong: Callable[[str], str]) -> Iterator[str]:
    if table.kind == "prose":
        table = without_empty_columns(table)
        cells = [[_plain(c) for c in row] for row in (table.head, *table.rows)]
        yield from (f"  {line}" for line in aligned(cells, "   ", width - 2))
        return
    cells = [[_plain(c) for c in row] for row in ((table.head,) if table.head else ()) + table.rows]
    ruled = table.kind == "ruled"
    margin = " " if ruled else "  " * table.depth
    for k, line in enumerate(aligned(cells, "   " if ruled else "  ", None, table.right)):
        yield margin + (strong(line) if table.strong and not k else line)
        if ruled and not k:
            yield margin + "─" * (sum(max(map(len, column)) + 3 for column in zip(*cells, strict=True)) - 3)


def _plain(content: Sentence) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in content)


def _text_equations(rows: Sequence[Equation]) -> Iterator[str]:
    left = max(len(row.left.text) for row in rows)
    for row in rows:
        sides = distinct([m.text for m in row.right])
        unit = f" {row.unit}" if row.unit else ""
        remark = f"   {_plain(row.remark)}" if row.remark else ""
        yield f"  {row.left.text.ljust(left)} = {' = '.join(sides)}{unit}{remark}"
