"""Timing against a clock that is made up, so that every number is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from roofdsl.measure.timing import Plan, Times, median, pinned, quantile, resolution, time_calls, usable_cores


class FakeClock:
    """A clock in steps of one microsecond; runs push it on by what they are said to take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now

    def run(self, seconds: float) -> None:
        self.now += seconds


def calm() -> int:
    """No sample is ever disturbed."""
    return 0


def test_quantiles_are_numpys() -> None:
    values = [float(x) for x in np.random.default_rng(1).random(37)]
    for part in (0.0, 0.1, 0.5, 0.77, 0.9, 1.0):
        assert quantile(values, part) == pytest.approx(float(np.quantile(values, part)), rel=1e-14)
    assert median([3.0, 1.0, 2.0, 10.0]) == 2.5
    with pytest.raises(ValueError, match="no values"):
        median([])


def test_every_repeat_is_a_time_per_call() -> None:
    clock = FakeClock()
    times = time_calls([lambda: clock.run(0.1)], Plan(repeats=7, budget_s=100), clock=clock, lost=calm)
    assert (len(times.seconds), times.calls) == (7, 1)
    assert times.median_s == pytest.approx(0.1, rel=1e-4)
    assert times.spread < 1e-3 and times.warning() is None


def test_short_calls_are_made_often_enough_for_the_clock() -> None:
    clock = FakeClock()
    times = time_calls([lambda: clock.run(1e-5)], Plan(repeats=20, sample_s=2e-3), clock=clock, lost=calm)
    assert times.calls >= 2e-3 / 1.2e-5
    assert times.median_s == pytest.approx(1e-5, rel=0.01)


def test_long_runs_stop_at_the_budget_but_not_below_five() -> None:
    clock = FakeClock()
    assert len(time_calls([lambda: clock.run(3.0)], Plan(budget_s=5), clock=clock, lost=calm).seconds) == 5
    assert len(time_calls([lambda: clock.run(0.5)], Plan(budget_s=5), clock=clock, lost=calm).seconds) == 10


def test_what_prepares_is_not_timed_and_comes_before_every_sample() -> None:
    clock = FakeClock()
    log: list[str] = []

    def run() -> None:
        log.append("run")
        clock.run(0.01)

    def prepare() -> None:
        log.append("prepare")
        clock.run(1.0)

    times = time_calls([run], Plan(repeats=5, budget_s=100, sample_s=0, warm_s=0), prepare, clock=clock, lost=calm)
    assert times.median_s == pytest.approx(0.01, rel=1e-3)
    assert log == ["prepare", "run"] + ["prepare", "run"] * 5


def test_buffers_are_taken_in_turn() -> None:
    clock = FakeClock()
    log: list[int] = []

    def run(k: int) -> object:
        log.append(k)
        clock.run(0.01)
        return None

    runs = [lambda k=k: run(k) for k in range(3)]
    time_calls(runs, Plan(repeats=4, budget_s=100, sample_s=0.02, warm_s=0), clock=clock, lost=calm)
    assert log == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]


def test_disturbed_samples_are_taken_again() -> None:
    clock = FakeClock()
    made = [0]

    def run() -> None:
        made[0] += 1
        clock.run(0.5 if made[0] % 3 == 0 else 0.1)

    plan = Plan(repeats=6, budget_s=100, sample_s=0, warm_s=0)
    times = time_calls([run], plan, clock=clock, lost=lambda: made[0] // 3)  # every third run loses the core
    assert len(times.seconds) == 6 and max(times.seconds) == pytest.approx(0.1, rel=1e-3)
    assert len(times.disturbed) >= 2 and min(times.disturbed) > 0.4 and not times.all_disturbed


def test_where_all_are_disturbed_all_count() -> None:
    clock = FakeClock()
    made = [0]

    def run() -> None:
        made[0] += 1
        clock.run(0.1)

    times = time_calls([run], Plan(repeats=6, sample_s=0, warm_s=0), clock=clock, lost=lambda: made[0])
    assert len(times.seconds) == len(times.disturbed) == 18 and "other programs used the cores" in str(times.warning())


def test_noise_is_said() -> None:
    noisy = Times((1.0, 1.0, 1.0, 2.0, 2.0), 1)
    assert noisy.noisy and "spread by 100%" in str(noisy.warning())


def test_impossible_plans_and_times_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one repeat"):
        Plan(repeats=0)
    with pytest.raises(ValueError, match="at least one sample"):
        Times((), 1)
    with pytest.raises(ValueError, match="nothing to time"):
        time_calls([])


def test_the_real_clock_and_cores() -> None:
    assert 0 < resolution(time.perf_counter) < 1e-3
    before = usable_cores()
    with pinned(before[:1]) as done:
        assert usable_cores() == (before[:1] if done else before)
    assert usable_cores() == before
