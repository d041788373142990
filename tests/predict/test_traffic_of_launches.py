"""The levels of a GPU against the generated launch, followed thread by thread: what warps and blocks touch."""

from __future__ import annotations

from math import prod

import pytest

from roofdsl.machine.find import load_machine
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.kernel import Options, predict
from tests.predict.launch_threads import behind_blocks, followed, from_registers, the_call
from tests.predict.machines import kernel_of

V100 = load_machine("v100")

PRODUCT = (
    "kernel k(n, m):\n    in A: f64[n, m], B: f64[m, n]\n    inout C: f64[n, n]\n"
    "    {}for i in range(n), j in range(n){}\n        C[i, j] += A[i, k] * B[k, j]\n"
)
PROVEN = PRODUCT.format("", ", k in range(m):")
DECLARED = PRODUCT.format("parallel ", ":\n        for k in range(m):").replace("  C[", "      C[")
MATCHED = (
    "kernel k(n, m):\n    in A: f64[n, n], B: f64[n, n]\n    inout C: f64[n, n]\n    for i in range(n), j in range(n):\n"
    "        C[j, i] += A[j, i] * B[i, j]\n"
)
TRIANGLE = (
    "kernel k(n, m):\n    assume n >= m\n    in A: f64[n, n]\n    inout C: f64[n, n]\n    for i in range(n), j in range({}):\n"
    "        for k in range({}):\n            C[i, j] += A[i, k] * A[j, k]\n"
)


def compare(text: str, **sizes: int) -> None:
    """The grid, L1 and L2 of the prediction are those of the launch."""
    of = kernel_of(text)
    _, launch = the_call(of, sizes)
    every = followed(of, sizes)
    assert every
    found = predict(of, sizes, V100, Options())
    at = {level.name: level.bytes for level in found.levels}
    assert at["L1"] == from_registers(every, launch.block)
    assert at["L2"] == behind_blocks(every)
    orders = orders_of(of, sizes, V100)
    assert orders.launch is not None
    assert prod(orders.launch.grid) == prod(launch.grid)
    assert orders.launch.threads_of_block == prod(launch.block)


TILES = [
    "tile i by 8",
    "tile j by 8",
    "tile i by 64",
    "tile j by 48",
    "tile i, j by 32",
    "tile i by 24\n    tile j by 40",
    "tile i by 16\n    tile j by 8",
    "tile i by 1",
]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("text", [PROVEN, DECLARED, MATCHED], ids=["proven", "declared", "transposed"])
def test_nests_with_tiles(text: str, tile: str) -> None:
    """Loops without tiles are grids of threads beside those with tiles, whose points may be more than the threads."""
    compare(f"{text}    {tile}\n", n=72, m=5)


@pytest.mark.parametrize(
    ("j", "k"), [("i + 1", "m"), ("i, n", "m"), ("n", "i, n"), ("i + 1", "j, n"), ("max(0, i - 3), i + 1", "m")]
)
def test_loops_that_begin_or_end_at_the_variable_of_another(j: str, k: str) -> None:
    compare(TRIANGLE.format(j, k), n=40, m=3)


def test_bounds_that_are_enforced_inside() -> None:
    """i and j are moved outside k, and run from the least bound of all k on."""
    text = (
        "kernel k(n):\n    in A: f64[n, n], B: f64[n, n]\n    inout C: f64[n, n]\n    for k in range(n), "
        "i in range(k + 1, n), j in range(k + 2, n):\n        C[i, j] -= A[i, k] * B[k, j]\n"
    )
    of, sizes = kernel_of(text), {"n": 41}
    _, launch = the_call(of, sizes)
    (level, *_) = predict(of, sizes, V100, Options()).levels
    assert level.bytes == from_registers(followed(of, sizes), launch.block)
