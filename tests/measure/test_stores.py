"""Stores that are slower than loads, and stored lines, from the rates of streams."""

from __future__ import annotations

import pytest

from roofdsl.measure.bandwidth_curve import (
    COPY,
    LOAD,
    TRIAD,
    UPDATE,
    Pattern,
    Point,
    bandwidth,
    stores_per_s,
    written_per_s,
    written_rates,
)


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


def measured(load: float, written: float, *, out: float) -> list[Point]:
    """Points in cycles a line: a line in, a line out, and what a stored line takes at least."""
    cycles = {
        LOAD: load, COPY: max(load + out, written), TRIAD: max(2 * load + out, written),
        UPDATE: max(2 * load + out, written),
    }  # fmt: skip
    return [Point(p, 1 << 20, p.elements() * 1e9 / c, 0.0) for p, c in cycles.items()]


def test_stored_lines_may_take_longer_than_their_transfers() -> None:
    """L2 of Golden Cove, in cycles: a load 1.6, a copy 4.7, and an update in place, with a load more, 4.8."""
    found = bandwidth(measured(1.6, 4.7, out=1.6), "no_write_allocate")
    assert stores_per_s(found) is None and written_per_s(found) == pytest.approx(1e9 / 4.7)
    slow = bandwidth(measured(1.6, 4.7, out=2), "no_write_allocate")
    assert stores_per_s(slow) == pytest.approx(1e9 / 2) and written_per_s(slow) == pytest.approx(1e9 / 4.7)
    assert written_per_s(bandwidth(measured(1.6, 3.3, out=1.6), "no_write_allocate")) is None
    assert written_per_s(bandwidth(measured(1.6, 4.7, out=1.6)[:3], "no_write_allocate")) is None


def lines(load: float, beside: float, stored: float, *, allocate: bool = True) -> list[Point]:
    """Points in cycles a line: loads alone, loads beside stores, and stored lines, which are loaded first or not."""
    found = []
    for p in (LOAD, COPY, TRIAD, UPDATE):
        loads = p.read + p.updated + (p.written if allocate else 0)
        stores = p.written + p.updated
        time = max(load * loads, beside * loads + stored * stores) if stores else load * loads
        found.append(Point(p, 1 << 20, p.elements() * 1e9 / time, 0.0))
    return found


@pytest.mark.parametrize("counts", ["no_write_allocate", "write_allocate", "duplex"])
def test_loads_beside_stored_lines_take_less_than_alone(counts: str) -> None:
    """L2 of Golden Cove, in cycles: 1.65 for a load alone, 4.84 for a copy and an update in place, 5.59 for a triad."""
    found = written_rates(bandwidth(lines(1.65, 0.75, 3.34), counts, with_updates=True))  # type: ignore[arg-type]
    assert found == (pytest.approx(1e9 / 3.34), pytest.approx(1e9 / 0.75))


def test_stored_lines_have_no_rates_where_transfers_explain_them() -> None:
    alike = bandwidth(lines(2.0, 2.0, 0.02), "duplex")
    assert written_rates(alike) == (None, None)
    bypassed = bandwidth(lines(1.65, 0.75, 3.34, allocate=False), "no_write_allocate", with_updates=True)
    assert written_rates(bypassed) == (written_per_s(bypassed), None)  # a copy loads a line less than an update
