"""What a report is made of: titles, sentences, equations, tables. `as_text`, `as_latex` and `as_html` write them.

A formula is a `Math`, which knows itself as text and as LaTeX; sentences and cells mix it with words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from roofdsl.lang.record import Record, replace


class Math(Record):
    """A formula: as text (which sympy reads where it is an expression), and as LaTeX for math mode."""

    text: str
    latex: str


class Code(Record):
    """A piece of the language: a statement, a reference."""

    text: str


Inline = str | Math | Code
Sentence = tuple[Inline, ...]


class Title(Record):
    """The subject of a report; `strong` is emphasized if possible, `rest` follows it on the same line."""

    strong: str
    rest: str = ""


class Heading(Record):
    text: str


class Paragraph(Record):
    """A sentence; `depth` steps to the right."""

    content: Sentence
    depth: int = 0


class Line(Record):
    """A sentence that is never broken, `depth` steps from the left margin."""

    content: Sentence
    depth: int = 1


class Items(Record):
    """Sentences one below the other, each after `mark`, `depth` steps from the left margin."""

    items: tuple[Sentence, ...]
    depth: int = 2
    mark: str = ""


class Gap(Record):
    """An empty line of text; LaTeX and HTML have spacing of their own."""


class Equation(Record):
    """left = first = second = ... unit, and a remark."""

    left: Math
    right: tuple[Math, ...]
    unit: str = ""
    remark: Sentence = ()


class Equations(Record):
    rows: tuple[Equation, ...]


class Table(Record):
    """Rows of cells under a head.

    kind: "prose" has cells with sentences and formulas, which take several lines where the table is too wide, and
    leaves empty columns out. "figures" has numbers, and its lines are never broken. "ruled" is such a table with a line
    under its head. right: the columns that are aligned to the right; depth: steps from the left margin. The head may be
    missing, (); `strong` emphasizes it.
    """

    head: tuple[Sentence, ...]
    rows: tuple[tuple[Sentence, ...], ...]
    kind: Literal["prose", "figures", "ruled"] = "prose"
    right: tuple[int, ...] = ()
    depth: int = 1
    strong: bool = False


Block = Title | Heading | Paragraph | Line | Items | Gap | Equations | Table


def without_empty_columns(table: Table) -> Table:
    """The table without columns that are empty in all rows; a table of figures keeps those that have a head."""
    telling = (table.head, *table.rows) if table.head and table.kind != "prose" else table.rows
    keep = [k for k in range(len(table.rows[0]) if table.rows else 0) if any(any(row[k]) for row in telling)]
    return replace(
        table,
        head=tuple(table.head[k] for k in keep) if table.head else (),
        rows=tuple(tuple(row[k] for k in keep) for row in table.rows),
        right=tuple(place for place, k in enumerate(keep) if k in table.right),
    )


def figures(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    right: Iterable[int] = (),
    *,
    depth: int = 1,
    strong: bool = False,
    ruled: bool = False,
) -> Table:
    """A table of numbers and words, `right`: the columns that are aligned to the right."""
    cells = tuple(tuple((cell,) for cell in row) for row in rows)
    return Table(tuple((h,) for h in head), cells, "ruled" if ruled else "figures", tuple(right), depth, strong)


def items(texts: Iterable[str], depth: int = 2, mark: str = "") -> Items:
    """Sentences without formulas, one below the other."""
    return Items(tuple((text,) for text in texts), depth, mark)


def line(text: str, depth: int = 1) -> Line:
    """A sentence without formulas that is never broken."""
    return Line((text,), depth)


def distinct(sides: Sequence[str]) -> list[str]:
    """Sides without one that repeats the side before it."""
    return [side for k, side in enumerate(sides) if not k or side != sides[k - 1]]
