"""Blocks of a report as HTML, with formulas for MathJax."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence

from roofdsl.tell.blocks import (
    Block,
    Code,
    Equations,
    Heading,
    Inline,
    Items,
    Line,
    Math,
    Paragraph,
    Sentence,
    Table,
    Title,
    distinct,
    without_empty_columns,
)

MOST_ROWS = 60
"""Rows of a table of figures that are shown; the others are counted."""


def to_html(blocks: Sequence[Block]) -> Iterator[str]:
    """Lines of HTML, with formulas for MathJax."""
    for block in blocks:
        match block:
            case Title(words, rest):
                yield f"<h4>{html.escape(words + rest)}</h4>"
            case Heading(words):
                yield f"<h4>{html.escape(words)}</h4>"
            case Paragraph(content) | Line(content):
                yield f"<p>{_html(content)}</p>"
            case Items(items) if items:
                yield f"<ul>{''.join(f'<li>{_html(item)}</li>' for item in items)}</ul>"
            case Equations(rows):
                yield "<table>"
                for row in rows:
                    sides = " = ".join(distinct([m.latex for m in row.right]))
                    unit = f" {html.escape(row.unit)}" if row.unit else ""
                    formula = mathjax(f"{row.left.latex} = {sides}")
                    yield f'<tr><td style="text-align: left">{formula}{unit}</td><td>{_html(row.remark)}</td></tr>'
                yield "</table>"
            case Table(rows=rows) if rows:
                yield from _html_table(without_empty_columns(block))


def _html_table(table: Table) -> Iterator[str]:
    is_prose = table.kind == "prose"
    shown = table.rows if is_prose else table.rows[:MOST_ROWS]
    yield "<table>"
    if any(map(any, table.head)):
        yield f"<tr>{''.join(f'<th>{_html(c)}</th>' for c in table.head)}</tr>"
    for cells in shown:
        yield f"<tr>{''.join(f'<td{_side(table, k)}>{_html(c)}</td>' for k, c in enumerate(cells))}</tr>"
    if len(shown) < len(table.rows):
        yield f'<tr><td colspan="{len(shown[0])}">and {len(table.rows) - len(shown)} more</td></tr>'
    yield "</table>"


def _side(table: Table, column: int) -> str:
    """The attribute that aligns a cell of figures: notebooks align all cells to the right unless told otherwise."""
    if table.kind == "prose":
        return ""
    return f' style="text-align: {"right" if column in table.right else "left"}"'


def inline_html(content: Sentence, formula: Callable[[str], str]) -> str:
    """A sentence as HTML, its LaTeX set by `formula`."""
    return "".join(_inline_part(part, formula) for part in content)


def _inline_part(part: Inline, formula: Callable[[str], str]) -> str:
    match part:
        case Math():
            return formula(part.latex)
        case Code(words):
            return f"<code>{html.escape(words)}</code>"
    return html.escape(part)


def _html(content: Sentence) -> str:
    return inline_html(content, mathjax)


def mathjax(formula: str) -> str:
    """A formula for MathJax, escaped."""
    return f"\\({html.escape(formula)}\\)"
