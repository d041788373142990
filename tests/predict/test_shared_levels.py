"""Cores that run together: what they get from the levels that they share, by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.incore.result import InCore, Step
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict import in_core_time
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import on_cores, scaling
from roofdsl.predict.options import Options
from tests.predict.machines import kernel_of, machine

CODE = Options(code=Code("stated"))
TRIAD = (
    "kernel triad(n):\n    in A, C: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        {}B[i] = A[i] + C[i]\n"
)
HALF_ALONE = """
kernel half(n):
    in A: f64[n]
    inout x: f64[n]
    out B: f64[n]
    for i in range(1, n):
        x[i] = 0.5 * x[i - 1]
    for j in range(1, n):
        B[j] = A[j]
"""


@pytest.fixture(autouse=True)
def _free_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that takes no time: only transfers count."""
    core = InCore("nothing", (Step("", "", 0.0, 0.0),), 0.0)
    monkeypatch.setattr(in_core_time, "_core", lambda *_: core)


def eight(*lines: str) -> Machine:
    stated = (
        "peak f64 80 GFLOP/s",
        "transfers overlap",
        "units 8",
        "instruction load 64 bits, throughput 1 cycle",
        *lines,
    )
    return machine(*stated)


def expected_us(kernel: Kernel, n: int, of: Machine, cores: int, options: Options = CODE) -> float:
    """The expected time in us; with all cores, it is the same without their number, and in the figure."""
    found = on_cores(kernel, {"n": n}, of, cores, options).expected
    assert found is not None
    assert scaling(kernel, {"n": n}, of, [cores], options).times_s == (found.expected_s,)
    if cores == of.units:
        assert predict(kernel, {"n": n}, of, options).expected == found
    return float(found.expected_s * 10**6)


@pytest.mark.parametrize("duplex", ["", ", duplex"])
def test_stores_past_the_caches_take_turns_with_loads_at_the_rate_of_all_cores(duplex: str) -> None:
    """1.6 MB of loads at 12.5 GB/s for each core, and then 0.8 MB of stores at 25 GB/s, but 50 GB/s in total."""
    made = eight(
        "cache L1 32 KiB, 1766.4 GB/s, line 64 B, copies 8, write_allocate",
        f"memory DRAM 64 GB, 100 GB/s, line 64 B, streamed 50 GB/s{duplex}",
        'ceiling "one core, DRAM" DRAM 12.5 GB/s',
        'ceiling "one core, stores past the caches" DRAM 25 GB/s',
    )
    stream = kernel_of(TRIAD.format("stream "))
    times = [expected_us(stream, 10**5, made, cores) for cores in (1, 2, 4, 8)]
    assert times == pytest.approx([128 + 32, 64 + 16, 32 + 16, 16 + 16])


def test_the_rate_of_a_private_cache_is_that_of_the_data_of_its_core() -> None:
    """`larger` holds from 400 KiB in a copy: for 600,000 B, that is with one core, and for 4.8 MB with eight."""
    made = eight(
        "cache L1 32 KiB, 1766.4 GB/s, line 64 B, copies 8, write_allocate",
        "cache L2 1 MiB, 200 GB/s, line 64 B, copies 8, write_allocate, typical 100 GB/s, larger 160 GB/s, "
        "larger_from 400 KiB",
        "memory DRAM 64 GB, 1000 GB/s, line 64 B",
        'ceiling "one core, DRAM" DRAM 400 GB/s',
    )
    triad, warm = kernel_of(TRIAD.format("")), replace(CODE, warm=True)
    us = {(n, cores): n * 32 / 1e3 / cores for n in (25_000, 200_000) for cores in (1, 2, 8)}  # at 1 GB/s a core
    for (n, cores), of_one_gb_s in us.items():
        larger = 400 * 1024 <= n * 24 / cores <= 2**20
        each = (160 if larger else 100) / 8
        assert expected_us(triad, n, made, cores, warm) == pytest.approx(of_one_gb_s / each), (n, cores)


def test_a_first_cache_that_cores_share_is_no_faster_than_the_bound() -> None:
    """2.4 MB of accesses at 20 GB/s for one core, and at 40 GB/s for all."""
    made = eight(
        "cache L1 8 MiB, 40 GB/s, line 64 B, write_allocate",
        "memory DRAM 64 GB, 320 GB/s",
        'ceiling "one core, DRAM" DRAM 150 GB/s',
        'ceiling "one core, L1" L1 20 GB/s',
    )
    compiled = replace(CODE, accesses="compiled")
    times = [expected_us(kernel_of(TRIAD.format("")), 10**5, made, cores, compiled) for cores in (1, 2, 4, 8)]
    assert times == pytest.approx([120, 60, 60, 60])
    causes = on_cores(kernel_of(TRIAD.format("")), {"n": 10**5}, made, 4, compiled).expected
    assert causes is not None and not causes.causes


def test_what_one_core_does_alone_does_not_overlap_with_what_cores_share() -> None:
    """One core makes half of the accesses to 2.4 MB, at 20 GB/s. For the others, five cores get 100 GB/s."""
    made = eight(
        "cache L1 1 KiB, 1766.4 GB/s, line 64 B, copies 8, no_write_allocate",
        "memory DRAM 64 GB, 100 GB/s, line 64 B",
        'ceiling "one core, DRAM" DRAM 20 GB/s',
    )
    half, n = kernel_of(HALF_ALONE), 100_001
    one = expected_us(half, n, made, 1)
    assert one == pytest.approx(120, rel=1e-3)
    for cores, busy in ((2, 2), (5, 5), (8, 5)):
        assert expected_us(half, n, made, cores) == pytest.approx(one / 2 + one / 2 / busy, rel=1e-3)
    found = on_cores(half, {"n": n}, made, 8, CODE)
    assert found.cores is not None and (found.cores.saturation, found.cores.count) == (5, 8)


def test_no_step_is_below_a_bound_of_levels_that_take_turns() -> None:
    """The bound adds 0.24 us of L2's hits to the 72 us of DRAM, and so does each step towards the expected time. Nor is
    a step below the time of DRAM if a slower L3 is what the cores wait for.
    """
    turns = eight(
        "cache L1 32 KiB, 2380.8 GB/s, line 64 B, copies 8, write_allocate",
        "cache L2 1 MiB, 1587.2 GB/s, line 64 B, copies 8, write_allocate, beside 952.32 GB/s",
        "memory DRAM 64 GB, 10 GB/s, line 64 B, duplex",
        'ceiling "one core, DRAM" DRAM 2.5 GB/s',
    )
    slow = eight(
        "cache L1 32 KiB, 1766.4 GB/s, line 64 B, copies 8, write_allocate",
        "cache L3 4 MiB, 588.8 GB/s, line 64 B, write_allocate, typical 1 MB/s",
        "memory DRAM 64 GB, 32.35 GB/s, line 64 B",
        'ceiling "one core, DRAM" DRAM 15 GB/s',
    )
    compiled = replace(CODE, accesses="compiled")
    for made in (turns, slow):
        for cores in range(1, 9):
            found = on_cores(kernel_of(TRIAD.format("")), {"n": 30_000}, made, cores, compiled).expected
            assert found is not None and all(cause.share_s > 0 for cause in found.causes), cores


def test_each_loop_waits_for_its_own_part_of_the_shared_level() -> None:
    """Two rows keep two cores busy, which saturates nothing; eight rows after them saturate the memory."""
    made = eight("cache L1 1 KiB, 1766.4 GB/s, line 64 B, copies 8, no_write_allocate", "memory DRAM 64 GB, 100 GB/s, "
                 "line 64 B", 'ceiling "one core, DRAM" DRAM 20 GB/s')  # fmt: skip
    text = """
kernel rows(n):
    in A: f64[2, 4 * n]
    in C: f64[8, n]
    out B: f64[2, 4 * n]
    out D: f64[8, n]
    for i in range(2), j in range(4 * n):
        B[i, j] = A[i, j]
    for k in range(8), m in range(n):
        D[k, m] = C[k, m]
"""
    n = 8000  # 16 B of 8 n elements in each loop
    each_us = 16 * 8 * n / 20e3
    assert expected_us(kernel_of(text), n, made, 1) == pytest.approx(2 * each_us)
    assert expected_us(kernel_of(text), n, made, 8) == pytest.approx(each_us / 2 + each_us / 5)
    found = on_cores(kernel_of(text), {"n": n}, made, 8, CODE)
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    assert Fraction(*float(found.bound_s * 10**6).as_integer_ratio()) == pytest.approx(2 * each_us / 5)
