"""What names mean inside one kernel or program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from roofdsl.lang.findings import Report, did_you_mean
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span
from roofdsl.lang.tree import Name
from roofdsl.lang.types import ElementType

SymbolKind = Literal["parameter", "const", "array", "scalar", "loop", "let"]
_WORDS: dict[SymbolKind, str] = {
    "parameter": "a parameter",
    "const": "a parameter",
    "array": "an array",
    "scalar": "a scalar",
    "loop": "a loop variable",
    "let": "a name given by `let`",
}


class Symbol(Record):
    """The meaning of a name; `type` is None for integers, and for a `let` of plain numbers."""

    name: str
    kind: SymbolKind
    span: Span
    type: ElementType | None = None
    rank: int = 0
    intent: str = ""
    index: bool = False
    """Whether subscripts and loop bounds can read it: declared with `index(...)`, or assumed to rise."""

    @property
    def word(self) -> str:
        """What kind of name it is, in words."""
        return _WORDS[self.kind]

    @property
    def is_integer(self) -> bool:
        """Whether it may occur in bounds and subscripts."""
        return self.kind in ("parameter", "const", "loop")


class Scope:
    """The names known at a place; loop variables and `let`s are removed when their block ends."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.symbols: dict[str, Symbol] = {}
        self.gone: dict[str, Symbol] = {}  # known elsewhere in the kernel
        self.indexed: set[str] = set()  # arrays that subscripts and bounds read
        self._unknown: set[str] = set()

    def define(self, symbol: Symbol) -> None:
        """Makes a name known, unless it is already in use, which is an error."""
        other = self.symbols.get(symbol.name)
        if symbol.name in FUNCTIONS or symbol.name == "range":
            message = f"`{symbol.name}` is a function of the language and cannot be a name"
            self.report.error("name-function", message, symbol.span, "choose another name")
            self._unknown.add(symbol.name)  # nobody is told to define the name after all
        elif other is None:
            self.symbols[symbol.name] = symbol
        elif symbol.kind in ("loop", "let"):
            what = "loop variable" if symbol.kind == "loop" else "`let`"
            message = f"this {what} hides `{symbol.name}`, {other.word} of line {other.span.line}"
            self.report.error("name-hidden", message, symbol.span, "choose another name")
        else:
            message = f"`{symbol.name}` is already {other.word} (line {other.span.line})"
            self.report.error("name-twice", message, symbol.span, "choose another name")

    @contextmanager
    def block(self) -> Iterator[None]:
        """Names defined inside are forgotten at the end."""
        before = dict(self.symbols)
        yield
        for name, symbol in self.symbols.items():
            if name not in before:
                self.gone[name] = symbol
        self.symbols = before

    def find(self, name: Name, otherwise: str = "", kinds: Sequence[SymbolKind] = ()) -> Symbol | None:
        """The meaning of a name; reports an unknown one, once in each kernel, with what may be meant.

        kinds: what could stand here, and is therefore suggested; everything if none is given.
        """
        symbol = self.symbols.get(name.text)
        if symbol is not None:
            return symbol
        if name.text in self._unknown:
            return None
        self._unknown.add(name.text)
        gone = self.gone.get(name.text)
        if gone is not None:
            message = f"`{name.text}` is not visible here"
            help = f"it is {gone.word} of line {gone.span.line}, visible only inside its block"
        else:
            message = f"`{name.text}` is not defined"
            fitting = [s.name for s in self.symbols.values() if not kinds or s.kind in kinds]
            help = did_you_mean(name.text, fitting, otherwise)
        self.report.error("name-unknown", message, name.span, help)
        return None


def tile_name(var: str, taken: set[str] | frozenset[str]) -> str:
    """The name of the loop over the tiles of loop `var`: `ii` for `i`, or the next longer one that is free."""
    name = var * 2
    while name in taken:
        name += var
    return name
