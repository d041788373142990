"""The histogram of stack distances against direct simulation, at every cache size."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.lru import simulate_lru
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


@pytest.mark.parametrize("seed", range(80))
def test_random_kernels(seed: int) -> None:
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    rng = Random(seed)
    largest = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    agree(kernel, rng.choice(case.sizes), None, 60)
    agree(kernel, rng.choice(case.sizes), largest * rng.choice((1, 2, 3, 8)), 30)


@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_families(family: Family) -> None:
    kernel = apply(kernel_of(family.text))
    for size in family.sizes:
        agree(kernel, size, None, 40)
        agree(kernel, size, 64, 20)


def test_times_are_given_anew() -> None:
    """More accesses than times: 250,000 steps over 1,500 lines."""
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[n, n], B: f32[n]\n    inout C: f64[n]\n"
        "    for t in range(n), i in range(n), j in range(n):\n        C[j] += A[i, j] * B[i]\n"
    )
    agree(kernel, {"n": 36}, None, 25)
    agree(kernel, {"n": 40}, 64, 25)


def test_errors() -> None:
    gemv = kernel_of(next(f.text for f in families() if f.name == "gemv"))
    with pytest.raises(CommandError, match="needs a value for n"):
        miss_curve(gemv, {})
    with pytest.raises(CommandError, match="stack distances of kernel gemv"):
        miss_curve(gemv, {"n": 10**6})
    with pytest.raises(CommandError, match="smaller than a line"):
        miss_curve(gemv, {"n": 4}).loads(4, "load_store")
