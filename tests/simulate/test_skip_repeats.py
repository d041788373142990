"""Skipping repeated iterations: against the simulation of every access, and published simulations of billions."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.find import shipped, standard_sizes
from roofdsl.simulate.cache_levels import CacheLevel, WriteMiss
from roofdsl.simulate.compiled_kernel import compile_kernel
from roofdsl.simulate.hierarchy import simulate
from roofdsl.simulate.lru_traffic import simulate_lru
from roofdsl.simulate.shifts import repeating_loops
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

PUBLISHED = Path(__file__).parents[1] / "reference" / "polybench_large_misses.json"
NAMES = {"mm2": "2mm", "mm3": "3mm"}


def polybench(name: str) -> Kernel:
    return apply(kernel(load_file(shipped("polybench")[name]), name))


def agree(kernel: Kernel, size: dict[str, int], cache: int, line: int) -> float:
    """The same counts as without skipping; the share of the work that was left to do."""
    every = simulate_lru(kernel, size, cache, line, skip=False)
    got = simulate_lru(kernel, size, cache, line)
    assert (got.accesses, got.arrays) == (every.accesses, every.arrays), f"{kernel.source.text}{size} {cache} {line}"
    return got.simulated / max(1, every.simulated)


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", sorted(shipped("polybench").keys() & standard_sizes().keys()))
def test_polybench(name: str) -> None:
    for lines in (37, 512):
        agree(polybench(name), standard_sizes()[name]["small"], 64 * lines, 64)


@pytest.mark.parametrize("write_miss", ["allocate", "claim"])
def test_a_hierarchy_of_one_list(write_miss: WriteMiss) -> None:
    """One fully associative cache skips what repeats, with the counts of the code for all hierarchies."""
    for name in ("jacobi_2d", "symm", "floyd_warshall"):
        kernel, size = polybench(name), standard_sizes()[name]["small"]
        levels = [CacheLevel("L1", 64 * 100, 64, write_miss=write_miss)]
        assert simulate(kernel, size, levels) == simulate(kernel, size, levels, skip=False)


@pytest.mark.spread(4, 40)
@pytest.mark.parametrize("seed", range(70))
def test_random_kernels(seed: int) -> None:
    rng = Random(seed)
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    element = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    for size in case.sizes[:2]:
        longer = {p: v if p == "b" else v * rng.choice((1, 3, 16)) for p, v in size.items()}
        for _ in range(2):
            line = element * rng.choice((1, 2, 4, 8))
            cache = line * rng.choice((1, 2, 3, 5, 8, 13, 30, 70, 150, 400))
            try:
                simulate_lru(kernel, longer, cache, line, max_accesses=100_000, skip=False)
            except CommandError:  # too long, or against its assumptions
                continue
            agree(kernel, longer, cache, line)


REPEATING = {
    "stencil in time": (
        "    inout A, B: f64[n, n]\n    for t in range(n), i in range(1, n - 1):\n        for j in range(1, n - 1):\n"
        "            B[i, j] = A[i - 1, j] + A[i + 1, j]\n            A[i, j] = B[i, j - 1]\n",
        (5, 64, 200, 2000),
    ),
    "one row is read by all, and is among them": (
        "    inout A: f32[n, n]\n    for k in range(n), i in range(n), j in range(n):\n"
        "        A[i, j] += A[i, k] * A[k, j]\n",
        (3, 64, 200, 700),
    ),
    "columns that run towards each other": (
        "    inout A: f64[n, n]\n    for i in range(n), j in range(n), k in range(n):\n"
        "        A[k, j] += A[k, n - 1 - j]\n",
        (3, 64, 200, 2000),
    ),
    "rows in both directions": (
        "    in A: f64[2*n, n]\n    out y: f64[n]\n    for t in range(3), i in range(n), j in range(n):\n"
        "        y[j] = A[i, j] + A[2*n - 1 - i, j]\n",
        (3, 64, 200, 2000),
    ),
    "a window that moves with its loop": (
        "    inout x, y: f64[40*n]\n    for t in range(4), i in range(40*n - 40):\n        for j in range(i, i + 40):\n"
        "            y[i] += x[j] * x[40*n - 1 - j]\n",
        (3, 6, 20, 300),
    ),
    "a guard that stays": (
        "    inout A: f64[n, n]\n    for t in range(6), i in range(n), j in range(n):\n"
        "        if j % 3 == 1 and (i + 2 * j) // 2 - i // 2 == j:\n            A[i, j] += 1\n"
        "        else:\n            A[j, i] = A[i, j]\n",
        (3, 64, 200, 2000),
    ),
    "written lines that leave the cache late": (
        "    in x: f64[8*n, n]\n    temp A: f64[8*n, n]\n    for i in range(8*n):\n        for j in range(n):\n"
        "            A[i, j] = x[i, j]\n        for j in range(n):\n            A[0, j] += x[0, j]\n",
        (3, 64, 200, 900),
    ),
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("what", REPEATING)
def test_what_repeats_is_skipped(what: str) -> None:
    body, caches = REPEATING[what]
    kernel = kernel_of(f"kernel k(n):\n{body}")
    for n in (48, 61, 128):
        left = [agree(kernel, {"n": n}, 64 * lines, 64) for lines in caches]
    assert min(left) < 0.5, left


def test_which_loops_repeat() -> None:
    """Periods by hand: whole lines of 64 B, rows of 60 f64 in 7.5 lines."""

    def found(body: str) -> list[tuple[int, int, set[int]]]:
        text = f"kernel k(n):\n    inout A: f64[n, n], x: f64[n]\n{body}"
        loops = repeating_loops(compile_kernel(kernel_of(text), {"n": 60}, 64))
        return [(loop.variable, loop.period, set(loop.lines.values())) for loop in loops]

    nest = "    for i in range(n), j in range(n), k in range(n):\n        A[i, j] += x[k]\n"
    assert found(nest) == [(1, 8, {0, 1}), (0, 2, {0, 15})]
    assert found(nest.replace("k in range(n)", "k in range(j)")) == [(0, 2, {0, 15})]
    assert found(nest.replace("k in range(n)", "k in range(j, j + 3)")) == [(1, 8, {1}), (0, 2, {0, 15})]
    thirds = nest.replace("x[k]", "x[k // 3 + j // 5]")
    assert found(thirds) == [(2, 24, {0, 1}), (1, 40, {1, 5}), (0, 2, {0, 15})]
    assert found(nest.replace("k in range(n)", "k in range(max(i, j), n)")) == []


@pytest.mark.spread(6)
@pytest.mark.parametrize(
    "name", ["adi", "doitgen", "fdtd_2d", "floyd_warshall", "gemm", "heat_3d", "jacobi_2d", "mm2", "mm3", "seidel_2d"]
)
def test_published_simulations(name: str) -> None:
    """At LARGE, 32 KiB, 64-byte lines: 2 to 150 billion accesses, simulated by others one by one."""
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))["rows"][NAMES.get(name, name.replace("_", "-"))]
    found = simulate_lru(polybench(name), standard_sizes()[name]["large"], 32 << 10, 64)
    assert found.accesses == published["accesses"]
    assert sum(a.residencies for a in found.arrays) == published["L1_miss_FA_LRU_simulated"]
    assert found.simulated < found.accesses / 1000
