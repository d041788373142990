"""Clocks that jump, stand still or give no number: never a time that is not one, and always an end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import inf, nan

import pytest

from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.source import Source
from roofdsl.measure.gpu import time_launches
from roofdsl.measure.measurement import parse
from roofdsl.measure.timing import ClockFault, Plan, Times, resolution, time_calls, time_laps
from tests.measure.examples import EXAMPLE
from tests.measure.test_timing import FakeClock, calm

PLAN = Plan(repeats=6, budget_s=100, sample_s=0, warm_s=0)


class Jumping(FakeClock):
    """A clock that is put back or forth by `step` before every `every`-th reading."""

    def __init__(self, every: int, step: float) -> None:
        super().__init__()
        self.every, self.step, self.readings = every, step, 0

    def __call__(self) -> float:
        self.readings += 1
        if self.readings % self.every == 0:
            self.now += self.step
        return super().__call__()


@pytest.mark.parametrize("every", [3, 5, 7, 11])
@pytest.mark.parametrize("back", [0.05, 0.1, 0.5, 3600.0])
def test_samples_in_which_the_clock_ran_backwards_are_no_times(every: int, back: float) -> None:
    clock = Jumping(every, -back)
    times = time_calls([lambda: clock.run(0.1)], PLAN, clock=clock, lost=calm)
    assert len(times.seconds) == 6
    assert all(s > 0 for s in times.seconds)
    assert times.median_s == pytest.approx(0.1, rel=0.6)


def test_one_jump_changes_no_number() -> None:
    clock = Jumping(30, -7.0)
    times = time_calls([lambda: clock.run(0.1)], PLAN, clock=clock, lost=calm)
    assert times.seconds == pytest.approx([0.1] * 6, rel=1e-3)


def test_a_clock_that_is_put_back_in_every_sample() -> None:
    clock = Jumping(1, -1.0)
    runs = [0]

    def run() -> None:
        runs[0] += 1
        clock.run(0.1)

    with pytest.raises(ClockFault, match="stands still or runs backwards"):
        time_calls([run], PLAN, clock=clock, lost=calm)
    assert runs[0] < 20_000


@pytest.mark.parametrize("reading", [0.0, 1e9, nan, inf])
def test_a_clock_that_stands_still(reading: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.measure.timing._READINGS", 1000)
    clock: Callable[[], float] = lambda: reading  # noqa: E731
    with pytest.raises(ClockFault):
        resolution(clock)
    with pytest.raises(ClockFault):
        time_calls([lambda: None], PLAN, clock=clock, lost=calm)
    with pytest.raises(ClockFault):
        time_laps([lambda: None], [0], 1, PLAN, restore=lambda: None, flush=None, clock=clock)


def test_the_resolution_of_a_clock_that_jumps() -> None:
    assert resolution(Jumping(3, -1.0)) == pytest.approx(1e-6)


def test_a_jump_forwards_ends_in_time() -> None:
    clock = Jumping(9, 1e6)
    times = time_calls([lambda: clock.run(0.1)], PLAN, clock=clock, lost=calm)
    assert len(times.seconds) >= 5
    assert min(times.seconds) == pytest.approx(0.1, rel=1e-3)


def test_launch_by_launch() -> None:
    clock = Jumping(13, -0.3)
    calls = [lambda: clock.run(0.1), lambda: clock.run(0.2)]
    samples = time_laps(calls, [0, 1, 1], 1, PLAN, restore=lambda: None, flush=None, clock=clock)
    assert len(samples) == 6
    for one, both in samples:
        assert one == pytest.approx(0.1, rel=1e-3)
        assert both == pytest.approx(0.4, rel=1e-3)


def test_events_of_a_device() -> None:
    class Driver:
        """The time between two events is every third time no time."""

        taken = 0

        def elapsed(self, calls: object) -> float:
            self.taken += 1
            return (nan, -1.0, 0.0)[self.taken % 9 // 3] if self.taken % 3 == 0 else 0.25

        def captured(self, calls: object) -> None:
            """It has no graphs."""

    times = time_launches(Driver(), [lambda: None], PLAN, lambda: None).times  # type: ignore[arg-type]
    assert times.seconds == (0.25,) * 6

    class Still(Driver):
        def elapsed(self, calls: object) -> float:
            return 0.0

    with pytest.raises(ClockFault):
        time_launches(Still(), [lambda: None], PLAN, lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, -1e-9, nan, inf, -inf])
def test_no_times(seconds: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Times((1.0, seconds), 1)
    with pytest.raises(ValueError, match="positive"):
        Times((1.0,), 1, (seconds,))


@pytest.mark.parametrize("number", ["-0.0036", "0", "-0.0", "1e-300", "1e300", "1" + "0" * 400, "NaN", "-Infinity"])
def test_times_in_documents(number: str) -> None:
    """As a clock that ran backwards left them, or an editor."""
    document = replace(EXAMPLE, times_s=(1e-3, 2e-3, 3e-3)).to_json()
    text = json.dumps(document).replace("[0.001, 0.002, 0.003]", f"[0.001, {number}, 0.003]")
    assert number in text
    with pytest.raises(InputError, match="result-damaged"):
        parse(Source("r.json", text))


@pytest.mark.parametrize("key", ["median_s", "low_s", "flops_per_s", "work_flops", "calls_per_repeat", "repeats"])
@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e400"])
def test_numbers_beyond_all_bounds_in_documents(key: str, number: str) -> None:
    document = {**EXAMPLE.to_json(), key: "here"}
    with pytest.raises(InputError, match="result-damaged"):
        parse(Source("r.json", json.dumps(document).replace('"here"', number)))
