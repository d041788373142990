"""Misses of PolyBench's kernels by integer sets against the simulation, and the table that compares them."""

from __future__ import annotations

import pytest

from benchmarks import polybench_misses as misses
from roofdsl.machine.find import shipped, standard_sizes

CACHES = (1 << 10, 4 << 10)
"""Small ones for MINI sizes, whose data would fit in those of LARGE."""

QUICK = ("atax", "bicg", "gemm", "gesummv", "mvt", "trisolv")


@pytest.mark.parametrize("name", QUICK)
def test_by_sets_as_simulated(name: str) -> None:
    kernel, sizes = misses.load_kernel(name), standard_sizes()[name]["mini"]
    assert misses.by_sets(kernel, sizes, CACHES) == misses.by_simulation(kernel, sizes, CACHES)


@pytest.mark.parametrize("way", misses.VARIANTS)
def test_variants_as_simulated(way: str) -> None:
    sizes = standard_sizes()["mvt"]["mini"]
    kernel = misses.variant(misses.load_kernel("mvt"), sizes, way)
    assert misses.by_sets(kernel, sizes, CACHES) == misses.by_simulation(kernel, sizes, CACHES)


def test_two_kernels_at_large_are_those_published() -> None:
    """doitgen as it is; gemm, whose rows Haystack's model begins on lines."""
    table = misses.load_published()
    assert set(table) == {misses.published(name) for name in shipped("polybench")}
    doitgen = misses.by_sets(misses.load_kernel("doitgen"), standard_sizes()["doitgen"]["large"])
    assert doitgen == (table["doitgen"]["L1_miss_haystack"], table["doitgen"]["L2_miss_haystack"])
    sizes = standard_sizes()["gemm"]["large"]
    plain = misses.load_kernel("gemm")
    assert misses.by_sets(plain, sizes)[0] == table["gemm"]["L1_miss_FA_LRU_simulated"]
    model = (table["gemm"]["L1_miss_haystack"], table["gemm"]["L2_miss_haystack"])
    assert misses.by_sets(misses.variant(plain, sizes, "rows padded"), sizes) == model


def test_the_table_says_whence() -> None:
    row = misses.load_published()["gemm"]
    model = (row["L1_miss_haystack"], row["L2_miss_haystack"])
    ours = (row["L1_miss_FA_LRU_simulated"],) * 2
    found = misses.Found("gemm", row["accesses"], ours, "integer sets", 1.0, variants={"rows padded": model})
    text = misses.section([found, misses.Found("lu", 1, None, "none", 1.0, "too long")])
    line = next(line for line in text.split("\n") if line.startswith("| gemm "))
    assert line.endswith("| rows padded | the same |")
    assert "No answer: lu (too long)." in text
    unexplained = misses.Found("gemm", row["accesses"], (ours[0] + 7, ours[1]), "integer sets", 1.0)
    assert "| +7 |" in misses.section([unexplained])
