"""Both ways from a kernel to integer sets hold exactly the executions that its loops and guards make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import islpy as isl
import pytest

from roofdsl.loops.accesses import PlacedStatement, statements
from roofdsl.loops.sized import sized
from roofdsl.loops.transform import apply
from roofdsl.sets.access_sets import build
from roofdsl.sets.instances import Encoder, variable
from roofdsl.sets.library import set_of
from tests.oracle.loading import kernel_of

TEXT = """kernel k(n, m):
    inout A: f64[4*n + 4*m, 4*n + 4*m]
TILE
    for i in range(n):
        for j in range(max(i, 2), min(n, m + 1)):
            if i + j != 3 and (j % 2 == 0 or not i < 2):
                A[i, j] = A[j, i] + 1.0
            else:
                A[i, j] = 2.0
        for q in range(i // 2, n + m, 3):
            A[i, q] = 3.0
        for r in range(max(i - 1, m - 2, 1), n + m, 3):
            A[i, r] = 4.0
"""
PLAIN = TEXT.replace("TILE", "")
TILED = TEXT.replace("TILE", "    tile i by 3\n")


def executions(placed: PlacedStatement, values: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """The values of the loop variables in every execution of a statement, in order."""

    def run(depth: int, env: dict[str, int]) -> Iterator[tuple[int, ...]]:
        if not all(condition.holds(env) for outside, condition in placed.guards if outside == depth):
            return
        if depth == len(placed.loops):
            yield tuple(env[loop.var] for loop in placed.loops)
            return
        loop = placed.loops[depth]
        for value in range(*(e.evaluate(env) for e in (loop.start, loop.stop, loop.step))):
            yield from run(depth + 1, {**env, loop.var: value})

    return run(0, dict(values))


def points(found: Any) -> list[tuple[int, ...]]:
    """The points of an isl.Set without parameters, in order."""
    out: list[tuple[int, ...]] = []
    kind = isl.dim_type.set
    found.foreach_point(
        lambda p: out.append(tuple(p.get_coordinate_val(kind, d).to_python() for d in range(found.dim(kind))))
    )
    return sorted(out)


@pytest.mark.parametrize("text", [PLAIN, TILED])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (4, 9)])
def test_sets_hold_what_is_executed(text: str, n: int, m: int) -> None:
    at = sized(kernel_of(text), {"n": n, "m": m})
    access_sets = build(at.kernel, at.values, None)
    for k, (placed, domain) in enumerate(zip(statements(at.kernel.body), access_sets.domains, strict=True)):
        expected = list(executions(placed, at.values))
        encoder = Encoder(at.kernel, at.values)
        found = encoder.make([variable("x", loop.var) for loop in placed.loops], encoder.domain(placed, "x"))
        assert encoder.exact
        assert points(found) == sorted(expected), f"statement {k}"
        assert len(points(domain.executions)) == len(expected), f"statement {k}"


@pytest.mark.parametrize("text", [PLAIN, TILED])
def test_symbolic_sets_hold_the_same_at_every_size(text: str) -> None:
    kernel = apply(kernel_of(text))
    access_sets = build(kernel, {}, None)
    for placed, domain in zip(statements(kernel.body), access_sets.domains, strict=True):
        encoder = Encoder(kernel)
        found = encoder.make([variable("x", loop.var) for loop in placed.loops], encoder.domain(placed, "x"))
        for n, m in [(3, 4), (6, 2)]:
            expected = list(executions(placed, {"n": n, "m": m}))
            for of, prefix in ((found, "p"), (domain.executions, "P")):
                sizes = f"{prefix}_n = {n} and {prefix}_m = {m}"
                here = of.intersect_params(isl.Set(f"[{prefix}_n, {prefix}_m] -> {{ : {sizes} }}"))
                assert len(points(here.project_out_all_params())) == len(expected)


def test_executions_are_read_once_for_lines_of_every_size() -> None:
    """One answer asks for elements, lines and sectors; the executions are the same for all of them."""
    kernel = kernel_of(
        "kernel k(n):\n    in a: f64[n, n]\n    out b: f64[n, n]\n    for i in range(n), j in range(i, n):\n"
        "        b[j, i] = a[i, j]\n"
    )
    build(kernel, {"n": 37}, None)
    before = set_of.cache_info().misses
    build(kernel, {"n": 37}, 64)
    build(kernel, {"n": 37}, 32)
    assert set_of.cache_info().misses == before
