"""Timing on a noisy machine: a monotonic clock, warm-up, repeats, the median and how far the times spread.

A sample is several calls in a row where one is too short for the clock; a repeat is one sample. What runs between
samples (restoring inputs, flushing caches) is never timed. A sample during which another program took a core away (the
system counts such switches) says nothing about the code: it is set aside and taken again, as long as enough remain.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, floor

Call = Callable[[], object]
Clock = Callable[[], float]

REPEATS = 20
"""Samples of which the median is taken, where time allows."""

LEAST_REPEATS = 5
"""Samples that are taken of the longest run, whatever the budget."""

MOST = 3
"""Samples, as a multiple of the repeats wanted, after which no more are taken though some were disturbed."""

NOISY = 0.25
"""(high - low) / median above which a measurement is called noisy."""

_TICKS = 1000
"""Steps of the clock that a sample lasts at least: its reading is then right to a thousandth."""


@dataclass(frozen=True)
class Plan:
    """How a run is timed.

    repeats: samples wanted; once `budget_s` is spent no more than LEAST_REPEATS are made. sample_s: the shortest
    sample (a shorter call is made several times over). warm_s: calls before the first sample last as long as this
    in all, and one call at least, so that code is loaded and the clock frequency up.
    """

    repeats: int = REPEATS
    budget_s: float = 10.0
    sample_s: float = 2e-3
    warm_s: float = 0.05

    def __post_init__(self) -> None:
        if self.repeats < 1 or self.budget_s <= 0 or self.sample_s < 0 or self.warm_s < 0:
            raise ValueError("a plan has at least one repeat and times that are not negative")


DEFAULT = Plan()


@dataclass(frozen=True)
class Times:
    """Seconds per call, one number for each sample in the order they were taken; `calls` were made in each.

    disturbed: samples set aside, since a core was taken away meanwhile. Where too few others were left they are among
    `seconds` too, and `all_disturbed` says so.
    """

    seconds: tuple[float, ...]
    calls: int
    disturbed: tuple[float, ...] = ()
    all_disturbed: bool = False

    def __post_init__(self) -> None:
        if not self.seconds or self.calls < 1:
            raise ValueError("times are of at least one sample of at least one call")

    @property
    def median_s(self) -> float:
        return quantile(self.seconds, 0.5)

    @property
    def low_s(self) -> float:
        """The 10th percentile."""
        return quantile(self.seconds, 0.1)

    @property
    def high_s(self) -> float:
        """The 90th percentile."""
        return quantile(self.seconds, 0.9)

    @property
    def spread(self) -> float:
        """(high - low) / median."""
        return (self.high_s - self.low_s) / self.median_s if self.median_s else 0.0

    @property
    def noisy(self) -> bool:
        return self.spread > NOISY

    def warning(self) -> str | None:
        """What to say of a noisy measurement; None for a calm one."""
        if self.all_disturbed:
            return (
                f"other programs took cores away during {len(self.disturbed)} of {len(self.seconds)} repeats; these "
                "count all the same, since too few others are left"
            )
        if not self.noisy:
            return None
        return (
            f"the times spread by {self.spread:.0%} around their median (10th to 90th percentile of "
            f"{len(self.seconds)}): something else runs on this machine"
        )


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which `part` of them lie, between neighbours in proportion. Raises ValueError for none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low, high = floor(place), ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Sequence[float]) -> float:
    """The middle value. Raises ValueError for none."""
    return quantile(values, 0.5)


def resolution(clock: Clock = time.perf_counter) -> float:
    """The smallest step this clock was seen to make, in seconds."""
    steps = []
    for _ in range(5):
        start = now = clock()
        while now == start:
            now = clock()
        steps.append(now - start)
    return min(steps)


def switches() -> int:
    """How often this process lost a core to another one so far (involuntary context switches); 0 where not told."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def time_calls(
    runs: Sequence[Call],
    plan: Plan = DEFAULT,
    prepare: Call | None = None,
    *,
    clock: Clock = time.perf_counter,
    lost: Callable[[], int] = switches,
) -> Times:
    """Times calls of `runs`, which are taken in turn (several buffers in rotation, or one run alone).

    `prepare` is called before each sample, outside the time: it restores inputs or empties caches. Where it empties
    them, hand it in with `plan.sample_s` 0, so that each sample is one call. `lost` counts what disturbs a sample.
    Raises ValueError for no runs, and what a run raises.
    """
    if not runs:
        raise ValueError("there is nothing to time")
    prepare = prepare or _nothing
    prepare()
    begun = clock()
    shortest = float("inf")
    made = 0
    while True:
        start = clock()
        runs[made % len(runs)]()
        shortest = min(shortest, clock() - start)
        made += 1
        if made >= len(runs) and (clock() - begun >= plan.warm_s or made >= 10_000):
            break
    calls = _calls(shortest, plan, clock)
    calm: list[float] = []
    disturbed: list[float] = []
    spent = 0.0
    turn = 0
    while _wants_more(plan, len(calm), len(disturbed), spent):
        around = clock()
        prepare()
        order = [runs[(turn + k) % len(runs)] for k in range(calls)]
        turn += calls
        before = lost()
        start = clock()
        for run in order:
            run()
        end = clock()
        (calm if lost() == before else disturbed).append((end - start) / calls)
        spent += end - around
    if len(calm) >= min(LEAST_REPEATS, plan.repeats):
        return Times(tuple(calm), calls, tuple(disturbed))
    return Times((*calm, *disturbed), calls, tuple(disturbed), True)


def _wants_more(plan: Plan, calm: int, disturbed: int, spent: float) -> bool:
    """Repeats are made until enough were calm; not for ever, and where time is over not beyond the least number."""
    if calm >= plan.repeats or calm + disturbed >= MOST * plan.repeats:
        return False
    return spent < plan.budget_s or calm + disturbed < min(LEAST_REPEATS, plan.repeats)


def _nothing() -> None:
    pass


def _calls(one_s: float, plan: Plan, clock: Clock) -> int:
    """Calls per sample, so that it lasts sample_s and many steps of the clock."""
    if plan.sample_s == 0:
        return 1
    least = max(plan.sample_s, _TICKS * resolution(clock))
    return max(1, min(1_000_000, ceil(least / max(one_s, 1e-9))))


# ---- cores ----


def usable_cores() -> tuple[int, ...]:
    """The cores this process may run on, by number."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def pin(cores: Sequence[int]) -> bool:
    """Keeps the calling thread on these cores; False where the system does not let it."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, set(cores))
    except OSError:
        return False
    return True


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[bool]:
    """The calling thread stays on these cores inside; gives whether it could be done, and puts back what was."""
    before = usable_cores()
    done = pin(cores)
    try:
        yield done
    finally:
        if done:
            pin(before)
