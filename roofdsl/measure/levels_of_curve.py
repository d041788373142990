"""Memory levels read off a bandwidth curve: a flat part is a level, and a capacity ends where the curve falls.

The functions take and return plain numbers; the tests use curves with known levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

from roofdsl.measure.timing import median

FLAT = 0.08
"""The rate of a plateau falls by at most this part from its first point to its last."""

STEP = 0.88
"""The slower of two neighboring plateaus has at most this share of the faster one's rate; otherwise they are one."""

LEAST_OCTAVES = 1.9
"""The least width of a plateau, in factors of two; anything narrower is the slope between two plateaus."""


CLOSE = 1.3
"""A cache may differ from the capacity seen in the curve by this factor: other data, other tenants, page colors."""


@dataclass(frozen=True)
class Plateau:
    """A level: the median rate of its working sets (from first to last).

    capacity_bytes: the working set at which the curve crosses the geometric mean of the rates at the first points of
    this level and of the next one, between the measured working sets `between_bytes`; None for the last level.
    """

    bytes_per_s: float
    first_bytes: int
    last_bytes: int
    capacity_bytes: int | None
    between_bytes: tuple[int, int] | None = None

    def could_end_at(self, size_bytes: int) -> bool:
        """Whether a cache of this size explains the step: its size is between the two working sets, or nearly so."""
        if self.between_bytes is None:
            return False
        low, high = self.between_bytes
        return low / CLOSE <= size_bytes <= high * CLOSE


def envelope(rates: Sequence[float]) -> list[float]:
    """For each working set, the best rate of it and all larger ones.

    A smaller working set streams no slower, so a point below a later one was disturbed (or its calls are so short that
    their overhead counts); noise makes rates lower, never higher.
    """
    result: list[float] = []
    best = 0.0
    for rate in reversed(rates):
        best = max(best, rate)
        result.append(best)
    return result[::-1]


def plateaus(sizes: Sequence[int], rates: Sequence[float]) -> tuple[Plateau, ...]:
    """The levels of a curve: working sets in bytes, ascending, and the bytes per second of each.

    Raises ValueError if the two have different lengths, are empty, or the sizes do not ascend.
    """
    if len(sizes) != len(rates) or not sizes or any(a >= b for a, b in pairwise(sizes)):
        raise ValueError("a curve is of ascending sizes with one rate each")
    curve = envelope(rates)
    runs = _merged(_flat_runs(sizes, curve), curve)
    found = []
    for k, (first, last) in enumerate(runs):
        following = runs[k + 1][0] if k + 1 < len(runs) else None
        level = _rate(curve, (first, last))
        if following is None:
            found.append(Plateau(level, sizes[first], sizes[last], None))
            continue
        at, capacity = _crossing(sizes, curve, first, last, following)
        found.append(Plateau(level, sizes[first], sizes[last], capacity, (sizes[at], sizes[at + 1])))
    return tuple(found)


def _flat_runs(sizes: Sequence[int], curve: Sequence[float]) -> list[tuple[int, int]]:
    """(first, last) of the widest flat stretches that do not overlap; the end of the curve always belongs to one."""
    stretches = []
    for first in range(len(sizes)):
        last = first
        while last + 1 < len(sizes) and curve[last + 1] >= (1 - FLAT) * curve[first]:
            last += 1
        stretches.append((first, last))
    end = len(sizes) - 1
    stretches = [s for s in stretches if log(sizes[s[1]] / sizes[s[0]], 2) >= LEAST_OCTAVES or s[1] == end]
    tail = min(s for s in stretches if s[1] == end)
    chosen = [tail]
    for stretch in sorted(stretches, key=lambda s: (-log(sizes[s[1]] / sizes[s[0]]), s[0])):
        if all(stretch[1] < a or stretch[0] > b for a, b in chosen):
            chosen.append(stretch)
    return sorted(chosen)


def _merged(runs: Sequence[tuple[int, int]], curve: Sequence[float]) -> list[tuple[int, int]]:
    """The runs, with neighbors merged if their rates are nearly the same."""
    result: list[tuple[int, int]] = []
    for run in runs:
        if result and _rate(curve, run) > STEP * _rate(curve, result[-1]):
            result[-1] = (result[-1][0], run[1])
        else:
            result.append(run)
    return result


def _rate(curve: Sequence[float], run: tuple[int, int]) -> float:
    """The median rate of a run, which ignores disturbed points and the slope next to it."""
    return median(curve[run[0] : run[1] + 1])


def _crossing(sizes: Sequence[int], curve: Sequence[float], first: int, last: int, following: int) -> tuple[int, int]:
    """(k, working set): the curve passes half of the step after point k, at that working set on logarithmic axes."""
    half = sqrt(curve[first] * curve[following])
    for k in range(last, following):
        if curve[k] >= half > curve[k + 1]:
            part = log(curve[k] / half) / log(curve[k] / curve[k + 1])
            return k, round(exp(log(sizes[k]) + part * log(sizes[k + 1] / sizes[k])))
    return last, sizes[last]
