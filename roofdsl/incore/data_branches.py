"""Branches that data decide: how long the row of a sparse matrix is, and which of the compiler's loops it takes.

A predictor knows how often a branch has gone either way so far at the same iteration of its loop, since it tells
iterations apart by their history (Seznec, Michaud, "A case for (partially) tagged geometric history length branch
prediction", JILP 8, 2006). For random lengths, nothing else helps: in each iteration it predicts the more frequent
outcome, and is wrong whenever the other one comes. If a launch has few enough such branches, the core has learned them
all from the launch before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from roofdsl.lang.record import Record


class OverData(Record):
    """How a launch goes through the data of index arrays: the iterations of its loop over them, and the factor by which
    the whole loop is longer than the part that is walked.
    """

    iterations: int = 0
    scale: float = 1.0


ALL = OverData()


class DataBranches:
    """What a predictor has seen of a launch's branches. known: whether it knows them all from the launch before."""

    def __init__(self, known: bool) -> None:
        self.known = known
        self.lengths: dict[int, Counter[int]] = {}
        self.outcomes: dict[Hashable, Counter[bool]] = {}
        self.last: dict[int, bool] = {}

    def left(self, loop: int, total: int, most: int) -> int:
        """The mispredictions of the end of a loop of `total` iterations: at its last iteration, and too early.

        most: the iterations up to which the end of a loop is predicted at all.
        """
        if self.known:
            return int(total > most)
        seen = self.lengths.setdefault(loop, Counter())
        longer = sum(count for length, count in seen.items() if length >= total)
        wrong = 0
        if longer:
            # in each iteration, the loop is expected to end if it has ended there more often than it went on
            going_on = longer - seen[total]
            wrong = int(seen[total] <= going_on)
        elif seen:
            wrong = 1  # it never was so long
        rest = sum(seen.values())
        for length in sorted(length for length in seen if length < total):
            rest -= seen[length]
            wrong += seen[length] > rest
        if total > most:
            wrong = max(wrong, 1)
        seen[total] += 1
        return wrong

    def branched(self, block: int, taken: bool) -> bool:
        """Whether a branch that leaves no loop is mispredicted, given how it went after the same last outcome."""
        seen = self.outcomes.setdefault((block, self.last.get(block)), Counter())
        wrong = seen[not taken] > seen[taken]
        seen[taken] += 1
        self.last[block] = taken
        return wrong and not self.known
