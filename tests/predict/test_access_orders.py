"""Levels of a GPU: warps towards L1, blocks on their copies, waves on what is shared; and what strides cost."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.counts.traffic_at import OutOfReach, traffic_at
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.thread_blocks import in_waves, launch_of
from roofdsl.loops.transform import apply, repeated
from roofdsl.machine.find import load_machine, models_folder
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.occupancy import Block
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from tests.oracle.lru import traffic
from tests.predict.machines import kernel_of, machine

PAPER = load_machine("v100_hierarchical")
SEEDS = json.loads((Path(__file__).parents[1] / "reference" / "seeds.json").read_text())["hierarchical_roofline_paper"]
SMALL = machine(
    "peak f64 fma 1 TFLOP/s",
    "cache L1 4 KiB, 9 TB/s, line 64 B, sector 32 B, copies 4",
    "cache L2 16 KiB, 2 TB/s, line 64 B",
    "units 4",
    "multiprocessor warp 8, warps 16, block_threads 128",
)
NAIVE = (
    "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n{}    parallel for i in range(n), j in range(n):\n"
    "        for k in range(n):\n            C[i, j] += A[i, k] * B[k, j]\n"
)


def intensities(p: Prediction) -> dict[str, float]:
    found = {level.name: level.intensity(p.work) for level in p.levels}
    return {name: float(value) for name, value in found.items() if value is not None}


def gpp(nw: int, stride: int) -> dict[str, float]:
    shipped = kernel(load_file(models_folder() / "kernels" / "gpp.roof"), "gpp", {"nw": nw, "s": stride})
    sizes = {"bands": 32, "ngpown": 2, "ncouls": SEEDS["GPP"]["plane_waves"]}
    return intensities(predict(shipped, sizes, PAPER))


@pytest.mark.thorough
def test_strides_of_gpp_cost_sectors_and_transactions() -> None:
    """seeds.json, trait_stride: HBM intensity falls as 1/stride up to 4 (64 B), L1 and L2 up to 2 (32 B), then flat."""
    found = {s: gpp(SEEDS["GPP"]["nw"][-1], s) for s in SEEDS["GPP"]["strides"]}
    for s, at in found.items():
        assert at["L1"] == pytest.approx(found[1]["L1"] / min(s, 2), rel=0.01)
        assert at["L2"] == pytest.approx(found[1]["L2"] / min(s, 2), rel=0.01)
        assert at["HBM"] == pytest.approx(found[1]["HBM"] / min(s, 4), rel=0.01)


@pytest.mark.thorough
def test_intensity_of_gpp_grows_linearly_with_nw() -> None:
    """seeds.json, trait_nw: of L1 and HBM."""
    found = {nw: gpp(nw, 1) for nw in (1, 3, 6)}
    for name in ("L1", "HBM"):
        rise = (found[6][name] - found[1][name]) / 5
        assert found[3][name] - found[1][name] == pytest.approx(2 * rise, rel=0.01)
        assert rise == pytest.approx(found[1][name], rel=0.1)


SHIFTED = (
    "kernel k(n):\n    in A: f64[n + 8]\n    out B: f64[n]\n    parallel for i in range(n):\n        B[i] = A[i + {}]\n"
)


@pytest.mark.parametrize(("shift", "sectors"), [(0, 2), (1, 3), (2, 3), (4, 2)])
def test_a_misaligned_start_costs_a_sector_of_every_warp(shift: int, sectors: int) -> None:
    p = predict(kernel_of(SHIFTED.format(shift)), {"n": 64}, SMALL)
    assert p.levels[0].loads_bytes == 8 * sectors * 32  # eight warps of eight threads, 64 B of A each
    assert p.levels[0].stores_bytes == 64 * 8


@pytest.mark.thorough
def test_blocks_are_cold_on_their_copies_and_waves_share_the_next_cache() -> None:
    tiled = kernel_of(NAIVE.format("    tile i, j by 8\n"))
    p = predict(tiled, {"n": 32}, SMALL)
    blocks, rows = 16, 8
    # a block of 64 threads: 8 rows of A and 8 columns of B, each once, and its part of C loaded and stored
    assert p.levels[1].bytes == blocks * (2 * rows * 32 * 8 + 2 * 64 * 8)
    assert "blocks of 64 threads, 2 at a time on each of 4 multiprocessors" in p.assumptions[-1]
    assert p.levels[0].moved_bytes == 32
    launch = launch_of(tiled, {"n": 32}, 64)
    assert launch is not None
    wave = in_waves(launch, 8)
    assert p.memory.bytes == traffic(wave, {"n": 32}, 16384, 64, "load_store").bytes
    assert p.memory.bytes != traffic(apply(tiled), {"n": 32}, 16384, 64, "load_store").bytes


HALVES = machine(
    "peak f64 fma 1 TFLOP/s",
    "cache L1 4 KiB, 9 TB/s, line 64 B, sector 32 B, copies 4",
    "cache L2 16 KiB, 2 TB/s, line 64 B, copies 2",
    "units 4",
    "multiprocessor warp 8, warps 16, block_threads 128",
)


def test_a_cache_with_fewer_copies_than_multiprocessors_sees_its_part_of_the_wave() -> None:
    tiled = kernel_of(NAIVE.format("    tile i, j by 8\n"))
    p = predict(tiled, {"n": 32}, HALVES)
    launch = launch_of(tiled, {"n": 32}, 64)
    assert launch is not None  # two blocks at a time on each of four multiprocessors, of which two share a copy
    assert p.memory.bytes == traffic(in_waves(launch, 4), {"n": 32}, 16384, 64, "load_store").bytes
    assert p.levels[1].bytes == predict(tiled, {"n": 32}, SMALL).levels[1].bytes  # each has an L1 of its own
    assert p.cache_bytes == 16384
    assert "L2: bytes are counted as if one of its 2 copies served the whole kernel" in p.assumptions


def test_blocks_share_a_copy_also_if_they_are_counted_by_working_sets() -> None:
    plain = NAIVE.format("").replace("parallel for", "for")
    large = HALVES.caches[1]
    both = replace(HALVES, caches=(HALVES.caches[0], replace(large, size_bytes=1 << 20)))
    p = predict(kernel_of(plain), {"n": 128}, both, Options(block=Block(128)))
    assert "bytes behind L2 counted by blocks and waves" in "".join(p.assumptions)
    assert p.memory.bytes == 4 * 8 * 128 * 128  # A and B are loaded once, C is loaded and stored


def test_a_wave_that_holds_everything_moves_it_once() -> None:
    large = machine(
        "peak f64 1 TFLOP/s", "cache L1 1 KiB, 9 TB/s, line 64 B, copies 4", "cache L2 1 MiB, 2 TB/s, line 64 B",
        "multiprocessor warp 8, warps 16",
    )  # fmt: skip
    p = predict(kernel_of(NAIVE.format("")), {"n": 32}, large)
    assert p.memory.bytes == 4 * 8192


def test_the_launch_is_that_of_the_generated_code() -> None:
    """Plain loops become threads where they are independent, in any order of the loops: as CUDA is generated."""
    plain = NAIVE.format("").replace("    parallel for i in range(n), j in range(n):\n        for k in range(n):\n    ",
                                     "    for {}:\n")  # fmt: skip
    block = Options(block=Block(64))
    declared = predict(kernel_of(NAIVE.format("")), {"n": 32}, SMALL, block)
    for loops in ("i in range(n), j in range(n), k in range(n)", "k in range(n), j in range(n), i in range(n)"):
        kernel = kernel_of(plain.format(loops))
        text = generate(kernel, "cuda", "naive", free=parallel_loops(kernel)).source
        assert "for (index_t j = thread_x; j < n; j += threads_x)" in text
        assert "for (index_t i = thread_y; i < n; i += threads_y)" in text
        p = predict(kernel, {"n": 32}, SMALL, block)
        assert [level.bytes for level in p.levels] == [level.bytes for level in declared.levels]
        assert "blocks of 64 threads" in p.assumptions[-1]


@pytest.mark.parametrize("tiles", ["", "    tile i, j by 4\n"])
def test_a_kernel_predicted_again_is_predicted_alike(tiles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch of an equal kernel is kept, also if that is another object: here, read again from the same text."""
    monkeypatch.setattr("roofdsl.predict.thread_block_traffic.FEW_ACCESSES", 1000)
    text = NAIVE.format(tiles)
    once, again = kernel_of(text), kernel_of(text)
    block = Options(block=Block(64))
    assert once is not again and predict(once, {"n": 24}, SMALL, block) == predict(again, {"n": 24}, SMALL, block)
    assert all(orders_of(k, {"n": 24}, SMALL, block.block).is_declared for k in (once, again))
    assert not orders_of(kernel_of(text.replace("parallel ", "")), {"n": 24}, SMALL, block.block).is_declared


@pytest.mark.parametrize("n", [24, 28, 32])
def test_a_warm_launch_finds_the_shared_cache_as_the_one_before_has_left_it(n: int) -> None:
    """L1 is empty again; what L2 moves is what two launches in a row move, less one."""
    tiled = kernel_of(NAIVE.format("    tile i, j by 8\n"))
    cold, warm = (predict(tiled, {"n": n}, SMALL, Options(warm=w)) for w in (False, True))
    assert warm.levels[:2] == cold.levels[:2]
    launch = launch_of(tiled, {"n": n}, 64)
    assert launch is not None
    wave = in_waves(launch, 8)
    one, two = (traffic(k, {"n": n}, 16384, 64, "load_store").bytes for k in (wave, repeated(wave, 2)))
    assert warm.memory.bytes == two - one <= cold.memory.bytes
    assert (warm.memory.bytes == 0) == (3 * 8 * n * n <= 16384)


def test_warm_launches_by_working_sets() -> None:
    """6 MiB hold three matrices of n = 256, and not those of n = 1024, of which more than the last wave is lost."""
    v100, plain = load_machine("v100"), kernel_of(NAIVE.format("").replace("parallel for", "for"))
    cold, warm = (predict(plain, {"n": 512}, v100, Options(warm=w)) for w in (False, True))
    assert any("bytes behind L2 counted by blocks and waves" in note for note in warm.assumptions)
    assert cold.memory.bytes == 4 * 8 * 512**2 and warm.memory.bytes == 0
    cold, warm = (predict(plain, {"n": 1024}, v100, Options(warm=w)) for w in (False, True))
    assert 0.5 * cold.memory.bytes < warm.memory.bytes <= cold.memory.bytes
    assert warm.levels[:2] == cold.levels[:2]


SWEEPS = (
    "kernel k(n, t):\n    assume n >= 4\n    inout A, B: f64[n]\n    for s in range(t):\n"
    "        for i in range(1, n - 1):\n            B[i] = A[i - 1] + A[i + 1]\n"
    "        for i in range(1, n - 1):\n            A[i] = B[i - 1] + B[i + 1]\n"
)


@pytest.mark.parametrize("n", [400, 3000])
def test_launches_of_a_kernel_find_each_others_data_if_the_last_cache_holds_all(n: int) -> None:
    of, sizes = kernel_of(SWEEPS), {"n": n, "t": 5}
    p, warm = (predict(of, sizes, SMALL, Options(warm=w)) for w in (False, True))
    assert p.launches == warm.launches == 10
    fits = 2 * 8 * n <= 16384
    alone = traffic(apply(of), sizes | {"t": 1}, None, 64, "load_store").bytes
    once = traffic(apply(of), sizes, None, 64, "load_store").bytes
    assert p.memory.bytes == (once if fits else warm.memory.bytes)
    assert once == alone
    assert (warm.memory.bytes == 0) == fits
    assert any("whose data all fit in L2" in note for note in p.assumptions) == fits
    assert any("each with cold caches" in note for note in p.assumptions) != fits


def test_shares_of_a_level_are_at_least_the_whole() -> None:
    """Launches that share what the memory exchanges have, all together, at least its bytes."""
    whole = predict(kernel_of(SWEEPS), {"n": 400, "t": 5}, SMALL).memory
    parts = [whole.share(Fraction(k, 21)) for k in range(1, 7)]
    assert sum(part.bytes for part in parts) >= whole.bytes > sum(part.bytes for part in parts) - 12
    assert all(part.bytes == (part.loads_bytes or 0) + (part.stores_bytes or 0) for part in parts)


def test_what_is_no_launch_of_many_threads_is_counted_in_loop_order() -> None:
    loops, why = "for i in range(1, n):\n        A[i] = A[i - 1]\n", "no loop of the nest has independent iterations"
    kernel = kernel_of(f"kernel k(n):\n    assume n >= 2\n    inout A: f64[n]\n    {loops}")
    p = predict(kernel, {"n": 24}, SMALL)
    assert any("counted in loop order" in note and why in note for note in p.assumptions)
    assert p.memory.bytes == traffic_at(kernel, {"n": 24}, 16384, 64, "load_store").bytes


def test_each_sector_moves_once_if_counting_by_blocks_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the loops moves the matrix B for every row of C, which no launch does."""

    def too_long(*_: object, warm: bool) -> None:
        raise OutOfReach("k", "too many accesses", 10**11, 10**8)

    monkeypatch.setattr("roofdsl.predict.thread_block_traffic.launch_transfers", too_long)
    p = predict(kernel_of(NAIVE.format("")), {"n": 1024}, load_machine("v100"), Options())
    assert [level.name for level in p.levels] == ["L1", "HBM"]
    assert p.memory.bytes == 8 * 4 * 1024**2
    assert any("each sector moves once" in note for note in p.assumptions)


def test_no_more_blocks_are_resident_than_there_are() -> None:
    rows = kernel_of(
        "kernel k(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n    for i in range(n), j in range(n):\n"
        "        y[i] += A[i, j] * x[j]\n"
    )
    found = orders_of(rows, {"n": 16384}, PAPER)
    assert found.launch is not None
    assert (found.launch.grid, found.resident, found.at_a_time) == ((64,), 1, 64)
    assert "1 at a time on each of 64 multiprocessors" in found.assumptions[0]


def test_a_product_too_large_to_be_gone_through() -> None:
    """n = 4096 on a V100: waves of 640 blocks of 8 x 32 are 40 rows of C, and read all of B and their rows of A."""
    n = 4096
    p = predict(kernel_of(NAIVE.format("").replace("parallel ", "")), {"n": n}, PAPER)
    waves = -(-n // 40)
    assert p.memory.bytes == pytest.approx(8 * (waves * n * n + n * n + 2 * n * n), rel=0.01)
    behind_l1 = next(level for level in p.levels if level.name == "L2")
    assert behind_l1.bytes == 8 * (n**3 // 8 + n**3 // 32 + 2 * n * n)  # a block's rows of A and columns of B, once
    assert any("distinct sectors" in note for note in p.assumptions)


def test_a_machine_without_multiprocessors_runs_one_after_another() -> None:
    cpu = machine("peak f64 1 TFLOP/s", "cache L1 4 KiB, 9 TB/s, line 64 B", "cache L2 16 KiB, 2 TB/s, line 64 B")
    p = predict(kernel_of(NAIVE.format("")), {"n": 16}, cpu)
    assert p.levels[1].bytes == traffic_at(kernel_of(NAIVE.format("")), {"n": 16}, 4096, 64, "load_store").bytes


def test_the_block_asked_for() -> None:
    naive = kernel_of(NAIVE.format(""))
    found = orders_of(naive, {"n": 64}, SMALL, Block(32))
    assert found.launch is not None
    assert (found.launch.grid, found.resident, found.at_a_time) == ((64, 2), 4, 16)
    too_large = orders_of(kernel_of(NAIVE.format("    tile i, j by 16\n")), {"n": 64}, SMALL)
    assert too_large.launch is None
    assert "more than the 128" in too_large.assumptions[0]
    assert predict(naive, {"n": 16}, SMALL, Options(block=Block(32))).occupancy is not None
