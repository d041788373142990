"""Strided walks, lines that come into the first cache, and stores that a convention leaves out: a made-up machine.

Lines and pages are counted by a plain simulation of sets, written here; times follow from the machine's rates by hand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from fractions import Fraction

import pytest

from roofdsl.incore.result import InCore, Step
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.array_placement import places
from roofdsl.machine.kept import found_again
from roofdsl.machine.model import Machine
from roofdsl.predict.expected import Expected
from roofdsl.predict.few_sets import Tight
from roofdsl.predict.hardware_traffic import Moving
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.strided import PLACED, Narrow, Walks, walks_of
from roofdsl.predict.strided_times import crowded_seconds, strided_seconds
from tests.predict.machines import kernel_of, machine, moving_of

LINE = 64
Access = tuple[int, bool]

TRANSPOSE = kernel_of(
    "kernel transpose(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
    "    for i in range(n), j in range(n):\n        B[j, i] = A[i, j]\n"
)
COLUMNS = kernel_of(
    "kernel columns(m, n):\n    in A: f64[m, n]\n    out s: f64[n]\n"
    "    for j in range(n):\n        s[j] = 0\n        for i in range(m):\n            s[j] += A[i, j]\n"
)
ADDED = kernel_of(
    "kernel added(m, n):\n    traffic once\n    in b: f64[n]\n    inout Z: f64[m, n]\n"
    "    for i in range(m), j in range(n):\n        Z[i, j] += b[j]\n"
)
NOTHING = InCore("by hand", (Step("", "", 0.0, 0.0),), 0.0)


def made(*more: str, crowded: str = "", first: str = "") -> Machine:
    """L1 of 16 sets of 4 ways, L2 of 128 sets of 8 ways; a strided line takes 1 ns from L2, 8 ns from memory."""
    strided = "strided 64 GB/s, strided_stores 128 GB/s"
    return machine(
        "peak f64 fma 10 TFLOP/s",
        f"cache L1 4 KiB, 6400 GB/s, line 64 B, ways 4{first}, write_allocate",
        f"cache L2 64 KiB, 640 GB/s, line 64 B, ways 8, {strided}{crowded}, write_allocate",
        "memory DRAM 16 GiB, 640 GB/s, strided 8 GB/s, strided_stores 16 GB/s",
        "clock 1 GHz",
        *more,
    )


PAGES = "core dispatch 4, window 100, waiting 50, pages 16, walk 50 cycles"


def lru(accesses: Iterable[Access], size: int, unit: int, ways: int) -> tuple[int, int]:
    """(units loaded, stored) by an LRU cache of `size` bytes that allocates for stores; dirty ones are stored last."""
    count = size // unit // ways
    sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(count)]
    loaded = stored = 0
    for address, write in accesses:
        line = address // unit
        own = sets[line % count]
        dirty = own.pop(line, None)
        if dirty is None:
            loaded += 1
            if len(own) == ways:
                stored += own.popitem(last=False)[1]
        own[line] = bool(dirty) or write
    return loaded, stored + sum(sum(own.values()) for own in sets)


def transposed(n: int) -> Iterable[Access]:
    at = places(TRANSPOSE, {"n": n})
    for i in range(n):
        for j in range(n):
            yield at["A"] + 8 * (i * n + j), False
            yield at["B"] + 8 * (j * n + i), True


def columns(m: int, n: int) -> Iterable[Access]:
    for j in range(n):
        total = 8 * (m * n + j)
        yield total, True
        for i in range(m):
            yield 8 * (i * n + j), False
            yield total, False
            yield total, True


def expected(
    given: Machine, kernel: object, values: dict[str, int], core: InCore = NOTHING
) -> tuple[Expected, Fraction]:
    """The expected time of one launch, whose causes add up exactly, and the bound."""
    options = Options()
    found = predict(kernel, values, given, options)  # type: ignore[arg-type]
    found = composed(found, core, given, moving=moving_of(found, kernel, values, given, options))  # type: ignore[arg-type]
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected, found.bound_s


def causes(found: Expected) -> dict[str, Fraction]:
    return {c.cause: c.share_s for c in found.causes}


@pytest.mark.parametrize("n", [32, 40, 56])
def test_a_transpose_takes_its_lines_from_where_the_sets_leave_them(n: int) -> None:
    """Columns of 32 and of 56 rows: rows of 256 B use 4 of 16 sets, which hold 16 lines; rows of 320 B use all sets."""
    near = lru(transposed(n), 4096, LINE, 4)
    far = lru(transposed(n), 65536, LINE, 8)
    streamed = n * n // 8  # lines of A
    loads, stores = near[0] - streamed, near[1]
    beyond = far[0] - streamed, far[1]
    lines_s = Fraction(
        LINE * (loads - beyond[0]), 64 * 10**9) + Fraction(LINE * (stores - beyond[1]), 128 * 10**9
    ) + Fraction(LINE * beyond[0], 8 * 10**9) + Fraction(LINE * beyond[1], 16 * 10**9)  # fmt: skip
    found, _ = expected(made(), TRANSPOSE, {"n": n})
    rest = Fraction(LINE * streamed, 640 * 10**9)
    assert found.expected_s == lines_s + rest
    crowded = causes(found).get("lines of B fall into few sets", Fraction(0))
    fully = lru(transposed(n), 4096, LINE, 64)
    assert (crowded > 0) == (near[0] > fully[0])


ROWS = kernel_of(
    "kernel rows(n):\n    in A: f64[6, n]\n    out B: f64[n]\n    for i in range(n):\n"
    "        B[i] = A[0, i] + A[1, i] + A[2, i] + A[3, i] + A[4, i] + A[5, i]\n"
)


FILLED = kernel_of(
    "kernel filled(n):\n    out A: f64[6, n]\n    for i in range(n):\n"
    + "".join(f"        A[{k}, i] = 0\n" for k in range(6))
)


@pytest.mark.parametrize("row", [128, 136, 256])
def test_streams_side_by_side_lose_their_lines_to_few_sets(row: int) -> None:
    """Six rows of 1024 B begin in one of 16 sets, which has 4 ways: every element is loaded with its line anew."""
    values = {"n": row}
    at = places(ROWS, values)
    accesses = [
        access
        for i in range(row)
        for access in [*((at["A"] + 8 * (k * row + i), False) for k in range(6)), (at["B"] + 8 * i, True)]
    ]
    near, fully = lru(accesses, 4096, LINE, 4), lru(accesses, 4096, LINE, 64)
    found, _ = expected(made(), ROWS, values)
    streamed = Fraction(sum(fully) * LINE, 640 * 10**9)
    # The window of one iteration has 6 lines in a set of 4 ways; random replacement finds a part of them again.
    lost = LINE * (near[0] - fully[0]) * (1 - Fraction(found_again(6, 4)).limit_denominator(10_000))
    assert (lost > 0) == (row % 128 == 0)
    assert found.expected_s == streamed + lost / (64 * 10**9)
    assert ("lines of A fall into few sets" in causes(found)) == (lost > 0)
    buffered = made(first=", buffers 2")
    assert expected(buffered, ROWS, values)[0].expected_s == streamed  # two lines are found on their way in


@pytest.mark.parametrize("row", [128, 136])
def test_stores_to_few_sets_have_a_rate_of_their_own(row: int) -> None:
    values = {"n": row}
    at = places(FILLED, values)
    accesses = [(at["A"] + 8 * (k * row + i), True) for i in range(row) for k in range(6)]
    near, fully = lru(accesses, 4096, LINE, 4), lru(accesses, 4096, LINE, 64)
    found, _ = expected(made(crowded=", crowded_stores 16 GB/s"), FILLED, values)
    lost = LINE * (near[1] - fully[1])
    assert (lost > 0) == (row == 128)
    streamed = Fraction(sum(fully) * LINE, 640 * 10**9)
    assert found.expected_s == streamed + Fraction(lost, 64 * 10**9) + Fraction(lost, 16 * 10**9)
    # As many stores hit as if the set held 5 lines, with random replacement; none is lost if it holds all 6.
    for lines in (5, 6):
        kept = made(crowded=", crowded_stores 16 GB/s", first=f", stored_lines {lines}")
        still = lost * (1 - Fraction(found_again(6, lines)).limit_denominator(10_000))
        assert (still == 0) == (lines == 6 or row == 136)
        hit, _ = expected(kept, FILLED, values)
        assert hit.expected_s == streamed + still / (64 * 10**9) + still / (16 * 10**9)


@pytest.mark.parametrize(("row", "sets"), [(128, 1), (64, 2), (16, 8), (136, 16)])
def test_loads_of_lines_in_few_sets_have_a_rate_of_their_own(row: int, sets: int) -> None:
    """The columns of rows of 8 `row` bytes, in an L1 of 16 sets: in one set they come from memory at 2 GB/s, in two at
    4, and in eight at 8 GB/s as all strided loads.
    """
    values = {"m": 4096, "n": row}
    slow = machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, ways 4, write_allocate",
        "cache L2 64 KiB, 640 GB/s, line 64 B, ways 8, strided 64 GB/s, write_allocate",
        "memory DRAM 16 GiB, 640 GB/s, strided 8 GB/s, crowded 2 GB/s",
        "clock 1 GHz",
    )
    found = predict(COLUMNS, values, slow)
    walks = walks_of(COLUMNS, values, slow, found.levels, warm=False)
    assert walks is not None and walks.narrow == (() if sets >= 8 else (Narrow(sets, Fraction(1), Fraction(0)),))
    loaded = LINE * 4096 * row
    assert all(one.loaded + more.loaded == loaded for one, more in zip(walks.lines, walks.crowded, strict=True))
    assert crowded_seconds(walks, slow) == Fraction(loaded, min(8, 2 * sets) * 10**9)


def test_stores_wait_for_their_set_wherever_their_lines_come_from() -> None:
    """A transpose whose columns lie in one set. From L2, a store takes 1 ns for its line and 4 ns more. If the line of
    a store comes from memory within 2 ns, the store takes 5 ns, too; if the line takes 8 ns, it takes 8 or 9 ns.
    """
    values = {"n": 128}
    for memory, each_ns in (
        ("strided 32 GB/s", 5),
        ("strided 8 GB/s", 8),
        ("strided 8 GB/s, strided_stores 64 GB/s", 9),
    ):
        slow = machine(
            "peak f64 fma 10 TFLOP/s",
            "cache L1 4 KiB, 6400 GB/s, line 64 B, ways 4, write_allocate",
            "cache L2 4 KiB, 640 GB/s, line 64 B, ways 4, strided 64 GB/s, crowded_stores 16 GB/s, write_allocate",
            f"memory DRAM 16 GiB, 640 GB/s, {memory}",
            "clock 1 GHz",
        )
        found = predict(TRANSPOSE, values, slow)
        walks = walks_of(TRANSPOSE, values, slow, found.levels, warm=False)
        assert walks is not None and walks.narrow == (Narrow(1, Fraction(1), Fraction(1)),)
        (near, far), (near_lost, far_lost) = walks.lines, walks.crowded
        assert near.stored + near_lost.stored == far.stored + far_lost.stored == LINE * 128 * 128
        assert crowded_seconds(walks, slow) == Fraction(128 * 128 * each_ns, 10**9)


PLANES = kernel_of(
    "kernel planes(n):\n    in x: f64[3, n]\n    out s: f64[n]\n    for i in range(n):\n        s[i] = 0\n"
    "        for c in range(3):\n            s[i] += x[c, i]\n"
)


def test_a_few_lines_of_one_set_do_not_wait_for_each_other() -> None:
    """Three lines of one set, which has 4 ways: the walk has a large step, but its lines find room."""
    slow = made(crowded=", crowded_stores 16 GB/s")
    found = predict(PLANES, {"n": 2048}, slow)
    walks = walks_of(PLANES, {"n": 2048}, slow, found.levels, warm=False)
    assert walks is not None and walks.arrays == ("x",) and walks.narrow == ()


MIXED = kernel_of(
    "kernel mixed(m):\n    in A: f64[m, 136]\n    out B: f64[m, 128]\n"
    "    for j in range(8), i in range(m):\n        B[i, j] = A[i, j]\n"
)


def test_loads_and_stores_in_few_sets_are_told_apart() -> None:
    """A column of A goes through all sets, one of B falls into one of 16. From L2, a line takes 1 ns, and a store of B
    takes 5 ns together with its line.
    """
    slow = machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, ways 4, write_allocate",
        "cache L2 64 MiB, 640 GB/s, line 64 B, ways 1024, strided 64 GB/s, crowded_stores 16 GB/s, write_allocate",
        "memory DRAM 16 GiB, 640 GB/s, strided 64 GB/s",
        "clock 1 GHz",
    )
    values = {"m": 1024}
    found = predict(MIXED, values, slow, Options(warm=True))
    walks = walks_of(MIXED, values, slow, found.levels, warm=True)
    assert walks is not None and walks.narrow == (Narrow(1, Fraction(1, 2), Fraction(1)),)
    lines = 1024 * 8
    assert crowded_seconds(walks, slow) == Fraction(lines * (1 + 5), 10**9)
    assert strided_seconds(walks, slow) == Fraction(2 * lines, 10**9), "without what few sets add"


def test_each_set_keeps_as_many_stored_lines() -> None:
    """Five lines in each of one, two or four sets of 4 ways, which keep as many as sets of 5 or of 3 ways would."""
    for sets in (1, 2, 4):
        tight = Tight(("A",), 5 * sets, sets, 4, True, buffers=0, stored_lines=5)
        assert tight.lost_stores() == 0 < tight.lost()
        fewer = Tight(("A",), 5 * sets, sets, 4, True, buffers=0, stored_lines=3)
        assert fewer.lost_stores() == 1 - Fraction(found_again(5, 3)).limit_denominator(10_000)
    assert Tight(("A",), 5, 1, 4).lost_stores() == 1, "it is not known how many are kept"


def test_pages_that_are_forgotten_are_looked_up() -> None:
    """64 rows of a page each, one element of each column: every access is to a page that 16 others pushed out."""
    m, n = 64, 512
    misses = lru(columns(m, n), 16 * 4096, 4096, 16)[0]
    found, _ = expected(made(PAGES), COLUMNS, {"m": m, "n": n})
    without, _ = expected(made(), COLUMNS, {"m": m, "n": n})
    assert misses >= m * n
    looked_up = misses * Fraction(50, 10**9)
    assert causes(found)["every access to A is to a different page"] == found.expected_s - without.expected_s > 0
    assert looked_up <= found.expected_s < looked_up * Fraction(1001, 1000)  # and the lines of `s`
    known, _ = expected(made(PAGES.replace("pages 16", "pages 128")), COLUMNS, {"m": m, "n": n})
    assert known.expected_s == without.expected_s


def test_streams_and_machines_without_the_rates_stay_as_they_were() -> None:
    copy = kernel_of(
        "kernel copy(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = x[i]\n"
    )
    found = predict(copy, {"n": 4096}, made())
    assert walks_of(copy, {"n": 4096}, made(), found.levels, warm=False) is None
    plain = machine("peak f64 1 GFLOP/s", "cache L1 4 KiB, 100 GB/s, line 64 B, ways 4", "memory DRAM 1 GiB, 1 GB/s")
    found = predict(TRANSPOSE, {"n": 32}, plain)
    assert walks_of(TRANSPOSE, {"n": 32}, plain, found.levels, warm=False) is None


def test_a_warm_transpose_that_fits_takes_nothing() -> None:
    """Both matrices lie in L1 without conflicts: a second launch finds every line."""
    given = made()
    values = {"n": 12}
    found = predict(TRANSPOSE, values, given, Options(warm=True))
    walks = walks_of(TRANSPOSE, values, given, found.levels, warm=True)
    assert walks is not None and all(v.loaded == v.stored == 0 for v in (*walks.lines, *walks.crowded))


@pytest.mark.parametrize("n", [32, 40, 64, 72])
def test_too_many_accesses_are_taken_by_whole_columns(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sets do to columns is what a simulation shows, where columns do not just fit (as 56 rows do)."""
    given = made(PAGES)
    simulated = of(given, n)
    monkeypatch.setattr("roofdsl.predict.strided.MOST_ACCESSES", 1000)
    found = of(given, n)
    assert found.assumptions[0] == f"sets and pages by whole columns: {2 * n * n:,} accesses are too many to simulate"
    assert found.lines == simulated.lines
    for one, by_columns, gone_through in zip(found.lines, found.crowded, simulated.crowded, strict=True):
        assert one.loaded + by_columns.loaded == pytest.approx(one.loaded + gone_through.loaded, rel=0.1)
        assert one.stored + by_columns.stored == pytest.approx(one.stored + gone_through.stored, rel=0.1)


def of(given: Machine, n: int) -> Walks:
    walks = walks_of(TRANSPOSE, {"n": n}, given, predict(TRANSPOSE, {"n": n}, given).levels, warm=False)
    assert walks is not None
    return walks


def test_whole_columns_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    m, n = 64, 512
    given = made(PAGES)
    levels = predict(COLUMNS, {"m": m, "n": n}, given).levels
    monkeypatch.setattr("roofdsl.predict.strided.MOST_ACCESSES", 1000)
    walks = walks_of(COLUMNS, {"m": m, "n": n}, given, levels, warm=False)
    assert walks is not None
    assert walks.pages == pytest.approx(lru(columns(m, n), 16 * 4096, 4096, 16)[0], rel=0.01)


def test_a_level_that_is_left_out_leaves_no_walks() -> None:
    found = predict(TRANSPOSE, {"n": 32}, made(), Options(levels="memory"))
    assert walks_of(TRANSPOSE, {"n": 32}, made(), found.levels, warm=False) is None


def test_what_cannot_be_simulated_counts_without_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise CommandError("too large to simulate")

    monkeypatch.setattr("roofdsl.simulate.hierarchy.simulate", refused)
    found = predict(TRANSPOSE, {"n": 32}, made())
    walks = walks_of(TRANSPOSE, {"n": 32}, made(), found.levels, warm=False)
    assert walks is not None
    assert walks.assumptions == ("sets and pages by whole columns: too large to simulate", PLACED)


def test_loads_wait_for_lines_that_come_in() -> None:
    given = machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, fill 32 GB/s, write_allocate",
        "memory DRAM 16 GiB, 64 GB/s",
    )
    copy = kernel_of(
        "kernel loaded(n):\n    in x: f64[n]\n    inout s: f64\n    for i in range(n):\n        s += x[i]\n"
    )
    n = 4096
    core = InCore("by hand", (Step("", "", 1e-9, 2e-6),), 0.0)
    found, bound = expected(given, copy, {"n": n}, core)
    moved = predict(copy, {"n": n}, given).levels[-1].bytes
    assert bound == Fraction(moved, 64 * 10**9)
    assert found.expected_s == Fraction(2e-6) + Fraction(moved, 32 * 10**9)
    assert "L1 serves no loads while lines come in" in causes(found)


def test_traffic_once_bounds_what_the_hardware_stores_besides() -> None:
    m, n = 256, 128
    given = made()
    found, bound = expected(given, ADDED, {"m": m, "n": n})
    once = 8 * (m * n + n)
    assert bound == Fraction(once, 640 * 10**9)  # an element counts once
    assert found.expected_s == Fraction(once + 8 * m * n, 640 * 10**9)  # and is loaded and stored
    assert [c.cause for c in found.causes] == [
        "written lines are also loaded or stored, which `traffic once` does not count"
    ]
    asked = predict(ADDED, {"m": m, "n": n}, given, Options(traffic="once"))
    assert moving_of(asked, ADDED, {"m": m, "n": n}, given, Options(traffic="once")) == Moving()


@pytest.mark.parametrize(("policy", "stated", "causes_are"), [
    ("write_allocate", "load_store", ["stores load their lines first, which `traffic load_store` does not count"]),
    ("no_write_allocate", "write_allocate", []),  # the hardware moves less than the kernel's convention counts
])  # fmt: skip
def test_a_convention_that_is_not_the_machines_policy(policy: str, stated: str, causes_are: list[str]) -> None:
    given = machine(
        "peak f64 fma 10 TFLOP/s", f"cache L1 4 KiB, 6400 GB/s, line 64 B, {policy}", "memory DRAM 16 GiB, 64 GB/s"
    )
    text = "kernel k(n):\n    traffic {}\n    in x: f64[n]\n    out y: f64[n]\n"
    text += "    for i in range(n):\n        y[i] = x[i]\n"
    core = InCore("by hand", (Step("", "", 1e-9, 0.0),), 0.0)
    found, _ = expected(given, kernel_of(text.format(stated)), {"n": 4096}, core)
    assert [c.cause for c in found.causes if c.share_s > 0] == causes_are


LOADED = kernel_of("kernel loaded(n):\n    in x: f64[n]\n    inout s: f64\n    for i in range(n):\n        s += x[i]\n")


@pytest.mark.parametrize("core_s", [1e-3, 2e-4, 1e-9])
def test_pages_of_the_memory_begin_anew_while_the_core_computes(core_s: float) -> None:
    """A page's first lines are waited for beside a computation; a core that has nothing to do runs ahead of them."""
    given = machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 4 GB/s, restart 200 ns",
    )
    n = 1 << 18
    found, bound = expected(given, LOADED, {"n": n}, InCore("by hand", (Step("", "", core_s, 0.0),), 0.0))
    pages = Fraction(8 * n + 8, 4096)  # with the sum, which is stored, too
    assert bound == Fraction(8 * n + 16, 4 * 10**9)
    lost = pages * Fraction(200, 10**9) * min(Fraction(1), Fraction(core_s) / bound)
    assert found.expected_s == max(bound, Fraction(core_s)) + lost
    assert causes(found)["DRAM is not prefetched across pages while the core computes"] == lost


def test_what_comes_from_farther_away_is_lost_there() -> None:
    """L2 has a restart too, but every line of this stream comes from the memory."""
    given = machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
        "cache L2 64 KiB, 640 GB/s, line 64 B, restart 50 ns, write_allocate",
        "memory DRAM 16 GiB, 4 GB/s, restart 200 ns",
    )
    n = 1 << 18
    core = InCore("by hand", (Step("", "", 1e-3, 0.0),), 0.0)
    found, _ = expected(given, LOADED, {"n": n}, core)
    assert found.expected_s == Fraction(1e-3) + Fraction(8 * n + 8, 4096) * Fraction(200, 10**9)


def test_stores_past_the_caches_are_no_part_of_the_walks() -> None:
    """B goes past the caches: the lines of C are as many as without it, from every level."""
    text = (
        "kernel both(n):\n    in A: f64[n, n]\n    out B, C: f64[n, n]\n"
        "    for i in range(n), j in range(n):\n        stream B[i, j] = A[i, j]\n        C[j, i] = A[i, j]\n"
    )
    alone = text.replace("        stream B[i, j] = A[i, j]\n", "        B[0, 0] = A[i, j]\n")  # arrays lie as before
    values, own = {"n": 96}, made()
    walks = []
    for each in (text, alone):
        levels = predict(kernel_of(each), values, own).levels
        walks.append(walks_of(kernel_of(each), values, own, levels, warm=False))
    with_b, without = walks
    assert with_b is not None and without is not None
    for one, other in zip(with_b.lines, without.lines, strict=True):
        assert other.stored >= LINE * 96 * 96 // 8 > 0
        assert abs(one.stored - other.stored) <= LINE and abs(one.loaded - other.loaded) <= LINE


@pytest.mark.parametrize("step", ["4", "16", "32", "k"])
def test_a_step_of_the_loop_is_a_factor_of_the_subscript(step: str) -> None:
    """Every 16th element, for example, by the loop's step (a number or a parameter) or by a factor of the subscript."""
    body = "    inout s: f64\n    for i in range({}):\n        s += A[{}]\n"
    n, by = 1 << 12, 16 if step == "k" else int(step)
    stepped = kernel_of(f"kernel spaced(n, k):\n    in A: f64[n]\n{body.format(f'0, n, {step}', 'i')}")
    factor = kernel_of(f"kernel spaced(m):\n    in A: f64[{by} * m]\n{body.format('m', f'{by} * i')}")
    values = {"n": n, "k": by}
    found, other = expected(made(PAGES), stepped, values)[0], expected(made(PAGES), factor, {"m": n // by})[0]
    assert found.expected_s == other.expected_s
    assert causes(found) == causes(other)
    walks = walks_of(stepped, values, made(), predict(stepped, values, made()).levels, warm=False)
    assert (walks is None) == (8 * by < LINE)
    if walks is not None:
        assert [line.loaded for line in walks.lines] == [n // by * LINE] * 2  # one line for each access
