"""Levels that do not deliver at the same time as those behind them, and take turns with them (`beside`).

The roofline assumes that all levels deliver at the same time, so the longest time counts. A core is slower than that if
a nearer cache delivers less, or nothing, while lines pass through it from farther away. The machine then states the
rate at which that cache's hits add to the time of the levels behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.model import Cache, Machine
from roofdsl.predict.level_time import LevelTime


def in_turn(
    levels: Sequence[LevelTime], machine: Machine, *, as_measured: bool = False, at_least: int | None = None
) -> tuple[tuple[str, Fraction], ...]:
    """(name, seconds) of the levels that take turns according to `machine`, farthest first; otherwise ().

    From the memory towards the registers: the hits of a cache with a `beside` rate (the bytes of its boundary beyond
    those of the next one) are added at that rate, and those that are both loaded and stored at `beside_updates`. If a
    share of the passing lines comes from beyond the next level, the same share of the hits is added at the `beside_far`
    rate. If a level's whole time is longer than this sum up to and including its hits, only that time counts. A level
    through which nothing comes from behind adds no hits. A ceiling on the level lowers the rates by the same factor. A
    cache whose requests wait for those of farther levels may state a rate below its bandwidth. Only expected times use
    such a rate (`as_measured`); the bound does not, since code can always access the levels one after the other.

    at_least: if the bytes of levels are upper bounds, so many certainly pass through all of them. The times are upper
    bounds, too, then: no other bytes count as passing, and all hits are as slow as the slowest.
    """
    stated = {cache.name: cache for cache in machine.caches if cache.takes_turns}
    order = [*(cache.name for cache in machine.caches), machine.main_memory.name]
    ours = sorted((v for v in levels if v.name in order), key=lambda v: -order.index(v.name))
    if not any(level.name in stated for level in ours):
        return ()
    shares: list[tuple[str, Fraction]] = []
    for k, level in enumerate(ours):
        cache, behind = stated.get(level.name), ours[k - 1] if k else None
        if cache is not None and behind is not None and behind.through_bytes:  # else no line comes through it
            capped = level.bandwidth_bytes_per_s / cache.bandwidth_bytes_per_s
            if at_least is not None:
                own = max(0, level.timed_bytes - min(at_least, behind.through_bytes))
                hits_s = own / cache.bandwidth_bytes_per_s  # no hits are slower
            else:
                farther = ours[k - 2] if k > 1 else None
                hits_s = _hits_s(level, behind, farther, cache, as_measured=as_measured)
            shares.append((level.name, hits_s / capped))
        if level.time_s > sum((t for _, t in shares), Fraction(0)):
            shares = [(level.name, level.time_s)]
    return tuple((name, time) for name, time in shares if time)


def _hits_s(
    level: LevelTime, behind: LevelTime, farther: LevelTime | None, cache: Cache, *, as_measured: bool
) -> Fraction:
    """The seconds that the hits of a level add to those of the levels behind it."""
    own = max(0, level.timed_bytes - behind.through_bytes)
    far = Fraction(0)
    if farther is not None:
        far = min(Fraction(1), Fraction(farther.through_bytes, behind.through_bytes))
    updated = _updated(level, behind, own)
    hits_s = (own - updated) * _seconds_a_byte(cache, far, as_measured)
    return hits_s + updated * _seconds_a_byte(cache, far, as_measured, updates=True)


def _updated(level: LevelTime, behind: LevelTime, own: int) -> int:
    """The part of the `own` bytes of hits that is both loaded and stored: twice the smaller direction."""
    sides = level.loads_bytes, level.stores_bytes, behind.loads_bytes, behind.stores_bytes
    if any(side is None for side in sides):
        return 0
    loads, stores, loaded, stored = (side or 0 for side in sides)
    return min(own, 2 * max(0, min(loads - loaded, stores - stored)))


def _seconds_a_byte(cache: Cache, far: Fraction, as_measured: bool, *, updates: bool = False) -> Fraction:
    """The seconds that a byte of hits adds, given the share of the lines that come from farther than the next level."""
    near_rate = cache.beside_bytes_per_s
    if updates and cache.beside_updates_bytes_per_s is not None:
        near_rate = cache.beside_updates_bytes_per_s
    far_rate = cache.beside_far_bytes_per_s or near_rate
    least = Fraction(0) if as_measured else cache.bandwidth_bytes_per_s
    rates = ((1 - far, near_rate), (far, far_rate))
    return sum((part / max(rate, least) for part, rate in rates if rate is not None), Fraction(0))
