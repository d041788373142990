"""The small functions that generated code calls: integer division, minima, powers, and reduced types."""

from __future__ import annotations

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.compute import component
from roofdsl.codegen.syntax import Syntax
from roofdsl.lang.functions import FUNCTIONS, MANY

_C_BITS = """{q} float bits_to_f32(uint32_t bits) {{ float x; memcpy(&x, &bits, 4); return x; }}
{q} uint32_t f32_to_bits(float x) {{ uint32_t bits; memcpy(&bits, &x, 4); return bits; }}"""

_C: dict[str, str] = {
    "floor_div": "{q} {int} floor_div({int} a, {int} b) {{ return a / b - (a % b < 0); }}  // rounds down, b > 0",
    "floor_mod": "{q} {int} floor_mod({int} a, {int} b) {{ {int} r = a % b; return r < 0 ? r + b : r; }}  // b > 0",
    "min_index": "{q} {int} min_index({int} a, {int} b) {{ return a < b ? a : b; }}",
    "max_index": "{q} {int} max_index({int} a, {int} b) {{ return a > b ? a : b; }}",
    "bf16_to_f32": "{q} float bf16_to_f32(uint16_t h) {{ return bits_to_f32((uint32_t)h << 16); }}",
    "f32_to_bf16": """{q} uint16_t f32_to_bf16(float x) {{  // to nearest, ties to even
    uint32_t bits = f32_to_bits(x);
    if (x != x) return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}}""",
    "f16_to_f32": """{q} float f16_to_f32(uint16_t h) {{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    if (rest >= 0x0f800000) return bits_to_f32(sign | 0x70000000 | rest);  // infinite or no number
    return bits_to_f32(sign | f32_to_bits(bits_to_f32(rest) * 0x1p112f));
}}""",
    "f32_to_f16": """{q} uint16_t f32_to_f16(float x) {{  // to nearest, ties to even
    uint32_t bits = f32_to_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x47800000) return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) return (uint16_t)(sign | (f32_to_bits(bits_to_f32(rest) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}}""",
    "f8_to_f32": """{q} float f8_to_f32(uint8_t h) {{  // e4m3
    uint32_t sign = (uint32_t)(h & 0x80) << 24, rest = (uint32_t)(h & 0x7f) << 20;
    if ((h & 0x7f) == 0x7f) return bits_to_f32(0x7fc00000);
    return bits_to_f32(sign | f32_to_bits(bits_to_f32(rest) * 0x1p120f));
}}""",
    "f32_to_f8": """{q} uint8_t f32_to_f8(float x) {{  // e4m3, to nearest, ties to even, at most 448
    uint32_t bits = f32_to_bits(x), sign = bits >> 24 & 0x80, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return (uint8_t)(sign | 0x7f);
    if (rest >= 0x43e00000) return (uint8_t)(sign | 0x7e);
    if (rest < 0x3c800000) return (uint8_t)(sign | (f32_to_bits(bits_to_f32(rest) + 16384.0f) - 0x46800000));
    return (uint8_t)(sign | (rest - 0x3c000000 + 0x7ffff + (rest >> 20 & 1)) >> 20);
}}""",
}

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
"""Complex numbers in CUDA, as plain pairs, so that they can lie in shared memory."""

_PYTHON: dict[str, str] = {
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


def c_helpers(syntax: CLike, qualifier: str) -> list[str]:
    """Definitions in C or CUDA of the helpers that a text calls, those that they need before them."""
    texts = []
    if any(n.endswith("_to_f32") or n.startswith("f32_to") for n in syntax.helpers):
        texts.append(_C_BITS.format(q=qualifier))
    for name in syntax.helpers:
        base, _, kind = name.rpartition("_")
        if name in _C:
            texts.append(_C[name].format(q=qualifier, int=syntax.integer_type))
            continue
        type_name = syntax.names[kind]
        if base.startswith("power"):
            lines, result = _power(int(base[5:]))
            body = "".join(f"{type_name} {n} = {v}; " for n, v in lines)
            texts.append(f"{qualifier} {type_name} {name}({type_name} x) {{ {body}return {result}; }}")
            continue
        row, single = FUNCTIONS[base], kind in ("f32", "c64")
        known = {"T": type_name, "f": "f" if single else "", "one": "1.0f" if single else "1.0", **_ARGUMENTS}
        body = row.spelling(syntax.target, kind).text.format(**known)
        result = syntax.names[component(kind)] if row.gives == "component" else type_name  # type: ignore[arg-type]
        arguments = ", ".join(f"{type_name} {a}" for a in ("ab" if row.arguments == MANY else "x"))
        texts.append(f"{qualifier} {result} {name}({arguments}) {{ return {body}; }}")
    return texts


_ARGUMENTS = {"x": "x", "a": "a", "b": "b"}


def python_helpers(syntax: Syntax) -> list[str]:
    """Definitions in Python, without decorators, of the helpers that a text calls."""
    texts = []
    for name in syntax.helpers:
        base, _, kind = name.rpartition("_")
        if name in _PYTHON:
            texts.append(_PYTHON[name])
        elif base.startswith("power"):
            lines, result = _power(int(base[5:]))
            body = "".join(f"    {n} = {v}\n" for n, v in lines)
            texts.append(f"def {name}(x):\n{body}    return {result}")
        else:
            one = "np.float32(1)" if kind == "f32" else "1.0"
            body = FUNCTIONS[base].spelling("python", kind).text.format(one=one, **_ARGUMENTS)
            texts.append(f"def {name}(x):\n    return {body}")
    return texts


def _power(exponent: int) -> tuple[list[tuple[str, str]], str]:
    """x**exponent by repeated squaring (docs/rules.md, rule 3): (name, value) lines and the result."""
    lines: list[tuple[str, str]] = []
    result = ""
    square, power = "x", 1
    while True:
        if exponent & power:
            result = f"{result} * {square}" if result else square
        if power * 2 > exponent:
            return lines, result
        lines.append((f"x{power * 2}", f"{square} * {square}"))
        square, power = f"x{power * 2}", power * 2
