"""How elements are stored as numpy arrays: reduced floats as the bits of f16, bf16 and f8 (e4m3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STORAGE: dict[str, str] = {
    "f64": "float64", "f32": "float32", "tf32": "float32", "f16": "uint16", "bf16": "uint16", "f8": "uint8",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "c128": "complex128", "c64": "complex64",
}  # fmt: skip
"""The dtype of each element type. The bits of f16 are those of numpy's float16 (`a.view("float16")`)."""

UNIT: dict[str, float] = {
    "f64": 2.0**-53, "f32": 2.0**-24, "tf32": 2.0**-11, "f16": 2.0**-11, "bf16": 2.0**-8, "f8": 2.0**-4,
    "c128": 2.0**-53, "c64": 2.0**-24,
}  # fmt: skip
"""The largest relative error of rounding to a type (half the distance from 1 to the next number)."""

LEAST: dict[str, float] = {"f16": 2.0**-25, "bf16": 2.0**-134, "f8": 2.0**-10, "f32": 2.0**-150, "c64": 2.0**-150}
"""The largest absolute error of rounding a number that is too small to be normal."""

LARGEST: dict[str, float] = {
    "f64": 1.7976931348623157e308, "f32": 3.4028234663852886e38, "tf32": 3.4028234663852886e38, "f16": 65504.0,
    "bf16": 3.3895313892515355e38, "f8": 448.0, "c128": 1.7976931348623157e308, "c64": 3.4028234663852886e38,
}  # fmt: skip
"""The largest number of each type."""

POISON: dict[str, int] = {
    "f16": 0x7E5A, "bf16": 0x7FDA, "f8": 0x7F,
    "i64": -0x5A5A5A5A5A5A5A5A, "i32": -0x5A5A5A5A, "i16": -0x5A5A, "i8": -0x5A,
}  # fmt: skip


def poison(type_name: str) -> Any:
    """The filler of arrays that a kernel has to write: NaN, or an unlikely number for integers."""
    return POISON.get(type_name, np.nan)


def decode(stored: NDArray[Any], type_name: str) -> NDArray[Any]:
    """Stored elements as float64, complex128 or int64."""
    match type_name:
        case "f16":
            return stored.view(np.float16).astype(np.float64)
        case "bf16":
            with np.errstate(invalid="ignore"):  # a signaling NaN becomes a quiet one
                return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        case "f8":
            return np.take(_F8, stored)
        case "c64" | "c128":
            return stored.astype(np.complex128)
        case "i64" | "i32" | "i16" | "i8":
            return stored.astype(np.int64)
        case _:
            return stored.astype(np.float64)


def encode(values: NDArray[Any], type_name: str) -> NDArray[Any]:
    """Values rounded to nearest, as they are stored; values too large for f8 become its largest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        match type_name:
            case "f16":
                return values.astype(np.float16).view(np.uint16)
            case "bf16":
                bits = values.astype(np.float32).view(np.uint32)
                rounded = ((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
                return np.where(np.isnan(values), np.uint16(0x7FDA), rounded)
            case "f8":
                return _to_f8(np.asarray(values, np.float64))
            case _:
                return values.astype(STORAGE[type_name])


def _f8_table() -> NDArray[Any]:
    """All 256 values of e4m3: 1 sign bit, 4 of the exponent (bias 7), 3 of the fraction; no infinity."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    values = np.where(codes & 0x80, -size, size)
    values[[0x7F, 0xFF]] = np.nan
    return values


_F8 = _f8_table()


def _to_f8(values: NDArray[Any]) -> NDArray[Any]:
    sizes = _F8[:0x7F]
    size = np.minimum(np.abs(values), 448.0)
    above = np.searchsorted(sizes, size).clip(1, len(sizes) - 1)
    low, high = sizes[above - 1], sizes[above]
    tie_up = (above & 1) == 0
    up = (size - low > high - size) | ((size - low == high - size) & tie_up)
    codes = np.where(up, above, above - 1).astype(np.uint8)
    codes = np.where(np.signbit(values), codes | np.uint8(0x80), codes)
    return np.where(np.isnan(values), np.uint8(0x7F), codes)
