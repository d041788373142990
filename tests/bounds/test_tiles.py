"""The recommended tile by exact LRU: within 15 % of the bound from S = 200 on, and no tile of its kind loads less."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.bounds.bound import Bound, bound
from roofdsl.bounds.bound_report import report
from roofdsl.bounds.tiles import (
    NoTiling,
    Tiling,
    extents_at,
    lines,
    perfect_nest,
    sides,
    sides_at,
    source_of,
    tiled,
    tiling,
)
from roofdsl.checks.untile import untiled
from roofdsl.cli.main import run
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.transform import apply
from roofdsl.simulate.distances import miss_curve
from roofdsl.tell.as_text import to_text
from roofdsl.tell.bound import blocks as told_of
from tests.oracle.loading import kernel_of

GEMM = """kernel gemm(m, n, p):
    in A: f64[m, p], B: f64[p, n]
    inout C: f64[m, n]
    for i in range(m), j in range(n), k in range(p):
        C[i, j] += A[i, k] * B[k, j]
"""


STRIDED = """kernel strided(m, n, p):
    in A: f64[m, p], B: f64[p, n]
    inout C: f64[m, n]
    for i in range(0, m, 2), j in range(n), k in range(0, p, 3):
        C[i, j] += A[i, k] * B[k, j]
"""
"""The same as GEMM with m // 2 rows and p // 3 steps, both rounded up: the other elements are never touched."""


@pytest.fixture(scope="module")
def gemm() -> tuple[Bound, Tiling]:
    found = bound(kernel_of(GEMM))
    return found, tiling(found)


def loads(gemm: tuple[Bound, Tiling], shape: tuple[int, int], params: dict[str, int], elements: int) -> int:
    moved = traffic_at(tiled(*gemm, *shape), params, 8 * elements, None, "load_store").loads_bytes
    assert moved is not None
    return moved // 8


@pytest.mark.spread(3)  # the simulation of the last one compiles what skips growing blocks, which takes a minute
@pytest.mark.parametrize(
    "elements", [100, 200, 217, 500, 1000, 3000, 10_000, 31_000, pytest.param(100_000, marks=pytest.mark.thorough)]
)
def test_within_15_percent(gemm: tuple[Bound, Tiling], elements: int) -> None:
    rows, columns = sides(elements)
    params = {"m": rows, "n": 2 * columns, "p": 40 * elements}
    moved = loads(gemm, (rows, columns), params, elements)
    assert moved == params["m"] * params["n"] + params["p"] * (rows * 2 + 2 * columns)
    least, argument = gemm[0].at(params, elements)
    assert argument == "partition"
    assert least <= moved <= (1.22 if elements == 100 else 1.15) * least


def test_simulated(gemm: tuple[Bound, Tiling]) -> None:
    """The same by simulation of every access."""
    rows, columns = sides(200)
    params = {"m": 2 * rows, "n": 2 * columns, "p": 300}
    kernel = tiled(*gemm, rows, columns)
    simulated = miss_curve(apply(kernel), params, None).loads(8 * 200, "load_store")
    assert simulated == 8 * loads(gemm, (rows, columns), params, 200)


@pytest.mark.spread(1)
@pytest.mark.parametrize("elements", [30, 64, 120])
def test_no_other_rectangle_loads_less(gemm: tuple[Bound, Tiling], elements: int) -> None:
    best = sides(elements)
    p = 60

    def each(shape: tuple[int, int]) -> float:
        params = {"m": shape[0], "n": shape[1], "p": p}
        return (loads(gemm, shape, params, elements) / (shape[0] * shape[1]) - 1) / p

    others = [(a, b) for a in range(best[0] - 2, best[0] + 3) for b in range(best[1] - 2, best[1] + 3) if a > 0 < b]
    assert each(best) <= min(map(each, others)) + 1e-9


def test_extents_are_shared_out_evenly() -> None:
    assert sides(1000, 32, 1000)[0] in (16, 32)
    rows, columns = sides(10_000, 100, 100)
    assert -(-100 // rows) * -(-100 // columns) <= 2


def test_written_as_text(gemm: tuple[Bound, Tiling]) -> None:
    text = source_of(gemm[0], lines(*gemm, 12, 13))
    assert "    order k, i, j\n    tile i, j by 12, 13\n" in text
    again = kernel_of(text)
    params = {"m": 24, "n": 26, "p": 40}
    assert traffic_at(again, params, 1600, None, "load_store") == traffic_at(
        tiled(*gemm, 12, 13), params, 1600, None, "load_store"
    )


@pytest.mark.parametrize("params", [{"m": 41, "n": 20, "p": 61}, {"m": 40, "n": 21, "p": 60}], ids=str)
def test_loops_with_steps_are_tiled_as_those_with_as_many_iterations(
    gemm: tuple[Bound, Tiling], params: dict[str, int]
) -> None:
    found = bound(kernel_of(STRIDED))
    plan = tiling(found)
    rows, columns, steps = (len(range(0, params[p], s)) for p, s in (("m", 2), ("n", 1), ("p", 3)))
    assert extents_at(plan, params) == (rows, columns, steps)
    same = {"m": rows, "n": columns, "p": steps}
    assert sides_at(plan, params, 64) == sides_at(gemm[1], same, 64)
    for elements in (64, 200):
        shape = sides_at(plan, params, elements)
        assert plan.sizes(*shape) == (2 * shape[0], shape[1])
        moved = loads((found, plan), shape, params, elements)
        assert found.at(params, elements)[0] <= moved == loads(gemm, shape, same, elements)


def test_a_level_names_the_sizes_of_the_tile_line_it_counts() -> None:
    found = report(bound(kernel_of(STRIDED)), {"m": 40, "n": 20, "p": 60}, (("a cache", 800),))
    (level,) = found.levels
    assert level.tile is not None and level.tile[0] % 2 == 0
    rows, columns = level.tile
    text = STRIDED.replace("    for", f"    order k, i, j\n    tile i, j by {rows}, {columns}\n    for")
    moved = traffic_at(kernel_of(text), found.params, 800, None, "load_store").loads_bytes
    assert moved is not None and level.tiled == moved // 8
    told = "\n".join(to_text(told_of(found, False)))
    assert "`tile i, j by 2*b, b`" in told and f"tile {rows} x {columns}" in told


SWEEP = """kernel sweep(n):
    in B: f64[n, n], D: f64[n, n]
    inout C: f64[n, n]
    for k in range(n), i in range(n), j in range(n):
        C[i, j] = min(C[i, j], C[i, k] + C[k, j])
"""

INTERVALS = """kernel intervals(n):
    inout m: f64[n, n]
    for r in range(n), j in range(n - r, n), k in range(n - r, j):
        m[n - 1 - r, j] += m[n - 1 - r, k] * m[k, j]
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [(SWEEP, "a dependence would be reversed"), (INTERVALS, "the loop `k` cannot be moved outside `r`")],
    ids=["dependence", "bounds"],
)
def test_a_tile_that_cannot_be_applied_is_not_recommended(text: str, why: str) -> None:
    found = bound(kernel_of(text))
    with pytest.raises(NoTiling, match=why):
        tiling(found)
    reported = report(found, {"n": 24}, (("a cache", 800),))
    assert reported.plan is None and why in reported.why_no_tile
    assert f"No tile is suggested: {reported.why_no_tile}." in "\n".join(to_text(told_of(reported, False)))


LOWER = """kernel lower(m, n):
    in A: f64[m, n], B: f64[m, n]
    inout C: f64[m, m]
    for i in range(m), j in range(i + 1), k in range(n):
        C[i, j] += A[i, k] * B[j, k]
"""


def test_a_triangular_product_whose_sum_can_be_moved_outside_is_tiled() -> None:
    found = bound(kernel_of(LOWER))
    again = kernel_of(source_of(found, lines(found, tiling(found), 12, 13)))
    assert again.directives[0].loops == ("k", "i", "j")


SHIPPED = sorted((Path(__file__).parents[2] / "models").glob("*/*.roof"))


@pytest.mark.spread(2)
def test_every_tile_that_is_recommended_for_a_shipped_kernel_can_be_applied() -> None:
    recommended, refused = set(), set()
    for kernel in (k for path in SHIPPED for k in kernels(load_file(path)).values()):
        try:
            perfect_nest(untiled(apply(kernel)))
            found = bound(kernel)
            plan = tiling(found)
        except (NoTiling, CommandError):
            refused.add(kernel.name)
            continue
        for elements in (64, 4096):
            tiled(found, plan, *sides_at(plan, {}, elements))
        recommended.add(kernel.name)
    assert recommended >= {"matmul", "batched_gemm", "gemm_f16", "minplus"}
    assert "floyd_warshall" in refused


def test_names_and_numbers_of_a_cache_stand_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a large tile ran into its loads, and `46378 times the bound` was `4.638e+04 times`."""
    assert run(["bound", "matmul", "--set", "n=1000000", "--cache", "64GiB"]) == 0
    bound_row, written, tile = capsys.readouterr().out.splitlines()[-3:]
    assert written.endswith(" loads, 46378 times the bound") and tile.startswith("  tile 76924 x 111663  2")
    assert bound_row.index("21,562") == written.index("1,000,002") == tile.index("23,000")
