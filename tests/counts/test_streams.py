"""Stores that bypass the caches, against an enumeration of the kernel and an LRU that never sees them."""

from __future__ import annotations

import pytest

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.counts.sector_traffic import Transfers, transfers_at, warm_transfers_at
from roofdsl.counts.streamed import streamed_form
from roofdsl.counts.traffic_at import footprint_at, traffic_at
from roofdsl.loops.model import Assign, Kernel
from roofdsl.loops.streams import ordinary, streamed_bytes_at, within_caches
from roofdsl.loops.transform import apply
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.hierarchy import simulate
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.oracle import lru
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of

TRIAD = """
kernel triad(n):
    in b, c: f64[n], q: f64
    out a: f64[n]
    for i in range(n):
        stream a[i] = b[i] + q * c[i]
"""

TRIANGLE = """
kernel triangle(n, m):
    in b: f32[n, n], x: f32[n]
    out a: f32[n, n], t: f64[m, n] col
    inout y: f32[n]
    for i in range(n), j in range(i + 1):
        stream a[i, j] = b[j, i] * x[j]
    for i in range(n):
        y[i] += x[i]
        for j in range(m):
            stream t[j, i] = y[i] + j
"""

TILED = """
kernel tiled(n):
    assume n % 4 == 0
    in b: f64[n, n]
    out a: f64[n, n]
    tile i, j by 4
    for i in range(n), j in range(n):
        stream a[i, j] = b[i, j] + b[j, i]
"""

JACOBI = """
kernel jacobi(n):
    in u: f64[n, n]
    out v: f64[n, n], s: f64
    s = 0
    for i in range(1, n - 1), j in range(1, n - 1):
        let new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        s += (new - u[i, j])**2
        stream v[i, j] = new
"""

CASES = [(TRIAD, {"n": 37}), (TRIANGLE, {"n": 13, "m": 5}), (TILED, {"n": 12}), (JACOBI, {"n": 20})]
CONVENTIONS = ("once", "load_store", "write_allocate")


def passing(kernel: Kernel, sizes: dict[str, int]) -> int:
    """The bytes of the executed stores, one by one."""
    found = [e.statement for e in run(apply(kernel), sizes)]
    return sum(s.target.array.type.bytes for s in found if isinstance(s, Assign) and s.stream)


def expected(text: str, sizes: dict[str, int], cache: int | None, line: int | None, convention: str) -> tuple[int, int]:
    """(stores, all bytes) of an LRU cache that sees a `let` in place of every such store, and those stores."""
    seen = "\n".join(
        line.split("stream")[0] + f"let passing{k} = " + line.split(" = ")[1] if " stream " in line else line
        for k, line in enumerate(text.splitlines())
    )
    others, past = lru.traffic(apply(kernel_of(seen)), sizes, cache, line, convention), passing(kernel_of(text), sizes)
    return (others.stores or 0) + past, others.bytes + past


@pytest.mark.spread(6)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("text", "sizes"), CASES)
def test_traffic_is_that_of_an_lru_and_the_stores(text: str, sizes: dict[str, int], convention: str) -> None:
    kernel = kernel_of(text)
    plain = apply(kernel)
    assert streamed_bytes_at(plain, sizes) == passing(kernel, sizes) > 0
    for cache, line in ((None, None), (None, 64), (256, 8 if "f32" not in text else 64), (1024, 64)):
        stores, total = expected(text, sizes, cache, line, convention)
        found = traffic_at(kernel, sizes, cache, line, convention)  # type: ignore[arg-type]
        assert found.bytes == total, (cache, line)
        assert found.stores_bytes == (None if convention == "once" else stores)
        walked = simulate_lru(plain, sizes, cache, line)
        assert walked.bytes(convention) == total  # type: ignore[arg-type]
        assert miss_curve(plain, sizes, line).bytes(cache, convention) == total  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "sizes"), CASES)
def test_closed_forms_have_the_same_values(text: str, sizes: dict[str, int]) -> None:
    kernel = kernel_of(text)
    for convention in CONVENTIONS:
        for line in (None, 64):
            made = derive(kernel, traffic=convention, line_bytes=line, plateaus=False)  # type: ignore[arg-type]
            form = made.compulsory.bytes.form
            if form is None:
                continue
            given = {n: 16 * v for n, v in sizes.items()}  # whole lines, as the form assumes
            at = traffic_at(kernel, given, None, line, convention)  # type: ignore[arg-type]
            assert form.evaluate(given) == at.bytes


@pytest.mark.thorough
def test_every_form_of_q_of_z_has_them() -> None:
    kernel = kernel_of(JACOBI)
    for convention in CONVENTIONS[1:2]:
        found = derive(kernel, {"n": 64}, traffic=convention, cache_bytes=2048, line_bytes=64, plateaus=False)  # type: ignore[arg-type]
        assert found.at_cache.bytes.value == expected(JACOBI, {"n": 64}, 2048, 64, convention)[1]
        last = derive(kernel_of(TRIAD), traffic=convention, line_bytes=64).plateaus[-1]  # type: ignore[arg-type]
        assert last.exact
        assert last.bytes.form is not None
        assert last.bytes.form.evaluate({"n": 64}) == expected(TRIAD, {"n": 64}, None, 64, convention)[1]


def test_a_product_of_two_loops_has_them_for_any_cache() -> None:
    text = """
kernel outer(n, m):
    in x: f64[n], y: f64[m]
    out a: f64[n, m]
    for i in range(n), j in range(m):
        stream a[i, j] = x[i] * y[j]
"""
    found = derive(kernel_of(text), any_cache=True)
    assert found.any_cache is not None
    form = found.any_cache.bytes.form
    for n, m, cache in ((7, 9, 16), (7, 9, 72), (7, 9, 80), (12, 5, 40), (12, 5, 48)):
        at = {"n": n, "m": m}
        assert form is not None
        assert form.evaluate({**at, "Z": cache}) == expected(text, at, cache, None, "load_store")[1]


def test_two_launches_in_a_row_store_twice() -> None:
    kernel, sizes = kernel_of(TRIAD), {"n": 64}
    where = Transfers(4096, 64, 64)
    assert transfers_at(kernel, sizes, where, "write_allocate").bytes == 3 * 512
    assert warm_transfers_at(kernel, sizes, where, "write_allocate").bytes == 512, "b and c stay, a is never there"


def test_only_what_lies_below_the_last_cache_has_them() -> None:
    kernel, sizes = apply(kernel_of(TRIAD)), {"n": 64}
    levels = [CacheLevel("L1", 256, 64, 2), CacheLevel("L2", 1024, 64, 4)]
    found = simulate(kernel, sizes, levels)
    assert [found.store_bytes(k) for k in (0, 1)] == [0, 512]
    assert [found.load_bytes(k) for k in (0, 1)] == [1024, 1024]


def test_what_is_touched_counts_once() -> None:
    kernel = kernel_of(TRIANGLE)
    sizes = {"n": 13, "m": 5}
    assert footprint_at(kernel, sizes) == footprint_at(ordinary(kernel), sizes)
    assert footprint_at(within_caches(kernel), sizes) == footprint_at(kernel, sizes) - 4 * 13 * 14 // 2 - 8 * 13 * 5


def test_work_is_that_of_ordinary_stores() -> None:
    for text, _ in CASES:
        kernel = kernel_of(text)
        found, usual = (derive(k, plateaus=False).work.total.form for k in (kernel, ordinary(kernel)))
        assert found == usual


def test_loops_of_unknown_steps_have_no_form() -> None:
    text = """kernel k(n, b):
    in A: f64[n, n], x: f64[n]
    out B: f64[n, n]
    for r in range(0, n, b), i in range(n), j in range(n):
        stream B[i, j] = A[i, j] + x[j]
"""
    with pytest.raises(NoClosedForm, match="is not known to be a multiple of b"):
        streamed_form(kernel_of(text))
    found = derive(kernel_of(text), {"n": 20, "b": 8}, line_bytes=64)
    assert found.compulsory.stores is not None and found.compulsory.stores.value == 3 * 8 * 20**2
