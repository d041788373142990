"""Arrays as kernels are timed on: beginning at line boundaries, as the model has them, and restored between samples."""

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
    """Copies of which each begins at a line boundary, array k at another line of its page than array k - 1.

    Equal offsets in the page would make loads wait for stores of other arrays that share their low address bits.
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
    """Puts back what a kernel updates (`inout`), so that every sample starts from the same numbers.

    Without it repeated updates could run into infinities or denormal numbers, which cost other times.
    """

    def __init__(self, kernel: Kernel, arrays: Arrays) -> None:
        updated = [a.name for a in kernel.arrays if a.intent == "inout"]
        self.pairs = [(arrays[name], arrays[name].copy(order="K")) for name in updated if name in arrays]

    def __call__(self) -> None:
        for array, before in self.pairs:
            np.copyto(array, before)


class Flusher:
    """Empties the caches by writing more than they hold."""

    def __init__(self, cache_bytes: int) -> None:
        self.block = np.ones(max(2 * cache_bytes, 1 << 20) // 8)

    def __call__(self) -> None:
        self.block += 1.0


def total_bytes(arrays: Arrays) -> int:
    """Bytes of all of them."""
    return sum(a.nbytes for a in arrays.values())
