"""Runs a computation on parts of the iterations, which are cut until every comparison has one result in each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from roofdsl.counts.lines.cells import Cell, NeedsBlocks, Split
from roofdsl.counts.lines.symbolic import Undecided

T = TypeVar("T")


def explore(cell: Cell, compute: Callable[[Cell], T]) -> Iterator[tuple[Cell, T]]:
    """The part in pieces on which all comparisons of `compute` are decided, each with its result. Raises Undecided."""
    pending = [cell]
    while pending:
        at = pending.pop()
        try:
            found = compute(at)
        except (Split, NeedsBlocks) as split:
            parts = at.parts(split)
            if any(part is at for part in parts):  # several constraints together decide it, but none of them alone
                raise Undecided("a comparison that is hard to decide") from None
            pending += parts
            continue
        yield at, found
