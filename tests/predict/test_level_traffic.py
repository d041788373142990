"""Every level of a prediction: what crosses which boundary, and what that costs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.counts import traffic_at as traffic_module
from roofdsl.counts.sector_traffic import register_bytes_at
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, models_folder
from roofdsl.predict import level_traffic
from roofdsl.predict.boundary import boundary_behind, moved_behind
from roofdsl.predict.kernel import predict
from roofdsl.predict.level_traffic import is_first_level
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import LevelTime, Prediction
from tests.oracle.lru import register_bytes
from tests.predict.machines import kernel_of, machine

SKYLAKE = load_machine("skylake_gold_6148")
THREE = machine(
    "peak f64 fma 100 GFLOP/s",
    "cache L1 1 KiB, 400 GB/s, line 64 B, write_allocate",
    "cache L2 4 KiB, 200 GB/s, line 64 B, no_write_allocate",
    "memory DRAM 16 GiB, 50 GB/s",
    'ceiling "slow" L2 100 GB/s',
    "launch 1 us",
)

WARPS = machine(
    "peak f64 fma 100 GFLOP/s",
    "cache L1 128 KiB, 400 GB/s, line 128 B, sector 32 B",
    "memory HBM 16 GiB, 50 GB/s",
    "multiprocessor warp 32",
)


def shipped(file: str, name: str | None = None) -> Kernel:
    return kernel(load_file(models_folder() / "kernels" / f"{file}.roof"), name or file)


def level(p: Prediction, name: str) -> LevelTime:
    return next(found for found in p.levels if found.name == name)


TRANSPOSE = kernel_of(
    "kernel t(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n    for i in range(n), j in range(n):\n"
    "        B[j, i] = 2 * A[i, j]\n"
)


def test_each_level_is_what_the_nearer_cache_misses() -> None:
    p = predict(TRANSPOSE, {"n": 40}, THREE)
    assert [found.name for found in p.levels] == ["L1", "L2", "DRAM"]
    assert [found.nearer for found in p.levels] == ["registers", "L1", "L2"]
    assert level(p, "L1").bytes == register_bytes(TRANSPOSE, {"n": 40}) == 16 * 1600
    behind_l1 = traffic_at(TRANSPOSE, {"n": 40}, 1024, 64, "write_allocate")
    assert (level(p, "L2").bytes, level(p, "L2").loads_bytes) == (behind_l1.bytes, behind_l1.loads_bytes)
    assert level(p, "DRAM").bytes == traffic_at(TRANSPOSE, {"n": 40}, 4096, 64, "load_store").bytes
    assert p.memory is p.levels[-1]


DUPLEX = machine(
    "peak f64 fma 100 GFLOP/s",
    "cache L1 1 KiB, 400 GB/s, line 64 B, write_allocate",
    "cache L2 4 KiB, 200 GB/s, line 64 B, duplex, write_allocate",
    "memory DRAM 16 GiB, 50 GB/s, duplex",
)


def test_loads_and_stores_cross_a_duplex_level_at_the_same_time() -> None:
    p = predict(TRANSPOSE, {"n": 40}, DUPLEX)
    for name, rate in (("L2", 200), ("DRAM", 50)):
        found = level(p, name)
        assert found.loads_bytes and found.stores_bytes and found.loads_bytes > found.stores_bytes
        assert found.bytes == found.loads_bytes + found.stores_bytes
        assert found.time_s == Fraction(found.loads_bytes, rate * 10**9)
        assert found.rate_bytes_per_s == found.bytes / found.time_s
        assert any(note.startswith(f"{name}: loads and stores move at the same time") for note in p.assumptions)
    assert level(p, "L1").duplex_bytes is None
    assert p.ridge is not None and p.machine_balance is not None and p.ridge < p.machine_balance / 2
    assert level(p * 3 + p, "DRAM").time_s == 4 * level(p, "DRAM").time_s
    found = next(found for found in p.to_json()["levels"] if found["name"] == "DRAM")
    assert found["duplex_bytes"] == level(p, "DRAM").loads_bytes
    textbook = predict(TRANSPOSE, {"n": 40}, DUPLEX, Options(traffic="once"))  # does not tell the two apart
    assert level(textbook, "DRAM").time_s == Fraction(level(textbook, "DRAM").bytes, 50 * 10**9)


def test_time_is_the_slowest_of_all_levels() -> None:
    p = predict(TRANSPOSE, {"n": 40}, THREE)
    times = [found.bytes / found.bandwidth_bytes_per_s for found in p.levels]
    assert p.bound_s == max([*times, p.compute_s, p.launch_s])
    assert p.no_overlap_s == sum([*times, p.compute_s, p.launch_s])
    capped = predict(TRANSPOSE, {"n": 40}, THREE, Options(ceilings=("slow",)))
    assert level(capped, "L2").bandwidth_bytes_per_s == 10**11
    assert level(capped, "L1") == level(p, "L1")


def test_a_nearer_level_can_be_the_bound() -> None:
    slow = machine("peak f64 fma 1 TFLOP/s", "cache L1 32 KiB, 1 GB/s, line 64 B")
    p = predict(shipped("daxpy"), {"n": 1000}, slow)
    assert p.bound == "L1"
    assert p.bound_s == Fraction(24 * 1000, 10**9)


def test_the_memory_alone() -> None:
    p = predict(TRANSPOSE, {"n": 40}, THREE, Options(levels="memory"))
    assert [found.name for found in p.levels] == ["DRAM"]
    assert p.memory == predict(TRANSPOSE, {"n": 40}, THREE).memory


def test_a_machine_that_starts_with_its_l2() -> None:
    p = predict(shipped("gemv"), {"n": 64}, load_machine("v100_deck"))
    assert [found.name for found in p.levels] == ["HBM"]
    assert "defines no L1" in p.assumptions[0]
    names = {"L1": True, "l1d": True, "L2": False, "LLC": False}
    for name, first in names.items():
        cache = machine("peak f64 1 GFLOP/s", f"cache {name} 1 KiB, 1 GB/s").caches[0]
        assert is_first_level(cache) is first


def test_a_level_out_of_reach_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_traffic, "NEARER_ACCESSES", 10)
    for limit in ("SHORT", "BRIEF_OPERATIONS", "QUICK_OPERATIONS"):
        monkeypatch.setattr(traffic_module, limit, 10)
    hard = kernel_of(  # steps of a prime number on unaligned rows: no affine distances
        "kernel h(n):\n    in A: f64[n, n + 1]\n    out B: f64[n + 1, n]\n    for i in range(n), j in range(n):\n"
        "        B[j, i] = A[i, j]\n"
    )
    small = machine("peak f64 1 GFLOP/s", "cache L1 128 B, 4 GB/s, line 64 B, sector 16 B", "cache L2 8 KiB, 2 GB/s")
    p = predict(hard, {"n": 13}, small)
    assert [found.name for found in p.levels] == ["L1", "HBM"]
    assert p.warnings == ("L2 is left out: its exact traffic at these sizes takes too long to compute",)


@pytest.mark.parametrize(
    ("cache", "memory_line", "unit"),
    [
        ("line 128 B, sector 32 B", None, 32),
        ("line 64 B, sector 32 B", 64, 64),
        ("line 128 B, sector 32 B", 64, 64),
        ("line 64 B, sector 32 B", 128, 64),
        ("line 64 B", 32, 64),
        ("ways 4", 64, None),
    ],
)
def test_bytes_moved_at_a_time(cache: str, memory_line: int | None, unit: int | None) -> None:
    assert moved_behind(machine("peak f64 1 GFLOP/s", f"cache C 8 KiB, 1 GB/s, {cache}").caches[0], memory_line) == unit


def test_conventions_are_those_of_each_cache() -> None:
    assert boundary_behind(TRANSPOSE, THREE, 0).convention == "write_allocate"
    assert boundary_behind(TRANSPOSE, THREE, 1).convention == "load_store"
    assert boundary_behind(TRANSPOSE, THREE, 1, "once").convention == "once"


def test_data_beyond_a_link() -> None:
    p = predict(shipped("gemv"), {"n": 512}, load_machine("summit"), Options(data="DRAM0"))
    assert [(found.name, found.kind) for found in p.levels] == [("HBM0", "memory"), ("DRAM0", "link")]
    assert (p.bound, p.memory.name) == ("DRAM0", "HBM0")
    assert p.bound_s == Fraction(p.levels[1].bytes, 50 * 10**9)
    assert p.levels[1].bytes == 8 * 512**2 + 16 * 512
    with pytest.raises(CommandError, match="no further memory named HBM"):
        predict(shipped("gemv"), {"n": 512}, load_machine("v100"), Options(data="HBM"))


@pytest.mark.parametrize(("rows", "moved"), [(64, 0), (4096, 3 * 8 * 4096)])
def test_a_warm_launch_finds_in_the_memory_what_fits_into_it(rows: int, moved: int) -> None:
    """y += A: 16 B of each row in the memory. A stream larger than the memory finds nothing, and stores y once."""
    text = "kernel k(n):\n    in A: f64[n]\n    inout y: f64[n]\n    for i in range(n):\n        y[i] += A[i]\n"
    small = machine(
        "peak f64 fma 1 TFLOP/s",
        "cache L2 1 KiB, 2 TB/s, line 64 B",
        "memory HBM 16 KiB, 1 TB/s",
        "memory HOST 1 GiB, 100 GB/s",
        "link wire: HOST <-> HBM 10 GB/s",
    )
    p = predict(kernel_of(text), {"n": rows}, small, Options(data="HOST", warm=True))
    (far,) = (level for level in p.levels if level.name == "HOST")
    assert far.bytes == moved


def test_repeated_and_added_levels() -> None:
    p = predict(TRANSPOSE, {"n": 40}, THREE)
    twice = p * 2
    assert [found.bytes for found in twice.levels] == [2 * found.bytes for found in p.levels]
    assert (p + p).levels == twice.levels
    assert (p + p).parts == twice.parts
    memory_only = predict(TRANSPOSE, {"n": 40}, THREE, Options(levels="memory"))
    assert [found.name for found in (p + memory_only).levels] == ["DRAM"]


# ---- layer conditions (Stengel et al., ICS 2015): bytes per inner iteration across each boundary, N doubles a row ----

SIZES = {
    # file, kernel, n, inner iterations, bytes per iteration (loaded, stored) at L2, L3, DRAM
    "2d, rows fit L2": ("jacobi2d", 4000, 2, [(32, 8), (16, 8), (16, 8)]),
    "2d, rows fit L1": ("jacobi2d", 1000, 2, [(16, 8), (16, 8), (0, 0)]),
    "2d, rows fit L2, large": ("jacobi2d", 10000, 2, [(32, 8), (16, 8), (16, 8)]),
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("case", SIZES)
def test_layer_conditions_of_the_five_point_stencil(case: str) -> None:
    name, n, dims, expected = SIZES[case]
    p = predict(shipped("stencils", name), {"n": n}, SKYLAKE, Options(traffic="write_allocate"))
    iterations = (n - 2) ** dims
    for found, (loaded, stored) in zip(p.levels[1:], expected, strict=True):
        if not loaded:
            continue
        assert found.loads_bytes is not None and found.stores_bytes is not None
        assert found.loads_bytes / iterations == pytest.approx(loaded, rel=0.01)
        assert found.stores_bytes / iterations == pytest.approx(stored, rel=0.01)


def test_layer_conditions_of_the_seven_point_stencil() -> None:
    """Planes of 48^2 doubles: three of them fit L3 alone, three rows fit all caches."""
    small = machine(
        "peak f64 1 TFLOP/s",
        "cache L1 4 KiB, 1 TB/s, line 64 B",
        "cache L2 32 KiB, 1 TB/s, line 64 B",
        "cache L3 256 KiB, 1 TB/s, line 64 B",
    )
    p = predict(shipped("stencils", "jacobi3d"), {"n": 48}, small, Options(traffic="write_allocate"))
    expected = {"L2": (32, 8), "L3": (32, 8), "HBM": (16, 8)}  # the planes before and behind, the middle one, B
    for name, (loaded, stored) in expected.items():
        found = level(p, name)
        assert found.loads_bytes is not None and found.stores_bytes is not None
        assert found.loads_bytes / 46**3 == pytest.approx(loaded, rel=0.1)
        assert found.stores_bytes / 46**3 == pytest.approx(stored, rel=0.1)


def test_layer_conditions_of_the_triad() -> None:
    p = predict(shipped("stream", "triad"), {"n": 10_000_000}, SKYLAKE)
    assert [(found.loads_bytes, found.stores_bytes) for found in p.levels] == [
        (16 * 10**7, 8 * 10**7),
        *[(24 * 10**7, 8 * 10**7)] * 3,
    ]


def test_registers_count_scalars_once() -> None:
    total = kernel_of(
        "kernel total(n):\n    in A: f64[n]\n    inout s: f64\n    for i in range(n):\n        s += A[i]\n"
    )
    assert register_bytes_at(total, {"n": 10}) == (88, 8)


def test_accesses_as_compiled_leave_out_what_inner_loops_do_not_move() -> None:
    gemv = kernel_of(
        "kernel g(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n    for i in range(n), j in range(n):\n"
        "        y[i] += A[i, j] * x[j]\n"
    )
    written = predict(gemv, {"n": 24}, THREE)
    compiled = predict(gemv, {"n": 24}, THREE, Options(accesses="compiled"))
    assert (level(written, "L1").loads_bytes, level(written, "L1").stores_bytes) == (24 * 24**2, 8 * 24**2)
    assert (level(compiled, "L1").loads_bytes, level(compiled, "L1").stores_bytes) == (16 * 24**2 + 8 * 24, 8 * 24)
    assert compiled.levels[1:] == written.levels[1:]
    assert any("as compiled" in note for note in compiled.assumptions)
    assert not any("as compiled" in note for note in written.assumptions)


def test_warps_are_not_counted_as_compiled() -> None:
    p = predict(TRANSPOSE, {"n": 40}, WARPS, Options(accesses="compiled"))
    assert [found.name for found in p.levels] == ["HBM"]
    assert p.warnings == ("L1 is left out: --accesses compiled applies to single-threaded code, not to warps",)


@pytest.mark.parametrize(("kind", "first", "begun"), [("out", "        y[i] = 0\n", 512), ("inout", "", 0)])
def test_lines_that_begin_with_a_store(kind: str, first: str, begun: int) -> None:
    """y is 8 lines of 64 B. If each element is set to 0 before the sum, every line begins with a store, although
    the sum loads y as well; an update loads it first.
    """
    summed = kernel_of(
        f"kernel g(n):\n    in A: f64[n, n]\n    in x: f64[n]\n    {kind} y: f64[n]\n    for i in range(n):\n"
        f"{first}        for j in range(n):\n            y[i] += A[i, j] * x[j]\n"
    )
    on = machine(
        "peak f64 fma 100 GFLOP/s",
        "cache L1 1 KiB, 400 GB/s, line 64 B, no_write_allocate",
        "cache L2 64 KiB, 200 GB/s, line 64 B, written 100 GB/s, written_loads 150 GB/s",
        "memory DRAM 16 GiB, 50 GB/s",
    )
    assert level(predict(summed, {"n": 64}, on), "L2").begun_bytes == begun
