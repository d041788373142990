"""CUDA as a target: `__global__` functions for NVRTC or nvcc, and the launches that make up a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.computed_types import Computed
from roofdsl.codegen.cuda_kernels import launched
from roofdsl.codegen.cuda_tiled import tiled
from roofdsl.codegen.data_threads import ATOMIC
from roofdsl.codegen.function_parts import arguments, described, heading
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.private_copies import MOST_BYTES
from roofdsl.codegen.syntax import Text, words
from roofdsl.codegen.target import Target
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.functions import Language
from roofdsl.lang.types import ElementType
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.model import Array, Kernel

_REDUCED = {"f16": "__half", "bf16": "__nv_bfloat16", "f8": "__nv_fp8_e4m3"}
_HEADERS = {"f16": "cuda_fp16.h", "bf16": "cuda_bf16.h", "f8": "cuda_fp8.h"}
_WIDEN = {"f16": "__half2float({})", "bf16": "__bfloat162float({})", "f8": "(float)({})"}
_NARROW = {"f16": "__float2half_rn({})", "bf16": "__float2bfloat16_rn({})", "f8": "__nv_fp8_e4m3({})"}
_OWN = "index_t complex64 complex128 complex_of thread threads thread_x thread_y thread_z threads_x threads_y threads_z"
_OWN += " shared sum p parts block"
"""Names that our CUDA text declares itself."""


class Cuda(CLike, Target):
    """CUDA C++."""

    name: ClassVar[str] = "cuda"
    streams: ClassVar[Literal["lines", "as usual", "not at all"]] = "as usual"
    language: ClassVar[Language] = "cuda"
    variants: ClassVar[tuple[str, ...]] = ("naive", "tiled")
    integer_type: ClassVar[str] = "index_t"
    reserved: ClassVar[frozenset[str]] = words(_OWN)
    names: ClassVar[dict[str, str]] = {
        "f64": "double", "f32": "float", "i64": "long long", "i32": "int", "c128": "complex128", "c64": "complex64",
    }  # fmt: skip
    storage: ClassVar[dict[str, str]] = {**names, **_REDUCED, "tf32": "float", "i16": "short", "i8": "signed char"}

    def widen(self, stored: Text, type_: ElementType) -> Text:
        return Text(_WIDEN[type_.name].format(stored.text))

    def narrow(self, value: Text, type_: ElementType) -> Text:
        return Text(_NARROW[type_.name].format(value.text))

    def convert(self, value: Text, source: Computed, to: Computed) -> Text:
        if source != to and to in ("c64", "c128"):
            return Text(f"{self.names[to]}({value.text})")
        return super().convert(value, source, to)

    def pointer(self, type_: ElementType, name: str, written: bool) -> str:
        return f"{'' if written else 'const '}{self.storage[type_.name]} *__restrict__ {name}"

    def atomic(self, place: Text, op: str, value: Text, array: Array) -> str:
        """Raises CommandError for an element type or an update that CUDA has no atomic operation for."""
        kind = array.type.name
        if kind not in ATOMIC.get(op, ()):
            raise CommandError(
                f"several threads update elements of {array.name} with `{op}`, and CUDA has no such atomic operation "
                f"on {kind}",
                "leave out `parallel`, so that one thread runs the loop",
            )
        operation = {"+=": "Add", "-=": "Add", "min=": "Min", "max=": "Max"}[op]
        at, shown = f"&{place.text}", f"-({value.text})" if op == "-=" else value.text
        if kind == "i64" and operation == "Add":  # sums of two's complements do not depend on the sign
            at, shown = f"(unsigned long long *){at}", f"(unsigned long long)({shown})"
        return f"atomic{operation}({at}, {shown})"

    def generated(
        self, kernel: Kernel, variant: str, free: Mapping[LoopId, int], sizes: Mapping[str, int]
    ) -> Generated:
        made = tiled(self, kernel, free, sizes) if variant == "tiled" else launched(self, kernel, free, self.private)
        calls = made.calls()
        source = self._source(made.kernel, f"CUDA, variant {variant}, {made.what}", made.functions)
        spread = tuple(dict.fromkeys(v for call in calls for v in call.parallel))
        first = calls[0].function if calls else ""
        declared = {array.name for array in kernel.arrays}
        given = tuple(
            replace(a, work_bytes=MOST_BYTES) if a.role == "array" and a.name not in declared else a
            for a in arguments(made.kernel, temp=True)
        )
        return Generated(
            kernel.name, self.name, variant, source, first, given, spread, made.steps, made.sizes, made.notes
        )

    def _source(self, kernel: Kernel, what: str, functions: Sequence[Sequence[str]]) -> str:
        """The complete text: headers for the types used, helpers, functions."""
        body = "\n\n".join("\n".join(lines) for lines in functions)
        lines = heading(kernel, self, what)
        lines += [f"// {described(array)}" for array in kernel.arrays]
        types = {a.type.name for a in kernel.arrays}
        lines += [f"#include <{_HEADERS[t]}>" for t in ("f16", "bf16", "f8") if t in types]
        lines += ["", "typedef long long index_t;  // 64 bits wherever it runs", ""]
        if "complex" in body:
            lines += [COMPLEX, ""]
        helpers = self.definitions("__device__ static inline")
        lines += [*helpers, *([""] if helpers else [])]
        return "\n".join(lines) + "\n" + body + "\n"


COMPLEX = """template <typename T> struct complex_of {
    T re, im;
    complex_of() = default;
    __device__ complex_of(T re, T im = 0) : re(re), im(im) {}
    template <typename U> __device__ explicit complex_of(complex_of<U> a) : re((T)a.re), im((T)a.im) {}
    __device__ friend complex_of operator-(complex_of a) { return complex_of(-a.re, -a.im); }
    __device__ friend complex_of operator+(complex_of a, complex_of b) { return complex_of(a.re + b.re, a.im + b.im); }
    __device__ friend complex_of operator-(complex_of a, complex_of b) { return complex_of(a.re - b.re, a.im - b.im); }
    __device__ friend complex_of operator*(T a, complex_of b) { return complex_of(a * b.re, a * b.im); }
    __device__ friend complex_of operator*(complex_of a, T b) { return complex_of(a.re * b, a.im * b); }
    __device__ friend complex_of operator*(complex_of a, complex_of b) {
        return complex_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    }
    __device__ friend complex_of operator/(complex_of a, T b) { return complex_of(a.re / b, a.im / b); }
    __device__ friend complex_of operator/(complex_of a, complex_of b) {
        const T size = b.re * b.re + b.im * b.im;
        return complex_of((a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size);
    }
    __device__ friend bool operator==(complex_of a, complex_of b) { return a.re == b.re && a.im == b.im; }
    __device__ friend bool operator!=(complex_of a, complex_of b) { return !(a == b); }
    __device__ complex_of &operator+=(complex_of b) { return *this = *this + b; }
    __device__ complex_of &operator-=(complex_of b) { return *this = *this - b; }
    __device__ complex_of &operator*=(complex_of b) { return *this = *this * b; }
    __device__ complex_of &operator/=(complex_of b) { return *this = *this / b; }
};
typedef complex_of<float> complex64;
typedef complex_of<double> complex128;"""
"""Complex numbers in CUDA, as plain pairs that can be placed in shared memory."""

TARGET = Cuda
