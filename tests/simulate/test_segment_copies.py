"""Loops that begin like an earlier iteration of the loop around them: against the simulation of every access."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.machine.find import standard_sizes
from roofdsl.simulate.compiled_kernel import compile_kernel
from roofdsl.simulate.shifts import copied_loops
from tests.oracle.loading import kernel_of
from tests.simulate.test_segments import agree, by_segments
from tests.simulate.test_skip_repeats import polybench


def interval_kernel(rng: Random) -> str:
    """An interval dynamic program: each interval i .. j from those inside it, row by row or column by column."""
    rows = rng.random() < 0.5
    order, i = ("for r in range(n), j in range(n - r, n):", "n - 1 - r")
    if not rows:
        order, i = "for j in range(n), r in range(j):", "j - 1 - r"
    wide, narrow = rng.choice(("f64", "f32")), rng.choice(("f64", "f32", "i8"))
    first = rng.choice(
        ("T[{i}, j - 1]", "T[{i} + 1, j]", "x[j]", "T[{i} + 1, j - 1] + x[{i}]", "x[j] + y[{i}]", "y[j]")
    )
    second = rng.choice(("T[{i}, k] + T[k + 1, j]", "T[{i}, k] + T[k, j]", "T[k, j]", "x[k] + T[{i}, k]"))
    last = rng.choice(("", "", "y[j] += T[{i}, j]", "y[{i}] = x[j]", "y[j] = x[j]", "x[j] = y[j] + y[{i}]"))
    lines = [f"    inout x: {narrow}[n]", f"    inout T: {wide}[n, n]", f"    inout y: {wide}[n]"]
    around = rng.random() < 0.3
    lines += ["    for t in range(2):"] if around else []
    more = "    " * (1 + around)
    lines += [more + order, f"{more}    T[{{i}}, j] = {first}", f"{more}    for k in range({{i}} + 1, j):"]
    lines += [f"{more}        T[{{i}}, j] += {second}"]
    lines += [f"{more}    {last}"] if last else []
    return "kernel k(n):\n" + "\n".join(lines).replace("{i}", i) + "\n"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(16))
def test_interval_programs(seed: int) -> None:
    rng = Random(seed)
    kernel = kernel_of(interval_kernel(rng))
    line = rng.choice((8, 16))
    for _ in range(2):
        n, lines = rng.choice((60, 64, 75, 96)), rng.choice((12, 30, 70, 150, 400))
        agree(kernel, {"n": n}, line * lines, line, growing=True)


def test_loops_that_begin_with_copies() -> None:
    """In nussinov, 64 iterations of the outer loop are a line of the sequence; in trmm, inner loops begin later."""
    size = standard_sizes()["nussinov"]["large"]
    (loop,) = copied_loops(compile_kernel(polybench("nussinov"), size, 64))
    rows = 64 * (size["n"] + 1) * 4 // 64  # each step is a row and a column back, in lines
    assert (loop.period, set(loop.lines.values())) == (64, {-1, -rows})
    assert not copied_loops(compile_kernel(polybench("trmm"), standard_sizes()["trmm"]["mini"], 64))


@pytest.mark.thorough
@pytest.mark.parametrize("last", ["y[n - 1 - r] = x[j]", "x[j] = y[j]", "y[j] = x[j]"])
def test_lines_that_stay_dirty(last: str) -> None:
    """Lines that were written before the inner loop, and are only read in it or written again much later."""
    kernel = kernel_of(
        "kernel k(n):\n    inout x: f32[n], y: i8[n], T: f32[n, n]\n    for r in range(n), j in range(n - r, n):\n"
        "        T[n - 1 - r, j] = y[j] + y[n - 1 - r]\n        for k in range(n - r, j):\n"
        f"            T[n - 1 - r, j] += T[n - 1 - r, k] * T[k + 1, j]\n        {last}\n"
    )
    for n, lines in ((150, 40), (160, 100), (203, 250)):
        assert agree(kernel, {"n": n}, 16 * lines, 16, growing=True)


@pytest.mark.thorough
def test_copies_are_not_gone_through() -> None:
    """Most of nussinov's columns are copies, if the cache holds far less than the table."""
    size, cache = {"n": 300}, 16 * 100
    plain, quick = (by_segments(polybench("nussinov"), size, cache, 16, 1 << 20, way) for way in (False, True))
    assert plain is not None and quick is not None
    assert plain.final_tallies().tolist() == quick.final_tallies().tolist()
    assert quick.simulated < 0.5 * plain.simulated
