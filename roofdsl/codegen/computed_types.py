"""The type in which the generated code computes a value (`storage` says how elements are stored in memory).

Reduced floats (f16, bf16, f8) are computed in single precision and rounded when they are stored; tf32 is stored and
computed as f32; i8 and i16 are computed in 32 bits. The generated conversions are in `python_functions.py` for Python,
`clike.py` for C, and `targets/cuda.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.types import TYPES, ElementType, widest
from roofdsl.loops.model import (
    Binary,
    Call,
    DataCompare,
    Element,
    Expr,
    IntValue,
    LetRef,
    Number,
    ScalarRef,
    Select,
    Unary,
)

Computed = Literal["f64", "f32", "i64", "i32", "c64", "c128"]
Kind = Computed | Literal["whole", "plain"]
"""`whole`: integers from parameters, loop variables and numbers; `plain`: other numbers without a type of their own."""

COMPUTED: dict[str, Computed] = {
    "f64": "f64", "f32": "f32", "tf32": "f32", "f16": "f32", "bf16": "f32", "f8": "f32",
    "i64": "i64", "i32": "i32", "i16": "i32", "i8": "i32", "c64": "c64", "c128": "c128",
}  # fmt: skip

REDUCED = frozenset(("f16", "bf16", "f8"))
"""Types whose elements are stored as bit patterns; helpers widen and round them."""


def computed(type_: ElementType) -> Computed:
    """The type a value of this element type is computed in."""
    return COMPUTED[type_.name]


def component(kind: Computed) -> Computed:
    """The real type of the parts of a complex type; a real type itself."""
    return {"c128": "f64", "c64": "f32"}.get(kind, kind)  # type: ignore[return-value]


def is_complex(kind: Kind) -> bool:
    return kind in ("c64", "c128")


def kind_of(value: Expr) -> Kind:
    """The type in which a value is computed: the widest of its operands (docs/rules.md, rules 6 and 7).

    A fraction combined with an integer type is f64, so that 0.5 times an i32 is not zero.
    """
    match value:
        case Element(array) | ScalarRef(array):
            return computed(array.type)
        case LetRef(_, type_):
            return computed(type_)
        case Number(number):
            return "whole" if isinstance(number, int) else "plain"
        case IntValue():
            return "whole"
        case Unary(_, operand):
            return kind_of(operand)
        case Binary("**", left, _):
            return kind_of(left)
        case Binary(op, left, right):
            joined = join((kind_of(left), kind_of(right)))
            return "plain" if joined == "whole" and op == "/" else joined
        case Call(function, args):
            joined = join(kind_of(a) for a in args)
            gives = FUNCTIONS[function].gives
            if gives == "component":
                return component(joined) if joined not in ("whole", "plain") else joined  # type: ignore[arg-type]
            if gives == "fraction" and joined in ("whole", "i32", "i64"):
                return "plain" if joined == "whole" else "f64"
            return joined
        case Select(_, if_true, if_false):
            return join((kind_of(if_true), kind_of(if_false)))
    raise TypeError(value)


def compared_in(condition: DataCompare) -> Computed:
    """The type in which two values are compared."""
    return settled(join((kind_of(condition.left), kind_of(condition.right))))


def settled(kind: Kind) -> Computed:
    """The type itself, or f64 for values without a type of their own."""
    return "f64" if kind in ("whole", "plain") else kind  # type: ignore[return-value]


def join(kinds: Iterable[Kind]) -> Kind:
    """The type of an operation on values of these types."""
    result: Kind = "whole"
    for kind in kinds:
        result = _join(result, kind)
    return result


def _join(a: Kind, b: Kind) -> Kind:
    if a == "whole" or b == "whole":
        return b if a == "whole" else a
    if a == "plain" or b == "plain":
        other = b if a == "plain" else a
        return "f64" if other in ("i32", "i64") else other
    return COMPUTED[widest(TYPES[a], TYPES[b]).name]
