"""Memory levels read off a bandwidth curve: where it is flat there is a level, where it falls a capacity ends.

Plain numbers in, plain numbers out; the tests feed curves of which the levels are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

from roofdsl.measure.timing import median

FLAT = 0.08
"""A plateau falls by no more than this part from its first point to its last."""

STEP = 0.88
"""Of neighbouring plateaus the slower one has at most this part of the faster one's rate; else they are one."""

LEAST_OCTAVES = 1.9
"""A plateau is at least this wide, in factors of two; what is narrower is the slope between two."""


CLOSE = 1.3
"""A cache may be this much larger or smaller than where its step is seen: other data, other tenants, page colours."""


@dataclass(frozen=True)
class Plateau:
    """A level: the median rate of the working sets (from first to last) that are in it.

    capacity_bytes: where the curve crosses the geometric mean of this rate and the next level's, between the measured
    working sets `between_bytes`; None for the last.
    """

    bytes_per_s: float
    first_bytes: int
    last_bytes: int
    capacity_bytes: int | None
    between_bytes: tuple[int, int] | None = None

    def could_end_at(self, size_bytes: int) -> bool:
        """Whether a cache of this size explains the step: it lies between the two working sets, or nearly so."""
        if self.between_bytes is None:
            return False
        low, high = self.between_bytes
        return low / CLOSE <= size_bytes <= high * CLOSE


def envelope(rates: Sequence[float]) -> list[float]:
    """For each working set the best rate of it and all larger ones.

    A set that is no larger streams no slower, so a point below a later one was disturbed (or is so short that its
    calls' own overhead counts); noise makes rates lower, never higher.
    """
    result: list[float] = []
    best = 0.0
    for rate in reversed(rates):
        best = max(best, rate)
        result.append(best)
    return result[::-1]


def plateaus(sizes: Sequence[int], rates: Sequence[float]) -> tuple[Plateau, ...]:
    """The levels of a curve: working sets in bytes, ascending, and the bytes per second of each.

    Raises ValueError where the two are not equally many, or the sizes do not ascend.
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
    """Neighbours whose rates are nearly the same are one level."""
    result: list[tuple[int, int]] = []
    for run in runs:
        if result and _rate(curve, run) > STEP * _rate(curve, result[-1]):
            result[-1] = (result[-1][0], run[1])
        else:
            result.append(run)
    return result


def _rate(curve: Sequence[float], run: tuple[int, int]) -> float:
    """The median rate from one point to another: neither a disturbed neighbour's nor that of the slope beside."""
    return median(curve[run[0] : run[1] + 1])


def _crossing(sizes: Sequence[int], curve: Sequence[float], first: int, last: int, following: int) -> tuple[int, int]:
    """(k, working set): after point k the curve passes half of the step, on logarithmic axes at that working set."""
    half = sqrt(curve[first] * curve[following])
    for k in range(last, following):
        if curve[k] >= half > curve[k + 1]:
            part = log(curve[k] / half) / log(curve[k] / curve[k + 1])
            return k, round(exp(log(sizes[k]) + part * log(sizes[k + 1] / sizes[k])))
    return last, sizes[last]
