"""Lines and blocks: turns lark's line ends into the ends of statements and the beginnings and ends of blocks."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from lark import Token
from lark.lark import PostLex

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.source import Span
from roofdsl.lang.tree import Comment

MAX_BLOCKS = 64

NEWLINE, INDENT, DEDENT = "_NEWLINE", "_INDENT", "_DEDENT"
LAYOUT = (NEWLINE, INDENT, DEDENT)
_INDENTED = re.compile(r"[ \t]+(?=[^ \t\r\n#])")  # a first line of code that does not begin in its first column
_COMMENT = re.compile(r"#[^\n]*")


def span_of(token: Token) -> Span:
    """Where a token stands."""
    return Span(token.line or 1, token.column or 1, token.end_line or 1, token.end_column or 1)


class Layout(PostLex):
    """Passes tokens on, and puts _INDENT and _DEDENT where the indentation changes.

    A line end inside brackets is left out. The state survives an error, so that parsing can continue after it:
    `waiting` holds the tokens of a line end that the parser has not received, `brackets` the brackets that are open.
    """

    always_accept = (NEWLINE,)

    def begin(self, text: str) -> None:
        """Prepares for a new text."""
        self.text = text
        self.comments: list[Comment] = []
        self.errors: list[Diagnostic] = []
        self.indents = [""]
        self.brackets: list[Token] = []
        self.waiting: deque[Token] = deque()
        self.last: Token | None = None  # the last token that is not a line end; None before the first
        self.in_line = False  # whether a line has begun
        indent = _INDENTED.match(text)
        if indent:
            self._indentation(indent[0], 1, Token(NEWLINE, "", 0, 1, 1, 1, 1, 0))

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens for the parser (lark calls it for each text, and again after an error)."""
        while self.waiting:
            yield self.waiting.popleft()
        for token in stream:
            if token.type == NEWLINE:
                self._comments(token)
                if not self.brackets:
                    self._end_of_line(token)
                while self.waiting:
                    yield self.waiting.popleft()
                continue
            self.last, self.in_line = token, True
            yield token  # the parser may refuse it; a bracket counts once it has been taken
            self._count(token)

    def matches(self, closing: Token) -> bool:
        """Whether a closing bracket fits the last one that is open."""
        return bool(self.brackets) and self.brackets[-1].type == ("LPAR" if closing.type == "RPAR" else "LSQB")

    def _count(self, token: Token) -> None:
        if token.type in ("LPAR", "LSQB"):
            self.brackets.append(token)
        elif token.type in ("RPAR", "RSQB"):
            self.brackets.pop()

    def _end_of_line(self, newline: Token) -> None:
        if self.in_line:
            self.waiting.append(_empty(NEWLINE, self.last or newline))
        self.in_line = False
        indent = newline.rpartition("\n")[2]
        self._indentation(indent, newline.end_line or 1, newline)

    def _indentation(self, indent: str, line: int, before: Token) -> None:
        """Opens or closes blocks for a line that begins with `indent`."""
        top = self.indents[-1]
        if indent == top:
            return
        span = Span(line, 1, line, max(2, len(indent) + 1))
        if not indent.startswith(top) and indent not in self.indents:
            self._uneven(indent, span)
        width = len(indent.expandtabs(8))
        if indent.startswith(top) or width > len(top.expandtabs(8)):
            if len(self.indents) == MAX_BLOCKS + 1:
                self._error("limit-blocks", f"blocks are nested deeper than the limit of {MAX_BLOCKS}", span)
            self.indents.append(indent)
            start = before.start_pos or 0
            column = len(indent) + 1
            self.waiting.append(Token(INDENT, "", start, line, column, line, column, start))
            return
        while len(self.indents) > 1 and width <= len(self.indents[-2].expandtabs(8)):
            self.indents.pop()
            self.waiting.append(_empty(DEDENT, self.last or before))

    def _uneven(self, indent: str, span: Span) -> None:
        """Reports an indentation that no open block has; the line is treated as one of the next deeper block."""
        used = indent + "".join(self.indents)
        if "\t" in used and " " in used:
            message, help = "tabs and spaces are mixed in the indentation", "indent every line in the same way"
        else:
            depths = " or ".join(dict.fromkeys(str(len(i)) for i in self.indents))
            message, help = "the indentation matches no block above", f"indent by {depths} here"
        self._error("indent-inconsistent", message, span, help)

    def _comments(self, newline: Token) -> None:
        """Records the comments before a line end and on the lines that it skips."""
        start = newline.start_pos or 0
        for found in _COMMENT.finditer(newline):
            at = start + found.start()
            line = (newline.line or 1) + newline.count("\n", 0, found.start())
            before = self.text[self.text.rfind("\n", 0, at) + 1 : at]
            comment = found[0].rstrip()
            column = len(before) + 1
            span = Span(line, column, line, column + len(comment))
            self.comments.append(Comment(comment, not before.strip(), span))

    def _error(self, code: str, message: str, span: Span, help: str = "") -> None:
        self.errors.append(Diagnostic(code, message, span, help))


def _empty(kind: str, after: Token) -> Token:
    """A token without text after another."""
    line, column, position = after.end_line, after.end_column, after.end_pos
    return Token(kind, "", position, line, column, line, column, position)
