"""A report as headings, sentences, equations and tables, and these as text, LaTeX and HTML.

A formula is a `Math`, which knows itself as text and as LaTeX; sentences and cells mix it with words.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from textwrap import wrap

from roofdsl.formulas.quotients import Quotient
from roofdsl.formulas.writing import LATEX, latex_name, neat_latex, neat_text
from roofdsl.lang.record import Record
from roofdsl.sets.quasi import Quasi
from roofdsl.tell.lines import WIDTH, aligned


class Math(Record):
    """A formula: as text (which sympy reads where it is an expression), and as LaTeX for math mode."""

    text: str
    latex: str


class Code(Record):
    """Words of the language: a statement, a reference."""

    text: str


Inline = str | Math | Code
Sentence = tuple[Inline, ...]


class Heading(Record):
    text: str


class Paragraph(Record):
    """A sentence; `depth` steps to the right."""

    content: Sentence
    depth: int = 0


class Equation(Record):
    """left = first = second = ... unit, and a remark."""

    left: Math
    right: tuple[Math, ...]
    unit: str = ""
    remark: Sentence = ()


class Equations(Record):
    rows: tuple[Equation, ...]


class Table(Record):
    """Rows of cells under a head; empty columns are left out."""

    head: tuple[Sentence, ...]
    rows: tuple[tuple[Sentence, ...], ...]


Block = Heading | Paragraph | Equations | Table


def math(value: Quasi | Quotient | Fraction | int) -> Math:
    """A polynomial, a quotient or a number."""
    if isinstance(value, Fraction):
        value = Quotient(Quasi.constant(value))
    if isinstance(value, int):
        return Math(str(value), str(value))
    return Math(neat_text(value), neat_latex(value))


def name(of: str) -> Math:
    """A parameter, an array, a loop variable."""
    return Math(of, latex_name(of))


def total(parts: Sequence[Math]) -> Math:
    """A sum as it is before it is simplified."""
    if not parts:
        return math(0)
    if len(parts) > 1:
        parts = [bracketed(p) for p in parts]
    return Math(" + ".join(p.text for p in parts), " + ".join(p.latex for p in parts))


def bracketed(value: Math) -> Math:
    """`value`, in brackets where it is a sum."""
    if not _is_sum(value):
        return value
    return Math(f"({value.text})", f"\\left({value.latex}\\right)")


def _is_sum(value: Math) -> bool:
    depth = 0
    for k, character in enumerate(value.text):
        depth += (character == "(") - (character == ")")
        if not depth and character in "+-" and value.text[k - 1 : k] == " ":
            return True
    return False


def times(factor: int, value: Math) -> Math:
    """factor * value, in brackets where value is a sum."""
    if factor == 1:
        return value
    inner = bracketed(value)
    return Math(f"{factor}*{inner.text}", f"{factor} \\cdot {inner.latex}")


def ratio(top: Math, bottom: Math) -> Math:
    """top / bottom as it stands."""
    below = bottom.text if bottom.text.isalnum() else f"({bottom.text})"
    return Math(f"{bracketed(top).text}/{below}", LATEX.fraction(top.latex, bottom.latex, False, False))


def without_empty_columns(table: Table) -> Table:
    """The table without columns in which no row has anything."""
    keep = [k for k in range(len(table.head)) if any(row[k] for row in table.rows)]
    return Table(tuple(table.head[k] for k in keep), tuple(tuple(row[k] for k in keep) for row in table.rows))


# ---- text ----


def to_text(blocks: Sequence[Block], width: int = WIDTH) -> Iterator[str]:
    """Lines of plain text; sentences and tables are as wide as `width` at most, and equations where they can be."""
    for k, block in enumerate(blocks):
        match block:
            case Heading(words):
                yield from ([""] if k else [])
                yield words
            case Paragraph(content, depth):
                margin = "  " * (depth + 1)
                yield from wrap(_plain(content), width, initial_indent=margin, subsequent_indent=margin + "    ")
            case Equations(rows):
                yield from _text_equations(rows)
            case Table():
                table = without_empty_columns(block)
                cells = [[_plain(c) for c in row] for row in (table.head, *table.rows)]
                yield from (f"  {line}" for line in aligned(cells, "   ", width - 2))


def _plain(content: Sentence) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in content)


def _text_equations(rows: Sequence[Equation]) -> Iterator[str]:
    left = max(len(row.left.text) for row in rows)
    for row in rows:
        sides = _distinct([m.text for m in row.right])
        unit = f" {row.unit}" if row.unit else ""
        remark = f"   {_plain(row.remark)}" if row.remark else ""
        yield f"  {row.left.text.ljust(left)} = {' = '.join(sides)}{unit}{remark}"


def _distinct(sides: Sequence[str]) -> list[str]:
    """Sides without one that repeats the side before it."""
    return [side for k, side in enumerate(sides) if not k or side != sides[k - 1]]


# ---- LaTeX ----

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def escape_latex(words: str) -> str:
    """Words for text mode."""
    return "".join(SPECIAL.get(c, c) for c in words)


def to_latex(blocks: Sequence[Block]) -> Iterator[str]:
    """Lines of a LaTeX fragment; it needs the package amsmath."""
    for block in blocks:
        match block:
            case Heading(words):
                yield f"\\paragraph{{{escape_latex(words)}}}"
            case Paragraph(content, _):
                yield f"{_tex(content)}\\par"
            case Equations(rows):
                yield "\\begin{align*}"
                lines = [_latex_equation(row) for row in rows]
                yield from (f"  {line} \\\\" for line in lines[:-1])
                yield f"  {lines[-1]}"
                yield "\\end{align*}"
            case Table():
                table = without_empty_columns(block)
                yield f"\\begin{{tabular}}{{{'l' * len(table.head)}}}"
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
    sides = _distinct([m.latex for m in row.right])
    unit = f"\\ \\text{{{escape_latex(row.unit)}}}" if row.unit else ""
    remark = f" && \\text{{{_tex(row.remark)}}}" if row.remark else ""
    return f"{row.left.latex} &= {' = '.join(sides)}{unit}{remark}"


# ---- HTML ----


def to_html(blocks: Sequence[Block]) -> Iterator[str]:
    """Lines of HTML whose formulas MathJax sets."""
    for block in blocks:
        match block:
            case Heading(words):
                yield f"<h4>{html.escape(words)}</h4>"
            case Paragraph(content, _):
                yield f"<p>{_html(content)}</p>"
            case Equations(rows):
                yield "<table>"
                for row in rows:
                    sides = " = ".join(_distinct([m.latex for m in row.right]))
                    unit = f" {html.escape(row.unit)}" if row.unit else ""
                    formula = mathjax(f"{row.left.latex} = {sides}")
                    yield f'<tr><td style="text-align: left">{formula}{unit}</td><td>{_html(row.remark)}</td></tr>'
                yield "</table>"
            case Table():
                table = without_empty_columns(block)
                yield "<table>"
                yield f"<tr>{''.join(f'<th>{_html(c)}</th>' for c in table.head)}</tr>"
                for cells in table.rows:
                    yield f"<tr>{''.join(f'<td>{_html(c)}</td>' for c in cells)}</tr>"
                yield "</table>"


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
