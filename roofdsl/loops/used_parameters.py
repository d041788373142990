"""Which parameters of a kernel are used. The others are left out of integer sets, whose cost grows with each."""

from __future__ import annotations

from functools import lru_cache

from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel


@lru_cache(maxsize=64)
def used_parameters(kernel: Kernel) -> tuple[str, ...]:
    """The parameters that occur in the kernel's loops, accesses, shapes, assumptions or directives, in their order."""
    texts: set[str] = set()
    pending: list[object] = [kernel.arrays, kernel.assumptions, kernel.directives, kernel.body]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            texts.add(each)
        elif isinstance(each, Record):
            pending += [getattr(each, name) for name in each.__match_args__ if name not in {"source", "span"}]
        elif isinstance(each, (tuple, list, frozenset, set)):
            pending += each
        elif isinstance(each, dict):
            pending += [*each, *each.values()]
    return tuple(p.name for p in kernel.parameters if p.name in texts)
