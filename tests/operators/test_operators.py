"""Expected times of library operators: against hand calculations, a simulated cache, and published measurements."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from math import ceil

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.machine.find import load_machine
from roofdsl.operators.bandwidth import STREAMING, Round, stream_rate
from roofdsl.operators.launch import resident_blocks
from roofdsl.operators.operator import Operator
from roofdsl.operators.pages import pages_of
from roofdsl.operators.products import Tile, product_s
from roofdsl.operators.softmax_and_layer_norm import WAYS, _evicted
from roofdsl.operators.time import operator_time
from roofdsl.predict.bytes_in_flight import rate_of_flow

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


@pytest.mark.spread(2)
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
    one, two = (product_s(Operator("linear", m=1280, n=n, k=8192), V100) for n in (1024, 1088))
    assert one == pytest.approx(2 * 1280 * 1024 * 8192 / 14.03e12, rel=0.05)
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
    wide = 1e9  # bytes in a cycle: a port that never delays
    assert tile.efficiency(32, 64, wide) == pytest.approx(products / (products + others))
    assert tile.efficiency(16, 64, wide) == pytest.approx(1)


def test_the_port_of_shared_memory_delays_small_tiles() -> None:
    """A thread with 4 x 4 results loads 8 values of 4 B in a step; 64 lanes multiply for it in 16 / 64 of a cycle.

    Two thirds of these bytes cross the port: 2/3 * 32 / 128 = 1/6 of a cycle at 128 B a cycle, 1/3 at 64 B. These are
    2/3 and 4/3 of the multiplying, which overlap by the law with exponent 3.
    """
    small, large = Tile(128, 32, 4), Tile(128, 128, 8)
    assert small.efficiency(16, 64, 128) == pytest.approx((1 + (2 / 3) ** 3) ** (-1 / 3))
    assert small.efficiency(16, 64, 64) == pytest.approx((1 + (4 / 3) ** 3) ** (-1 / 3))
    assert large.efficiency(16, 64, 64) == pytest.approx((1 + (2 / 3) ** 3) ** (-1 / 3))


def test_within_a_power_limit_tiles_that_load_more_are_slower() -> None:
    """A tile of 64 x 128 loads 1/64 + 1/128 values for two operations, one of 128 x 128 2/128, each of 4 B."""
    large, small = Tile(128, 128, 8), Tile(64, 128, 8)
    assert (large.energy - 1) / (small.energy - 1) == pytest.approx(2 / 3)
    product = Operator("bmm", batch=64, m=2048, n=2048, k=2048)
    t4 = load_machine("t4")
    clock = float(t4.clock_hz or 0)
    free = replace(t4, throttled_clock_hz=None)
    slower = product_s(product, t4) / product_s(product, free)
    assert slower == pytest.approx(clock / 0.85e9 * small.energy / large.energy, rel=0.01)


@pytest.mark.parametrize("row_bytes", [4096, 18432, 40960, 200 << 10, 3 << 20])
def test_the_pages_of_a_tile_are_those_that_its_bytes_lie_in(row_bytes: int) -> None:
    """Counted for tiles of 32 rows, which begin at any multiple of their bytes."""
    tile, page = 32 * row_bytes, 2 << 20
    starts = range(0, 512 * tile, tile)
    counted = sum((s + tile - 1) // page - s // page + 1 for s in starts) / len(starts)
    assert pages_of(32, row_bytes) == pytest.approx(counted, rel=1e-3)


def test_products_over_long_rows_wait_for_addresses() -> None:
    """A multiprocessor of a P100 holds four blocks with tiles of 128 x 32 and the addresses of 16 pages.

    With rows of 4096 elements, a tile has 1 and 0.25 pages of 2 MiB in use, so that no request waits. With rows of
    65536, it has 16 and 4; four of them miss all but 16 of 80.
    """
    p100 = load_machine("p100_pcie")
    known = replace(p100, multiprocessor=replace(p100.multiprocessor, tlb_bytes=None))
    short, long = (Operator("linear", m=8192, n=4096, k=k) for k in (4096, 65536))
    assert product_s(short, p100) == product_s(short, known)
    waiting = product_s(long, p100) - product_s(long, known)
    tiles, resident = 64 * 128, 4 * 56
    requests = ceil(tiles / 56) * (128 + 32) * 65536 * 4 / 512
    in_step = (tiles / resident) / (tiles / resident + 2)
    assert waiting == pytest.approx(requests * 141e-9 * (1 - 16 / 80) * in_step, rel=0.01)


def test_later_passes_wait_for_the_cache_that_has_the_row() -> None:
    """A row of 2048 is found in the first cache of a T4, with 4 blocks of 256 threads: three passes take little more
    than one. Rows of 16384 are not found in any cache: three loads and a store instead of one of each.
    """
    t4 = load_machine("t4")
    near, far = (Operator("softmax", batch=2**31 // width, width=width) for width in (2048, 16384))
    stream = (near.loads_bytes + near.stores_bytes) / stream_rate(t4, 1, 1, 1e12)
    assert operator_time(near, t4).kernel_s < 1.15 * stream
    assert operator_time(far, t4).kernel_s == pytest.approx(2 * stream, rel=0.01)


def test_a_stencil_takes_longer_for_each_neighbor_until_bandwidth_bounds_it() -> None:
    few, many = 1e4, 1e12
    alone, neighbors = (1 / stream_rate(V100, 8, 8, few, Round(n)) for n in (0, 4))
    assert (neighbors - alone) * few == pytest.approx(4 * 22 / 1.37e9, rel=1e-3)
    assert stream_rate(V100, 8, 8, many, Round(4)) == pytest.approx(stream_rate(V100, 8, 8, many), rel=1e-3)


def test_in_a_cache_that_answers_in_order_the_neighbors_of_all_threads_lengthen_a_round() -> None:
    mi210 = load_machine("mi210")
    first, *others = mi210.caches
    free = replace(mi210, caches=(replace(first, in_order=False), *others))
    few = 6656 * 16  # 64 threads on each multiprocessor
    waits, passes = (few / stream_rate(m, 8, 8, few, Round(4)) for m in (mi210, free))
    assert waits - passes == pytest.approx(6656 * 4 * 8 / 10616e9, rel=1e-2)
    assert stream_rate(mi210, 8, 8, few) == stream_rate(free, 8, 8, few)


def test_a_round_is_no_shorter_than_its_latency_and_the_operations_of_all_threads() -> None:
    """512 threads on each of an A40's 84 multiprocessors: five operations on f64 at two a cycle, after 587 ns."""
    a40 = load_machine("a40")
    threads = 84 * 512
    operations_s = 5 * 512 / (2 * 1.74e9)
    rate = stream_rate(a40, 8, 8, threads * 16, Round(multiply_adds=5))
    assert rate == pytest.approx(threads * 16 / (587e-9 + operations_s), rel=1e-3)
    without = replace(a40, peaks=tuple(p for p in a40.peaks if p.type != "f64"))
    assert stream_rate(without, 8, 8, threads * 16, Round(multiply_adds=5)) == stream_rate(a40, 8, 8, threads * 16)
    few = 1e4  # the latency alone decides, and the operations of few threads hide behind the bend
    assert stream_rate(a40, 8, 8, few, Round(multiply_adds=1)) <= stream_rate(a40, 8, 8, few, STREAMING)


THREADS = (64, 128, 256, 512, 1024, 1536)  # on each multiprocessor


@pytest.mark.parametrize(
    ("machine", "each", "published_gb_per_s"),
    [
        ("a40", Round(2, 3), (142, 268, 466, 630, 655, 654)),
        ("a40", Round(4, 5), (126, 236, 391, 512, 641, 655)),
        ("mi100", Round(2, 3), (145, 272, 465, 807, 1006, 1034)),
        ("mi100", Round(4, 5), (133, 253, 434, 739, 918, 990)),
        ("mi210", Round(2, 3), (135, 244, 436, 800, 1127, 1226)),
        ("v100", Round(4, 5), (117, 224, 394, 633, 774, 792)),
    ],
)
def test_stencils_by_occupancy_as_published(machine: str, each: Round, published_gb_per_s: Sequence[float]) -> None:
    """gpu-benches (Ernst), gpu-stream: the mean error. Without the operations, it is 12 % for the A40's second one."""
    on = load_machine(machine)
    expected = [stream_rate(on, 8, 8, 16 * threads * (on.units or 1), each) for threads in THREADS]
    errors = [abs(e / (measured * 1e9) - 1) for e, measured in zip(expected, published_gb_per_s, strict=True)]
    assert sum(errors) / len(errors) < 0.07


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
        (Operator("linear", m=32768, n=1536, k=50272), "p100_pcie", 2317.653),  # rows of 200 KB
        (Operator("linear", m=2048, n=8192, k=8192), "p100_pcie", 38.14256),
        (Operator("linear", m=2048, n=50272, k=1536), "t4", 77.33748),
        (Operator("linear", m=16384, n=10240, k=2560), "t4", 214.8743),
        (Operator("bmm", batch=2048, m=96, n=1024, k=1024), "t4", 160.3034),  # tiles of 32 x 128
        (Operator("bmm", batch=256, m=256, n=3072, k=3072), "t4", 330.9674),
        (Operator("softmax", batch=786432, width=2048), "t4", 51.6359),
        (Operator("softmax", batch=65536, width=10240), "v100_pcie", 13.6906),
        (Operator("softmax", batch=131072, width=12288), "a100_40_pcie", 14.8469),
        (Operator("bmm", batch=768, m=2048, n=2048, k=128), "p100_pcie", 104.0348),
        (Operator("bmm", batch=32, m=96, n=3072, k=3072), "p100_pcie", 8.860843),
    ],
)
def test_expected_times_are_near_published_ones(operator: Operator, machine: str, published_ms: float) -> None:
    """Measured by Lee, Phanishayee and Mahajan (NeuSight, ASPLOS 2025, data of the artifact)."""
    found = operator_time(operator, load_machine(machine))
    assert found.expected_s == pytest.approx(published_ms / 1000, rel=0.1)
    assert found.bound_s < published_ms / 1000


@pytest.mark.parametrize("name", ["a100_80", "h100_pcie", "mi210", "mi300x", "l4", "p4"])
@pytest.mark.parametrize(
    "operator",
    [
        Operator("linear", m=4096, n=4096, k=32768), Operator("bmm", batch=64, m=512, n=512, k=96),
        Operator("softmax", batch=65536, width=5120), Operator("ln", batch=65536, width=1024),
        Operator("gelu", batch=65536, width=1024),
    ],
    ids=lambda o: o.name,
)  # fmt: skip
def test_machines_that_state_less_are_predicted_too(operator: Operator, name: str) -> None:
    """Without a clock, caches, latencies or a TLB; never below the bound, nor far from it for these sizes."""
    found = operator_time(operator, load_machine(name))
    assert found.bound_s < found.expected_s < 5 * found.bound_s


def test_what_cannot_be_predicted_says_why() -> None:
    with pytest.raises(CommandError, match="no model of the operator `sort`"):
        operator_time(Operator("sort", batch=1, width=8), V100)
    with pytest.raises(CommandError, match="does not define its multiprocessors"):
        operator_time(Operator("relu", batch=1, width=8), load_machine("zen2_epyc_7452"))
