"""Whether a result is the same in every run, or depends on the circumstances of this one."""

from __future__ import annotations

from typing import NamedTuple

_counts = {"clock": 0, "chance": 0}


class Seen(NamedTuple):
    """How often something was decided by a limit of time, and by what another try may not meet."""

    clock: int
    chance: int


def decided_by_clock() -> None:
    """Says that what is being found depends on how much could be done in a limited time: it is kept for a day only."""
    _counts["clock"] += 1


def decided_by_chance() -> None:
    """Says that what is being found depends on what another try may not meet (want of memory, say): it is not kept."""
    _counts["chance"] += 1


def seen() -> Seen:
    """All of it in this process until now."""
    return Seen(**_counts)


def since(before: Seen) -> Seen:
    """What was seen after `before`."""
    return Seen(_counts["clock"] - before.clock, _counts["chance"] - before.chance)
