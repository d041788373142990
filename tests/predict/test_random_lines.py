"""The time of randomly accessed lines, on a made-up machine: lines and times by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from roofdsl.counts.data_traffic import chosen_arrays
from roofdsl.incore.result import InCore, Step
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.matrices.attach import with_data
from roofdsl.predict.data_pass import data_traffic
from roofdsl.predict.expected import Expected
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.options import Options
from roofdsl.predict.random_lines import Scattered, scattered_seconds
from roofdsl.predict.strided import Lines
from tests.models.shipped import model
from tests.oracle.loading import kernel_of
from tests.predict.machines import machine, moving_of

LINE = 64
NOTHING = InCore("by hand", (Step("", "", 0.0, 0.0),), 0.0)

GATHER = kernel_of("""kernel gather(n, m):
    in place: i32[n] index(m), x: f64[m]
    out y: f64[n]
    for i in range(n):
        y[i] = x[place[i]]
""")


def made(random: str = ", random 32 GB/s", far: str = ", random 4 GB/s", core: tuple[str, ...] = ()) -> Machine:
    """L1 of 4 KiB, L2 of 32 KiB: a randomly accessed line takes 2 ns from L2 and 16 ns from memory, one of a stream 1
    ns."""
    return machine(
        "peak f64 fma 10 TFLOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
        f"cache L2 32 KiB, 64 GB/s, line 64 B{random}, write_allocate",
        f"memory DRAM 16 GiB, 64 GB/s{far}",
        "clock 1 GHz",
        *core,
    )


def expected(given: Machine, kernel: Kernel, sizes: dict[str, int]) -> Expected:
    """The expected time of one launch, whose causes add up exactly."""
    options = Options()
    found = predict(kernel, sizes, given, options)
    found = composed(found, NOTHING, given, moving=moving_of(found, kernel, sizes, given, options))
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found.expected


def with_places(places: list[int], m: int) -> tuple[Kernel, dict[str, int]]:
    from roofdsl.loops.index_data import IndexData

    values = np.array(places, dtype=np.int64)
    return replace(GATHER, data=IndexData({"place": values}, ())), {"n": len(places), "m": m}


def test_each_line_takes_the_time_of_the_level_that_it_comes_from() -> None:
    """Every 16th element, so lines two apart, twice in the same order: 256 lines, which L2 holds and L1 does not."""
    order = np.random.default_rng(1).permutation(256)
    kernel, sizes = with_places([16 * int(k) for k in order] * 2, 4096)
    streams = 512 * 8 // LINE + 512 * 4 // LINE  # lines of y and of its offsets
    found = expected(made(), kernel, sizes)
    gathered = (256 * 16 + 256 * 2) * Fraction(1, 10**9)
    written = Fraction(64, 10**9)  # lines of y are loaded and stored
    assert found.expected_s == gathered + streams * Fraction(1, 10**9) + written
    cause = next(c for c in found.causes if "randomly accessed lines" in c.cause)
    assert cause.cause == "randomly accessed lines of x, which the data choose" and cause.share_s > 0


def test_streams_cost_no_more() -> None:
    """Columns of a band come one line after the other, whatever the rates of randomly accessed lines."""
    for source in ("banded:n=3000,w=3", "banded:n=3000,w=0"):
        kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={source}"], {})
        slow, plain = expected(made(far=", random 1 GB/s"), kernel, sizes), expected(made("", ""), kernel, sizes)
        assert slow.expected_s - plain.expected_s <= Fraction(64, 10**9)  # the first line


def test_lines_from_the_third_cache_add_to_streams_from_memory() -> None:
    """5,000 randomly accessed lines of which 1,000 come from memory, beside streams of 2,500 lines, 2,000 from
    memory."""
    lines = {"L2": 5000, "L3": 5000, "DRAM": 1000}
    streams = {"L2": 2500, "L3": 2500, "DRAM": 2000}
    rates = {"L2": 64, "L3": 32, "DRAM": 16}
    for beside, alone in (("", 2000 * 4), (", beside 32 GB/s", 2000 * 4 + 500 * 2)):
        given = machine(
            "peak f64 fma 10 TFLOP/s",
            "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
            "cache L2 32 KiB, 64 GB/s, line 64 B, random 32 GB/s, write_allocate",
            f"cache L3 1 MiB, 32 GB/s, line 64 B, random 16 GB/s{beside}, write_allocate",
            "memory DRAM 16 GiB, 16 GB/s, random 4 GB/s",
        )
        levels = [
            LevelTime(name, LINE * (lines[name] + streams[name]), Fraction(rate * 10**9), loads_bytes=0, stores_bytes=0)
            for name, rate in rates.items()
        ]
        levels = [replace(level, loads_bytes=level.bytes) for level in levels]
        scattered = Scattered(("x",), tuple(Lines(name, LINE * n, 0) for name, n in lines.items()))
        taken, _ = scattered_seconds(scattered, [(level, level.time_s) for level in levels], given)
        assert taken * 10**9 == 4000 * 4 + 1000 * 16 + alone, "4 ns a line from L3, 16 ns from memory"
        few = Scattered(("x",), (Lines("L2", LINE * 5000, 0), Lines("L3", 0, 0), Lines("DRAM", 0, 0)))
        near, _ = scattered_seconds(few, [(level, level.time_s) for level in levels[:1]], given)
        assert near * 10**9 == 5000 * 2 + 2500, "lines from L2 wait in the buffers of L1 only"


def test_rates_of_strided_lines_stand_in() -> None:
    order = np.random.default_rng(1).permutation(4096)
    kernel, sizes = with_places([8 * int(k) for k in order], 32768)
    stated = expected(made(), kernel, sizes)
    strided = expected(made(", strided 32 GB/s", ", strided 4 GB/s"), kernel, sizes)
    without = expected(made("", ""), kernel, sizes)
    assert stated.expected_s == strided.expected_s > 3 * without.expected_s


def test_stores_to_lines_in_no_order_add_to_their_loads() -> None:
    """Bins of a line each, twice what L2 holds: all come from memory, and go back to it at the rate of such stores."""
    text = kernel_of("""kernel counted(n, m):
    in bin: i32[n] index(m)
    inout count_of: f64[m]
    for i in range(n):
        count_of[bin[i]] += 1
""")
    from roofdsl.loops.index_data import IndexData

    bins = 16 * np.random.default_rng(2).permutation(1024)  # lines two apart, so that none continues a stream
    kernel = replace(text, data=IndexData({"bin": bins}, ()))
    sizes = {"n": 1024, "m": 16384}
    loads = expected(made(), kernel, sizes)
    both = expected(made(far=", random 4 GB/s, random_stores 8 GB/s"), kernel, sizes)
    assert both.expected_s - loads.expected_s == 1024 * Fraction(8, 10**9)


def test_pages_in_no_order_are_looked_up() -> None:
    """64 pages, of which the core knows 4: a walk of 50 ns at nearly every access."""
    order = np.random.default_rng(4).integers(0, 64, 3000)
    kernel, sizes = with_places([512 * int(k) for k in order], 32768)
    pages = ("core dispatch 4, window 100, waiting 50, pages 4, walk 50 cycles",)
    found = expected(made(core=pages), kernel, sizes)
    share = next(c.share_s for c in found.causes if c.cause == "randomly accessed pages of x")
    assert share > 0 and found.expected_s > 2500 * Fraction(50, 10**9)


def test_what_is_chosen() -> None:
    assert chosen_arrays(model("spmv_coo")) == ("x", "y")
    assert chosen_arrays(model("embedding_lookup")) == ("table",)
    assert chosen_arrays(model("gemv")) == ()


def test_one_pass_counts_what_separate_runs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """All levels, the footprint and the memory behind what a core keeps of the last cache, cold and warm."""
    holding = machine(
        "peak f64 fma 10 TFLOP/s",
        "peak i32 10 TOP/s",
        "cache L1 4 KiB, 6400 GB/s, line 64 B, write_allocate",
        "cache L2 32 KiB, 64 GB/s, line 64 B, holds 20 KiB, write_allocate 0.3",
        "memory DRAM 16 GiB, 64 GB/s",
        "clock 1 GHz",
    )
    sources = {
        "spmv_csr": "rowptr,col=powerlaw:n=900,row=8,exponent=1,seed=1",
        "spmv_coo": "row,col=random:n=700,row=8,seed=1",
        "histogram": "bin=powerlaw:n=5000,count=9000,exponent=1,seed=1",
    }
    for name, source in sources.items():
        kernel, sizes = with_data(model(name), [source], {})
        for warm in (False, True):
            options = Options(warm=warm)
            counted = data_traffic(kernel, sizes, holding, warm=warm)
            assert counted is not None
            found = predict(kernel, sizes, holding, options)
            moving = moving_of(found, kernel, sizes, holding, options)
            with monkeypatch.context() as separate:
                separate.setattr("roofdsl.predict.data_pass.data_traffic", lambda *_, **__: None)
                assert predict(kernel, sizes, holding, options) == found
                assert moving_of(found, kernel, sizes, holding, options).more == moving.more
            assert warm or found.levels[-1].bytes > 0


def test_when_there_is_no_pass() -> None:
    """Affine kernels have no data, and lines of 48 B are no power of two: each cache is then simulated on its own."""
    assert data_traffic(model("gemv"), {"n": 10, "m": 10}, made(), warm=False) is None
    kernel, sizes = with_data(model("spmv_csr"), ["rowptr,col=random:n=300,row=8,seed=1"], {})
    odd = machine("peak f64 10 GFLOP/s", "cache L2 4800 B, 64 GB/s, line 48 B", "memory DRAM 16 GiB, 64 GB/s")
    assert data_traffic(kernel, sizes, odd, warm=False) is None
    assert predict(kernel, sizes, odd).levels[-1].bytes > 0


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, sizes = with_data(model("spmv_csr"), ["rowptr,col=random:n=3000,row=8,seed=1"], {})
    monkeypatch.setattr("roofdsl.budget.available_bytes", lambda: 100_000)
    with pytest.raises(CommandError, match=r"needs .* GiB of memory, and .* GiB are available"):
        predict(kernel, sizes, made())
