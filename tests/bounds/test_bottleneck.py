"""Turns, meetings and sweeps: found where they are, and not where an order exists that has none."""

from __future__ import annotations

import random

import pytest
import sympy

from roofdsl.bounds.bound import Bound, bound
from roofdsl.loops.model import Kernel
from tests.bounds.belady import loads, random_order, scalars_of, tasks, tiled_order
from tests.bounds.test_sound import POLYBENCH, bound_of
from tests.oracle.loading import kernel_of

HEAD = """kernel both(m, n):
    in x: f64[m, n]
    out a, b, y: f64[m, n]
    for i in range(m):
        a[i, 0] = x[i, 0]
        b[i, {first}] = x[i, {first}]
        for j in range(1, n):
            a[i, j] = 0.5 * a[i, j - 1] + x[i, j]
"""
OPPOSING = (
    HEAD.format(first="n - 1")
    + """        for j in range(1, n):
            b[i, n - 1 - j] = 0.5 * b[i, n - j] + x[i, n - 1 - j]
        for j in range(n):
            y[i, j] = a[i, j] + b[i, j]
"""
)
SAME_WAY = (
    HEAD.format(first=0)
    + """        for j in range(1, n):
            b[i, j] = 0.25 * b[i, j - 1] + x[i, j]
        for j in range(n):
            y[i, j] = a[i, j] + b[i, j]
"""
)
CROSSED = OPPOSING.replace("y[i, j] = a[i, j] + b[i, j]", "y[i, j] = a[i, j] + b[i, n - 1 - j]")
"""Joined with what is made at the same time, from the other end: only the inputs meet."""

SHARED = """kernel shared(m, n):
    in x: f64[m + 1, n]
    out a, b, y: f64[m, n]
    for i in range(m):
        a[i, 0] = x[i, 0]
        b[i, n - 1] = x[i + 1, n - 1]
        for j in range(1, n):
            a[i, j] = 0.5 * a[i, j - 1] + x[i, j] * x[i + 1, j]
        for j in range(1, n):
            b[i, n - 1 - j] = 0.5 * b[i, n - j] + x[i + 1, n - 1 - j] * x[i, n - 1 - j]
        for j in range(n):
            y[i, j] = a[i, j] + b[i, j]
"""
"""Each value of x is used in two rows, and counts in one only."""

TURN = """kernel there_and_back(m, n):
    in x: f64[m, n]
    out a, b: f64[m, n]
    temp last: f64
    for i in range(m):
        last = 0.0
        for j in range(n):
            a[i, j] = 0.5 * last + x[i, j]
            last = a[i, j]
        for r in range(n):
            b[i, n - 1 - r] = last * a[i, n - 1 - r]
            last = b[i, n - 1 - r]
"""
BROADCAST = """kernel broadcast(m, n):
    in x: f64[m, n]
    inout y: f64[n]
    out a: f64[m, n]
    for i in range(m):
        a[i, 0] = x[i, 0]
        for j in range(1, n):
            a[i, j] = a[i, j - 1]
    for i in range(m), j in range(n):
        y[j] += a[i, j] * x[i, n - 1 - j]
"""

BOTH_WAYS = """kernel both_ways(m, n):
    inout u: f64[n, n]
    out a, b, c: f64[n, n]
    for t in range(m):
        for i in range(n):
            a[i, 0] = u[i, 0]
            for j in range(1, n):
                a[i, j] = 0.5 * a[i, j - 1] + u[i, j]
            b[i, n - 1] = a[i, n - 1]
            for r in range(1, n):
                b[i, n - 1 - r] = 0.5 * b[i, n - r] + a[i, n - 1 - r]
        for j in range(n):
            c[0, j] = b[0, j]
            for i in range(1, n):
                c[i, j] = 0.5 * c[i - 1, j] + b[i, j]
            u[n - 1, j] = c[n - 1, j]
            for r in range(1, n):
                u[n - 1 - r, j] = 0.5 * u[n - r, j] + c[n - 1 - r, j]
"""
"""There and back along rows and then along columns: all of a round waits for all of it."""

ROWS_ONLY = (
    BOTH_WAYS.replace("c[0, j] = b[0, j]", "c[j, 0] = b[j, 0]")
    .replace("c[i, j] = 0.5 * c[i - 1, j] + b[i, j]", "c[j, i] = 0.5 * c[j, i - 1] + b[j, i]")
    .replace("u[n - 1, j] = c[n - 1, j]", "u[j, n - 1] = c[j, n - 1]")
    .replace(
        "u[n - 1 - r, j] = 0.5 * u[n - r, j] + c[n - 1 - r, j]", "u[j, n - 1 - r] = 0.5 * u[j, n - r] + c[j, n - 1 - r]"
    )
)


def kinds(found: Bound) -> list[str]:
    return [] if found.bottleneck is None else [p.found.kind for p in found.bottleneck.parts]


def leading(found: Bound) -> str:
    assert found.bottleneck is not None
    return str(sympy.expand(found.bottleneck.leading))


def holds(kernel: Kernel, found: Bound, seed: int) -> None:
    """Against optimal replacement of the written order and of random ones."""
    rng = random.Random(seed)
    for params in ({"m": 1, "n": 3}, {"m": 2, "n": 5}, {"m": 3, "n": 17}, {"m": 2, "n": 30}):
        free = tasks(kernel, params, scalars=True)
        orders = [free, *(random_order(free, rng, greedy) for greedy in (1, 4, 40))]
        for size in (1, 2, 3, 5, 9):
            value, _ = found.at(params, size)
            for order in orders:
                assert value <= loads(order, size + scalars_of(kernel))


def test_opposing_chains_meet() -> None:
    kernel = kernel_of(OPPOSING)
    found = bound(kernel)
    assert kinds(found) == ["meeting"]
    assert leading(found) == "3*m*n"
    holds(kernel, found, 1)


def test_chains_that_run_the_same_way_do_not() -> None:
    """One pass over x is enough: the bound must not say more."""
    kernel = kernel_of(SAME_WAY)
    found = bound(kernel)
    assert kinds(found) == []
    m, n = 2, 25
    written = iter(tasks(kernel, {"m": m, "n": n}))
    order = []
    for _ in range(m):
        a, b = [next(written)], [next(written)]
        a += [next(written) for _ in range(1, n)]
        b += [next(written) for _ in range(1, n)]
        order += [t for j, y in enumerate([next(written) for _ in range(n)]) for t in (a[j], b[j], y)]
    assert loads(order, 6) == m * n == found.at({"m": m, "n": n}, 6)[0]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_loops_with_steps_make_turns(step: int) -> None:
    """Every second or third element of a row is summed and then scaled by the sum; floors count them."""
    row = f"        for j in range(0, n, {step}):\n            "
    kernel = kernel_of(
        "kernel scaled(m, n):\n    inout x: f64[m, n]\n    out s: f64[m]\n    for i in range(m):\n        s[i] = 0\n"
        f"{row}s[i] += x[i, j]\n{row}x[i, j] = x[i, j] * s[i]\n"
    )
    found = bound(kernel)
    assert kinds(found) == ["turn"]
    assert leading(found) == {1: "2*m*n", 2: "2*m*n - 2*m*floor(n/2)", 3: "2*m*floor(n/3 + 2/3)"}[step]
    holds(kernel, found, 5)


def test_joined_with_what_is_made_at_the_same_time() -> None:
    """No value waits where a[j] is joined with b[n - 1 - j]; the bound is that of an order that runs both at once."""
    kernel = kernel_of(CROSSED)
    found = bound(kernel)
    assert kinds(found) == []
    holds(kernel, found, 2)


def test_values_of_two_rows_count_once() -> None:
    kernel = kernel_of(SHARED)
    found = bound(kernel)
    assert kinds(found) == ["meeting"]
    assert leading(found) == "3*m*n"
    assert found.bottleneck is not None
    (part,) = found.bottleneck.parts
    assert part.live.subs(dict.fromkeys(part.live.free_symbols, 40)) <= 2 * 40 * 40
    holds(kernel, found, 5)


def test_there_and_back() -> None:
    kernel = kernel_of(TURN)
    found = bound(kernel)
    assert kinds(found) == ["turn"]
    assert leading(found) == "2*m*n"
    holds(kernel, found, 3)


def test_copies_are_their_originals() -> None:
    """A value handed on from place to place is one value: m of them, not m n."""
    kernel = kernel_of(BROADCAST)
    found = bound(kernel)
    assert found.at({"m": 3, "n": 40}, 2)[0] < 3 * 40 * 2
    holds(kernel, found, 4)


def test_a_sweep_waits_as_a_whole() -> None:
    kernel = kernel_of(BOTH_WAYS)
    found = bound(kernel)
    assert found.sweep is not None
    assert str(found.sweep.leading) == "m*n**2"
    rng = random.Random(6)
    for params, sizes in (({"m": 1, "n": 5}, (1, 4, 12)), ({"m": 3, "n": 9}, (2, 9, 18, 40, 60))):
        free = tasks(kernel, params, scalars=True)
        orders = [free, *(random_order(free, rng, g) for g in (1, 40)), *(tiled_order(free, rng) for _ in range(3))]
        for size in sizes:
            value, argument = found.at(params, size)
            fewest = min(loads(order, size) for order in orders)
            assert value <= fewest, argument
            if params["n"] == 9 and 2 * 9 <= size <= 40:
                assert argument == "sweep"
                assert value > fewest / 8


@pytest.mark.thorough
def test_rows_that_nothing_joins_do_not_sweep() -> None:
    """Row after row, all steps of it, needs no more than the first loads from S = 3 n on."""
    kernel = kernel_of(ROWS_ONLY)
    found = bound(kernel)
    assert found.sweep is None
    m, n = 3, 10
    line = dict(enumerate(ROWS_ONLY.splitlines(), 1))
    written = tasks(kernel, {"m": m, "n": n})
    row = [t.at[1]["i" if line[t.at[0]].lstrip()[0] in "ab" else "j"] for t in written]
    order = [written[k] for k in sorted(range(len(written)), key=lambda k: row[k])]
    assert loads(order, 3 * n) == n * n >= found.at({"m": m, "n": n}, 3 * n)[0]


@pytest.mark.thorough
def test_adi_beyond_a_row() -> None:
    """n^2 values wait once in a step, up to an S of about n^2: there the turns of its rows have nothing to say."""
    found = bound_of(next(p for p in POLYBENCH if p.stem == "adi"))
    n, steps = 1000, 500
    assert found.at({"n": n, "tsteps": steps}, 8) > (3.9 * n**2 * steps, "bottleneck")
    value, argument = found.at({"n": n, "tsteps": steps}, 4 * n)
    assert argument == "sweep"
    assert n**2 * steps / 2 < value < n**2 * (steps + 1)
    assert found.at({"n": n, "tsteps": steps}, n**2)[0] == n * (n - 2)


def test_a_sweep_after_a_sweep() -> None:
    """One round only: the rows' pass leaves n^2 values for the columns', counted beside the first loads."""
    once = BOTH_WAYS.replace("    for t in range(m):\n", "").replace("\n        ", "\n    ").replace("(m, n)", "(n)")
    kernel = kernel_of(
        once.replace("inout u", "in x: f64[n, n]\n    out u")
        .replace("= u[i, 0]", "= x[i, 0]")
        .replace("a[i, j - 1] + u[i, j]", "a[i, j - 1] + x[i, j]")
    )
    found = bound(kernel)
    assert found.sweep is not None
    assert str(found.sweep.leading) == "2*n**2"
    n = 12
    free = tasks(kernel, {"n": n}, scalars=True)
    for size in (1, n, 2 * n + 2, 3 * n, 90):
        value, _ = found.at({"n": n}, size)
        rng = random.Random(size)
        fewest = min(loads(order, size) for order in (free, random_order(free, rng, 40), tiled_order(free, rng)))
        assert value <= fewest
        if size >= 2 * n + 2:
            assert value > 0.75 * fewest  # the written order is nearly the best


def test_two_passes_of_which_each_element_needs_its_own_do_not_sweep() -> None:
    """Both passes in one: x is loaded once."""
    kernel = kernel_of("""kernel once(n):
    in x: f64[n, n]
    out y, z: f64[n, n]
    for i in range(n), j in range(n):
        y[i, j] = 2.0 * x[i, j]
    for i in range(n), j in range(n):
        z[i, j] = y[i, j] + x[i, j]
""")
    found = bound(kernel)
    assert found.sweep is None
    written = tasks(kernel, {"n": 9})
    order = [t for pair in zip(written[:81], written[81:], strict=True) for t in pair]
    assert loads(order, 3) == 81 == found.at({"n": 9}, 3)[0]
