"""The arrays on which kernels are timed: aligned to lines, as the model assumes, and restored between samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.loops.model import Kernel

Arrays = Mapping[str, NDArray[Any]]
_PAGE = 4096
_LINE = 64


def aligned(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Copies that begin at a line boundary, array k at another line of its page than array k - 1.

    With equal offsets in the page, loads would wait for stores to other arrays that share their low address bits.
    """
    return {name: _aligned(array, 5 * _LINE * k % _PAGE) for k, (name, array) in enumerate(arrays.items())}


def _aligned(array: NDArray[Any], offset: int) -> NDArray[Any]:
    block = np.empty(array.nbytes + 2 * _PAGE, np.uint8)
    start = -block.ctypes.data % _PAGE + offset
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    copy = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    copy[...] = array
    return copy


class Restorer:
    """Restores what a kernel updates (`inout`), so that every sample starts from the same numbers.

    Otherwise repeated updates could lead to infinities or denormal numbers, which take different times.
    """

    def __init__(self, kernel: Kernel, arrays: Arrays) -> None:
        updated = [a.name for a in kernel.arrays if a.intent == "inout"]
        self.pairs = [(arrays[name], arrays[name].copy(order="K")) for name in updated if name in arrays]

    def __call__(self) -> None:
        for array, before in self.pairs:
            np.copyto(array, before)


def total_bytes(arrays: Arrays) -> int:
    """The total bytes of the arrays."""
    return sum(a.nbytes for a in arrays.values())
