"""Whether a result is the same in every run, or depends on the circumstances of this one."""

from __future__ import annotations

from typing import NamedTuple

_counts = {"clock": 0, "chance": 0}


class Seen(NamedTuple):
    """How often a limit of time decided something, and how often something that may not occur in another try."""

    clock: int
    chance: int


def decided_by_clock() -> None:
    """Records that a limit of time decided the current result: it is kept for a day only."""
    _counts["clock"] += 1


def decided_by_chance() -> None:
    """Records that something that may not occur in another try (lack of memory, for example) decided the current
    result: it is not kept.
    """
    _counts["chance"] += 1


def seen() -> Seen:
    """Everything recorded in this process so far."""
    return Seen(**_counts)


def since(before: Seen) -> Seen:
    """What was recorded after `before`."""
    return Seen(_counts["clock"] - before.clock, _counts["chance"] - before.chance)
