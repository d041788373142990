"""Whether one sample of times is larger than another: the rank test of Mann and Whitney.

H. B. Mann and D. R. Whitney, On a test of whether one of two random variables is stochastically larger than the other,
Annals of Mathematical Statistics 18 (1947). Ties have mid-ranks, with the variance corrected for them (E. L. Lehmann,
Nonparametrics, 1975, section 1.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import comb, erfc, sqrt

MOST_EXACT = 40
"""The distribution is counted exactly for at most this many times on each side, if no two are equal."""


def larger_p(before: Sequence[float], after: Sequence[float]) -> float:
    """The probability of ranks of `after` at least as high as these if both come from the same distribution.

    Small values mean that `after` is larger. It is exact for up to MOST_EXACT distinct numbers on each side, and
    otherwise the normal approximation with a correction for continuity. Raises ValueError for an empty sample.
    """
    m, n = len(before), len(after)
    if not m or not n:
        raise ValueError("a rank test of no times")
    twice_u, ties = _statistic(before, after)
    if not ties and max(m, n) <= MOST_EXACT:
        counts = _orders(m, n)
        return sum(counts[twice_u // 2 :]) / comb(m + n, m)
    whole = m + n
    variance = m * n / 12 * ((whole + 1) - sum(t**3 - t for t in ties) / (whole * (whole - 1)))
    if variance <= 0:  # all times are equal
        return 1.0
    return erfc((twice_u / 2 - m * n / 2 - 0.5) / sqrt(2 * variance)) / 2


def least_p(m: int, n: int) -> float:
    """The smallest probability that m times before and n after can give: all of the latter are larger."""
    return 1 / comb(m + n, m)


def _statistic(before: Sequence[float], after: Sequence[float]) -> tuple[int, list[int]]:
    """Twice U, the pairs in which `after` is larger, a tie counting half; and the sizes of groups of equal times."""
    marked = sorted([(t, 0) for t in before] + [(t, 1) for t in after])
    below = twice_u = 0
    ties = []
    for _, group in groupby(marked, key=lambda pair: pair[0]):
        kinds = [kind for _, kind in group]
        late, early = sum(kinds), len(kinds) - sum(kinds)
        twice_u += late * (2 * below + early)
        below += early
        if len(kinds) > 1:
            ties.append(len(kinds))
    return twice_u, ties


def _orders(m: int, n: int) -> list[int]:
    """For each value of U from 0 to mn, in how many orders of m and n times it occurs: the Gaussian binomial
    coefficient, as the product of (1 - q**(n+k)) / (1 - q**k) over k = 1 .. m.
    """
    counts = [1] + [0] * (m * n)
    for k in range(1, m + 1):
        for u in range(m * n, n + k - 1, -1):
            counts[u] -= counts[u - n - k]
        for u in range(k, m * n + 1):
            counts[u] += counts[u - k]
    return counts
