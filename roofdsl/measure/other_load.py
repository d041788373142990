"""Processor time that other programs take during a measurement: whether the result says anything about the code."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from math import ceil

Seconds = Callable[[], float | None]
Clock = Callable[[], float]

BUSY = 0.25
"""If other programs keep this many cores busy, a measurement counts as disturbed. It equals the tolerance of
`validate`.
"""

SHORTEST_S = 0.5
"""The system counts in ticks of 10 ms, so the share of a core is not computed for a shorter time."""


def seconds_of_others() -> float | None:
    """The seconds that all cores have been busy so far, without those of this process and its ended children.

    None if the system does not report it. Time taken by a virtual machine's host counts, too.
    """
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, steal = (int(x) for x in file.readline().split()[1:9])
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
    own = os.times()
    own_s = own.user + own.system + own.children_user + own.children_system
    return (user + nice + system + irq + softirq + steal) / ticks - own_s


class Others:
    """Measures other load from its creation on. `seconds` and `clock` let tests run without other programs."""

    def __init__(self, seconds: Seconds = seconds_of_others, clock: Clock = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self.begun, self.before = clock(), seconds()

    def cores(self) -> float | None:
        """How many cores other programs kept busy on average, at most all of them; None if the system does not report
        it, or if the time was too short for its ticks.
        """
        taken, now = self.clock() - self.begun, self.seconds()
        if now is None or self.before is None or taken < SHORTEST_S:
            return None
        return min(max(0.0, now - self.before) / taken, float(os.cpu_count() or 1))


def taken_by_others(cores: float) -> str:
    """`other programs took 0.8 of 2 cores`."""
    of = max(os.cpu_count() or 1, ceil(cores))
    return f"other programs took {cores:.1f} of {of} core{'s' if of > 1 else ''}"


def wait_until_calm(
    most_s: float = 5.0, others: Callable[[], Others] = Others, sleep: Callable[[float], object] = time.sleep
) -> bool:
    """Waits, a second at a time, until other programs leave the machine alone or `most_s` is over; returns whether they
    do (True if the system does not tell).
    """
    for _ in range(ceil(most_s)):
        meanwhile = others()
        sleep(1.0)
        cores = meanwhile.cores()
        if cores is None or cores < BUSY:
            return True
    return False
