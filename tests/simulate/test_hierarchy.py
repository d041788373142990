"""The hierarchy of caches against the plain simulator of the oracle, to the last unit, and its errors."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations
from random import Random

import pytest

from benchmarks.kernels import fresh, shipped
from roofdsl.api import kernel
from roofdsl.counts.sector_traffic import register_bytes_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.simulate import plain_hierarchy as plain
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import _sets, simulate
from roofdsl.simulate.lru_traffic import simulate_lru
from roofdsl.simulate.plain_hierarchy import is_plain
from tests.oracle import caches as oracle
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

COUNTS = ("hits", "misses", "loads", "stores", "passed", "passed_bytes")


def agree(kernel: Kernel, size: dict[str, int], levels: list[CacheLevel]) -> None:
    got = simulate(kernel, size, levels)
    accesses, want = oracle.simulate(kernel, size, levels)
    assert got.accesses == accesses
    for found, cache in zip(got.levels, want, strict=True):
        shown = f"{kernel.source.text}{size} {levels}"
        assert [getattr(found, c) for c in COUNTS] == [getattr(cache, c) for c in COUNTS], shown


def random_levels(rng: Random, element: int) -> list[CacheLevel]:
    """One to three small caches of every kind that may stand together."""
    depth = rng.choice((1, 2, 2, 3, 3))
    line = element * rng.choice((1, 2, 4))
    sector = max(element, line // rng.choice((1, 1, 2, 4)))
    convention = rng.choice(("allocate", "allocate", "claim", "around"))
    levels: list[CacheLevel] = []
    for k in range(depth):
        last = k == depth - 1 and depth > 1
        policy = rng.choice(("lru", "lru", "fifo", "plru"))
        ways = rng.choice((1, 2, 4) if policy == "plru" else (1, 2, 3, 4))
        sets = rng.choice((1, 1, 2, 3, 4)) * (k + 1)
        inclusion = (
            rng.choice(("free", "inclusive", "exclusive")) if last else rng.choice(("free", "free", "inclusive"))
        )
        write_miss = rng.choice(("allocate", "claim", "around")) if rng.random() < 0.3 else convention
        if k and inclusion == "exclusive" and levels[-1].sector != levels[-1].line_bytes:
            inclusion = "free"
        if k == 0 or (inclusion == "inclusive" and any(level.write_miss == "claim" for level in levels)):
            inclusion = "free"
        if k and inclusion != "exclusive" and rng.random() < 0.4:
            line = line * 2
            sector = max(sector * rng.choice((1, 2)), line // 8)
        whole = rng.random() < 0.3  # fully associative
        levels.append(
            CacheLevel(
                f"L{k + 1}",
                sets * ways * line if not whole else line * (ways * 2 if policy == "plru" else rng.randint(1, 9)),
                line,
                None if whole else ways,
                policy,  # type: ignore[arg-type]
                rng.choice(("back", "back", "through")),  # type: ignore[arg-type]
                write_miss,  # type: ignore[arg-type]
                inclusion,  # type: ignore[arg-type]
                None if sector == line and rng.random() < 0.5 else sector,
            )
        )
    return levels


def drawn(seed: int) -> tuple[Kernel, list[tuple[dict[str, int], list[CacheLevel]]]]:
    """A kernel, and sizes of it with levels."""
    case, rng = random_kernel(seed), Random(seed)
    kernel = kernel_of(case.text)
    element = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    return kernel, [(rng.choice(case.sizes), levels) for levels in [random_levels(rng, element) for _ in range(4)]]


RANDOM = range(160)


@pytest.mark.spread(12, 80)
@pytest.mark.parametrize("seed", RANDOM)
def test_random_kernels_and_levels(seed: int) -> None:
    kernel, runs = drawn(seed)
    for size, levels in runs:
        agree(kernel, size, levels)


def test_every_kind_is_drawn() -> None:
    seen: Counter[str] = Counter()
    for seed in RANDOM:
        for _, levels in drawn(seed)[1]:
            for level in levels:
                seen.update([level.policy, level.write, level.write_miss, level.inclusion, f"depth {len(levels)}"])
                seen.update(["sectors"] * (level.sector < level.line_bytes))
    kinds = ["lru", "fifo", "plru", "back", "through", "allocate", "claim", "around", "free", "inclusive"]
    assert all(seen[k] > 50 for k in (*kinds, "exclusive", "sectors", "depth 1", "depth 3")), seen


@pytest.mark.spread(4, 45)
@pytest.mark.parametrize("policy", ["lru", "fifo", "plru"])
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_families_in_caches_of_many_ways(family: Family, policy: str) -> None:
    """Sets of more than 32 ways are kept in another way; sizes are those at which they evict."""
    kernel = kernel_of(family.text)
    element = max(a.type.bytes for a in kernel.arrays if not a.is_scalar)
    for size in family.sizes:
        first = CacheLevel("L1", 8 * element, element, 2, policy)  # type: ignore[arg-type]
        many = CacheLevel("L2", 64 * element, element, None, policy)  # type: ignore[arg-type]
        sets = CacheLevel("L3", 128 * element, element, 64, policy, inclusion="inclusive")  # type: ignore[arg-type]
        agree(kernel, size, [many])
        agree(kernel, size, [first, many])
        agree(kernel, size, [first, sets])
        victim = CacheLevel("L2", 64 * element, element, 64, policy, inclusion="exclusive")  # type: ignore[arg-type]
        agree(kernel, size, [first, victim])


@pytest.mark.spread(5)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_fully_associative_is_the_language_s_cache(family: Family) -> None:
    """Bytes loaded and stored are those of Q(Z), in both conventions."""
    kernel = apply(kernel_of(family.text))
    line = 4 * max(a.type.bytes for a in kernel.arrays if not a.is_scalar)
    for size in family.sizes:
        for lines in (1, 3, 8, 40, 1000):
            exact = simulate_lru(kernel, size, lines * line + 5, line)
            for convention, write_miss in (("load_store", "claim"), ("write_allocate", "allocate")):
                level = CacheLevel("Z", lines * line + 5, line, write_miss=write_miss)  # type: ignore[arg-type]
                got = simulate(kernel, size, [level])
                assert (got.load_bytes(0), got.store_bytes(0)) == (exact.loads(convention), exact.stores(convention))  # type: ignore[arg-type]


def plain_levels(rng: Random, line: int) -> list[CacheLevel]:
    """One to three small levels of LRU rows, of lines of one length."""
    miss = rng.choice(("allocate", "claim"))
    shapes = [
        (rng.choice((1, 2, 3, 4)) * (k + 1), rng.choice((1, 2, 3, 4, 8))) for k in range(rng.choice((1, 2, 3, 3)))
    ]
    return [
        CacheLevel(f"L{k + 1}", sets * ways * line, line, ways, write_miss=miss)  # type: ignore[arg-type]
        for k, (sets, ways) in enumerate(shapes)
    ]


STREAMS = """kernel streams(n, m):
    in A: f64[n, STRIDE*m + 2], B: f64[n], x: f64[STRIDE*m]
    inout y: f64[STRIDE*m]
    out C: f64[n, m]
    for i in range(n):
        for j in range(m):
            y[STRIDE*j] += A[i, STRIDE*j] - A[i, STRIDE*j + 2] * x[STRIDE*m - 1 - STRIDE*j]
            if 2 * i + j > n:
                C[n - 1 - i, m - 1 - j] = y[STRIDE*j] + A[i, j]
        for j in range(i, m, 3):
            C[i, j] = x[j] + B[i] + B[n - 1] + A[i, m - j] + A[n - 1 - i, m - j] + A[i, 2]
"""


@pytest.mark.spread(9, 60)
@pytest.mark.parametrize("seed", range(120))
def test_plain_hierarchies(seed: int) -> None:
    """LRU rows are simulated by code of their own, a line at a time: against the oracle, to the last unit."""
    rng = Random(seed)
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    element = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    for _ in range(3):
        levels = plain_levels(rng, element * rng.choice((1, 2, 4, 8)))
        assert is_plain(levels, 1)
        agree(kernel, rng.choice(case.sizes), levels)
    strided = kernel_of(STREAMS.replace("STRIDE", str(rng.randint(1, 9))))
    agree(strided, {"n": rng.randint(1, 9), "m": rng.randint(1, 30)}, plain_levels(rng, rng.choice((8, 32, 64))))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "n"), [("triad", 90_000), ("jacobi2d", 300), ("stencil27", 40), ("matmul", 70)])
def test_plain_hierarchies_at_size(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same counts as by the code for all hierarchies, with real caches, some of 8 ways for 28 references."""
    kernel = fresh(shipped()[name], name)
    levels = [replace(level, size_bytes=level.size_bytes >> k) for k, level in enumerate(SKYLAKE)]
    found = simulate(kernel, {"n": n}, levels)
    monkeypatch.setattr(plain, "is_plain", lambda *_: False)
    assert simulate(kernel, {"n": n}, levels) == found
    assert found.levels[0].stores > 0


@pytest.mark.parametrize("cache_bytes", [512, 4096])
def test_elements_of_several_sizes_in_one_list(cache_bytes: int) -> None:
    """Repetitions are counted there, too, but not the bytes through the registers."""
    nussinov, at, level = kernel("polybench/nussinov"), {"n": 60}, CacheLevel("cache", cache_bytes, 64)
    skipped, each = simulate(nussinov, at, [level]), simulate(nussinov, at, [level], skip=False)
    assert (skipped.accesses, skipped.levels) == (each.accesses, each.levels)
    assert skipped.register_bytes is None
    assert each.register_bytes == sum(register_bytes_at(nussinov, at))  # it has no scalars


def test_levels_ask_only_for_what_the_one_above_misses() -> None:
    kernel = kernel_of(next(f.text for f in families() if f.name == "matmul_ijk"))
    levels = [CacheLevel(f"L{k}", 1024 << 3 * k, 64, 8) for k in range(3)]
    got = simulate(kernel, {"n": 40}, levels)
    assert got.levels[0].hits + got.levels[0].misses == got.accesses == 4 * 40**3
    assert got.register_bytes == 8 * got.accesses
    for upper, lower in pairwise(got.levels):
        assert upper.loads == lower.hits + lower.misses
        assert upper.loads > lower.loads > 0


SKYLAKE = [
    CacheLevel("L1", 32 << 10, 64, 8),
    CacheLevel("L2", 1 << 20, 64, 16),
    CacheLevel("L3", 55 << 19, 64, 11),
]
GEMV = "kernel gemv(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n"  # noqa: E501


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([], "no cache to simulate"),
        ([CacheLevel("L1", 32, 64)], "cannot hold a line"),
        ([CacheLevel("L1", 4096, 48)], "power of two"),
        ([CacheLevel("L1", 4096, 4)], "does not hold a whole number of elements of A"),
        ([CacheLevel("L1", 4096, 64, 5)], "does not divide into sets of 5 ways"),
        ([CacheLevel("L1", 4096, 64, 0)], "has 0 ways"),
        ([CacheLevel("L1", 3 * 4096, 64, None, "plru")], "power of two as the number of ways, but L1 has 192"),
        ([CacheLevel("L1", 4096, 64, 4, sector_bytes=128)], "does not fit"),
        ([CacheLevel("L1", 4096, 128, 4, sector_bytes=8)], "too many sectors of 8 B"),
        ([CacheLevel("L1", 4096, 64, 4, inclusion="inclusive")], "first level"),
        ([CacheLevel("L1", 4096, 64), CacheLevel("L2", 8192, 32)], "may not become smaller"),
        (
            [CacheLevel("L1", 4096, 64, write_miss="claim"), CacheLevel("L2", 8192, 64, inclusion="inclusive")],
            "cannot be inclusive",
        ),
        ([CacheLevel("L1", 4096, 64), CacheLevel("L2", 8192, 128, inclusion="exclusive")], "holds what L1 evicts"),
        (
            [
                CacheLevel("L1", 4096, 64),
                CacheLevel("L2", 8192, 64, inclusion="exclusive"),
                CacheLevel("L3", 8192, 64),
            ],
            "not the last level",
        ),
    ],
)
def test_levels_that_cannot_be(levels: list[CacheLevel], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        simulate(kernel_of(GEMV), {"n": 4}, levels)


def test_other_errors() -> None:
    level = CacheLevel("L1", 4096, 64, 4)
    with pytest.raises(CommandError, match="needs a number for n"):
        simulate(kernel_of(GEMV), {}, [level])
    with pytest.raises(CommandError, match="too large"):
        simulate(kernel_of(GEMV), {"n": 2**40}, [level])
    with pytest.raises(CommandError, match="of memory"):
        simulate(kernel_of(GEMV), {"n": 10**6}, [CacheLevel("L1", 1 << 42, 64)])
    outside = "kernel k(n):\n    out y: f64[n]\n    for i in range(n):\n        y[i + n] = 0.0\n"
    with pytest.raises(CommandError, match="outside array y"):
        simulate(kernel_of(outside), {"n": 3}, [level])
    assumed = outside.replace("(n):", "(n):\n    assume n > 2", 1)
    for sizes, message in (({}, "needs a number for n"), ({"n": 2}, "assumes n > 2")):
        with pytest.raises(CommandError, match=message):
            simulate(kernel_of(assumed), sizes, [level])


def test_it_can_be_stopped() -> None:
    class Enough(Exception):
        pass

    def stop(accesses: int) -> None:
        if accesses > 10**7:
            raise Enough

    with pytest.raises(Enough):
        simulate(kernel_of(GEMV), {"n": 20000}, [CacheLevel("L1", 4096, 64, 4)], progress=stop)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_arrays_may_begin_in_any_order(order: tuple[int, ...]) -> None:
    """A large cache holds all of them until the flush, which stores what is kept of it."""
    text = """kernel k(n):
    out a: f64[n], b: f64[n]
    temp c: f64[n]
    out d: f64[n]
    for i in range(n):
        a[i] = i
        c[i] = a[i]
        b[i] = c[i]
        d[i] = a[i]
"""
    levels = [CacheLevel("L1", 1 << 16, 64, 4)]
    begins = {name: 1024 * order[k] for k, name in enumerate("abcd")}
    found = simulate(kernel_of(text), {"n": 20}, levels, begins=begins).levels[0]
    assert (found.misses, found.stores) == (4 * 3, 3 * 3)


def test_the_memory_of_caches_is_what_their_tables_take() -> None:
    wide, narrow = CacheLevel("L1", 1 << 14, 64), CacheLevel("L2", 1 << 16, 64, 8)
    for levels in ([wide], [narrow], [wide, narrow]):
        tables = _sets(levels, 64, 1 << 20, 1 << 30)[1:]
        taken = sum(t.nbytes for t in tables) + 4 * len(tables[0])  # and the words of `run_plain`
        _sets(levels, 64, 1 << 20, taken)
        with pytest.raises(CommandError, match=r"takes [\d,]+ B of memory"):
            _sets(levels, 64, 1 << 20, taken - 100)
