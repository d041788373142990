"""Python as a target: one function that numba compiles, arrays of n dimensions."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import ClassVar

from roofdsl.codegen.compute import Computed
from roofdsl.codegen.syntax import CHOICE, PRODUCT, SUM, UNARY, Lines, Syntax, Text, words
from roofdsl.lang.functions import Target
from roofdsl.loops.model import Array

_KINDS = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "c128": "complex128", "c64": "complex64"}


class PythonSyntax(Syntax):
    """Python for numba."""

    target: ClassVar[Target] = "python"
    takes_many: ClassVar[bool] = True
    comment: ClassVar[str] = "#"
    reserved: ClassVar[frozenset[str]] = frozenset(keyword.kwlist) | words(
        "math np numba njit prange range min max abs complex float int bool str list dict set len print type object "
        "exec eval match case FASTMATH"
    )
    logic: ClassVar[dict[str, str]] = {"and": "and", "or": "or"}

    def floor_div(self, a: Text, b: Text) -> Text:
        return Text(f"{a.at(PRODUCT)} // {b.at(UNARY)}", PRODUCT)

    def mod(self, a: Text, b: Text) -> Text:
        return Text(f"{a.at(PRODUCT)} % {b.at(UNARY)}", PRODUCT)

    def extremum(self, function: str, terms: Sequence[Text]) -> Text:
        return Text(f"{function}({', '.join(t.text for t in terms)})")

    def negation(self, condition: Text) -> Text:
        return Text(f"not ({condition.text})", 3)

    def literal(self, value: float, kind: Computed) -> Text:
        if kind in ("i32", "i64"):
            text = str(int(value))
            return Text(text, UNARY if text.startswith("-") else 7)
        text = repr(float(value))
        if kind in ("f32", "c64"):
            return Text(f"np.float32({text})")
        return Text(text, UNARY if text.startswith("-") else 7)

    def convert(self, value: Text, source: Computed, to: Computed) -> Text:
        return value if source == to else Text(f"np.{_KINDS[to]}({value.text})")

    def from_index(self, value: Text, to: Computed) -> Text:
        return value if to == "i64" else Text(f"np.{_KINDS[to]}({value.text})")

    def choice(self, condition: Text, a: Text, b: Text) -> Text:
        return Text(f"{a.at(SUM)} if {condition.at(SUM)} else {b.at(SUM)}", CHOICE)

    def quotient(self, a: Text, b: Text) -> Text:
        return Text(f"{self.helper('quotient')}({a.text}, {b.text})")

    def element(self, array: Array, name: str, subscripts: Sequence[Text], dims: Sequence[Text]) -> Text:
        return Text(f"{name}[{', '.join(s.text for s in subscripts)}]")

    # ---- statements ----

    def open(self, out: Lines, header: str) -> None:
        out.add(f"{header}:")
        out.depth += 1

    def close(self, out: Lines) -> None:
        out.depth -= 1

    def otherwise(self, out: Lines) -> None:
        out.depth -= 1
        out.add("else:")
        out.depth += 1

    def loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        self.open(out, f"for {var} in range({_range(start, stop, step)})")

    def parallel_loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        if step.text == "1":
            self.open(out, f"for {var} in prange({_range(start, stop, step)})")
            return
        # numba's prange has steps of 1 only
        extent = stop if start.text == "0" else Text(f"{stop.at(SUM)} - {start.at(PRODUCT)}", SUM)
        self.open(out, f"for {var}_trip in prange(-(-{extent.at(UNARY)} // {step.at(UNARY)}))")
        out.add(f"{var} = {'' if start.text == '0' else start.at(SUM) + ' + '}{var}_trip * {step.at(UNARY)}")

    def condition(self, out: Lines, text: str) -> None:
        self.open(out, f"if {text}")

    def declare(self, name: str, kind: Computed, value: Text, constant: bool) -> str:
        return f"{name} = {value.text}"


def _range(start: Text, stop: Text, step: Text) -> str:
    parts = [start.text] if start.text != "0" or step.text != "1" else []
    return ", ".join([*parts, stop.text, *([step.text] if step.text != "1" else [])])
