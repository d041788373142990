"""Block shapes evaluated all at once: the same as each one counted from its sets, and as enumerated sectors."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.block_shapes import FIVE_POINT, MATMUL, STAR, of, shapes
from roofdsl.counts.bytes_by_block_shape import block_bytes
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.traffic_at import convention_totals
from roofdsl.counts.working_set_traffic import lines_by_working_sets
from roofdsl.loops.sized import Sized
from roofdsl.loops.thread_blocks import block_by_block, launch_of

COPY = """kernel copy(m, n):
    in a: f32[m, n], s: f32[n]
    out b: f32[m, n]
    parallel for j in range(m), i in range(n):
        b[j, i] = a[j, i] * s[i]
"""
APART = """kernel apart(m, n):
    assume m >= 40, n >= 40
    in a: f64[m, n]
    out b: f64[m, n]
    parallel for j in range(7, m - 9), i in range(5, n - 22):
        b[j, i] = a[j - 7, i - 5] + a[j, i] + a[j + 9, i + 22] + a[j, i + 20]
"""
COLUMNS = """kernel columns(n):
    in A: f64[n, n] col
    inout y: f64[n]
    parallel for i in range(n):
        for j in range(n):
            y[i] += A[i, j]
"""
CASES = {
    "five_point": (FIVE_POINT, {"m": 36, "n": 44}, ("j", "i")),
    "star": (STAR, {"nz": 12, "ny": 14, "nx": 40}, ("z", "y", "x")),
    "matmul": (MATMUL, {"n": 24}, ("i", "j")),
    "copy": (COPY, {"m": 20, "n": 64}, ("j", "i")),
    "apart": (APART, {"m": 44, "n": 64}, ("j", "i")),
    "columns": (COLUMNS, {"n": 48}, ("i",)),
}


def one_by_one(text: str, sizes: dict[str, int], loops: tuple[str, ...], shape: tuple[int, ...]) -> tuple[int, int]:
    """Loads and stores of blocks of this shape, counted from the sets of each block."""
    tile = f"    tile {', '.join(loops)} by {', '.join(map(str, shape))}\n    parallel for"
    at = launch_of(of(text.replace("    parallel for", tile)), sizes, 256)
    assert at is not None
    blocks = Sized(block_by_block(at), sizes)
    lines = lines_by_working_sets(blocks, 1 << 40, 128, 32, cold=len(at.blocks))
    loads, stores, _ = convention_totals(blocks, lines, "load_store")
    assert loads is not None and stores is not None
    return loads, stores


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", CASES)
def test_all_at_once_is_one_by_one(name: str) -> None:
    text, sizes, loops = CASES[name]
    draw = random.Random(name)
    chosen = [tuple(draw.choice((1, 2, 3, 4, 5, 8, 11, 16, 32, 100)) for _ in loops) for _ in range(12)]
    found = block_bytes(of(text), sizes, 32, np.array(chosen))
    for k, shape in enumerate(chosen):
        assert (found.loads[k], found.stores[k]) == one_by_one(text, sizes, loops, shape), shape


def test_enumerated_sectors() -> None:
    """Blocks of 3 x 5 points of a 5-point stencil, each row of an array 44 elements long."""
    text, sizes, _ = CASES["five_point"]
    loads = stores = 0
    for j0 in range(1, 35, 3):
        for i0 in range(1, 43, 5):
            points = [(j, i) for j in range(j0, min(j0 + 3, 35)) for i in range(i0, min(i0 + 5, 43))]
            offsets = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
            loads += len({((j + dj) * 44 + i + di) // 4 for j, i in points for dj, di in offsets})
            stores += len({(j * 44 + i) // 4 for j, i in points})
    found = block_bytes(of(text), sizes, 32, np.array([[3, 5]]))
    assert (found.loads[0], found.stores[0]) == (32 * loads, 32 * stores)


def test_every_shape_moves_at_least_each_point() -> None:
    """Of a large star, for many shapes; the benchmark tells how many a second."""
    found = block_bytes(of(STAR), {"nz": 520, "ny": 520, "nx": 648}, 32, shapes(3, 20_000))
    assert found.loads.shape == (20_000,) and (found.loads >= found.stores).all()
    points = 512 * 512 * 640
    assert found.stores.min() >= 8 * points and found.loads.min() > 8 * points


@pytest.mark.parametrize(
    ("loops", "why"),
    [
        ("parallel for i in range(n), j in range(n):\n        B[i, j] = A[i, 2 * j]", "not a loop plus a number"),
        ("parallel for i in range(n), j in range(n):\n        B[i, i] = A[i, j]", "two subscripts of B"),
        ("parallel for i in range(n), j in range(n):\n        B[i, j] = A[i, j] + A[j, i]", "along different loops"),
        ("parallel for i in range(n), j in range(i, n):\n        B[i, j] = A[i, j]", "depend on other loops"),
        (
            "parallel for i in range(n), j in range(n):\n        for k in range(n):\n            B[i, k] = A[i, k]\n"
            "        for k in range(4):\n            B[i, k] += 1",
            "the loops over k have different bounds",
        ),
        (
            "parallel for i in range(n), j in range(n):\n        if i < j:\n            B[i, j] = A[i, j]",
            "a condition decides which iterations are executed",
        ),
        (
            "parallel for i in range(n):\n        B[i, 0] = A[i, 0]",
            "2 dimensions, and the nest of loops over threads has 1",
        ),
    ],
)
def test_what_has_no_such_form(loops: str, why: str) -> None:
    other = of(f"kernel k(n):\n    in A: f64[n, 2 * n]\n    out B: f64[n, 2 * n]\n    {loops}\n")
    with pytest.raises(NoAnswer, match=why):
        block_bytes(other, {"n": 32}, 32, np.array([[4, 8]]))
    odd = of(COPY)
    with pytest.raises(NoAnswer, match="the rows of a are not a whole number of sectors long"):
        block_bytes(odd, {"m": 5, "n": 33}, 32, np.array([[4, 8]]))


def test_counters_and_loops_without_iterations_move_nothing() -> None:
    text = """kernel k(n, m):
    in A: f64[n, 16]
    inout y: f64[n]
    parallel for i in range(n):
        for k in range(5, m):
            y[i] += A[i, k]
        for k in range(0, 16):
            count steps 1
            y[i] += A[i, k]
"""
    found = block_bytes(of(text), {"n": 32, "m": 5}, 32, np.array([[4], [8]]))
    for k, length in enumerate((4, 8)):
        rows = [range(i, i + length) for i in range(0, 32, length)]
        of_y = sum(len({i // 4 for i in row}) for row in rows)
        of_a = sum(len({(i * 16 + c) // 4 for i in row for c in range(16)}) for row in rows)
        assert (found.loads[k], found.stores[k]) == (32 * (of_y + of_a), 32 * of_y)
