"""The histogram of stack distances against direct simulation, at every cache size."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.hierarchy import simulate
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.oracle import lru
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

CONVENTIONS = ("once", "load_store", "write_allocate")


def agree(kernel: Kernel, size: dict[str, int], line: int | None, most: int) -> None:
    """At every Z of a grid from the smallest to what holds everything, and without bound."""
    curve = miss_curve(kernel, size, line)
    largest = line or max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    unit = line or min((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    everything = sum(lru.footprint(kernel, size).values()) + 8 * largest
    sizes = list(range(largest, everything * (line or 1), unit))
    chosen = sizes if len(sizes) <= most else Random(1).sample(sizes, most)
    for cache in (None, *chosen):
        want = simulate_lru(kernel, size, cache, line)
        assert curve.accesses == want.accesses
        assert curve.misses(cache) == sum(a.residencies for a in want.arrays)
        for convention in CONVENTIONS:
            seen = (
                curve.loads(cache, convention),  # type: ignore[arg-type]
                curve.stores(cache, convention),  # type: ignore[arg-type]
                curve.bytes(cache, convention),  # type: ignore[arg-type]
            )
            exact = (want.loads(convention), want.stores(convention), want.bytes(convention))  # type: ignore[arg-type]
            assert seen == exact, f"{kernel.source.text}{size} Z={cache} L={line} {convention}"
    for convention in CONVENTIONS:
        sizes_of, values = curve.steps(convention)  # type: ignore[arg-type]
        assert sizes_of[0] == largest
        for start, value in list(zip(sizes_of, values, strict=True))[:most]:
            assert curve.bytes(int(start), convention) == value  # type: ignore[arg-type]


@pytest.mark.spread(2, 40)
@pytest.mark.parametrize("seed", range(80))
def test_random_kernels(seed: int) -> None:
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    rng = Random(seed)
    largest = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    agree(kernel, rng.choice(case.sizes), None, 60)
    agree(kernel, rng.choice(case.sizes), largest * rng.choice((1, 2, 3, 8)), 30)


@pytest.mark.spread(2)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_families(family: Family) -> None:
    kernel = apply(kernel_of(family.text))
    for size in family.sizes:
        agree(kernel, size, None, 40)
        agree(kernel, size, 64, 20)


@pytest.mark.spread(6)
@pytest.mark.parametrize("seed", range(60))
def test_sets_of_any_number_of_ways(seed: int) -> None:
    """One pass over a number of sets against a simulation of each associativity."""
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    rng = Random(seed)
    size = rng.choice(case.sizes)
    line = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8) * rng.choice((1, 2, 4))
    sets = rng.choice((2, 3, 4, 7, 16))
    curve = miss_curve(kernel, size, line, sets=sets)
    for ways in (*range(1, 8), 20):
        cache = ways * sets * line
        for convention, write_miss in (("load_store", "claim"), ("write_allocate", "allocate")):
            level = CacheLevel("Z", cache, line, ways, write_miss=write_miss)  # type: ignore[arg-type]
            want = simulate(kernel, size, [level])
            between = cache + rng.randrange(sets * line)  # a cache that is not a whole number of ways larger
            assert curve.misses(between) == want.levels[0].misses
            assert curve.loads(between, convention) == want.load_bytes(0)  # type: ignore[arg-type]
            assert curve.stores(between, convention) == want.store_bytes(0)  # type: ignore[arg-type]
    assert curve.bytes(None, "load_store") == miss_curve(kernel, size, line).bytes(None, "load_store")


@pytest.mark.thorough
def test_times_are_given_anew() -> None:
    """More accesses than times: 250,000 steps over 1,500 lines."""
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[n, n], B: f32[n]\n    inout C: f64[n]\n"
        "    for t in range(n), i in range(n), j in range(n):\n        C[j] += A[i, j] * B[i]\n"
    )
    agree(kernel, {"n": 36}, None, 25)
    agree(kernel, {"n": 40}, 64, 25)
    curve = miss_curve(kernel, {"n": 40}, 64, sets=8)
    for ways in (1, 2, 5, 9, 40):
        want = simulate(kernel, {"n": 40}, [CacheLevel("Z", ways * 512, 64, ways)])
        assert curve.misses(ways * 512) == want.levels[0].misses


def test_errors() -> None:
    gemv = kernel_of(next(f.text for f in families() if f.name == "gemv"))
    with pytest.raises(CommandError, match="needs a number for n"):
        miss_curve(gemv, {})
    with pytest.raises(CommandError, match="stack distances of kernel gemv"):
        miss_curve(gemv, {"n": 10**6})
    with pytest.raises(CommandError, match="smaller than a line"):
        miss_curve(gemv, {"n": 4}).loads(4, "load_store")
    with pytest.raises(CommandError, match="smaller than 4 lines"):
        miss_curve(gemv, {"n": 4}, 64, sets=4).loads(255, "load_store")
    with pytest.raises(CommandError, match="cannot have 0 sets"):
        miss_curve(gemv, {"n": 4}, 64, sets=0)
    head = "kernel k(n):\n    in B: f32[n]\n    out C: f64[n]\n"
    mixed = kernel_of(head + "    for i in range(n):\n        C[i] = B[i]\n")
    with pytest.raises(CommandError, match="lines of one size"):
        miss_curve(mixed, {"n": 4}, sets=2)
