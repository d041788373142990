"""Where a node of pycparser's tree stands in the user's own file.

pycparser tells where in the preprocessed text a node begins. Each line of that text is matched with the line of the
file that it came from; what a macro expands to is placed where the macro is used.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.preprocess import Preprocessed
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source, Span
from roofdsl.loops.load import read_source

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?(?:\*/|$)'
    r"|(?:\d|\.\d)(?:[eEpP][+-]|[\w.])*|\w+|[-+*/%&|^!=<>]=|\+\+|--|->|&&|\|\||<<|>>|[^\s\w]"
)
_OPENS, _CLOSES = "([{", ")]}"


class _Token:
    __slots__ = ("column", "line", "text")

    def __init__(self, text: str, line: int, column: int) -> None:
        self.text, self.line, self.column = text, line, column


class Places:
    """Spans of nodes. Lines of the preprocessed text and columns count from 1, as pycparser has them."""

    def __init__(self, main: Source, read: Preprocessed) -> None:
        self.main, self.read = main, read
        self._sources: dict[str, Source] = {main.name: main}
        self._aligned: dict[int, tuple[_Columns, _Columns]] = {}

    @cached_property
    def _tokens(self) -> list[_Token]:
        lines = self.read.text.split("\n")
        return [
            _Token(found[0], number, found.start() + 1)
            for number, line in enumerate(lines, 1)
            for found in _TOKEN.finditer(line)
        ]

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        return [(t.line, t.column) for t in self._tokens]

    def source(self, name: str) -> Source:
        """The file of that name; an empty one if it cannot be read."""
        if name not in self._sources:
            self._sources[name] = Source(name, "")
            with suppress(CommandError, InputError):
                if Path(name).is_file():
                    self._sources[name] = read_source(name)
        return self._sources[name]

    def of(self, node: Any) -> tuple[Source, Span]:
        """The file and the span of a node, including its closing brackets."""
        marks = [m for m in _coordinates(node) if m is not None]
        if not marks:
            return self.main, Span(1, 1, 1, 2)
        first, last = self._index(min(marks)), self._index(max(marks))
        first, last = self._balanced(first, last)
        first = max(0, first - _prefixes(node))
        if isinstance(node, c_ast.UnaryOp) and node.op[0] == "p":
            last = min(last + 1, len(self._tokens) - 1)
        if isinstance(node, c_ast.Pragma):
            last = bisect_right(self._starts, (marks[0][0] + 1, 0)) - 1
        return self._spanned(first, last)

    def at(self, line: int, column: int) -> tuple[Source, Span]:
        """The file and the span of the text at a place of the preprocessed text."""
        if not self._tokens:
            return self.main, Span(1, 1, 1, 2)
        at = self._index((line, column))
        return self._spanned(at, at)

    def file_of(self, node: Any) -> str:
        """The name of the file that a node stands in."""
        file: str = self.read.origins[node.coord.line - 1][0]
        return file

    def _index(self, mark: tuple[int, int]) -> int:
        return max(0, bisect_right(self._starts, mark) - 1)

    def _balanced(self, first: int, last: int) -> tuple[int, int]:
        """The span, widened until every bracket in it is closed."""
        missing, depth = 0, 0
        for token in self._tokens[first : last + 1]:
            if token.text in _OPENS:
                depth += 1
            elif token.text in _CLOSES:
                missing, depth = (missing + 1, 0) if depth == 0 else (missing, depth - 1)
        while missing and first:
            first -= 1
            missing += (self._tokens[first].text in _CLOSES) - (self._tokens[first].text in _OPENS)
        while depth and last + 1 < len(self._tokens):
            last += 1
            depth += (self._tokens[last].text in _OPENS) - (self._tokens[last].text in _CLOSES)
        return first, last

    def _spanned(self, first: int, last: int) -> tuple[Source, Span]:
        begin, end = self._tokens[first], self._tokens[last]
        file, line = self.read.origins[begin.line - 1]
        source = self.source(file)
        start, stop = self._columns(first, last, begin.line)
        end_file, end_line = self.read.origins[end.line - 1]
        if end.line != begin.line:
            stop = self._columns(first, last, end.line)[1]
        if end_file != file or (end_line, stop) <= (line, start):
            end_line, stop = line, max(self._columns(first, first, begin.line)[1], start + 1)
        return source, Span(line, start, end_line, stop)

    def _columns(self, first: int, last: int, line: int) -> tuple[int, int]:
        """The columns (from 1, the end exclusive) in the user's line of those tokens that come from that line."""
        begin, end = bisect_right(self._starts, (line, 0)), bisect_right(self._starts, (line + 1, 0))
        if line not in self._aligned:
            file, number = self.read.origins[line - 1]
            self._aligned[line] = _aligned(self.source(file).line(number), [t.text for t in self._tokens[begin:end]])
        columns, macros = self._aligned[line]
        own = columns[max(first, begin) - begin : min(last + 1, end) - begin]
        start, stop = min(c[0] for c in own), max(c[1] for c in own)
        for a, b in macros:
            if start < b and a < stop and (start < a or b < stop):  # in part, or all of it and more
                start, stop = min(start, a), max(stop, b)
        return start, stop


_Columns = list[tuple[int, int]]


def _aligned(original: str, texts: list[str]) -> tuple[_Columns, _Columns]:
    """For each token, the columns of its origin in the original line; and the columns of macro uses."""
    from difflib import SequenceMatcher

    own = [m for m in _TOKEN.finditer(original) if not m[0].startswith(("//", "/*"))]
    words = [m[0] for m in own]
    whole = (len(original) - len(original.lstrip()) + 1, max(2, len(original.rstrip()) + 1))
    found = [whole] * len(texts)
    macros: _Columns = []
    for kind, i, k, j, end in SequenceMatcher(None, words, texts, autojunk=False).get_opcodes():
        if kind in ("replace", "delete") and (words[i].isidentifier() and i >= _after(words, macros, own)):
            macros.append((own[i].start() + 1, own[_closing(words, i)].end() + 1))
        for t in range(j, end):
            if kind == "equal":
                m = own[i + t - j]
                found[t] = (m.start() + 1, m.end() + 1)
            elif macros:
                found[t] = macros[-1]
            elif kind == "replace":
                found[t] = (own[i].start() + 1, own[k - 1].end() + 1)
    return found, macros


def _after(words: list[str], macros: _Columns, own: list[re.Match[str]]) -> int:
    """The first token behind the last macro."""
    return next((k for k in range(len(words)) if not macros or own[k].start() + 1 >= macros[-1][1]), len(words))


def _closing(words: list[str], first: int) -> int:
    """The last token of the use of a macro: its name, or the bracket that closes its arguments."""
    if words[first + 1 : first + 2] != ["("]:
        return first
    depth = 0
    for k in range(first + 1, len(words)):
        depth += (words[k] == "(") - (words[k] == ")")
        if depth == 0:
            return k
    return len(words) - 1


def _prefixes(node: Any) -> int:
    """The number of operators before the first name or number of an expression."""
    count = 0
    while True:
        if isinstance(node, c_ast.UnaryOp):
            if node.op[0] == "p" or node.op == "sizeof":
                return count
            count += 1
            node = node.expr
        elif isinstance(node, c_ast.BinaryOp):
            node = node.left
        elif isinstance(node, c_ast.Assignment):
            node = node.lvalue
        elif isinstance(node, c_ast.TernaryOp):
            node = node.cond
        else:
            return count


def _coordinates(node: Any) -> Iterator[tuple[int, int] | None]:
    pending = [node]
    while pending:
        part = pending.pop()
        coord = getattr(part, "coord", None)
        yield (coord.line, coord.column or 1) if coord is not None else None
        pending += [child for _, child in part.children()]
