"""Python as a target: one function that numba compiles, with multi-dimensional arrays."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import ClassVar

from roofdsl.codegen.computed_types import REDUCED, Computed
from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.function_parts import arguments, described, heading, load_scalars, store_scalars
from roofdsl.codegen.syntax import CHOICE, PRODUCT, SUM, UNARY, Lines, Text, squarings, words
from roofdsl.codegen.target import OneFunction
from roofdsl.lang.functions import Language
from roofdsl.loops.model import Array, Kernel

_KINDS = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "c128": "complex128", "c64": "complex64"}


class Python(OneFunction):
    """Python for numba."""

    name: ClassVar[str] = "python"
    language: ClassVar[Language] = "python"
    takes_many: ClassVar[bool] = True
    comment: ClassVar[str] = "#"
    empty: ClassVar[str] = "pass"
    scoped: ClassVar[bool] = False
    reserved: ClassVar[frozenset[str]] = frozenset(keyword.kwlist) | words(
        "math np numba njit prange range min max abs complex float int bool str list dict set len print type object "
        "exec eval match case FASTMATH index"
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
        return Text(f"{name}[{', '.join(map(self._index, subscripts))}]")

    def _index(self, subscript: Text) -> str:
        """A subscript, converted to unsigned unless it is obviously not negative; `_INDEX` says why."""
        text = subscript.text
        return text if text.isdecimal() or text in self._from_zero else f"index({text})"

    # ---- statements ----

    def __init__(self) -> None:
        super().__init__()
        self._from_zero: set[str] = set()  # loop variables with the values 0, 1, 2, ...

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
        self._note(var, start, step)
        self.open(out, f"for {var} in range({_range(start, stop, step)})")

    def parallel_loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        self._note(var, start, step)
        if step.text == "1":
            self.open(out, f"for {var} in prange({_range(start, stop, step)})")
            return
        # numba's prange only supports steps of 1
        extent = stop if start.text == "0" else Text(f"{stop.at(SUM)} - {start.at(PRODUCT)}", SUM)
        self.open(out, f"for {var}_trip in prange(-(-{extent.at(UNARY)} // {step.at(UNARY)}))")
        out.add(f"{var} = {'' if start.text == '0' else start.at(SUM) + ' + '}{var}_trip * {step.at(UNARY)}")

    def _note(self, var: str, start: Text, step: Text) -> None:
        (self._from_zero.add if (start.text, step.text) == ("0", "1") else self._from_zero.discard)(var)

    def condition(self, out: Lines, text: str) -> None:
        self.open(out, f"if {text}")

    def declare(self, name: str, kind: Computed, value: Text, constant: bool) -> str:
        return f"{name} = {value.text}"

    # ---- the whole text ----

    def source(self, kernel: Kernel, emitter: Emitter, function: str, variant: str) -> str:
        out = emitter.out
        names = []
        for a in arguments(kernel):
            names.append(f"{a.name}_out" if a.role == "scalar_out" else emitter.name(a.name))
        self.open(out, f"def {function}({', '.join(names)})")
        for array in kernel.arrays:
            out.add(f"# {described(array)}")
        for array in kernel.arrays:
            if array.is_scalar and array.intent == "in" and array.type.name in REDUCED:
                out.add(f"{emitter.name(array.name)} = np.float32({emitter.name(array.name)})")
        load_scalars(kernel, emitter, "{}[0]")
        emitter.block(kernel.body)
        store_scalars(kernel, emitter, "{}[0]")
        body, definitions = "\n".join(out.lines), self.definitions()
        imports = ["import math", ""] if any("math." in text for text in (body, *definitions)) else []
        imports += ["import numpy as np"] if "np." in body or definitions else []
        imports.append(f"from numba import njit{', prange' if variant == 'parallel' else ''}")
        imports += [_INDEX] if "index(" in body else []
        helpers = [f'@njit(error_model="numpy")\n{h}\n\n' for h in definitions]
        options = 'error_model="numpy"'
        if self.math == "relaxed":
            options += ', fastmath={"contract", "reassoc", "nsz"}'
        decorator = f"@njit({options}{', parallel=True' if variant == 'parallel' else ''}, nogil=True)"
        head = heading(kernel, self, f"Python for numba, variant {variant}")
        return "\n".join([*head, *imports, "", "", *helpers, decorator, body]) + "\n"

    def definitions(self) -> list[str]:
        """Definitions, without decorators, of the helpers that the text calls."""
        texts = []
        for name in self.helpers:
            base, _, kind = name.rpartition("_")
            if name in _HELPERS:
                texts.append(_HELPERS[name])
            elif base.startswith("power"):
                lines, result = squarings(int(base[5:]))
                body = "".join(f"    {n} = {v}\n" for n, v in lines)
                texts.append(f"def {name}(x):\n{body}    return {result}")
            else:
                one = "np.float32(1)" if kind == "f32" else "1.0"
                body = self.spelling(base, kind).text.format(one=one, x="x", a="a", b="b")
                texts.append(f"def {name}(x):\n    return {body}")
        return texts


TARGET = Python

_INDEX = "from numpy import uint64 as index  # numba does not test unsigned indices for negative ones"
"""A test for negative indices, as in `a[i - 3]`, prevents vectorization of a loop, or turns its loads into gathers."""


def _range(start: Text, stop: Text, step: Text) -> str:
    parts = [start.text] if start.text != "0" or step.text != "1" else []
    return ", ".join([*parts, stop.text, *([step.text] if step.text != "1" else [])])


_HELPERS: dict[str, str] = {
    "quotient": """def quotient(a, b):  # truncated, as in C
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q""",
    "bf16_to_f32": """def bf16_to_f32(h):
    return np.uint32(np.uint32(h) << np.uint32(16)).view(np.float32)""",
    "f32_to_bf16": """def f32_to_bf16(x):  # to nearest, ties to even
    bits = np.float32(x).view(np.uint32)
    if x != x:
        return np.uint16(np.uint32(bits >> np.uint32(16)) | np.uint32(64))
    odd = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))""",
    "f16_to_f32": """def f16_to_f32(h):
    sign = np.uint32(np.uint32(h & np.uint16(0x8000)) << np.uint32(16))
    rest = np.uint32(np.uint32(h & np.uint16(0x7FFF)) << np.uint32(13))
    if rest >= np.uint32(0x0F800000):  # infinite or no number
        return np.uint32(sign | np.uint32(0x70000000) | rest).view(np.float32)
    scaled = np.float32(np.uint32(rest).view(np.float32) * np.float32(2.0**112))
    return np.uint32(sign | scaled.view(np.uint32)).view(np.float32)""",
    "f32_to_f16": """def f32_to_f16(x):  # to nearest, ties to even
    bits = np.float32(x).view(np.uint32)
    sign = np.uint32((bits >> np.uint32(16)) & np.uint32(0x8000))
    rest = np.uint32(bits & np.uint32(0x7FFFFFFF))
    if rest > np.uint32(0x7F800000):
        return np.uint16(sign | np.uint32(0x7E00))
    if rest >= np.uint32(0x47800000):
        return np.uint16(sign | np.uint32(0x7C00))
    if rest < np.uint32(0x38800000):
        small = np.float32(np.uint32(rest).view(np.float32) + np.float32(0.5))
        return np.uint16(sign | np.uint32(small.view(np.uint32) - np.uint32(0x3F000000)))
    odd = np.uint32((rest >> np.uint32(13)) & np.uint32(1))
    scaled = np.uint32(rest - np.uint32(0x38000000) + np.uint32(0xFFF) + odd)
    return np.uint16(sign | np.uint32(scaled >> np.uint32(13)))""",
    "f8_to_f32": """def f8_to_f32(h):  # e4m3
    sign = np.uint32(np.uint32(h & np.uint8(0x80)) << np.uint32(24))
    rest = np.uint32(np.uint32(h & np.uint8(0x7F)) << np.uint32(20))
    if rest == np.uint32(0x07F00000):
        return np.float32(np.nan)
    scaled = np.float32(np.uint32(rest).view(np.float32) * np.float32(2.0**120))
    return np.uint32(sign | scaled.view(np.uint32)).view(np.float32)""",
    "f32_to_f8": """def f32_to_f8(x):  # e4m3, to nearest, ties to even, at most 448
    bits = np.float32(x).view(np.uint32)
    sign = np.uint32((bits >> np.uint32(24)) & np.uint32(0x80))
    rest = np.uint32(bits & np.uint32(0x7FFFFFFF))
    if rest > np.uint32(0x7F800000):
        return np.uint8(sign | np.uint32(0x7F))
    if rest >= np.uint32(0x43E00000):
        return np.uint8(sign | np.uint32(0x7E))
    if rest < np.uint32(0x3C800000):
        small = np.float32(np.uint32(rest).view(np.float32) + np.float32(16384.0))
        return np.uint8(sign | np.uint32(small.view(np.uint32) - np.uint32(0x46800000)))
    odd = np.uint32((rest >> np.uint32(20)) & np.uint32(1))
    scaled = np.uint32(rest - np.uint32(0x3C000000) + np.uint32(0x7FFFF) + odd)
    return np.uint8(sign | np.uint32(scaled >> np.uint32(20)))""",
}
