"""Levels read off curves whose levels are known: clean ones, noisy ones, a real machine's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.measure.levels_of_curve import envelope, plateaus

KIB = 1 << 10
SIZES = [round(4 * KIB * 2 ** (k / 2)) for k in range(33)]


def curve(levels: Sequence[tuple[int, float]], sizes: Sequence[int] = SIZES) -> list[float]:
    """Bandwidth of levels of (capacity, rate): a share of the set that still fits streams as fast as it fits."""
    return [next(rate for capacity, rate in levels if size <= capacity) for size in sizes]


KNOWN = [
    [(32 * KIB, 220e9), (1024 * KIB, 117e9), (32768 * KIB, 98e9), (1 << 60, 32e9)],
    [(48 * KIB, 400e9), (2048 * KIB, 160e9), (1 << 60, 20e9)],
    [(32 * KIB, 100e9), (256 * KIB, 50e9), (8192 * KIB, 30e9), (1 << 60, 10e9)],
    [(1 << 60, 10e9)],
]


@pytest.mark.parametrize("levels", KNOWN)
def test_known_levels_are_found(levels: list[tuple[int, float]]) -> None:
    found = plateaus(SIZES, curve(levels))
    assert [p.bytes_per_s for p in found] == [rate for _, rate in levels]
    for plateau, (capacity, _) in zip(found[:-1], levels[:-1], strict=True):
        assert plateau.capacity_bytes is not None and 0.7 <= plateau.capacity_bytes / capacity <= 1.42
        assert plateau.could_end_at(capacity) and not plateau.could_end_at(4 * capacity)
    assert found[-1].capacity_bytes is None and not found[-1].could_end_at(KIB)


@pytest.mark.parametrize("seed", range(20))
def test_noise_that_slows_some_points_changes_nothing(seed: int) -> None:
    dice = random.Random(seed)
    levels = KNOWN[seed % 3]
    rates = [r * dice.uniform(0.98, 1.0) for r in curve(levels)]
    for k in dice.sample(range(len(rates) - 1), 6):  # a sixth of the points is disturbed, some of them heavily
        rates[k] *= dice.uniform(0.3, 1.0)
    found = plateaus(SIZES, rates)
    assert len(found) == len(levels)
    for plateau, (capacity, rate) in zip(found, levels, strict=True):
        assert plateau.bytes_per_s == pytest.approx(rate, rel=0.05)
        if plateau.capacity_bytes is not None:
            assert 0.35 <= plateau.capacity_bytes / capacity <= 2


# Load bandwidth of one core of an AMD EPYC (Zen 4; 32 KiB, 1 MiB, a share of 32 MiB) in GB/s, by octaves from 4 KiB:
# measured on 2026-11-21 with a point disturbed at 8 MiB and the gradual end of its last cache.
ZEN4 = [202.5, 218.9, 219.6, 219.6, 117.2, 117.3, 117.2, 117.1, 104.6, 98.6, 98.2, 57.8, 82.3, 58.8, 32.7, 32.0, 31.2]


def test_a_real_curve() -> None:
    sizes = [4 * KIB << k for k in range(len(ZEN4))]
    found = plateaus(sizes, [r * 1e9 for r in ZEN4])
    assert [round(p.bytes_per_s / 1e9) for p in found] == [220, 117, 99, 32]
    assert [p.could_end_at(c * KIB) for p, c in zip(found, (32, 1024, 32768), strict=False)] == [True] * 3


def test_the_envelope_never_rises_and_is_never_below() -> None:
    rates = [3.0, 1.0, 2.0, 2.5, 0.5, 0.7]
    assert envelope(rates) == [3.0, 2.5, 2.5, 2.5, 0.7, 0.7]


@given(st.lists(st.floats(1e6, 1e13), min_size=1, max_size=40))
def test_any_curve_has_plateaus_in_order(rates: list[float]) -> None:
    sizes = [4 * KIB + 1000 * k * k for k in range(len(rates))]
    found = plateaus(sizes, rates)
    assert found and found[-1].last_bytes == sizes[-1] and found[-1].capacity_bytes is None
    for a, b in pairwise(found):
        assert a.last_bytes < b.first_bytes and a.bytes_per_s > b.bytes_per_s
        assert a.capacity_bytes is not None and a.last_bytes <= a.capacity_bytes <= b.first_bytes


@pytest.mark.parametrize(("sizes", "rates"), [([], []), ([1, 2], [1.0]), ([2, 1], [1.0, 1.0]), ([1, 1], [1.0, 1.0])])
def test_what_is_no_curve(sizes: list[int], rates: list[float]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        plateaus(sizes, rates)
