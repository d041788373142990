"""The part of a shared cache that one core keeps, read off the rates of streams that outgrow the cache.

The last cache of a server is shared with other cores, and in a virtual machine with other tenants, of which the system
shows nothing. Its whole size then does not tell what a stream finds there again. Each stream that is too long for the
cache, but not yet as slow as memory, gives an estimate of what the cache holds (`machine.kept`). The median of all
estimates counts, so a few disturbed ones do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from roofdsl.machine.kept import capacity_of
from roofdsl.measure.bandwidth_curve import PATTERNS, Pattern, Sweep
from roofdsl.measure.timing import median

BETWEEN = (0.1, 0.9)
"""The shares of lost lines from which a capacity is derived. Outside this range, one percent of the rate would decide.
"""

LEAST_CONTRAST = 1.25
"""The cache must deliver at least this many times the rate of memory."""

LEAST = 3
"""The number of estimates needed; with fewer, only the ends of the curve's slope count."""

WHOLE = 0.8
"""A core that keeps at least this share of the reported size counts as having the cache to itself."""

UNIT = 1 << 20
"""The result is rounded to a multiple of this many bytes."""


def held_bytes(sweeps: Sequence[Sweep], near: tuple[float, float], far_from: float, whole: float) -> int | None:
    """Bytes that a core keeps of its last cache; None if that is (nearly) the whole, or the streams do not show it.

    sweeps: sweeps of the same cores at several times, the first over all working sets. near: the smallest and the
    largest working set in which a stream runs at this cache's rate. From `far_from` bytes on, it runs at the rate of
    memory.
    """
    found: list[float] = []
    ends: list[float] = []
    far_from = min(far_from, max(p.working_set_bytes for p in sweeps[0].points))
    for pattern in PATTERNS:
        near_s = _fastest_s(sweeps, pattern, *near)
        far_s = _fastest_s(sweeps, pattern, far_from, inf)
        if near_s is None or far_s is None or far_s < LEAST_CONTRAST * near_s:
            continue
        points = [p for sweep in sweeps for p in sweep.of(pattern) if p.working_set_bytes >= near[0]]
        # The time of a byte is a mean of this cache's and of memory's. The weight of memory's is the share of the
        # working set that the cache has lost.
        lost = [(p.working_set_bytes, (1 / p.bytes_per_s - near_s) / (far_s - near_s)) for p in points]
        found += [capacity_of(size, 1 - part) for size, part in lost if BETWEEN[0] <= part <= BETWEEN[1]]
        kept = [size for size, part in lost if part < BETWEEN[0]]
        gone = [size for size, part in lost if part > BETWEEN[1]]
        if kept and gone:
            ends.append((max(kept) * min(gone)) ** 0.5)
    if len(found) < LEAST:
        found = ends  # all or nothing, between two working sets
    if not found or median(found) >= WHOLE * whole:
        return None
    return max(1, round(median(found) / UNIT)) * UNIT


def _fastest_s(sweeps: Sequence[Sweep], pattern: Pattern, low: float, high: float) -> float | None:
    """Seconds per byte of the fastest stream among these working sets; None if none was measured."""
    best = [p.bytes_per_s for sweep in sweeps if (p := sweep.best(pattern, low, high)) is not None]
    return 1 / max(best) if best else None
