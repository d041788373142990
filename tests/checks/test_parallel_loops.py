"""Loops said to be independent are: no two executions that differ in such a loop touch one element, by enumeration."""

from __future__ import annotations

from collections.abc import Set

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.loops.accesses import statements
from roofdsl.loops.model import Assign, Count, Kernel, ScalarRef
from roofdsl.loops.transform import apply
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

FOUND = {"loops": 0, "free": 0, "conflicts": 0}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--kernels") // 5))


def conflict(
    kernel: Kernel, sizes: dict[str, int], loop: tuple[int, ...], outside: int, but: Set[str] = frozenset()
) -> bool:
    """Whether executions equal in the `outside` outermost loops, and not in this one, share what one of them writes.

    but: arrays and scalars that do not count.
    """
    placed = {id(p.statement): p for p in statements(kernel.body)}
    depth = len(loop) - 1
    touched: dict[object, dict[object, set[int]]] = {}
    written: set[object] = set()
    for execution in run(kernel, sizes):
        p = placed[id(execution.statement)]
        if p.position[: depth + 1] != loop or isinstance(execution.statement, Count):
            continue
        around = tuple(execution.env[other.var] for other in p.loops[:outside])
        mine = execution.env[p.loops[depth].var]
        places: list[tuple[object, bool]] = [
            ((a.array, a.index), a.is_write) for a in execution.accesses if a.array not in but
        ]
        if isinstance(execution.statement, Assign) and isinstance(execution.statement.target, ScalarRef):
            name = execution.statement.target.array.name
            places += [] if name in but else [(name, True)]
        for place, is_write in places:
            touched.setdefault((around, place), {}).setdefault("values", set()).add(mine)
            if is_write:
                written.add((around, place))
    return any(len(touched[place]["values"]) > 1 for place in written)


def check(kernel: Kernel, sizes: tuple[dict[str, int], ...]) -> None:
    free = parallel_loops(kernel)
    plain = apply(kernel)
    loops = {p.position[: d + 1] for p in statements(plain.body) for d in range(len(p.loops))}
    for loop in loops:
        FOUND["loops"] += 1
        if loop in free:
            FOUND["free"] += 1
            for size in sizes:
                assert not conflict(plain, size, loop, free[loop]), f"{loop} at {size}"
        else:
            FOUND["conflicts"] += any(conflict(plain, size, loop, len(loop) - 1) for size in sizes)


@pytest.mark.spread(23)
def test_random_kernel(seed: int) -> None:
    case = random_kernel(seed)
    check(kernel_of(case.text), case.sizes)


def test_most_are_decided() -> None:
    """What is not proven independent mostly is dependent."""
    if FOUND["loops"] > 20:  # in this process, of the loops above
        assert FOUND["free"] > 0.1 * FOUND["loops"], FOUND
        assert FOUND["free"] + FOUND["conflicts"] > 0.9 * FOUND["loops"], FOUND


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("kernel k(n):\n    inout s: f64, x: f64[n]\n    for i in range(n):\n        s += x[i]\n", {}),
        ("kernel k(n):\n    inout x: f64[n + 1]\n    for i in range(n):\n        x[i] = x[i + 1]\n", {}),
        (
            "kernel k(n, b):\n    tile i, j by b\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
            "    for i in range(n), j in range(n):\n        B[j, i] = A[i, j]\n",
            {(0,): 0, (0, 0): 0, (0, 0, 0): 0, (0, 0, 0, 0): 0},
        ),
        (
            "kernel k(t, n):\n    inout A: f64[t + 1, n]\n    for s in range(t), i in range(1, n - 1):\n"
            "        A[s + 1, i] = A[s, i - 1] + A[s, i + 1]\n",
            {(0, 0): 1},
        ),
        (
            "kernel k(n):\n    in A: f64[n, n]\n    inout C: f64[n, n]\n"
            "    for k in range(n), i in range(n), j in range(n):\n        C[i, j] += A[i, k]\n",
            {(0, 0): 0, (0, 0, 0): 0},
        ),
    ],
)
def test_known(text: str, free: dict[tuple[int, ...], int]) -> None:
    assert parallel_loops(kernel_of(text)) == free
