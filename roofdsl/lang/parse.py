"""Text to syntax tree: lark reads one line after another, and goes on with the next line after an error."""

from __future__ import annotations

import re
from copy import copy
from functools import lru_cache
from threading import Lock

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from roofdsl.lang import tree
from roofdsl.lang.build import MAX_NESTING, Builder
from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.grammar import parser, reserved
from roofdsl.lang.layout import DEDENT, INDENT, LAYOUT, Layout, span_of
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source, Span
from roofdsl.lang.syntax_errors import bad_character, explain, mismatch

MAX_BYTES = 1 << 20
MAX_SYNTAX_ERRORS = 100
MAX_ERRORS = 1000  # then the rest is not read
MAX_UNCLOSED = 20  # brackets whose end is looked for in all that follows

# What takes the place of damaged lines, as terminals: a line in each kind of block, and the lines that open blocks.
_STATEMENTS = ["NAME EQUAL NUMBER _NEWLINE", "_UNITS NUMBER _NEWLINE", "_RUN NAME LPAR RPAR _NEWLINE"]
_HEADERS = {
    "kernel": "_KERNEL NAME LPAR RPAR COLON _NEWLINE",
    "machine": "_MACHINE NAME COLON _NEWLINE",
    "program": "_PROGRAM NAME LPAR RPAR COLON _NEWLINE",
    "repeat": "_REPEAT NUMBER COLON _NEWLINE",
}
_ANY_HEADER = "_IF NUMBER COLON _NEWLINE"
_MADE_UP = {"NAME": "_", "NUMBER": "1", "EQUAL": "="}

# What matters on a line that is not read: texts and comments may hold brackets, and brackets line ends.
_SKIPPED = re.compile(r'"[^"\n]*"|#[^\n]*|(?P<opens>[(\[])|(?P<closes>[)\]])|(?P<ends>\n[ \t]*(?P<word>[A-Za-z_]\w*)?)')
_INSIDE_BRACKETS = frozenset(("and", "or", "not", "const"))  # reserved words that do not show that a line begins
_CHARACTER = "CHARACTER"  # stands for a character that begins no terminal

KEPT_FILES, KEPT_BYTES = 96, 24 << 10
"""How many files keep their trees, and their largest size: servers, classes and tests read the same ones many times."""

_one_at_a_time = Lock()  # lark's parser has one `Layout`


def parse(source: Source) -> tree.File:
    """The syntax tree of a file. Raises InputError with every syntax error that can be told from the others."""
    file, errors = parse_all(source)
    if errors:
        raise InputError(source, errors)
    return file


def parse_all(source: Source) -> tuple[tree.File, list[Diagnostic]]:
    """The tree of everything that could be parsed, and all syntax errors; definitions with an error inside are left
    out.
    """
    size = len(source.text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        message = f"the file has {size} bytes; the limit is {MAX_BYTES} (1 MiB)"
        return tree.File((), source=source), [Diagnostic("limit-file", message, Span(1, 1, 1, 1))]
    if size > KEPT_BYTES:
        return _parsed(source)
    file, errors = _kept(source)
    return file, list(errors)


@lru_cache(maxsize=KEPT_FILES)
def _kept(source: Source) -> tuple[tree.File, tuple[Diagnostic, ...]]:
    file, errors = _parsed(source)
    return file, tuple(errors)


def _parsed(source: Source) -> tuple[tree.File, list[Diagnostic]]:
    with _one_at_a_time:
        reader = _Reader(source)
        read = reader.run()
    builder = Builder()
    file = builder.transform(read) if read is not None else tree.File(())
    found = sorted(reader.errors, key=_place)
    first = {e.span.line: e for e in reversed(found)}  # of several on a line, the others follow from the first
    errors = sorted([*first.values(), *builder.errors], key=_place)
    return _without_damaged(file, errors, reader.layout, source), _capped(errors)


def _place(error: Diagnostic) -> tuple[int, int]:
    return error.span.line, error.span.column


def _without_damaged(file: tree.File, errors: list[Diagnostic], layout: Layout, source: Source) -> tree.File:
    """The file without the definitions that contain an error."""
    lines = {e.span.line for e in errors}
    for error in errors:
        if error.code == "syntax-indent":  # such a line belongs to nothing: the item before it counts as damaged
            before = [item.span.end_line for item in file.items if item.span.line < error.span.line]
            lines.update(before[-1:])
    at = sorted(lines)
    kept: list[tree.TopItem] = []
    damaged: set[str] = set()
    for item in file.items:
        if not any(item.span.line <= line <= item.span.end_line for line in at):
            kept.append(item)
        elif isinstance(item, tree.Kernel | tree.MachineBlock | tree.Program):
            damaged.add(item.name.text)
    comments = tuple(layout.comments)
    return replace(file, items=tuple(kept), comments=comments, damaged=frozenset(damaged), source=source)


class _Reader:
    """Reads one text with lark's interactive parser."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text if source.text.endswith("\n") else source.text + "\n"
        self.parser = parser().parse_interactive(self.text)
        self.state = self.parser.parser_state
        lexer, layout = self.parser.lexer_thread.state, parser().options.postlex
        assert lexer is not None and isinstance(layout, Layout)
        self.position = lexer.line_ctr
        self.layout = layout
        self.layout.begin(self.text)
        self.found: list[Diagnostic] = []
        self.line: list[Token] = []  # what the parser has taken of the logical line
        self.unclosed = 0

    @property
    def errors(self) -> list[Diagnostic]:
        """What is wrong with the layout and the syntax."""
        return self.layout.errors + self.found

    def run(self) -> Tree[Token] | None:
        """The tree, with placeholders for damaged lines; None if too much is wrong."""
        while len(self.errors) <= MAX_ERRORS:
            try:
                for token in self.parser.lexer_thread.lex(self.state):
                    self._take(token)
                end = Token.new_borrow_pos("$END", "", self._token_at(len(self.text)))
                if not self.layout.brackets:
                    read: Tree[Token] = self.parser.feed_token(end)
                    return read
                self._recover(end)
            except UnexpectedCharacters:
                self._recover(self._token_at(self.position.char_pos))
            except UnexpectedToken as error:
                self._recover(error.token)
        return None

    def _take(self, token: Token) -> None:
        """Passes a token to the parser. Raises UnexpectedToken."""
        if len(self.layout.brackets) > MAX_NESTING:
            raise UnexpectedToken(token, set())
        self.parser.feed_token(token)
        if token.type in LAYOUT:
            self.line.clear()
        else:
            self.line.append(token)

    # ---- what is wrong ----

    def _recover(self, token: Token) -> None:
        """Reports what is wrong at a rejected token, and prepares the parser for what follows."""
        accepted = self._accepts()
        if token.type == INDENT:
            self.found.append(self._explained(token, accepted))
            self._skip_block()
        elif INDENT in accepted:
            self._missing_block(token)
        elif token.type == DEDENT and not self.line and self._stand_in(_STATEMENTS, token):
            self.layout.waiting.appendleft(token)  # a block whose lines were all left out
        else:
            self._leave_out(token, accepted)

    def _accepts(self) -> set[str]:
        """The terminals that could stand here.

        What the rejected token has reduced is undone first: the line is parsed again up to that token.
        """
        if self.line:
            self._undo_line()
            for token in self.line:
                self.parser.feed_token(token)
        accepts: set[str] = self.parser.accepts()
        return accepts

    def _undo_line(self) -> None:
        """Removes the entries of the logical line from the parser's stacks."""
        states, values = self.state.state_stack, self.state.value_stack
        while self.line and values and _start(values[-1]) >= _start(self.line[0]):
            values.pop()
            states.pop()

    def _explained(self, token: Token, accepted: set[str]) -> Diagnostic:
        """The diagnostic for a rejected token."""
        if token.type == _CHARACTER:
            return bad_character(self.source.line(token.line or 1), token)
        if len(self.layout.brackets) > MAX_NESTING:
            message = f"an expression is nested deeper than the limit of {MAX_NESTING}"
            return Diagnostic("limit-nesting", message, span_of(self.layout.brackets[-1]))
        if self._is_mismatch(token):
            return mismatch(token, self.layout.brackets)
        return explain([*self.line, token], accepted, self.source.line(token.line or 1))

    def _is_mismatch(self, token: Token) -> bool:
        return token.type in ("RPAR", "RSQB") and not self.layout.matches(token)

    def _missing_block(self, token: Token) -> None:
        """Reports a header with nothing indented below it, and adds a placeholder before the rejected token."""
        header = self.layout.last or token
        line, column = header.end_line or 1, header.end_column or 1
        span = Span(line, max(1, column - 1), line, max(2, column))
        message = "an indented block is expected after this line"
        self.found.append(Diagnostic("syntax-block", message, span, "indent the lines that belong to it"))
        self._stand_in([f"_INDENT {statement} _DEDENT" for statement in _STATEMENTS], token)
        if token.type in LAYOUT:
            self.layout.waiting.appendleft(token)
        else:
            self._move_to(_start(token))

    # ---- going on ----

    def _leave_out(self, token: Token, accepted: set[str]) -> None:
        """Reports an error inside a line, and leaves out the line and, if no placeholder fits, its block."""
        explained = self._explained(token, accepted)
        words = [*self.line, token]
        self._undo_line()
        if token.type in LAYOUT:
            self.found.append(explained)
        else:
            if self._is_mismatch(token):
                self.layout.brackets.clear()  # nobody knows which of them is meant to be closed
            opening = self._skip_line(_start(token))
            if opening is None or _start(token) < opening:
                self.found.append(explained)
        self.line.clear()
        waiting = self.layout.waiting
        if not waiting or waiting[0].type != INDENT:
            self._stand_in(_STATEMENTS, *words[:2])
        elif not self._stand_in([_HEADERS.get(words[0], _ANY_HEADER)], *words[:2]):
            waiting.popleft()
            self._skip_block()

    def _skip_line(self, position: int) -> int | None:
        """Continues after the logical line of a position; reports and returns a bracket that is never closed on it."""
        end, opening = self._end_of_line(position)
        if opening is not None:
            self.unclosed += 1
            bracket = self._token_at(opening)
            message = f"`{bracket}` is never closed"
            self.found.append(Diagnostic("bracket-unclosed", message, span_of(bracket)))
        self._move_to(end)
        self.layout.brackets.clear()
        self.layout.in_line, self.layout.last = True, self._token_at(max(position, end - 1))
        next(self.parser.lexer_thread.lex(self.state), None)  # the line's end; what follows it waits in the layout
        return opening

    def _end_of_line(self, position: int) -> tuple[int, int | None]:
        """The end of the logical line of a position, and its outermost bracket that is never closed.

        With such a bracket, the logical line ends with the line of text that contains it.
        """
        opened = [_start(bracket) for bracket in self.layout.brackets]
        for found in _SKIPPED.finditer(self.text, position):
            if found["opens"]:
                opened.append(found.start())
            elif found["closes"] and opened:
                opened.pop()
            elif found["ends"]:
                if not opened or self.unclosed >= MAX_UNCLOSED:
                    return found.start(), None
                if found["word"] in reserved() - _INSIDE_BRACKETS:
                    break
        if not opened or self.unclosed >= MAX_UNCLOSED:
            return len(self.text), None
        return self.text.index("\n", opened[0]), opened[0]

    def _skip_block(self) -> None:
        """Skips the rest of a block that has begun and belongs to nothing."""
        depth, waiting = 1, self.layout.waiting
        while depth:
            if waiting:
                kind = waiting.popleft().type
                depth += (kind == INDENT) - (kind == DEDENT)
            elif self.position.char_pos < len(self.text):
                self._skip_line(self.position.char_pos)
            else:
                return

    def _stand_in(self, choices: list[str], *words: Token) -> bool:
        """Feeds the first sequence of terminals that the grammar allows here, at the position of `words`."""
        texts = dict(_MADE_UP)
        if len(words) == 2 and words[1].type == "NAME":
            texts["NAME"] = str(words[1])
        for choice in choices:
            if self._would_take(choice.split()):
                for kind in choice.split():
                    self.parser.feed_token(Token.new_borrow_pos(kind, texts.get(kind, ""), words[0]))
                return True
        return False

    def _would_take(self, kinds: list[str]) -> bool:
        """Whether the grammar allows these terminals here, tried on a copy of the states."""
        trial = self.parser.copy(deepcopy_values=False)
        trial.parser_state.parse_conf = copy(trial.parser_state.parse_conf)
        trial.parser_state.parse_conf.callbacks = {}  # no tree is built, so that lists of the real one stay as they are
        try:
            for kind in kinds:
                trial.feed_token(Token(kind, ""))
        except UnexpectedToken:
            return False
        return True

    def _move_to(self, position: int) -> None:
        """Makes lark's lexer continue at a position of the text."""
        at = self.position
        at.char_pos = position
        at.line = self.text.count("\n", 0, position) + 1
        at.line_start_pos = self.text.rfind("\n", 0, position) + 1
        at.column = position - at.line_start_pos + 1

    def _token_at(self, position: int) -> Token:
        """A token for one character of the text."""
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        character = self.text[position : position + 1]
        return Token(_CHARACTER, character, position, line, column, line, column + 1, position + 1)


def _start(value: Token | Tree[Token]) -> int:
    """Where a token or a tree begins in the text."""
    position = value.start_pos if isinstance(value, Token) else value.meta.start_pos
    assert position is not None
    return position


def _capped(errors: list[Diagnostic]) -> list[Diagnostic]:
    if len(errors) <= MAX_SYNTAX_ERRORS:
        return errors
    last = errors[MAX_SYNTAX_ERRORS - 1]
    message = f"{len(errors) - MAX_SYNTAX_ERRORS + 1} more syntax errors from here on are not shown"
    return [*errors[: MAX_SYNTAX_ERRORS - 1], Diagnostic("syntax-more", message, last.span)]
