"""Ranges as people write them: what is taken, and what is refused and how."""

from __future__ import annotations

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.sweep.ranges import parse_ranges, parse_sizes, points_of

GOOD = {
    "n=64": {"n": (64,)},
    "n=1..4096:*2": {"n": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)},
    "n=3..20:*2": {"n": (3, 6, 12)},
    "n=8..40:+16": {"n": (8, 24, 40)},
    "n=5..8": {"n": (5, 6, 7, 8)},
    "n=1..6:*1.5": {"n": (1, 2, 3, 5)},
    "n=1..6:*5/4": {"n": (1, 2, 3, 4, 5)},
    "n=64,100,b=8..32:*2,7": {"n": (64, 100), "b": (8, 16, 32, 7)},
    " n = 1 .. 4 , m = 2": {"n": (1, 2, 3, 4), "m": (2,)},
    "n=7,7,7": {"n": (7,)},
}

BAD = {
    "n": "not of the form",
    "=3": "not of the form",
    "3n=4": "not of the form",
    "n=": "not an integer",
    "n=x": "not an integer",
    "n=1.5": "not an integer",
    "n=0": "positive",
    "n=-4": "positive",
    "n=8..4": "ends before it begins",
    "n=1..8:2": "not a step",
    "n=1..8:+x": "not an integer",
    "n=1..8:+0": "positive",
    "n=1..8:*1": "greater than 1",
    "n=1..8:*x": "not a factor",
    "n=1..8:*1/0": "not a factor",
    "n=1..8:*-2": "greater than 1",
    "n=1..100000000": "more than 10,000,000",
    "n=4611686018427387904..4611686018427387905": "at most 2**62",
    "n=1,n=2": "twice",
}


@pytest.mark.parametrize("text", GOOD)
def test_taken(text: str) -> None:
    assert {name: tuple(values) for name, values in parse_ranges(text).items()} == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_refused(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_ranges(text)
    assert BAD[text] in str(refused.value)


def test_sizes_carry_units() -> None:
    assert parse_sizes("32KiB..256KiB:*2,1MiB") == (32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20)
    for wrong in ("32", "1MiB..2", "x", "", "1KiB..2KiB:*0.5"):
        with pytest.raises(CommandError):
            parse_sizes(wrong)


def test_points() -> None:
    assert points_of(parse_ranges("n=1..10,b=1,2,3")) == 30
    assert points_of({}) == 1


def test_a_sweep_that_is_refused_costs_nothing() -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(CommandError, match="limit is 50,000,000"):
            parse_ranges("n=1..9000000,m=1..9000000,k=1..9000000")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
