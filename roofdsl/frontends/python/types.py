"""Element types as numpy has them: names, and the type of an operation (NEP 50)."""

from __future__ import annotations

from roofdsl.lang.types import TYPES, widest

NUMPY = {
    "float64": "f64", "double": "f64", "float_": "f64", "float32": "f32", "single": "f32", "float16": "f16",
    "half": "f16", "int64": "i64", "int_": "i64", "intp": "i64", "int32": "i32", "intc": "i32", "int16": "i16",
    "int8": "i8", "complex128": "c128", "complex64": "c64", "bool_": "bool", "bool": "bool",
}  # fmt: skip
"""Names of numpy's types."""

PYTHON = {"float": "f64", "int": "i64", "complex": "c128", "bool": "bool"}
"""Types of Python, where numpy takes them for its own."""

_INTS = ("i8", "i16", "i32", "i64")
_FLOATS = ("f16", "f32", "f64")
_COMPLEX = ("c64", "c128")
_FLOAT_OF_INT = {"i8": "f16", "i16": "f32", "i32": "f64", "i64": "f64"}
_COMPLEX_OF = {"f16": "c64", "f32": "c64", "f64": "c128"}


def kind(type_: str) -> str:
    """`bool`, `int`, `float` or `complex`."""
    return "bool" if type_ == "bool" else TYPES[type_].kind


def stored(type_: str) -> str:
    """The type in which numpy stores it: a byte for a truth value."""
    return "i8" if type_ == "bool" else type_


def promoted(a: str, b: str) -> str:
    """The type in which numpy computes with two of its arrays or scalars."""
    if a == b:
        return a
    if "bool" in (a, b):
        return b if a == "bool" else a
    known = (*_INTS, *_FLOATS, *_COMPLEX)
    if a not in known or b not in known:  # types that numpy does not have
        return widest(TYPES[a], TYPES[b]).name
    for group in (_INTS, _FLOATS, _COMPLEX):
        if a in group and b in group:
            return max(a, b, key=group.index)
    if a in _INTS or b in _INTS:
        whole, other = (a, b) if a in _INTS else (b, a)
        return promoted(_FLOAT_OF_INT[whole], other)
    real, other = (a, b) if a in _FLOATS else (b, a)
    return promoted(_COMPLEX_OF[real], other)


def with_weak(strong: str, weak: str) -> str:
    """The type of a numpy array or scalar combined with a Python number, whose type is `i64`, `f64` or `c128`."""
    order = {"bool": 0, "int": 1, "float": 2, "complex": 3}
    if order[kind(strong)] >= order[kind(weak)]:
        return strong
    if kind(weak) == "complex" and kind(strong) == "float":
        return _COMPLEX_OF[strong]
    return weak
