"""The unit of work for which in-core times are stated: a cache line's worth of iterations."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.incore.innermost_loops import loops_of
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized

LINE_BYTES = 64


def lines_of_work(kernel: Kernel, values: Mapping[str, int]) -> float:
    """Cache lines of work in one launch: iterations of the loop that runs most, over the elements of a line.

    The elements are those of the widest array, so a line of work is 8 iterations in f64. Raises TooHard.
    """
    at = sized(kernel, values)
    iterations = max((loop.iterations for loop in loops_of(at)), default=1)
    widest = max((array.type.bytes for array in at.kernel.arrays), default=8)
    return iterations * widest / LINE_BYTES
