"""Tokens to syntax tree: an LALR parser on the generated table, which goes on after an error with the next line.

The parser keeps its own stacks, so that no input makes it recurse. A word is taken as a keyword where the grammar
allows that keyword, unless what follows shows it to be a name (`tile[i] = 0`).
"""

from __future__ import annotations

from typing import Any

from roofdsl.lang import tree
from roofdsl.lang.build import Builder
from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.explain import explain
from roofdsl.lang.lexer import KEYWORDS, MAX_ERRORS, Token, tokenize
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source, Span
from roofdsl.lang.table import END, ROWS, RULES, TERMINALS

MAX_BYTES = 1 << 20
MAX_SYNTAX_ERRORS = 100


class _Actions(dict[int, dict[str, int]]):
    """By state, what to do for each symbol; a row is decoded when it is first asked for."""

    def __missing__(self, state: int) -> dict[str, int]:
        words = ROWS[state].split()
        row = self[state] = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return row


ACTIONS = _Actions()


class _Climbs(dict[tuple[int, int, str], tuple[int, int | None]]):
    """By the two topmost states and the next terminal: the state, and what to do, once no rule passes its child on.

    An operand climbs the whole ladder of precedences; each way up is looked for once.
    """

    def __missing__(self, key: tuple[int, int, str]) -> tuple[int, int | None]:
        below, state, kind = key
        action = ACTIONS[state].get(kind)
        while action is not None and action < 0 and _PASSES[-1 - action]:
            state = ACTIONS[below][_PASSES[-1 - action]]
            action = ACTIONS[state].get(kind)
        found = self[key] = (state, action)
        return found


_CLIMBS = _Climbs()
_Stack = list[tuple[int, Any, Span]]  # state, value, extent
_PYTHON_WORDS = {"for": "for_", "if": "if_", "elif": "elif_", "else": "else_"}
_CALLBACKS = tuple(_PYTHON_WORDS.get(name, name) for _, _, name, _ in RULES)
# By rule, the symbol made by one that only passes its child on, such as `product: power`; empty for all others.
_PASSES = tuple(
    origin if size == 1 and plan == (0,) and not name and origin[0] != "_" else "" for origin, size, name, plan in RULES
)
_NAME_FOLLOWED_BY = frozenset(("LSQB", "EQUAL", "UPDATE"))
# What takes the place of damaged lines, as terminals: a line in each kind of block, and the lines that open blocks.
_STATEMENTS = ["NAME EQUAL NUMBER _NEWLINE", "UNITS NUMBER _NEWLINE", "RUN NAME LPAR RPAR _NEWLINE"]
_HEADERS = {
    "kernel": "KERNEL NAME LPAR RPAR COLON",
    "machine": "MACHINE NAME COLON",
    "program": "PROGRAM NAME LPAR RPAR COLON",
    "repeat": "REPEAT NUMBER COLON",
}


def parse(source: Source) -> tree.File:
    """The syntax tree of a file. Raises InputError with every syntax error that can be told apart."""
    file, errors = parse_all(source)
    if errors:
        raise InputError(source, errors)
    return file


def parse_all(source: Source) -> tuple[tree.File, list[Diagnostic]]:
    """The tree of what could be read and all syntax errors; definitions with an error inside are left out."""
    size = len(source.text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        message = f"the file has {size} bytes; the limit is {MAX_BYTES} (1 MiB)"
        return tree.File((), source=source), [Diagnostic("limit-file", message, Span(1, 1, 1, 1))]
    return _Parser(source).run()


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.lexed = tokenize(source)
        self.tokens = self.lexed.tokens
        self.builder = Builder()
        self.errors: list[Diagnostic] = []
        start = Span(1, 1, 1, 1)
        self.stack: _Stack = [(0, None, start)]
        self.saved = self.stack
        self.line = 0  # index of the token that begins the logical line
        self.position = 0

    def run(self) -> tuple[tree.File, list[Diagnostic]]:
        file = self._parse()
        found = sorted(self.lexed.errors + self.errors, key=lambda e: (e.span.line, e.span.column))
        first = {e.span.line: e for e in reversed(found)}  # of several on a line, the others follow from the first
        errors = sorted([*first.values(), *self.builder.errors], key=lambda e: (e.span.line, e.span.column))
        lines = self._damaged_lines(file, errors)
        kept: list[tree.TopItem] = []
        damaged: set[str] = set()
        for item in file.items:
            broken = any(item.span.line <= line <= item.span.end_line for line in lines)
            if not broken:
                kept.append(item)
            elif isinstance(item, tree.Kernel | tree.MachineBlock | tree.Program):
                damaged.add(item.name.text)
        comments = tuple(self.lexed.comments)
        result = replace(file, items=tuple(kept), comments=comments, damaged=frozenset(damaged), source=self.source)
        return result, _capped(errors)

    def _damaged_lines(self, file: tree.File, errors: list[Diagnostic]) -> list[int]:
        """The lines with errors; for an indented line that belongs to nothing, the end of the item before it."""
        lines = {e.span.line for e in errors}
        for error in errors:
            if error.code == "syntax-indent":
                before = [item.span.end_line for item in file.items if item.span.line < error.span.line]
                lines.update(before[-1:])
        return sorted(lines)

    def _parse(self) -> tree.File:
        begins = True
        while True:
            token = self.tokens[self.position]
            if begins:
                self.line = self.position
            kind = self._kind(token)
            if begins and kind is None:
                self.saved = list(self.stack)
            shifted = kind is not None and self._feed(kind, token, begins and kind not in ("_INDENT", "_DEDENT"))
            if self.stack[-1][0] == END:
                file = self.stack[-1][1]
                assert isinstance(file, tree.File)
                return file
            if shifted:
                begins = kind in ("_NEWLINE", "_INDENT", "_DEDENT")
                self.position += 1
            else:
                self._recover(token, begins)
                begins = True

    # ---- the automaton ----

    def _kind(self, token: Token) -> str | None:
        """The terminal that `token` is here; None for an error that has been reported."""
        if token.kind == "ERROR":
            return None
        if token.kind == "NAME" and token.text in KEYWORDS:
            keyword = KEYWORDS[token.text]
            follows = self.tokens[self.position + 1].kind
            if follows not in _NAME_FOLLOWED_BY and keyword in ACTIONS[self.stack[-1][0]]:
                return keyword
        return token.kind

    def _feed(self, kind: str, token: Token, begins: bool = False) -> bool:
        """Reduces and shifts one token; False where the grammar does not allow it here."""
        stack = self.stack
        while True:
            top, value, span = stack[-1]
            if len(stack) > 1:
                state, action = _CLIMBS[stack[-2][0], top, kind]
                if state != top:
                    stack[-1] = (state, value, span)
            else:
                action = ACTIONS[top].get(kind)
            if action is None:
                if begins:
                    self.saved = list(stack)
                return False
            if action >= 0:
                if begins:
                    self.saved = list(stack)
                stack.append((action, token, token.span))
                return True
            self._reduce(-1 - action)
            if stack[-1][0] == END:
                return True

    def _reduce(self, number: int) -> None:
        origin, size, _, plan = RULES[number]
        stack = self.stack
        value: Any
        if size == 1 and plan == (0,) and not _CALLBACKS[number]:
            _, value, span = stack.pop()  # the first of a list
            stack.append((ACTIONS[stack[-1][0]][origin], [value], span))
            return
        taken = stack[len(stack) - size :]
        del stack[len(stack) - size :]
        span = stack[-1][2] if not taken else taken[0][2] if size == 1 else taken[0][2].to(taken[-1][2])
        callback = _CALLBACKS[number]
        if not callback and plan and plan[0] & 1 and plan[0] > 0:
            value = taken[plan[0] >> 1][1]  # the list grows in place
            for step in plan[1:]:
                value += taken[step >> 1][1] if step & 1 else [taken[step >> 1][1]]
        else:
            value = []
            for step in plan:
                if step < 0:
                    value.append(None)
                elif step & 1:
                    value += taken[step >> 1][1]
                else:
                    value.append(taken[step >> 1][1])
            if callback:
                value = getattr(self.builder, callback)(span, *value)
            elif not origin.startswith("_"):
                value = value[0]
        stack.append((ACTIONS[stack[-1][0]][origin], value, span))

    def _accepts(self, begins: bool) -> frozenset[str]:
        """The terminals that could stand here, by trying each on a copy of the states.

        What the failed token has reduced is undone first: the line is read again up to that token.
        """
        found = set()
        if not begins:
            errors, position = len(self.builder.errors), self.position
            self.stack = list(self.saved)
            for at in range(self.line, position):
                self.position = at
                self._feed(self._kind(self.tokens[at]) or "ERROR", self.tokens[at])
            self.position = position
            del self.builder.errors[errors:]
        for kind in ACTIONS[self.stack[-1][0]]:
            if kind not in TERMINALS and kind not in ("$END", "_NEWLINE", "_INDENT", "_DEDENT"):
                continue
            states = [state for state, _, _ in self.stack]
            while True:
                action = ACTIONS[states[-1]].get(kind)
                if action is None:
                    break
                if action >= 0:
                    found.add(kind)
                    break
                origin, size, _, _ = RULES[-1 - action]
                del states[len(states) - size :]
                states.append(ACTIONS[states[-1]][origin])
                if states[-1] == END:
                    found.add(kind)
                    break
        return frozenset(found)

    # ---- errors ----

    def _recover(self, token: Token, begins: bool) -> None:
        """Reports what is wrong at `token`, unless the lexer has, and makes the parser ready for what follows."""
        accepted = self._accepts(begins)
        if token.kind == "_INDENT":
            self._report(token, accepted)
            self._skip_block()
            return
        if "_INDENT" in accepted:
            self._missing_block()
            return
        if token.kind == "_DEDENT" and begins and self._stand_in(_STATEMENTS):
            return  # a block whose lines were left out
        if token.kind != "ERROR":
            self._report(token, accepted)
        self.stack = list(self.saved)
        if len(self.errors) > MAX_ERRORS:
            self.position = len(self.tokens) - 1
        while self.tokens[self.position].kind not in ("_NEWLINE", "$END"):
            self.position += 1
        if self.tokens[self.position].kind == "$END":
            self.stack = [(0, None, Span(1, 1, 1, 1))]
            return
        self.position += 1
        if self.tokens[self.position].kind != "_INDENT":
            self._stand_in(_STATEMENTS)
        elif not self._stand_in(self._headers()):
            self._skip_block()

    def _report(self, token: Token, accepted: frozenset[str]) -> None:
        end = self.position
        while end < len(self.tokens) and self.tokens[end].kind not in ("_NEWLINE", "$END"):
            end += 1
        self.errors.append(explain(self.tokens[self.line : end + 1], self.position - self.line, token, accepted))

    def _missing_block(self) -> None:
        """Reports a header with nothing indented under it, and puts something there."""
        end = self.tokens[self.position - 1].span
        span = Span(end.line, max(1, end.column - 1), end.line, max(2, end.column))
        message = "an indented block is expected after this line"
        self.errors.append(Diagnostic("syntax-block", message, span, "indent the lines that belong to it"))
        self._stand_in([f"_INDENT {statement} _DEDENT" for statement in _STATEMENTS])

    def _headers(self) -> list[str]:
        """The stand-in for a damaged line that opens a block: the definition it began, or any `if`."""
        return [_HEADERS.get(self.tokens[self.line].text, "IF NUMBER COLON") + " _NEWLINE"]

    def _stand_in(self, choices: list[str]) -> bool:
        """Feeds the first sequence of terminals that the grammar allows here, with made-up texts."""
        at = self.tokens[min(self.line, len(self.tokens) - 1)].span
        words = self.tokens[self.line : self.line + 2]
        name = words[1].text if len(words) == 2 and words[1].kind == "NAME" else "_"
        before = list(self.stack)
        for choice in choices:
            self.stack = list(before)
            texts = {"NAME": name, "NUMBER": "1", "EQUAL": "="}
            if all(self._feed(kind, Token(kind, texts.get(kind, ""), at)) for kind in choice.split()):
                return True
        self.stack = before
        return False

    def _skip_block(self) -> None:
        """Passes over an indented block that belongs to nothing."""
        depth = 0
        while self.tokens[self.position].kind != "$END":
            kind = self.tokens[self.position].kind
            depth += (kind == "_INDENT") - (kind == "_DEDENT")
            self.position += 1
            if depth == 0:
                return


def _capped(errors: list[Diagnostic]) -> list[Diagnostic]:
    if len(errors) <= MAX_SYNTAX_ERRORS:
        return errors
    last = errors[MAX_SYNTAX_ERRORS - 1]
    message = f"{len(errors) - MAX_SYNTAX_ERRORS + 1} more syntax errors from here on are not shown"
    return [*errors[: MAX_SYNTAX_ERRORS - 1], Diagnostic("syntax-more", message, last.span)]
