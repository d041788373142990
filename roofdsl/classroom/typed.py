"""Answers as students type them: the language of `answer_language`, and what people write instead.

`^` is a power, factors side by side are a product, and a unit after a fraction belongs to the whole fraction. A text
that can be read in two ways (`1/2n`, `7 TFLOPS`) has two readings. An answer is right if one of its readings is.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator
from itertools import product

from roofdsl.classroom.answer_language import (
    FUNCTIONS,
    MAX_LENGTH,
    Binary,
    Call,
    Name,
    Negative,
    Node,
    Number,
    Parser,
    number_of,
    show,
)
from roofdsl.classroom.answer_units import PLAIN, Dimension, is_rate, unit_named
from roofdsl.classroom.exact import dimension
from roofdsl.classroom.formula_errors import FormulaError
from roofdsl.classroom.spelling import tokens

_ALIASES = {"ceiling": "ceil", "ld": "log2", "lb": "log2", "log_2": "log2"}
_LONGEST_WORD = 8
_LONGEST_SHOWN = 160


def readings(text: str, names: Collection[str], *, units: bool = False) -> list[Node]:
    """Every formula that a text may stand for, the most likely first. Raises FormulaError if there is none.

    Readings differ in whether `1/2n` is `(1/2)*n` or `1/(2*n)`, and in whether `TFLOPS` means operations or operations
    per second.
    """
    words = tokens(text)
    found: list[Node] = []
    both = (False, True)
    for tight, rate in product(both if names else both[:1], both if units else both[:1]):
        node = _Typed(words, names, units=units, rate=rate, tight=tight).whole()
        if node not in found:
            found.append(node)
    return found


def formulas(text: str, names: Collection[str], kind: Dimension | None) -> list[Node]:
    """The readings of a formula in names, converted to plain units if it has a unit: `8n^2 bytes`, `(8n^2 + 16n) B`.

    kind: the kind of quantity; None if it is not known. Raises FormulaError as `readings` does, and for a unit of
    another kind.
    """
    words = list(_split(tokens(text), names, units=True))  # `nm` is two words, so places are counted after the split
    places = [k for k in range(1, len(words)) if _Typed(words, names, units=True).is_unit(k)]
    if not places:
        return readings(text, names)
    if kind is None:
        raise FormulaError(f"`{words[places[0]][1]}` is a unit, but the formula must have no units")
    found: list[Node] = []
    with contextlib.suppress(FormulaError):
        found += readings(text, names, units=True)
    with contextlib.suppress(FormulaError):
        found += _unit_of_all(words, places[0], names)
    with contextlib.suppress(FormulaError):  # a name in capitals may look like a unit
        found += readings(text, names)
    right = [node for node in found if _kind(node) == kind] or [n for n in found if _kind(n) == PLAIN]
    if not right:
        given = next(filter(None, map(_kind, found)), None)
        what = f"this is {given.words()} ({given.unit()})" if given else "its units do not match"
        raise FormulaError(f"{what}, but the answer is {kind.words()}")
    return right


def _unit_of_all(words: list[tuple[str, str]], at: int, names: Collection[str]) -> list[Node]:
    """The readings of the text before a position, times the unit at that position."""
    unit = _Typed(words[at:], (), units=True).whole()
    return [Binary("*", _Typed(words[:at], names, units=False, tight=tight).whole(), unit) for tight in (False, True)]


def _kind(node: Node) -> Dimension | None:
    try:
        return dimension(node)
    except FormulaError:
        return None


def as_read(text: str, *nodes: Node) -> str:
    """The sentence that tells a student how an answer was read, in one way or in two; without a formula, it quotes the
    answer.
    """
    written = f"You wrote `{_cut(' '.join(text.split()))}`"
    shown = dict.fromkeys(f"`{_cut(show(node))}`" for node in nodes)
    return f"{written}, read as {' or '.join(shown)}." if shown else f"{written}."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


class _Typed(Parser):
    """The parser of `answer_language` with products of factors side by side.

    tight: such a product after `/` is a single divisor. rate: FLOPS is FLOP/s. bare: the next number takes no unit,
    since a unit after it belongs to the whole fraction or power.
    """

    def __init__(
        self,
        words: list[tuple[str, str]],
        names: Collection[str],
        *,
        units: bool,
        rate: bool = False,
        tight: bool = False,
    ) -> None:
        split = list(_split(words, names, units=units))
        if sum(kind != "op" for kind, _ in split) > MAX_LENGTH // 2:  # nnn is three names, ½ two numbers
            raise FormulaError(f"the formula has more than {MAX_LENGTH // 2} names and numbers")
        super().__init__(split, names, units=units, conditions=False)
        self.rate, self.tight = rate, tight
        self.bare = False

    # ---- products ----

    def product(self) -> Node:
        last = left = self.signed()
        while True:
            if op := self.take("*", "/", "//"):
                has_unit = _has_unit(last)
                self.bare = op == "/" and not has_unit
                last = self.signed()
                if op == "/" and has_unit and not _has_unit(last) and self.is_unit(self.at):
                    last = Binary("*", last, self.signed())  # FLOP/(8n + 16) B
                while self.tight and op != "*" and self.beside() and not self.is_unit(self.at):
                    last = Binary("*", last, self.signed())
                left = Binary(op, left, last)
            elif self.beside():
                last = self.signed()
                left = Binary("*", left, last)
            else:
                return left

    def signed(self) -> Node:
        found = super().signed()
        self.bare = False
        return found

    def power(self, base: Node) -> Node:
        self.bare = True  # the unit of 10^12 FLOP/s is not the exponent's
        return super().power(base)

    def beside(self) -> bool:
        """Whether a factor follows without an operator. Numbers do not count: `n2` may mean a power or a product."""
        kind, text = self.peek()
        return kind == "name" or text == "("

    # ---- atoms ----

    def number(self, text: str) -> Node:
        value = number_of(text)
        unit = "" if self.bare else self.unit()
        return Number(value, unit, text.replace("_", ""))

    def unit(self) -> str:
        """The unit that follows, such as `FLOP/B`; empty if none follows, or one with an exponent."""
        if not self.units or not self.is_unit(self.at):
            return ""
        first = self.at
        found = self.unit_at(self.at)
        self.at += 1
        while self.peek()[1] in ("/", "per") and self.is_unit(self.at + 1):
            found += f"/{self.unit_at(self.at + 1)}"
            self.at += 2
        if self.peek()[1] == "**":
            self.at = first
            return ""
        return found

    def is_unit(self, at: int) -> bool:
        kind, word = self.tokens[at] if at < len(self.tokens) else ("", "")
        return kind == "name" and word not in self.names and unit_named(word) is not None

    def unit_at(self, at: int) -> str:
        word = self.tokens[at][1]
        return f"{unit_named(word)}/s" if self.rate and is_rate(word) else str(unit_named(word))

    def named(self, text: str) -> Node:
        if text in self.names:
            return Name(text)
        plain = _ALIASES.get(text.lower(), text.lower())
        if plain in FUNCTIONS or plain in ("pow", "log"):
            return self.function(plain)
        same = [n for n in self.names if n.lower() == text.lower()]
        if len(same) == 1 and not (self.units and unit_named(text)):
            return Name(same[0])
        if self.units and unit_named(text):
            self.at -= 1
            unit = self.unit()
            if not unit:  # the unit has an exponent
                unit = self.unit_at(self.at)
                self.at += 1
            return Number(number_of("1"), unit, "1")
        if re.fullmatch(r"[A-Za-z]+\d+", text) and text.rstrip("0123456789") in self.names:
            name = text.rstrip("0123456789")
            raise FormulaError(
                f"`{text}` is not known: write {name}**{text[len(name) :]}, or {text[len(name) :]}*{name}"
            )
        return super().named(text)

    def function(self, name: str) -> Node:
        """A function applied to its arguments, or to the single factor after it: `sqrt n`."""
        if name in FUNCTIONS and self.peek()[1] != "(":
            if FUNCTIONS[name] != (1, 1) or self.peek()[0] not in ("name", "number"):
                raise FormulaError(f"`{name}` is a function: write {name}(...)")
            return Call(name, (self.atom(),))
        if name in FUNCTIONS:
            return self.call(name)
        with contextlib.suppress(FormulaError):
            match self.call("min"):  # two values, whatever they are for
                case Call(_, (base, exponent)) if name == "pow":
                    return Binary("**", base, exponent)
                case Call(_, (value, Number(base))) if name == "log" and base == 2:
                    return Call("log2", (value,))
        raise FormulaError("write logarithms as log2(...)" if name == "log" else "write powers as n**2")


def _has_unit(node: Node) -> bool:
    match node:
        case Number(_, unit):
            return bool(unit)
        case Negative(operand):
            return _has_unit(operand)
        case Binary(_, left, right):
            return _has_unit(left) or _has_unit(right)
    return False


# ---- words ----


def _split(words: list[tuple[str, str]], names: Collection[str], *, units: bool) -> Iterator[tuple[str, str]]:
    """The tokens, with `x` between factors as `*`, `per` as `/`, and words such as `nm` split into names."""
    for k, (kind, word) in enumerate(words):
        if kind != "name" or _is_known(word, names, units=units):
            yield kind, word
        elif 0 < k < len(words) - (word in "xX") and words[k - 1][0] != "op" and re.fullmatch(r"[xX]\d*", word):
            yield "op", "*"
            if word[1:]:
                yield "number", word[1:]
        elif word == "per":
            yield "op", "/"
        else:
            found = _made_of(word, names) or _made_of(word.lower(), names) if len(word) <= _LONGEST_WORD else []
            if len(found) == 1:
                yield from (("name", name) for name in found[0])
            else:
                yield kind, word


def _is_known(word: str, names: Collection[str], *, units: bool) -> bool:
    plain = word.lower()
    known = plain in FUNCTIONS or plain in _ALIASES or plain in ("pow", "log")
    return known or any(n.lower() == plain for n in names) or (units and unit_named(word) is not None)


def _made_of(word: str, names: Collection[str]) -> list[list[str]]:
    """All ways to compose a word of names."""
    if not word:
        return [[]]
    found: list[list[str]] = []
    for name in names:
        if word.startswith(name):
            found += [[name, *rest] for rest in _made_of(word[len(name) :], names)]
    return found
