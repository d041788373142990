"""Branches that data decide: how long the row of a sparse matrix is, and which of the compiler's loops it takes.

A predictor knows how often a branch has gone either way so far at the same iteration of its loop, since it tells
iterations apart by their history (Seznec, Michaud, "A case for (partially) tagged geometric history length branch
prediction", JILP 8, 2006). For random lengths, nothing else helps: in each iteration it predicts the more frequent
outcome, and is wrong whenever the other one comes. A launch that repeats the one before finds some of these branches
remembered: all if they are few, otherwise as many as the core has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from roofdsl.lang.record import Record


class OverData(Record):
    """How a launch goes through the data of index arrays.

    remembered: the share of its mispredictions that it avoids, since the core remembers the launch before. scale: the
    factor by which the whole loop over the data is longer than the part that is walked.
    """

    remembered: float = 0.0
    scale: float = 1.0


ALL = OverData()


class DataBranches:
    """What a predictor has seen of a launch's branches. remembered: as in `OverData`.

    guessed_wrong: the mispredictions of a core that remembers nothing, without those of loops that are too long for it
    in any case.
    """

    def __init__(self, remembered: float) -> None:
        self.remembered = remembered
        self.guessed_wrong = 0
        self.owed = 0.0
        self.lengths: dict[int, Counter[int]] = {}
        self.outcomes: dict[Hashable, Counter[bool]] = {}
        self.last: dict[int, bool] = {}

    def left(self, loop: int, total: int, most: int) -> int:
        """The mispredictions of the end of a loop of `total` iterations: at its last iteration, and too early.

        most: the iterations up to which the end of a loop is predicted at all.
        """
        seen = self.lengths.setdefault(loop, Counter())
        longer = sum(count for length, count in seen.items() if length >= total)
        wrong = 0
        if longer:
            # in each iteration, the loop is expected to end if it has ended there more often than it went on
            going_on = longer - seen[total]
            wrong = int(seen[total] <= going_on)
        elif seen:
            wrong = 1  # it never was so long
        # Earlier, the loop is expected to end wherever it ended more often than it went on.
        rest = sum(seen.values())
        for length in sorted(length for length in seen if length < total):
            rest -= seen[length]
            wrong += seen[length] > rest
        seen[total] += 1
        never = int(total > most)
        return never + self._forgotten(max(0, wrong - never))

    def branched(self, block: int, taken: bool) -> bool:
        """Whether a branch that leaves no loop is mispredicted, given how it went after the same last outcome."""
        seen = self.outcomes.setdefault((block, self.last.get(block)), Counter())
        wrong = seen[not taken] > seen[taken]
        seen[taken] += 1
        self.last[block] = taken
        return self._forgotten(int(wrong)) > 0

    def _forgotten(self, wrong: int) -> int:
        """How many of these mispredictions are not avoided. Fractions are carried over to the next ones."""
        self.guessed_wrong += wrong
        self.owed += wrong * (1 - self.remembered)
        now = int(self.owed)
        self.owed -= now
        return now
