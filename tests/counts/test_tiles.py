"""Tiles that begin beyond a multiple of their size, and tiles that cut lines: closed forms against what is executed."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Quantity
from roofdsl.counts.traffic_at import convention_totals, lines_by_simulation
from roofdsl.counts.work_at import work_at
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized
from roofdsl.loops.transform import apply
from roofdsl.sets.facts import CACHE
from tests.counts.exact import meets
from tests.oracle import lru
from tests.oracle.loading import kernel_of

BLOCKED = """kernel blocked(n, b):
    assume (n - 2) % b == 0, n > 2
    in A: f64[n, n]
    out B: f64[n, n]
    for ii in range(1, n - 1, b), jj in range(1, n - 1, b), i in range(ii, ii + b), j in range(jj, jj + b):
        B[i, j] = A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]
"""
"""A stencil in tiles of its inner points."""

STEPPED = """kernel stepped(n):
    assume (n + 1) % 4 == 0
    in A: f64[n]
    out B: f64[n]
    for i in range(0, n - 2, 4):
        B[i] = A[i] + A[n - 1 - i]
"""

MIXED = """kernel mixed(n, b, c):
    assume (n - 1) % b == 0, n % c == 0
    in A: f64[n]
    out B: f64[n]
    for ii in range(1, n, b), i in range(ii, ii + b):
        B[i] = A[i] + A[i - 1]
"""
"""Two multiples, which begin at different constants: forms may use one of them only."""

PRODUCT = """kernel product(n, b):
    traffic once
    assume n % b == 0
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for kk in range(0, n, b), ii in range(0, n, b), jj in range(0, n, b):
        for i in range(ii, ii + b), k in range(kk, kk + b), j in range(jj, jj + b):
            C[i, j] += A[i, k] * B[k, j]
"""


RAGGED = """kernel ragged(n, b):
    in A: f64[n, n]
    out B: f64[n, n]
    for ii in range(1, n - 1, b), jj in range(1, n - 1, b):
        for i in range(ii, min(ii + b, n - 1)), j in range(jj, min(n - 1, jj + b)):
            B[i, j] = A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]
"""
"""Tiles that are cut off at the end, of any size."""

SUMS = """kernel sums(n, m, b):
    tile i, j by b
    in A: f32[n, m]
    inout y: f64[n]
    out z: f64[n, m]
    for i in range(n), j in range(m):
        y[i] += A[i, j]
        z[i, j] = y[i] * A[i, j]
"""


def _simulated(kernel: Kernel, at: dict[str, int], cache: int, line: int | None, convention: str) -> int:
    exact = sized(kernel, at)
    return convention_totals(exact, lines_by_simulation(exact, cache, line), convention)[2]  # type: ignore[arg-type]


def _value(found: Quantity, at: dict[str, int]) -> int | None:
    """The value of a form at sizes that it holds for."""
    form = found.form or found.terms
    assert form is not None, found.note
    return int(form.evaluate(at)) if meets(form.assumes, at) else None


@pytest.mark.spread(2)
@pytest.mark.parametrize("b", [2, 3, 5])
@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_compulsory_traffic_of_tiles_beyond_a_multiple(b: int, tiles: int) -> None:
    kernel = kernel_of(BLOCKED)
    d, at = derive(kernel, plateaus=False), {"n": b * tiles + 2, "b": b}
    assert _value(d.work.total, at) == 4 * (b * tiles) ** 2
    want = lru.cost(kernel, lru.residencies(kernel, at, None, None), "load_store").bytes
    assert _value(d.compulsory.bytes, at) == want


@pytest.mark.parametrize("text", [RAGGED, SUMS])
@pytest.mark.parametrize("line", [None, 16])
def test_work_and_compulsory_traffic_of_tiles_that_are_cut_off(text: str, line: int | None) -> None:
    """In any legal order, the same is executed and touched; at b = 1, the tiles are iterations."""
    kernel = apply(kernel_of(text))
    d, compared = derive(kernel, line_bytes=line, plateaus=False), 0
    for n, m, b in ((6, 6, 3), (8, 9, 3), (11, 7, 4), (5, 4, 9), (7, 5, 1), (10, 8, 2)):
        at = {p.name: {"n": n, "m": m, "b": b}[p.name] for p in kernel.parameters}
        assert _value(d.work.total, at) == work_at(kernel, at).total
        want = lru.cost(kernel, lru.residencies(kernel, at, None, line), d.convention).bytes
        have = _value(d.compulsory.bytes, at)
        if have is not None:
            assert have == want, at
            compared += 1
    assert compared > 1


@pytest.mark.thorough
def test_traffic_of_tiles_beyond_a_multiple() -> None:
    kernel, rng = kernel_of(BLOCKED), Random(2)
    d, compared = derive(kernel, any_cache=True), 0
    assert d.any_cache is not None
    assert [str(p.from_bytes.expr) for p in d.plateaus] == ["8", "16", "64", "32*b"]
    for b, tiles in ((10, 10), (11, 10), (10, 12), (13, 11)):
        at = {"n": b * tiles + 2, "b": b}
        for _ in range(8):
            cache = 8 * rng.choice([rng.randint(1, 8 * b), rng.randint(1, 40 * b), rng.randint(1, 4 * b * tiles * b)])
            have = _value(d.any_cache.bytes, {**at, CACHE: cache})
            if have is not None:
                assert have == _simulated(kernel, at, cache, None, "load_store"), (at, cache)
                compared += 1
    assert compared > 20


def test_multiples_of_numbers_beyond_a_constant() -> None:
    kernel = kernel_of(STEPPED)
    d = derive(kernel)
    for n in (3, 7, 11, 23):
        at = {"n": n}
        want = lru.cost(kernel, lru.residencies(kernel, at, None, None), "load_store").bytes
        assert _value(d.compulsory.bytes, at) == want


def test_multiples_from_two_constants_on() -> None:
    kernel = kernel_of(MIXED)
    d = derive(kernel, plateaus=False)
    for at in ({"n": 4, "b": 3, "c": 2}, {"n": 16, "b": 5, "c": 4}, {"n": 9, "b": 2, "c": 3}):
        want = lru.cost(kernel, lru.residencies(kernel, at, None, None), "load_store").bytes
        assert _value(d.compulsory.bytes, at) in {want, None}


@pytest.mark.spread(1)
@pytest.mark.parametrize("cache", [4096, 32768])
def test_tiles_that_cut_lines_stand_as_numbers(cache: int) -> None:
    kernel = kernel_of(PRODUCT)
    without = derive(kernel, line_bytes=64, cache_bytes=cache, plateaus=False)
    assert without.at_cache.bytes.form is None and "--set b=" in without.at_cache.bytes.note
    d = derive(kernel, {"b": 16}, line_bytes=64, cache_bytes=cache, plateaus=False)
    assert any("at b = 16" in note for note in d.notes)
    compared = 0
    for n in (64, 128, 160, 192):
        at = {"n": n, "b": 16}
        have = _value(d.at_cache.bytes, at)
        if have is not None:
            assert have == _simulated(kernel, at, cache, 64, "once")
            compared += 1
    assert compared >= 2
