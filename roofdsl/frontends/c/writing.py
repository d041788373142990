"""Expressions of the language put together: parentheses where they bind too loosely, and words for types."""

from __future__ import annotations

from roofdsl.lang import tree

LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 4}


def level_of(e: tree.Expr) -> int:
    match e:
        case tree.Binary(op):
            return LEVELS[op]
        case tree.Unary():
            return 3
        case _:
            return 9


def grouped(e: tree.Expr, level: int) -> tree.Expr:
    """In parentheses where it binds less tightly than `level`."""
    return e if level_of(e) >= level else tree.Group(e, e.span)


def word(type_: str) -> str:
    words = {
        "f16": "half precision", "bf16": "bfloat16", "f32": "float", "f64": "double",
        "c64": "float complex", "c128": "double complex", "i8": "char", "i16": "short", "i32": "int", "i64": "long",
        "u32": "unsigned", "u64": "unsigned long",
    }  # fmt: skip
    return words.get(type_, "unsigned")
