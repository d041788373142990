"""A processor whose every rate is known, and what a characterization of it would have measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.measure.bandwidth_curve import (
    COPY,
    LOAD,
    LOADS,
    PATTERNS,
    TRIAD,
    UPDATE,
    UPDATES,
    Beside,
    Pattern,
    Point,
    Sweep,
)
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.device import Cpu, ReportedCache
from roofdsl.measure.levels_found import Level, find_levels
from roofdsl.measure.multicore_timing import Rate
from roofdsl.measure.peaks import Peak

KIB = 1 << 10
CACHES = (
    ReportedCache(1, 32 * KIB, 64, 8, 2),
    ReportedCache(2, 1024 * KIB, 64, 8, 2),
    ReportedCache(3, 32768 * KIB, 64, 16, 1),
)
CPU = Cpu('A "fast" CPU(R) 9000 Processor @ 3.0GHz', "x86_64", 2, CACHES, 24 << 30, 3_000_000_000, True)

# GB/s of one core in L1, L2, L3 and memory, loads and stores counted: lines are loaded beside those written back, so
# that an update in place is faster than a stream; memory loads lines before it stores them.
ONE_CORE: Mapping[Pattern, tuple[float, ...]] = {
    LOAD: (200, 100, 80, 30),
    COPY: (220, 98, 79, 20),
    TRIAD: (300, 99, 78, 22.5),
    UPDATE: (290, 150, 120, 30),
}
MANY = {LOADS: 36, UPDATES: 40}
"""GB/s of one core with many streams in memory, if a test asks for them."""
_RATES = {
    "fma": 50.0, "add": 25.0, "mul": 30.0, "add and mul": 28.0, "min": 26.0, "div": 2.5, "sqrt": 1.5, "rsqrt": 1.0,
    "rcp": 2.0, "exp": 0.25, "log": 0.3, "tanh": 0.1, "sigmoid": 0.2, "sin": 0.16, "cos": 0.15,
}  # fmt: skip
PEAKS = _RATES | {f: 0.5 for f in SPECIAL_FUNCTIONS if f not in _RATES}
"""GFLOP/s of one core in f64."""

NO_MORE: Mapping[Pattern, float] = {}

SIZES = [round(4 * KIB * 2 ** (k / 2)) for k in range(33)]


def sweep(
    cores: int,
    rates: Mapping[Pattern, tuple[float, ...]] = ONE_CORE,
    spread: float = 0.01,
    many: Mapping[Pattern, float] = NO_MORE,
) -> Sweep:
    """Private L1 and L2, shared L3 and memory; memory is no faster for two cores than 1.5 times for one."""
    ends = (32 * KIB, 1024 * KIB, 32768 * KIB / cores, float("inf"))
    scale = (cores, cores, cores, 1.5 if cores > 1 else 1)
    points = []
    for size in SIZES:
        level = next(k for k, end in enumerate(ends) if size <= end)
        points += [Point(p, size, rates[p][level] * scale[level] * 1e9, spread) for p in PATTERNS]
        if level == 3:
            points += [Point(p, size, many[p] * scale[level] * 1e9, spread) for p in many]
    return Sweep(cores, tuple(points))


def with_beside(level: Level, cores: int) -> Level:
    """L2 waits for lines of the memory, and is slower then; L3 delivers beside them in part."""
    rates = {"L2": (100e9, 70e9), "L3": (160e9, 160e9)}
    if level.name not in rates:
        return level
    one_core = replace(level.one_core, beside=Beside("DRAM", *rates[level.name]))
    all_cores = replace(level.all_cores, beside=Beside("DRAM", *(cores * r for r in rates[level.name])))
    return replace(level, one_core=one_core, all_cores=all_cores)


def characterized(cpu: Cpu = CPU, cores: int = 2) -> Characterization:
    """The whole of it. An operation of f32 is twice as fast as one of f64."""
    peaks = []
    for type_name, (cls, gflops) in product(("f64", "f32"), PEAKS.items()):
        rate = 1e9 * gflops * (2 if type_name == "f32" else 1)
        peaks.append(Peak(type_name, cls, Rate(rate * cores, 0.02), Rate(rate, 0.02)))
    peaks.append(Peak("i32", "add", Rate(5e9 * cores, 0.0), Rate(5e9, 0.0)))
    alone = sweep(1)
    together = sweep(cores) if cores > 1 else alone
    levels, notes = find_levels(cpu, cores, alone, together)
    levels = tuple(with_beside(level, cores) for level in levels)
    versions = {"roofdsl": "0.1.0", "python": "3.11.7", "numba": "0.68.1"}
    when = "2026-11-21T12:00:00+00:00"
    return Characterization(cpu, versions, when, cores, False, tuple(peaks), levels, alone, together, 4e-7, notes)
