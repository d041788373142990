"""Whether another hardware thread shares this core at the moment. All code on the core is then up to twice as slow.

Many processors run two threads on one core. In a virtual machine, the other one may belong to somebody else, and no
counter of this system shows it. Its use of the core shows in the number of instructions that the core dispatches per
cycle. So two loops detect it: independent instructions, as many as the core can dispatch, and a chain of dependent
additions, which runs at one per cycle either way. The ratio of their times is steady on an unshared core, and 1.4 to 2
times as high on a shared one. The clock frequency changes both times alike, so it does not matter.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.timing import Switches, Watch, switches

SHARED = 1.25
"""From this multiple of its lowest value on, the ratio shows a shared core; on an unshared core it stays below 1.15."""

PART, LEAST = 0.03, 3
"""The lowest value is the ratio at this part of all ratios in ascending order, at least the third: a few are disturbed.
"""

PROBES = 40
"""The number of probes that give the first lowest value."""

LOWER = 0.87
"""If the lowest value falls to this part of its former value, the core had been shared from the start, unnoticed."""

APART_S = 2e-3
"""The pause between two probes, and while waiting: the other thread comes and goes every few milliseconds."""

PATIENCE_S = 2.0
"""How long all samples of one measurement together wait for the core."""

TRIES, WAIT_S = 3, 0.05
"""How often a number of a characterization is measured at most, and how long each measurement waits for the core."""

_NOPS, _CHAIN, _ROUNDS = 96, 96, (400, 67)

Probe = Callable[[], float]
Found = TypeVar("Found")


class SharedCore:
    """Watches the core that the calling thread is pinned to. `probe` gives the ratio of the two loops' times."""

    def __init__(self, probe: Probe, sleep: Callable[[float], object] = time.sleep) -> None:
        self.probe, self.sleep = probe, sleep
        self.ratios: list[float] = []
        self.times = 0
        for _ in range(PROBES):
            insort(self.ratios, probe())
            sleep(APART_S)
        self.epoch, self.usual = 0, self.lowest

    @property
    def lowest(self) -> float:
        """The ratio on an unshared core, as far as known."""
        return self.ratios[min(max(LEAST - 1, int(PART * len(self.ratios))), len(self.ratios) - 1)]

    def is_shared(self) -> bool:
        """Whether the core is shared at this moment.

        Ratios of a shared core are not kept: a neighbor that stays for long must not become the usual state.
        """
        found = self.probe()
        if found > SHARED * self.lowest:
            return True
        insort(self.ratios, found)
        if self.lowest < LOWER * self.usual:
            self.epoch, self.usual = self.epoch + 1, self.lowest
        return False

    def wait(self, most_s: float) -> float:
        """Waits until the core is not shared, for at most `most_s`; returns the seconds spent, 0 without waiting."""
        waited = 0.0
        while waited < most_s and self.is_shared():
            self.sleep(APART_S)
            waited += APART_S
        return waited

    def disturbances(self) -> int:
        """A count that is the same before and after a sample only if nothing disturbed it.

        No other program then took this core (`switches`), and none was on its other hardware thread at the start or
        end.
        """
        if not self.is_shared():
            return self.times + switches()
        self.times += 2  # a number that differs from those before and after
        return self.times - 1 + switches()


class PatientWatch:
    """For `timing.time_calls`: before each sample, waits for the core, up to PATIENCE_S in total."""

    def __init__(self, core: SharedCore) -> None:
        self.core, self.left_s = core, PATIENCE_S

    def wait(self) -> None:
        self.left_s -= self.core.wait(self.left_s)

    def lost(self) -> int:
        return self.core.disturbances()

    def epoch(self) -> int:
        return self.core.epoch


def watch(*, alone: bool) -> Watch:
    """The watch for `timing.time_calls`.

    alone: the samples run on the one core that the calling thread is pinned to. For several cores, and on processors
    whose instructions are unknown, it uses only the system's count of lost cores.
    """
    core = shared_core() if alone else None
    return Switches() if core is None else PatientWatch(core)


def undisturbed(measure: Callable[[], float], until: float) -> float:
    """The first result of `measure` for which nobody shared the core; if there is none, the least of a few.

    The calling thread is pinned. After `until`, by `time.monotonic`, nothing is waited for or measured again.
    """
    found, calm = tries(measure, until)
    return found[-1] if calm else min(found)


def tries(measure: Callable[[], Found], until: float) -> tuple[list[Found], bool]:
    """(the result of each run of `measure`, whether nobody shared the core during the last). It runs up to TRIES times,
    until nobody does.

    The calling thread is pinned. After `until`, by `time.monotonic`, nothing is waited for or measured again.
    """
    core = shared_core()
    if core is None:
        return [measure()], True
    found: list[Found] = []
    for _ in range(TRIES):
        core.wait(WAIT_S if time.monotonic() < until else 0.0)
        before = core.disturbances()
        found.append(measure())
        if core.disturbances() == before:
            return found, True
        if time.monotonic() > until:
            break
    return found, False


def epoch() -> int:
    """A number that changes when it turns out that the core had been shared from the start, unnoticed."""
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
    """The ratio of both loops' times, each the shortest of three runs of two microseconds. Raises ImportError,
    CommandError.
    """
    import numpy as np

    from roofdsl.measure.assembled import is_known, loops

    if not is_known():
        return None
    both = loops({"nops": ["nop"] * _NOPS, "chain": ["addq %rax, %rax"] * _CHAIN}, {})
    block: Any = np.zeros(64, np.uint8)
    now = time.perf_counter_ns

    def ratio() -> float:
        least = [1 << 62, 1 << 62]
        for _ in range(3):
            for k, name in enumerate(("nops", "chain")):
                begun = now()
                both[name](block.ctypes.data, _ROUNDS[k])
                least[k] = min(least[k], now() - begun)
        return least[0] / max(least[1], 1)

    return ratio
