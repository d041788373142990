"""How the bandwidths of caches and memory are measured: streams through working sets of all sizes, on one core or all.

`bandwidth_curve` has the data of a sweep and evaluates it; `levels_found` finds the levels in it.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from typing import Any

from roofdsl.measure.bandwidth_curve import COPY, LOAD, MANY, PATTERNS, Pattern, Point, Sweep
from roofdsl.measure.device import Cpu
from roofdsl.measure.levels_found import BEYOND, SMALLEST, Level, find_levels, share
from roofdsl.measure.microkernels import stream
from roofdsl.measure.multicore_timing import FULL, PIECE, Effort, rate, rate_in_pieces
from roofdsl.measure.timing import MOST_SPREAD

Progress = Callable[[float, str], None]
"""Called with the part done (0 to 1) and what is being measured."""


def working_sets(cpu: Cpu, cores: int, per_octave: int) -> list[int]:
    """Bytes per core, from 4 KiB to twice BEYOND times the last cache (and within an eighth of the memory)."""
    last = cpu.last_cache_bytes or 32 << 20
    most = 2 * BEYOND * last
    if cpu.memory_bytes:
        most = max(min(most, cpu.memory_bytes // (8 * cores)), SMALLEST * 4)
    sizes = []
    k = 0
    while (size := round(SMALLEST * 2 ** (k / per_octave))) <= most:
        sizes.append(size // 256 * 256)
        k += 1
    return sizes


def _on_ordinary_pages(length: int) -> Any:
    """An array of `length` numbers in f64 on pages of the usual size."""
    import numpy as np

    memory = mmap.mmap(-1, 8 * length)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float64)


class Buffers:
    """One block of random numbers for each core, from which working sets are cut.

    Like numpy's arrays of 4 MiB and more, a block gets large pages if the system offers them. With `ordinary` pages it
    is like several short arrays: addresses take longer to find, and pages share sets by chance.
    """

    def __init__(self, size_bytes: int, cores: int, *, ordinary: bool = False) -> None:
        import numpy as np

        pattern = np.random.default_rng(11).uniform(0.5, 1.0, 1 << 17)
        length = size_bytes // 8
        empty = _on_ordinary_pages if ordinary else np.empty
        self.blocks = [empty(length) for _ in range(cores)]
        for block in self.blocks:
            block[:] = np.resize(pattern, length)

    def arrays(self, core: int, pattern: Pattern, working_set: int) -> tuple[Any, ...]:
        """Arrays of one pattern with that size in total; each begins at a different line within its page."""
        block = self.blocks[core]
        start = (-block.ctypes.data // 8) % 8  # elements up to the first line boundary
        length = working_set // 8 // pattern.arrays // 8 * 8
        step = (
            length + 40
        )  # five lines apart, so that loads and stores with the same index do not share their low address bits
        return tuple(block[start + k * step : start + k * step + length] for k in range(pattern.arrays))


def run_sweep(
    team: Sequence[int],
    sizes: Sequence[int],
    buffers: Buffers,
    effort: Effort,
    tell: Progress,
    *,
    patterns: Sequence[Pattern] = PATTERNS,
) -> Sweep:
    """The patterns over all working sets; each core of the team streams through its own block."""
    points = []
    who = "one core" if len(team) == 1 else f"{len(team)} cores"
    total, done = float(sum(s + (1 << 22) for s in sizes) * len(patterns)), 0.0
    for size in sizes:
        for pattern in patterns:
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


def measured_levels(
    cpu: Cpu, team: Sequence[int], sweeps: tuple[Sweep, Sweep], buffers: Buffers, effort: Effort
) -> tuple[tuple[Sweep, Sweep], tuple[Level, ...], tuple[str, ...]]:
    """(the sweeps of one core and of all, with doubtful working sets measured again, and with many streams from memory;
    the levels; notes for people).
    """
    who = tuple(dict.fromkeys((team[:1], team)))
    found, again, ordinary = [], [], []
    for cores, sweep in zip(who, sweeps, strict=False):
        sizes = sorted({p.working_set_bytes for p in sweep.points})
        last = _last(cpu, sizes, cores)
        far = [size for size in sizes if size >= BEYOND * last] or sizes[-1:]
        many = run_sweep(cores, far, buffers, effort, lambda part, what: None, patterns=MANY)
        found.append(again_in_doubt(sweep, cpu, cores, buffers, effort).merged(many))
        ordinary.append(on_ordinary_pages(cores, [size for size in sizes if size <= last], effort))
        again.append(_around_the_end(cpu, cores, sizes, buffers, effort, times=2 if effort == FULL else 1))
    alone, together = found[0], found[-1]
    ends, typical = (again[0], again[-1]), (ordinary[0], ordinary[-1])
    levels, notes = find_levels(cpu, len(team), alone, together, ends, ordinary=typical)
    return (alone, together), levels, notes


def on_ordinary_pages(team: Sequence[int], sizes: Sequence[int], effort: Effort) -> Sweep:
    """What caches deliver to arrays on ordinary pages."""
    buffers = Buffers(max(sizes) + (1 << 16), len(team), ordinary=True)
    return run_sweep(team, sizes, buffers, effort, lambda part, what: None)


def _last(cpu: Cpu, sizes: Sequence[int], team: Sequence[int]) -> float:
    """What a core of the team has of the largest cache, in bytes; the largest working set if no cache is known."""
    return max((share(c.size_bytes, c.copies, len(team)) for c in cpu.caches), default=sizes[-1])


def again_in_doubt(sweep: Sweep, cpu: Cpu, team: Sequence[int], buffers: Buffers, effort: Effort) -> Sweep:
    """The sweep after repeating the working sets that determine a level's bandwidth but have noisy samples."""
    levels, _ = find_levels(cpu, len(team), sweep, sweep)
    doubtful = {level.all_cores.working_set_bytes for level in levels if level.all_cores.spread > MOST_SPREAD}
    if doubtful:
        sweep = sweep.merged(run_sweep(team, sorted(doubtful), buffers, effort, lambda part, what: None))
    return sweep


def _around_the_end(
    cpu: Cpu, team: Sequence[int], sizes: Sequence[int], buffers: Buffers, effort: Effort, *, times: int
) -> list[Sweep]:
    """Two streams, repeated `times` times with working sets around the end of the last of several caches: other tenants
    may have filled it, or slowed the core, when all streams ran.
    """
    if len(cpu.caches) < 2:
        return []
    nearer, last = (share(cache.size_bytes, cache.copies, len(team)) for cache in cpu.caches[-2:])
    knee = [size for size in sizes if 2 * nearer <= size <= 2 * last]
    return [run_sweep(team, knee, buffers, effort, lambda p, w: None, patterns=(LOAD, COPY)) for _ in range(times)]


def _piece(arguments: tuple[Any, ...], k: int, count: int) -> tuple[Any, ...]:
    """Part k of `count` of the arrays of a stream; the factor, which comes last, is the same for all."""
    length = len(arguments[0]) // count
    return (*(a[k * length : (k + 1) * length] for a in arguments[:-1]), arguments[-1])
