"""The simulator against the brute-force oracle, and its errors."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.simulate.lru_traffic import CHUNK, TooManyAccesses, TooManyLines, simulate_lru
from tests.oracle import lru
from tests.oracle.enumerate import run
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

CONVENTIONS = ("once", "load_store", "write_allocate")


def agree(kernel: Kernel, size: dict[str, int], cache: int | None, line: int | None) -> None:
    got = simulate_lru(kernel, size, cache, line)
    assert got.accesses == sum(len(e.accesses) for e in run(kernel, size))
    stays = lru.residencies(kernel, size, cache, line)
    for convention in CONVENTIONS:
        want = lru.cost(kernel, stays, convention)
        seen = lru.Traffic(got.loads(convention), got.stores(convention), got.bytes(convention))
        assert seen == want, f"{kernel.source.text}{size} Z={cache} L={line} {convention}"


def caches(kernel: Kernel, size: dict[str, int], rng: Random) -> list[tuple[int | None, int | None]]:
    """Caches from the smallest that is legal to one that holds everything, with and without lines."""
    largest = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    touched = max(sum(lru.footprint(kernel, size).values()), largest)
    choices: list[tuple[int | None, int | None]] = [(None, None), (None, 48), (largest, None)]
    for _ in range(3):
        choices.append((rng.randint(largest, touched + largest), None))
        line = largest * rng.choice((1, 2, 3, 4))
        choices.append((rng.randint(line, touched + line), line))
    return choices


@pytest.mark.spread(2, 60)
@pytest.mark.parametrize("seed", range(250))
def test_random_kernels(seed: int) -> None:
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    rng = Random(seed)
    for size in case.sizes:
        for cache, line in caches(kernel, size, rng):
            agree(kernel, size, cache, line)


@pytest.mark.spread(6)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_families(family: Family) -> None:
    kernel = kernel_of(family.text)
    for size in family.sizes:
        for cache, line in caches(kernel, size, Random(1)):
            agree(kernel, size, cache, line)


def test_more_than_one_chunk_of_accesses() -> None:
    """matmul at n = 90 in a cache for all: 4 accesses a step, two chunks."""
    kernel = kernel_of(next(f.text for f in families() if f.name == "matmul_ijk"))
    n = 90
    got = simulate_lru(kernel, {"n": n}, None)
    assert got.accesses == 4 * n**3 > 2 * CHUNK
    assert got.bytes("load_store") == 32 * n * n
    # with room for a row of A, a column of B and one C, B is loaded for every i
    assert simulate_lru(kernel, {"n": n}, 24).bytes("load_store") == 8 * (2 * n**3 + 2 * n**2)


def test_limits_and_errors() -> None:
    gemv = kernel_of(next(f.text for f in families() if f.name == "gemv"))
    with pytest.raises(TooManyAccesses, match="more than 100 accesses"):
        simulate_lru(gemv, {"n": 10}, None, max_accesses=100)
    assert simulate_lru(gemv, {"n": 5}, None, max_accesses=100).accesses == 100
    with pytest.raises(TooManyAccesses, match="does not repeat itself within 100 accesses"):
        simulate_lru(gemv, {"n": 3000}, 64, 64, max_walked=100)
    repeated = simulate_lru(gemv, {"n": 3000}, 4096, 64, max_walked=CHUNK)
    assert repeated.accesses == 4 * 3000**2 and repeated.simulated < CHUNK  # most of it is known to repeat
    with pytest.raises(CommandError, match="needs a number for n"):
        simulate_lru(gemv, {}, None)
    with pytest.raises(CommandError, match="not a multiple"):
        simulate_lru(gemv, {"n": 4}, None, 12)
    with pytest.raises(CommandError, match="smaller than a line"):
        simulate_lru(gemv, {"n": 4}, 32, 64)
    with pytest.raises(TooManyLines, match="needs"):
        simulate_lru(gemv, {"n": 10**6}, None)
    with pytest.raises(CommandError, match="too large"):
        simulate_lru(gemv, {"n": 2**62 + 1}, None)
    blocked = kernel_of(next(f.text for f in families() if f.name == "matmul_blocked"))
    with pytest.raises(CommandError, match="assumes"):
        simulate_lru(blocked, {"n": 5, "b": 2}, None)


def test_loops_that_make_no_access() -> None:
    """Loops over registers alone are not run; a guard that lets little through can be stopped."""
    head = "kernel k(n):\n    in A: f64[8]\n    inout s: f64\n    for i in range(n), j in range(n):\n"
    registers = kernel_of(head + "        s += 1.0\n")
    assert simulate_lru(registers, {"n": 10**9}, None).bytes("load_store") == 16
    guarded = kernel_of(head + "        if i + j < 1:\n            s += A[0]\n")
    assert simulate_lru(guarded, {"n": 5000}, None).accesses == 1
    with pytest.raises(TooManyAccesses, match="iterations without an access"):
        simulate_lru(guarded, {"n": 10**9}, None, max_accesses=1000)


def test_an_access_outside_its_array_is_an_error_not_a_crash() -> None:
    text = "kernel k(n):\n    out y: f64[n]\n    for i in range(n):\n        y[i + n] = 0.0\n"
    with pytest.raises(CommandError, match="outside array y"):
        simulate_lru(kernel_of(text), {"n": 3}, None)
