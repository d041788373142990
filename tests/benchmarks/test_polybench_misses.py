"""Misses of PolyBench's kernels by integer sets against the simulation, and the table that compares them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import polybench_misses as misses
from benchmarks import polybench_variants as variants
from roofdsl.counts.traffic_at import access_count
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.sized import Sized
from roofdsl.machine.find import shipped, standard_sizes

CACHES = (1 << 10, 4 << 10)
"""Small ones for MINI sizes, whose data would fit in those of LARGE."""

QUICK = ("atax", "bicg", "gemm", "gesummv", "mvt", "trisolv")


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("name", QUICK)
def test_by_sets_as_simulated(name: str) -> None:
    kernel, sizes = misses.load_kernel(name), standard_sizes()[name]["mini"]
    assert misses.by_sets(kernel, sizes, CACHES) == misses.by_simulation(kernel, sizes, CACHES)


@pytest.mark.spread(1)
@pytest.mark.parametrize("way", variants.VARIANTS)
def test_variants_as_simulated(way: str) -> None:
    sizes = standard_sizes()["mvt"]["mini"]
    kernel = variants.variant(misses.load_kernel("mvt"), sizes, way)
    assert misses.by_sets(kernel, sizes, CACHES) == misses.by_simulation(kernel, sizes, CACHES)


@pytest.mark.parametrize(
    ("name", "orders"),
    [
        # bicg: names 0 to 3 are the first loop's and its s; 4 to 7 loop, q, loop, s; then s is 8, r is 9, A is 10
        ("bicg", ["s", "q", "A s r s", "q A p q"]),
        # symm: 0 to 3 loop, loop, temp2, loop; C is 4, alpha 5, B 6, A 7, temp2 8 (of an update: once), B 9, A 10
        ("symm", ["", "C B A C", "A B", "C B A C"]),
    ],
)
def test_reads_in_the_order_of_their_names(name: str, orders: list[str]) -> None:
    body = variants.by_name(misses.load_kernel(name).body)
    found = [" ".join(a.element.array.name for a in accesses(s.statement)) for s in statements(body)]  # type: ignore[arg-type]
    assert found == orders


def test_the_order_of_names_gives_haystack_s_misses_of_bicg_at_large() -> None:
    row, sizes = misses.load_published()["bicg"], standard_sizes()["bicg"]["large"]
    model = (row["L1_miss_haystack"], row["L2_miss_haystack"])
    kernel = misses.load_kernel("bicg")
    assert misses.by_simulation(variants.variant(kernel, sizes, variants.HAYSTACK), sizes) == model
    assert misses.by_simulation(variants.variant(kernel, sizes, "target first, rows padded"), sizes) != model


def test_an_else_branch_in_every_iteration() -> None:
    """nussinov as the published simulation went through it has the number of accesses published with its misses."""
    kernel, sizes = misses.load_kernel("nussinov"), standard_sizes()["nussinov"]["large"]
    assert access_count(Sized(kernel, sizes)) == misses.load_published()["nussinov"]["accesses"]
    assert access_count(Sized(variants.variant(kernel, sizes, "else always"), sizes)) == 18_282_245_009


def test_a_variant_that_changes_nothing_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    row = misses.load_published()["jacobi-1d"]
    ours = (row["L1_miss_haystack"], row["L2_miss_haystack"])
    counted: list[str] = []

    def within(*given: Any) -> str:
        counted.append(given[-1])
        return "not counted"

    monkeypatch.setattr(misses, "_within", within)
    found = misses.explain(misses.Found("jacobi_1d", 1, ours, "simulation", 1.0))
    assert found.variants == {variants.HAYSTACK: ours}
    assert not counted
    other = misses.explain(misses.Found("jacobi_1d", 1, (ours[0] + 1, ours[1]), "simulation", 1.0))
    assert set(other.variants) == set(variants.VARIANTS)  # all are the kernel as it is
    misses.explain(misses.Found("bicg", 1, ours, "simulation", 1.0))
    assert "rows padded" in counted


@pytest.mark.thorough
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
    assert misses.by_sets(variants.variant(plain, sizes, "rows padded"), sizes) == model


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
