"""Expected times of library operators: against hand calculations, a simulated cache, and published measurements."""

from __future__ import annotations

import random
from collections import OrderedDict

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.operators.bandwidth import rate_of_flow, stream_rate
from roofdsl.operators.launch import resident_blocks
from roofdsl.operators.normalizations import WAYS, _evicted
from roofdsl.operators.operator import Operator
from roofdsl.operators.products import Tile, product_s
from roofdsl.operators.time import operator_time

V100 = load_machine("v100_pcie")


def test_work_and_bytes_of_each_kind() -> None:
    linear = Operator("linear", m=3, n=5, k=7)
    assert (linear.work, linear.loads_bytes, linear.stores_bytes) == (2 * 3 * 5 * 7, 4 * (3 * 7 + 5 * 7 + 5), 4 * 15)
    bmm = Operator("bmm", batch=2, m=3, n=5, k=7)
    assert (bmm.work, bmm.loads_bytes, bmm.stores_bytes) == (420, 4 * 2 * (21 + 35), 4 * 30)
    add, relu = Operator("add", batch=6, width=10), Operator("relu", batch=6, width=10)
    assert (add.loads_bytes, relu.loads_bytes, add.stores_bytes) == (480, 240, 240)


def test_the_law_of_bandwidth_bends_from_latency_to_what_is_sustained() -> None:
    few, many = 1e3, 1e12
    assert stream_rate(V100, 8, 0, few) == pytest.approx(few / 603e-9, rel=1e-6)
    assert stream_rate(V100, 8, 0, many) == pytest.approx(900e9, rel=1e-6)
    at_the_bend = rate_of_flow(V100, 8, 8, 818e9)
    assert at_the_bend == pytest.approx(818e9 * 2 ** (-1 / 2.4))


@pytest.mark.parametrize("filling", [0.5, 0.8, 1.0, 1.3])
def test_the_share_of_evicted_lines_is_that_of_a_cache_with_random_sets(filling: float) -> None:
    """Sets of LRU lists, a line in a random one of them, then `filling` times the capacity of other lines."""
    draw = random.Random(1)
    sets, gone, trials = 64, 0, 400
    for _ in range(trials):
        cache: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
        for line in range(1, int(filling * sets * WAYS) + 1):
            own = cache[draw.randrange(sets)]
            own[line] = None
            if len(own) > WAYS:
                own.popitem(last=False)
            if line == 1:
                own[0], home = None, own
        gone += 0 not in home
    assert gone / trials == pytest.approx(_evicted(filling), abs=0.08)


def test_blocks_are_limited_by_warps_blocks_and_registers() -> None:
    # 64 warps, 32 blocks, 65536 registers
    assert resident_blocks(V100, 128) == 16
    assert resident_blocks(V100, 32) == 32
    assert resident_blocks(V100, 256, registers=128) == 2


def test_a_tile_more_costs_a_whole_round() -> None:
    """80 tiles of 128 x 128 on 80 multiprocessors take one round; four more columns of tiles begin a second."""
    one, two = (product_s(Operator("linear", m=1280, n=n, k=65536), V100) for n in (1024, 1088))
    assert one == pytest.approx(2 * 1280 * 1024 * 65536 / 14.03e12, rel=0.05)
    assert two > 1.04 * one


@pytest.mark.parametrize(
    ("tile", "others"),
    [
        # 128 threads: 16 values in 4 loads; 1.5 operands, loaded by fours, stored one by one; 6 instructions in 8 steps
        (Tile(64, 128, 8), 4 + 1.5 / 4 + 1.5 + 6 / 8),
        # 256 threads with 16 products each: 8 values in 2 loads; 5 operands for 8 threads
        (Tile(128, 32, 4), 2 + 0.625 / 4 + 0.625 + 6 / 8),
    ],
)
def test_instructions_that_do_not_multiply_cost_time_where_a_warp_takes_one_cycle(tile: Tile, others: float) -> None:
    products = tile.side**2
    assert tile.efficiency(32) == pytest.approx(products / (products + others))
    assert tile.efficiency(16) > tile.efficiency(32)


@pytest.mark.parametrize(
    ("operator", "machine", "published_ms"),
    [
        (Operator("add", batch=8192, width=32768), "v100_pcie", 3.88),  # 3221 MB at 829 GB/s
        (Operator("ln", batch=131072, width=2560), "v100_pcie", 4.9413),
        (Operator("softmax", batch=65536, width=16384), "p100_pcie", 30.5447),
        (Operator("ln", batch=1572864, width=2048), "a100_40_pcie", 19.3546),
        (Operator("linear", m=4096, n=4096, k=4096), "v100_pcie", 10.1594),
        (Operator("linear", m=2048, n=50272, k=1536), "p100_pcie", 45.63398),
        (Operator("linear", m=16384, n=10240, k=2560), "p100_pcie", 122.9166),
        (Operator("bmm", batch=768, m=2048, n=2048, k=128), "p100_pcie", 104.0348),
        (Operator("bmm", batch=32, m=96, n=3072, k=3072), "p100_pcie", 8.860843),
    ],
)
def test_expected_times_are_near_published_ones(operator: Operator, machine: str, published_ms: float) -> None:
    """Measured by Lee, Phanishayee and Mahajan (NeuSight, ASPLOS 2025, data of the artifact)."""
    found = operator_time(operator, load_machine(machine))
    assert found.expected_s == pytest.approx(published_ms / 1000, rel=0.1)
    assert found.bound_s < published_ms / 1000


def test_what_cannot_be_predicted_says_why() -> None:
    with pytest.raises(CommandError, match="no model of the operator `sort`"):
        operator_time(Operator("sort", batch=1, width=8), V100)
    with pytest.raises(CommandError, match="does not define its multiprocessors"):
        operator_time(Operator("relu", batch=1, width=8), load_machine("zen2_epyc_7452"))
