"""Timing on a noisy machine: a monotonic clock, warm-up, repeats, the median and the spread of the times.

A sample is several calls in a row if one is too short for the clock; a repeat is one sample. Work between samples
(restoring inputs, flushing caches) is never timed. A sample says nothing about the code if another program took the
core away meanwhile (the system counts such switches), if another hardware thread shared the core, or if the core ran at
a low frequency (`shared_core`): it is set aside and repeated, as long as enough samples remain. A sample in which the
timer stood still or ran backwards has no time, and is never used.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, floor, isfinite
from typing import Protocol

from roofdsl.lang.diagnostics import CommandError

Call = Callable[[], object]
Clock = Callable[[], float]

REPEATS = 20
"""The number of samples for the median, if time allows."""

LEAST_REPEATS = 5
"""The number of samples even for the longest run, whatever the budget."""

MOST = 3
"""The maximum number of samples, as a multiple of the repeats wanted, even if some were disturbed."""

MOST_SPREAD = 0.25
"""The limit of noise: if (90th - 10th percentile) / median of the samples exceeds it, a measurement is called noisy,
and `characterize` does not write the number (noisy_peaks.py). It equals the tolerance by which `validate` lets a
measurement fall below its prediction.
"""

_READINGS = 5_000_000
"""After this many readings without progress, a clock is given up."""

_TICKS = 1000
"""The minimum number of clock steps in a sample: its reading is then accurate to a thousandth."""


@dataclass(frozen=True)
class Plan:
    """How a run is timed.

    repeats: samples wanted; once `budget_s` is spent, sampling stops as soon as there are LEAST_REPEATS. sample_s: the
    shortest sample (a shorter call is repeated within it). warm_s: the calls before the first sample last at least this
    long in total, with at least one call, so that code is loaded and the clock frequency is up.
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
    """Seconds per call, one number for each sample in the order they were taken; each sample made `calls` calls.

    disturbed: the samples that were set aside, because a core was taken away or shared during them or its clock was
    slow. If too few others were left, these samples are among `seconds`, too, and `all_disturbed` says so.
    """

    seconds: tuple[float, ...]
    calls: int
    disturbed: tuple[float, ...] = ()
    all_disturbed: bool = False

    def __post_init__(self) -> None:
        if not self.seconds or self.calls < 1:
            raise ValueError("times are of at least one sample of at least one call")
        if not all(s > 0 and isfinite(s) for s in (*self.seconds, *self.disturbed)):
            raise ValueError("times are positive")

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
        return self.spread > MOST_SPREAD

    def warning(self) -> str | None:
        """The warning about a noisy measurement; None for a calm one."""
        if self.all_disturbed:
            return (
                "other programs used the cores, or the clock was slow, during "
                f"{len(self.disturbed)} of {len(self.seconds)} repeats; these repeats are included, because too few "
                "undisturbed ones remain"
            )
        if not self.noisy:
            return None
        return (
            f"the times spread by {self.spread:.0%} around their median (10th to 90th percentile of "
            f"{len(self.seconds)}): other programs may be running"
        )


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which `part` of the values lie, interpolated linearly. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low, high = floor(place), ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Sequence[float]) -> float:
    """The middle value. Raises ValueError for no values."""
    return quantile(values, 0.5)


def resolution(clock: Clock = time.perf_counter) -> float:
    """The smallest forward step that this clock was seen to make, in seconds.

    Raises ClockFault if it makes none in millions of readings.
    """
    steps: list[float] = []
    before = clock()
    for _ in range(_READINGS):
        now = clock()
        if now > before:
            steps.append(now - before)
            if len(steps) == 5:
                return min(steps)
        before = now
    raise ClockFault


class ClockFault(CommandError):
    """A clock that stands still or runs backwards so often that it cannot time anything."""

    def __init__(self) -> None:
        super().__init__(
            "this machine's clock stands still or runs backwards, so too few samples have a time",
            "measure again; in a virtual machine another clock source may help (`clocksource` of Linux)",
        )


def is_time(seconds: float) -> bool:
    """Whether a difference of two clock readings can be a time."""
    return seconds > 0 and isfinite(seconds)


def switches() -> int:
    """How often this process has lost a core to another one (involuntary context switches); 0 if not reported."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class Watch(Protocol):
    """Whether samples are disturbed.

    wait: called before each sample. lost: a count that is the same before and after an undisturbed sample. epoch: a
    number that changes when it turns out that all samples before were disturbed.
    """

    def wait(self) -> None: ...
    def lost(self) -> int: ...
    def epoch(self) -> int: ...


class Switches:
    """What the system counts. `lost` is for tests."""

    def __init__(self, lost: Callable[[], int] = switches) -> None:
        self.lost = lost

    def wait(self) -> None:
        pass

    def epoch(self) -> int:
        return 0


def time_calls(
    runs: Sequence[Call],
    plan: Plan = DEFAULT,
    prepare: Call | None = None,
    *,
    clock: Clock = time.perf_counter,
    lost: Callable[[], int] = switches,
    watch: Watch | None = None,
    lasting: Callable[[int], int] | None = None,
) -> Times:
    """Time calls of `runs`, which are taken in turn (several buffers in rotation, or a single run).

    `prepare` is called before each sample, outside the timing; it restores inputs or empties caches. If it empties
    them, pass `plan.sample_s` 0, so that each sample is one call. `watch` says which samples are disturbed; without it,
    the count `lost` does. `lasting` says how many of the calls planned for a sample may follow each other before
    `prepare` has to be called again. Raises ValueError for no runs, ClockFault if too few samples have a time, and what
    a run raises.
    """
    if not runs:
        raise ValueError("there is nothing to time")
    prepare, watch = prepare or _nothing, watch or Switches(lost)
    prepare()
    calls = _calls(_warm_up(runs, plan, clock), plan, clock)
    if lasting is not None and calls > 1:
        calls = lasting(calls)
    calm: list[float] = []
    disturbed: list[float] = []
    spent, epoch = 0.0, watch.epoch()
    turn = faults = 0
    while _wants_more(plan, len(calm), len(disturbed), spent):
        around = clock()
        prepare()
        spent += max(0.0, clock() - around)
        order = [runs[(turn + k) % len(runs)] for k in range(calls)]
        turn += calls
        watch.wait()  # after `prepare`, which may slow down the clock; it takes nothing of the budget
        before = watch.lost()
        start = clock()
        for run in order:
            run()
        end = clock()
        spent += max(0.0, end - start)
        if not is_time(end - start):
            faults += 1
            if faults > MOST * plan.repeats:
                raise ClockFault
            continue
        (calm if watch.lost() == before else disturbed).append((end - start) / calls)
        if watch.epoch() != epoch:
            epoch, disturbed, calm = watch.epoch(), [*disturbed, *calm], []
    if len(calm) >= min(LEAST_REPEATS, plan.repeats):
        return Times(tuple(calm), calls, tuple(disturbed))
    return Times((*calm, *disturbed), calls, tuple(disturbed), True)


def time_laps(
    calls: Sequence[Call],
    order: Sequence[int],
    executions: int,
    plan: Plan,
    *,
    restore: Call,
    flush: Call | None,
    clock: Clock,
    watch: Watch | None = None,
) -> list[list[float]]:
    """Samples of `executions` executions each: for each call, the seconds of all its launches in one execution, with
    one reading of the clock for each. Samples that were disturbed, as `watch` says, are left out if enough others
    remain. Raises ClockFault like `time_calls`.
    """
    watch = watch or Switches()
    epoch = watch.epoch()
    calm: list[list[float]] = []
    disturbed: list[list[float]] = []
    begun = clock()
    faults = 0
    while len(calm) < plan.repeats and len(calm) + len(disturbed) < MOST * plan.repeats:
        if clock() - begun > plan.budget_s and len(calm) + len(disturbed) >= min(LEAST_REPEATS, plan.repeats):
            break
        restore()
        watch.wait()
        spent = [0.0] * len(calls)
        backwards = False
        before = watch.lost()
        for _ in range(executions):
            for k in order:
                if flush is not None:
                    flush()
                call = calls[k]
                start = clock()
                call()
                taken = clock() - start
                backwards |= not 0 <= taken < float("inf")
                spent[k] += taken
        if backwards or not sum(spent) > 0:
            faults += 1
            if faults > MOST * plan.repeats:
                raise ClockFault
            continue
        sample = [seconds / executions for seconds in spent]
        (calm if watch.lost() == before else disturbed).append(sample)
        if watch.epoch() != epoch:
            epoch, disturbed, calm = watch.epoch(), [*disturbed, *calm], []
    return calm if len(calm) >= min(LEAST_REPEATS, plan.repeats) else [*calm, *disturbed]


def _warm_up(runs: Sequence[Call], plan: Plan, clock: Clock) -> float:
    """Make the calls before the first sample; returns the shortest of their times."""
    shortest, spent = float("inf"), 0.0
    for made in range(max(10_000, len(runs))):
        if made >= len(runs) and spent >= plan.warm_s:
            break
        start = clock()
        runs[made % len(runs)]()
        taken = clock() - start
        if is_time(taken):
            shortest, spent = min(shortest, taken), spent + taken
    return shortest


def _wants_more(plan: Plan, calm: int, disturbed: int, spent: float) -> bool:
    """Whether to take another sample: until enough are calm, but not forever; when time is up, only up to the least
    number.
    """
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
    return max(1, min(1_000_000, ceil(least / max(one_s, 1e-9)))) if isfinite(one_s) else 1_000_000


# ---- cores ----


def usable_cores() -> tuple[int, ...]:
    """The cores this process may run on, by number."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def pin(cores: Sequence[int]) -> bool:
    """Keep the calling thread on these cores; False if the system does not allow it."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, set(cores))
    except OSError:
        return False
    return True


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[bool]:
    """Keeps the calling thread on these cores inside the context, which yields whether that worked and then restores
    the old state.
    """
    before = usable_cores()
    done = pin(cores)
    try:
        yield done
    finally:
        if done:
            pin(before)
