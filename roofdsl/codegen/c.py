"""C11 as a target: one function, pointers to contiguous arrays, OpenMP for loops shared by cores."""

from __future__ import annotations

from typing import ClassVar

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.syntax import Lines, Text
from roofdsl.lang.functions import Target
from roofdsl.lang.types import ElementType

FLAGS = ("-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fopenmp")
"""Flags for gcc and clang; every one keeps the result within the rounding of the types."""


class CSyntax(CLike):
    """C11."""

    target: ClassVar[Target] = "c"
    integer_type: ClassVar[str] = "int64_t"
    names: ClassVar[dict[str, str]] = {
        "f64": "double", "f32": "float", "i64": "int64_t", "i32": "int32_t",
        "c128": "double complex", "c64": "float complex",
    }  # fmt: skip
    storage: ClassVar[dict[str, str]] = {
        **names, "tf32": "float", "f16": "uint16_t", "bf16": "uint16_t", "f8": "uint8_t",
        "i16": "int16_t", "i8": "int8_t",
    }  # fmt: skip

    def parallel_loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        out.add("#pragma omp parallel for")
        self.loop(out, var, start, stop, step)

    def pointer(self, type_: ElementType, name: str, written: bool) -> str:
        return f"{'' if written else 'const '}{self.storage[type_.name]} *restrict {name}"
