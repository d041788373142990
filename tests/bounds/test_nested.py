"""Tiles in tiles by exact LRU simulation of every access: each level loads what is said, at most."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from roofdsl.bounds.bound import Bound, bound
from roofdsl.bounds.bound_report import report
from roofdsl.bounds.nested import _Search, lines, most_loads, nested, nested_kernel
from roofdsl.bounds.tiles import NoTiling, Tiling, extents_at, source_of, tiling
from roofdsl.cli.bound import bound as command
from roofdsl.loops.transform import apply
from roofdsl.simulate.distances import miss_curve
from roofdsl.tell.as_text import to_text
from roofdsl.tell.bound import blocks as told_of
from tests.bounds.test_tiles import GEMM, STRIDED, gemm
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of

__all__ = ["gemm"]


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("params", "elements"),
    [
        ({"m": 40, "n": 40, "p": 40}, (20, 200)),
        ({"m": 37, "n": 53, "p": 61}, (30, 400)),
        ({"m": 90, "n": 20, "p": 70}, (64, 1024)),
        ({"m": 48, "n": 50, "p": 52}, (12, 90, 700)),
        ({"m": 30, "n": 31, "p": 9}, (12, 64, 5000)),
    ],
    ids=str,
)
def test_loads(gemm: tuple[Bound, Tiling], params: dict[str, int], elements: tuple[int, ...]) -> None:
    found, plan = gemm
    blocks = nested(plan, params, elements)
    kernel = nested_kernel(found, plan, blocks)
    curve = miss_curve(apply(kernel), params, None)
    rows, columns, steps = extents_at(plan, params)
    assert rows and columns and steps
    for size, most in zip(elements, most_loads(blocks, (rows, columns, steps)), strict=True):
        moved = curve.loads(8 * size, "load_store")
        assert moved is not None
        assert found.at(params, size)[0] <= moved // 8 <= most
        assert moved // 8 >= 0.9 * most or size == 5000  # where all fits, more is held than a block
    for inner, outer in pairwise(blocks):
        assert outer.rows % inner.rows == outer.columns % inner.columns == 0
        assert inner.steps and (outer.steps is None or outer.steps % inner.steps == 0)


def test_loads_of_loops_with_steps() -> None:
    found = bound(kernel_of(STRIDED))
    plan, params, elements = tiling(found), {"m": 61, "n": 30, "p": 90}, (20, 200)
    blocks = nested(plan, params, elements)
    curve = miss_curve(apply(nested_kernel(found, plan, blocks)), params, None)
    rows, columns, steps = 31, 30, 30
    assert extents_at(plan, params) == (rows, columns, steps)
    for size, most in zip(elements, most_loads(blocks, (rows, columns, steps)), strict=True):
        moved = curve.loads(8 * size, "load_store")
        assert moved is not None and found.at(params, size)[0] <= moved // 8 <= most


def test_far_better_than_one_level(gemm: tuple[Bound, Tiling]) -> None:
    """One tile for the first cache leaves the second what the first loads; tiles in tiles are near both bounds."""
    found, plan = gemm
    params = {"m": 2000, "n": 2000, "p": 2000}
    sizes = (4096, 131072)
    for size, most in zip(sizes, most_loads(nested(plan, params, sizes), (2000, 2000, 2000)), strict=True):
        assert most <= 1.7 * found.at(params, size)[0]


def test_every_execution_once(gemm: tuple[Bound, Tiling]) -> None:
    found, plan = gemm
    rng = random.Random(3)
    for _ in range(4):
        params = {"m": rng.randint(1, 20), "n": rng.randint(1, 20), "p": rng.randint(1, 20)}
        kernel = nested_kernel(found, plan, nested(plan, params, (10, 40, 160)))
        points = [tuple(e.env[v] for v in "ijk") for e in run(apply(kernel), params)]
        assert len(set(points)) == len(points) == params["m"] * params["n"] * params["p"]


def test_written_as_text(gemm: tuple[Bound, Tiling]) -> None:
    """The text says the same, and without its tiles it is the kernel again: bounds are those of the plain loops."""
    found, plan = gemm
    params = {"m": 300, "n": 300, "p": 300}
    blocks = nested(plan, params, (64, 1024))
    written = source_of(found, lines(found, plan, blocks))
    first, second = blocks
    size = f"{second.rows}" if second.rows == second.columns else f"{second.rows}, {second.columns}"
    assert f"    tile i, j by {first.rows}\n    tile k by {first.steps}\n    tile ii, jj by {size}\n" in written
    again = kernel_of(written)
    assert apply(again).body == apply(nested_kernel(found, plan, blocks)).body
    assert bound(again).at(params, 64) == found.at(params, 64)


def test_no_line_without_a_use(gemm: tuple[Bound, Tiling]) -> None:
    """Where all fits the first cache, the others add no tiles."""
    found, plan = gemm
    blocks = nested(plan, {"m": 20, "n": 20, "p": 20}, (4096, 131072, 10**6))
    assert len(blocks) == 3
    assert len(lines(found, plan, blocks)) == 3


def test_the_search_leaves_out_no_better_tiles(
    gemm: tuple[Bound, Tiling], monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    _, plan = gemm
    draw = random.Random(32)
    for levels in (2, 3, 3, 4) * (4 if pytestconfig.option.thorough else 1):
        elements = [draw.randint(5, 100)]
        while len(elements) < levels:
            elements.append(elements[-1] * draw.randint(2, 40) + draw.randint(1, 9))
        params = {name: draw.choice((draw.randint(1, 30), draw.randint(1, 2000))) for name in ("m", "n", "p")}
        known = params if draw.random() < 0.7 else {}
        found = nested(plan, known, elements)
        with monkeypatch.context() as patched:
            patched.setattr(_Search, "_is_worse", lambda search, ratios: False)
            assert nested(plan, known, elements) == found, (params, elements)


def test_what_has_none(gemm: tuple[Bound, Tiling]) -> None:
    _, plan = gemm
    with pytest.raises(NoTiling, match="at least two caches"):
        nested(plan, {}, (100,))
    with pytest.raises(NoTiling, match="fewer than 5 elements"):
        nested(plan, {}, (4, 4010))
    batch = """kernel batch(b, n):
    in A, B: f64[b, n, n]
    inout C: f64[b, n, n]
    for g in range(b), i in range(n), j in range(n), k in range(n):
        C[g, i, j] += A[g, i, k] * B[g, k, j]
"""
    with pytest.raises(NoTiling, match="further loops"):
        nested(tiling(bound(kernel_of(batch))), {}, (100, 1000))


def test_report_and_command(gemm: tuple[Bound, Tiling], tmp_path: Path) -> None:
    found, _ = gemm
    params = {"m": 30, "n": 40, "p": 50}
    told = told_of(report(found, params, (("L1", 512), ("L2", 8192)), with_nested=True), steps=False)
    made = "\n".join(to_text(told))
    assert "Tiles in tiles" in made
    assert made.count("  nested      ") == 2
    file = tmp_path / "gemm.roof"
    file.write_text(GEMM)
    asked = [str(file), "--set", "m=300,n=300,p=300", "--nested"]
    done = CliRunner().invoke(command, [*asked, "--machine", "skylake_gold_6148", "--apply"])
    assert done.exit_code == 0, done.output
    assert done.output.count("tile ") >= 3
    refused = CliRunner().invoke(command, [*asked, "--cache", "1KiB"])
    assert refused.exit_code == 2
    assert "--machine" in refused.output
