"""`in_process`: as `functools.lru_cache`, without results that a limit cut short."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

from roofdsl import reproducibility

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def in_process(most: int) -> Callable[[Callable[[K], T]], Callable[[K], T]]:
    """Keeps the last `most` results of a function for as long as the process lives. Results that depend on a limit of
    time or on chance (`reproducibility`) are not kept: with more time, or in another try, they may be others.
    """

    def keeping(compute: Callable[[K], T]) -> Callable[[K], T]:
        kept: dict[K, T] = {}  # the last used at the end

        @wraps(compute)
        def found(key: K) -> T:
            if key in kept:
                kept[key] = result = kept.pop(key)
                return result
            before = reproducibility.seen()
            result = compute(key)
            if reproducibility.since(before) == reproducibility.Seen(0, 0):
                if len(kept) >= most:
                    del kept[next(iter(kept))]
                kept[key] = result
            return result

        return found

    return keeping
