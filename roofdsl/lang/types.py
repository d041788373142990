"""The element types of the language: sizes, kinds, and the type of an operation (rule 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Literal

from roofdsl.lang.record import Record

Kind = Literal["float", "int", "complex"]


class ElementType(Record):
    """A type an array or scalar can have. `bytes` is its size in memory."""

    name: str
    kind: Kind
    bytes: int
    rank: int  # orders the floats (and the integers) from narrow to wide

    def __str__(self) -> str:
        return self.name

    @property
    def component(self) -> ElementType:
        """The real type that complex arithmetic counts as; a real type itself."""
        return {"c128": TYPES["f64"], "c64": TYPES["f32"]}.get(self.name, self)


TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("f8", "float", 1, 1),
        ElementType("f16", "float", 2, 2),
        ElementType("bf16", "float", 2, 2),
        ElementType("tf32", "float", 4, 3),
        ElementType("f32", "float", 4, 4),
        ElementType("f64", "float", 8, 5),
        ElementType("i8", "int", 1, 1),
        ElementType("i16", "int", 2, 2),
        ElementType("i32", "int", 4, 3),
        ElementType("i64", "int", 8, 4),
        ElementType("c64", "complex", 8, 4),
        ElementType("c128", "complex", 16, 5),
    )
}


def widest(a: ElementType, b: ElementType) -> ElementType:
    """The type of an operation on `a` and `b` (docs/rules.md, rule 6)."""
    if a == b:
        return a
    if "complex" in (a.kind, b.kind):
        real = widest(_real(a), _real(b))
        return TYPES["c128"] if real.rank >= TYPES["f64"].rank and real.kind == "float" else TYPES["c64"]
    if a.kind != b.kind:
        return a if a.kind == "float" else b
    if a.rank == b.rank:  # bf16 with f16
        return TYPES["f32"]
    return a if a.rank > b.rank else b


def _real(t: ElementType) -> ElementType:
    return t.component if t.kind == "complex" else t


def widest_of(types: Iterable[ElementType | None]) -> ElementType | None:
    """The widest of the types that are not None; None if none is (numbers, parameters, loop variables)."""
    known = [t for t in types if t is not None]
    return reduce(widest, known) if known else None


def joined(operands: Sequence[tuple[ElementType | None, bool]]) -> ElementType | None:
    """The type of an operation: the widest of its operands, and f64 for integers and a fraction (docs/rules.md, rules 6
    and 7).

    operands: the type of each and whether it may have a fraction, which matters only for plain numbers, without a type.
    None if no operand has a type.
    """
    result = widest_of(type_ for type_, _ in operands)
    fraction = any(type_ is None and may_have for type_, may_have in operands)
    return TYPES["f64"] if fraction and result is not None and result.kind == "int" else result
