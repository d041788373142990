"""The parts that C and CUDA have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from roofdsl.codegen.computed_types import Computed, component
from roofdsl.codegen.reserved import is_reserved
from roofdsl.codegen.syntax import CHOICE, PRODUCT, SUM, UNARY, Lines, Syntax, Text, squarings
from roofdsl.lang.functions import FUNCTIONS, MANY, Language
from roofdsl.lang.types import ElementType
from roofdsl.loops.model import Array

LINE_BYTES = 64
"""The bytes of a cache line. Stores that bypass the caches fill a whole line at once."""


class CLike(Syntax):
    """The syntax shared by C and CUDA."""

    language: ClassVar[Language | None] = "c"
    names: ClassVar[dict[str, str]] = {}
    """Computed types as they are written in the language."""

    storage: ClassVar[dict[str, str]] = {}
    """Element types as they are stored in memory."""

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
        """Offsets by Horner's rule: `A[(i * m + j) * p + k]`; column-major arrays begin with the last subscript."""
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

    def definitions(self, qualifier: str) -> list[str]:
        """Definitions of the helpers that the text calls, and of those that these helpers need."""
        texts = []
        if any(n.endswith("_to_f32") or n.startswith("f32_to") for n in self.helpers):
            texts.append(_BITS.format(q=qualifier))
        for name in self.helpers:
            base, _, kind = name.rpartition("_")
            if name in _HELPERS:
                texts.append(_HELPERS[name].format(q=qualifier, int=self.integer_type, line=LINE_BYTES))
                continue
            type_name = self.names[kind]
            if base.startswith("power"):
                lines, result = squarings(int(base[5:]))
                body = "".join(f"{type_name} {n} = {v}; " for n, v in lines)
                texts.append(f"{qualifier} {type_name} {name}({type_name} x) {{ {body}return {result}; }}")
                continue
            row, single = FUNCTIONS[base], kind in ("f32", "c64")
            known = {"T": type_name, "f": "f" if single else "", "one": "1.0f" if single else "1.0"}
            body = self.spelling(base, kind).text.format(x="x", a="a", b="b", **known)
            result = self.names[component(kind)] if row.gives == "component" else type_name  # type: ignore[arg-type]
            arguments = ", ".join(f"{type_name} {a}" for a in ("ab" if row.arguments == MANY else "x"))
            texts.append(f"{qualifier} {result} {name}({arguments}) {{ return {body}; }}")
        return texts


_BITS = """{q} float bits_to_f32(uint32_t bits) {{ float x; memcpy(&x, &bits, 4); return x; }}
{q} uint32_t f32_to_bits(float x) {{ uint32_t bits; memcpy(&bits, &x, 4); return bits; }}"""

_HELPERS: dict[str, str] = {
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
    "before_line": """{q} {int} before_line(const void *at, {int} size) {{  // elements until a line begins
    return ({int})(-(uintptr_t)at % {line}) / size;
}}""",
    # Where gcc makes vectors of 16 bytes in spite of AVX, a load of 32 would fetch two of them from memory.
    "stream_line": """{q} void stream_line(void *to, const void *from) {{  // {line} bytes, past the caches
#if defined(__AVX__) && !defined(__tune_znver1__) && !defined(__tune_btver2__) && !defined(__tune_bdver1__) \\
    && !defined(__tune_bdver2__) && !defined(__tune_bdver3__) && !defined(__tune_bdver4__)
    for (int k = 0; k < 2; ++k) _mm256_stream_si256((__m256i *)to + k, _mm256_loadu_si256((const __m256i *)from + k));
#elif defined(__SSE2__)
    for (int k = 0; k < 4; ++k) _mm_stream_si128((__m128i *)to + k, _mm_loadu_si128((const __m128i *)from + k));
#else
    memcpy(to, from, {line});  // as usual: there is no instruction for it
#endif
}}""",
    "stream_part": """{q} void stream_part(void *to, const void *from) {{  // {line} bytes, wherever they begin
    if ((uintptr_t)to % {line} == 0) {{
        stream_line(to, from);
        return;
    }}
#if defined(__x86_64__)
    for (int k = 0; k < {line} && (uintptr_t)to % 8 == 0; k += 8) {{
        long long word;
        memcpy(&word, (const char *)from + k, 8);
        _mm_stream_si64((long long *)((char *)to + k), word);
    }}
    if ((uintptr_t)to % 8 == 0) return;
#endif
    memcpy(to, from, {line});
}}""",
    "lines_stored": """{q} void lines_stored(void) {{  // waits until other cores see them
#if defined(__SSE2__)
    _mm_sfence();
#endif
}}""",
    "f16_to_f32": """{q} float f16_to_f32(uint16_t h) {{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    if (rest >= 0x0f800000) return bits_to_f32(sign | 0x70000000 | rest);  // infinity or NaN
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
