"""Processors with several last caches, each shared by some of the cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from roofdsl.measure import bandwidth_sweep
from roofdsl.measure.bandwidth_curve import LOADS, PATTERNS, UPDATES, Pattern, Point, Sweep
from roofdsl.measure.bandwidth_sweep import measured_levels, working_sets
from roofdsl.measure.device import Cpu
from roofdsl.measure.levels_found import find_levels
from roofdsl.measure.multicore_timing import QUICK
from tests.measure.made_up import CPU, KIB, ONE_CORE

CORES = 16
RATES = {**ONE_CORE, LOADS: (200, 100, 80, 30), UPDATES: (290, 150, 120, 30)}


def processor(copies: int) -> Cpu:
    """16 cores with L1 and L2 of their own, and this many L3 of 16 MiB."""
    first, second, last = CPU.caches
    caches = replace(first, copies=CORES), replace(second, copies=CORES), replace(last, size_bytes=16 << 20)
    return replace(CPU, cores=CORES, caches=(*caches[:2], replace(caches[2], copies=copies)), memory_bytes=256 << 30)


def sweep(cpu: Cpu, cores: int, sizes: Sequence[int], patterns: Sequence[Pattern] = PATTERNS) -> Sweep:
    """Streams at the rate of the level that holds them; all cores together get twice what one gets from memory."""
    last = cpu.caches[2]
    ends = (32 * KIB, 1024 * KIB, last.size_bytes * min(last.copies, cores) / cores, float("inf"))
    scale = (cores, cores, cores, min(cores, 2))
    points = []
    for size in sizes:
        level = next(k for k, end in enumerate(ends) if size <= end)
        points += [Point(p, size, RATES[p][level] * scale[level] * 1e9, 0.01) for p in patterns]
    return Sweep(cores, tuple(points))


@pytest.mark.parametrize("copies", [4, 8, 16])
def test_the_memory_of_all_cores_is_measured_beyond_all_their_last_caches(copies: int) -> None:
    cpu = processor(copies)
    sizes = working_sets(cpu, CORES, 2)
    levels, _ = find_levels(cpu, CORES, sweep(cpu, 1, sizes), sweep(cpu, CORES, sizes))
    assert [level.name for level in levels] == ["L1", "L2", "L3", "DRAM"]
    memory, last = levels[-1].all_cores, levels[-2]
    assert dict(memory.by_pattern)["load"] == pytest.approx(60e9) and memory.working_set_bytes > copies << 20
    assert dict(last.all_cores.by_pattern)["load"] == pytest.approx(16 * 80e9)
    assert last.holds_bytes is None and last.holds_alone is None


def test_what_all_cores_keep_is_between_the_rates_of_their_last_caches_and_of_memory() -> None:
    """Other systems leave 10 MiB of every L3, 5 MiB for each core."""
    cpu = processor(8)
    seen = replace(cpu, caches=(*cpu.caches[:2], replace(cpu.caches[2], size_bytes=10 << 20)))
    sizes = working_sets(cpu, CORES, 2)
    levels, _ = find_levels(cpu, CORES, sweep(seen, 1, sizes), sweep(seen, CORES, sizes))
    assert levels[2].holds_bytes is not None and 0.7 < levels[2].holds_bytes / (10 << 20) < 1.42


@pytest.mark.parametrize("copies", [4, 8])
def test_many_streams_run_from_memory_only(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And short arrays on ordinary pages are measured up to what a core has of the last cache."""
    cpu = processor(copies)
    many: dict[int, list[int]] = {}
    ordinary: dict[int, list[int]] = {}

    def run(team: Sequence[int], sizes: Sequence[int], *rest: Any, patterns: Sequence[Pattern] = PATTERNS) -> Sweep:
        if LOADS in patterns:
            many[len(team)] = list(sizes)
        elif patterns == PATTERNS:
            ordinary[len(team)] = list(sizes)
        return sweep(cpu, len(team), sizes, patterns)

    monkeypatch.setattr(bandwidth_sweep, "run_sweep", run)
    buffers = SimpleNamespace()
    monkeypatch.setattr(bandwidth_sweep, "Buffers", lambda *shape, ordinary: buffers)
    sizes = working_sets(cpu, CORES, 2)
    both = sweep(cpu, 1, sizes), sweep(cpu, CORES, sizes)
    _, levels, _ = measured_levels(cpu, range(CORES), both, buffers, QUICK)  # type: ignore[arg-type]
    assert min(many[CORES]) == pytest.approx(4 * copies << 20, rel=0.01) and max(ordinary[CORES]) <= copies << 20
    assert min(many[1]) == 64 << 20 and max(ordinary[1]) == 16 << 20
    assert levels[-1].all_cores.bytes_per_s == pytest.approx(60e9)
    assert dict(levels[-1].all_cores.by_pattern)["load of four arrays"] == pytest.approx(60e9)


def test_many_streams_on_one_side_only_count_there() -> None:
    """A memory too small for working sets beyond the caches leaves them to the largest ones."""
    cpu = processor(8)
    sizes = working_sets(cpu, CORES, 2)
    near = [size for size in sizes if size <= 6 << 20]
    together = sweep(cpu, CORES, near).merged(sweep(cpu, CORES, near[-1:], (LOADS, UPDATES)))
    levels, _ = find_levels(cpu, CORES, sweep(cpu, 1, near), together)
    assert "load of four arrays" in dict(levels[2].all_cores.by_pattern)
    assert "load of four arrays" not in dict(levels[2].one_core.by_pattern)
