"""A core that is shared by another hardware thread, or whose clock is slow, is noticed and waited for, and its samples
are not counted.
"""

from __future__ import annotations

import random
import time

import pytest

from roofdsl.measure.assembled import is_known
from roofdsl.measure.multicore_timing import Effort, rate
from roofdsl.measure.shared_core import (
    LEAST,
    PATIENCE_S,
    POOL_S,
    PROBES,
    WAIT_S,
    PatientWatch,
    Pool,
    SharedCore,
    shared_core,
    spin,
)
from roofdsl.measure.timing import Plan, time_calls


class World:
    """A clock, and a neighbor that shares the core from time to time: runs of code then take twice as long. At other
    times, the core is `slow`: they take three times as long.
    """

    def __init__(
        self, shared: list[tuple[float, float]], outliers: float = 0.01, slow: list[tuple[float, float]] | None = None
    ) -> None:
        self.now, self.shared, self.outliers, self.slow = 0.0, shared, outliers, slow or []
        self.dice = random.Random(3)
        self.interrupted = 0

    def is_shared(self) -> bool:
        return any(begin <= self.now < end for begin, end in self.shared)

    def is_slow(self) -> bool:
        return any(begin <= self.now < end for begin, end in self.slow)

    def run(self, seconds: float) -> None:
        self.now += seconds * (2 if self.is_shared() else 3 if self.is_slow() else 1)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def probe(self) -> tuple[float, float]:
        """The ratio of two loops' times, and the second time. Now and then, the second loop is interrupted."""
        self.now += 1e-5
        noise, chain = self.dice.uniform(0.99, 1.05), self.dice.uniform(2000, 2100) * (3 if self.is_slow() else 1)
        if self.dice.random() < self.outliers:
            self.interrupted += 1
            return 0.5 * noise, 2 * chain
        return noise * (1.6 if self.is_shared() else 1.05), chain

    def clock(self) -> float:
        self.now += 1e-9
        return self.now


def test_samples_on_a_shared_core_are_set_aside() -> None:
    world = World([(0.1 + k, 0.4 + k) for k in range(10)])
    core = SharedCore(world.probe, world.sleep)
    plan = Plan(repeats=20, sample_s=0.02, warm_s=0)
    times = time_calls([lambda: world.run(1e-3)], plan, clock=world.clock, watch=PatientWatch(core))
    assert max(times.seconds) == pytest.approx(1e-3, rel=0.06)
    assert times.disturbed and max(times.disturbed) > 1.02e-3


def test_waiting_takes_nothing_of_the_budget() -> None:
    """The core is free for 80 ms in every half second, and samples of 20 ms in all take 200 ms."""
    world = World([(0.08 + k / 2, (k + 1) / 2) for k in range(100)], outliers=0)
    core = SharedCore(world.probe, world.sleep)
    world.now = 0.5
    plan = Plan(repeats=20, budget_s=0.2, sample_s=0.02, warm_s=0)
    times = time_calls([lambda: world.run(1e-3)], plan, clock=world.clock, watch=PatientWatch(core))
    assert len(times.seconds) >= 5 and not times.all_disturbed
    assert max(times.seconds) == pytest.approx(1e-3, rel=0.06)


def test_samples_with_a_slow_clock_are_set_aside() -> None:
    world = World([], slow=[(0.1 + k / 4, 0.2 + k / 4) for k in range(40)])
    core = SharedCore(world.probe, world.sleep)
    plan = Plan(repeats=20, sample_s=0.02, warm_s=0)
    times = time_calls([lambda: world.run(1e-3)], plan, clock=world.clock, watch=PatientWatch(core))
    assert max(times.seconds) == pytest.approx(1e-3, rel=0.06)
    assert times.disturbed and max(times.disturbed) > 1.05e-3


def test_a_clock_that_was_slow_from_the_start_is_noticed_later() -> None:
    world = World([], outliers=0, slow=[(0.0, 0.3)])
    core = SharedCore(world.probe, world.sleep)
    plan = Plan(repeats=20, sample_s=0.02, warm_s=0)
    times = time_calls([lambda: world.run(1e-3)], plan, clock=world.clock, watch=PatientWatch(core))
    assert core.epoch > 0 and times.disturbed and max(times.seconds) == pytest.approx(1e-3, rel=0.06)


def test_a_clock_that_wide_vectors_lower_a_little_is_no_disturbance() -> None:
    chains = iter([(1.0, 2000.0)] * PROBES + [(1.0, 2400.0)] * 100)
    core = SharedCore(lambda: next(chains), lambda s: None)
    assert not any(core.is_disturbed() for _ in range(100)) and core.epoch == 0


def test_a_clock_that_stays_slow_is_the_usual_one() -> None:
    """Ten seconds of waiting, then samples count again; when the clock is fast once more, those do not."""
    world = World([], outliers=0, slow=[(1.0, 29.0)])
    core = SharedCore(world.probe, world.sleep)
    world.now = 1.5
    PatientWatch(core, Pool(20.0)).wait()
    assert world.now - 1.5 == pytest.approx(10.0, abs=0.2) and not core.is_disturbed()
    world.now = 29.5
    before = core.epoch
    for _ in range(LEAST):
        core.is_disturbed()
    assert core.epoch == before + 1


def test_a_clock_that_is_known_is_expected_from_the_start() -> None:
    """The chain is of 670 rounds of 96 additions: at 3 GHz it takes 21.4 us. A slower clock than that is waited for,
    and one that is lower than what was seen says nothing.
    """
    for known_hz, disturbed in ((3e9, True), (1.5e9, False)):
        core = SharedCore(lambda: (1.0, 30_000.0), lambda s: None)
        core.expect(known_hz)
        assert core.is_disturbed() is disturbed


def test_waiting_keeps_the_core_busy() -> None:
    """A core that sleeps lowers its clock, so the processor time of a wait is its whole time."""
    for _ in range(40):  # where other programs take the core the whole time of one wait, not that of forty
        begun, used = time.perf_counter(), time.thread_time()
        spin(0.05)
        assert time.perf_counter() - begun >= 0.05
        if time.thread_time() - used > 0.01:
            return
    pytest.fail("a wait takes no processor time: it sleeps")


def test_samples_before_the_first_calm_moment_do_not_count() -> None:
    """The core was shared from the start, so nothing showed that it was, until the neighbor left."""
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
        world = World([(begin, end)], outliers=0)
        watching = PatientWatch(SharedCore(world.probe, world.sleep))
        assert not _is_calm(world, watching, 1.0, 2.0) and _is_calm(world, watching, 3.0, 4.0)


def _is_calm(world: World, watching: PatientWatch, start: float, end: float) -> bool:
    """Whether a sample between these moments counts as undisturbed."""
    world.now = start
    before = watching.lost()
    world.now = end
    return watching.lost() == before


def test_measurements_wait_for_the_core_but_not_forever() -> None:
    world = World([(1.0, 1.5), (3.0, 100.0)], outliers=0)
    core = SharedCore(world.probe, world.sleep)
    patient = PatientWatch(core)
    world.now = 1.0
    patient.wait()
    assert world.now == pytest.approx(1.5, abs=0.02), "it went on as soon as the neighbor had left"
    world.now = 3.0
    for _ in range(3):
        patient.wait()
    assert world.now - 3.0 == pytest.approx(PATIENCE_S - 0.5, abs=0.3), "what is left of its patience"


def test_samples_of_a_characterization_share_a_time_to_wait() -> None:
    world = World([(1.0, 1000.0)], outliers=0)
    core = SharedCore(world.probe, world.sleep)
    world.now = 2.0
    PatientWatch(core, core.pool).wait()
    assert world.now - 2.0 == pytest.approx(POOL_S, rel=0.1)
    before = world.now
    PatientWatch(core, core.pool).wait()
    assert world.now - before == pytest.approx(WAIT_S, abs=0.01)


def test_probes_that_were_disturbed_do_not_make_a_calm_core_look_shared() -> None:
    world = World([])
    core = SharedCore(world.probe, world.sleep)
    world.interrupted = 0
    assert sum(core.is_disturbed() for _ in range(4000)) == world.interrupted > 10 and core.epoch == 0


@pytest.mark.skipif(not is_known(), reason="the loops are for x86-64 with AVX2")
def test_the_real_probe_is_above_zero_and_quick() -> None:
    core = shared_core()
    assert core is not None and core is shared_core()
    begun = time.perf_counter()
    core.is_disturbed()
    assert time.perf_counter() - begun < 0.1 and 0.1 < core.ratio.value < 10 and 1000 < core.chain.value < 1e5


def test_a_rate_is_that_of_the_samples_which_nobody_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most samples of the round are of a shared core: their median would be half the rate."""
    import roofdsl.measure.multicore_timing as timing

    taken = iter([(2.0, False)] * 5 + [(1.0, True)] * 3 + [(2.0, False)] * 1000)
    monkeypatch.setattr(timing, "together", lambda *_: next(taken))
    monkeypatch.setattr(timing, "count_for", lambda *_: 1)
    monkeypatch.setattr(timing, "ROUNDS", 1)
    found = rate(lambda *_: None, [()], 100.0, [0], Effort(9, 1e-3, 10.0))
    assert found.per_s == pytest.approx(100.0)
