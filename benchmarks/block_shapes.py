"""How many shapes of thread blocks a second the closed form evaluates, beside the count of one shape by its sets."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import markdown
from roofdsl.counts.bytes_by_block_shape import block_bytes
from roofdsl.counts.working_set_traffic import lines_by_working_sets
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized
from roofdsl.loops.thread_blocks import block_by_block, launch_of

SHAPES = 1_000_000
GOAL_PER_S = 1_000_000
SECTOR = 32

FIVE_POINT = """kernel five_point(m, n):
    assume m >= 4, n >= 4
    in a: f64[m, n]
    out b: f64[m, n]
    parallel for j in range(1, m - 1), i in range(1, n - 1):
        b[j, i] = a[j, i - 1] + a[j, i + 1] + a[j - 1, i] + a[j + 1, i] + a[j, i]
"""
_TERMS = " + ".join(
    f"a[z {z}, y {y}, x {x}]"
    for k in range(1, 5)
    for x, y, z in ((f"+ {k}", "", ""), (f"- {k}", "", ""), ("", f"+ {k}", ""), ("", f"- {k}", ""), ("", "", f"+ {k}"),
                    ("", "", f"- {k}"))
)  # fmt: skip
STAR = f"""kernel star(nz, ny, nx):
    assume nx >= 10, ny >= 10, nz >= 10
    in a: f64[nz, ny, nx]
    out b: f64[nz, ny, nx]
    parallel for z in range(4, nz - 4), y in range(4, ny - 4), x in range(4, nx - 4):
        b[z, y, x] = a[z, y, x] + {_TERMS}
"""
MATMUL = """kernel matmul(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    parallel for i in range(n), j in range(n):
        for k in range(n):
            C[i, j] += A[i, k] * B[k, j]
"""
CASES = ((FIVE_POINT, {"m": 15_000, "n": 15_000}), (STAR, {"nz": 520, "ny": 520, "nx": 648}), (MATMUL, {"n": 4096}))


def of(text: str) -> Kernel:
    return kernel(load_file(Source("k.roof", text)), text.split("(", maxsplit=1)[0].removeprefix("kernel "))


def shapes(dimensions: int, count: int, seed: int = 1) -> NDArray[np.int64]:
    """Random shapes of up to 1024 threads, the last dimension the longest."""
    draw = np.random.default_rng(seed)
    inner = draw.integers(1, 1025, size=count)
    rest = [np.maximum(1, draw.integers(1, 33, size=count) * 32 // inner) for _ in range(dimensions - 1)]
    return np.stack([*rest, inner], axis=1)


def measured(text: str, sizes: dict[str, int], count: int = SHAPES) -> tuple[str, float, float]:
    """(kernel, shapes a second by the closed form, seconds of one shape by sets), in processor time."""
    plain = of(text)
    many = shapes(3 if plain.name == "star" else 2, count)
    begun = time.process_time()
    block_bytes(plain, sizes, SECTOR, many)
    rate = count / (time.process_time() - begun)
    at = launch_of(plain, sizes, 256)
    assert at is not None
    begun = time.process_time()
    lines_by_working_sets(Sized(block_by_block(at), sizes), 1 << 40, 128, SECTOR, cold=len(at.blocks))
    return plain.name, rate, time.process_time() - begun


def section() -> str:
    rows = []
    for text, sizes in CASES:
        name, rate, one_s = measured(text, sizes)
        rows.append((name, f"{rate / 1e6:.1f} million", f"{1 / one_s:,.0f}"))
    heading = ("kernel", "shapes a second, closed form", "shapes a second, one by one")
    about = f"Traffic of {SHAPES:,} random block shapes behind the first cache. The goal is {GOAL_PER_S:,} a second."
    return f"## Block shapes\n\n{about}\n\n{markdown(heading, rows)}"
