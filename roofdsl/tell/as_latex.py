"""Blocks of a report as a LaTeX fragment, which needs the package amsmath."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.tell.blocks import (
    Block,
    Code,
    Equation,
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

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def escape_latex(words: str) -> str:
    """Words for text mode."""
    return "".join(SPECIAL.get(c, c) for c in words)


def to_latex(blocks: Sequence[Block]) -> Iterator[str]:
    """The lines of a LaTeX fragment; it needs the package amsmath."""
    for block in blocks:
        match block:
            case Title(words, rest):
                yield f"\\paragraph{{{escape_latex(words + rest)}}}"
            case Heading(words):
                yield f"\\paragraph{{{escape_latex(words)}}}"
            case Paragraph(content) | Line(content):
                yield f"{_tex(content)}\\par"
            case Items(items) if items:
                yield "\\begin{itemize}"
                yield from (f"  \\item {_tex(item)}" for item in items)
                yield "\\end{itemize}"
            case Equations(rows):
                yield "\\begin{align*}"
                lines = [_latex_equation(row) for row in rows]
                yield from (f"  {line} \\\\" for line in lines[:-1])
                yield f"  {lines[-1]}"
                yield "\\end{align*}"
            case Table(rows=rows) if rows:
                yield from _latex_table(without_empty_columns(block))


def _latex_table(table: Table) -> Iterator[str]:
    columns = max(map(len, (table.head, *table.rows)))
    yield f"\\begin{{tabular}}{{{''.join('r' if k in table.right else 'l' for k in range(columns))}}}"
    if table.head:
        yield f"  {' & '.join(_tex(c) for c in table.head)} \\\\ \\hline"
    for row in table.rows:
        yield f"  {' & '.join(_tex(c) for c in row)} \\\\"
    yield "\\end{tabular}\\par"


def _tex(content: Sentence) -> str:
    return "".join(_tex_part(part) for part in content)


def _tex_part(part: Inline) -> str:
    match part:
        case Math():
            return f"${part.latex}$"
        case Code(words):
            return f"\\texttt{{{escape_latex(words)}}}"
    return escape_latex(part)


def _latex_equation(row: Equation) -> str:
    sides = distinct([m.latex for m in row.right])
    unit = f"\\ \\text{{{escape_latex(row.unit)}}}" if row.unit else ""
    remark = f" && \\text{{{_tex(row.remark)}}}" if row.remark else ""
    return f"{row.left.latex} &= {' = '.join(sides)}{unit}{remark}"
