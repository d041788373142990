"""Python as a target: one function that numba compiles, with multi-dimensional arrays."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import ClassVar

from roofdsl.codegen.computed_types import REDUCED, Computed, is_complex
from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.function_parts import arguments, described, heading, load_scalars, store_scalars
from roofdsl.codegen.python_functions import FUNCTIONS, NUMBA, definition, imports, with_needed
from roofdsl.codegen.syntax import CHOICE, PRODUCT, SUM, UNARY, Lines, Text, squarings, words
from roofdsl.codegen.target import OneFunction, Own
from roofdsl.lang.functions import Language, Spelling, Spellings
from roofdsl.loops.model import Array, Kernel

_KINDS = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "c128": "complex128", "c64": "complex64"}


class Python(OneFunction):
    """Python for numba."""

    name: ClassVar[str] = "python"
    language: ClassVar[Language] = "python"
    functions: ClassVar[Mapping[str, Spellings]] = {"abs": {"complex": Spelling("", helper=True)}}
    takes_many: ClassVar[bool] = True
    comment: ClassVar[str] = "#"
    empty: ClassVar[str] = "pass"
    scoped: ClassVar[bool] = False
    reserved: ClassVar[frozenset[str]] = frozenset(keyword.kwlist) | words(
        "math np numba njit prange range min max abs complex float int bool str list dict set len print type object "
        "exec eval match case FASTMATH index ir types intrinsic converts_f16 f16_bits_to_f32 f32_to_f16_bits "
        "f8_value f8_values"
    )
    logic: ClassVar[dict[str, str]] = {"and": "and", "or": "or"}

    def floor_div(self, a: Text, b: Text) -> Text:
        return Text(f"{_numerator(a)} // {b.at(UNARY)}", PRODUCT)

    def mod(self, a: Text, b: Text) -> Text:
        return Text(f"{_numerator(a)} % {b.at(UNARY)}", PRODUCT)

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

    def division(self, a: Text, b: Text, kind: Computed, by: Computed) -> Text:
        if not is_complex(kind):
            return super().division(a, b, kind, by)
        # numba's own quotient branches on its operands, and raises an error where the divisor is 0
        return Text(
            f"{self.helper(f'quotient_{kind}' if is_complex(by) else f'real_quotient_{kind}')}({a.text}, {b.text})"
        )

    def divides_in_place(self, kind: Computed) -> bool:
        return super().divides_in_place(kind) and not is_complex(kind)

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
        if step.text.isdecimal():
            self.open(out, f"for {var} in range({_range(start, stop, step)})")
        else:  # numba's range tests whether a variable step is 0, and counts references to arrays where it raises
            self._trips(out, "range", var, (start, stop, step))

    def parallel_loop(  # noqa: PLR0917
        self, own: Sequence[Own], out: Lines, var: str, start: Text, stop: Text, step: Text
    ) -> None:
        self._note(var, start, step)
        if step.text == "1":
            self.open(out, f"for {var} in prange({_range(start, stop, step)})")
        else:  # numba's prange only supports steps of 1
            self._trips(out, "prange", var, (start, stop, step))
        for variable in own:  # else numba takes it for a reduction, where a loop before its use may have no iterations
            text = self.declare(variable.name, variable.type, self.zero(variable.type), constant=False)
            out.add(f"{text}  # each iteration has its own")

    def _trips(self, out: Lines, loop: str, var: str, bounds: tuple[Text, Text, Text]) -> None:
        """A loop that counts its iterations, and a line that computes its variable from their number."""
        start, stop, step = bounds
        extent = stop if start.text == "0" else Text(f"{stop.at(SUM)} - {start.at(PRODUCT)}", SUM)
        self.open(out, f"for {var}_trip in {loop}(-(-{extent.at(UNARY)} // {step.at(UNARY)}))")
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
        for array in emitter.held:
            out.add(f"{array.name} = np.empty({array.dims[0]}, np.{_KINDS[array.type.name]})")
        emitter.block(kernel.body)
        store_scalars(kernel, emitter, "{}[0]")
        body, helpers = "\n".join(out.lines), self.definitions()
        used = "\n".join((body, *helpers))
        found = ["import math", ""] if "math." in used else []
        found += ["import numpy as np"] if "np." in body or helpers else []
        found += imports(used, prange=variant == "parallel")
        found += [_INDEX] if "index(" in body else []
        options = 'error_model="numpy"'
        if self.math == "relaxed":
            options += ', fastmath={"contract", "reassoc", "nsz"}'
        decorator = f"@njit({options}{', parallel=True' if variant == 'parallel' else ''}, nogil=True)"
        head = heading(kernel, self, f"Python for numba, variant {variant}")
        return "\n".join([*head, *found, "", "", *(f"{h}\n\n" for h in helpers), decorator, body]) + "\n"

    def definitions(self) -> list[str]:
        """Definitions of the helpers that the text calls."""
        texts = []
        for name in with_needed(list(self.helpers)):
            if name in FUNCTIONS:
                texts.append(definition(name))
                continue
            base, _, kind = name.rpartition("_")
            if base.startswith("power"):
                lines, result = squarings(int(base[5:]))
                body = "".join(f"    {n} = {v}\n" for n, v in lines)
                texts.append(f"{NUMBA}def {name}(x):\n{body}    return {result}")
            else:
                one = "np.float32(1)" if kind == "f32" else "1.0"
                body = self.spelling(base, kind).text.format(one=one, x="x", a="a", b="b")
                texts.append(f"{NUMBA}def {name}(x):\n    return {body}")
        return texts


TARGET = Python

_INDEX = "from numpy import uint64 as index  # numba does not test unsigned indices for negative ones"
"""A test for negative indices, as in `a[i - 3]`, prevents vectorization of a loop, or turns its loads into gathers."""


def _numerator(a: Text) -> str:
    """What `//` or `%` follows. `-i // 2` after a plus must not become ` - i // 2`, which rounds up."""
    return f"({a.text})" if a.text.startswith("-") else a.at(PRODUCT)


def _range(start: Text, stop: Text, step: Text) -> str:
    parts = [start.text] if start.text != "0" or step.text != "1" else []
    return ", ".join([*parts, stop.text, *([step.text] if step.text != "1" else [])])
