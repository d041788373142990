"""Whether a cache and its line can hold the elements of a kernel: the first check of every traffic analysis."""

from __future__ import annotations

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel


def check_cache(kernel: Kernel, cache_bytes: int | None, line_bytes: int | None) -> None:
    """Raises CommandError for a line that does not hold a whole number of elements of every array, and for a cache
    smaller than the largest line (docs/rules.md, rule 10).
    """
    arrays = [a for a in kernel.arrays if not a.is_scalar]
    for a in arrays:
        if line_bytes is not None and (line_bytes < a.type.bytes or line_bytes % a.type.bytes):
            raise CommandError(
                f"a line of {line_bytes} B does not hold a whole number of elements of {a.name} "
                f"({a.type}, {a.type.bytes} B)",
                "give a line that is a multiple of every element's size",
            )
    largest = max((line_bytes or a.type.bytes for a in arrays), default=0)
    if cache_bytes is not None and cache_bytes < largest:
        raise CommandError(
            f"a cache of {cache_bytes} B cannot hold a line of {largest} B", "give a larger cache or a smaller line"
        )
