"""Text to tokens: words, numbers, signs, and where lines end and blocks begin.

Terminals come from the grammar (through `table.TERMINALS`). Line ends inside brackets do not count. A line on which
something is wrong here ends in an ERROR token: the parser skips it without a second message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.source import Source, Span
from roofdsl.lang.table import TERMINALS
from roofdsl.lang.tree import Comment

MAX_BLOCKS = 64
MAX_NESTING = 200
MAX_UNCLOSED = 20
MAX_ERRORS = 1000  # then the rest is not read

# Words that are never names. Each other word of the grammar is a keyword only where the grammar allows it.
_RESERVED = "kernel machine program use for in if elif else let out inout temp assume parallel const and or not"
RESERVED = frozenset(_RESERVED.split())
_STARTS = RESERVED - {"and", "or", "not", "const"}
KEYWORDS = {text: name for name, (is_regex, text) in TERMINALS.items() if not is_regex and text[0].isalpha()}
SIGNS = {text: name for name, (is_regex, text) in TERMINALS.items() if not is_regex and not text[0].isalpha()}
_CLOSES = {")": "(", "]": "["}


class Token(NamedTuple):
    """A piece of text; `kind` is a terminal of the grammar, `NAME` for every word that is not reserved, or `ERROR`."""

    kind: str
    text: str
    span: Span


@dataclass
class Lexed:
    """The tokens (ending in $END), the comments, and what is wrong."""

    tokens: list[Token] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    errors: list[Diagnostic] = field(default_factory=list)


def _pattern() -> re.Pattern[str]:
    parts = [f"(?P<{name}>{text})" for name, (is_regex, text) in TERMINALS.items() if is_regex]
    signs = "|".join(re.escape(s) for s in sorted(SIGNS, key=len, reverse=True))
    return re.compile("|".join(["[ \t]+", "(?P<COMMENT>#.*)", *parts, f"(?P<SIGN>{signs})"]))


_PATTERN = _pattern()
_FIRST_WORD = re.compile(r"[ \t]*([A-Za-z_]\w*)")


def tokenize(source: Source) -> Lexed:
    """All tokens of the text. Never raises."""
    return _Lexer(source).run()


class _Lexer:
    def __init__(self, source: Source) -> None:
        self.lines = [line.rstrip("\r") for line in source.text.split("\n")]
        self.out = Lexed()
        self.indents = [""]
        self.brackets: list[Token] = []
        # after the line with the outermost open bracket: the next line; how many tokens, comments, errors there were
        self.resume = (0, 0, 0, 0)
        self.unclosed = 0
        self.failed = False  # the rest of the logical line is not read

    def run(self) -> Lexed:
        number = 0
        while True:
            while number < len(self.lines) and len(self.out.errors) < MAX_ERRORS:
                number = self._line(number)
            if not self.brackets or len(self.out.errors) >= MAX_ERRORS:
                break
            number = self._unclosed()
        end = Span(len(self.lines), len(self.lines[-1]) + 1, len(self.lines), len(self.lines[-1]) + 2)
        if self._in_logical_line():
            self._newline()
        if len(self.indents) > 1:
            last = self.out.tokens[-1].span
            last = Span(last.end_line, last.end_column, last.end_line, last.end_column)
            self.out.tokens += [Token("_DEDENT", "", last) for _ in self.indents[1:]]
        self.out.tokens.append(Token("$END", "", end))
        return self.out

    def _line(self, number: int) -> int:
        """Reads one line of text; the index of the line to go on with."""
        text = self.lines[number]
        if self.brackets:
            word = _FIRST_WORD.match(text)
            if word and word[1] in _STARTS:
                return self._unclosed()
        position = 0
        if not self.brackets:
            self.failed = False
            stripped = text.lstrip(" \t")
            if stripped and not stripped.startswith("#"):
                position = len(text) - len(stripped)
                self._indent(text[:position], number + 1)
        count = len(self.out.tokens)
        self._scan(text, position, number + 1)
        if self.brackets and self.unclosed >= MAX_UNCLOSED:
            self.brackets.clear()
        if self.brackets and self.brackets[0].span.line == number + 1:
            self.resume = (number + 1, len(self.out.tokens), len(self.out.comments), len(self.out.errors))
        if not self.brackets and (len(self.out.tokens) > count or self._in_logical_line()):
            self._newline()
        return number + 1

    def _in_logical_line(self) -> bool:
        return bool(self.out.tokens) and self.out.tokens[-1].kind not in ("_NEWLINE", "_INDENT", "_DEDENT")

    def _newline(self) -> None:
        end = self.out.tokens[-1].span
        self.out.tokens.append(Token("_NEWLINE", "", Span(end.end_line, end.end_column, end.end_line, end.end_column)))

    def _unclosed(self) -> int:
        """Reports the outermost open bracket, forgets what was read after its line, and goes on after that line."""
        opening = self.brackets[0]
        next_line, tokens, comments, errors = self.resume
        del self.out.tokens[tokens:]
        del self.out.comments[comments:]
        del self.out.errors[errors:]
        self._error("bracket-unclosed", f"`{opening.text}` is never closed", opening.span)
        self.out.tokens.append(Token("ERROR", "", opening.span))
        self._newline()
        self.brackets.clear()
        self.unclosed += 1
        return next_line

    def _indent(self, indent: str, line: int) -> None:
        span = Span(line, 1, line, max(2, len(indent) + 1))
        zero = Span(line, len(indent) + 1, line, len(indent) + 1)
        top = self.indents[-1]
        width = len(indent.expandtabs(8))
        if indent == top:
            return
        if not indent.startswith(top) and indent not in self.indents:
            self._uneven(indent, span)
        if indent.startswith(top) or width > len(top.expandtabs(8)):
            if len(self.indents) == MAX_BLOCKS + 1:
                self._error("limit-blocks", f"blocks are nested deeper than the limit of {MAX_BLOCKS}", span)
            self.indents.append(indent)
            self.out.tokens.append(Token("_INDENT", "", zero))
            return
        before = self.out.tokens[-1].span if self.out.tokens else zero
        end = Span(before.end_line, before.end_column, before.end_line, before.end_column)
        while len(self.indents) > 1 and width <= len(self.indents[-2].expandtabs(8)):
            self.indents.pop()
            self.out.tokens.append(Token("_DEDENT", "", end))

    def _uneven(self, indent: str, span: Span) -> None:
        """Reports an indentation that no open block has; the line is taken for one of the next deeper block."""
        used = indent + "".join(self.indents)
        if "\t" in used and " " in used:
            message, help = "tabs and spaces are mixed in the indentation", "indent every line in the same way"
        else:
            depths = " or ".join(dict.fromkeys(str(len(i)) for i in self.indents))
            message, help = "the indentation fits no block above", f"indent by {depths} here"
        self._error("indent-inconsistent", message, span, help)

    def _scan(self, text: str, position: int, line: int) -> None:
        tokens = self.out.tokens
        while position < len(text):
            match = _PATTERN.match(text, position)
            if match is None:
                if not self.failed:
                    self._bad_character(text, position, line)
                if text[position] == '"':
                    return
                position += 1
                continue
            start, position = position, match.end()
            kind = match.lastgroup
            if kind is None:
                continue
            word = match[0]
            span = Span(line, start + 1, line, position + 1)
            if kind == "COMMENT":
                self.out.comments.append(Comment(word.rstrip(), not text[:start].strip(), span))
            elif self.failed:
                self._skipped(word)
            elif kind == "NAME":
                tokens.append(Token(KEYWORDS[word] if word in RESERVED else "NAME", word, span))
            elif kind == "SIGN":
                token = Token(SIGNS[word], word, span)
                tokens.append(token)
                if word in "()[]":
                    self._bracket(token)
            else:
                tokens.append(Token(kind, word, span))

    def _bracket(self, token: Token) -> None:
        if token.text in "([":
            self.brackets.append(token)
            if len(self.brackets) > MAX_NESTING:
                self._error(
                    "limit-nesting", f"an expression is nested deeper than the limit of {MAX_NESTING}", token.span
                )
                self._fail(token.span)
                self.brackets.clear()
        elif self.brackets and self.brackets[-1].text == _CLOSES[token.text]:
            self.brackets.pop()
        else:
            opening = f"closes no `{_CLOSES[token.text]}`"
            if self.brackets:
                opening = f"does not match the `{self.brackets[-1].text}` that is open"
            self._error("bracket-mismatch", f"`{token.text}` {opening}", token.span)
            self.out.tokens.pop()
            self._fail(token.span)
            self.brackets.clear()

    def _skipped(self, word: str) -> None:
        """Keeps track of brackets on a line that is not read further, so that all of it is left out."""
        if word in ("(", "[") and self.brackets:
            self.brackets.append(self.brackets[-1]._replace(text=word))
        elif word in (")", "]") and self.brackets:
            self.brackets.pop()

    def _bad_character(self, text: str, position: int, line: int) -> None:
        character = text[position]
        span = Span(line, position + 1, line, position + 2)
        shown = character if character.isprintable() else f"U+{ord(character):04X}"
        if character == '"':
            span = Span(line, position + 1, line, len(text) + 1)
            self._error("string-unclosed", 'the text that begins here has no closing `"` on its line', span)
        elif character in "'":
            self._error("character", "`'` is no part of the language", span, 'texts stand between double quotes: "..."')
        elif character.isalpha():
            help = "names are made of the letters a to z, A to Z, digits and `_`"
            self._error("character", f"`{shown}` cannot stand in a name", span, help)
        else:
            help = _CHARACTERS.get(shown, "")
            self._error("character", f"the character `{shown}` is no part of the language", span, help)
        self._fail(span)

    def _fail(self, span: Span) -> None:
        self.out.tokens.append(Token("ERROR", "", span))
        self.failed = True

    def _error(self, code: str, message: str, span: Span, help: str = "") -> None:
        self.out.errors.append(Diagnostic(code, message, span, help))


_CHARACTERS = {
    "{": "blocks are made by `:` and indentation, subscripts by `[` and `]`",
    "}": "blocks are made by `:` and indentation, subscripts by `[` and `]`",
    ";": "one statement stands on a line; no `;` ends it",
    "^": "powers are written `**`",
    "&": "conditions are joined by `and`",
    "|": "conditions are joined by `or`",
    "!": "`not` negates a condition, `!=` compares",
    ".": "numbers are written 0.5 or 1.; the language has no attributes",
    "@": "the language has no decorators",
    "\\": "a line continues inside brackets",
}
