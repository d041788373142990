"""The time of one launch on a GPU: what its blocks ask of the machine, wave by wave, and how long its threads wait.

All blocks that fit on the multiprocessors run at the same time, as a wave; the last wave may fill only a part. In a
wave, these overlap: the instructions inside each multiprocessor, its accesses to the first cache, the transfers that
all multiprocessors share, and the rounds of a thread, each of which waits for its loads. If two of these take about the
same time, each waits for the other at times (`bytes_in_flight`).
"""

from __future__ import annotations

from roofdsl.lang.record import Record, replace
from roofdsl.machine.model import Machine, Sustained
from roofdsl.predict.bytes_in_flight import together_s

TRIAD = 3
"""With so many bytes per stored byte, as in a triad, a stream has the rate of mixed loads and stores (gpu-benches)."""

SCALE = 2
"""With this many bytes per loaded byte, as in a scaled copy, a stream has that rate, too."""


class Waves(Record):
    """The blocks of a launch. resident: blocks on one multiprocessor at a time; units: multiprocessors. fullest: the
    share of all work that a whole block has; at the ends of the loops, blocks have less.
    """

    blocks: int
    resident: int
    units: int
    fullest: float

    @property
    def each(self) -> tuple[tuple[int, int], ...]:
        """(how many waves, their blocks): whole waves, and what is left."""
        whole, rest = divmod(self.blocks, self.resident * self.units)
        return tuple(wave for wave in ((whole, self.resident * self.units), (min(rest, 1), rest)) if wave[0])

    @property
    def count(self) -> int:
        return sum(waves for waves, _ in self.each)


class Asked(Record):
    """What a launch asks of a machine, in seconds if all multiprocessors have the same share.

    inside: times inside the multiprocessors, by what takes them. shared: times of the transfers that all of them share,
    by level. thread: seconds of one thread alone, of which it starts instructions for `issue`. in_order: the share of
    the `accesses` inside that a thread waits for, whichever thread makes them. exponent: of the law by which they
    combine.
    """

    inside: tuple[tuple[str, float], ...]
    shared: tuple[tuple[str, float], ...]
    thread: float
    issue: float
    in_order: float
    exponent: float

    def slower(self, inside: float, instructions: float, thread: float) -> Asked:
        """The launch with times multiplied by these factors: all those inside by `inside`, that of the instructions
        also by `instructions`, and the time of a thread by `thread`.
        """
        by = {"instructions": inside * instructions}
        longer = tuple((name, time_s * by.get(name, inside)) for name, time_s in self.inside)
        return replace(self, inside=longer, thread=self.thread * thread)

    @property
    def longest(self) -> tuple[str, float]:
        """What would take longest if all blocks ran at the same time and no thread ever waited, with its time."""
        return max((*self.inside, *self.shared), key=lambda each: each[1])


def spread_s(asked: Asked, waves: Waves) -> float:
    """Seconds of all waves if everything overlapped perfectly: the busiest multiprocessor ends a wave."""
    return sum(count * max(_parts(asked, waves, blocks)) for count, blocks in waves.each)


def waiting_s(asked: Asked, waves: Waves) -> float:
    """Seconds of all waves."""
    inside = dict(asked.inside)
    awaited = asked.in_order * inside["accesses"]
    left = replace(asked, inside=tuple({**inside, "accesses": inside["accesses"] - awaited}.items()))
    return sum(
        count
        * together_s((*_parts(left, waves, blocks), asked.thread + awaited * _busiest(waves, blocks)), asked.exponent)
        for count, blocks in waves.each
    )


def _parts(asked: Asked, waves: Waves, blocks: int) -> tuple[float, ...]:
    """Seconds of a wave of so many blocks: of each part inside its busiest multiprocessor, and of the transfers that
    all multiprocessors share.
    """
    busiest, shared = _busiest(waves, blocks), max(time_s for _, time_s in asked.shared)
    return (*(time_s * busiest for _, time_s in asked.inside), shared * blocks / waves.blocks)


def _busiest(waves: Waves, blocks: int) -> float:
    """The share of all work that the busiest multiprocessor has in a wave of so many blocks, times the number of all
    multiprocessors.
    """
    return max(-(-blocks // waves.units) / waves.blocks, waves.fullest) * waves.units


class Stream(Record):
    """The law of the memory's bandwidth for a mix of loads and stores (`bytes_in_flight`)."""

    bandwidth_bytes_per_s: float
    latency_s: float
    exponent: float


def instructions_per_s(machine: Machine) -> float:
    """Instructions of single threads that all schedulers start per second: each starts one of a whole warp per cycle.

    machine: a GPU with a `multiprocessor`. Infinite for a machine without a clock.
    """
    own = machine.multiprocessor
    assert own is not None
    if machine.clock_hz is None:
        return float("inf")
    return float((machine.units or 1) * own.schedulers * own.warp * machine.clock_hz)


def stream_of(machine: Machine, loads_bytes: float, stores_bytes: float) -> Stream | None:
    """The law for these bytes, between those of pure and of mixed streams; None if the machine states neither."""
    level = machine.main_memory.name
    stated = {s.direction: s for s in machine.sustained if s.level == level}
    mixed = stated.get("mixed")
    pure = stated.get("read" if loads_bytes >= stores_bytes else "write", mixed)
    if mixed is None or pure is None:
        one = mixed or pure
        return None if one is None else _law(one, one, 0.0)
    whole = loads_bytes + stores_bytes
    few = TRIAD * stores_bytes if loads_bytes >= stores_bytes else SCALE * loads_bytes
    return _law(pure, mixed, min(1.0, few / whole) if whole else 0.0)


def _law(pure: Sustained, mixed: Sustained, share: float) -> Stream:
    def between(of: str) -> float:
        return (1 - share) * float(getattr(pure, of)) + share * float(getattr(mixed, of))

    return Stream(between("bandwidth_bytes_per_s"), between("latency_s"), between("exponent"))


def round_s(machine: Machine, missed: dict[str, float], memory_s: float) -> float:
    """Seconds that a thread waits in a round: for the first cache, and longer in the rounds that miss it.

    missed: for the level behind the first cache and all farther ones, the share of rounds that wait for it. memory_s:
    the latency of a round to the memory, for levels whose latency the machine does not state.
    """
    stated = {level: float(seconds) for level, seconds in machine.latencies}
    names = [*(cache.name for cache in machine.caches), machine.main_memory.name]
    far = stated.get(names[-1], memory_s)
    found = before = stated.get(names[0], far)
    for name in names[1:]:
        latency = max(before, stated.get(name, far))
        found += missed.get(name, 1.0) * (latency - before)
        before = latency
    return found
