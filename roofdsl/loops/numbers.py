"""Numbers in place of some parameters of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import ElementType
from roofdsl.loops.integers import Condition, Const, IntExpr
from roofdsl.loops.model import Kernel


def with_numbers(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    """The kernel with these numbers wherever the parameters stand; they remain its parameters.

    The kernel's directives must have been applied.
    """
    if kernel.directives:
        raise ValueError("apply the directives first (roofdsl.loops.transform.apply)")
    numbers = {name: Const(value) for name, value in sizes.items()}
    changed = {name: _changed(getattr(kernel, name), numbers) for name in ("arrays", "assumptions", "body")}
    return replace(kernel, **changed)


def _changed(part: Any, numbers: Mapping[str, IntExpr]) -> Any:
    if isinstance(part, IntExpr | Condition):
        return part.substitute(numbers)
    if type(part) is tuple:
        return tuple(_changed(p, numbers) for p in part)
    if isinstance(part, Record) and not isinstance(part, Source | ElementType):
        fields = {n: getattr(part, n) for n in part.__match_args__ if n != "span"}
        return replace(part, **{n: _changed(value, numbers) for n, value in fields.items()})
    return part
