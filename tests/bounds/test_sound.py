"""No bound is above what some legal order loads with optimal replacement: the 30 PolyBench kernels, random sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from roofdsl.bounds.bound import Bound, bound
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from tests.bounds.belady import Task, loads, random_order, scalars_of, tasks, tiled_order
from tests.bounds.tilings import random_tilings
from tests.oracle.enumerate import admissible
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of

POLYBENCH = sorted((Path(__file__).parents[2] / "models" / "polybench").glob("*.roof"))
DEEP = 4
"""Time steps are few where they repeat a whole sweep; more would only take longer."""

SMALLER = {"heat_3d": 6, "adi": 9, "seidel_2d": 10, "fdtd_2d": 9, "jacobi_2d": 9, "floyd_warshall": 11}
MANY = (1, 2, 4, 12, 32)
"""Candidates among which an order takes the one whose operands were used last: 1 is any order."""


def shipped(path: Path) -> Kernel:
    return pick(load_file(Source(path.name, path.read_text())), None, None)


@cache
def bound_of(path: Path) -> Bound:
    return bound(shipped(path))


def sizes(kernel: Kernel, rng: random.Random) -> dict[str, int]:
    """Sizes at which there are some thousand executions at most."""
    loops = SMALLER.get(kernel.name, 13)
    many = 40 if kernel.name in ("jacobi_1d", "durbin", "trisolv", "atax", "bicg", "mvt", "gesummv") else loops
    while True:
        found = {p.name: rng.randint(1, DEEP if p.name in ("tsteps", "tmax") else many) for p in kernel.parameters}
        if admissible(kernel, found):
            return found


def orders(
    kernel: Kernel, params: dict[str, int], rng: random.Random, tilings: list[Kernel], wide: bool
) -> Iterator[tuple[list[Task], int]]:
    """(order, room for scalars besides): the written one, random ones, and tilings; if `wide`, ten besides the first.

    Tilings by `tile` and `order` lines keep scalars in registers; those of executions, with skewed tiles, need not.
    """
    yield tasks(kernel, params), 0
    free, room = tasks(kernel, params, scalars=True), scalars_of(kernel)
    for greedy in MANY if wide else MANY[:1]:
        yield random_order(free, rng, greedy), room
    for _ in range(5 if wide else 1):
        yield tiled_order(free, rng), room
    for changed in rng.sample(tilings, min(3, len(tilings))):
        yield tasks(changed, params), 0


@pytest.mark.spread(1, 15)
@pytest.mark.parametrize("path", POLYBENCH, ids=lambda p: p.stem)
def test_no_order_loads_less(path: Path, pytestconfig: pytest.Config) -> None:
    kernel = shipped(path)
    found = bound_of(path)
    rng = random.Random(path.stem)
    many = pytestconfig.getoption("--bound-sizes")
    tilings = list(random_tilings(kernel, rng, 20 if many > 2 else 1))
    for _ in range(many):
        params = sizes(kernel, rng)
        values = {size: found.at(params, size) for size in (1, rng.randint(2, 8), rng.randint(2, 60))}
        for number, (order, room) in enumerate(orders(kernel, params, rng, tilings, many > 2)):
            for size, (value, argument) in values.items():
                least = loads(order, size + room)
                assert value <= least, f"{argument}: {value} > {least} at {params}, S = {size}, order {number}"


@pytest.mark.spread(2)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_other_loops(family: Family) -> None:
    """Reversed, triangular, tiled, guarded and other loops, in the written order."""
    kernel = kernel_of(family.text)
    found = bound(kernel)
    for params in family.sizes:
        written = tasks(kernel, params)
        for size in (1, 3, 8, 20) if len(written) < 5000 else ():
            value, argument = found.at(params, size)
            assert value <= loads(written, size), f"{argument} at {params}, S = {size}"
