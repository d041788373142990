"""The levels of a processor: what the system reports of its caches, completed from bandwidth over working sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log

from roofdsl.measure.bandwidth_curve import MANY, PATTERNS, Bandwidth, Point, Sweep, bandwidth
from roofdsl.measure.device import Cpu, ReportedCache
from roofdsl.measure.held import held_bytes
from roofdsl.measure.levels_of_curve import Plateau, plateaus
from roofdsl.measure.timing import median

SMALLEST = 4 << 10

BEYOND = 4
"""Memory is measured with working sets of at least this many times what a core has of the caches."""


def share(size_bytes: int, copies: int, cores: int) -> float:
    """What each of `cores` cores has of the copies of a cache, in bytes."""
    return size_bytes * min(copies, cores) / cores


Larger = tuple[float, Bandwidth]
"""Bytes of a working set, and the bandwidth from there on."""

LEAST, STEP = 3, 1.15
"""The working sets on each side of a step inside a cache, at least, and the least ratio of its rates."""


@dataclass(frozen=True)
class Level:
    """A cache or the memory. `seen_bytes` is read off the curve of one core, `reported` comes from the system.

    capacity_bytes: of one copy; the system's number if the curve agrees or shows nothing; for the memory, its size.
    agrees: whether a cache of the reported size explains the step of the curve; None if one of them is missing.
    one_core: the bandwidth of one core alone; `all_cores` that of all together. Both are the best of all working sets
    in the level; `typical` and `typical_alone` are the median, on ordinary pages. `larger`, `larger_alone`: if large
    working sets get another rate, the bytes from which they do, per core, and this rate; typical is then that of the
    smaller ones. holds_bytes: the part of the last cache that all cores keep if others use it too; `holds_alone`: the
    part that one core keeps; None if that is all.
    """

    name: str
    capacity_bytes: int
    seen_bytes: int | None
    reported: ReportedCache | None
    agrees: bool | None
    all_cores: Bandwidth
    one_core: Bandwidth
    holds_bytes: int | None = None
    holds_alone: int | None = None
    typical: Bandwidth | None = None
    typical_alone: Bandwidth | None = None
    larger: Larger | None = None
    larger_alone: Larger | None = None

    def kept_bytes(self, cores: int) -> int:
        """The capacity that remains for one core, or for all of several."""
        kept = self.holds_alone if cores == 1 else self.holds_bytes
        return self.capacity_bytes if kept is None else kept


def find_levels(
    cpu: Cpu,
    cores: int,
    alone: Sweep,
    together: Sweep,
    again: tuple[Sequence[Sweep], Sequence[Sweep]] = ((), ()),
    *,
    ordinary: tuple[Sweep, Sweep] | None = None,
) -> tuple[tuple[Level, ...], tuple[str, ...]]:
    """The levels that the system reports, completed from the curve of one core; if it reports none, the levels of the
    curve alone. Also notes for people. Raises ValueError for an empty sweep.

    again: further sweeps of one core, and of all, around the end of the last cache. ordinary: sweeps of the caches on
    ordinary pages, which show the typical rates; without them, the other sweeps do.
    """
    caches, notes = _caches(cpu, cores, alone)
    levels: list[Level] = []
    below = below_share = 0.0  # the capacity of the level before, for one core and for all
    for c in caches:
        own = share(c.capacity_bytes, c.copies, cores)
        ranges = (alone, below * 1.5, c.capacity_bytes * 0.75), (together, below_share * 1.5, own * 0.75)
        widths = _bandwidths(*(_inside(*there) for there in ranges), first=not levels)
        usual = zip(ordinary or (alone, together), ranges, strict=True)
        typical = [_by_size(sweep, *there[1:], widths[0]) for sweep, there in usual] if levels else [(None, None)] * 2
        holds: tuple[int | None, int | None] = (None, None)
        if c is caches[-1] and levels and c.reported is not None:
            one = held_bytes([alone, *again[0]], ranges[0][1:], BEYOND * c.capacity_bytes, c.capacity_bytes)
            all_of_them = held_bytes([together, *again[1]], ranges[1][1:], BEYOND * own, own)
            holds = (None if all_of_them is None else all_of_them * cores // min(c.copies, cores), one)
            if one is not None:
                whole = c.reported.size_bytes >> 10
                notes.append(f"{c.name}: {whole} KiB reported, of which a core keeps {one >> 10} KiB beside others")
        level = Level(
            c.name, c.capacity_bytes, c.seen_bytes, c.reported, c.agrees, *widths, *holds,
            typical=typical[1][0], typical_alone=typical[0][0], larger=typical[1][1], larger_alone=typical[0][1],
        )  # fmt: skip
        levels.append(level)
        below, below_share = c.capacity_bytes, own
    lasts = (max((share(c.capacity_bytes, c.copies, n) for c in caches), default=0) for n in (1, cores))
    far = (_inside(sweep, BEYOND * last, inf) for sweep, last in zip((alone, together), lasts, strict=True))
    widths = _bandwidths(*far, first=not levels)
    levels.append(Level("DRAM", cpu.memory_bytes or 1 << 30, None, None, None, *widths))
    return tuple(levels), tuple(notes)


def _caches(cpu: Cpu, cores: int, alone: Sweep) -> tuple[list[_Found], list[str]]:
    """The caches with their capacities, nearest first, and notes for people."""
    seen = seen_plateaus(alone)
    notes: list[str] = []
    caches: list[_Found] = []
    for k, cache in enumerate(cpu.caches):
        # A share of the last cache may be as small as a few times the cache before it.
        least = min(cache.size_bytes / 4, 4 * caches[-1].capacity_bytes if _is_shared(k, cpu) else inf)
        found = _as_reported(_match(cache, seen, least, trusted=not noise(alone)), cache, k, cpu)
        kib = f"L{cache.level}: {cache.size_bytes >> 10} KiB reported"
        if _is_shared(k, cpu):
            pass
        elif found.seen_bytes is None:
            notes.append(f"{kib}, and no step of the curve there")
        elif not found.agrees:
            taken = "which is taken" if found.capacity_bytes != cache.size_bytes else "too noisy to use"
            notes.append(f"{kib}, {found.seen_bytes >> 10} KiB read off the curve, {taken}")
        caches.append(found)
    if not cpu.caches:
        notes.append("the system reports no caches; the levels come from the curve")
        for k, size in enumerate(p.capacity_bytes for p in seen if p.capacity_bytes):
            caches.append(_Found(f"L{k + 1}", None, _rounded(size), size, None, cores if k == 0 else 1))
    return caches, notes


def _is_shared(place: int, cpu: Cpu) -> bool:
    """Whether others may use this cache too, even other systems: the last one of several caches."""
    return 0 < place == len(cpu.caches) - 1


@dataclass(frozen=True)
class _Found:
    """A cache with the capacity decided for it."""

    name: str
    reported: ReportedCache | None
    capacity_bytes: int
    seen_bytes: int | None
    agrees: bool | None
    copies: int


def _match(cache: ReportedCache, seen: Sequence[Plateau], least_bytes: float, trusted: bool) -> _Found:
    """Match a cache with the step of the curve that it explains, or with the nearest one from `least_bytes` to four
    times its size.

    If the step is so far from the reported size that the cache does not explain it (a share of a cache in a virtual
    machine), the curve's capacity is used, unless the machine was too busy for its curve to be `trusted`.
    """
    name = f"L{cache.level}"
    steps = [p for p in seen if p.capacity_bytes and least_bytes <= p.capacity_bytes <= 4 * cache.size_bytes]
    near = min(steps, key=lambda p: (not p.could_end_at(cache.size_bytes), _distance(p, cache)), default=None)
    if near is None or near.capacity_bytes is None:
        return _Found(name, cache, cache.size_bytes, None, None, cache.copies)
    if near.could_end_at(cache.size_bytes):
        return _Found(name, cache, cache.size_bytes, near.capacity_bytes, True, cache.copies)
    if not trusted:
        return _Found(name, cache, cache.size_bytes, near.capacity_bytes, False, cache.copies)
    return _Found(name, cache, _rounded(near.capacity_bytes), near.capacity_bytes, False, cache.copies)


def _as_reported(found: _Found, cache: ReportedCache, place: int, cpu: Cpu) -> _Found:
    """The cache with the system's capacity, where the curve says nothing against it: what a core keeps of a shared
    cache is no capacity, and in a nearer cache, noise and pages that share sets let the curve fall early.
    """
    if _is_shared(place, cpu):
        return replace(found, capacity_bytes=cache.size_bytes)
    if place < len(cpu.caches) - 1 and found.capacity_bytes < cache.size_bytes:
        return replace(found, capacity_bytes=cache.size_bytes, agrees=None)
    return found


def _rounded(size_bytes: int) -> int:
    """A capacity read off a curve, to the nearest 1/64 of its power of two: no curve shows more."""
    step = max(64, 1 << max(0, size_bytes.bit_length() - 7))
    return max(1, round(size_bytes / step)) * step


def _distance(plateau: Plateau, cache: ReportedCache) -> float:
    return abs(log(plateau.capacity_bytes or 1) - log(cache.size_bytes))


def _inside(sweep: Sweep, low: float, high: float) -> list[Point]:
    """The best point of each pattern within these working sets; if there is none, the nearest point, except for those
    of many streams.
    """
    found = []
    for pattern in (*PATTERNS, *MANY):
        best = sweep.best(pattern, low, high)
        if best is None and pattern in MANY:
            continue
        if best is None:
            middle = (max(low, SMALLEST) * min(max(high, low, SMALLEST), 1 << 50)) ** 0.5
            best = min(sweep.of(pattern), key=lambda p: abs(p.working_set_bytes / middle - 1))
        found.append(best)
    return found


def _middle(sweep: Sweep, low: float, high: float) -> list[Point]:
    """The point of median rate of each pattern within these working sets; none of patterns without a point there."""
    found = []
    for pattern in PATTERNS:
        inside = sorted(sweep.of(pattern), key=lambda p: p.bytes_per_s)
        inside = [p for p in inside if low <= p.working_set_bytes <= high]
        found += inside[(len(inside) - 1) // 2 : (len(inside) + 1) // 2]
    return found


def _typical(points: Sequence[Point], best: Bandwidth) -> Bandwidth | None:
    """The bandwidth of such points, with bytes counted as for the best ones; None if they are too few."""
    if len(points) < len(PATTERNS):
        return None
    return bandwidth(points, best.counts, with_updates=True, allocated=best.allocated)


def _by_size(sweep: Sweep, low: float, high: float, best: Bandwidth) -> tuple[Bandwidth | None, Larger | None]:
    """The typical bandwidth of working sets between these bytes: of all, or of the smaller and of the larger ones, if
    one step of the fastest stream explains most of the differences.
    """
    every = _typical(_middle(sweep, low, high), best)
    curve = [(size, log(rate)) for size, rate in zip(*sweep.fastest(), strict=True) if low <= size <= high and rate]
    if len(curve) < 2 * LEAST:
        return every, None
    rates = [rate for _, rate in curve]
    at = min(range(LEAST, len(curve) - LEAST + 1), key=lambda k: _scatter(rates[:k]) + _scatter(rates[k:]))
    apart = _scatter(rates[:at]) + _scatter(rates[at:])
    start = curve[at][0]
    small, large = (_typical(_middle(sweep, *part), best) for part in ((low, start - 1), (start, high)))
    if small is None or large is None or 2 * apart > _scatter(rates):
        return every, None
    if not abs(log(large.bytes_per_s / small.bytes_per_s)) > log(STEP):
        return every, None
    return small, (start, large)


def _scatter(numbers: Sequence[float]) -> float:
    """The sum of the squared distances from the mean."""
    mean = sum(numbers) / len(numbers)
    return sum((x - mean) ** 2 for x in numbers)


def _bandwidths(alone: Sequence[Point], together: Sequence[Point], *, first: bool) -> tuple[Bandwidth, Bandwidth]:
    """(of all cores, of one core). All cores reach at least what one core reaches, since the others may idle: a slower
    team was disturbed. At the level nearest to the registers, accesses are counted, so nothing is loaded before a
    store.
    """
    points = [*alone, *together]  # those of many streams may be in one of them only
    patterns = dict.fromkeys(p.pattern for p in points)
    best = [max((p for p in points if p.pattern == which), key=lambda p: p.bytes_per_s) for which in patterns]
    all_cores = bandwidth(best, "no_write_allocate" if first else None, with_updates=True)
    return all_cores, bandwidth(alone, all_cores.counts, with_updates=True, allocated=all_cores.allocated)


def noise(sweep: Sweep) -> tuple[str, ...]:
    spread = median([p.spread for p in sweep.points])
    if spread <= 0.15:
        return ()
    return (f"a noisy machine: samples of one number spread by {spread:.0%} in the median",)


def seen_plateaus(sweep: Sweep) -> tuple[Plateau, ...]:
    """The plateaus of a sweep's fastest stream."""
    return plateaus(*sweep.fastest())
