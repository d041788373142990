"""The share of the written lines that are loaded first, from the rates of four patterns whose times are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roofdsl.measure.bandwidth_curve import COPY, LOAD, PATTERNS, TRIAD, Pattern, Point, allocated_share, bandwidth
from roofdsl.measure.levels_found import find_levels
from roofdsl.measure.machine_file import machine_text, to_machine
from tests.measure.made_up import CPU, ONE_CORE, characterized, sweep

LOADS_PER_S = 30e9


def point(pattern: Pattern, share: float, stores_per_s: float, *, duplex: bool) -> Point:
    """An iteration loads what it reads and updates, and `share` of what it only writes; then or meanwhile it stores."""
    loads = (pattern.read + pattern.updated + share * pattern.written) / LOADS_PER_S
    stores = (pattern.written + pattern.updated) / stores_per_s
    return Point(pattern, 1 << 30, pattern.elements() / (max(loads, stores) if duplex else loads + stores), 0.0)


def points(share: float, stores_per_s: float = LOADS_PER_S, *, duplex: bool = False) -> list[Point]:
    return [point(p, share, stores_per_s, duplex=duplex) for p in PATTERNS]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.7])
@pytest.mark.parametrize(("stores_per_s", "duplex"), [(30e9, False), (15e9, False), (60e9, False), (30e9, True)])
def test_it_is_found_however_fast_stores_are(share: float, stores_per_s: float, duplex: bool) -> None:
    made = points(share, stores_per_s, duplex=duplex)
    assert allocated_share(made) == pytest.approx(share)
    found = bandwidth(made)
    assert found.allocated == pytest.approx(share)
    assert found.counts != "no_write_allocate"


def test_the_bandwidth_counts_it() -> None:
    found = bandwidth(points(0.5))
    assert found.bytes_per_s == pytest.approx(LOADS_PER_S)
    assert dict(found.by_pattern) == {p.name: pytest.approx(LOADS_PER_S) for p in (LOAD, COPY, TRIAD)}


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("duplex", [False, True])
def test_none_and_all_are_no_share(share: float, duplex: bool) -> None:
    made = points(share, duplex=duplex)
    assert allocated_share(made) is None
    assert bandwidth(made).allocated is None


def test_patterns_that_disagree_tell_nothing() -> None:
    made = [replace(p, bytes_per_s=0.8 * p.bytes_per_s) if p.pattern == COPY else p for p in points(0.5)]
    assert allocated_share(made) is None
    assert allocated_share(points(0.5)[:3]) is None, "without updates in place"


def test_the_machine_file_states_it() -> None:
    made = characterized(cores=1)
    *nearer, memory = made.levels
    share = replace(memory, all_cores=replace(memory.all_cores, counts="write_allocate", allocated=0.247))
    found = replace(made, levels=(*nearer, share))
    assert "write_allocate 0.25" in machine_text(found)
    assert to_machine(found).caches[-1].write_allocate == 0.25
    assert "# `write_allocate 0.25`: this share of the lines" in machine_text(found)
    assert "this share of the lines" not in machine_text(made)


def test_one_core_counts_the_same_share_as_all() -> None:
    slow = {p.pattern: p.bytes_per_s / 1e9 for p in points(0.5)}
    rates = {p: (*ONE_CORE[p][:3], slow[p]) for p in ONE_CORE}
    levels, _ = find_levels(CPU, 2, sweep(1, rates), sweep(2, rates))
    memory = levels[-1]
    assert memory.all_cores.allocated == pytest.approx(0.5)
    assert memory.all_cores.bytes_per_s == pytest.approx(1.5 * LOADS_PER_S)
    assert memory.one_core.bytes_per_s == pytest.approx(LOADS_PER_S)
    alone = replace(characterized(), levels=levels).alone()
    assert to_machine(alone).caches[-1].write_allocate == 0.5
