"""The best replacement against brute force, against every replacement there is, and against LRU."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.simulate.best_curve import best_curve
from roofdsl.simulate.best_replacement import best_replacement
from roofdsl.simulate.cache_levels import CacheLevel, WriteMiss
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.hierarchy import simulate
from tests.oracle import best as oracle
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

MISSES: tuple[tuple[str, WriteMiss], ...] = (("load_store", "claim"), ("write_allocate", "allocate"))


def largest_element(kernel: Kernel) -> int:
    return max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)


def opt(
    line: int, ways: int, sets: int, *, bypass: bool = False, whole: bool = False, miss: WriteMiss = "allocate"
) -> CacheLevel:
    return CacheLevel("Z", line * ways * sets, line, None if whole else ways, "opt", write_miss=miss, bypass=bypass)


def agree(kernel: Kernel, size: dict[str, int], rng: Random) -> None:
    """With random lines and sets, for some numbers of ways: counts, and all ways at once."""
    line = largest_element(kernel) * rng.choice((1, 1, 2, 4))
    sets = rng.choice((1, 1, 2, 3, 5))
    accesses = oracle.trace(kernel, size, line)
    most = max(2, len({a.line for a in accesses}) // sets + 1)
    lru = miss_curve(kernel, size, line, sets=sets)
    for bypass in (False, True):
        curve = best_curve(kernel, size, line, sets=sets, bypass=bypass)
        assert curve.accesses == len(accesses)
        for ways in sorted({1, *(rng.randint(2, most) for _ in range(3))}):
            shown = f"{kernel.source.text}{size} line={line} ways={ways} sets={sets} bypass={bypass}"
            want = oracle.belady(accesses, ways, sets=sets, bypass=bypass)
            got = best_replacement(kernel, size, opt(line, ways, sets, bypass=bypass))
            seen = oracle.Counts(got.accesses, got.misses, got.begun_by_write, got.stored)
            assert seen == want, shown
            for convention, miss in MISSES:
                level = opt(line, ways, sets, bypass=bypass, whole=sets == 1, miss=miss)
                whole = simulate(kernel, size, [level])
                assert whole.levels[0].loads == want.misses - (want.begun_by_write if miss == "claim" else 0)
                assert whole.levels[0].stores == want.stored
                at = line * ways * sets
                assert curve.misses(at) == want.misses, shown
                assert curve.loads(at, convention) == whole.load_bytes(0), shown  # type: ignore[arg-type]
                assert curve.stores(at, convention) == whole.store_bytes(0), shown  # type: ignore[arg-type]
                assert want.misses <= lru.misses(at), shown
                # No theorem, but so it is in all of these kernels.
                assert whole.bytes(0) <= lru.bytes(at, convention), shown  # type: ignore[arg-type]


@pytest.mark.spread(8, 150)
@pytest.mark.parametrize("seed", range(300))
def test_random_kernels(seed: int) -> None:
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    rng = Random(seed)
    agree(kernel, rng.choice(case.sizes), rng)


@pytest.mark.spread(4)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_families(family: Family) -> None:
    kernel = apply(kernel_of(family.text))
    agree(kernel, family.sizes[0], Random(3))


@pytest.mark.spread(6)
@pytest.mark.parametrize("seed", range(40))
def test_no_replacement_misses_less_often(seed: int) -> None:
    """Lines so long that a kernel has few of them, and all that a cache can hold is tried."""
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    size = case.sizes[0]
    line = largest_element(kernel)
    while len({a.line for a in oracle.trace(kernel, size, line)}) > 8:
        line *= 2
    accesses = oracle.trace(kernel, size, line)[:400]
    for ways in (1, 2, 3, 4):
        for bypass in (False, True):
            assert oracle.belady(accesses, ways, bypass=bypass).misses == oracle.fewest_misses(
                accesses, ways, bypass=bypass
            )


def test_more_than_one_chunk_and_every_size() -> None:
    """matmul at n = 70: 1.4 million accesses; single sizes and all sizes, two ways to the same counts."""
    kernel = kernel_of(next(f.text for f in families() if f.name == "matmul_ijk"))
    curve = best_curve(kernel, {"n": 70}, 64)
    lru = miss_curve(kernel, {"n": 70}, 64)
    for lines in (1, 5, 60, 300, 700, 5000):
        got = best_replacement(kernel, {"n": 70}, opt(64, lines, 1, whole=True))
        assert (got.misses, got.accesses) == (curve.misses(64 * lines), 4 * 70**3)
        assert got.misses <= lru.misses(64 * lines)
    assert curve.bytes(None, "load_store") == lru.bytes(None, "load_store")


def test_a_cyclic_sweep_is_where_lru_fails() -> None:
    """n + 1 lines over and over in a cache of n: LRU always misses, the best once in n times. With bypass, one line
    misses in each sweep: n lines stay, and that one goes past them.
    """
    head = "kernel k(t, n):\n    in x: f64[n + 1]\n    inout s: f64\n"
    text = head + "    for r in range(t), i in range(n + 1):\n        s += x[i]\n"
    kernel, size = kernel_of(text), {"t": 21, "n": 20}
    assert simulate(kernel, size, [CacheLevel("Z", 160, 8)]).levels[0].misses == 21 * 21
    # After 20 cold misses, one miss every 20 accesses: the line that just came in is needed last, and leaves next.
    assert simulate(kernel, size, [opt(8, 20, 1, whole=True)]).levels[0].misses == 20 + -(-(21 * 21 - 20) // 20)
    assert simulate(kernel, size, [opt(8, 20, 1, whole=True, bypass=True)]).levels[0].misses == 20 + 21


def test_fewest_misses_are_not_always_fewest_bytes() -> None:
    """Two lines. x[2] replaces x[1], whose next use is later than that of x[0]; so x[1] is loaded again: 4 loads and a
    store. x[0] is overwritten next, without a load: had it been replaced, 3 loads and a store would do.
    """
    text = (
        "kernel k(n = 3):\n    inout x: f64[n]\n    inout s: f64\n    for i in range(3):\n        s += x[i]\n"
        "    for i in range(1):\n        x[0] = 1.0\n        s += x[1]\n"
    )
    level = simulate(kernel_of(text), {"n": 3}, [opt(8, 2, 1, whole=True, miss="claim")]).levels[0]
    assert (level.misses, level.loads, level.stores) == (4, 4, 1)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [CacheLevel("L1", 4096, 64, None, "opt"), CacheLevel("L2", 8192, 64)],
            "in a single cache, and there are 2: L1, L2",
        ),
        ([CacheLevel("L1", 4096, 64, None, "opt", sector_bytes=32)], "whole lines"),
        ([CacheLevel("L1", 4096, 64, None, "opt", write="through")], "whole lines"),
        ([CacheLevel("L1", 4096, 64, None, "opt", write_miss="around")], "whole lines"),
        ([CacheLevel("L1", 4096, 64, bypass=True)], "--policy opt"),
        ([CacheLevel("L1", 4096, 64, 7, "opt")], "does not divide"),
    ],
)
def test_what_is_not_simulated(levels: list[CacheLevel], message: str) -> None:
    gemv = kernel_of(next(f.text for f in families() if f.name == "gemv"))
    with pytest.raises(CommandError, match=message):
        simulate(gemv, {"n": 4}, levels)


def test_a_kernel_without_arrays_has_no_lines() -> None:
    scalars = kernel_of("kernel k(n):\n    inout s: f64\n    for i in range(n):\n        s += 1.5\n")
    (level,) = simulate(scalars, {"n": 5}, [CacheLevel("c", 256, 64, policy="opt")]).levels
    assert (level.hits, level.misses, level.store_bytes) == (0, 0, 0)
    assert best_curve(scalars, {"n": 5}, 64).misses(1) == 0


def test_limits_of_memory() -> None:
    gemv = kernel_of(next(f.text for f in families() if f.name == "gemv"))
    with pytest.raises(CommandError, match="keeps all of them in memory"):
        best_replacement(gemv, {"n": 600}, opt(64, 8, 1), memory_bytes=1 << 21)
    with pytest.raises(CommandError, match="too many for the best replacement"):
        best_replacement(gemv, {"n": 10**6}, opt(64, 8, 1), memory_bytes=1 << 21)
    with pytest.raises(CommandError, match="too many for the best replacement"):
        best_curve(gemv, {"n": 10**6})
    with pytest.raises(CommandError, match="cannot have 0 sets"):
        best_curve(gemv, {"n": 4}, sets=0)
    head = "kernel k(n):\n    in B: f32[n]\n    out C: f64[n]\n"
    mixed = kernel_of(head + "    for i in range(n):\n        C[i] = B[i]\n")
    with pytest.raises(CommandError, match="lines of one size"):
        best_curve(mixed, {"n": 4})
    outside = "kernel k(n):\n    out y: f64[n]\n    for i in range(n):\n        y[i + n] = 0.0\n"
    with pytest.raises(CommandError, match="outside array y"):
        best_replacement(kernel_of(outside), {"n": 3}, opt(8, 2, 1))


# ---- the command ----


PAGE = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text(encoding="utf-8")


@pytest.fixture
def sheet(tmp_path: Path) -> str:
    """The kernel of the page, in a file."""
    path = tmp_path / "sheet.roof"
    (text,) = re.findall(r"```roof\n(kernel sheet.*?)```", PAGE, re.S)
    path.write_text(text)
    return str(path)


Command = Callable[..., str]


@pytest.fixture
def simulated(capsys: pytest.CaptureFixture[str]) -> Command:
    """What `roofdsl simulate` prints."""

    def command(*args: str) -> str:
        assert run(["simulate", *args]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return command


def test_two_rows_are_enough_for_the_best_replacement(sheet: str, simulated: Command) -> None:
    """A class sheet (docs/simulate.md): with two rows of n words, every word is loaded once; LRU loads three per point.

    By hand: all but the four corners are touched, and (n - 2)^2 points are stored. At 2 Gword/s and 8 GFLOP/s, a point
    takes max(2 words / 2, 6 FLOP / 8) = 1 ns; with LRU, max(4 / 2, 6 / 8) = 2 ns.
    """
    n = 100
    options = (sheet, "--set", f"n={n}", "--json", "--cache")
    best = json.loads(simulated(*options, f"{2 * n * 8}B", "--policy", "opt"))["levels"][0]
    lru = json.loads(simulated(*options, f"{2 * n * 8}B"))["levels"][0]
    assert (best["policy"], best["bypass"], lru["policy"]) == ("opt", False, "lru")
    points = (n - 2) ** 2
    assert (best["loads"], best["stores"]) == (n * n - 4, points)
    # Under LRU, the point below is new, the one above has left, and so has the one on the right: 3 loads.
    assert lru["stores"] == points
    assert abs(lru["loads"] - 3 * points) <= 4 * n
    three = json.loads(simulated(*options, f"{3 * n * 8}B"))["levels"][0]
    assert (three["loads"], three["stores"]) == (n * n - 4, points)


def test_the_page_shows_what_is_printed(sheet: str, simulated: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(sheet).parent)
    shown = re.findall(r"```console\n\$ roofdsl simulate (sheet.*?)\n(.*?)\n```", PAGE, re.S)
    assert len(shown) == 2
    for line, printed in shown:
        assert simulated(*shlex.split(line)).rstrip() == printed


def test_both_replacements_in_a_table(sheet: str, simulated: Command) -> None:
    shown = simulated(sheet, "--set", "n=20", "--histogram", "--policy", "opt")
    assert "best: best replacement (Belady's MIN), in caches of the same size" in shown
    assert "best Q" in shown
    found = json.loads(simulated(sheet, "--set", "n=20", "--histogram", "--policy", "opt", "--bypass", "--json"))
    assert found["best_curve"]["policy"] == "opt" and found["best_curve"]["bypass"] is True
    assert found["best_curve"]["bytes"][-1] == found["curve"]["bytes"][-1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("gemv --cache 4KiB --set n=9 --bypass", "give --policy opt"),
        ("gemv --machine zen2_epyc_7452 --set n=9 --policy opt", "in a single cache, and there are 3"),
        ("gemm_f16 --cache 4KiB --policy opt --set m=9,n=9,k=9", "give a --line"),
        ("gemv --cache 4KiB --sector 32B --line 64B --policy opt --set n=9", "whole lines"),
        ("gemv --cache 4KiB --sector 32B --set n=9", "give the size of a line as well, as in --line 64B"),
    ],
)
def test_errors_of_the_command(args: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *args.split()]) == 2
    assert message in capsys.readouterr().err
