"""A core that another hardware thread shares is noticed, waited for, and its samples are not counted."""

from __future__ import annotations

import random
import time

import pytest

from roofdsl.measure.assembled import is_known
from roofdsl.measure.multicore_timing import Effort, rate
from roofdsl.measure.shared_core import PATIENCE_S, PatientWatch, SharedCore, shared_core
from roofdsl.measure.timing import Plan, time_calls


class World:
    """A clock, and a neighbour that shares the core from time to time: runs of code then take twice as long."""

    def __init__(self, shared: list[tuple[float, float]], outliers: float = 0.01) -> None:
        self.now, self.shared, self.outliers = 0.0, shared, outliers
        self.dice = random.Random(3)

    def is_shared(self) -> bool:
        return any(begin <= self.now < end for begin, end in self.shared)

    def run(self, seconds: float) -> None:
        self.now += seconds * (2 if self.is_shared() else 1)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def probe(self) -> float:
        """The ratio of two loops; with some noise, and disturbed itself now and then."""
        self.now += 1e-5
        noise = self.dice.uniform(0.99, 1.05)
        if self.dice.random() < self.outliers:
            return 0.5
        return noise * (1.6 if self.is_shared() else 1.05)

    def clock(self) -> float:
        self.now += 1e-9
        return self.now


def test_samples_on_a_shared_core_are_set_aside() -> None:
    world = World([(0.1 + k, 0.4 + k) for k in range(10)])
    core = SharedCore(world.probe, world.sleep)
    plan = Plan(repeats=20, sample_s=0.02, warm_s=0)
    times = time_calls([lambda: world.run(1e-3)], plan, clock=world.clock, watch=PatientWatch(core))
    assert max(times.seconds) == pytest.approx(1e-3, rel=0.06)
    assert times.disturbed and max(times.disturbed) > 1.1e-3


def test_samples_before_the_first_calm_moment_do_not_count() -> None:
    """The core was shared from the start, so nothing showed that it was, until the neighbour left."""
    world = World([(0.0, 0.3)], outliers=0)
    core = SharedCore(world.probe, world.sleep)
    assert world.now < 0.1 and core.epoch == 0
    plan = Plan(repeats=20, sample_s=0.02, warm_s=0)
    times = time_calls([lambda: world.run(1e-3)], plan, clock=world.clock, watch=PatientWatch(core))
    assert core.epoch > 0 and len(times.disturbed) >= 8
    assert max(times.seconds) == pytest.approx(1e-3, rel=0.06)


def test_a_sample_that_begins_or_ends_on_a_shared_core_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.measure.shared_core.switches", lambda: 7)  # other programs may take the real core
    for begin, end in ((0.5, 1.1), (1.9, 2.6)):
        world = World([(begin, end)])
        core = SharedCore(world.probe, world.sleep)
        world.now = 1.0
        before = core.disturbances()
        world.now = 2.0
        assert core.disturbances() != before
        world.now = 3.0
        before = core.disturbances()
        world.now = 4.0
        assert core.disturbances() == before


def test_measurements_wait_for_the_core_but_not_forever() -> None:
    world = World([(1.0, 1.5), (3.0, 100.0)], outliers=0)
    core = SharedCore(world.probe, world.sleep)
    patient = PatientWatch(core)
    world.now = 1.0
    patient.wait()
    assert world.now == pytest.approx(1.5, abs=0.02), "it went on as soon as the neighbour had left"
    world.now = 3.0
    for _ in range(3):
        patient.wait()
    assert world.now - 3.0 == pytest.approx(PATIENCE_S - 0.5, abs=0.3), "what is left of its patience"


def test_probes_that_were_disturbed_do_not_make_a_calm_core_look_shared() -> None:
    world = World([])
    core = SharedCore(world.probe, world.sleep)
    assert sum(core.is_shared() for _ in range(400)) == 0


@pytest.mark.skipif(not is_known(), reason="the loops are for x86-64 with AVX2")
def test_the_real_probe_is_above_zero_and_quick() -> None:
    core = shared_core()
    assert core is not None and core is shared_core()
    begun = time.perf_counter()
    core.is_shared()
    assert time.perf_counter() - begun < 0.1 and 0.1 < core.lowest < 10


def test_a_rate_is_that_of_the_samples_which_nobody_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most samples of the round are of a shared core: their median would be half the rate."""
    import roofdsl.measure.multicore_timing as timing

    taken = iter([(2.0, False)] * 5 + [(1.0, True)] * 3 + [(2.0, False)] * 1000)
    monkeypatch.setattr(timing, "together", lambda *_: next(taken))
    monkeypatch.setattr(timing, "count_for", lambda *_: 1)
    monkeypatch.setattr(timing, "ROUNDS", 1)
    found = rate(lambda *_: None, [()], 100.0, [0], Effort(9, 1e-3, 10.0))
    assert found.per_s == pytest.approx(100.0)
