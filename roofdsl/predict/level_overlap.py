"""Levels that do not deliver at the same time as those behind them: what they take turns for (`beside`).

The roofline lets every level run beside all others, and the longest counts. A core whose nearer cache delivers less, or
nothing, while lines come through it from farther away is slower: the machine then states at which rate that cache
delivers beside the others, and the times add.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.model import Machine
from roofdsl.predict.time import LevelTime


def in_turn(levels: Sequence[LevelTime], machine: Machine) -> tuple[tuple[str, Fraction], ...]:
    """(name, seconds) of what follows one upon another, farthest first, where `machine` says that levels do; else ().

    From the memory towards the arithmetic: what a cache with a `beside` rate delivers of its own (the bytes of its
    boundary beyond those of the next one) is added at that rate; where a level's whole time is longer than all behind
    it, that alone counts, and so it does where nothing comes from behind. With a ceiling on the level the rate is
    lower by the same part.
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
            rate = cache.beside_bytes_per_s * level.bandwidth_bytes_per_s / cache.bandwidth_bytes_per_s
            own = max(0, level.timed_bytes - behind.timed_bytes)
            shares.append((level.name, own / rate))
        if level.time_s > sum((t for _, t in shares), Fraction(0)):
            shares = [(level.name, level.time_s)]
        behind = level
    return tuple((name, time) for name, time in shares if time)
