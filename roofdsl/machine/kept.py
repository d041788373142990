"""How much of a working set a cache still holds when the same data are gone through again.

Under LRU it is all or nothing. A cache that many cores share, whose lines are hashed to slices and replaced by other
rules, loses a working set little by little. Random replacement describes that with one number, the capacity C: each
miss replaces a random one of N lines, so any other line survives it with probability 1 - 1/N. A pass over W bytes of
which the share h is found again replaces (1 - h) W bytes before a line is asked for again, hence h = exp(-(1 - h) W /
C).
"""

from __future__ import annotations

from math import exp, expm1, log

_ROUNDS = 100
"""More than the method needs for any ratio: the distance to the root at least halves in a round."""


def found_again(working_set: float, capacity: float) -> float:
    """The share of the lines that the next pass finds: the least h with h = exp(-(1 - h) W / C), 1 up to W = C."""
    if working_set <= capacity:
        return 1.0
    # Newton's method for the missed share u: u - 1 + exp(-u W / C) is convex, so from u = 1 it falls to the root.
    ratio, missed = working_set / capacity, 1.0
    for _ in range(_ROUNDS):
        excess = missed + expm1(-missed * ratio)
        if excess <= 0:
            break
        missed -= excess / (1 - ratio * exp(-missed * ratio))
    return 1 - missed


def capacity_of(working_set: float, found: float) -> float:
    """The capacity of which a pass over the working set finds this share, between 0 and 1, again."""
    return working_set * (1 - found) / -log(found)
