"""Traffic from the sets of blocks and waves, against enumerated sectors and an LRU cache that is gone through."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from math import gcd

import pytest

from roofdsl.counts.distinct_units import distinct_units
from roofdsl.counts.loop_intervals import LoopIntervals
from roofdsl.counts.sector_traffic import Transfers, transfers_at
from roofdsl.counts.thread_turns import leaves_gaps
from roofdsl.counts.traffic_at import NoAnswer, convention_totals, lines_by_simulation
from roofdsl.counts.working_set_traffic import lines_by_working_sets
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.sized import Sized
from roofdsl.loops.thread_blocks import Launch, block_by_block, in_waves, launch_of, on_one_copy
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import predict


def of(text: str) -> Kernel:
    return kernel(load_file(Source("k.roof", text)), "k")


MATMUL = of(
    "kernel k(n):\n    in A, B: f64[n, n]\n    out C: f64[n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        C[i, j] = 0\n        for k in range(n):\n            C[i, j] += A[i, k] * B[k, j]\n"
)
BLOCKED = of(
    "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n    tile i, j by 64, 64\n"
    "    parallel for i in range(n), j in range(n):\n        for k in range(n):\n"
    "            C[i, j] += A[i, k] * B[k, j]\n"
)  # a tile has more points than a block has threads, so threads take turns
FIVE_POINT = of(
    "kernel k(n):\n    assume n >= 4\n    in a: f64[n, n]\n    out b: f64[n, n]\n    tile j, i by 2, 16\n"
    "    parallel for j in range(1, n - 1), i in range(1, n - 1):\n"
    "        b[j, i] = a[j, i - 1] + a[j, i + 1] + a[j - 1, i] + a[j + 1, i] + a[j, i]\n"
)
STAR = of(
    "kernel k(n):\n    assume n >= 8\n    in a: f64[n, n, n]\n    out b: f64[n, n, n]\n    tile z, y, x by 2, 1, 8\n"
    "    parallel for z in range(2, n - 2), y in range(2, n - 2), x in range(2, n - 2):\n"
    "        b[z, y, x] = a[z, y, x] + a[z, y, x - 2] + a[z, y, x + 2] + a[z, y - 2, x] + a[z, y + 2, x]"
    " + a[z - 2, y, x] + a[z + 2, y, x]\n"
)
GEMV = of(
    "kernel k(n):\n    in A: f32[n, n], x: f32[n]\n    inout y: f32[n]\n    parallel for i in range(n):\n"
    "        for j in range(n):\n            y[i] += A[i, j] * x[j]\n"
)
TRANSPOSE = of(
    "kernel k(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        B[j, i] = A[i, j]\n"
)
COLUMNS = of(
    "kernel k(n):\n    in A: f64[n, n] col\n    inout y: f64[n]\n    parallel for i in range(n):\n"
    "        for j in range(n):\n            y[i] += A[i, j]\n"
)
STRIDED = of(
    "kernel k(n):\n    in X: f32[n, n], G: f32[3, 3]\n    out Y: f32[n // 2, n // 2]\n    assume n >= 8\n"
    "    parallel for i in range(n // 2 - 1), j in range(n // 2 - 1):\n        Y[i, j] = 0\n"
    "        for p in range(3), q in range(3):\n            Y[i, j] += X[2 * i + p, 2 * j + q] * G[p, q]\n"
)
PLANES = of(
    "kernel k(n):\n    in X: f64[n, n]\n    out V: f64[3, n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        V[0, i, j] = X[i, j]\n        V[1, i, j] = -X[i, j]\n        V[2, i, j] = 2 * X[i, j]\n"
)
PAIRS = of(
    "kernel k(n):\n    in X: f64[n, n]\n    out V: f64[2 * n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        V[2 * i, j] = X[i, j]\n        V[2 * i + 1, j] = -X[i, j]\n"
)
IN_PLACE = of(
    "kernel k(n):\n    inout V: f64[3, n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        V[1, i, j] = V[0, i, j]\n        V[0, i, j] = 2 * V[1, i, j]\n        V[2, i, j] = V[1, i, j]\n"
)
RESTRICTION = of(
    "kernel k(n):\n    in x: f64[2 * n, 2 * n]\n    out R: f64[n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        R[i, j] = x[2 * i, 2 * j] + x[2 * i, 2 * j + 1] + x[2 * i + 1, 2 * j] + x[2 * i + 1, 2 * j + 1]\n"
)
EVERY_THIRD = of(
    "kernel k(n):\n    in x: f64[3 * n, n] col\n    out R: f64[n, n]\n    parallel for i in range(n), j in range(n):\n"
    "        R[i, j] = x[3 * i, j] + x[3 * i + 1, j]\n"
)
SWEEP = of(
    "kernel k(n):\n    in a: f64[8, n]\n    out p: f64[8, n]\n    parallel for i in range(n):\n"
    "        p[0, i] = a[0, i]\n        for j in range(1, 8):\n            p[j, i] = a[j, i] + 0.5 * p[j - 1, i]\n"
)
ROWS = of(
    "kernel k(n):\n    in a: f64[n, 16]\n    out p, x: f64[n, 16]\n    parallel for i in range(n):\n"
    "        p[i, 0] = a[i, 0]\n        for j in range(1, 16):\n            p[i, j] = a[i, j] + 0.5 * p[i, j - 1]\n"
    "        x[i, 15] = p[i, 15]\n        for j in range(15):\n"
    "            x[i, 14 - j] = p[i, 14 - j] * x[i, 15 - j]\n"
)
SCAN = of(
    "kernel k(n):\n    inout p: f64[8, n]\n    parallel for i in range(n):\n        for j in range(2, 8):\n"
    "            p[j, i] = p[j - 1, i] + p[j - 2, i]\n"
)
KERNELS = {"sweep": SWEEP, "rows": ROWS, "scan": SCAN, "restriction": RESTRICTION,
           "every_third": EVERY_THIRD, "planes": PLANES, "pairs": PAIRS, "in_place": IN_PLACE, "strided": STRIDED,
           "matmul": MATMUL, "blocked": BLOCKED, "five_point": FIVE_POINT, "star": STAR, "gemv": GEMV,
           "transpose": TRANSPOSE, "columns": COLUMNS}  # fmt: skip
SIZES = {"sweep": 192, "rows": 128, "scan": 192, "restriction": 40, "every_third": 32, "planes": 48,
         "pairs": 40, "in_place": 40, "strided": 64, "matmul": 32, "blocked": 128, "five_point": 68, "star": 20,
         "gemv": 96, "transpose": 48, "columns": 96}  # fmt: skip


def launch(name: str, n: int | None = None) -> Launch:
    found = launch_of(KERNELS[name], {"n": n or SIZES[name]}, 64)
    assert found is not None
    return found


def by_working_sets(
    kernel: Kernel, n: int, cache: int, convention: str, cold: int = 0
) -> tuple[int | None, int | None]:
    at = Sized(kernel, {"n": n})
    return convention_totals(at, lines_by_working_sets(at, cache, 64, 32, cold=cold), convention)[:2]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_units_of_boxes_are_those_of_their_elements(seed: int) -> None:
    chance = random.Random(seed)
    element, unit = chance.choice([4, 8]), chance.choice([32, 64])
    dims = [chance.randint(2, 6), chance.randint(2, 6), unit // element * chance.randint(1, 3)]
    boxes = []
    for _ in range(chance.randint(1, 5)):
        ends = [sorted(chance.choices(range(d), k=2)) for d in dims]
        boxes.append(tuple((low, high) for low, high in ends))
    touched = {
        ((i * dims[1] + j) * dims[2] + k) * element // unit
        for box in boxes
        for i, j, k in product(*(range(low, high + 1) for low, high in box))
    }
    assert distinct_units(boxes, dims, element, unit) == len(touched)


def test_rows_that_are_no_whole_number_of_units() -> None:
    """Whole rows follow each other, so they are exact; parts of rows are averaged over where rows begin."""
    assert distinct_units([((0, 4), (0, 6))], [9, 7], 8, 32) == -(-5 * 7 * 8 // 32)
    exact = len({(i * 7 + j) * 8 // 32 for i in range(4) for j in range(2)})
    assert distinct_units([((0, 3), (0, 1))], [9, 7], 8, 32) == exact


@pytest.mark.parametrize("seed", range(40))
def test_rows_share_units(seed: int) -> None:
    """Rows that may be shorter than a unit, against their elements at every place where the first one may begin."""
    chance = random.Random(seed)
    element, unit = chance.choice([2, 4, 8]), chance.choice([32, 64, 128])
    dims = [chance.randint(2, 60), chance.randint(2, 40)]
    boxes = []
    for _ in range(chance.randint(1, 4)):
        low, high = sorted(chance.choices(range(dims[1]), k=2))
        begin, end = sorted(chance.choices(range(dims[0]), k=2))
        boxes.append(((begin, end), (low, high)))
    starts = range(0, unit, gcd(dims[1] * element, unit))
    counts = [
        len({
            (start + (i * dims[1] + j) * element) // unit
            for (begin, end), (low, high) in boxes
            for i, j in product(range(begin, end + 1), range(low, high + 1))
        })
        for start in starts
    ]  # fmt: skip
    whole = all(columns == (0, dims[1] - 1) for _, columns in boxes)
    assert distinct_units(boxes, dims, element, unit) == (min(counts) if whole else Fraction(sum(counts), len(counts)))


@pytest.mark.parametrize(("row", "element"), [("3", "0"), ("1, 3", "0, 2"), ("3, 1", "1, 0")])
def test_one_element_of_each_short_row(row: str, element: str) -> None:
    """y[i] += A[i, 0], with three elements in a row: all of A's sectors move once, not one for each row."""
    text = (
        f"kernel k(n):\n    in A: f32[n, {row}]\n    inout y: f32[n]\n"
        f"    for i in range(n):\n        y[i] += A[i, {element}]\n"
    )
    n = 2_000_000
    found = predict(of(text), {"n": n}, load_machine("a100_80"))
    assert [level.bytes / (20 * n) for level in found.levels] == pytest.approx([1, 1, 1], rel=0.005)


@pytest.mark.spread(5)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("convention", ["load_store", "write_allocate"])
def test_each_block_cold_where_its_set_fits(name: str, convention: str) -> None:
    """The same as the walk of blocks one by one, each with arrays of its own, in a cache that holds a block's data."""
    at, n = launch(name), SIZES[name]
    cache = 1 << 16
    walked = transfers_at(on_one_copy(at, 64), {"n": n}, Transfers(cache, 64, 32), convention)  # type: ignore[arg-type]
    found = by_working_sets(block_by_block(at), n, cache, convention, cold=len(at.blocks))
    assert found == (walked.loads_bytes, walked.stores_bytes)


@pytest.mark.spread(4, 30)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("blocks", [1, 3, 8])
@pytest.mark.parametrize("cache", [1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 20])
def test_waves_through_a_shared_cache(name: str, blocks: int, cache: int) -> None:
    """Between what LRU caches of half and of twice the size move: LRU evicts gradually, a set leaves at once."""
    wave, n = in_waves(launch(name), blocks), SIZES[name]
    found = by_working_sets(wave, n, cache, "load_store")
    few, many = (transfers_at(wave, {"n": n}, Transfers(c, 64, 32), "load_store") for c in (2 * cache, cache // 2))
    loads, stores = zip(*((t.loads_bytes, t.stores_bytes) for t in (few, many)), strict=True)
    for one, (low, high) in zip(found, (loads, stores), strict=True):
        assert low is not None and one is not None and high is not None
        assert low <= one <= high


@pytest.mark.parametrize("n", [120, 128])
def test_one_turn_of_tiles_larger_than_blocks_has_gaps(n: int) -> None:
    """In one turn, the blocks hold every eighth group of rows of C and every other one of columns, not all of C."""
    wave, cache = in_waves(launch("blocked", n), 4), 1 << 15
    walked = transfers_at(wave, {"n": n}, Transfers(cache, 64, 32), "load_store")
    assert by_working_sets(wave, n, cache, "load_store") == (walked.loads_bytes, walked.stores_bytes)


def test_what_only_late_iterations_read_after_it_is_written_is_loaded() -> None:
    """The first half of the iterations reads rows that the second half writes."""
    kernel = of(
        "kernel k(n):\n    inout p: f64[17, n]\n    parallel for i in range(n):\n        for j in range(1, 16):\n"
        "            p[j, i] = p[j - 1, i] + p[16 - j, i]\n"
    )
    at = launch_of(kernel, {"n": 192}, 64)
    assert at is not None
    walked = transfers_at(on_one_copy(at, 64), {"n": 192}, Transfers(1 << 16, 64, 32), "load_store")
    loads, stores = by_working_sets(block_by_block(at), 192, 1 << 16, "load_store", cold=len(at.blocks))
    assert loads is not None and walked.loads_bytes is not None
    assert walked.loads_bytes <= loads and stores == walked.stores_bytes


def test_references_beside_each_other_are_counted_as_one_box() -> None:
    """Each alone touches 500 rows, columns and planes apart from each other, which are too many boxes."""
    kernel = of(
        "kernel k(n):\n    in x: f64[2 * n, 2 * n, 2 * n]\n    out R: f64[n, n, n]\n"
        "    for i in range(n), j in range(n), k in range(n):\n        R[i, j, k] = "
        + " + ".join(f"x[2 * i + {a}, 2 * j + {b}, 2 * k + {c}]" for a, b, c in product(range(2), repeat=3))
        + "\n"
    )
    lines = {each.name: each for each in lines_by_working_sets(Sized(kernel, {"n": 500}), 1 << 20, 64, 32)}
    assert lines["x"].begun == 1000**3 * 8 // 32 and lines["R"].stored == 500**3 * 8 // 32


READ_BEFORE = {
    "far behind": (
        "    for j in range(64, n):\n        p[j] = p[j - 1] + p[j - 64]\n"
        "    for j in range(4, 60):\n        p[j] = 0\n"
    ),
    "ahead": "    for j in range(n):\n        p[j] = x[j]\n        y[j] = p[j + 1]\n",
    "an update ahead": "    for j in range(n):\n        p[j] = x[j]\n        p[j + 8] += x[j]\n",
    "far ahead": "    for j in range(n):\n        p[j] = x[j]\n        y[j] = p[j + 1000]\n",
    "a row ahead": "    for i in range(4), j in range(n):\n        q[i, j] = x[j]\n        y[j] = q[i + 1, j]\n",
    "ahead in each row": "    for i in range(4), j in range(n):\n        q[i, j] = x[j]\n        y[j] = q[i, j + 8]\n",
}


@pytest.mark.parametrize("name", READ_BEFORE)
def test_what_is_read_before_it_is_written_is_loaded(name: str) -> None:
    """Sectors that a loop reads at a distance, and in which it or a later loop writes what was read before."""
    arrays = "    in x: f64[n]\n    inout p: f64[2 * n]\n    inout q: f64[5, n + 8]\n    out y: f64[n]\n"
    at = Sized(of(f"kernel k(n):\n{arrays}{READ_BEFORE[name]}"), {"n": 1024})
    found, exact = lines_by_working_sets(at, 1 << 20, 64, 32), lines_by_simulation(at, 1 << 20, 32)
    for mine, theirs in zip(found, exact, strict=True):
        assert (mine.begun, mine.stored) == (theirs.begun, theirs.stored)
        assert theirs.begun_by_read <= mine.begun_by_read <= theirs.begun_by_read + 8


def test_a_recurrence_loads_only_what_it_does_not_write() -> None:
    """A sweep from row to row along a diagonal loads its first row, and the column beyond its last one."""
    text = "    inout u: f64[32, n]\n    for i in range(1, 32), j in range(1, n - 8):\n"
    at = Sized(of(f"kernel k(n):\n{text}        u[i, j] = 0.5 * (u[i - 1, j] + u[i - 1, j + 1])\n"), {"n": 128})
    (found,), (exact,) = lines_by_working_sets(at, 1 << 20, 64, 32), lines_by_simulation(at, 1 << 20, 32)
    assert (found.begun, found.begun_by_read, found.stored) == (exact.begun, exact.begun_by_read, exact.stored)
    assert exact.begun_by_read == 31 + 30


def test_each_loop_is_asked_for_gaps_once_however_many_sets_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loop touches is found thousands of times; whether its turns leave gaps, its text says."""
    asked: list[int] = []

    def counted(intervals: LoopIntervals, loop: For) -> bool:
        asked.append(id(loop))
        return leaves_gaps(intervals, loop)

    monkeypatch.setattr("roofdsl.counts.touched_sets.leaves_gaps", counted)
    launch = launch_of(MATMUL, {"n": 60}, 64)
    assert launch is not None
    lines_by_working_sets(Sized(in_waves(launch, 3), {"n": 60}), 4096, 128, 32)
    assert asked and len(asked) == len(set(asked))


def test_rows_of_an_odd_length_are_counted_at_every_alignment() -> None:
    n, cache = 203, 1 << 16
    at = launch("five_point", n)
    walked = transfers_at(on_one_copy(at, 64), {"n": n}, Transfers(cache, 64, 32), "load_store")
    loads, stores = by_working_sets(block_by_block(at), n, cache, "load_store", cold=len(at.blocks))
    assert loads == pytest.approx(walked.loads_bytes, rel=0.01)
    assert stores == pytest.approx(walked.stores_bytes, rel=0.01)


def test_a_stencil_of_five_points_on_an_a100() -> None:
    """A block of 256 x 2 loads four rows of its 512 points, and the two sectors beyond two of them; a wave, each once.

    `test_published_volumes.py` compares with Ernst's figures.
    """
    text = "    tile j, i by 2, 256\n    parallel for j in range(1, n - 1), i in range(1, n - 1):\n"
    body = "        b[j, i] = a[j, i - 1] + a[j, i + 1] + a[j - 1, i] + a[j + 1, i] + a[j, i]\n"
    wide = of("kernel k(n):\n    assume n >= 4\n    in a: f64[n, n]\n    out b: f64[n, n]\n" + text + body)
    n = 15_000
    at = launch_of(wide, {"n": n}, 512)
    assert at is not None
    kernels = Sized(block_by_block(at), {"n": n}), Sized(in_waves(at, 4 * 108), {"n": n})
    (l2, written), (hbm, stored) = (
        convention_totals(k, lines_by_working_sets(k, size, 128, 32, cold=cold), "load_store")[:2]
        for k, size, cold in zip(kernels, (192 * 1024 // 4, 20 << 20), (len(at.blocks), 0), strict=True)
    )
    assert None not in (l2, written, hbm, stored)
    assert l2 / n**2 == pytest.approx((4 * 2048 + 4 * 32) / 512, rel=0.01)  # type: ignore[operator]
    assert hbm / n**2 == pytest.approx(8.1, rel=0.02)  # type: ignore[operator]
    assert stored / n**2 == pytest.approx(8.0, rel=0.01)  # type: ignore[operator]


@pytest.mark.parametrize(
    "loops",
    [
        "for i in range(n):\n        B[i, i] = A[i, i]",
        "for i in range(n // 2), j in range(n):\n        B[2 * i, j] = A[i, j]",
    ],
)
def test_what_has_gaps_or_lies_on_a_diagonal_is_not_counted(loops: str) -> None:
    scattered = of(f"kernel k(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n    {loops}\n")
    with pytest.raises(NoAnswer):
        lines_by_working_sets(Sized(scattered, {"n": 1024}), 1024, 64, 32)


def test_only_nested_loops_start_cold() -> None:
    head = "kernel k(n):\n    in A: f64[n]\n    inout B: f64[n]\n    for i in range(n):\n        B[i] += A[i]\n"
    one, two = of(head), of(head + "    for j in range(n):\n        B[j] += 1\n")
    (a, b) = lines_by_working_sets(Sized(one, {"n": 64}), 1024, 64, 32, cold=1)
    assert (a.begun, b.begun, b.stored) == (64, 64, 64)  # each iteration finds nothing
    for other, cold in ((one, 2), (two, 1)):
        with pytest.raises(NoAnswer, match="the loops that start cold are not nested"):
            lines_by_working_sets(Sized(other, {"n": 64}), 1024, 64, 32, cold=cold)
