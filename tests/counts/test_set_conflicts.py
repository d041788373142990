"""Where sets matter, against simulation: what is warned of is there, and padding as advised makes it go away."""

from __future__ import annotations

import pytest

from roofdsl.counts.set_conflicts import Geometry, Window, conflict_words, conflicts, is_flagged
from roofdsl.counts.traffic_at import access_count
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized
from roofdsl.loops.transform import apply
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import simulate
from tests.models.shipped import model

L1 = Geometry(32 << 10, 64, 8)
SMALL = Geometry(4 << 10, 64, 2)

TEXT = """
kernel transposed(n, row):
    assume row >= n
    in A: f64[n, row]
    out B: f64[n, row]
    for i in range(n):
        for j in range(n):
            B[j, i] = A[i, j]

kernel columns(n, row):
    assume row >= n
    in A: f64[n, row]
    inout s: f64[n]
    for j in range(n):
        for i in range(n):
            s[j] += A[i, j]

kernel streams(n):
    in a, b, c, d: f64[n]
    out e: f64[n]
    for i in range(n):
        e[i] = a[i] + b[i] + c[i] + d[i]

kernel triangle(n, row):
    assume row >= n
    inout A: f64[n, row]
    inout x: f64[n]
    for i in range(n):
        for j in range(i):
            if i + j < n:
                x[j] += A[j, i]
"""


def written(name: str) -> Kernel:
    return kernel(load_file(Source("conflicts.roof", TEXT)), name)


def misses(k: Kernel, sizes: dict[str, int], sets: Geometry, ways: int | None) -> int:
    return simulate(apply(k), sizes, [CacheLevel("L1", sets.size_bytes, sets.line_bytes, ways)]).levels[0].loads


def flagged(k: Kernel, sizes: dict[str, int], sets: Geometry) -> bool:
    return is_flagged(conflicts(k, sizes, sets), access_count(sized(k, sizes)))


@pytest.mark.parametrize(
    ("name", "n", "sets"),
    [("transposed", 128, L1), ("columns", 256, L1), ("columns", 32, SMALL), ("triangle", 128, L1)],
)
def test_padding_as_advised(name: str, n: int, sets: Geometry) -> None:
    """Rows of a power of two miss more than the model says; rows one line longer do not, and are not warned of."""
    k = written(name)
    bad, good = {"n": n, "row": n}, {"n": n, "row": n + 8}
    assert misses(k, bad, sets, sets.ways) > 1.5 * misses(k, bad, sets, None)
    assert misses(k, good, sets, sets.ways) == misses(k, good, sets, None)
    (text, *_) = conflict_words(k, bad, sets)
    assert "rows of" in text and "that are 8 elements longer" in text and f"{8 * n:,} B apart" in text
    assert not flagged(k, good, sets) and conflict_words(k, good, sets) == ()


def test_the_estimate_is_what_is_simulated() -> None:
    """For a transposition every window is like every other, so that the count of one is that of all."""
    k, sizes = written("transposed"), {"n": 128, "row": 128}
    (window,) = conflicts(k, sizes, L1)
    extra = misses(k, sizes, L1, 8) - misses(k, sizes, L1, None)
    assert (window.loops, window.array, window.stride_bytes, window.sets_used) == (("i",), "B", 1024, 4)
    assert abs(window.differs - extra) < 0.01 * extra


@pytest.mark.parametrize("n", [512, 4096, 1000])
def test_streams_side_by_side(n: int) -> None:
    """Five vectors whose lines fall into the same set of a cache with two ways, or do not."""
    k = written("streams")
    there = misses(k, {"n": n}, SMALL, 2) > misses(k, {"n": n}, SMALL, None)
    assert flagged(k, {"n": n}, SMALL) == there == (n != 1000)


def test_a_nearly_full_cache_is_not_put_down_to_the_distance_of_lines() -> None:
    """500 lines of b in a row and one of a: the lines that one set gets too many of are a way apart, as any are."""
    text = "kernel k(n):\n    in b: f64[n, 4]\n    inout a: f64[n]\n    for i in range(n), j in range(n):\n"
    text += "        a[i] += b[j, 0] * b[i, 1]\n"
    k = kernel(load_file(Source("k.roof", text)), None)
    assert misses(k, {"n": 1000}, L1, 8) > 1.5 * misses(k, {"n": 1000}, L1, None)
    (words,) = conflict_words(k, {"n": 1000}, L1)
    assert "501 lines, which nearly fill the 512 of the cache" in words and "1 of 64 sets gets more" in words
    assert "apart" not in words


def test_what_is_just_too_large_is_kept_in_part() -> None:
    """512 lines of B and 8 rows more than fit: fully associative LRU misses all of them, sets keep most."""
    k, sizes = model("minplus"), {"n": 64}
    assert misses(k, sizes, L1, 8) < 0.6 * misses(k, sizes, L1, None)
    (text,) = conflict_words(k, sizes, L1)
    assert "the 512 that fit" in text and "fewer bytes move than predicted" in text


def test_sizes_beyond_64_bits() -> None:
    assert conflicts(model("matmul"), {"n": 2**33}, L1) == ()


def test_no_difference_where_all_fit_or_nothing_does() -> None:
    for name, sizes in (
        ("jacobi2d", {"n": 30}),
        ("matmul", {"n": 24}),
        ("triad", {"n": 100_003}),
        ("gemv", {"n": 1000}),
    ):
        k = model(name)
        assert misses(k, sizes, L1, 8) == misses(k, sizes, L1, None)
        assert not flagged(k, sizes, L1), name


def test_all_loops_in_sequence_are_named() -> None:
    one = Window(("i",), 1, 1, 1, 0, 1)
    assert one.subject == "loop i reuses"
    assert replace(one, loops=("i", "j", "i", "k")).subject == "the loops over i, j and k together reuse"
    assert replace(one, loops=("i", "i")).subject == "the loops over i together reuse"
    text = "kernel k(n):\n    assume n >= 9\n    in A: f64[n, 512]\n    inout s, t, u: f64[n]\n"
    for var, name in zip("ijk", "stu", strict=True):
        text += f"    for {var} in range(n):\n        {name}[{var}] += A[{var}, 0]\n"
    (words,) = conflict_words(kernel(load_file(Source("three.roof", text)), None), {"n": 12}, SMALL)
    assert words.startswith("the loops over i, j and k together reuse ")
