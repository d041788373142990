"""Words for types of C."""

from __future__ import annotations


def word(type_: str) -> str:
    words = {
        "f16": "half precision", "bf16": "bfloat16", "f32": "float", "f64": "double",
        "c64": "float complex", "c128": "double complex", "i8": "char", "i16": "short", "i32": "int", "i64": "long",
        "u1": "_Bool", "u32": "unsigned", "u64": "unsigned long",
    }  # fmt: skip
    return words.get(type_, "unsigned")
