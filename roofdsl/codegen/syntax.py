"""What a target language must be able to express; the emitter decides how the loops are laid out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from roofdsl.codegen.computed_types import REDUCED, Computed, component, computed, is_complex
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.functions import FUNCTIONS, Language, Spelling, Spellings, spelled
from roofdsl.lang.types import ElementType
from roofdsl.loops.model import Array

# how tightly the outermost operator of a text binds
CHOICE, OR, AND, COMPARE, SUM, PRODUCT, UNARY, ATOM = range(8)


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


class Text(NamedTuple):
    """An expression and how tightly its outermost operator binds."""

    text: str
    binds: int = ATOM

    def at(self, least: int) -> str:
        """The text, in parentheses if its operator binds less tightly than `least`."""
        return self.text if self.binds >= least else f"({self.text})"


@dataclass
class Lines:
    """Source text built line by line, with indented blocks."""

    lines: list[str] = field(default_factory=list)
    depth: int = 0

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text if text else "")


class Syntax(ABC):
    """A target language: how expressions, loops and declarations are written.

    `helpers` collects the names of functions that the text calls and that must be defined before it.
    """

    name: ClassVar[str]
    """The language's name in `emit --to`."""

    functions: ClassVar[Mapping[str, Spellings]] = {}
    """The language's own spellings of functions."""

    language: ClassVar[Language | None] = None
    """The language whose spellings in `roofdsl.lang.functions` serve for all other functions; None if there is none."""

    takes_many: ClassVar[bool] = False
    """Whether `min` and `max` take more than two arguments."""

    comment: ClassVar[str] = "//"
    empty: ClassVar[str] = ""
    """The statement required in an otherwise empty block."""

    scoped: ClassVar[bool] = True
    """Whether a variable declared in a block is unknown outside it."""

    reserved: ClassVar[frozenset[str]] = frozenset()
    integer_type: ClassVar[str] = ""
    logic: ClassVar[dict[str, str]] = {"and": "&&", "or": "||"}

    def __init__(self) -> None:
        self.helpers: dict[str, None] = {}

    def is_reserved(self, word: str) -> bool:
        """Whether a word must not be declared in this language, or has a meaning in the generated text."""
        return word in self.reserved

    def helper(self, name: str) -> str:
        """Record that a helper is needed, and return its name."""
        self.helpers[name] = None
        return name

    # ---- integers ----

    @abstractmethod
    def floor_div(self, a: Text, b: Text) -> Text: ...

    @abstractmethod
    def mod(self, a: Text, b: Text) -> Text: ...

    @abstractmethod
    def extremum(self, function: str, terms: Sequence[Text]) -> Text:
        """`min` or `max` of integers."""

    @abstractmethod
    def negation(self, condition: Text) -> Text: ...

    # ---- values ----

    def atomic(self, place: Text, op: str, value: Text, array: Array) -> str:
        """An update of an element that other threads update at the same time. Raises TypeError if there is none."""
        raise TypeError(f"{self.name} has no atomic updates")

    @abstractmethod
    def literal(self, value: float, kind: Computed) -> Text: ...

    @abstractmethod
    def convert(self, value: Text, source: Computed, to: Computed) -> Text:
        """A value of one computed type converted to another; real to complex, never complex to real."""

    def zero(self, kind: Computed) -> Text:
        """The number 0 in a computed type."""
        real = component(kind)
        return self.convert(self.literal(0, real), real, kind)

    @abstractmethod
    def from_index(self, value: Text, to: Computed) -> Text:
        """An integer expression of loop variables as a value."""

    def call(self, function: str, args: Sequence[Text], kind: Computed) -> Text:
        """A call of a function of the language; the arguments are of type `kind`, complex if the function's argument
        is.
        """
        if len(args) > 2 and not self.takes_many:
            return self.call(function, [args[0], self.call(function, args[1:], kind)], kind)
        spelling = self.spelling(function, kind)
        inner = ", ".join(a.text for a in args)
        if spelling.helper:
            return Text(f"{self.helper(f'{function}_{kind}')}({inner})")
        text = spelling.text.format(
            x=inner,
            operand=args[0].at(UNARY),
            atom=args[0].at(ATOM),
            one=self.literal(1, kind).text,
            f="f" if kind in ("f32", "c64") else "",
            ll="ll" if kind == "i64" else "",
        )
        return Text(text, PRODUCT if spelling.quotient else ATOM)

    def spelling(self, function: str, kind: str) -> Spelling:
        """The spelling of a call on values of type `kind`. Raises CommandError if the language has no spelling of the
        function, KeyError if the function does not take that type.
        """
        own = spelled(self.functions.get(function), kind)
        if own is not None:
            return own
        if self.language is None:
            raise CommandError(f"there is no text in {self.name} for `{function}` of {kind}", "emit another target")
        return FUNCTIONS[function].spelling(self.language, kind)

    @abstractmethod
    def choice(self, condition: Text, a: Text, b: Text) -> Text: ...

    @abstractmethod
    def quotient(self, a: Text, b: Text) -> Text:
        """Integer division, truncated."""

    def division(self, a: Text, b: Text, kind: Computed, by: Computed) -> Text:
        """a / b in the type `kind`; b is of type `by`, which may be real if `kind` is complex."""
        if kind in ("i32", "i64"):
            return self.quotient(a, b)
        return Text(f"{a.at(PRODUCT)} / {b.at(UNARY)}", PRODUCT)

    def divides_in_place(self, kind: Computed) -> bool:
        """Whether `a /= b` does what `division` does."""
        return kind not in ("i32", "i64")

    @abstractmethod
    def element(self, array: Array, name: str, subscripts: Sequence[Text], dims: Sequence[Text]) -> Text: ...

    def widen(self, stored: Text, type_: ElementType) -> Text:
        """A stored element of a reduced type as f32."""
        return Text(f"{self.helper(f'{type_.name}_to_f32')}({stored.text})")

    def narrow(self, value: Text, type_: ElementType) -> Text:
        """An f32 rounded to a reduced type, in its stored form."""
        return Text(f"{self.helper(f'f32_to_{type_.name}')}({value.text})")

    # ---- statements ----

    @abstractmethod
    def open(self, out: Lines, header: str) -> None: ...

    @abstractmethod
    def close(self, out: Lines) -> None: ...

    @abstractmethod
    def otherwise(self, out: Lines) -> None: ...

    def end(self, statement: str) -> str:
        """A statement with its terminator."""
        return statement

    @abstractmethod
    def loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        """Open a serial loop."""

    @abstractmethod
    def condition(self, out: Lines, text: str) -> None:
        """Open an `if`."""

    @abstractmethod
    def declare(self, name: str, kind: Computed, value: Text, constant: bool) -> str:
        """The declaration of a local variable with its initial value."""

    def stored(self, value: Text, kind: Computed, array: Array) -> Text:
        """A value in the form in which it is assigned to an element or scalar in memory."""
        if array.type.name in REDUCED:
            return self.narrow(self.convert(value, kind, "f32"), array.type)
        return self.convert(value, kind, computed(array.type))

    def updates_in_place(self, array: Array, kind: Computed) -> bool:
        """Whether `A[i] += value` is possible with a value of that type."""
        to = computed(array.type)
        return array.type.name not in REDUCED and (kind == to or (is_complex(to) and not is_complex(kind)))


def squarings(exponent: int) -> tuple[list[tuple[str, str]], str]:
    """x**exponent by repeated squaring (docs/rules.md, rule 3): (name, value) lines and the result."""
    lines: list[tuple[str, str]] = []
    result = ""
    square, power = "x", 1
    while True:
        if exponent & power:
            result = f"{result} * {square}" if result else square
        if power * 2 > exponent:
            return lines, result
        lines.append((f"x{power * 2}", f"{square} * {square}"))
        square, power = f"x{power * 2}", power * 2
