"""What C and CUDA share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from roofdsl.codegen.compute import Computed
from roofdsl.codegen.reserved import is_reserved
from roofdsl.codegen.syntax import CHOICE, PRODUCT, SUM, UNARY, Lines, Syntax, Text
from roofdsl.lang.types import ElementType
from roofdsl.loops.model import Array


class CLike(Syntax):
    """C and CUDA."""

    names: ClassVar[dict[str, str]] = {}
    """Computed types as they are written."""

    storage: ClassVar[dict[str, str]] = {}
    """Element types as they lie in memory."""

    def is_reserved(self, word: str) -> bool:
        return super().is_reserved(word) or is_reserved(word)

    def floor_div(self, a: Text, b: Text) -> Text:
        return Text(f"{self.helper('floor_div')}({a.text}, {b.text})")

    def mod(self, a: Text, b: Text) -> Text:
        return Text(f"{self.helper('floor_mod')}({a.text}, {b.text})")

    def extremum(self, function: str, terms: Sequence[Text]) -> Text:
        result = terms[-1].text
        for term in reversed(terms[:-1]):
            result = f"{self.helper(f'{function}_index')}({term.text}, {result})"
        return Text(result)

    def negation(self, condition: Text) -> Text:
        return Text(f"!({condition.text})", UNARY)

    def literal(self, value: float, kind: Computed) -> Text:
        if kind in ("i32", "i64"):
            text = str(int(value))
            text += "LL" if abs(int(value)) >= 2**31 else ""
        else:
            text = repr(float(value)) + ("f" if kind in ("f32", "c64") else "")
        return Text(text, UNARY if text.startswith("-") else 7)

    def convert(self, value: Text, source: Computed, to: Computed) -> Text:
        return value if source == to else Text(f"({self.names[to]}){value.at(UNARY)}", UNARY)

    def from_index(self, value: Text, to: Computed) -> Text:
        return Text(f"({self.names[to]}){value.at(UNARY)}", UNARY)

    def choice(self, condition: Text, a: Text, b: Text) -> Text:
        return Text(f"{condition.at(SUM)} ? {a.at(SUM)} : {b.at(SUM)}", CHOICE)

    def quotient(self, a: Text, b: Text) -> Text:
        return Text(f"{a.at(PRODUCT)} / {b.at(UNARY)}", PRODUCT)

    def element(self, array: Array, name: str, subscripts: Sequence[Text], dims: Sequence[Text]) -> Text:
        """Row-major offsets by Horner's rule: `A[(i * m + j) * p + k]`."""
        pairs = list(zip(subscripts, dims, strict=True))
        if array.column_major:
            pairs.reverse()
        offset = pairs[0][0]
        for subscript, dim in pairs[1:]:
            offset = Text(f"{offset.at(PRODUCT)} * {dim.at(UNARY)} + {subscript.at(SUM)}", SUM)
        return Text(f"{name}[{offset.text}]")

    # ---- statements ----

    def open(self, out: Lines, header: str) -> None:
        out.add(f"{header} {{".lstrip())
        out.depth += 1

    def close(self, out: Lines) -> None:
        out.depth -= 1
        out.add("}")

    def otherwise(self, out: Lines) -> None:
        out.depth -= 1
        out.add("} else {")
        out.depth += 1

    def end(self, statement: str) -> str:
        return statement + ";"

    def loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        advance = f"++{var}" if step.text == "1" else f"{var} += {step.text}"
        self.open(out, f"for ({self.integer_type} {var} = {start.text}; {var} < {stop.at(SUM)}; {advance})")

    def condition(self, out: Lines, text: str) -> None:
        self.open(out, f"if ({text})")

    def declare(self, name: str, kind: Computed, value: Text, constant: bool) -> str:
        return self.end(f"{'const ' if constant else ''}{self.names[kind]} {name} = {value.text}")

    @abstractmethod
    def pointer(self, type_: ElementType, name: str, written: bool) -> str:
        """The declaration of an array argument."""
