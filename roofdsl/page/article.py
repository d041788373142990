"""The text of a page about a kernel: its source with highlighting, and its derivation with formulas as MathML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from roofdsl.counts.derived import Derivation
from roofdsl.loops.model import Kernel
from roofdsl.page.mathml import mathml
from roofdsl.tell.as_html import inline_html
from roofdsl.tell.blocks import Block, Equations, Heading, Paragraph, Sentence, Table, without_empty_columns
from roofdsl.tell.derive_steps import step_blocks


def derivation_html(d: Derivation) -> str:
    """The explanation of a derivation in steps."""
    return "\n".join(_lines(step_blocks(d)))


def _lines(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(words):
                yield f"<h3>{html.escape(words)}</h3>"
            case Paragraph(content, depth):
                yield f'<p class="depth{min(depth, 2)}">{_inline(content)}</p>'
            case Equations(rows):
                yield '<div class="wide"><table class="equations">'
                for row in rows:
                    sides = [m.latex for k, m in enumerate(row.right) if not k or m.text != row.right[k - 1].text]
                    formula = mathml(f"{row.left.latex} = {' = '.join(sides)}")
                    unit = f" {html.escape(row.unit)}" if row.unit else ""
                    yield f"<tr><td>{formula}{unit}</td><td>{_inline(row.remark)}</td></tr>"
                yield "</table></div>"
            case Table():
                table = without_empty_columns(block)
                yield '<div class="wide"><table>'
                yield f"<tr>{''.join(f'<th>{_inline(c)}</th>' for c in table.head)}</tr>"
                for cells in table.rows:
                    yield f"<tr>{''.join(f'<td>{_inline(c)}</td>' for c in cells)}</tr>"
                yield "</table></div>"


def _inline(content: Sentence) -> str:
    return inline_html(content, mathml)


def source_html(kernel: Kernel) -> str:
    """The kernel's own lines and the comments right above it, as spans with Pygments' short classes."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    from roofdsl.editors.pygments_lexer import RoofLexer

    first = kernel.span.line
    while first > 1 and kernel.source.line(first - 1).startswith("#"):
        first -= 1
    text = "\n".join(kernel.source.line(n) for n in range(first, kernel.span.end_line + 1)).rstrip()
    return str(highlight(text + "\n", RoofLexer(), HtmlFormatter(nowrap=True)))
