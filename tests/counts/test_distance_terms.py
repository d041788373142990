"""Q(Z) of stencils in lines with Z a symbol equals the simulation, at sizes and caches of all kinds."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.counts.derive import derive
from roofdsl.counts.kernel_forms import Forms
from roofdsl.counts.lines.symbolic_distances import DistanceForms
from roofdsl.counts.traffic_form_records import TermBytes
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized
from roofdsl.sets.facts import CACHE
from roofdsl.sets.terms import Terms
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.codegen.shipped import shipped
from tests.counts.test_line_forms import CONVENTIONS, holds, of
from tests.oracle.loading import kernel_of

STAR = " + ".join(f"A[k{o}, j, i] + A[k, j{o}, i] + A[k, j, i{o}]" for o in (" - 4", " - 1", " + 2", " + 4"))
WIDE_STAR = f"""
kernel wide_star(p, m, n):
    in A: f64[p, m, n]
    out B: f64[p, m, n]
    for k in range(4, p - 4), j in range(4, m - 4), i in range(4, n - 4):
        B[k, j, i] = {STAR}
"""

PARTS = """
kernel parts(p, m, n):
    in P: f32[p, m, n], a: f32[4, p, m, n]
    out Q: f32[2, p, m, n]
    for k in range(1, p - 1), j in range(1, m - 1), i in range(1, n - 1):
        Q[1, k, j, i] = a[0, k, j, i] * P[k + 1, j, i] + a[3, k, j, i] * P[k - 1, j, i + 1] - a[3, k, j - 1, i]
"""

SEIDEL = """
kernel seidel(steps, n):
    inout A: f64[n, n]
    for t in range(steps), i in range(1, n - 1), j in range(1, n - 1):
        A[i, j] = (A[i - 1, j - 1] + A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i + 1, j] + A[i + 1, j + 1]) / 6.0
"""


def kernel_named(name: str) -> Kernel:
    own = {"wide_star": WIDE_STAR, "parts": PARTS, "seidel": SEIDEL}
    return kernel_of(own[name]) if name in own else shipped()[name]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("jacobi3d", {"n": 48}),
        ("stencil27", {"n": 48}),
        ("jacobi2d_time", {"steps": 3, "n": 56}),
        ("heat3d_time", {"steps": 2, "n": 48}),
        ("wide_star", {"p": 14, "m": 42, "n": 72}),
        ("parts", {"p": 6, "m": 14, "n": 96}),
        ("seidel", {"steps": 3, "n": 64}),
    ],
)
def test_it_is_as_simulated(name: str, sizes: dict[str, int]) -> None:
    of_name = kernel_named(name)
    forms, at = Forms(of_name, {}, 64), sized(of_name, sizes)
    told = {convention: forms.at_any_cache(convention) for convention in CONVENTIONS}
    least = forms.distances.found.least_bytes
    most = simulate_lru(at.kernel, at.values, 1 << 40, 64).bytes("once")
    rng = Random(name)
    caches = [least, most, *(int(least * (most / least) ** rng.random()) for _ in range(25))]
    for cache in caches:
        run = simulate_lru(at.kernel, at.values, cache, 64)
        for convention, form in told.items():
            where = {**sizes, CACHE: cache}
            assert isinstance(form, TermBytes)
            assert holds(form.total, where), (cache, form.total.assumes)
            want = run.loads(convention), run.stores(convention), run.bytes(convention)
            assert of(form, where) == (want if convention != "once" else (None, None, want[2])), (cache, convention)


def test_a_smaller_cache_is_not_claimed() -> None:
    found = derive(kernel_named("jacobi3d"), line_bytes=64, any_cache=True, plateaus=False).any_cache
    assert found is not None and found.bytes.terms is not None
    assert not holds(found.bytes.terms, {"n": 48, CACHE: 1088})


@pytest.mark.parametrize("sizes", [{}, {"n": 51}])
def test_the_form_of_a_small_stencil_is_short(sizes: dict[str, int]) -> None:
    """For all remainders of n, it had 25 terms, half of them summed over a variable, and took a page."""
    found = Forms(kernel_named("jacobi2d"), sizes, 64).at_any_cache("load_store").total
    assert isinstance(found, Terms) and len(found.terms) <= 5 and not found.definitions
    at = {"n": 48, **sizes}
    assert not holds(found, {"n": at["n"] + 1, CACHE: 1024})
    placed = sized(kernel_named("jacobi2d"), at)
    for cache in (768, 1024, 1536, 1600, 1664, 1 << 20):
        want = simulate_lru(placed.kernel, placed.values, cache, 64).bytes("load_store")
        # Without sizes, rows are assumed to be whole lines; n = 51 rows begin anywhere, "rows aligned" says so.
        assert holds(found, {**at, CACHE: cache}) is not False
        assert sizes or found.evaluate({**at, CACHE: cache}) == want


def test_distances_that_cross_at_a_fixed_place_are_cut_there() -> None:
    assert not DistanceForms(kernel_named("heat3d_time"), {}, 64).found.between
