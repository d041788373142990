"""Which values of a growing parameter the assumptions of kernels allow: the first and the last of a range.

MOST_STEPS neighboring values are tried one by one. Farther away, stretches of WINDOW values are tried, each an eighth
farther out than the one before, and bisection finds where the allowed values begin or end: those with `n >= 50000` and
`n % 64 == 0`, for example. Values that are allowed only in narrower ranges, or in rarer places, may not be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

MOST_STEPS = 10_000
"""The number of neighboring values that are all tried."""

WINDOW = 128
"""The number of neighboring values that are tried farther away."""

FARTHEST = 2**62
"""The largest value of a parameter."""

Allowed = Callable[[int], bool]


def first_allowed(allowed: Allowed, first: int, last: int | None) -> int | None:
    """The least allowed value from `first` to `last` (None: no end); None if none is found."""
    last = FARTHEST if last is None else last
    low = first + MOST_STEPS  # nothing before `low` is allowed, once these values are tried
    found = _any(allowed, range(first, min(low, last + 1)))
    if found is not None:
        return found
    at = low
    while found is None and at <= last:
        found = _any(allowed, range(at, min(at + WINDOW, last + 1)))
        if found is None:
            low, at = at + 1, max(at + WINDOW, min(at + at // 8, last - WINDOW + 1))
    while found is not None and found - low > WINDOW:
        middle = (low + found) // 2
        nearer = _any(allowed, range(middle, min(middle + WINDOW, found)))
        low, found = (middle, found) if nearer is None else (low, nearer)
    nearer = None if found is None else _any(allowed, range(low, found))
    return found if nearer is None else nearer


def last_allowed(allowed: Allowed, first: int, last: int) -> int:
    """The greatest allowed value from `first`, which is allowed, to `last`."""
    found = _any(allowed, range(last, max(first, last - MOST_STEPS), -1))
    if found is not None:
        return found
    found, high = first, max(first, last - MOST_STEPS)
    while high - found > WINDOW:
        middle = (found + high) // 2
        farther = _any(allowed, range(min(middle + WINDOW, high), middle, -1))
        found, high = (found, middle) if farther is None else (farther, high)
    farther = _any(allowed, range(high, found, -1))
    return found if farther is None else farther


def _any(allowed: Allowed, values: Iterable[int]) -> int | None:
    return next((n for n in values if allowed(n)), None)
