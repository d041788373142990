"""Functions that generated Python calls: conversions of reduced floats, quotients, and complex absolute values.

Loops that call them become vector instructions, so they choose between values instead of branching. Half precision is
converted by the processor's own instructions where numba compiles for a processor that has them. numba widens every
operation on integers to 64 bits, which halves the vectors: each result is cut to 32 bits at once.
"""

from __future__ import annotations

NUMBA = '@njit(error_model="numpy")\n'
"""What stands above a function that numba compiles."""

_TO_BITS = """def f32_to_f16_bits(x):  # to nearest, ties to even
    bits = np.float32(x).view(np.uint32)
    sign = np.uint32(np.uint32(bits >> np.uint32(16)) & np.uint32(0x8000))
    rest = np.uint32(bits & np.uint32(0x7FFFFFFF))
    odd = np.uint32(np.uint32(rest >> np.uint32(13)) & np.uint32(1))
    size = np.uint32(np.uint32(np.uint32(rest - np.uint32(0x37FFF001)) + odd) >> np.uint32(13))
    small = np.float32(rest.view(np.float32) + np.float32(0.5)).view(np.uint32)
    size = np.uint32(small - np.uint32(0x3F000000)) if rest < np.uint32(0x38800000) else size
    size = np.uint32(0x7C00) if rest >= np.uint32(0x47800000) else size
    nan = np.uint32(np.uint32(0x7E00) | np.uint32(np.uint32(rest >> np.uint32(13)) & np.uint32(0x3FF)))
    size = nan if rest > np.uint32(0x7F800000) else size
    return np.uint16(sign | size)"""

_FROM_BITS = """def f16_bits_to_f32(h):
    sign = np.uint32(np.uint32(h & np.uint16(0x8000)) << np.uint32(16))
    rest = np.uint32(np.uint32(h & np.uint16(0x7FFF)) << np.uint32(13))
    scaled = np.float32(rest.view(np.float32) * np.float32(2.0**112)).view(np.uint32)
    quiet = np.uint32(0x00400000) if rest > np.uint32(0x0F800000) else np.uint32(0)
    endless = np.uint32(np.uint32(0x70000000) | rest | quiet)
    size = endless if rest >= np.uint32(0x0F800000) else scaled
    return np.uint32(sign | size).view(np.float32)"""

_CONVERTS = """def converts_f16(context):  # whether the processor does
    triple, _, features = context.codegen().magic_tuple()
    return triple.startswith(("aarch64", "arm64")) or "+f16c" in features"""

_INTRINSIC = """@intrinsic
def {name}(typing, value):
    def convert(context, builder, signature, args):
        if converts_f16(context):
            return {made}
        return context.compile_internal(builder, {bits}, signature, args)

    return {signature}, convert"""

_QUOTIENT = """def quotient_{kind}(a, b):  # of complex numbers, by Smith's method
    wide = abs(b.real) >= abs(b.imag)
    p, q = (b.real if wide else b.imag), (b.imag if wide else b.real)
    x, y = (a.real if wide else a.imag), (a.imag if wide else a.real)
    ratio = q / p
    size = p + q * ratio
    im = (y - x * ratio) / size
    return np.{numpy}(complex((x + y * ratio) / size, im if wide else -im))"""

_ABS = """def abs_{kind}(z):
    a, b = abs(z.real), abs(z.imag)
    large, small = max(a, b), min(a, b)
    ratio = small / large
    size = large * math.sqrt({one} + ratio * ratio)
    return size if {zero} < small < np.inf else large + small"""

_BY_REAL = """def real_quotient_{kind}(a, b):
    return np.{numpy}(complex(a.real / b, a.imag / b))"""

FUNCTIONS: dict[str, str] = {
    "quotient": """def quotient(a, b):  # truncated, as in C
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q""",
    "abs_c128": _ABS.format(kind="c128", one="1.0", zero="0.0"),
    "abs_c64": _ABS.format(kind="c64", one="np.float32(1)", zero="np.float32(0)"),
    "quotient_c128": _QUOTIENT.format(kind="c128", numpy="complex128"),
    "quotient_c64": _QUOTIENT.format(kind="c64", numpy="complex64"),
    "real_quotient_c128": _BY_REAL.format(kind="c128", numpy="complex128"),
    "real_quotient_c64": _BY_REAL.format(kind="c64", numpy="complex64"),
    "bf16_to_f32": """def bf16_to_f32(h):
    return np.uint32(np.uint32(h) << np.uint32(16)).view(np.float32)""",
    "f32_to_bf16": """def f32_to_bf16(x):  # to nearest, ties to even
    bits = np.float32(x).view(np.uint32)
    upper = np.uint32(bits >> np.uint32(16))
    odd = np.uint32(upper & np.uint32(1))
    size = np.uint32(np.uint32(np.uint32(bits + np.uint32(0x7FFF)) + odd) >> np.uint32(16))
    size = np.uint32(upper | np.uint32(64)) if np.uint32(bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000) else size
    return np.uint16(size)""",
    "converts_f16": _CONVERTS,
    "f16_bits_to_f32": _FROM_BITS,
    "f32_to_f16_bits": _TO_BITS,
    "f16_to_f32": _INTRINSIC.format(
        name="f16_to_f32",
        made="builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())",
        bits="f16_bits_to_f32",
        signature="types.float32(types.uint16)",
    ),
    "f32_to_f16": _INTRINSIC.format(
        name="f32_to_f16",
        made="builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))",
        bits="f32_to_f16_bits",
        signature="types.uint16(types.float32)",
    ),
    "f8_value": """def f8_value(code):  # e4m3
    size = code & 0x7F
    value = size * 2.0**-9 if size < 8 else (8 + size % 8) * 2.0 ** (size // 8 - 10)
    return np.nan if size == 0x7F else -value if code & 0x80 else value


f8_values = np.array([f8_value(code) for code in range(256)], np.float32)""",
    "f8_to_f32": """def f8_to_f32(h):
    return f8_values[h]""",
    "f32_to_f8": """def f32_to_f8(x):  # e4m3, to nearest, ties to even, at most 448
    bits = np.float32(x).view(np.uint32)
    sign = np.uint32(np.uint32(bits >> np.uint32(24)) & np.uint32(0x80))
    rest = np.uint32(bits & np.uint32(0x7FFFFFFF))
    odd = np.uint32(np.uint32(rest >> np.uint32(20)) & np.uint32(1))
    size = np.uint32(np.uint32(np.uint32(rest - np.uint32(0x3BF80001)) + odd) >> np.uint32(20))
    small = np.float32(rest.view(np.float32) + np.float32(16384.0)).view(np.uint32)
    size = np.uint32(small - np.uint32(0x46800000)) if rest < np.uint32(0x3C800000) else size
    size = np.uint32(0x7E) if rest >= np.uint32(0x43E00000) else size
    size = np.uint32(0x7F) if rest > np.uint32(0x7F800000) else size
    return np.uint8(sign | size)""",
}
"""The text of each function."""

_NEEDS = {
    "f16_to_f32": ("converts_f16", "f16_bits_to_f32"),
    "f32_to_f16": ("converts_f16", "f32_to_f16_bits"),
    "f8_to_f32": ("f8_value",),
}
_PLAIN = ("converts_f16", "f8_value")
"""Functions that Python executes itself, while numba compiles."""


def with_needed(names: list[str]) -> list[str]:
    """The names, each after those of the functions that it calls."""
    return list(dict.fromkeys(n for name in names for n in (*_NEEDS.get(name, ()), name)))


def definition(name: str) -> str:
    """The function as it stands in a text, with its decorator."""
    text = FUNCTIONS[name]
    return text if text.startswith("@") or name in _PLAIN else NUMBA + text


def imports(text: str, prange: bool) -> list[str]:
    """The import statements, besides that of numpy, of a text with functions that numba compiles."""
    made = "@intrinsic" in text
    names = ["njit", *(["prange"] if prange else []), *(["types"] if made else [])]
    numba = f"from numba import {', '.join(names)}"
    return ["from llvmlite import ir", numba, "from numba.extending import intrinsic"] if made else [numba]
