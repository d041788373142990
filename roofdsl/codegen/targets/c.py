"""C11 as a target: one function with pointers to contiguous arrays, and OpenMP for loops shared by cores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.function_parts import (
    described,
    heading,
    load_scalars,
    name_extents,
    signature,
    store_scalars,
    wrapped,
)
from roofdsl.codegen.streamed_loops import StreamedLoops
from roofdsl.codegen.syntax import Lines, Text, words
from roofdsl.codegen.target import OneFunction, Own
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.types import ElementType
from roofdsl.loops.model import Kernel


class C(CLike, OneFunction):
    """C11."""

    name: ClassVar[str] = "c"
    streams: ClassVar[Literal["lines", "as usual", "not at all"]] = "lines"
    emitter: ClassVar[type[Emitter]] = StreamedLoops
    reserved: ClassVar[frozenset[str]] = words("lines_stored")
    integer_type: ClassVar[str] = "int64_t"
    names: ClassVar[dict[str, str]] = {
        "f64": "double", "f32": "float", "i64": "int64_t", "i32": "int32_t",
        "c128": "double complex", "c64": "float complex",
    }  # fmt: skip
    storage: ClassVar[dict[str, str]] = {
        **names, "tf32": "float", "f16": "uint16_t", "bf16": "uint16_t", "f8": "uint8_t",
        "i16": "int16_t", "i8": "int8_t",
    }  # fmt: skip

    def parallel_loop(  # noqa: PLR0917
        self, own: Sequence[Own], out: Lines, var: str, start: Text, stop: Text, step: Text
    ) -> None:
        private = f" private({', '.join(variable.name for variable in own)})" if own else ""
        out.add(f"#pragma omp parallel for{private}")
        self.loop(out, var, start, stop, step)

    def pointer(self, type_: ElementType, name: str, written: bool) -> str:
        return f"{'' if written else 'const '}{self.storage[type_.name]} *restrict {name}"

    def source(self, kernel: Kernel, emitter: Emitter, function: str, variant: str) -> str:
        out = emitter.out
        for line in wrapped(f"void {function}", signature(kernel, self, emitter.names)):
            out.add(line)
        out.add("{")
        out.depth += 1
        for array in kernel.arrays:
            out.add(f"// {described(array)}")
        name_extents(emitter, kernel.body, self.integer_type)
        load_scalars(kernel, emitter, "*{}")
        for array in emitter.held:
            out.add(f"{self.storage[array.type.name]} {array.name}[{array.dims[0]}];")
        emitter.block(kernel.body)
        if "lines_stored" in self.helpers:
            out.add("lines_stored();")
        store_scalars(kernel, emitter, "*{}")
        self.close(out)
        head = heading(kernel, self, f"C11, variant {variant}")
        helpers = self.definitions("static inline")
        includes = _includes("\n".join([*helpers, *out.lines]))
        return "\n".join([*head, *includes, "", *helpers, *([""] if helpers else []), *out.lines]) + "\n"


TARGET = C


def _includes(body: str) -> list[str]:
    """The headers that declare what a text uses."""
    found = ["#include <stdint.h>"]
    found += ["#include <complex.h>"] if "complex" in body else []
    found += ["#include <math.h>"] if _MATH.search(body) else []
    found += ["#include <stdlib.h>"] if "abs(" in body else []
    found += ["#include <string.h>"] if "memcpy(" in body else []
    found.sort()
    return [*found, "#if defined(__SSE2__)", "#include <immintrin.h>", "#endif"] if "_mm_" in body else found


def _of_math_h() -> set[str]:
    """The C names of real floating-point functions that have a suffix for single precision."""
    texts = [f.spelling("c", "f64").text for f in FUNCTIONS.values() if f.name != "select" and f.of_real == "call"]
    return {name for text in texts for name in re.findall(r"(\w+)\{f\}\(", text)}


_MATH = re.compile(rf"(?:{'|'.join(sorted(_of_math_h()))})f?\(")
