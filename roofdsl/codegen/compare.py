"""Is what a generated kernel computed what the reference says, within the rounding of its types?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen.reference import Outcome
from roofdsl.codegen.storage import decode
from roofdsl.loops.model import Array, Kernel

SLACK = 4.0
"""Error bounds are for one order of the operations; another order may lead to a few times as much."""


@dataclass(frozen=True)
class Comparison:
    """How far a result is from the reference.

    max_error: the largest difference, over the largest size of a value in that array; of_allowed: the largest
    difference over what rounding allows there (at most 1 where `correct`); unverified: the share of elements about
    which the reference can say nothing. wrong: the worst element, in words; empty where all are right.
    """

    max_error: float
    of_allowed: float
    unverified: float
    wrong: str

    @property
    def correct(self) -> bool:
        return not self.wrong


def compare(
    got: Mapping[str, NDArray[Any]], want: Outcome, kernel: Kernel, inputs: Mapping[str, NDArray[Any]]
) -> Comparison:
    """Compares arrays as stored with the reference. `inputs` is what the kernel was given, poison included.

    Elements that the kernel does not write have to be as they were. A result of which nothing can be verified is
    wrong.
    """
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
        total += int((~untouched).sum())
        unknown += int((~checked & ~untouched).sum())
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
    if total and unknown == total:
        wrong = wrong or "nothing of the result can be verified: the reference is no number, or its error has no bound"
    return Comparison(max_error, of_allowed, unknown / total if total else 0.0, wrong)


def _difference(mine: NDArray[Any], want: Outcome, array: Array) -> tuple[NDArray[Any], NDArray[Any], float]:
    """(difference, what is allowed, the largest size of a value), a result that is no number infinitely far away."""
    right = want.values[array.name]
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(mine - right).astype(np.float64)
        allowed = SLACK * want.errors[array.name]
        sizes = np.abs(np.where(np.isfinite(allowed), right, 0)).astype(np.float64)
    return np.where(np.isnan(error), np.inf, error), allowed, float(sizes.max(initial=0.0))


def _changed(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Where two stored arrays differ; no number is equal to no number."""
    if a.dtype.kind in "fc":
        return np.asarray((a != b) & ~(np.isnan(a) & np.isnan(b)))
    return np.asarray(a != b)


def _place(array: Array, where: NDArray[np.bool_]) -> str:
    if array.is_scalar:
        return array.name
    first = np.argwhere(where)[0]
    return f"{array.name}[{', '.join(map(str, first))}]"
