"""What a core keeps of the last cache, read off made-up rates of which it is known."""

from __future__ import annotations

import pytest

from roofdsl.machine.kept import found_again
from roofdsl.measure.bandwidth_curve import LOAD, PATTERNS, Pattern, Point, Sweep
from roofdsl.measure.held import held_bytes

MIB = 1 << 20
SIZES = [round(2 * MIB * 2 ** (k / 2)) for k in range(21)]  # to 2 GiB
NEAR, FAR_FROM, WHOLE = (3.0 * MIB, 195.0 * MIB), 1024.0 * MIB, 260.0 * MIB


def sweep(capacity: float, near: float = 28e9, far: float = 12e9, sizes: list[int] = SIZES) -> Sweep:
    """Streams out of a cache that replaces lines at random."""
    points = []
    for size in sizes:
        again = found_again(size, capacity)
        rate = 1 / (again / near + (1 - again) / far)
        points += [Point(p, size, rate * p.elements(), 0.02) for p in PATTERNS]
    return Sweep(1, tuple(points))


@pytest.mark.parametrize("capacity", [20, 69, 130])
def test_the_capacity_follows_from_rates_between_those_of_the_cache_and_memory(capacity: int) -> None:
    found = held_bytes([sweep(capacity * MIB)], NEAR, FAR_FROM, WHOLE)
    assert found == pytest.approx(capacity * MIB, rel=0.03)


def test_disturbed_points_hardly_matter() -> None:
    def slower(pattern: Pattern, size: int) -> float:
        return 0.6 if (size // MIB + len(pattern.name)) % 5 == 0 else 1.0

    calm = sweep(69 * MIB)
    points = [Point(p.pattern, p.working_set_bytes, p.bytes_per_s * slower(p.pattern, p.working_set_bytes), 0.3)
              for p in calm.points]  # fmt: skip
    again = sweep(69 * MIB, sizes=SIZES[4:16])
    found = held_bytes([Sweep(1, tuple(points)), again], NEAR, FAR_FROM, WHOLE)
    assert found == pytest.approx(69 * MIB, rel=0.15)


def test_a_cache_of_ones_own_or_a_memory_as_fast_says_nothing() -> None:
    assert held_bytes([sweep(250 * MIB)], NEAR, FAR_FROM, WHOLE) is None
    assert held_bytes([sweep(69 * MIB, near=13e9)], NEAR, FAR_FROM, WHOLE) is None


def test_a_sharp_end_lies_between_two_working_sets() -> None:
    points = [Point(LOAD, size, 28e9 if size <= 70 * MIB else 12e9, 0.02) for size in SIZES]
    found = held_bytes([Sweep(1, tuple(points))], NEAR, FAR_FROM, WHOLE)
    assert found is not None and 64 * MIB <= found <= 91 * MIB
