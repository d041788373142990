"""The small language of answers: arithmetic on names and numbers, parsed within limits and never evaluated as code.

A student's answer, a right answer and a mistake are all formulas of this language. Operators `+ - * / // **` as in
Python, parentheses, the functions in FUNCTIONS, names that the caller allows, and, where a number is asked for, units
after numbers (`900 GB/s`). Conditions (`Q_a < Q_b and n >= 2`) are for exercises only.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction

from roofdsl.classroom.answer_units import unit_named
from roofdsl.classroom.formula_errors import FormulaError, UnknownNameError
from roofdsl.lang.record import Record, field

FUNCTIONS = {"sqrt": (1, 1), "log2": (1, 1), "min": (2, 8), "max": (2, 8), "floor": (1, 1), "ceil": (1, 1)}
"""The functions of the language, with their minimum and maximum numbers of arguments."""

MAX_LENGTH = 500
MAX_DEPTH = 40
MAX_DIGITS = 40


class Number(Record):
    """An exact number. unit: empty, a unit of `answer_units` or a quotient of such; written: the number as typed."""

    value: Fraction
    unit: str = ""
    written: str = field(default="", compare=False, repr=False)


class Name(Record):
    """A parameter of the exercise."""

    text: str


class Negative(Record):
    """Unary minus."""

    operand: Node


class Binary(Record):
    """`left op right`; op is one of + - * / // **."""

    op: str
    left: Node
    right: Node


class Call(Record):
    """A function of FUNCTIONS."""

    function: str
    arguments: tuple[Node, ...]


class Comparison(Record):
    """`left op right`; op is one of < <= > >= == !=."""

    op: str
    left: Node
    right: Node


class Logic(Record):
    """Parts joined by `and` or `or`, or one part under `not`."""

    op: str
    parts: tuple[Node, ...]


Node = Number | Name | Negative | Binary | Call | Comparison | Logic

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op>\*\*|//|<=|>=|==|!=|[-+*/(),<>]))",
    re.ASCII,
)
_TYPED = {
    "×": "*",
    "·": "*",
    "−": "-",
    "–": "-",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "²": "**2",
    "³": "**3",
    "\u00a0": " ",
    "µ": "u",
    "μ": "u",
}
_POWERS = {"+": 10, "-": 10, "*": 20, "/": 20, "//": 20}
_COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")


def parse(text: str, names: Collection[str], *, units: bool = False) -> Node:
    """Parses `text` as a formula. Raises FormulaError for other text, unknown names, and text beyond the limits."""
    return Parser(_tokens(text), names, units=units, conditions=False).whole()


def parse_condition(text: str, names: Collection[str]) -> Node:
    """Parses a condition of an exercise, or a formula. Raises FormulaError."""
    return Parser(_tokens(text), names, units=False, conditions=True).whole()


def names_in(node: Node) -> frozenset[str]:
    """The names that a formula mentions."""
    match node:
        case Name(text):
            return frozenset((text,))
        case Negative(operand):
            return names_in(operand)
        case Binary(_, left, right) | Comparison(_, left, right):
            return names_in(left) | names_in(right)
        case Call(_, parts) | Logic(_, parts):
            return frozenset().union(*map(names_in, parts))
    return frozenset()


def functions_in(node: Node) -> frozenset[str]:
    """The functions and the operators `//` and `**` that a formula uses; `**` only if its exponent is not a whole
    number."""
    match node:
        case Negative(operand):
            return functions_in(operand)
        case Binary(op, left, right) | Comparison(op, left, right):
            own: frozenset[str] = frozenset((op,)) if op == "//" or (op == "**" and not _whole(right)) else frozenset()
            return own | functions_in(left) | functions_in(right)
        case Call(function, parts):
            return frozenset((function,)).union(*map(functions_in, parts))
        case Logic(_, parts):
            return frozenset().union(*map(functions_in, parts))
    return frozenset()


def replaced(node: Node, values: dict[str, Node]) -> Node:
    """The formula with names replaced by formulas."""
    match node:
        case Name(text):
            return values.get(text, node)
        case Negative(operand):
            return Negative(replaced(operand, values))
        case Binary(op, left, right):
            return Binary(op, replaced(left, values), replaced(right, values))
        case Comparison(op, left, right):
            return Comparison(op, replaced(left, values), replaced(right, values))
        case Call(function, parts):
            return Call(function, tuple(replaced(p, values) for p in parts))
        case Logic(op, parts):
            return Logic(op, tuple(replaced(p, values) for p in parts))
    return node


def _whole(node: Node) -> bool:
    if isinstance(node, Negative):
        return _whole(node.operand)
    return isinstance(node, Number) and node.value.denominator == 1


# ---- printing ----


def show(node: Node, above: int = 0) -> str:
    """The formula as text, with the necessary parentheses; without units, `parse` gives a formula of the same value."""
    match node:
        case Number(value, unit, written):
            if written:
                return f"{written} {unit}" if unit else written
            if value.denominator == 1 or unit:
                text = str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
                return f"{text} {unit}" if unit else text
            text = f"{value.numerator}/{value.denominator}"
            return f"({text})" if above >= 20 else text
        case Name(text):
            return text
        case Negative(operand):
            text = "-" + show(operand, 21)
            return f"({text})" if above >= 10 else text
        case Binary("*", left, Number(_, unit, "1")) if unit:  # a unit after something
            inner = show(left)
            text = f"{inner} {unit}" if isinstance(left, Number | Name | Call) else f"({inner}) {unit}"
            return f"({text})" if above > 20 else text
        case Binary("**", left, right):
            text = f"{show(left, 31)}**{show(right, 31)}"
            return f"({text})" if above > 30 else text
        case Binary(op, left, right):
            power = _POWERS[op]
            spaced = f" {op} " if power == 10 else op
            text = f"{show(left, power)}{spaced}{show(right, power + 1)}"
            return f"({text})" if above > power else text
        case Call(function, parts):
            return f"{function}({', '.join(show(p) for p in parts)})"
        case Comparison(op, left, right):
            return f"{show(left)} {op} {show(right)}"
        case Logic("not", parts):
            return f"not ({show(parts[0])})"
        case Logic(op, parts):
            return f" {op} ".join(f"({show(p)})" for p in parts)


# ---- parsing ----


class Parser:
    """Recursive descent, no deeper than MAX_DEPTH, over tokens (kind, text)."""

    def __init__(self, tokens: list[tuple[str, str]], names: Collection[str], *, units: bool, conditions: bool) -> None:
        self.names, self.units, self.conditions = names, units, conditions
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def whole(self) -> Node:
        """Parses the whole text. Raises FormulaError."""
        if not self.tokens:
            raise FormulaError("the answer is empty")
        found = self.either() if self.conditions else self.sum()
        kind, text = self.peek()
        if kind:
            if kind in ("name", "number") or text == "(":
                raise FormulaError(f"something is missing before `{_short(text)}`: write products with `*`, as in 2*n")
            if text == ",":
                raise FormulaError("write a decimal point as `.`; thousands may be separated by `_`")
            raise FormulaError(f"`{_short(text)}` is not expected there")
        return found

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self, *texts: str) -> str:
        """Consumes and returns the next token if it is one of `texts`; otherwise returns an empty text."""
        kind, text = self.peek()
        if text in texts and kind != "number":
            self.at += 1
            return text
        return ""

    # ---- conditions ----

    def either(self) -> Node:
        return self.joined("or", lambda: self.joined("and", self.denied))

    def joined(self, word: str, part: object) -> Node:
        assert callable(part)
        parts = [part()]
        while self.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Logic(word, tuple(parts))

    def denied(self) -> Node:
        if self.take("not"):
            return Logic("not", (self.denied(),))
        left = self.sum()
        op = self.take(*_COMPARISONS)
        return Comparison(op, left, self.sum()) if op else left

    # ---- arithmetic ----

    def sum(self) -> Node:
        left = self.product()
        while op := self.take("+", "-"):
            left = Binary(op, left, self.product())
        return left

    def product(self) -> Node:
        left = self.signed()
        while op := self.take("*", "/", "//"):
            left = Binary(op, left, self.signed())
        return left

    def signed(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(f"the formula is nested more than {MAX_DEPTH} deep")
        try:
            if self.take("-"):
                return Negative(self.signed())
            if self.take("+"):
                return self.signed()
            base = self.atom()
            return self.power(base) if self.take("**") else base
        finally:
            self.depth -= 1

    def power(self, base: Node) -> Node:
        return Binary("**", base, self.signed())

    def atom(self) -> Node:
        kind, text = self.peek()
        self.at += 1
        if kind == "number":
            return self.number(text)
        if kind == "name":
            return self.named(text)
        if text == "(":
            inner = self.either() if self.conditions else self.sum()
            if not self.take(")"):
                raise FormulaError("a parenthesis is not closed")
            return inner
        if not kind:
            raise FormulaError("the formula ends where a number or a name is expected")
        raise FormulaError(f"`{text}` is where a number or a name should be")

    def number(self, text: str) -> Node:
        value = number_of(text)
        if not self.units:
            kind, word = self.peek()
            if kind == "name" and word not in self.names and unit_named(word):
                raise FormulaError(f"`{word}` is a unit, but the formula must have no units")
            return Number(value)
        kind, word = self.peek()
        unit = unit_named(word) if kind == "name" and word not in self.names else None
        if unit is None:
            return Number(value)
        self.at += 1
        below = self.tokens[self.at : self.at + 2]
        if len(below) == 2 and below[0][1] == "/" and below[1][0] == "name" and below[1][1] not in self.names:
            second = unit_named(below[1][1])
            if second is not None:
                self.at += 2
                unit = f"{unit}/{second}"
        return Number(value, unit)

    def named(self, text: str) -> Node:
        if text in FUNCTIONS:
            return self.call(text)
        if text in self.names:
            return Name(text)
        if self.peek()[1] == "(":
            raise FormulaError(f"there is no function `{_short(text)}`; there are {', '.join(FUNCTIONS)}")
        if self.units and unit_named(text):
            raise FormulaError(f"the unit `{text}` has no number")
        known = "only numbers are"
        if self.names:
            known = f"{'the names are' if len(self.names) > 1 else 'the only name is'} {', '.join(sorted(self.names))}"
        ends = [k for k in range(1, len(text)) if text[:k] in self.names and unit_named(text[k:])]
        known = f"write `{text[: ends[-1]]} {text[ends[-1] :]}`" if ends else known  # for `nB`
        raise UnknownNameError(f"`{_short(text)}` is not known here; {known}", _short(text))

    def call(self, function: str) -> Node:
        if not self.take("("):
            raise FormulaError(f"`{function}` is a function: write {function}(...)")
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        if not self.take(")"):
            raise FormulaError(f"the parenthesis of `{function}` is not closed")
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise FormulaError(f"`{function}` takes {wanted} values, and {len(arguments)} are given")
        return Call(function, tuple(arguments))


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"the formula has {len(text):,} characters; the limit is {MAX_LENGTH}")
    for typed, meant in _TYPED.items():
        text = text.replace(typed, meant)
    found = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unread(text[at:].lstrip()[0])
        assert match.lastgroup is not None
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _unread(character: str) -> FormulaError:
    if character == "^":
        return FormulaError("write powers as `**`, not `^`: n**2")
    if character == "=":
        return FormulaError("give only the right-hand side, without `=`")
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return FormulaError(f"`{shown}` is not part of a formula")


def number_of(text: str) -> Fraction:
    """The number that a token stands for. Raises FormulaError if it has too many digits."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(text) > MAX_DIGITS or (exponent and abs(int(exponent)) > 100):
        raise FormulaError(f"`{_short(text)}` has more digits than a number here can have")
    plain = mantissa.replace("_", "")
    try:
        return Fraction(f"{plain}e{exponent}" if exponent else plain)
    except ValueError:
        raise FormulaError(f"`{_short(text)}` is not a number") from None


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:30] + "..."
