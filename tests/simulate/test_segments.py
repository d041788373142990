"""An LRU list of segments: against the simulation of every access."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from roofdsl.loops.model import Kernel
from roofdsl.machine.find import shipped, standard_sizes
from roofdsl.simulate.compiled_kernel import compile_kernel
from roofdsl.simulate.lru_engines import BySegments
from roofdsl.simulate.lru_list import MISSES
from roofdsl.simulate.lru_traffic import simulate_lru
from roofdsl.simulate.segment_pieces import inverse, may_be_multiple
from tests.oracle.loading import kernel_of
from tests.oracle.lru_triangles import triangular_kernel
from tests.simulate.test_skip_repeats import REPEATING, polybench

GROWING = pytest.mark.parametrize("growing", [False, pytest.param(True, marks=pytest.mark.thorough)])
"""Without and with skipping blocks that grow, whose code takes minutes to compile in a new installation."""


def by_segments(  # noqa: PLR0917
    kernel: Kernel, size: dict[str, int], cache: int, line: int, budget: int, growing: bool = False
) -> BySegments | None:
    """A simulation by segments at its end; None if it does not apply, or gives up: its tables have a fixed size.

    growing: blocks that grow are skipped from the beginning.
    """
    program = compile_kernel(kernel, size, line)
    if not BySegments.can(program, cache):
        return None
    way = BySegments(program, cache)
    way.until_growth = 0 if growing else 1 << 62
    while not way.done:
        way.continue_for(budget)
        if way.gave_up:
            return None
    return way


def agree(  # noqa: PLR0917
    kernel: Kernel, size: dict[str, int], cache: int, line: int, growing: bool, budget: int = 1 << 20
) -> bool:
    """Whether segments apply; if so, they count the same as the simulation of every access."""
    way = by_segments(kernel, size, cache, line, budget, growing)
    if way is None:
        return False
    every = simulate_lru(kernel, size, cache, line, skip=False)
    want = [(a.residencies, a.begun_with_write, a.stored) for a in every.arrays]
    got = [tuple(row) for row in way.final_tallies().tolist()]
    assert (way.accesses, got) == (every.accesses, want), f"{kernel.source.text}{size} {cache} {line}"
    return True


@pytest.mark.spread(8, 20)
@pytest.mark.parametrize("name", sorted(shipped("polybench").keys() & standard_sizes().keys()))
@GROWING
def test_polybench(name: str, growing: bool) -> None:
    """Whole lines and rows of odd length, and caches from a few lines to all of them."""
    rng = Random(name)
    for lines in (37, 150, 512):
        size = {p: max(3, v // 2 + rng.randrange(8)) for p, v in standard_sizes()[name]["small"].items()}
        assert agree(polybench(name), size, 64 * lines, 64, growing)


@pytest.mark.spread(10, 60)
@pytest.mark.parametrize("seed", range(60))
@GROWING
def test_random_triangular_kernels(seed: int, growing: bool) -> None:
    rng = Random(seed)  # most of these kernels are taken; where segments give up, lines answer
    kernel = kernel_of(triangular_kernel(seed))
    element = kernel.arrays[0].type.bytes
    for _ in range(3):
        line = element * rng.choice((1, 2, 4, 8))
        cache = line * rng.choice((5, 8, 13, 20, 30, 50, 70, 100, 150, 400))
        agree(kernel, {"n": rng.choice((3, 7, 16, 17, 24, 33))}, cache, line, growing, rng.choice((100, 1 << 20)))


@pytest.mark.spread(6)
@pytest.mark.parametrize("what", REPEATING)
@GROWING
def test_what_repeats(what: str, growing: bool) -> None:
    body, _ = REPEATING[what]
    kernel = kernel_of(f"kernel k(n):\n{body}")
    applied = [agree(kernel, {"n": n}, 64 * lines, 64, growing) for n in (48, 61) for lines in (9, 70, 200, 900)]
    assert all(applied)


@pytest.mark.spread(10, 40)
@pytest.mark.parametrize("seed", range(40))
@GROWING
def test_random_triangular_kernels_that_grow_for_long(seed: int, growing: bool) -> None:
    """Short lines and many iterations, so that blocks are skipped until something changes."""
    rng = Random(1000 + seed)
    kernel = kernel_of(triangular_kernel(seed))
    element = kernel.arrays[0].type.bytes
    line = element * rng.choice((1, 2, 4))
    lines = rng.choice((8, 20, 50, 150, 400, 900))
    agree(kernel, {"n": rng.choice((40, 48, 53, 64))}, line * lines, line, growing)


@GROWING
def test_lines_that_a_block_brings_in_are_found_by_the_next_one(growing: bool) -> None:
    """In the iteration j = 0, x[1..3] are missed and pushed out of the top. The following iterations find them."""
    text = """kernel k(n):
    in x: f64[4]
    inout s: f64[n]
    for i in range(n), j in range(n):
        s[i] += x[j % 4]
"""
    assert agree(kernel_of(text), {"n": 12}, 8 * 32, 8, growing)


def kernel_with_remainders(seed: int) -> str:
    """Three loops over arrays of which one or two have a remainder as a subscript, so that they do not move."""
    rng = Random(seed)
    width = rng.choice((2, 4, 8, 16))
    inner = rng.choice(("range(n)", "range(i + 1)", "range(i, n)", "range(1, n, 3)", "range(1, n - 1)"))
    last = rng.choice(("range(n)", "range(j + 1)", "range(j, n)"))
    second = rng.choice((f"{rng.choice('ijk')} % {width}", rng.choice("ijk")))
    beside = rng.choice("ijk") + rng.choice(("", " + j", " % 4"))
    return f"""kernel k(n):
    in x: f64[n + 16, n + 16], y: f64[2 * n + 4]
    inout s: f64[2 * n + 4]
    for i in range(n):
        for j in {inner}:
            for k in {last}:
                s[{rng.choice(("i", "j", "n - 1 - i"))}] += x[{rng.choice("ijk")} % {width}, {second}] + y[{beside}]
"""


@pytest.mark.spread(10, 40)
@pytest.mark.parametrize("seed", range(40))
@GROWING
def test_random_kernels_with_remainders(seed: int, growing: bool) -> None:
    rng, kernel = Random(seed), kernel_of(kernel_with_remainders(seed))
    for _ in range(3):
        line = rng.choice((8, 64))
        cache = line * rng.choice((5, 8, 13, 20, 32, 64, 96, 256))
        agree(kernel, {"n": rng.choice((12, 17, 24, 40))}, cache, line, growing, rng.choice((100, 1 << 20)))


@GROWING
def test_a_short_list_does_not_run_out_of_columns(growing: bool) -> None:
    """Accesses one by one move the list through its table, and segments may be split just before its end."""
    assert agree(kernel_of(triangular_kernel(5359)), {"n": 33}, 8 * 32, 32, growing)


@GROWING
def test_a_list_from_before_the_cache_was_full_is_not_all_of_a_later_one(growing: bool) -> None:
    """The first iteration of the outer loop finds the cache empty; later ones hit lines below the list that it had."""
    assert agree(polybench("gramschmidt"), {"m": 24, "n": 120}, 64 * 300, 64, growing)


ROTATING = ("trmm", "syrk", "syr2k", "symm", "gemm", "gramschmidt")


@pytest.mark.spread(6, 60)
@pytest.mark.parametrize("seed", range(60))
@GROWING
def test_lines_that_are_all_in_the_cache(seed: int, growing: bool) -> None:
    """Caches of about the size of what a loop comes to again in each execution."""
    rng = Random(seed)
    kernel = polybench(ROTATING[seed % len(ROTATING)])
    whole = rng.random() < 0.7
    size = {p.name: 8 * rng.randrange(1, 9) if whole else rng.randrange(5, 70) for p in kernel.parameters}
    line = rng.choice((8, 16, 32, 64))
    unbounded = simulate_lru(kernel, size, None, line, skip=False)
    lines = sum(a.residencies for a in unbounded.arrays)
    agree(kernel, size, line * max(5, int(lines * rng.uniform(0.1, 1.2))), line, growing, rng.choice((100, 1 << 20)))


@pytest.mark.parametrize("name", ["trmm", "syrk"])
def test_blocks_over_lines_in_the_cache_are_skipped(name: str) -> None:
    """What is simulated of a loop over many columns, all of which are in the cache, does not depend on their number."""
    simulated = []
    for columns in (400, 1600):
        size = {"trmm": {"m": 24, "n": columns}, "syrk": {"n": 24, "m": columns}}[name]
        way = by_segments(polybench(name), size, 64 * 16384, 64, 1 << 20)
        assert way is not None
        simulated.append(way.simulated)
        want = simulate_lru(polybench(name), size, None, 64)
        assert way.final_tallies().tolist() == [[a.residencies, a.begun_with_write, a.stored] for a in want.arrays]
    assert simulated[1] < 1.2 * simulated[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["lu", "cholesky", "ludcmp", "correlation"])
def test_what_grows_is_not_gone_through(name: str) -> None:
    """Of the sweeps of a triangular kernel, most are skipped, whatever the size of the cache."""
    size = dict.fromkeys(standard_sizes()[name]["small"], 168)
    for lines in (24, 1000):
        plain, growing = (by_segments(polybench(name), size, 8 * lines, 8, 1 << 20, way) for way in (False, True))
        assert plain is not None and growing is not None
        assert np.array_equal(plain.final_tallies(), growing.final_tallies())
        assert growing.simulated < 0.7 * plain.simulated


def test_the_cost_does_not_depend_on_the_length_of_the_innermost_loop() -> None:
    """A matrix-vector product with rows ten times as long needs no more work for each row."""
    kernel = kernel_of(
        "kernel k(m, n):\n    in A: f64[m, n], x: f64[n]\n    inout y: f64[m]\n"
        "    for i in range(m), j in range(i, n):\n        y[i] += A[i, j] * x[j]\n"
    )
    works = []
    for n in (1600, 16000):
        way = by_segments(kernel, {"m": 200, "n": n}, 64 * 100, 64, 1 << 20)
        assert way is not None
        works.append(way.cost)
        lines = [(n - 1) // 8 - i // 8 + 1 for i in range(200)]  # of A in row i, and as many of x
        assert np.array_equal(way.final_tallies()[:2, MISSES], [sum(lines), sum(lines)])
    assert works[1] < 1.5 * works[0]


def test_no_multiple_of_a_step_is_ruled_out() -> None:
    """The quick test that skips most of a list: True for all multiples, False for nearly all other numbers."""
    rng = Random(4)
    for _ in range(300):
        step = rng.choice((-1, 1)) * rng.choice((1, 2, 64, 250, 625, 1 << 20, rng.randrange(1, 1 << 30)))
        by = inverse(step)
        for most in (10, 1 << 30):
            assert may_be_multiple(step * rng.randrange(-most, most), step, by)
        others = [n for n in (rng.randrange(-(1 << 32), 1 << 32) for _ in range(20)) if n % step]
        assert not any(may_be_multiple(n, step, by) for n in others)
