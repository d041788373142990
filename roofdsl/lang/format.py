"""The canonical layout of a `.roof` file: four spaces a block, one space around operators, comments kept."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang import tree
from roofdsl.lang.format_text import (
    WIDTH,
    broken,
    expression,
    for_header,
    machine_line,
    parameters,
    simple,
)
from roofdsl.lang.parse import parse
from roofdsl.lang.source import Source, Span

INDENT = "    "


def format_source(source: Source) -> str:
    """The text in canonical layout, ending in a newline. Raises InputError if it cannot be parsed.

    Parsing the result gives the same tree, and formatting it again the same text.
    """
    file = parse(source)
    writer = _Writer(source, file.comments)
    previous: tree.TopItem | None = None
    for item in file.items:
        definition = tree.Kernel | tree.MachineBlock | tree.Program
        apart = previous is not None and (isinstance(item, definition) or isinstance(previous, definition))
        writer.top(item, apart)
        previous = item
    writer.finish()
    return "\n".join(writer.lines).strip("\n") + "\n" if writer.lines else ""


class _Writer:
    """Writes line by line; before each line, the comments in front of it in the source."""

    def __init__(self, source: Source, comments: Sequence[tree.Comment]) -> None:
        self.lines: list[str] = []
        self.texts = [line.strip() for line in source.text.split("\n")]
        self.pending = list(reversed(comments))
        self.trailing = {comment.span.line for comment in comments if not comment.own_line}
        self.columns: list[int] = []  # the source columns of the line written last and of the blocks around it
        self.last = 0  # the last line of the source that has been written

    # ---- nodes ----

    def top(self, item: tree.TopItem, apart: bool) -> None:
        """Writes an item of the file, after an empty line if it is to stand `apart`."""
        match item:
            case tree.Kernel(name, given, body):
                self.header(f"kernel {name.text}({parameters(given)}):", item.span, body[0].span, 0, apart)
                self.block(body, 1)
            case tree.Program(name, given, steps):
                self.header(f"program {name.text}({parameters(given)}):", item.span, steps[0].span, 0, apart)
                self.steps(steps, 1)
            case tree.MachineBlock(name, title, lines):
                shown = f' "{title.text}"' if title else ""
                self.header(f"machine {name.text}{shown}:", item.span, lines[0].span, 0, apart)
                for line in lines:
                    self.line(machine_line(line), line.span, 1)
            case tree.MachineLine():
                self.line(machine_line(item), item.span, 0, apart)
            case _:
                self.line(simple(item), item.span, 0, apart)

    def block(self, items: Sequence[tree.Item], depth: int) -> None:
        """Writes the items of a kernel's block; blocks are at most 64 deep."""
        for item in items:
            match item:
                case tree.For(body=body):
                    self.header(for_header(item), item.span, body[0].span, depth)
                    self.block(body, depth + 1)
                case tree.If(branches, orelse, else_span):
                    for i, branch in enumerate(branches):
                        word = "elif" if i else "if"
                        text = f"{word} {expression(branch.condition)}:"
                        self.header(text, branch.span, branch.body[0].span, depth)
                        self.block(branch.body, depth + 1)
                    if else_span is not None:
                        self.header("else:", else_span, orelse[0].span, depth)
                        self.block(orelse, depth + 1)
                case _:
                    self.line(simple(item), item.span, depth)

    def steps(self, steps: Sequence[tree.Step], depth: int) -> None:
        """Writes the steps of a program."""
        for step in steps:
            if isinstance(step, tree.Repeat):
                self.header(f"repeat {expression(step.count)}:", step.span, step.body[0].span, depth)
                self.steps(step.body, depth + 1)
            else:
                self.line(simple(step), step.span, depth)

    # ---- lines and comments ----

    def header(self, text: str, span: Span, first: Span, depth: int, apart: bool = False) -> None:
        """Writes a line that opens a block whose first line is at `first`."""
        end = max(span.line, first.line - 1)
        while end > span.line and end not in self.trailing:
            end -= 1
        self.line(text, Span(span.line, span.column, end, 1), depth, apart)

    def line(self, text: str, span: Span, depth: int, apart: bool = False) -> None:
        """Writes one logical line, which stands at `span` in the source."""
        self._comments_before(span.line, depth, apart)
        self.columns[depth:] = [span.column]
        inside: list[str] = []
        while self.pending and self.pending[-1].span.line <= span.end_line:
            inside.append(_comment(self.pending.pop().text))
        indent = INDENT * depth
        parts = broken(text, WIDTH - len(indent)).split("\n")
        if len(inside) == 1 and len(parts) == 1:
            parts[0] += "  " + inside.pop()
        self.lines += [indent + part for part in (*inside, *parts)]
        self.last = span.end_line

    def _comments_before(self, line: int, depth: int, apart: bool) -> None:
        while self.pending and self.pending[-1].span.line < line:
            comment = self.pending.pop()
            level = self._level(comment.span.column, depth)
            self._blank(comment.span.line, apart and level == depth)
            apart = apart and level != depth
            self.lines.append(INDENT * level + _comment(comment.text))
            self.last = comment.span.line
        self._blank(line, apart)

    def _blank(self, before: int, always: bool) -> None:
        """One empty line, if the source has some between the last written line and line `before`, or if `always`."""
        gap = self.texts[self.last : before - 1]
        if self.lines and self.lines[-1] and (always or not all(gap)):
            self.lines.append("")

    def _level(self, column: int, least: int) -> int:
        """The block of a comment at `column`: the innermost open one that does not begin further right."""
        return max([least, *(i for i, begin in enumerate(self.columns) if begin <= column)])

    def finish(self) -> None:
        """Writes the comments after the last line."""
        self._comments_before(len(self.texts) + 1, 0, False)


def _comment(text: str) -> str:
    """`# text`: one space after the sign, unless it is `#!` or a row of signs."""
    body = text[1:]
    return text if not body or body[0] in " #!:" else f"# {body}"
