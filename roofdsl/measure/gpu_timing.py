"""Timing launches on a GPU: by events, in a graph if launching would take longer than running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from roofdsl.measure.gpu_driver import Call, Driver
from roofdsl.measure.timing import LEAST_REPEATS, MOST, ClockFault, Plan, Times, is_time, median

_LONGEST_SAMPLE = 2000
"""The most executions in a sample: with more, launches would wait in the queue, and the host would be timed."""

_MOST_NODES = 20_000
"""The most launches in a graph: one with more takes long to build."""

PER_LAUNCH_S = 100e-6
"""An execution whose launches take less on average goes into a graph. The host needs a few microseconds to start a
launch, and a shorter launch would be timed as if it took that long.
"""


@dataclass(frozen=True)
class Timed:
    """The times of one execution, how its launches were started, and the median time if the host starts them one by one
    (None if `times` were taken that way).
    """

    times: Times
    by: Literal["stream", "graph"]
    stream_s: float | None = None

    def details(self) -> dict[str, object]:
        """For the record of a measurement."""
        alone = {} if self.stream_s is None else {"stream_median_s": self.stream_s}
        return {"launched_by": self.by, **alone}


def time_launches(
    driver: Driver, runs: Sequence[Call], plan: Plan, prepare: Call, launches: int = 1, *, least: int | None = None
) -> Timed:
    """Like timing.time_calls, with the device's own events: `runs` in turn, `prepare` before each sample.

    launches: those of one run. least: the number of runs that use all copies of the arrays, if it is not that of
    `runs`. Short runs are captured into a graph of whole multiples of so many, and replayed; a few samples without one
    show what the host's launches cost. Raises ClockFault if too few samples have a time.
    """
    prepare()
    taken = _warm_up(driver, runs, plan)
    calls = max(1, min(_LONGEST_SAMPLE, ceil(plan.sample_s / max(taken, 1e-7))))
    turn = _Turn(runs)
    launches, least = max(1, launches), least or len(runs)
    if taken < PER_LAUNCH_S * launches and launches * least <= _MOST_NODES:
        # Whole turns through all copies: no data wait in a cache, not even for the first launches of the next replay.
        calls = least * max(1, min(ceil(calls / least), _MOST_NODES // (launches * least)))
        replay = driver.captured(turn.next(calls))
        if replay is not None:
            alone = _samples(driver, plan, prepare, lambda: turn.next(calls), calls, LEAST_REPEATS)
            prepare()
            driver.elapsed([replay])  # the first replay also places the graph on the device
            return Timed(_samples(driver, plan, prepare, lambda: [replay], calls), "graph", median(alone.seconds))
    return Timed(_samples(driver, plan, prepare, lambda: turn.next(calls), calls), "stream")


class _Turn:
    """Runs one after the other, starting again after the last."""

    def __init__(self, runs: Sequence[Call]) -> None:
        self.runs, self.at = runs, 0

    def next(self, count: int) -> list[Call]:
        found = [self.runs[(self.at + k) % len(self.runs)] for k in range(count)]
        self.at += count
        return found


def _warm_up(driver: Driver, runs: Sequence[Call], plan: Plan) -> float:
    """The seconds of the last of as many executions as the plan requires."""
    spent = taken = 0.0
    made = 0
    while made < max(3, len(runs)) or (spent < plan.warm_s and made < _LONGEST_SAMPLE):
        taken = driver.elapsed([runs[made % len(runs)]])
        spent += taken
        made += 1
    return taken


def _samples(  # noqa: PLR0917
    driver: Driver, plan: Plan, prepare: Call, following: Callable[[], Sequence[Call]], calls: int,
    repeats: int | None = None,
) -> Times:  # fmt: skip
    """Samples of `calls` executions each, which the calls that `following` returns make together."""
    wanted = plan.repeats if repeats is None else min(repeats, plan.repeats)
    seconds: list[float] = []
    spent, faults = 0.0, 0
    while len(seconds) < wanted and (spent < plan.budget_s or len(seconds) < min(LEAST_REPEATS, wanted)):
        prepare()
        sample = driver.elapsed(following())
        if not is_time(sample):
            faults += 1
            if faults > MOST * wanted:
                raise ClockFault
            continue
        seconds.append(sample / calls)
        spent += sample
    return Times(tuple(seconds), calls)
