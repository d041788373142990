"""The element types of PyTorch by the names of the language, and what operations on two of them give."""

from __future__ import annotations

from collections.abc import Mapping

TYPES: Mapping[str, str] = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8",
    "float8_e5m2": "f8", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "i8", "bool": "i8",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
"""By torch's name. The language has no types of 4 bits."""

_RANK = ("i8", "i16", "i32", "i64", "f8", "f16", "bf16", "f32", "f64", "c64", "c128")

REAL: Mapping[str, str] = {"c64": "f32", "c128": "f64"}
"""The types of the parts of complex numbers."""


def promoted(a: str, b: str) -> str:
    """The type of an operation on tensors of two types of the language, as torch promotes them."""
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    return max(a, b, key=_RANK.index)


def is_whole(type_name: str) -> bool:
    """Whether it is a type of integers."""
    return type_name.startswith("i")
