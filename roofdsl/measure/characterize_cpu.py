"""This processor's measured ceilings: peaks of each type and class, bandwidth over working sets, cost of a call.

The empirical roofline: numba loops (microkernels.py) on one core and on all usable cores at once. Every number is the
median of its samples. A peak is the best over several numbers of accumulators. A level's bandwidth comes from the
fastest working set well inside the level: a slower stream was disturbed by neighbors or by its own start, and a roof
is what can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

from roofdsl.measure.bandwidth_curve import PATTERNS, Bandwidth, Pattern, Point, Sweep, bandwidth
from roofdsl.measure.core_facts import CoreFacts, core_facts
from roofdsl.measure.device import Cpu, ReportedCache, describe_cpu, software
from roofdsl.measure.energy_rates import MachineEnergy, energy_or_reason
from roofdsl.measure.level_overlap import Place, measure
from roofdsl.measure.levels_of_curve import Plateau, plateaus
from roofdsl.measure.measurement import now
from roofdsl.measure.microkernels import nothing, stream
from roofdsl.measure.multicore_timing import FULL, PIECE, QUICK, Effort, rate, rate_in_pieces
from roofdsl.measure.other_load import BUSY, Others, taken_by_others
from roofdsl.measure.peaks import DTYPES, Peak, at_least_one_core, measure_peak, misfits_of, settled, wanted
from roofdsl.measure.timing import MOST_SPREAD, median, pinned, time_calls, usable_cores
from roofdsl.measure.walk_rates import WalkRates, walk_rates

Progress = Callable[[float, str], None]
"""Called with the part done (0 to 1) and what is being measured."""

SMALLEST = 4 << 10
CALL_ROUNDS = 7
AGAIN_S = {True: 10.0, False: 30.0}
"""Seconds for repeating doubtful measurements, in a quick and in a full characterization."""

_BEYOND = 4  # memory is measured with working sets of at least this many times the last cache


@dataclass(frozen=True)
class Level:
    """A cache or the memory. `seen_bytes` is read off the curve of one core, `reported` comes from the system.

    capacity_bytes: of one copy; the system's number if the curve agrees or shows nothing; for the memory, its size.
    agrees: whether a cache of the reported size explains the step of the curve; None if one of them is missing.
    one_core: the bandwidth of one core alone; `all_cores` that of all together.
    """

    name: str
    capacity_bytes: int
    seen_bytes: int | None
    reported: ReportedCache | None
    agrees: bool | None
    all_cores: Bandwidth
    one_core: Bandwidth


@dataclass(frozen=True)
class Characterization:
    """All measured data; machine_file.py writes it as a machine.

    disturbed: a message about the processor time that other programs took meanwhile; empty if it is little or unknown.
    facts: the costs of instructions on one core; None if this processor's are unknown. walks: the costs on one core of
    lines that it takes one by one. energy: of all cores together, if it was requested and could be read.
    """

    cpu: Cpu
    software: dict[str, str]
    when: str
    cores: int
    quick: bool
    peaks: tuple[Peak, ...]
    levels: tuple[Level, ...]
    one_core: Sweep
    all_cores: Sweep
    call_s: float
    notes: tuple[str, ...]
    disturbed: str = ""
    facts: CoreFacts | None = None
    walks: WalkRates | None = None
    energy: MachineEnergy | None = None

    def peak(self, type_name: str, cls: str) -> Peak | None:
        return next((p for p in self.peaks if (p.type, p.cls) == (type_name, cls)), None)

    def alone(self) -> Characterization:
        """The results for one core alone, from the same run; single-threaded code is judged by them."""
        peaks = tuple(replace(p, all_cores=p.one_core) for p in self.peaks)
        levels = tuple(replace(level, all_cores=level.one_core) for level in self.levels)
        return replace(self, cores=1, peaks=peaks, levels=levels, all_cores=self.one_core, energy=None)


def characterize_cpu(
    quick: bool = False, cores: int | None = None, progress: Progress | None = None, *, energy: bool = False
) -> Characterization:
    """Measure the usable cores, or the first `cores` of them, in under two minutes (`quick`: under thirty seconds).

    energy: also read powers, which takes half a minute more; the notes say if that is not possible. Raises ValueError
    if there are not so many cores.
    """
    usable = usable_cores()
    if cores is not None and not 1 <= cores <= len(usable):
        raise ValueError(f"{cores} cores were requested, but only {len(usable)} can be used")
    team = usable[: cores or len(usable)]
    cpu = describe_cpu()
    effort = QUICK if quick else FULL
    tell = progress or (lambda part, what: None)
    meanwhile = Others()
    classes = wanted(("f64", "f32", "i32") if quick else tuple(DTYPES))
    peaks = []
    for k, key in enumerate(classes):
        tell(0.35 * k / len(classes), " ".join(key))
        peaks.append(measure_peak(key, team, effort))
    sizes = working_sets(cpu, len(team), 1 if quick else 2)
    buffers = Buffers(max(sizes) + (1 << 16), len(team))
    alone = run_sweep(team[:1], sizes, buffers, effort, lambda p, w: tell(0.35 + 0.33 * p, w))
    together = alone
    if len(team) > 1:
        together = run_sweep(team, sizes, buffers, effort, lambda p, w: tell(0.68 + 0.27 * p, w))
    tell(0.94, "repeating doubtful measurements")
    settle_s = AGAIN_S[quick]
    checked = settled(peaks, len(team), lambda key: measure_peak(key, team, effort), settle_s)
    alone = again_in_doubt(alone, cpu, team[:1], buffers, effort)
    together = again_in_doubt(together, cpu, team, buffers, effort) if len(team) > 1 else alone
    levels, notes = find_levels(cpu, len(team), alone, together)
    levels = beside_each_other(levels, team, buffers, effort, lambda p, w: tell(0.95 + 0.04 * p, w))
    with pinned(team[:1]):
        tell(0.97, "strided walks")
        walks = _walks(levels, buffers.blocks[0], quick)
        tell(0.98, "instructions")
        facts = core_facts(quick)
    energies, why_not = None, ""
    if energy:
        energies, why_not = energy_or_reason(_places(levels, len(team)), buffers.blocks, team, quick=quick, tell=tell)
    tell(0.99, "call")
    call_s = _call_s()
    others = meanwhile.cores() or 0.0
    disturbed = taken_by_others(others) if others >= BUSY else ""
    misfits = [doubt.why for doubt in misfits_of(checked, len(team))]
    notes = (*notes, *_noise(together), *misfits, *filter(None, (disturbed, why_not)))
    peaks_found = at_least_one_core(checked)
    return Characterization(
        cpu, software(), now(), len(team), quick, peaks_found, levels, alone, together, call_s, notes, disturbed, facts,
        walks, energies,
    )  # fmt: skip


def _walks(levels: Sequence[Level], block: Any, quick: bool) -> WalkRates | None:
    """Strided walks of one core in all levels, in a block that no stream needs any more."""
    capacities = [(level.name, level.capacity_bytes) for level in levels]
    return walk_rates(capacities, block.ctypes.data, block.nbytes, quick)


def _call_s() -> float:
    """Seconds for an empty call of a compiled function with three arrays.

    It is the lowest median of several rounds: a launch time above that of real calls would not be a bound.
    """
    import numpy as np

    call = nothing()
    a = np.ones(8)
    with pinned(usable_cores()[:1]):
        return min(time_calls([lambda: call(a, a, a, 1)]).median_s for _ in range(CALL_ROUNDS))


# ---- streams ----


def working_sets(cpu: Cpu, cores: int, per_octave: int) -> list[int]:
    """Bytes per core, from 4 KiB to twice _BEYOND times the last cache (and within an eighth of the memory)."""
    last = cpu.last_cache_bytes or 32 << 20
    most = 2 * _BEYOND * last
    if cpu.memory_bytes:
        most = max(min(most, cpu.memory_bytes // (8 * cores)), SMALLEST * 4)
    sizes = []
    k = 0
    while (size := round(SMALLEST * 2 ** (k / per_octave))) <= most:
        sizes.append(size // 256 * 256)
        k += 1
    return sizes


class Buffers:
    """One block of random numbers for each core, from which working sets are cut."""

    def __init__(self, size_bytes: int, cores: int) -> None:
        import numpy as np

        pattern = np.random.default_rng(11).uniform(0.5, 1.0, 1 << 17)
        self.blocks = [np.resize(pattern, size_bytes // 8) for _ in range(cores)]

    def arrays(self, core: int, pattern: Pattern, working_set: int) -> tuple[Any, ...]:
        """Arrays of one pattern with that size in total; each begins at another line of its page."""
        block = self.blocks[core]
        start = (-block.ctypes.data // 8) % 8  # elements up to the first line boundary
        length = working_set // 8 // pattern.arrays // 8 * 8
        step = (
            length + 40
        )  # five lines apart, so that loads and stores with the same index do not share their low address bits
        return tuple(block[start + k * step : start + k * step + length] for k in range(pattern.arrays))


def run_sweep(team: Sequence[int], sizes: Sequence[int], buffers: Buffers, effort: Effort, tell: Progress) -> Sweep:
    """All patterns over all working sets; core k of the team streams through its own block."""
    points = []
    who = "one core" if len(team) == 1 else f"{len(team)} cores"
    total, done = float(sum(s + (1 << 22) for s in sizes) * len(PATTERNS)), 0.0
    for size in sizes:
        for pattern in PATTERNS:
            tell(done / total, f"{pattern.name} {size >> 10} KiB, {who}")
            done += size + (1 << 22)
            arguments = [
                (*buffers.arrays(k, pattern, size), 1e-9 if pattern.updated else 0.999) for k in range(len(team))
            ]
            moved = arguments[0][0].nbytes * pattern.elements() * len(team)
            pieces = [[_piece(a, k, size // PIECE) for a in arguments] for k in range(size // PIECE)]
            if len(pieces) > 1:
                found = rate_in_pieces(stream(pattern), pieces, moved / len(pieces), team, effort)
            else:
                found = rate(stream(pattern), arguments, moved, team, effort)
            points.append(Point(pattern, size, found.per_s, found.spread))
    return Sweep(len(team), tuple(points))


def again_in_doubt(sweep: Sweep, cpu: Cpu, team: Sequence[int], buffers: Buffers, effort: Effort) -> Sweep:
    """The sweep after repeating the doubtful working sets.

    These are the working sets that determine a level's bandwidth but have spread samples, and those around the end of
    the last cache if the curve does not fall where the system says that the cache ends.
    """
    levels, _ = find_levels(cpu, len(team), sweep, sweep)
    doubtful = {level.all_cores.working_set_bytes for level in levels if level.all_cores.spread > MOST_SPREAD}
    if len(levels) > 2 and not levels[-2].agrees and (last := levels[-2].reported) is not None:
        # Other tenants may have filled the cache, or slowed the core, for the second that these sizes took.
        low, high = 2 * levels[-3].capacity_bytes, 1.5 * last.size_bytes * min(last.copies, len(team)) / len(team)
        doubtful |= {p.working_set_bytes for p in sweep.points if low <= p.working_set_bytes <= high}
    if doubtful:
        sweep = sweep.merged(run_sweep(team, sorted(doubtful), buffers, effort, lambda part, what: None))
    return sweep


def _piece(arguments: tuple[Any, ...], k: int, count: int) -> tuple[Any, ...]:
    """Part k of `count` of the arrays of a stream; the factor, which comes last, is the same for all."""
    length = len(arguments[0]) // count
    return (*(a[k * length : (k + 1) * length] for a in arguments[:-1]), arguments[-1])


# ---- levels ----


def find_levels(cpu: Cpu, cores: int, alone: Sweep, together: Sweep) -> tuple[tuple[Level, ...], tuple[str, ...]]:
    """The levels that the system reports, completed from the curve of one core.

    If the system reports none, the levels of the curve alone. Also notes for people. Raises ValueError for an empty
    sweep.
    """
    seen = seen_plateaus(alone)
    notes = []
    caches: list[_Found] = []
    for cache in cpu.caches:
        # A share of the last cache may be as small as a few times the cache before it.
        least = cache.size_bytes / 4
        if caches and cache is cpu.caches[-1]:
            least = min(least, 4 * caches[-1].capacity_bytes)
        found = _match(cache, seen, least, trusted=not _noise(alone))
        caches.append(found)
        kib = f"L{cache.level}: {cache.size_bytes >> 10} KiB reported"
        if found.seen_bytes is None:
            notes.append(f"{kib}, and no step of the curve there")
        elif not found.agrees:
            taken = "which is taken" if found.capacity_bytes != cache.size_bytes else "too noisy to use"
            notes.append(f"{kib}, {found.seen_bytes >> 10} KiB read off the curve, {taken}")
    if not cpu.caches:
        notes.append("the system reports no caches; the levels come from the curve")
        for k, size in enumerate(p.capacity_bytes for p in seen if p.capacity_bytes):
            caches.append(_Found(f"L{k + 1}", None, _rounded(size), size, None, cores if k == 0 else 1))
    levels: list[Level] = []
    below = below_share = 0.0  # the capacity of the level before, for one core and for all
    for c in caches:
        share = c.capacity_bytes * min(c.copies, cores) / cores
        alone_there = _inside(alone, below * 1.5, c.capacity_bytes * 0.75)
        together_there = _inside(together, below_share * 1.5, share * 0.75)
        widths = _bandwidths(alone_there, together_there, first=not levels)
        levels.append(Level(c.name, c.capacity_bytes, c.seen_bytes, c.reported, c.agrees, *widths))
        below, below_share = c.capacity_bytes, share
    last = max((c.capacity_bytes for c in caches), default=0)
    far_alone, far_together = (_inside(s, _BEYOND * last / n, float("inf")) for s, n in ((alone, 1), (together, cores)))
    widths = _bandwidths(far_alone, far_together, first=not levels)
    levels.append(Level("DRAM", cpu.memory_bytes or 1 << 30, None, None, None, *widths))
    return tuple(levels), tuple(notes)


@dataclass(frozen=True)
class _Found:
    """A cache after its capacity was decided."""

    name: str
    reported: ReportedCache | None
    capacity_bytes: int
    seen_bytes: int | None
    agrees: bool | None
    copies: int


def beside_each_other(
    levels: Sequence[Level], team: Sequence[int], buffers: Buffers, effort: Effort, tell: Progress
) -> tuple[Level, ...]:
    """The levels with a measurement for each cache: its rate while lines from farther away pass through it."""
    found = []
    for k, level in enumerate(levels[:-1]):
        tell(k / len(levels), f"{level.name} beside farther levels")
        all_cores, one_core = level.all_cores, level.one_core
        one_core = replace(one_core, beside=measure(_places(levels, 1), k, team[:1], buffers.blocks, effort))
        if len(team) == 1:
            all_cores = replace(all_cores, beside=one_core.beside)
        else:
            beside = measure(_places(levels, len(team)), k, team, buffers.blocks, effort)
            all_cores = replace(all_cores, beside=beside)
        found.append(replace(level, all_cores=all_cores, one_core=one_core))
    return (*found, *levels[-1:])


def _places(levels: Sequence[Level], cores: int) -> list[Place]:
    """The levels as seen by one of `cores` cores."""
    found = []
    for level in levels:
        copies = cores if level.reported is None else min(level.reported.copies, cores)
        width = level.one_core if cores == 1 else level.all_cores
        found.append(Place(level.name, level.capacity_bytes * copies // cores, dict(width.by_pattern)["load"]))
    return found


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


def _rounded(size_bytes: int) -> int:
    """A capacity read off a curve, to the nearest 1/64 of its power of two: no curve shows more."""
    step = max(64, 1 << max(0, size_bytes.bit_length() - 7))
    return max(1, round(size_bytes / step)) * step


def _distance(plateau: Plateau, cache: ReportedCache) -> float:
    return abs(log(plateau.capacity_bytes or 1) - log(cache.size_bytes))


def _inside(sweep: Sweep, low: float, high: float) -> list[Point]:
    """The best point of each pattern within these working sets; if there is none, the nearest point."""
    found = []
    for pattern in PATTERNS:
        best = sweep.best(pattern, low, high)
        if best is None:
            middle = (max(low, SMALLEST) * min(max(high, low, SMALLEST), 1 << 50)) ** 0.5
            best = min(sweep.of(pattern), key=lambda p: abs(p.working_set_bytes / middle - 1))
        found.append(best)
    return found


def _bandwidths(alone: Sequence[Point], together: Sequence[Point], *, first: bool) -> tuple[Bandwidth, Bandwidth]:
    """(of all cores, of one core). All cores reach at least what one core reaches, since the others may idle: a slower
    team was disturbed.

    At the level nearest to the registers, accesses count, so nothing is loaded before a store.
    """
    best = [max(a, b, key=lambda p: p.bytes_per_s) for a, b in zip(alone, together, strict=True)]
    all_cores = bandwidth(best, "no_write_allocate" if first else None, with_updates=first)
    return all_cores, bandwidth(alone, all_cores.counts, with_updates=first)


def _noise(sweep: Sweep) -> tuple[str, ...]:
    spread = median([p.spread for p in sweep.points])
    if spread <= 0.15:
        return ()
    return (f"a noisy machine: samples of one number spread by {spread:.0%} in the median",)


def seen_plateaus(sweep: Sweep) -> tuple[Plateau, ...]:
    """The plateaus of a sweep's fastest stream."""
    return plateaus(*sweep.fastest())
