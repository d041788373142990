"""Whether another hardware thread shares this core at the moment, or its clock is slow. All code on the core is then up
to twice as slow, or more.

Many processors run two threads on one core. In a virtual machine, the other one may belong to somebody else, and no
counter of this system shows it. Its use of the core shows in the number of instructions that the core dispatches per
cycle. So two loops detect it: independent instructions, as many as the core can dispatch, and a chain of dependent
additions, which runs at one per cycle either way. The ratio of their times is steady on an unshared core, and 1.4 to 2
times as high on a shared one. The clock frequency changes both times alike, so it does not matter for their ratio.

The time of the chain alone shows the frequency. A core that has been idle for a few milliseconds may run at a third of
its highest frequency, and take a while to reach it again. So nothing here sleeps: a core that waits stays busy.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.timing import Switches, Watch, switches

SHARED = 1.25
"""Beyond this multiple of its lowest value, the ratio shows a shared core; on an unshared core it stays below 1.15."""

SLOW = 1.3
"""Beyond this multiple of its lowest value, the chain's time shows a slow clock. Wide vectors and the heat of all cores
lower the frequency by less.
"""

STAYS = 5000
"""A clock that is slow in more than this many probes in a row (ten seconds of waiting) counts as the usual one from
then on: processors lower it for long when they are hot.
"""

PART, LEAST = 0.03, 3
"""The lowest value is the one at this part of all values in ascending order, at least the third: a few are disturbed.
"""

PROBES = 40
"""The number of probes that give the first lowest values."""

LOWER = 0.87
"""If a lowest value falls below this share of its former value, the core had been shared, or slow, from the start,
unnoticed.
"""

APART_S = 2e-3
"""The pause between two probes, and while waiting: the other thread comes and goes every few milliseconds."""

PATIENCE_S = 5.0
"""How long all samples of one measurement together wait for the core."""

TRIES = 3
"""How often a number of a characterization is measured at most."""

POOL_S, WAIT_S = 60.0, 0.05
"""How long all samples of a characterization together wait for the core, and how long each of them waits after that."""

_NOPS, _CHAIN, _ROUNDS = 96, 96, (4000, 670)

Probe = Callable[[], tuple[float, float]]
"""Gives the ratio of the two loops' times, and the time of the chain in nanoseconds."""

Found = TypeVar("Found")


def spin(seconds: float) -> None:
    """Lets time pass on a busy core."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Lowest:
    """The values of a quantity that is lowest on an undisturbed core; beyond `limit` times that, the core is disturbed.

    Values of a disturbed core are not kept: a neighbor that stays for long must not become the usual state.
    """

    def __init__(self, limit: float, values: Iterable[float]) -> None:
        self.limit, self.values = limit, sorted(values)
        self.usual = self.value

    @property
    def value(self) -> float:
        """The lowest value, as far as known, without those that are disturbed themselves."""
        return self.values[min(max(LEAST - 1, int(PART * len(self.values))), len(self.values) - 1)]

    def exceeded_by(self, found: float) -> bool:
        return found > self.limit * self.value

    def keep(self, found: float) -> bool:
        """Keeps a value; returns whether the lowest one has fallen far, so that the core was disturbed before."""
        insort(self.values, found)
        if self.value >= LOWER * self.usual:
            return False
        self.usual = self.value
        return True


class SharedCore:
    """Watches the core that the calling thread is pinned to: whether it is disturbed by another hardware thread or by a
    slow clock.
    """

    def __init__(self, probe: Probe, wait: Callable[[float], object] = spin) -> None:
        self.probe, self.pass_time = probe, wait
        self.times = self.epoch = self.slow_probes = 0
        self.pool = Pool(POOL_S, WAIT_S)
        first = []
        for _ in range(PROBES):
            first.append(probe())
            wait(APART_S)
        self.ratio = Lowest(SHARED, (ratio for ratio, _ in first))
        self.chain = Lowest(SLOW, (chain for _, chain in first))

    def is_disturbed(self) -> bool:
        """Whether the core is shared or its clock is slow at this moment."""
        ratio, chain = self.probe()
        slow = self.chain.exceeded_by(chain)
        self.slow_probes = self.slow_probes + 1 if slow else 0
        if self.slow_probes > STAYS:
            self.chain, self.slow_probes, slow = Lowest(SLOW, [chain]), 0, False
        if slow or self.ratio.exceeded_by(ratio):
            return True
        fallen = [self.ratio.keep(ratio), self.chain.keep(chain)]
        self.epoch += any(fallen)
        return False

    def expect(self, clock_hz: float) -> None:
        """Takes this as the usual frequency, if it is higher than what was seen so far."""
        usual = Lowest(SLOW, [1e9 * _CHAIN * _ROUNDS[1] / clock_hz])
        if usual.value < self.chain.value:
            self.chain = usual

    def disturbances(self) -> int:
        """A count that is the same before and after a sample only if nothing disturbed it.

        No other program then took this core (`switches`), none was on its other hardware thread at the start or end,
        and the clock was fast then.
        """
        if not self.is_disturbed():
            return self.times + switches()
        self.times += 2  # a number that differs from those before and after
        return self.times - 1 + switches()


class Pool:
    """Seconds to wait: `left_s` in all, and `least_s` each time even after that."""

    def __init__(self, left_s: float, least_s: float = 0.0) -> None:
        self.left_s, self.least_s = left_s, least_s


class PatientWatch:
    """Watches the samples of a number on a core, and waits for it before each; without a pool, PATIENCE_S in total."""

    def __init__(self, core: SharedCore, pool: Pool | None = None) -> None:
        self.core, self.pool = core, pool or Pool(PATIENCE_S)

    def wait(self) -> None:
        most_s, waited = max(self.pool.left_s, self.pool.least_s), 0.0
        while waited < most_s and self.core.is_disturbed():
            self.core.pass_time(APART_S)
            waited += APART_S
        self.pool.left_s = max(0.0, self.pool.left_s - waited)

    def lost(self) -> int:
        return self.core.disturbances()

    def epoch(self) -> int:
        return self.core.epoch


def watch(*, alone: bool, clock_hz: float | None = None) -> Watch:
    """The watch for `timing.time_calls`.

    alone: the samples run on the one core that the calling thread is pinned to. For several cores, and on processors
    whose instructions are unknown, it uses only the system's count of lost cores. clock_hz: a frequency that this core
    should reach, if one is known.
    """
    core = shared_core() if alone else None
    if core is None:
        return Switches()
    if clock_hz is not None:
        core.expect(clock_hz)
    return PatientWatch(core)


def pooled_watch() -> Watch:
    """The watch for the samples of one number of a characterization, on the core that the calling thread is pinned to.
    All numbers share a time to wait.
    """
    core = shared_core()
    return Switches() if core is None else PatientWatch(core, core.pool)


def undisturbed(measure: Callable[[], float], until: float) -> float:
    """The first result of `measure` for which nothing disturbed the core; if there is none, the least of a few.

    The calling thread is pinned. After `until`, by `time.monotonic`, nothing is waited for or measured again.
    """
    found, calm = tries(measure, until)
    return found[-1] if calm else min(found)


def tries(measure: Callable[[], Found], until: float) -> tuple[list[Found], bool]:
    """(the result of each run of `measure`, whether nothing disturbed the core during the last). It runs up to TRIES
    times, until nothing does.

    The calling thread is pinned. After `until`, by `time.monotonic`, nothing is waited for or measured again.
    """
    watching = pooled_watch()
    found: list[Found] = []
    for _ in range(TRIES):
        if time.monotonic() < until:
            watching.wait()
        before = watching.lost()
        found.append(measure())
        if watching.lost() == before:
            return found, True
        if time.monotonic() > until:
            break
    return found, False


def epoch() -> int:
    """A number that changes when it turns out that the core had been disturbed from the start, unnoticed."""
    core = shared_core()
    return 0 if core is None else core.epoch


@cache
def shared_core() -> SharedCore | None:
    """The watcher of this process; None if its loops cannot be assembled. It takes 100 ms the first time."""
    try:
        probe = _probe()
    except (ImportError, CommandError):
        return None
    return None if probe is None else SharedCore(probe)


def _probe() -> Probe | None:
    """The ratio of both loops' times, and the chain's time, each the shortest of three runs of twenty microseconds. (A
    call alone takes up to two microseconds, depending on what ran before.) None if the instructions are unknown. Raises
    ImportError, CommandError.
    """
    import numpy as np

    from roofdsl.measure.assembled import is_known, loops

    if not is_known():
        return None
    both = loops({"nops": ["nop"] * _NOPS, "chain": ["addq %rax, %rax"] * _CHAIN}, {})
    block: Any = np.zeros(64, np.uint8)
    now = time.perf_counter_ns

    def probe() -> tuple[float, float]:
        least = [1 << 62, 1 << 62]
        for _ in range(3):
            for k, name in enumerate(("nops", "chain")):
                begun = now()
                both[name](block.ctypes.data, _ROUNDS[k])
                least[k] = min(least[k], now() - begun)
        return least[0] / max(least[1], 1), least[1]

    return probe
