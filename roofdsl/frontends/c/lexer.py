"""The lexer of C: pycparser's, without attributes."""

from __future__ import annotations

from typing import Any

from pycparser import c_lexer

from roofdsl.frontends.c.preprocess import ATTRIBUTE

_LAYOUT = ("packed", "__packed__", "aligned", "__aligned__", "align")


class Lexer(c_lexer.CLexer):  # type: ignore[misc]
    """Leaves attributes out, and notes the structures that one of them, or a pragma, lays out differently in memory.

    `reached`: how far it has read, since not every error of the parser has a place. `packed`: where those structures
    begin, as the coordinates of their nodes do: at the tag, or at the brace if there is none.
    """

    reached = (1, 1)

    def input(self, text: str, filename: str = "") -> None:
        """Begins a text."""
        super().input(text, filename)
        self.packed: set[tuple[int, int]] = set()
        self._braces: list[tuple[int, int] | None] = []  # where the structure of each open brace begins
        self._head = ""  # `struct` between that word and its brace, `}` from its closing brace to the `;`
        self._begin: tuple[int, int] | None = None  # of the structure whose head or end is being read
        self._pending = False  # an attribute of it was before its brace
        self._pack, self._pushed = False, list[bool]()  # of `#pragma pack`

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
            self._head, self._begin, self._pending = "struct", None, False
        elif kind == "ID" and self._head == "struct" and self._begin is None:
            self._begin = self.reached
        elif kind == "LBRACE" and self._head == "struct":
            begin = self._begin or self.reached
            self._braces.append(begin)
            if self._pending or self._pack:
                self.packed.add(begin)
            self._head = ""
        elif kind == "LBRACE":
            self._braces.append(None)
            self._head = ""
        elif kind == "RBRACE":
            self._begin = self._braces.pop() if self._braces else None
            self._head = "}" if self._begin is not None else ""
        elif kind == "SEMI" or (self._head == "struct" and kind != "ID") or kind in ("EQUALS", "LPAREN"):
            self._head = ""
        elif kind == "PPPRAGMASTR" and value.strip().startswith("pack"):
            self._pragma_pack(value)

    def _pragma_pack(self, value: str) -> None:
        """`pack(1)`, `pack(push, 1)`, `pack(pop)` and `pack()`."""
        if "push" in value:
            self._pushed.append(self._pack)
        if "pop" in value:
            self._pack = self._pushed.pop() if self._pushed else False
        elif "push" not in value or any(c.isdigit() for c in value):
            self._pack = any(c.isdigit() for c in value)

    def _skip(self) -> None:
        """Reads an attribute to its closing bracket."""
        depth = 0
        while True:
            token = super().token()
            if token is None:
                return
            depth += (token.value == "(") - (token.value == ")")
            if token.value in _LAYOUT:
                self._laid_out_differently()
            if depth == 0:
                return

    def _laid_out_differently(self) -> None:
        if self._head == "struct":
            self._pending = True
        elif self._head == "}" and self._begin is not None:
            self.packed.add(self._begin)
        elif self._braces and self._braces[-1] is not None:
            self.packed.add(self._braces[-1])
