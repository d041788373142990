"""Windows of wide stencils: shared between all accesses that lie as many iterations apart, and what they say is so."""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import islpy as isl
import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.lines_of_sets import lines_by_sets
from roofdsl.counts.traffic_at import lines_by_simulation
from roofdsl.loops.sized import sized
from roofdsl.loops.transform import apply
from roofdsl.sets.library import MAX_OPERATIONS
from roofdsl.sets.previous import previous_access
from roofdsl.sets.reuse import ArrayReuse, Touched, by_array, reuse
from roofdsl.simulate.distances import miss_curve
from tests.codegen.shipped import shipped
from tests.oracle.loading import kernel_of

REACH = 4
STAR = sorted(
    {(k, 0) for k in range(-REACH, REACH + 1)} | {(0, k) for k in range(-REACH, REACH + 1)},
    key=lambda offset: (5 * offset[0] + 7 * offset[1]) % 17,  # in an order of their own
)

WIDE = (
    f"""
kernel wide(n, m):
    assume n >= 24, m >= 24
    in x: f64[n, m], c: f64[n, m], row: f64[2, m]
    out y: f64[n, m]
    for i in range({REACH}, n - {REACH}):
        for j in range({REACH}, m - {REACH}):
            let sum = {" + ".join(f"x[i + {a}, j + {b}]" for a, b in STAR)}
            y[i, j] = c[i, j] * c[i + 1, j - 1] * row[i % 2, j] * sum
""".replace("+ -", "- ")
    .replace(" + 0]", "]")
    .replace(" + 0,", ",")
)

TWINS = WIDE.replace("c: f64[n, m],", "c: f64[n, m], d: f64[n, m], e: f64[n, m],").replace(
    "y[i, j] = ", "y[i, j] = d[i + 1, j - 1] * d[i, j] * e[i, j + 1] * "
)
"""With arrays that are touched alike, and one that is not."""


@pytest.mark.thorough
@pytest.mark.parametrize("text", [WIDE, TWINS], ids=["wide", "twins"])
def test_misses_of_a_wide_stencil_are_what_a_cache_sees(text: str) -> None:
    """At caches on both sides of every distance there is at this size."""
    kernel = kernel_of(text)
    size = {"n": 25, "m": 27}
    curve = miss_curve(apply(kernel), size, None)
    forms = ClosedForms(kernel, size)
    for cache in (8, 64, 136, 144, 152, 160, 200, 400, 448, 456, 800, 1600, 1976, 1984, 2400, 3000, 4000, 20000):
        for convention in ("load_store", "once"):
            found = forms.at_cache(cache, convention).total.evaluate({})
            assert found == curve.bytes(cache, convention), (cache, convention)


@pytest.mark.thorough
@pytest.mark.parametrize("text", [WIDE, TWINS], ids=["wide", "twins"])
def test_distances_in_symbols_are_those_counted_access_by_access(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what iterations, and arrays, have in common, on every point of every array's accesses."""
    access_sets = ClosedForms(kernel_of(text), {}).large_size_sets
    shared = reuse(access_sets)
    monkeypatch.setattr("roofdsl.sets.reuse.alike", lambda groups: {name: name for name in groups})
    monkeypatch.setattr("roofdsl.sets.reuse.one_body", lambda *_: None)
    for here, there in zip(shared, reuse(access_sets), strict=True):
        assert _at(here, 24, 26) == _at(there, 24, 26)


def _at(found: ArrayReuse, n: int, m: int) -> dict[tuple[int, ...], int]:
    """The distance of every access at a size."""
    distances: dict[tuple[int, ...], int] = {}
    size = isl.Set(f"[P_n, P_m] -> {{ : P_n = {n} and P_m = {m} }}")
    for domain, value in found.distances:
        points: list[isl.Point] = []
        domain.intersect_params(size).foreach_point(points.append)
        for point in points:
            at = [
                point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(domain.dim(isl.dim_type.set))
            ]
            env = {"P_n": n, "P_m": m} | {f"d{k}": v for k, v in enumerate(at)}
            assert tuple(at) not in distances
            distances[tuple(at)] = int(value.evaluate(env))
    return distances


@pytest.mark.thorough
def test_windows_are_counted_once_for_all_accesses_as_far_apart() -> None:
    """Accesses to x are one iteration apart in a row, or one row and some iterations: 21 parts share six windows."""
    access_sets = ClosedForms(kernel_of(WIDE), {}).large_size_sets
    groups = by_array(access_sets)
    touched = Touched(groups, access_sets.line_bytes)
    assert touched._body is not None and set(touched._body.offsets) == {"x", "c", "y"}
    previous = previous_access(touched.touch["x"])
    parts = previous.make_disjoint().get_basic_maps()
    counts = touched.bytes_since([isl.Map.from_basic_map(p) for p in parts])
    assert reduce(isl.Set.union, [count.domain() for count in counts]).is_equal(previous.domain())
    assert all(a.domain().is_disjoint(b.domain()) for a, b in combinations(counts, 2))
    assert len(parts) == 21
    assert sorted(touched._body._windows) == [(0, 1), (1, -4), (1, -3), (1, -2), (1, -1), (1, 0)]


@pytest.mark.spread(1)
@pytest.mark.parametrize("line", [32, 128])
def test_a_window_may_hold_nothing_that_moves(line: int) -> None:
    """C is read and written in one iteration, with arithmetic in between."""
    at = sized(shipped()["lstm_elementwise"], {"batch": 40, "hidden": 16})
    for cache in (1024, 4096, 65536):
        assert lines_by_sets(at, cache, line, MAX_OPERATIONS) == lines_by_simulation(at, cache, line)
