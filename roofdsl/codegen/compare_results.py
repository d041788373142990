"""Compares the results of a generated kernel with the reference, within the rounding of the kernel's types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen.reference import Outcome
from roofdsl.codegen.storage import decode
from roofdsl.loops.model import Array, Kernel

SLACK = 4.0
"""Error bounds assume one order of the operations; another order may increase the error by a small factor."""


@dataclass(frozen=True)
class Comparison:
    """How far a result is from the reference.

    max_error: the largest difference, relative to the largest size of a value in that array; of_allowed: the largest
    difference relative to what rounding allows there (at most 1 if nothing is `wrong`); unverified: the share of
    written elements that prove nothing. wrong: describes a wrong element of the first array that has one; empty if none
    is wrong. unverifiable: the arrays in which more than half of the written elements prove nothing, each with the
    reason.
    """

    max_error: float
    of_allowed: float
    unverified: float
    wrong: str
    unverifiable: Mapping[str, str] = field(default_factory=dict)

    @property
    def correct(self) -> bool:
        """Whether the comparison shows that the result is right: nothing is wrong, and an error would have been
        visible.
        """
        return not self.wrong and not self.unverifiable


def compare(
    got: Mapping[str, NDArray[Any]], want: Outcome, kernel: Kernel, inputs: Mapping[str, NDArray[Any]]
) -> Comparison:
    """Compare arrays as stored with the reference. `inputs` is what the kernel was given, poison included.

    Elements that the kernel does not write must be unchanged. An element proves nothing if the reference is not finite
    there or has no error bound, or if rounding may change it by more than its own size and the typical size in its
    array.
    """
    unverifiable: dict[str, str] = {}
    max_error = of_allowed = 0.0
    wrong = ""
    total = unknown = 0
    for array in kernel.arrays:
        if array.name not in want.values:
            continue
        shape = want.values[array.name].shape
        mine = decode(np.asarray(got[array.name]), array.type.name).reshape(shape)
        untouched = ~want.written[array.name]
        changed = _changed(np.asarray(got[array.name]), np.asarray(inputs[array.name])).reshape(shape) & untouched
        if changed.any():
            wrong = wrong or f"{_place(array, changed)} is changed, and the kernel does not write it"
            of_allowed = np.inf
        error, allowed, size = _difference(mine, want, array)
        checked = np.isfinite(allowed) & ~untouched
        told = checked & _tells(want.values[array.name], allowed, checked)
        written, silent = int((~untouched).sum()), int((~told & ~untouched).sum())
        total += written
        unknown += silent
        if 2 * silent > written:
            unverifiable[array.name] = _reason(want.values[array.name], allowed, ~told & ~untouched)
        if not checked.any():
            continue
        error = np.where(checked, error, 0.0)
        max_error = max(max_error, float(error.max()) / size if size else float(error.max()))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(error == 0, 0.0, error / np.where(checked, allowed, 1.0))
        if float(ratio.max()) > 1 and float(ratio.max()) > of_allowed:
            worst = tuple(int(i) for i in np.unravel_index(int(ratio.argmax()), shape))
            value, right = mine[worst], want.values[array.name][worst]
            limit = float(allowed[worst])
            wrong = (
                wrong
                or f"{_place(array, ratio == ratio.max())} is {value:.9g}, and {right:.9g} is right to {limit:.2g}"
            )
        of_allowed = max(of_allowed, float(ratio.max()))
    return Comparison(max_error, of_allowed, unknown / total if total else 0.0, wrong, unverifiable)


def _tells(right: NDArray[Any], allowed: NDArray[Any], checked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The elements whose allowed rounding error is small enough for the comparison to mean something.

    The limit is the element's own size or the typical size, whichever is larger, so that a sum which happens to cancel
    is compared with the size of others like it.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.where(checked, np.abs(right), 0.0).astype(np.float64)
    known = size[checked & (size > 0) & np.isfinite(size)]
    typical = float(np.median(known)) if known.size else 0.0
    return np.asarray(allowed <= np.maximum(size, typical))


def _reason(right: NDArray[Any], allowed: NDArray[Any], silent: NDArray[np.bool_]) -> str:
    """Why elements of an array prove nothing."""
    with np.errstate(invalid="ignore", over="ignore"):
        if not np.isfinite(right[silent]).any():
            return "the reference result is not a finite number there"
        least = float(np.min(allowed[silent]))
        largest = float(np.max(np.abs(right[silent]).astype(np.float64)))
    if not np.isfinite(least):
        return "the error of rounding has no bound there"
    return f"rounding alone may change it by {least:.2g}, and its largest value is {largest:.2g}"


def _difference(mine: NDArray[Any], want: Outcome, array: Array) -> tuple[NDArray[Any], NDArray[Any], float]:
    """(difference, allowed difference, the largest size of a value); a result that is not a number is infinitely far
    away.
    """
    right = want.values[array.name]
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(mine - right).astype(np.float64)
        allowed = SLACK * want.errors[array.name]
        sizes = np.abs(np.where(np.isfinite(allowed), right, 0)).astype(np.float64)
    return np.where(np.isnan(error), np.inf, error), allowed, float(sizes.max(initial=0.0))


def _changed(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Where two stored arrays differ; NaN counts as equal to NaN."""
    if a.dtype.kind in "fc":
        return np.asarray((a != b) & ~(np.isnan(a) & np.isnan(b)))
    return np.asarray(a != b)


def _place(array: Array, where: NDArray[np.bool_]) -> str:
    if array.is_scalar:
        return array.name
    first = np.argwhere(where)[0]
    return f"{array.name}[{', '.join(map(str, first))}]"
