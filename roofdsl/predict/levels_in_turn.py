"""Levels that do not deliver at the same time as those behind them, and take turns with them (`beside`).

The roofline assumes that all levels deliver at the same time, so the longest time counts. A core is slower if a nearer
cache delivers less, or nothing, while lines pass through it from farther away. The machine then states the rate at
which that cache delivers beside the others, and the times are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.model import Machine
from roofdsl.predict.level_time import LevelTime


def in_turn(
    levels: Sequence[LevelTime], machine: Machine, *, as_measured: bool = False
) -> tuple[tuple[str, Fraction], ...]:
    """(name, seconds) of the levels that take turns according to `machine`, farthest first; otherwise ().

    From the memory towards the registers: the hits of a cache with a `beside` rate (the bytes of its boundary beyond
    those of the next one) are added at that rate. If a level's whole time is longer than that of all levels behind it,
    only that time counts; the same holds if nothing comes from behind. A ceiling on the level lowers the rate by the
    same factor. A cache whose requests wait for those of farther levels may state a rate below its bandwidth; only
    expected times use it (`as_measured`), since code can always take the levels one after the other.
    """
    stated = {cache.name: cache for cache in machine.caches if cache.beside_bytes_per_s is not None}
    order = [*(cache.name for cache in machine.caches), machine.main_memory.name]
    ours = sorted((v for v in levels if v.name in order), key=lambda v: -order.index(v.name))
    if not any(level.name in stated for level in ours):
        return ()
    shares: list[tuple[str, Fraction]] = []
    behind: LevelTime | None = None
    for level in ours:
        cache = stated.get(level.name)
        if cache is not None and behind is not None and behind.timed_bytes:  # else no line comes through it
            assert cache.beside_bytes_per_s is not None
            rate = cache.beside_bytes_per_s
            if not as_measured:
                rate = max(rate, cache.bandwidth_bytes_per_s)
            rate *= level.bandwidth_bytes_per_s / cache.bandwidth_bytes_per_s
            own = max(0, level.timed_bytes - behind.timed_bytes)
            shares.append((level.name, own / rate))
        if level.time_s > sum((t for _, t in shares), Fraction(0)):
            shares = [(level.name, level.time_s)]
        behind = level
    return tuple((name, time) for name, time in shares if time)
