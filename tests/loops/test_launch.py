"""Blocks and waves: the same accesses as the kernel, in the order that the model says."""

from __future__ import annotations

from collections import Counter

import pytest

from roofdsl.counts.traffic_at import traffic_at
from roofdsl.counts.warps import warp_bytes_at
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.thread_blocks import block_by_block, in_waves, launch_of, on_one_copy
from roofdsl.loops.transform import apply
from tests.oracle.enumerate import run
from tests.oracle.lru import address, traffic


def of(text: str) -> Kernel:
    return kernel(load_file(Source("k.roof", text)), "k")


MATMUL = of(
    "kernel k(n):\n    in A, B: f64[n, n]\n    out C: f64[n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        C[i, j] = 0\n        for k in range(n):\n            C[i, j] += A[i, k] * B[k, j]\n"
)
TILED = of(
    "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n    tile i, j by 4\n"
    "    parallel for i in range(n), j in range(n):\n        for k in range(n):\n"
    "            C[i, j] += A[i, k] * B[k, j]\n"
)
VECTOR = of(
    "kernel k(n):\n    in A: f32[2 * n]\n    out B: f32[n]\n    parallel for i in range(1, n):\n"
    "        B[i] = A[2 * i] + A[2 * i - 1]\n"
)
SUMS = of(
    "kernel k(n):\n    in A: f64[n, n]\n    out s: f64[n]\n    parallel for i in range(n):\n        s[i] = 0\n"
    "        for j in range(i, n):\n            s[i] += A[i, j]\n"
)
SERIAL = of(
    "kernel k(n):\n    in A: f32[n, n], B: f32[n, n]\n    inout C: f32[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n"
    "        C[i, j] += A[i, k] * B[k, j]\n"
)
COLUMNS = of(
    "kernel k(n):\n    in A: f64[n, n] col, B: f32[n, 2 * n] col\n    out C: f64[n, n] col\n"
    "    parallel for j in range(n), i in range(n):\n        C[i, j] = A[i, j] + B[i, 2 * j] + B[i, 2 * j + 1]\n"
)
CUBE = of(
    "kernel k(n):\n    out A: f64[n, n, n]\n    parallel for i in range(n), j in range(n), k in range(n):\n"
    "        A[i, j, k] = 1\n"
)
KERNELS = {"matmul": MATMUL, "tiled": TILED, "vector": VECTOR, "sums": SUMS}


def accesses(kernel: Kernel, n: int, last: int | None = None) -> list[tuple[str, tuple[int, ...], bool]]:
    """(array, index, write); `last` keeps that many subscripts, to leave the tags of blocks away."""
    found = [a for e in run(apply(kernel), {"n": n}) for a in e.accesses]
    return [(a.array, a.index if last is None else a.index[-last:], a.is_write) for a in found]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [5, 8])
def test_the_same_accesses_in_another_order(name: str, n: int) -> None:
    launch = launch_of(KERNELS[name], {"n": n}, 3)
    assert launch is not None
    expected = Counter(accesses(KERNELS[name], n))
    for resident in (1, 2, 5, 100):
        assert Counter(accesses(in_waves(launch, resident), n)) == expected
    rank = len(KERNELS[name].arrays[0].dims)
    if name in ("matmul", "tiled"):
        assert Counter(accesses(on_one_copy(launch, None), n, rank)) == expected


def test_blocks_and_threads() -> None:
    launch = launch_of(MATMUL, {"n": 8}, 3)
    assert launch is not None
    assert launch.grid == (8, 3)
    assert [loop.var for loop in launch.threads] == ["j"]
    box = launch_of(MATMUL, {"n": 64}, 128)
    assert box is not None
    assert (box.grid, box.threads_of_block) == ((16, 2), 128)
    cube = launch_of(CUBE, {"n": 64}, 256)
    assert cube is not None
    assert (cube.grid, cube.threads_of_block) == ((32, 16, 2), 256)
    tiled = launch_of(TILED, {"n": 8}, 3)
    assert tiled is not None
    assert (tiled.grid, [loop.var for loop in tiled.threads]) == ((2, 2), ["i", "j"])


def test_threads_of_a_block_advance_together() -> None:
    launch = launch_of(MATMUL, {"n": 4}, 2)
    assert launch is not None
    first = accesses(in_waves(launch, 1), 4)
    assert [i for a, i, _ in first if a == "B"][:6] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    wave = accesses(in_waves(launch, 2), 4)  # both blocks of a row
    assert [i for a, i, _ in wave if a == "B"][:4] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    rows = accesses(in_waves(launch, 4), 4)  # two rows of blocks
    assert [i for a, i, _ in rows if a == "A"][:8] == [(0, 0)] * 4 + [(1, 0)] * 4


def test_what_is_no_launch() -> None:
    triangle = (
        "kernel k(n):\n    out A: f64[n, n]\n    parallel for i in range(n), j in range(i, n):\n        A[i, j] = 1\n"
    )
    assert launch_of(of(triangle), {"n": 4}, 2) is None
    assert (
        launch_of(of("kernel k(n):\n    out A: f64[n]\n    for i in range(n):\n        A[i] = 1\n"), {"n": 4}, 2)
        is None
    )


@pytest.mark.parametrize("name", [*KERNELS, "columns"])
@pytest.mark.parametrize("n", [5, 8])
def test_the_copies_of_two_blocks_share_no_line(name: str, n: int) -> None:
    """Elements lie at the same places of lines as without copies, and no line has those of two blocks."""
    launch = launch_of({**KERNELS, "columns": COLUMNS}[name], {"n": n}, 4)
    assert launch is not None
    copied = on_one_copy(launch, 32)
    before, after = ({a.name: a for a in k.arrays} for k in (launch.kernel, copied))
    blocks: dict[object, set[tuple[int, ...]]] = {}
    pairs = zip(run(block_by_block(launch), {"n": n}), run(copied, {"n": n}), strict=True)
    for a, b in ((a, b) for one, other in pairs for a, b in zip(one.accesses, other.accesses, strict=True)):
        place, where = address(before[a.array], a.index, {"n": n}), address(after[b.array], b.index, {"n": n})
        assert place % 32 == where % 32
        tags = len(launch.blocks)
        block = b.index[-tags:] if after[b.array].column_major else b.index[:tags]
        blocks.setdefault((b.array, where // 32), set()).add((*block, place // 32))
    assert all(len(b) == 1 for b in blocks.values())


@pytest.mark.spread(5)
@pytest.mark.parametrize(("name", "n"), [("matmul", 8), ("tiled", 8), ("vector", 13), ("sums", 5)])
@pytest.mark.parametrize("cache", [128, 512, None])
def test_every_block_is_cold_and_flushed(name: str, n: int, cache: int | None) -> None:
    """The traffic of all blocks one by one, each of them a kernel of its own, adds up to that of the tagged kernel."""
    launch = launch_of(KERNELS[name], {"n": n}, 4)
    assert launch is not None
    tagged = on_one_copy(launch, 32)
    whole = traffic_at(tagged, {"n": n}, cache, 32, "load_store")
    assert whole.bytes == traffic(tagged, {"n": n}, cache, 32, "load_store").bytes
    if cache is None:
        blocks: dict[tuple[int, ...], dict[tuple[str, int], list[bool]]] = {}
        tags = len(launch.blocks)
        arrays = {a.name: a for a in tagged.arrays}
        for e in run(tagged, {"n": n}):
            for a in e.accesses:
                line = (a.array, address(arrays[a.array], a.index, {"n": n}) // 32)
                blocks.setdefault(a.index[:tags], {}).setdefault(line, []).append(a.is_write)
        lines = [writes for held in blocks.values() for writes in held.values()]
        assert whole.bytes == 32 * sum((not w[0]) + any(w) for w in lines)


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", [*KERNELS, "serial"])
@pytest.mark.parametrize("warp", [2, 4])
def test_sectors_of_warps(name: str, warp: int) -> None:
    """Enumerated: for every access of a statement, the distinct sectors of `warp` iterations of the lanes' loop."""
    n, sector = 7, 16
    subject = {**KERNELS, "serial": SERIAL}[name]
    arrays = {a.name: a for a in subject.arrays}
    lane = {"matmul": "j", "tiled": "j", "vector": "i", "sums": "i", "serial": "j"}[name]
    first = {"vector": 1}.get(name, 0)
    seen: dict[bool, set[object]] = {False: set(), True: set()}
    for e in run(apply(subject), {"n": n}):
        env = dict(e.env)
        lane_key = (env.pop(lane) - first) // warp
        for k, a in enumerate(e.accesses):
            where = address(arrays[a.array], a.index, {"n": n}) // sector
            seen[a.is_write].add((str(e.statement), k, tuple(sorted(env.items())), lane_key, a.array, where))
    assert warp_bytes_at(subject, {"n": n}, warp, sector) == (sector * len(seen[False]), sector * len(seen[True]))


LOOPS = {
    "a step from a maximum": ("for j in range(1):", "range(max(0, a - 5), n, 2)"),
    "a start in an outer loop": ("for j in range(n):", "range(j, n)"),
    "a maximum in an outer loop": ("for j in range(1, n, 3):", "range(max(j + 1, a), n + j, 2)"),
    "a rounded start": ("for j in range(2, n, 3):", "range(3 * (j // 2) - 1 - j, n)"),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("size", [{"n": 13, "a": 7}, {"n": 10, "a": 3}], ids=str)
@pytest.mark.parametrize("warp", [2, 4])
def test_warps_begin_with_the_first_iteration(name: str, size: dict[str, int], warp: int) -> None:
    """Enumerated: each execution of the parallel loop is cut into warps from its first iteration on."""
    outside, inside = LOOPS[name]
    lines = ["in x: f32[1]", "inout y: f32[2 * n]", outside]
    lines += [f"    parallel for i in {inside}:", "        y[i] += x[0]"]
    subject = of("kernel k(n, a):\n" + "".join(f"    {line}\n" for line in lines))
    arrays = {a.name: a for a in subject.arrays}
    passed: Counter[object] = Counter()
    seen: dict[bool, set[object]] = {False: set(), True: set()}
    for e in run(apply(subject), size):
        outer = e.env.get("j")
        number, passed[outer] = passed[outer], passed[outer] + 1
        for k, a in enumerate(e.accesses):
            seen[a.is_write].add((outer, number // warp, k, address(arrays[a.array], a.index, size) // 16))
    assert warp_bytes_at(subject, size, warp, 16) == (16 * len(seen[False]), 16 * len(seen[True]))
