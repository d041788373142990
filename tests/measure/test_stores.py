"""Stores that are slower than loads, from the rates of copy and triad."""

from __future__ import annotations

import pytest

from roofdsl.measure.bandwidth_curve import COPY, LOAD, TRIAD, Pattern, Point, bandwidth, stores_per_s


def point(pattern: Pattern, loads_per_s: float, stores: float, *, allocate: bool) -> Point:
    """A point whose iteration takes its loads at one rate, and then its stores at the other."""
    loads = pattern.read + pattern.updated + (pattern.written if allocate else 0)
    time = loads / loads_per_s + (pattern.written + pattern.updated) / stores
    return Point(pattern, 1 << 30, pattern.elements() / time, 0.0)


@pytest.mark.parametrize("allocate", [True, False])
@pytest.mark.parametrize("stores", [10e9, 20e9, 35e9])
def test_the_rate_of_stores(stores: float, allocate: bool) -> None:
    points = [point(p, 40e9, stores, allocate=allocate) for p in (LOAD, COPY, TRIAD)]
    found = bandwidth(points, "write_allocate" if allocate else "no_write_allocate")
    assert found.bytes_per_s == pytest.approx(40e9)
    assert stores_per_s(found) == pytest.approx(stores)


def test_stores_as_fast_as_loads_are_not_told() -> None:
    even = [point(p, 40e9, 39e9, allocate=True) for p in (LOAD, COPY, TRIAD)]
    assert stores_per_s(bandwidth(even, "write_allocate")) is None
    assert stores_per_s(bandwidth(even, "duplex")) is None
