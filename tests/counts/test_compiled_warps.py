"""The accesses of a launch's compiled code, compared with those of its threads, followed one by one in their warps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import pytest

from roofdsl.counts.compiled_warps import CONTROL, POINTER, UNROLLED, FirstCache, WarpAccesses, warp_accesses_at
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.loops_as_launched import AsLaunched
from tests.predict.machines import kernel_of, machine

WARP, LINE = 8, 64
GPU = machine(
    "peak f64 fma 1 TFLOP/s",
    "cache L1 4 KiB, 9 TB/s, line 64 B, sector 32 B, copies 4",
    "units 4",
    "multiprocessor warp 8, warps 16, block_threads 128",
)
CACHE = FirstCache(LINE, Fraction(64), Fraction(4))

Lane = tuple[int, int]
Address = Callable[[int, int, int], int]  # x, y of the thread, and its iteration


def of(text: str, n: int) -> tuple[WarpAccesses, tuple[int, int]]:
    """What is counted for the only launch of the generated code, and the threads of its blocks along x and y."""
    kernel = kernel_of(text)
    (launch,) = launches_of_kernel(kernel, {"n": n}, GPU).each
    assert isinstance(launch.how, AsLaunched) and launch.how.kernel is not None
    x, y, *_ = (*launch.how.block, 1)
    return warp_accesses_at(launch.how.kernel, {"n": n}, WARP, CACHE, launch.how.threads()), (x, y)


def warps(columns: Sequence[int], rows: Sequence[int], block: tuple[int, int]) -> Iterator[list[Lane]]:
    """The threads of each warp that have an iteration: consecutive ones of a block, x first."""
    across, along = block
    for first_row in range(0, len(rows), along):
        for first in range(0, len(columns), across):
            threads = [(first + x, first_row + y) for y in range(along) for x in range(across)]
            for k in range(0, len(threads), WARP):
                lanes = threads[k : k + WARP]
                if found := [(columns[x], rows[y]) for x, y in lanes if x < len(columns) and y < len(rows)]:
                    yield found


def followed(lanes_of: Sequence[list[Lane]], address: Address, size: int, trips: Callable[[int, int], int]) -> Fraction:
    """The cycles of one access of every thread in each of its iterations, in step within warps."""
    lines = accesses = 0
    for lanes in lanes_of:
        for k in range(max(trips(x, y) for x, y in lanes)):
            active = [(x, y) for x, y in lanes if k < trips(x, y)]
            lines += len({address(x, y, k) // LINE for x, y in active})
            accesses += len(active)
    return max(Fraction(lines), Fraction(accesses, 4), Fraction(accesses * size, 64))


def once(x: int, y: int) -> int:
    return 1


PRODUCT = (
    "kernel k(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n"
)


@pytest.mark.parametrize("n", [5, 32, 37])
def test_a_product_keeps_its_sums_in_registers(n: int) -> None:
    found, block = of(PRODUCT, n)
    lanes = list(warps(range(n), range(n), block))
    every = [
        followed(lanes, lambda x, y, k: 4 * (n * y + k), 4, lambda x, y: n),  # A
        followed(lanes, lambda x, y, k: 4 * (n * k + x), 4, lambda x, y: n),  # B
        followed(lanes, lambda x, y, k: 4 * (n * y + x), 4, once),  # C is loaded, and stored
        followed(lanes, lambda x, y, k: 4 * (n * y + x), 4, once),
    ]
    assert (found.loads, found.stores, found.cycles) == (2 * n**3 + n**2, n**2, sum(every))
    looped = Fraction(n**3, min(UNROLLED, n))
    assert found.rounds == looped + n**2
    assert found.addressing == POINTER * (looped + n**3) + CONTROL * looped  # A has one pointer for a round


@pytest.mark.parametrize("n", [3, 40, 300])
def test_rows_of_threads_touch_a_line_each(n: int) -> None:
    text = (
        "kernel k(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
        "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n"
    )
    found, block = of(text, n)
    lanes = list(warps(range(n), range(1), block))
    every = [
        followed(lanes, lambda x, y, k: 8 * (n * x + k), 8, lambda x, y: n),
        followed(lanes, lambda x, y, k: 8 * k, 8, lambda x, y: n),
        followed(lanes, lambda x, y, k: 8 * x, 8, once),
        followed(lanes, lambda x, y, k: 8 * x, 8, once),
    ]
    assert found.cycles == sum(every)
    assert found.rounds == n * Fraction(n, min(UNROLLED, n)) + n


@pytest.mark.parametrize("n", [4, 35, 70])
def test_threads_with_a_single_iteration(n: int) -> None:
    text = (
        "kernel k(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
        "    for i in range(1, n - 1), j in range(1, n - 1):\n"
        "        B[i, j] = A[i, j - 1] + A[i, j + 1] + A[i + 1, j]\n"
    )
    inner = range(1, n - 1)
    found, block = of(text, n)
    lanes = list(warps(inner, inner, block))
    every = [
        followed(lanes, lambda x, y, k, a=a, b=b: 8 * (n * (y + a) + x + b), 8, once)  # type: ignore[misc]
        for a, b in ((0, -1), (0, 1), (1, 0), (0, 0))
    ]
    assert (found.loads, found.stores) == (3 * len(inner) ** 2, len(inner) ** 2)
    assert found.cycles == sum(every)
    assert found.rounds == len(inner) ** 2  # all three loads of an iteration are one round


@pytest.mark.parametrize("n", [6, 33])
def test_inner_loops_of_different_lengths(n: int) -> None:
    text = (
        "kernel k(n):\n    in A: f32[n, n]\n    inout s: f32[n]\n"
        "    for i in range(n), j in range(i + 1):\n        s[i] += A[j, i]\n"
    )
    found, block = of(text, n)
    lanes = list(warps(range(n), range(1), block))
    added = followed(lanes, lambda x, y, k: 4 * (n * k + x), 4, lambda x, y: x + 1)
    assert (found.loads, found.stores) == (n * (n + 1) // 2 + n, n)
    assert found.cycles == added + 2 * followed(lanes, lambda x, y, k: 4 * x, 4, once)
    assert found.rounds == Fraction(n * (n + 1), 2) / min(Fraction(UNROLLED), Fraction(n + 1, 2)) + n


@pytest.mark.parametrize("n", [5, 33])
def test_an_element_that_others_of_its_array_may_be(n: int) -> None:
    """A compiler does not know that A[j, n - 1] is none of A[j, k]: it stores it before it loads the next ones."""
    text = (
        "kernel k(n):\n    in x: f64[n]\n    inout A: f64[n, n]\n    for j in range(n), k in range(n - 1):\n"
        "        A[j, n - 1] -= A[j, k] * x[k]\n"
    )
    found, block = of(text, n)
    lanes = list(warps(range(n), range(1), block))
    every = [
        followed(lanes, lambda x, y, k: 8 * (n * x + k), 8, lambda x, y: n - 1),
        followed(lanes, lambda x, y, k: 8 * k, 8, lambda x, y: n - 1),
        followed(lanes, lambda x, y, k: 8 * (n * x + n - 1), 8, once),  # loaded before the loop
        followed(lanes, lambda x, y, k: 8 * (n * x + n - 1), 8, lambda x, y: n - 1),  # stored
    ]
    assert (found.loads, found.stores, found.cycles) == (2 * n * (n - 1) + n, n * (n - 1), sum(every))
    assert found.rounds == n * (n - 1) + n


def test_neighbors_are_apart_but_rows_may_not_be() -> None:
    """The distance of two elements of a row is a number; that of two rows is one that a compiler does not know."""
    text = (
        "kernel k(n):\n    in x: f64[n]\n    inout A: f64[n, n]\n    for j in range(n), k in range(n):\n"
        "        A[WHERE] += OTHER * x[k]\n"
    )
    near, _ = of(text.replace("WHERE", "j, 0").replace("OTHER", "A[j, 1]"), 9)
    far, _ = of(text.replace("WHERE", "0, j").replace("OTHER", "A[1, j]"), 9)
    assert (near.stores, far.stores) == (9, 81)


def test_nothing_moves_out_of_a_condition() -> None:
    text = (
        "kernel k(n):\n    in A: f64[n, n]\n    inout s: f64[n]\n    for i in range(n), j in range(n):\n"
        "        if j < i + 3:\n            s[i] += A[i, j]\n"
    )
    found, _ = of(text, 9)
    executed = sum(min(9, i + 3) for i in range(9))
    assert (found.loads, found.stores, found.rounds) == (2 * executed, executed, executed)
