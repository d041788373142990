"""The same kernel on another data type: its single floating-point type is replaced everywhere."""

from __future__ import annotations

from typing import Any, TypeVar

from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source, Span
from roofdsl.lang.types import TYPES, ElementType
from roofdsl.loops.model import Kernel

T = TypeVar("T")


def own_type(kernel: Kernel) -> ElementType | None:
    """The floating-point type of all arrays and scalars, if they share one and the kernel computes in it; else None."""
    types = {a.type for a in kernel.arrays}
    if len(types) != 1 or kernel.compute_type is not None:
        return None
    (only,) = types
    return only if only.kind == "float" else None


def retyped(kernel: Kernel, type_name: str) -> Kernel:
    """`kernel` with all its data in type `type_name`. Raises ValueError for a kernel without a type of its own."""
    old, new = own_type(kernel), TYPES[type_name]
    if old is None:
        raise ValueError(f"the data and operations of kernel {kernel.name} do not share one floating-point type")
    body = tuple(_swapped(node, old, new) for node in kernel.body)
    return replace(kernel, arrays=tuple(_swapped(a, old, new) for a in kernel.arrays), body=body)


def _swapped(node: T, old: ElementType, new: ElementType) -> T:
    """A tree of records and tuples with one element type replaced."""
    found: Any = node
    if found == old and isinstance(found, ElementType):
        found = new
    elif isinstance(found, tuple) and not isinstance(found, Span):
        found = tuple(_swapped(child, old, new) for child in found)
    elif isinstance(found, Record) and not isinstance(found, (Source, ElementType)):
        changed = {name: _swapped(getattr(found, name), old, new) for name in found.__match_args__}
        found = replace(found, **changed)
    return found  # type: ignore[no-any-return]
