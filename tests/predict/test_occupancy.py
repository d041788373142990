"""Warps per multiprocessor, and the ceiling of too few requests in flight."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.predict.occupancy import Block, latency_ceilings, occupancy
from tests.predict.machines import machine

V100 = load_machine("v100_hierarchical")


@pytest.mark.parametrize(
    ("block", "warps", "limit"),
    [
        (Block(128, 186), 8, "registers"),  # the GPP deck's v2
        (Block(512, 128), 16, "registers"),  # and v3
        (Block(512, 122), 16, "registers"),  # v4
        (Block(128, 32), 64, "warps"),
        (Block(32, 16), 32, "blocks"),
        (Block(256, 32, 40 << 10), 16, "shared memory"),
        (Block(1024, 64), 32, "registers"),
        (Block(96, 255), 6, "registers"),
        (Block(33), 64, "warps"),
    ],
)
def test_warps_per_multiprocessor(block: Block, warps: int, limit: str) -> None:
    found = occupancy(V100, block)
    assert (found.warps, found.most) == (warps, 64)
    assert limit in found.limits
    assert found.threads == found.blocks * block.threads


def test_a_thread_has_at_most_255_registers() -> None:
    for name in ("v100", "a100_80", "h100_sxm", "t4"):
        assert occupancy(load_machine(name), Block(128, 255)).blocks
        with pytest.raises(CommandError, match=f"a thread of {name} has at most 255 registers, not 256"):
            occupancy(load_machine(name), Block(128, 256))


def test_blocks_that_do_not_fit() -> None:
    with pytest.raises(CommandError, match="2,048 threads is more than the 1,024"):
        occupancy(V100, Block(2048))
    with pytest.raises(CommandError, match="runs out of registers"):
        occupancy(V100, Block(1024, 128))
    with pytest.raises(CommandError, match="runs out of shared memory"):
        occupancy(V100, Block(32, 32, 97 << 10))
    with pytest.raises(CommandError, match="does not define a multiprocessor"):
        occupancy(load_machine("v100_textbook"), Block(32))


def test_too_little_in_flight_is_a_ceiling() -> None:
    m = machine(
        "peak f64 1 TFLOP/s", "memory HBM 16 GiB, 900 GB/s", "units 80", "latency HBM 400 ns",
        "multiprocessor warp 32, warps 64, registers 65536, schedulers 4",
    )  # fmt: skip
    few, many = occupancy(m, Block(128, 186)), occupancy(m, Block(128, 32))
    low, high = (latency_ceilings(m, o, 8)[0] for o in (few, many))
    assert low.needed_bytes == 360_000
    assert (low.in_flight_bytes, low.binds) == (80 * 8 * 32 * 8, True)
    assert low.bytes_per_s == Fraction(163840 * 10**7, 4)
    assert (high.in_flight_bytes, high.binds) == (80 * 64 * 32 * 8, False)
    assert low.ceiling().level == "HBM"


@pytest.mark.parametrize(("threads_of_sm", "measured_gb"), [(128, 227.6), (256, 418.6), (384, 571.0), (512, 680.6)])
def test_a_v100s_latency_ceiling_is_just_above_what_few_threads_reach(threads_of_sm: int, measured_gb: float) -> None:
    """gpu-benches' README: blocks of 128 threads on 80 multiprocessors, each thread summing one f64 stream."""
    room = (96 << 10) // (threads_of_sm // 128)  # shared memory that leaves so many blocks
    found = occupancy(V100, Block(128, 32, room))
    assert found.threads == threads_of_sm
    hbm = latency_ceilings(V100, found, 8)[-1]
    assert hbm.level == "HBM"
    assert 0.6 * float(hbm.bytes_per_s) < measured_gb * 1e9 < float(hbm.bytes_per_s)
