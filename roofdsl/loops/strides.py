"""How far apart elements are along the rows of their array: from one iteration to the next, or one from another."""

from __future__ import annotations

from typing import Literal

from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, sub
from roofdsl.loops.model import Element, For

Stride = Literal["unit", "none", "strided", "irregular"]
"""How an access moves along a loop: to the next element, not at all, further, or in an unknown way."""


def stride_of(element: Element, loop: For | None) -> tuple[Stride, int]:
    """How the element moves along the loop, and by how many elements if along the fastest dimension only (else 0)."""
    if loop is None:
        return "none", 0
    fastest = 0 if element.array.column_major else len(element.subscripts) - 1
    forms = [affine(s) for s in element.subscripts]
    if any(loop.var in form.hidden() for form in forms):
        return "irregular", 0
    steps = [form.coefficients().get(loop.var, 0) for form in forms]
    if any(step for k, step in enumerate(steps) if k != fastest):
        return "strided", 0
    step = steps[fastest] * (loop.step.value if isinstance(loop.step, Const) else 0)
    if not steps[fastest]:
        return "none", 0
    return ("unit" if step == 1 else "strided"), step


def apart_in_a_row(element: Element, other: Element) -> int | None:
    """By how many elements the first is ahead of the other, both of one array; None if they are in different rows, or
    if their distance is not always the same number. The number of rows between two elements is not a number of bytes.
    """
    apart = [affine(sub(a, b)) for a, b in zip(element.subscripts, other.subscripts, strict=True)]
    within = apart.pop(0 if element.array.column_major else -1)
    if within.terms or any(rows.terms or rows.constant for rows in apart):
        return None
    return within.constant
