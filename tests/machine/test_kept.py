"""What a cache that replaces lines at random finds again, against such a cache line by line."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext

import pytest

from roofdsl.machine.kept import capacity_of, found_again


def passes(lines: int, slots: int, rounds: int) -> float:
    """The share found in the last half of so many passes over `lines` lines, each miss replacing a random slot."""
    dice = random.Random(lines)
    held: dict[int, int] = {}
    where: list[int | None] = [None] * slots
    hits = 0
    for turn in range(rounds):
        for line in range(lines):
            if line in held:
                hits += turn >= rounds // 2
                continue
            slot = dice.randrange(slots)
            old = where[slot]
            if old is not None:
                del held[old]
            where[slot], held[line] = line, slot
    return hits / lines / (rounds - rounds // 2)


@pytest.mark.parametrize("part", [1.25, 1.5, 2, 3])
def test_passes_over_a_random_cache(part: float) -> None:
    slots = 400
    assert found_again(part * slots, slots) == pytest.approx(passes(int(part * slots), slots, 40), abs=0.03)


@pytest.mark.parametrize("over", [1e-12, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1, 30])
def test_the_missed_share_solves_its_equation_just_above_the_capacity_too(over: float) -> None:
    """By bisection in decimals; slightly above the capacity it is 2 (W/C - 1)."""
    with localcontext() as digits:
        digits.prec = 60
        ratio, low, high = 1 + Decimal(over), Decimal(over) / 64, Decimal(1)
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (low, middle) if middle > 1 - (-middle * ratio).exp() else (middle, high)
    assert 1 - found_again(1 + over, 1) == pytest.approx(float(low), rel=1e-3, abs=1e-9)


def test_what_fits_is_found_and_the_capacity_follows_from_the_share() -> None:
    assert found_again(80, 100) == found_again(100, 100) == 1
    assert found_again(3000, 100) < 1e-9
    for part in (1.1, 1.7, 2.5, 4):
        assert capacity_of(part * 64, found_again(part * 64, 64)) == pytest.approx(64, rel=1e-6)
