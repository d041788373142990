"""Work that cores cannot share evenly: loops that run on one core, and iterations that do not come out even."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest

from roofdsl.incore.result import InCore, Step
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.plot.kinds.scaling import draw_scaling
from roofdsl.predict import in_core_time
from roofdsl.predict.divided_loops import UNEVEN, division, in_words
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import on_cores, scaling
from roofdsl.predict.options import Options
from roofdsl.predict.some_cores import some_cores
from roofdsl.tell.as_text import to_text
from roofdsl.tell.prediction import blocks
from tests.predict.machines import kernel_of, machine

CODE = Options(code=Code("stated"))

HALF = """
kernel half(n):
    inout x: f64[n]
    in b: f64[n]
    out a: f64[n]
    for i in range(1, n):
        x[i] += 0.5 * x[i - 1]
    for i in range(n):
        a[i] = 2 * b[i]
"""
"""The first loop is a chain: three accesses in each of n - 1 iterations. The second one can be shared: two."""

ROWS = """
kernel rows(k, n):
    inout A: f64[k, n]
    for i in range(k), j in range(1, n):
        A[i, j] += A[i, j - 1]
"""

STEPS = """
kernel steps(t, n):
    inout A: f64[n]
    in B: f64[n]
    for s in range(t):
        A[0] = s
        for i in range(n):
            A[i] += B[i]
"""


def busiest(text: str, cores: int, **sizes: int) -> Fraction:
    found = division(kernel_of(text), sizes)
    assert found is not None
    return found.busiest(cores)


@pytest.mark.parametrize("cores", [1, 2, 7, 8])
def test_a_loop_that_one_core_runs(cores: int) -> None:
    n, whole = 56, 3 * 55 + 2 * 56
    assert busiest(HALF, cores, n=n) == Fraction(3 * 55 + 2 * 56 // cores, whole)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 17])
@pytest.mark.parametrize("cores", [2, 3, 8])
def test_cores_get_whole_iterations(rows: int, cores: int) -> None:
    each = [0] * cores
    for row in range(rows):
        each[row % cores] += 1
    assert busiest(ROWS, cores, k=rows, n=5) == Fraction(max(each), rows)


def test_a_shared_loop_in_time_steps() -> None:
    """Each step has one store outside of the shared loop, and three accesses in each of its ten iterations."""
    assert busiest(STEPS, 4, t=6, n=10) == Fraction(1 + 3 * 3, 31)


UPPER = """
kernel upper(n, m):
    in A: f64[n, n]
    out y: f64[n]
    for i in range(m, n):
        y[i] = 0
        for j in range(i, n):
            y[i] += A[i, j]
"""

HALVES = """
kernel halves(n, m):
    inout A: f64[n, n]
    for s in range(m), i in range(0, n, 3):
        if 2 * i < n:
            for j in range(n):
                A[i, j] += 1
        else:
            A[i, i] += 1
"""


@pytest.mark.parametrize("cores", [2, 3, 4, 7, 64])
@pytest.mark.parametrize(("n", "m"), [(20, 1), (21, 2), (40, 3), (5, 4)])
def test_cores_get_iterations_that_are_not_alike(n: int, m: int, cores: int) -> None:
    """As OpenMP's static schedule deals them out: one run of iterations for each core, the longer ones first."""

    def most(each: list[int]) -> Fraction:
        short, more = divmod(len(each), cores)
        lengths = [short + 1] * more + [short] * (cores - more)
        dealt = iter(each)
        return Fraction(max(sum(next(dealt) for _ in range(length)) for length in lengths), sum(each))

    # An update is one access that reads and one that writes.
    assert busiest(UPPER, cores, n=n, m=m) == most([1 + 3 * (n - i) for i in range(m, n)])
    assert busiest(HALVES, cores, n=n, m=m) == most([2 * n if 2 * i < n else 2 for i in range(0, n, 3)])


SHRINKING = """
kernel shrinking(n, m):
    inout A: f64[n, n]
    for k in range(n):
        for i in range(k + 1, n, 2):
            A[i, k] /= A[k, k]
            for j in range(m):
                A[i, j] -= A[i, k]
"""

GROWING = """
kernel growing(n, m):
    inout A: f64[n, 2 * n + m], x: f64[n]
    for k in range(1, n):
        x[k] += x[k - 1]
        for i in range(k, 2 * k + m):
            A[k, i] += x[k]
"""


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 50])
@pytest.mark.parametrize(("n", "m"), [(9, 3), (30, 4), (41, 11)])
def test_a_shared_loop_that_an_outer_loop_shortens(n: int, m: int, cores: int) -> None:
    """Every execution of the loop is divided anew, in whole iterations."""

    def whole(rows: int) -> int:
        return ceil(rows / cores)

    shrinking = [len(range(k + 1, n, 2)) for k in range(n)]
    assert busiest(SHRINKING, cores, n=n, m=m) == Fraction(sum(map(whole, shrinking)), sum(shrinking))
    growing = [k + m for k in range(1, n)]
    alone = 3 * (n - 1)
    assert busiest(GROWING, cores, n=n, m=m) == Fraction(alone + 3 * sum(map(whole, growing)), alone + 3 * sum(growing))
    divided = division(kernel_of(SHRINKING), {"n": n, "m": m})
    assert divided is not None and not divided.is_unlike(cores)


def test_more_cores_than_iterations_take_no_longer_to_count() -> None:
    assert busiest(UPPER, 10**30, n=20, m=1) == busiest(UPPER, 19, n=20, m=1)


BLOCKS = """
kernel blocks(n, b):
    inout A: f64[n]
    for i0 in range(0, n, b):
        for i in range(i0, min(i0 + b, n)):
            A[i] += 1
"""


@pytest.mark.parametrize(("n", "busiest_has"), [(512, 64), (520, 64), (1290, 128)])
def test_few_iterations_are_not_called_unlike(n: int, busiest_has: int) -> None:
    """Eight or nine blocks of 64 do not suffice for 20 cores, and of 21 one core gets two: more blocks are the remedy,
    although the last block may be shorter."""
    divided = division(kernel_of(BLOCKS), {"n": n, "b": 64})
    assert divided is not None and divided.busiest(20) == Fraction(busiest_has, n)
    assert not divided.is_unlike(20) and "cores get whole iterations" in " ".join(in_words(divided, 20))
    assert divided.remedy(20) == "more iterations in the loops that cores share"


def test_long_iterations_are_called_unlike() -> None:
    """Of 800 rows of a triangle, the first of eight cores gets the 100 longest."""
    divided = division(kernel_of(UPPER), {"n": 800, "m": 1})
    assert divided is not None and divided.is_unlike(8)
    assert "iterations that they share are not alike" in " ".join(in_words(divided, 8))
    assert divided.remedy(8) == "iterations of the same length in the loops that cores share"


SKEWED = """
kernel skewed(t, n):
    inout A: f64[t + n]
    for s in range(t):
        for i in range(s, s + n):
            A[i] += 1
"""


def test_iterations_that_move_with_the_time_steps() -> None:
    """range(s, s + n) has n iterations in every step: three of them keep three of eight cores busy."""
    assert busiest(SKEWED, 8, t=5, n=3) == Fraction(1, 3)
    assert busiest(SKEWED, 4, t=5, n=10) == Fraction(3, 10)
    assert busiest(SKEWED.replace("s + n)", "n)"), 8, t=3, n=4) == Fraction(1 + 1 + 1, 4 + 3 + 2)  # it varies
    assert busiest(SKEWED.replace("s + n)", "min(n, 2 * s))"), 8, t=3, n=4) == Fraction(1, 8)  # counts as even


def test_no_loop_to_share_and_nothing_to_do() -> None:
    chain = "kernel chain(n):\n    inout x: f64[n]\n    for i in range(1, n):\n        x[i] += x[i - 1]\n"
    assert division(kernel_of(chain), {"n": 9}) is None
    assert busiest(ROWS, 4, k=3, n=1) == Fraction(1, 4)


def test_the_expected_time_is_that_of_the_busiest_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of work in the core: half on one core leaves 5/8 s on four cores, three rows on eight cores 1/3 s."""
    monkeypatch.setattr(in_core_time, "_core", lambda *_: InCore("one second", (Step("", "", 1.0, 0.0),), 0.0))
    eight = machine(
        "peak f64 80 GFLOP/s", "transfers overlap", "cache L1 32 KiB, 800 GB/s, line 64 B, copies 8",
        "memory DRAM 16 GiB, 100 GB/s", 'ceiling "one core, DRAM" DRAM 20 GB/s', "units 8",
    )  # fmt: skip

    def on(kernel: Kernel, cores: int, **sizes: int) -> Fraction:
        found = on_cores(kernel, sizes, eight, cores, CODE)
        assert found.expected is not None
        assert scaling(kernel, sizes, eight, [1, cores], CODE).times_s[-1] == found.expected.expected_s
        return found.expected.expected_s

    rows, half = kernel_of(ROWS), kernel_of(HALF.replace("range(1, n)", "range(2, n)").replace("2 * b[i]", "b[i]"))
    assert on(rows, 8, k=3, n=10) == Fraction(1, 3)
    assert on(half, 4, n=8) == Fraction(3 * 6 + 2 * 2, 3 * 6 + 2 * 8)
    told = on_cores(half, {"n": 8}, eight, 4, CODE)
    assert any("52.9 % are outside of the loops that cores share" in note for note in told.assumptions)
    assert told.expected is not None and UNEVEN in [c.cause for c in told.expected.causes]
    assert told.cores is not None and told.cores.shared is not None
    assert ceil(1 / told.cores.shared[1]) > 8, "more cores than have iterations of the second loop"
    assert (told.cores.saturation, told.cores.most) == (None, 8)
    figure = draw_scaling([scaling(half, {"n": 8}, eight, [1, 4], CODE)], ["half"], "title")
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["half: at most 8 cores have work"]


SCALED = """
kernel scaled(m, n):
    in A: f64[m, n]
    in c: f64
    out B: f64[m, n]
    for i in range(m), j in range(n):
        B[i, j] = c * A[i, j]
"""
CHAIN = "kernel chain(n):\n    inout x: f64[n]\n    for i in range(1, n):\n        x[i] = 2 * x[i - 1]\n"


@pytest.mark.parametrize(("text", "sizes", "cores", "row"), [
    (SCALED, {"m": 3, "n": 10**6}, 8, "at most 3 cores have work, which do not saturate DRAM"),
    (SCALED, {"m": 3, "n": 10**6}, 1, "at most 3 cores have work, which do not saturate DRAM"),
    (SCALED, {"m": 6, "n": 10**6}, 8, "n_s = 6: that many cores saturate DRAM"),
    (SCALED, {"m": 5, "n": 10**6}, 8, "at most 5 cores have work, which do not saturate DRAM"),
    (CHAIN, {"n": 10**6}, 1, "only one core has work, which does not saturate DRAM"),
])  # fmt: skip
def test_cores_without_work_do_not_saturate_the_memory(text: str, sizes: dict[str, int], cores: int, row: str) -> None:
    """One core gets 34.78 GB/s and all get 204.8, so six cores with the same rows saturate DRAM, and five do not: their
    time is that of one row on one core, which is longer than the transfers of all rows.
    """
    zen2 = load_machine("zen2_epyc_7452")
    found = on_cores(kernel_of(text), sizes, zen2, cores, CODE)
    shown = "\n".join(to_text(blocks(found)))
    assert f" {row}\n" in f"{shown}\n"
    assert found.cores is not None and found.cores.shared is not None and found.expected is not None
    if found.cores.saturation is None and cores > 1:
        assert found.expected.expected_s > found.cores.shared[1]


def test_without_a_number_of_cores_all_of_a_machine_share_the_loops() -> None:
    """With data in the first caches, three rows take as long as one on a core, and a chain has no time on 20 cores."""
    machine = load_machine("skylake_gold_6148")
    warm = Options(code=Code("stated"), warm=True)
    three, one = (predict(kernel_of(ROWS), {"k": k, "n": 1000}, machine, warm).expected for k in (3, 1))
    single = predict(kernel_of(ROWS), {"k": 1, "n": 1000}, some_cores(machine, 1), warm).expected
    assert three is not None and one is not None and single is not None
    assert float(three.core_s) == pytest.approx(float(one.core_s)) == pytest.approx(float(single.core_s))
    assert UNEVEN in [c.cause for c in three.causes]
    chain = "kernel chain(n):\n    inout x: f64[n]\n    for i in range(1, n):\n        x[i] += x[i - 1]\n"
    found = predict(kernel_of(chain), {"n": 1000}, machine, warm)
    assert found.expected is None and "`--cores 1` predicts that" in found.no_expected


def test_a_share_that_is_shown_as_even_is_called_even() -> None:
    """4096 rows among 6 cores: the busiest has 683, which is 1.0005 times an even share."""
    rows = kernel_of("kernel rows(k):\n    inout a: f64[k]\n    for i in range(k):\n        a[i] += 1\n")
    assert in_words(division(rows, {"k": 4096}), 6) == ("the work is divided evenly among 6 cores",)
    (found,) = in_words(division(rows, {"k": 7}), 6)
    assert found.startswith("the busiest of 6 cores has 1.714 times an even share")
