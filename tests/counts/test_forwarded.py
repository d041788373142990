"""Loads that nvcc drops or makes early in four unrolled iterations, compared with threads that are followed.

Its rule, on addresses: the last store to an array is remembered, and a load of the same element is dropped. Loads move
in front of stores if these are elsewhere in the same row; between rows of unknown length, nothing moves. With stores to
two arrays, nothing moves, and rows remember nothing. The first iteration of each four remembers nothing, either.
`tests/codegen/test_unrolled.py` compares with NVIDIA's compiler.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import pytest

from roofdsl.counts.compiled_warps import UNROLLED, FirstCache, WarpAccesses, warp_accesses_at
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.loops_as_launched import AsLaunched
from tests.predict.machines import kernel_of

CACHE = FirstCache(128, Fraction(128), Fraction(32))
THREADS = 3


class Statement(NamedTuple):
    """`array[i + at]` of the thread's row or column is computed from `array[i + at]` of `loads`."""

    array: str
    at: int
    loads: tuple[tuple[str, int], ...]


class Loop(NamedTuple):
    statements: tuple[Statement, ...]
    in_rows: bool
    step: int
    is_backward: bool
    trips: int


def drawn(seed: int) -> Loop:
    draw = random.Random(seed)
    arrays = ["x", "y"][: draw.choice((1, 2))]
    made: list[Statement] = []
    for array in arrays:
        loads = {(draw.choice([*arrays, "a"]), draw.randint(0, 6)) for _ in range(draw.randint(1, 4))}
        loads -= {(before.array, before.at) for before in made}  # stays in a register (`registers`)
        loads = loads or {("a", 0)}
        made.append(Statement(array, draw.randint(2, 4), tuple(sorted(loads))))
    step = draw.choice((1, 1, 1, 2))
    return Loop(tuple(made), draw.random() < 0.5, step, step == 1 and draw.random() < 0.3, 4 * draw.randint(1, 3))


def text_of(loop: Loop) -> str:
    stop = loop.trips * loop.step

    def element(array: str, at: int) -> str:
        along = f"{stop} - i + {at}" if loop.is_backward else f"i + {at}"
        return f"{array}[j, {along}]" if loop.in_rows else f"{array}[{along}, j]"

    shape = "m, n" if loop.in_rows else "n, m"
    text = f"kernel k(m, n):\n    in a: f64[{shape}]\n    inout x, y: f64[{shape}]\n    assume n >= {stop + 8}\n"
    text += f"    parallel for j in range(m):\n        for i in range(0, {stop}, {loop.step}):\n"
    for s in loop.statements:
        text += f"            {element(s.array, s.at)} = {' + '.join(element(*load) for load in s.loads)}\n"
    return text


class Load(NamedTuple):
    static: tuple[str, int, int]
    iteration: int
    is_dropped: bool
    is_stored_before: bool


def four(loop: Loop) -> Iterator[Load]:
    """The loads of four iterations of one thread."""
    forward = -1 if loop.is_backward else 1
    last, stored = dict[str, int](), set[tuple[str, int]]()
    written = {s.array for s in loop.statements}
    for k in range(UNROLLED):
        known = set[tuple[str, int]]()
        for place, s in enumerate(loop.statements):
            for array, at in s.loads:
                address = at + forward * k * loop.step
                is_remembered = last.get(array) == address and not (loop.in_rows and len(written) > 1)
                is_dropped = (array, address) in known or is_remembered
                yield Load((array, at, place), k, is_dropped, (array, address) in stored)
                known.add((array, address))
            address = s.at + forward * k * loop.step
            last[s.array] = address
            stored.add((s.array, address))
            known.add((s.array, address))
            if not loop.in_rows:  # any element of an array may be the stored one: each statement loads its own
                known = {element for element in known if element[0] not in written}


def made_by_thread(loop: Loop) -> tuple[int, int]:
    """(loads, rounds) of all iterations of one thread."""
    each = [load for load in four(loop) if not load.is_dropped]
    written = {s.array for s in loop.statements}
    if len(written) > 1:
        waits = any(load.static[0] in written for load in four(loop))
    elif loop.in_rows:
        waits = any(load.is_stored_before for load in each)
    else:
        waits = any(load.iteration and load.static[0] in written for load in each)
    rounds = (UNROLLED if waits else 1) if each else 0
    return len(each) * loop.trips // UNROLLED, rounds * loop.trips // UNROLLED


def predicted(text: str, sizes: dict[str, int]) -> WarpAccesses:
    (launch,) = launches_of_kernel(kernel_of(text), sizes, load_machine("v100")).each
    assert isinstance(launch.how, AsLaunched) and launch.how.kernel is not None
    return warp_accesses_at(launch.how.kernel, sizes, 32, CACHE, launch.how.threads())


@pytest.mark.spread(30)
@pytest.mark.parametrize("seed", range(200))
def test_loads_that_follow_stores_to_their_array(seed: int) -> None:
    loop = drawn(seed)
    text = text_of(loop)
    found = predicted(text, {"m": THREADS, "n": 64})
    loads, rounds = made_by_thread(loop)
    assert (found.loads, found.rounds) == (THREADS * loads, Fraction(THREADS * rounds)), text


def test_the_cases_differ() -> None:
    """Some loops have loads that are dropped, some wait in each iteration, and some in none but the first of four."""
    loops = [drawn(seed) for seed in range(200)]
    forwarded = sum(any(load.is_dropped and load.iteration and not load.static[2] for load in four(x)) for x in loops)
    waiting = sum(made_by_thread(loop)[1] == loop.trips for loop in loops)
    assert forwarded > 30 and 30 < waiting < 170


@pytest.mark.parametrize("guard", ["if i > j:\n                ", ""])
def test_a_store_under_a_condition_is_not_remembered(guard: str) -> None:
    text = (
        "kernel k(m, n):\n    in a: f64[n, m]\n    inout x: f64[n + 1, m]\n    parallel for j in range(m):\n"
        f"        for i in range(n):\n            {guard}x[i + 1, j] = 0.5 * x[i, j] + a[i, j]\n"
    )
    found, n = predicted(text, {"m": 1, "n": 64}), 63 if guard else 64
    assert found.loads == (2 * n if guard else n + n // 4) and found.rounds == (n if guard else n // 4)
