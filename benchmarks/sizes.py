"""Sizes of a kernel whose data take a given number of bytes."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.counts.traffic_at import access_count, footprint_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.sized import sized

FIXED = {"b": 16, "bi": 16, "bj": 16, "bk": 16, "bq": 16, "r": 3, "steps": 4}
"""Tile sizes and numbers of time steps, which do not grow with the data."""

STEP = 16
"""Extents are multiples of this, so that tiles divide them."""


def sizes_at(kernel: Kernel, scale: int) -> dict[str, int]:
    """STEP * scale for the parameters that grow, the others as FIXED or their defaults say.

    Those without a default grow; where all have one, those whose default is no smaller than STEP.
    """
    free = [p for p in kernel.parameters if p.name not in FIXED and p.default is None]
    if not free:
        free = [p for p in kernel.parameters if p.name not in FIXED and (p.default or 0) >= STEP]
    own = {p.name: FIXED.get(p.name, p.default or 0) for p in kernel.parameters}
    return own | {p.name: STEP * scale for p in free}


def sizes_for(kernel: Kernel, target_bytes: int) -> dict[str, int] | None:
    """The largest sizes whose data take at most `target_bytes`; None where the smallest take more, or nothing grows.

    Raises CommandError where the kernel's assumptions allow no such sizes.
    """
    if sizes_at(kernel, 1) == sizes_at(kernel, 2):
        return None

    def fits(scale: int) -> bool:
        return footprint_at(kernel, sizes_at(kernel, scale)) <= target_bytes

    if not fits(1):
        return None
    high = 2
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return sizes_at(kernel, low)


def accesses_at(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    """Array accesses of one launch."""
    return access_count(sized(kernel, sizes))


def is_legal(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether the kernel's assumptions allow these sizes."""
    try:
        numbers(kernel, sizes)
    except CommandError:
        return False
    return True
