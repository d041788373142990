"""The cycles of small loops in assembly, measured against chains of dependent instructions of known length."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import inf
from statistics import median

from roofdsl.lang.record import Record
from roofdsl.measure.assembled import Loop, loops
from roofdsl.measure.timing import Watch

CHAIN = 100
"""Dependent additions in one round of the loop that tells the clock."""

_CLOCK, _STEADY = "clock_of_this_core", "steady_of_this_core"
_CHAINS = 4
_OFTEN_S, _MOST_RUNS = 5e-3, 30
"""Loops that are shorter than this time over the most runs are run that often."""

_LEAST_PAIRS, _MOST_PAIRS = 5, 99
"""Two loops are compared in at least and at most this many pairs of runs."""

_STEADY_WITHIN = 0.02
"""The clock was the same before and after a run if the chains differ by at most this share."""

_ROOTS, _ROOT_ROUNDS = 20, 60
_ONE = ("movq $0x3ff0000000000000, %rax", "vmovq %rax, %xmm1")


class Reading(Record):
    """Nanoseconds of one round of a loop, and of the steady chain and that of additions measured with it."""

    round_ns: float
    steady_ns: float
    chain_ns: float = inf


class _Run(Record):
    """One run of a loop: whether nothing disturbed the core, whether the clock was the same before and after, and the
    nanoseconds of the loop and of the chain beside it.
    """

    calm: bool
    steady: bool
    taken_ns: float
    chain_ns: float


class Stopwatch:
    """Cycles of loops, derived from two chains of dependent instructions that run before each of them.

    Additions take one cycle each, and so give the length of a cycle. But a thread that shares the core may delay each
    of them by a part of a cycle, and other loops by less. Such a delay hardly shows in a chain of square roots, while a
    change of the clock's frequency shows in both alike. (A thread that divides delays the roots.) So the length of a
    cycle comes from the fastest chain of additions so far. It is scaled by the ratio of the roots measured with a loop
    to the fastest roots, or by that of the additions if it is smaller.

    address: of a buffer of zeros, page-aligned. The shortest of many runs counts, because other programs can only
    make a run longer. The chains run before every run of the loop.
    """

    def __init__(self, all_loops: Mapping[str, Loop], address: int, runs: int) -> None:
        self.loops, self.address, self.runs = all_loops, address, runs
        chains = {_CLOCK: ["addq %rax, %rax"] * CHAIN, _STEADY: ["vsqrtsd %xmm1, %xmm1, %xmm1"] * _ROOTS}
        both = loops(chains, {_STEADY: _ONE})
        self.clock, self.steady = both[_CLOCK], both[_STEADY]
        self.call_ns = self.chain_ns = self.steady_ns = inf  # the shortest so far
        self.steadies: list[float] = []
        self._settle()

    def _settle(self) -> None:
        """Runs for a moment, so that the clock frequency rises."""
        until = time.perf_counter() + 0.05
        while time.perf_counter() < until:
            self.clock(self.address, 1000)
            self._beside()

    def _beside(self) -> tuple[float, float]:
        """Runs both chains once; returns the nanoseconds of the steady one and of the additions."""
        self.call_ns = min(self.call_ns, self._timed(self.clock, 1))
        chain_ns, steady_ns = self._timed(self.clock, 1 + self.ROUNDS), self._timed(self.steady, _ROOT_ROUNDS)
        self.chain_ns, self.steady_ns = min(self.chain_ns, chain_ns), min(self.steady_ns, steady_ns)
        self.steadies.append(steady_ns)
        return steady_ns, chain_ns

    def cycles(self, name: str, estimate: float, rounds_for: float = 12_000) -> float:
        """Cycles of one round, as known so far; the arguments are those of `read`."""
        return self.in_cycles(self.read(name, estimate, rounds_for))

    def in_cycles(self, reading: Reading) -> float:
        """Cycles of one round. The chains of all readings count, so a later call is more accurate."""
        slower = (reading.steady_ns - self.call_ns) / (self.steady_ns - self.call_ns)
        slower = min(slower, (reading.chain_ns - self.call_ns) / (self.chain_ns - self.call_ns))
        return reading.round_ns / (self.cycle_ns * slower)

    def read(self, name: str, estimate: float, rounds_for: float = 12_000) -> Reading:
        """The time of one round, of which `estimate` is a guess in cycles: a run lasts about `rounds_for` cycles.

        A long and a short run are subtracted, so that the calls do not count. A few runs precede them, because a core
        takes some microseconds to power up its widest units.
        """
        loop = self.loops[name]
        few = int(rounds_for / 4 / max(estimate, 1))
        many = 5 * few
        if few < 4:  # long rounds: the time of the call is negligible
            few, many = 0, max(1, int(rounds_for / max(estimate, 1)))
        until = time.perf_counter() + 50e-6
        while time.perf_counter() < until:
            loop(self.address, many)
        short = long = steady = chain = inf
        for _ in range(self.runs):
            steady, chain = (min(*both) for both in zip((steady, chain), self._beside(), strict=True))
            loop(self.address, max(few, 1))
            short = min(short, self._timed(loop, few)) if few else self.call_ns
            long = min(long, self._timed(loop, many))
        return Reading((long - short) / (many - few), steady, chain)

    def cycles_in_one(self, name: str, rounds: int, watch: Watch, *, of_core: bool) -> float:
        """The cycles of one round if `rounds` of them, which take much longer than a call, run at once.

        One run precedes it, so that the loop finds its data where it left them. Runs during which something disturbed
        the core, as `watch` says, do not count if there are others; short ones are made often, since the clock changes
        every few milliseconds. of_core: the loop waits for the core alone, so that the clock beside each run gives its
        cycles, and the median counts. Otherwise the shortest run does, in cycles of the highest clock so far: lines
        from far away come at their own pace.
        """
        loop = self.loops[name]
        loop(self.address, rounds)
        runs: list[_Run] = []
        until = time.perf_counter() + _OFTEN_S
        while len(runs) < self.runs or (len(runs) < _MOST_RUNS and time.perf_counter() < until):
            watch.wait()
            lost, before = watch.lost(), self._chain_now()
            taken = self._timed(loop, rounds) - self.call_ns
            after = self._chain_now()
            runs.append(
                _Run(watch.lost() == lost, abs(before / after - 1) <= _STEADY_WITHIN, taken, (before + after) / 2)
            )
        calm = [r for r in runs if r.calm] or runs
        steady = [r.taken_ns / r.chain_ns for r in calm if r.steady]
        if of_core and steady:
            return sorted(steady)[len(steady) // 2] * self.ROUNDS * CHAIN / rounds
        return min(r.taken_ns for r in calm) / rounds / self.cycle_ns

    def times_as_long(self, one: tuple[str, int], other: tuple[str, int], pairs_s: float = 0.1) -> float:
        """How many times as long a round of one loop takes as one of the other, given the name and rounds of each.

        pairs_s: more than the fewest pairs of runs are made only within this time. Each run of the one is between two
        runs of the other, and the median of the pairs counts: whatever slows both loops alike, such as a thread on the
        same core or a lower clock, does not change it.
        """

        def run(name: str, rounds: int) -> float:
            return (self._timed(self.loops[name], rounds) - self.call_ns) / rounds

        run(*one)
        found: list[float] = []
        before, until = run(*other), time.perf_counter() + pairs_s
        while len(found) < _LEAST_PAIRS or (len(found) < _MOST_PAIRS and time.perf_counter() < until):
            between, after = run(*one), run(*other)
            found.append(2 * between / (before + after))
            before = after
        return median(found)

    def _chain_now(self) -> float:
        """The nanoseconds of the chain of additions at this moment, without those of the call."""
        return min(self._beside()[1] for _ in range(_CHAINS)) - self.call_ns

    ROUNDS = 180

    @property
    def cycle_ns(self) -> float:
        """The nanoseconds of a cycle at the highest clock frequency so far."""
        return (self.chain_ns - self.call_ns) / (self.ROUNDS * CHAIN)

    def hertz(self) -> float:
        """The highest clock frequency seen: wide vectors may lower it for a while."""
        return 1e9 / self.cycle_ns

    def usual_hertz(self) -> float:
        """The clock frequency at most of the measurements: their median. It comes from the roots, which a thread that
        shares the core hardly delays.
        """
        usual_ns = median(self.steadies)
        return self.hertz() * (self.steady_ns - self.call_ns) / (usual_ns - self.call_ns)

    def _timed(self, loop: Loop, rounds: int) -> float:
        start = time.perf_counter_ns()
        loop(self.address, rounds)
        return time.perf_counter_ns() - start
