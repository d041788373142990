"""Tiles over space and time: the printed kernels compute the same, and move no more than is said."""

from __future__ import annotations

import pytest

from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_models
from roofdsl.sol.floor import floor
from roofdsl.sol.schedule import best
from roofdsl.sol.sweeps import sweeps_of
from roofdsl.sol.time_tile_text import tiled_text
from roofdsl.sol.time_tiles import Tile, grid, held_bytes, tile_bytes
from tests.oracle.loading import kernel_of
from tests.oracle.lru import traffic
from tests.oracle.values import same_result

WIDE = """\
kernel wide(steps, n, m):
    inout u: f32[n, m]
    temp v: f32[n, m]
    in c: f32[n, m]
    for t in range(2, steps + 2):
        for i in range(2, n - 2), j in range(1, m - 3):
            let s = u[i - 2, j] + u[i + 2, j] + u[i, j + 3]
            v[i, j] = c[i, j] * s
        for i in range(2, n - 2), j in range(2, m - 3):
            u[i, j] = v[i, j - 1] + v[i, j]
"""
LINE = """\
kernel line(steps, n):
    inout a, b: f64[n]
    for t in range(steps):
        for i in range(1, n - 1):
            b[i] = a[i - 1] + a[i + 1]
        for i in range(1, n - 1):
            a[i] = b[i - 1] + b[i + 1]
"""


def shipped(name: str) -> Kernel:
    target = shipped_models()[name]
    return pick(load_file(target.path), target.name)


KERNELS = {
    "jacobi2d_time": shipped("jacobi2d_time"),
    "heat_3d": shipped("heat_3d"),
    "wide": kernel_of(WIDE),
    "line": kernel_of(LINE),
}
SIZES = {
    "jacobi2d_time": {"steps": 5, "n": 14}, "heat_3d": {"tsteps": 3, "n": 8}, "wide": {"steps": 5, "n": 15, "m": 19},
    "line": {"steps": 9, "n": 40},
}  # fmt: skip


TILES = [
    (Tile("", 5, 3),), (Tile("", 2, 1), Tile("", 6, 2)), (Tile("", 1, 2), Tile("", 3, 2), Tile("", 6, 4)),
    (Tile("", 4, 3, True),), (Tile("", 2, 2, True), Tile("", 6, 4)),
]  # fmt: skip


@pytest.mark.spread(2, 20)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("tiles", TILES)
def test_the_tiled_kernel_leaves_the_same_values(name: str, tiles: tuple[Tile, ...]) -> None:
    """Both executed on numbers, statement by statement."""
    kernel = KERNELS[name]
    sweeps = sweeps_of(kernel)
    assert sweeps is not None
    assert same_result(kernel, kernel_of(tiled_text(kernel, sweeps, tiles)), SIZES[name])


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("line_bytes", [8, 64])
def test_a_cache_that_holds_a_tile_moves_no_more_than_said(name: str, line_bytes: int) -> None:
    """Every access simulated, with write-allocate."""
    kernel, sizes = KERNELS[name], SIZES[name]
    sweeps = sweeps_of(kernel)
    assert sweeps is not None
    at = grid(sweeps, sizes)
    assert at is not None
    for side, steps, stream in ((4, 2, False), (60, 9, False), (5, 3, True)):
        tile = Tile("", side, steps, stream)
        room = -(-held_bytes(at, tile, line_bytes) // line_bytes) * line_bytes
        text = tiled_text(kernel, sweeps, [tile])
        found = traffic(kernel_of(text), sizes, room, line_bytes, "write_allocate")
        loads, stores = tile_bytes(at, tile, line_bytes)
        assert found.loads is not None and found.stores is not None
        assert found.loads <= loads and found.stores <= stores, tile


@pytest.mark.parametrize("name", ["seidel_2d", "jacobi2d", "gemm", "lu", "fdtd_2d"])
def test_other_kernels_are_left_alone(name: str) -> None:
    """Points that read their neighbors of the same sweep, a single sweep, products, and sweeps over several arrays
    with boundaries of their own.
    """
    assert sweeps_of(shipped(name)) is None


REACHED = [
    ("jacobi2d_time", {"steps": 100, "n": 4000}, "haswell_e5_2695v3", 1.01),
    ("jacobi2d_time", {"steps": 100, "n": 4000}, "a100_80", 1.3),
    ("heat3d_time", {"steps": 100, "n": 400}, "haswell_e5_2695v3", 1.01),
    ("heat3d_time", {"steps": 100, "n": 400}, "a100_80", 1.3),
    ("conv2d_forward", {}, "a100_80", 1.3),
    ("conv2d_f32", {}, "haswell_e5_2695v3", 1.3),
]


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "sizes", "machine", "most"), REACHED)
def test_the_best_order_comes_near_the_floor(name: str, sizes: dict[str, int], machine: str, most: float) -> None:
    kernel, on = shipped(name), load_machine(machine)
    least = floor(kernel, sizes, on)
    found = best(kernel, on, least, None)
    assert found is not None and least.time_s <= found.time_s <= most * least.time_s
