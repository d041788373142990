"""The lexer of C: pycparser's, without attributes."""

from __future__ import annotations

from typing import Any

from pycparser import c_lexer

from roofdsl.frontends.c.preprocess import ATTRIBUTE

_LAYOUT = ("packed", "__packed__", "aligned", "__aligned__", "align")


class Lexer(c_lexer.CLexer):  # type: ignore[misc]
    """Leaves attributes out, and notes whether one of them, or a pragma, changes how a structure lies in memory.

    `reached`: how far it has read, since not every error of the parser has a place.
    """

    reached = (1, 1)
    packed = False

    def input(self, text: str, filename: str = "") -> None:
        """Begins a text."""
        super().input(text, filename)
        self.packed = False
        self._braces: list[bool] = []  # whether each open brace is that of a structure
        self._before = ""
        self._head = ""  # `struct` between that word and its brace, `}` from its closing brace to the `;`

    def token(self) -> Any:
        """The next token."""
        token = super().token()
        while token is not None and token.value == ATTRIBUTE:
            self._skip()
            token = super().token()
        if token is not None:
            self.reached = (token.lineno, token.column)
            self._follow(token.type, token.value)
        return token

    def _follow(self, kind: str, value: str) -> None:
        """Notes whether a token is part of the definition of a structure."""
        if kind in ("STRUCT", "UNION"):
            self._head = "struct"
        elif kind == "LBRACE":
            self._braces.append(self._head == "struct")
            self._head = ""
        elif kind == "RBRACE":
            self._head = "}" if self._braces and self._braces.pop() else ""
        elif kind == "SEMI" or (self._head == "struct" and kind != "ID") or kind in ("EQUALS", "LPAREN"):
            self._head = ""
        elif kind == "PPPRAGMASTR" and value.strip().startswith("pack"):
            self.packed = True

    def _skip(self) -> None:
        """Reads an attribute to its closing bracket."""
        of_structure = bool(self._head) or (bool(self._braces) and self._braces[-1])
        depth = 0
        while True:
            token = super().token()
            if token is None:
                return
            depth += (token.value == "(") - (token.value == ")")
            if token.value in _LAYOUT and of_structure:
                self.packed = True
            if depth == 0:
                return
