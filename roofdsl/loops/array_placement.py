"""Where `measure` puts the arrays of a kernel: at lines of pages that are told apart by their low address bits.

With equal offsets in the page, loads would wait for stores to other arrays that share these bits, and lines of all
arrays would fall into the same sets of the first cache.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.loops.model import Kernel

PAGE, LINE = 4096, 64
APART = 5 * LINE
"""Bytes by which each array begins later in its page than the one before."""


def places(kernel: Kernel, values: Mapping[str, int], start: int = 0) -> dict[str, int]:
    """The address of each array, if the first one's pages begin at `start`; the pages themselves are assumed to follow
    each other.
    """
    found: dict[str, int] = {}
    free = start
    for k, array in enumerate(kernel.arrays):
        found[array.name] = free + offset(k)
        free += -(-(array.element_count(values) * array.type.bytes + 2 * PAGE) // PAGE) * PAGE
    return found


def offset(number: int) -> int:
    """The offset in its page of array number `number`, in the order of their declarations."""
    return APART * number % PAGE
