"""The arrays on which kernels are timed: aligned to lines, as the model assumes, and restored between samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.loops.array_placement import PAGE, offset
from roofdsl.loops.model import Kernel
from roofdsl.measure.timing import Call

Arrays = Mapping[str, NDArray[Any]]


def aligned(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Copies that begin on a line, array k at another line of its page than array k - 1 (`array_placement`)."""
    return {name: _aligned(array, offset(k)) for k, (name, array) in enumerate(arrays.items())}


def _aligned(array: NDArray[Any], offset: int) -> NDArray[Any]:
    block = np.empty(array.nbytes + 2 * PAGE, np.uint8)
    start = -block.ctypes.data % PAGE + offset
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    copy = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    copy[...] = array
    return copy


class Restorer:
    """Restores what a kernel updates (`inout`), so that every sample starts from the same numbers.

    Otherwise repeated updates could lead to infinities or denormal numbers, which take different times. `lasting` says
    how many calls in a row are safe from that. A program has several kernels, each with arrays of its own.
    """

    def __init__(self, *updating: tuple[Kernel, Arrays]) -> None:
        self.pairs = [
            (arrays[a.name], arrays[a.name].copy(order="K"))
            for kernel, arrays in updating
            for a in kernel.arrays
            if a.intent == "inout" and a.name in arrays
        ]

    def __call__(self) -> None:
        for array, before in self.pairs:
            np.copyto(array, before)

    def lasting(self, run: Call, calls: int) -> int:
        """The most calls in a row, `calls` or that halved repeatedly, after which the updated arrays have no more
        denormal, infinite or zero numbers than after one call. Restores the arrays.

        For example, each call of a triangular solver divides its right side by the diagonal once more: after two
        hundred calls, it has only denormal numbers, and takes four times as long.
        """
        if not self.pairs:
            return calls
        self()
        run()
        once = [_odd(array) for array, _ in self.pairs]
        many = calls
        while many > 1:
            self()
            for _ in range(many):
                run()
            if all(_odd(array) <= most for (array, _), most in zip(self.pairs, once, strict=True)):
                break
            many //= 2
        self()
        return many


def _odd(array: NDArray[Any]) -> int:
    """The count of numbers that are zero, denormal, infinite or NaN; 0 for formats that are stored as integers."""
    if array.dtype.kind not in "fc":
        return 0
    parts = array.reshape(-1, order="A").view(array.real.dtype)
    return int(np.count_nonzero(~(np.abs(parts) >= np.finfo(parts.dtype).tiny) | np.isinf(parts)))


def total_bytes(arrays: Arrays) -> int:
    """The total bytes of the arrays."""
    return sum(a.nbytes for a in arrays.values())
