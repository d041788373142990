"""Expected times of a GPU's launches, compared with published measurements, the law of streams, and calculations."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from statistics import median

import pytest

from roofdsl.counts import compiled_warps
from roofdsl.counts.compiled_warps import CONTROL, UNROLLED
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.operators.bandwidth import stream_rate
from roofdsl.operators.launch import DISPATCH_S
from roofdsl.predict.expected_of_launches import IN_SEQUENCE
from roofdsl.predict.expected_on_gpu import ALONE, FEW, STARTING, UNEQUAL, launch_of
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from tests.predict.launch_threads import WARP, followed, the_call
from tests.predict.machines import kernel_of

MEASURED = Path(__file__).parents[2].parent / "shared" / "measured" / "gpu_operators.csv"

PRODUCT = kernel_of(
    "kernel k(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n"
)
BY_ROWS = kernel_of(
    "kernel k(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n    parallel for j in range(n):\n"
    "        parallel for i in range(n):\n            for k in range(n):\n"
    "                C[i, j] += A[i, k] * B[k, j]\n"
)
"""The threads of a warp have a row of A each, so that none of their loads of A share a line."""

COPY = kernel_of("kernel k(n):\n    in a: f64[n]\n    out c: f64[n]\n    for i in range(n):\n        c[i] = a[i]\n")
ADD = kernel_of(
    "kernel k(n):\n    in a, b: f32[n]\n    out c: f32[n]\n    for i in range(n):\n        c[i] = a[i] + b[i]\n"
)
SERIAL = kernel_of(
    "kernel k(n):\n    in a: f64[n]\n    inout x: f64[n + 1]\n"
    "    for i in range(n):\n        x[i + 1] = 0.5 * x[i] + a[i]\n"
)


def on(machine: Machine | str, kernel: Kernel, sizes: Mapping[str, int]) -> Prediction:
    known = load_machine(machine) if isinstance(machine, str) else machine
    return predict(kernel, sizes, known, Options(code=Code()))


def expected_s(machine: Machine | str, kernel: Kernel, sizes: Mapping[str, int]) -> float:
    found = on(machine, kernel, sizes)
    assert found.expected is not None, found.no_expected
    return float(found.expected.expected_s)


def like(name: str, units: int, clock_hz: float, bytes_per_s: float) -> Machine:
    """A card with the same kind of multiprocessor: another number of them, another clock, another memory."""
    base = load_machine(name)
    assert base.clock_hz is not None and base.units is not None
    faster = Fraction(int(clock_hz)) / base.clock_hz * Fraction(units, base.units)
    first = replace(base.caches[0], copies=units, bandwidth_bytes_per_s=base.caches[0].bandwidth_bytes_per_s * faster)
    memory = replace(base.main_memory, bandwidth_bytes_per_s=Fraction(int(bytes_per_s)))
    more = Fraction(int(bytes_per_s)) / base.main_memory.bandwidth_bytes_per_s
    streams = tuple(replace(s, bandwidth_bytes_per_s=s.bandwidth_bytes_per_s * more) for s in base.sustained)
    return replace(
        base, units=units, clock_hz=Fraction(int(clock_hz)), caches=(first, *base.caches[1:]),
        memories=(memory, *base.memories[1:]), sustained=streams,
    )  # fmt: skip


A6000 = like("a40", 84, 1.8e9, 768e9)
RTX_4090 = like("l40", 128, 2.52e9, 1008e9)
V100_SXM2 = like("v100_pcie", 80, 1.53e9, 900e9)


BOEHM = 29
"""Issue slots per round of Boehm's loop, in which four iterations load and add, for addresses and counting: nvcc makes
33 instructions of it for compute capability 8.0, of which 12 load and add, and 8 wide multiplications take two slots.
"""


@pytest.mark.parametrize(
    ("machine", "kernel", "n", "published"),
    [  # GFLOP/s of the first two kernels of Boehm's series (siboehm.com/articles/22/CUDA-MMM), as others ran them
        (A6000, BY_ROWS, 4096, 309.0),  # Boehm
        (A6000, PRODUCT, 4096, 1986.5),
        (V100_SXM2, BY_ROWS, 4096, 214.5),
        (V100_SXM2, PRODUCT, 4096, 2084.1),
        ("a100_40_pcie", BY_ROWS, 4096, 290),
        ("a100_40_pcie", PRODUCT, 4096, 3010),
        ("a100_40_pcie", PRODUCT, 4096, 3046.6),  # PureKoala/cuda_learning
        (RTX_4090, BY_ROWS, 4096, 635.3),  # annanyapr/Fast-CUDA-Kernels
        (RTX_4090, PRODUCT, 4096, 4887.4),
        ("l4", PRODUCT, 512, 1723.5),  # rtferraz/cuda-kernel-engineering
        ("l4", PRODUCT, 1024, 1734.1),
    ],
)
def test_published_products_without_tiles(
    machine: Machine | str, kernel: Kernel, n: int, published: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = 2 + 2 * UNROLLED + CONTROL  # a pointer into A, one for each row of B
    monkeypatch.setattr(compiled_warps, "CONTROL", CONTROL + BOEHM - own)
    assert 2e-9 * n**3 / expected_s(machine, kernel, {"n": n}) == pytest.approx(published, rel=0.15)


def star(reach: int) -> Kernel:
    """A stencil in three dimensions with so many neighbors on each side, in blocks of 256 x 1 x 2 threads."""
    apart = range(1, reach + 1)
    terms = [f"a[z, y, x {sign} {k}]" for k in apart for sign in "+-"]
    terms += [f"a[z, y {sign} {k}, x]" for k in apart for sign in "+-"]
    terms += [f"a[z {sign} {k}, y, x]" for k in apart for sign in "+-"]
    return kernel_of(
        "kernel k(nz, ny, nx):\n    in a: f64[nz, ny, nx]\n    out b: f64[nz, ny, nx]\n    tile z, y, x by 2, 1, 256\n"
        f"    parallel for z in range({reach}, nz - {reach}), y in range({reach}, ny - {reach}), "
        f"x in range({reach}, nx - {reach}):\n        b[z, y, x] = a[z, y, x] + {' + '.join(terms)}\n"
    )


FIVE_POINTS = kernel_of(
    "kernel k(m, n):\n    in a: f64[m, n]\n    out b: f64[m, n]\n    tile j, i by 2, 256\n"
    "    parallel for j in range(1, m - 1), i in range(1, n - 1):\n"
    "        b[j, i] = 0.25 * (a[j, i - 1] + a[j, i + 1] + a[j - 1, i] + a[j + 1, i] + a[j, i])\n"
)


@pytest.mark.parametrize(
    ("kernel", "sizes", "updates", "published"),
    [  # Ernst and others, JPDC 173, 2023: billions of updates per second on an A100, from their model
        (FIVE_POINTS, {"m": 15000, "n": 15000}, 15000**2, 87),
        (star(4), {"nz": 512, "ny": 512, "nx": 640}, 512 * 512 * 640, 50),
    ],
)
def test_published_stencils(kernel: Kernel, sizes: Mapping[str, int], updates: int, published: float) -> None:
    assert updates * 1e-9 / expected_s("a100_40", kernel, sizes) == pytest.approx(published, rel=0.1)


@pytest.mark.skipif(not MEASURED.exists(), reason="the published measurements are not here")
@pytest.mark.parametrize("machine", ["v100_pcie", "t4", "a100_40_pcie"])
def test_published_additions(machine: str) -> None:
    """Of PyTorch, whose calls take time in addition; its kernel handles four elements per thread."""
    from benchmarks.published import MACHINES

    with MEASURED.open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["op"] == "add" and MACHINES.get(r["device"]) == machine]
    ratios = []
    for row in rows[::5]:
        time_s = expected_s(machine, ADD, {"n": int(row["batch"]) * int(row["width"])}) + DISPATCH_S
        ratios.append(time_s / (float(row["time_ms"]) * 1e-3))
    assert len(ratios) > 3
    assert median(ratios) == pytest.approx(1, abs=0.05)
    assert max(ratios) < 1.1 and min(ratios) > 0.9


@pytest.mark.parametrize("machine", ["v100_pcie", "a100_40", "h100_pcie", "a40", "mi210"])
def test_a_stream_has_the_rate_of_its_law(machine: str) -> None:
    """Whole waves of a copy, one element a thread."""
    known = load_machine(machine)
    assert known.units is not None and known.multiprocessor is not None and known.multiprocessor.warps is not None
    resident = known.units * known.multiprocessor.warp * known.multiprocessor.warps
    n = 40 * resident
    time_s = expected_s(known, COPY, {"n": n}) - float(known.launch_s or 0)
    assert 16 * n / time_s == pytest.approx(stream_rate(known, 8, 8, 16.0 * resident), rel=0.01)


def test_one_thread_waits_for_each_of_its_loads() -> None:
    """A recurrence has no independent iterations: four of them are a round, and each round waits for the memory only
    as often as it begins a sector.
    """
    machine = load_machine("v100_pcie")
    latencies = {name: float(s) for name, s in machine.latencies}
    n = 100_000
    found = on(machine, SERIAL, {"n": n})
    assert found.expected is not None
    time_s = float(found.expected.expected_s - found.expected.launch_s)
    assert n / 4 * latencies["L1"] < time_s < 2.1 * n * latencies["HBM"]
    assert [c.cause for c in found.expected.causes if c.remedy] == []
    assert found.expected.causes[0].cause == ALONE


def test_a_fill_loads_nothing() -> None:
    """Its threads wait for their start and their stores, whose latency is shorter than that of loads."""
    fill = kernel_of("kernel k(n):\n    out y: f32[n]\n    for i in range(n):\n        y[i] = 0\n")
    machine, n = load_machine("h100_pcie"), 114 * 2048 * 100
    found = on(machine, fill, {"n": n}).expected
    assert found is not None
    assert STARTING in {cause.cause for cause in found.causes}
    rate = stream_rate(machine, 0, 4, 4.0 * 114 * 2048)
    assert 4 * n / float(found.expected_s - found.launch_s) == pytest.approx(rate, rel=0.02)


def test_loads_that_hit_the_first_cache_wait_less_for_it() -> None:
    """An outer product loads elements that other threads have loaded: waves do not each wait for the memory."""
    outer = kernel_of(
        "kernel k(n):\n    in a, b: f32[n]\n    out C: f32[n, n]\n"
        "    for i in range(n), j in range(n):\n        C[i, j] = a[i] * b[j]\n"
    )
    machine = load_machine("h200")
    found = on(machine, outer, {"n": 20_000}).expected
    assert found is not None
    start_s = 695e-9 - 342.7e-9
    waves = 20_000**2 / (132 * 2048)
    assert float(found.expected_s) < waves * (start_s + 141.5e-9) + 1.1 * 4 * 20_000**2 / 4482e9


def test_sums_over_a_whole_loop_are_unrolled() -> None:
    """2^20 threads of the first launch would be too many: 1,024 blocks of 256 threads add up 40 elements each."""
    total = kernel_of("kernel k(n):\n    in a: f64[n]\n    inout s: f64\n    for i in range(n):\n        s += a[i]\n")
    found = on("v100_pcie", total, {"n": 40 * 1024 * 256})
    assert any("waits for its loads 10 times" in note for note in found.assumptions)


def test_blocks_that_leave_multiprocessors_without_work() -> None:
    """Eight blocks on 80 multiprocessors: what happens inside them takes ten times as long as on all of them."""
    gemv = kernel_of(
        "kernel k(n, m):\n    in A: f64[n, m], x: f64[m]\n    inout y: f64[n]\n"
        "    for i in range(n), j in range(m):\n        y[i] += A[i, j] * x[j]\n"
    )
    machine = load_machine("v100_pcie")
    few, whole = (on(machine, gemv, {"n": n, "m": 512}).expected for n in (8 * 256, 80 * 256))
    assert few is not None and whole is not None
    assert FEW in {cause.cause for cause in few.causes}
    assert FEW not in {cause.cause for cause in whole.causes}
    assert few.loads_s * 10 == pytest.approx(float(whole.loads_s), rel=1e-9)
    assert few.data_s > whole.data_s / 2  # ten times less work


@pytest.mark.parametrize("n", [100, 3000, 10**6])
@pytest.mark.parametrize(
    "text",
    [
        "kernel k(n):\n    in a: f64[n]\n    inout s: f64\n    for i in range(n):\n        s += a[i]\n",
        "kernel k(n):\n    in a: f64[n]\n    out b, c: f64[n]\n    for i in range(n):\n        b[i] = 2 * a[i]\n"
        "    for i in range(1, n):\n        c[i] = b[i - 1]\n",
        "kernel k(n):\n    in a: f32[n]\n    out b: f32[n]\n    for i in range(n):\n        b[i] = exp(a[i])\n",
    ],
)
def test_causes_add_up(text: str, n: int) -> None:
    for name in ("v100_pcie", "a100_80", "h200", "mi210"):
        found = on(name, kernel_of(text), {"n": n})
        assert found.expected is not None, found.no_expected
        apart = sum((cause.share_s for cause in found.expected.causes), Fraction(0))
        assert found.bound_s + apart == found.expected.expected_s
        assert found.expected.expected_s > found.bound_s
        assert found.to_json()["expected_s"] == float(found.expected.expected_s)


def test_launches_follow_each_other() -> None:
    two = kernel_of(
        "kernel k(n):\n    in a: f64[n]\n    out b, c: f64[n]\n    for i in range(n):\n"
        "        b[i] = sqrt(sqrt(a[i]))\n"
        "    for i in range(1, n):\n        c[i] = b[i - 1]\n"
    )
    found = on("a40", two, {"n": 10**7}).expected
    assert found is not None and found.launch_s == 2 * (load_machine("a40").launch_s or 0)
    assert IN_SEQUENCE in {cause.cause for cause in found.causes}


@pytest.mark.parametrize(
    ("machine", "text", "why"),
    [
        (
            "v100",
            "kernel k(n):\n    unit tensor\n    in A, B: f16[n, n]\n    inout C: f16[n, n]\n"
            "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n",
            "the generated loops do not use matrix units",
        ),
        ("p100_pcie", "", "p100_pcie states no L1"),
        (replace(load_machine("v100"), caches=()), "", "v100 states no L1"),
        ("mi300x", "", "mi300x states no `sustained` bandwidth of HBM"),
    ],
)
def test_a_reason_for_no_time(machine: Machine | str, text: str, why: str) -> None:
    kernel = kernel_of(text) if text else COPY
    found = on(machine, kernel, {p.name: 1000 for p in kernel.parameters})
    assert found.expected is None and found.no_expected.startswith(why)


TWO = kernel_of(
    "kernel k(n):\n    in a: f64[n]\n    out b, c: f64[n]\n    for i in range(n):\n        b[i] = a[i]\n"
    "    for i in range(1, n):\n        c[i] = b[i - 1]\n"
)


def test_options_without_an_expected_time() -> None:
    found = predict(COPY, {"n": 1000}, load_machine("v100_pcie"), Options(code=Code(), levels="memory"))
    assert found.expected is None and found.no_expected.endswith("leave out `--levels memory`")


@pytest.mark.parametrize("n", [1000, 10**7])
def test_several_launches_from_warm_caches(n: int) -> None:
    """Those whose data stay in L2 wait less; those that stream more than L2 holds are as slow as from empty caches."""
    v100 = load_machine("v100_pcie")
    cold, warm = (predict(TWO, {"n": n}, v100, Options(code=Code(), warm=w)) for w in (False, True))
    assert cold.expected is not None and warm.expected is not None
    if n == 1000:
        assert warm.memory.bytes == 0 and warm.expected.expected_s < cold.expected.expected_s
    else:
        assert warm.expected.expected_s == cold.expected.expected_s


SUM = "for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n"


@pytest.mark.parametrize("n", [16, 33, 64])
@pytest.mark.parametrize(
    "body",
    [
        f"{SUM}    tile i, j by 16\n",
        f"{SUM}    tile i, j, k by 16\n",
        "for i in range(n), j in range(n):\n        C[i, j] += A[i, j] * B[j, i]\n",
        "for i in range(n), j in range(n):\n        C[i, 0] += A[i, j] * B[j, i]\n",
    ],
)
def test_threads_and_lanes_of_the_generated_launch(body: str, n: int) -> None:
    """Those that have an access, followed one by one. A whole tile of a launch in tiles counts, at the edges, too."""
    kernel = kernel_of(f"kernel k(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n    {body}")
    sizes, known = {"n": n}, load_machine("v100_pcie")
    (launched,) = launches_of_kernel(kernel, sizes, known).each
    found = launch_of(launched, sizes, known, None, on(known, kernel, sizes))
    _, made = the_call(kernel, sizes)
    x, y, _ = made.block
    threads = {(a.block, a.thread) for a in followed(kernel, sizes)}
    warps = {(block, (t[0] + x * (t[1] + y * t[2])) // WARP) for block, t in threads}
    if "tile" in body:
        assert len(threads) <= found.threads <= len(threads) * (-(-n // 16) * 16 / n) ** 2 and found.in_use == 1
    else:
        assert (found.threads, found.in_use) == (len(threads), Fraction(len(threads), WARP * len(warps)))


def test_a_tiled_product_takes_no_longer_than_one_without_tiles() -> None:
    """Its threads have the same number of rounds."""
    tiled = kernel_of(
        "kernel k(n):\n    in A, B: f32[n, n]\n    inout C: f32[n, n]\n    for i in range(n), j in range(n), "
        "k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n    tile i, j by 16\n"
    )
    for n in (256, 1024):
        assert expected_s("v100_pcie", tiled, {"n": n}) < 1.3 * expected_s("v100_pcie", PRODUCT, {"n": n})


@pytest.mark.parametrize("machine", ["t4", "v100", "mi210", "a100_80"])
@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 33])
def test_nothing_is_faster_than_the_bound_if_nothing_stays_in_registers(machine: str, stride: int) -> None:
    text = "kernel k(n):\n    in a: f64[S * n]\n    inout c: f64[n]\n    for i in range(n):\n        c[i] += a[S * i]\n"
    found = on(machine, kernel_of(text.replace("S", str(stride))), {"n": 100_000})
    assert found.expected is not None and found.expected.expected_s >= found.bound_s
    assert all(cause.share_s > 0 for cause in found.expected.causes)


def test_a_thread_starts_one_instruction_per_cycle() -> None:
    """One thread that never loads: each square root and addition is an instruction."""
    text = (
        "kernel k(n):\n    inout a: f64[1]\n    for i in range(n), j in range(n):\n"
        "        a[0] = sqrt(a[0] + 1.0) + sqrt(a[0] + 2.0)\n"
    )
    known = load_machine("v100_pcie")
    found = on(known, kernel_of(text), {"n": 1000}).expected
    assert found is not None and known.clock_hz is not None
    assert found.expected_s > 3 * 1000**2 / known.clock_hz


def test_threads_of_a_row_load_the_same_element_each() -> None:
    """x[i] is in a register of each thread of row i: with neighboring threads along j, as many loads as of A."""
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[n, n], x: f64[n]\n    out C: f64[n, n]\n    for i in range(n), j in range(n):\n"
        "        C[i, j] = A[i, j] * x[i]\n"
    )
    (launched,) = launches_of_kernel(kernel, {"n": 64}, load_machine("v100_pcie")).each
    known = load_machine("v100_pcie")
    found = launch_of(launched, {"n": 64}, known, None, on(known, kernel, {"n": 64}))
    assert (found.accesses.loads, found.accesses.stores) == (2 * 64**2, 64**2)


def rows(stop: str) -> Kernel:
    return kernel_of(
        "kernel k(n, m):\n    in A: f64[m, n], x: f64[m]\n    inout y: f64[n]\n    parallel for i in range(n):\n"
        f"        for j in range({stop}):\n            y[i] += A[j, i] * x[j]\n"
    )


def test_a_launch_ends_when_its_longest_thread_ends() -> None:
    """16 blocks on 80 multiprocessors: rows of a triangle wait as often as the longest of them."""
    sizes, whole = {"n": 4096, "m": 4096}, on("v100_pcie", rows("m"), {"n": 4096, "m": 4096}).expected
    assert whole is not None
    for stop in ("min(m, i + 1)", "min(m, n - i)"):
        found = on("v100_pcie", rows(stop), sizes).expected
        assert found is not None and UNEQUAL in {cause.cause for cause in found.causes}
        assert 0.9 * whole.expected_s < found.expected_s <= whole.expected_s
    assert UNEQUAL not in {cause.cause for cause in whole.causes}


def test_long_blocks_at_the_end_of_a_launch_take_longer() -> None:
    """Two blocks at a time on two multiprocessors: 1 to 5 parts of the work end after 9, 5 to 1 parts after 8."""
    known = replace(load_machine("v100_pcie"), units=2)
    assert known.multiprocessor is not None
    known = replace(known, multiprocessor=replace(known.multiprocessor, blocks=1))
    sizes = {"n": 5 * 256, "m": 5 * 256}
    last, first = (expected_s(known, rows(stop), sizes) for stop in ("min(m, i + 1)", "min(m, n - i)"))
    assert last / first == pytest.approx(9 / 8, rel=0.03)


@pytest.mark.parametrize("machine", ["v100_pcie", "t4"])
def test_a_block_with_a_single_thread_takes_no_work_from_the_others(machine: str) -> None:
    """257 threads are one block of 256 and one of 1, whose multiprocessor has nearly nothing to do."""
    gemv = kernel_of(
        "kernel k(n, m):\n    in A: f64[n, m], x: f64[m]\n    inout y: f64[n]\n"
        "    for i in range(n), j in range(m):\n        y[i] += A[i, j] * x[j]\n"
    )
    one, two = (expected_s(machine, gemv, {"n": n, "m": 2048}) for n in (256, 257))
    assert two == pytest.approx(one, rel=0.02)
