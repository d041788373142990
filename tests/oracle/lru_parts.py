"""The bytes that each of several parts of a kernel moves behind a fully associative LRU cache, by brute force."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

Accesses = Iterator[tuple[str, int, bool]]
"""Array, element of 8 bytes, and whether it is stored."""

LINE_BYTES = 64


def parts_behind(lines: int, parts: Iterable[Accesses]) -> list[tuple[int, int]]:
    """(loaded, stored) bytes of each part, which follow each other, behind a cache of so many lines. Stores load their
    lines first, and a line counts as stored by the part that changes it first.
    """
    cache: OrderedDict[tuple[str, int], bool] = OrderedDict()
    found = []
    for part in parts:
        loaded = stored = 0
        for array, element, is_store in part:
            line = (array, element * 8 // LINE_BYTES)
            if line not in cache:
                loaded += LINE_BYTES
                if len(cache) == lines:
                    cache.popitem(last=False)
                cache[line] = False
            cache.move_to_end(line)
            if is_store and not cache[line]:
                cache[line], stored = True, stored + LINE_BYTES
        found.append((loaded, stored))
    return found
