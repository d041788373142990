"""The LaTeX of reports as MathML, which browsers render without a library.

Only the commands that reports use are known, most of them from `roofdsl.formulas.writing`; any other raises
ValueError. A test converts the derivation of every shipped kernel.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|[A-Za-z]|\s+|.", re.S)
_OPERATORS = {
    "\\cdot": "⋅", "\\times": "×", "\\geq": "≥", "\\leq": "≤", "\\to": "→", "\\sum": "∑", "\\ldots": "…", "-": "−",
    "\\neq": "≠", "\\min": "min", "\\max": "max", "\\bmod": "mod",
}  # fmt: skip
_LETTERS = {"\\alpha": "α", "\\beta": "β", "\\tau": "τ", "\\infty": "∞"}
_SPACES = {"\\ ": "0.33em", "\\,": "0.17em", "\\;": "0.28em", "\\quad": "1em", "\\!": "-0.17em"}
_FENCES = {"\\lfloor": "⌊", "\\rfloor": "⌋", "\\lceil": "⌈", "\\rceil": "⌉", "(": "(", ")": ")", "[": "[", "]": "]",
           "|": "|", ".": ""}  # fmt: skip
_LITERAL = "+=<>,;:!/()[]*|"


def mathml(latex: str, *, display: bool = False) -> str:
    """A `math` element. Raises ValueError for LaTeX that reports do not use."""
    reader = _Reader(_TOKEN.findall(latex))
    content = reader.row(())
    if reader.tokens:
        raise ValueError(f"unexpected {reader.tokens[0]} in {latex}")
    kind = ' display="block"' if display else ""
    return f"<math{kind}>{content}</math>"


class _Reader:
    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(tokens)

    def take(self) -> str:
        if not self.tokens:
            raise ValueError("the formula ends too early")
        return self.tokens.pop(0)

    def row(self, ends: Sequence[str]) -> str:
        """Items up to one of `ends`, which is not consumed."""
        items: list[str] = []
        while self.tokens and self.tokens[0] not in ends:
            token = self.take()
            if token.isspace():
                continue
            if token in ("^", "_"):
                self._script(token, items)
            else:
                items.append(self.item(token))
        return items[0] if len(items) == 1 else f"<mrow>{''.join(items)}</mrow>"

    def _script(self, token: str, items: list[str]) -> None:
        base = items.pop() if items else "<mrow></mrow>"
        first = self.argument()
        other = {"^": "_", "_": "^"}[token]
        limits = base.startswith('<mo movablelimits="false"')
        if self.tokens and self.tokens[0] == other:
            self.take()
            second = self.argument()
            below, above = (first, second) if token == "_" else (second, first)
            tag = "munderover" if limits else "msubsup"
            items.append(f"<{tag}>{base}{below}{above}</{tag}>")
            return
        tag = {"^": "mover" if limits else "msup", "_": "munder" if limits else "msub"}[token]
        items.append(f"<{tag}>{base}{first}</{tag}>")

    def argument(self) -> str:
        """A group in braces, else one item."""
        token = self.take()
        while token.isspace():
            token = self.take()
        if token != "{":
            return self.item(token)
        inside = self.row(("}",))
        self.take()
        return inside

    def words(self) -> str:
        """The text of a group in braces, with formulas inside it converted."""
        if self.take() != "{":
            raise ValueError("a text without braces")
        out, text = [], ""
        while (token := self.take()) != "}":
            if token == "$":
                out.append(_text(text))
                text = ""
                out.append(self.row(("$",)))
                self.take()
            elif token == "\\texttt":
                text += self._plain()
            else:
                text += token[1:] if token.startswith("\\") and len(token) == 2 else token
        return "".join([*out, _text(text)])

    def _plain(self) -> str:
        self.take()
        text = ""
        while (token := self.take()) != "}":
            text += token.removeprefix("\\")
        return text

    def item(self, token: str) -> str:
        """One element."""
        if token == "{":
            inside = self.row(("}",))
            self.take()
            return '<mo separator="false">,</mo>' if inside == "<mo>,</mo>" else inside  # {,} separates thousands
        if token == "\\frac":
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if token == "\\left":
            left = self._fence(self.take())
            inside = self.row(("\\right",))
            self.take()
            return f"<mrow>{left}{inside}{self._fence(self.take())}</mrow>"
        if token in ("\\text", "\\mathrm"):
            inside = self.words()
            upright = inside.replace("<mtext>", '<mi mathvariant="normal">').replace("</mtext>", "</mi>")
            return inside if token == "\\text" else upright
        if token == "\\mathtt":
            return _text(self._plain())
        if token == "\\begin":
            return self._cases()
        if token == "\\sum":
            return '<mo movablelimits="false">∑</mo>'
        if token in _LETTERS:
            return f"<mi>{_LETTERS[token]}</mi>"
        if token in _OPERATORS:
            return f"<mo>{_OPERATORS[token]}</mo>"
        if token in _SPACES:
            return f'<mspace width="{_SPACES[token]}"></mspace>'
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in _FENCES:
            return f"<mo>{_FENCES[token]}</mo>"
        if token in _LITERAL or token == "\\%":
            return f"<mo>{html.escape(token[-1])}</mo>"
        if token in "?.":
            return f"<mtext>{token}</mtext>"
        raise ValueError(f"unknown LaTeX: {token}")

    def _fence(self, token: str) -> str:
        if token not in _FENCES:
            raise ValueError(f"unknown fence: {token}")
        return f'<mo fence="true">{_FENCES[token]}</mo>' if _FENCES[token] else ""

    def _cases(self) -> str:
        if self.words() != "<mtext>cases</mtext>":
            raise ValueError("an unknown environment")
        rows: list[list[str]] = [[]]
        while True:
            rows[-1].append(self.row(("&", "\\\\", "\\end")))
            end = self.take()
            if end == "\\\\":
                rows.append([])
            elif end == "\\end":
                self.words()
                break
        cells = "".join("<mtr>" + "".join(f"<mtd>{c}</mtd>" for c in row) + "</mtr>" for row in rows)
        return f'<mrow><mo fence="true" stretchy="true">{{</mo><mtable>{cells}</mtable></mrow>'


def _text(words: str) -> str:
    if not words:
        return ""
    kept = re.sub(r"^ | $", "\u00a0", words)
    return f"<mtext>{html.escape(kept)}</mtext>"
