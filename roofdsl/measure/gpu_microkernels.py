"""CUDA that characterizes a GPU: arithmetic in registers, and streams through the L2 cache and the memory.

Arithmetic: every thread keeps ILP independent accumulators. Operands are arguments that swap places, so that nothing is
folded. A result is stored only in a case that never happens, which the compiler cannot know. Streams: several loads of
16 bytes at a time that bypass the L1 caches (`ld.global.cg`), volatile so that the compiler moves none of them out of
the loop over passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from roofdsl.lang.functions import FUNCTIONS, repeated
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.measure.bandwidth_curve import COPY, LOAD, PATTERNS, TRIAD, UPDATE, Pattern

ILP = 8
THREADS = 256

UNROLLED = 8
"""Steps of all accumulators in an iteration. With a single step, a seventh of the instructions would be the loop's own.
"""

IN_FLIGHT = 4
"""Elements of 16 bytes that a thread of a stream loads before it uses the first."""


@dataclass(frozen=True)
class Arithmetic:
    """One measured class: the C++ type of an accumulator, what a step does to `a`, and the operations in a step."""

    type: str
    cls: str
    c_type: str
    step: str
    operations: int

    @property
    def function(self) -> str:
        return f"peak_{self.type}_{self.cls}"


_OPERANDS = {"term": "d", "shift": "c", "factor": "c"}


_EXTREMA = {"f64": "a = a < c ? a : c; a = a > d ? a : d", "f32": "a = fmaxf(fminf(a, c), d)"}
"""Minimum and maximum as in generated code."""


def _floats(name: str, c: str, suffix: str) -> list[Arithmetic]:
    return [
        Arithmetic(name, "fma", c, f"a = fma{suffix}(a, c, d)", 2),
        Arithmetic(name, "add", c, "a = a + d", 1),
        Arithmetic(name, "mul", c, "a = a * e", 1),
        Arithmetic(name, "min", c, _EXTREMA[name], 2),
        Arithmetic(name, "div", c, "a = c / a", 1),
        *(
            Arithmetic(name, f, c, repeated(FUNCTIONS[f], "cuda", f"({c})1", _OPERANDS, suffix), 1)
            for f in SPECIAL_FUNCTIONS
        ),
    ]


ARITHMETIC = (
    *_floats("f64", "double", ""),
    *_floats("f32", "float", "f"),
    Arithmetic("f16", "fma", "__half2", "a = __hfma2(a, c, d)", 4),
    Arithmetic("f16", "add", "__half2", "a = __hadd2_rn(a, d)", 2),
    Arithmetic("f16", "min", "__half2", "a = __hmax2(__hmin2(a, c), d)", 4),
    Arithmetic("bf16", "fma", "__nv_bfloat162", "a = __hfma2(a, c, d)", 4),
    Arithmetic("i32", "add", "int", "a = (a + c) ^ d", 2),
    Arithmetic("i32", "min", "int", "a = max(min(a, c), d)", 2),
)

_FROM_FLOAT = {"__half2": "__float2half2_rn(x)", "__nv_bfloat162": "__float2bfloat162_rn(x)"}


def arithmetic_source(wanted: Arithmetic) -> str:
    """A function `(out, c, d, e, steps)`, with operands in f32, that performs `steps` steps on each of ILP
    accumulators.
    """
    t = wanted.c_type
    start = _FROM_FLOAT.get(t, f"({t})x")
    integer = t == "int"
    scale = "1000.0f * " if integer else ""
    lines = [
        {"__half2": "#include <cuda_fp16.h>", "__nv_bfloat162": "#include <cuda_bf16.h>"}.get(t, ""),
        f"__device__ static inline {t} from(float x) {{ return {start}; }}",
        f"__device__ static inline bool never({t} a, {t} b) {{ return {_never(t)}; }}",
        f'extern "C" __global__ void {wanted.function}({t} *out, float c0, float d0, float e0, long long steps)',
        "{",
        f"    {t} c = from({scale}c0), d = from({scale}d0), e = from({scale}e0), acc[{ILP}];",
        f"    for (int k = 0; k < {ILP}; k++) acc[k] = from({scale}(1.0f + 0.01f * k + 0.001f * threadIdx.x));",
        f"#pragma unroll {UNROLLED}  // an even number: operands swap places by name, not by moves",
        "    for (int r = 0; r < (int)steps; r++) {",
        "#pragma unroll",
        f"        for (int k = 0; k < {ILP}; k++) {{ {t} a = acc[k]; {wanted.step}; acc[k] = a; }}",
        f"        {t} swapped = c; c = e; e = swapped;",
        "    }",
        f"    for (int k = 0; k < {ILP}; k++) if (never(acc[k], c)) out[threadIdx.x] = acc[k];",
        "}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _never(c_type: str) -> str:
    """A comparison with a number that no accumulator reaches, which the compiler cannot know."""
    if c_type in _FROM_FLOAT:
        return "__low2float(a) == 12345.678f && __high2float(b) == 3.0f"
    return "a == (int)0x7ffffff1 && b == 3" if c_type == "int" else f"a == ({c_type})12345.678 && b == ({c_type})3"


_LOADS = {
    LOAD: "load(a + {i}, x[k], y[k]);",
    COPY: "load(b + {i}, x[k], y[k]);",
    TRIAD: "load(b + {i}, x[k], y[k]); load(c + {i}, u[k], v[k]);",
    UPDATE: "load(b + {i}, x[k], y[k]); load(a + {i}, u[k], v[k]);",
}
_USES = {
    LOAD: "s += x[k] + y[k];",
    COPY: "a[{i}] = make_double2(q * x[k], q * y[k]);",
    TRIAD: "a[{i}] = make_double2(x[k] + q * u[k], y[k] + q * v[k]);",
    UPDATE: "a[{i}] = make_double2(u[k] + q * x[k], v[k] + q * y[k]);",
}


def _loaded(pattern: Pattern) -> str:
    """The variables that a pattern loads into."""
    return "xyuv" if pattern.read + pattern.updated == 2 else "xy"


def stream_function(pattern: Pattern) -> str:
    return f"stream_{pattern.name}"


def stream_source() -> str:
    """Functions `(a, b, c, n, q, passes, out)` of all patterns over n elements of 16 bytes; some use fewer arrays. And
    `nothing`, an empty one.
    """
    head = [
        "__device__ static inline void load(const double2 *p, double &x, double &y)",
        '{ asm volatile("ld.global.cg.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "l"(p)); }',
    ]
    for pattern in PATTERNS:
        head += [
            f'extern "C" __global__ void {stream_function(pattern)}(double2 *a, double2 *b, double2 *c, long long n,',
            "    double q, long long passes, double *out)",
            "{",
            "    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
            "    const long long stride = (long long)gridDim.x * blockDim.x;",
            f"    double s = 0, {', '.join(f'{n}[{IN_FLIGHT}]' for n in _loaded(pattern))};",
            "    for (long long r = 0; r < passes; r++) {",
            "        long long i = first;",
            f"        for (; i + {IN_FLIGHT - 1} * stride < n; i += {IN_FLIGHT} * stride) {{",
            "#pragma unroll",
            f"            for (int k = 0; k < {IN_FLIGHT}; k++) {{ {_LOADS[pattern].format(i='i + k * stride')} }}",
            "#pragma unroll",
            f"            for (int k = 0; k < {IN_FLIGHT}; k++) {{ {_USES[pattern].format(i='i + k * stride')} }}",
            "        }",
            "#pragma unroll 1",
            "        for (; i < n; i += stride) {",
            f"            const int k = 0; {_LOADS[pattern].format(i='i')} {_USES[pattern].format(i='i')}",
            "        }",
            "    }",
            "    if (s == 12345.678) out[0] = s;",
            "}",
        ]
    head += ['extern "C" __global__ void nothing(double *a) { }']
    return "\n".join(head) + "\n"
