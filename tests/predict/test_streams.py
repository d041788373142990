"""Times of stores that bypass the caches: the memory gets them at their own rate, and no cache sees them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from roofdsl.incore.result import InCore, Step
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.streams import ordinary
from roofdsl.machine.model import Machine
from roofdsl.predict.expected import expected
from roofdsl.predict.hardware_traffic import lost_by_sharing
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.time_forms import terms_of
from tests.counts.test_streams import JACOBI, TRIAD
from tests.oracle.loading import kernel_of
from tests.predict.machines import machine

CACHES = tuple(f"cache {name}, line 64 B, write_allocate" for name in ("L1 32 KiB, 400 GB/s", "L2 256 KiB, 100 GB/s"))
GPU = (
    "peak f64 fma 4 TFLOP/s",
    "cache L2 4 MiB, 2 TB/s, line 64 B, no_write_allocate",
    "memory HBM 8 GiB, 1 TB/s",
    "multiprocessor warp 32, warps 64, blocks 32",
    "units 80",
)
N = {"n": 1_000_000}


def cpu(options: str = "", ways: str = "") -> Machine:
    memory = f"memory DRAM 8 GiB, 10 GB/s{options}"
    return machine("peak f64 fma 40 GFLOP/s", *(cache + ways for cache in CACHES), memory, "clock 2 GHz")


def test_the_bound_counts_each_byte_once_and_only_at_the_memory() -> None:
    found = predict(kernel_of(TRIAD), N, cpu())
    moved = {v.name: (v.loads_bytes, v.stores_bytes) for v in found.levels}
    assert moved == {"L1": (16_000_000, 0), "L2": (16_000_000, 0), "DRAM": (16_000_000, 8_000_000)}
    assert found.memory.streamed_bytes == 8_000_000
    assert found.bound_s == Fraction(24_000_000, 10**10)
    usual = predict(ordinary(kernel_of(TRIAD)), N, cpu())
    assert usual.bound_s == Fraction(32_000_000, 10**10)
    assert any("8 MB of stores go past the caches to DRAM" in note for note in found.assumptions)


FILL = "kernel fill(n, t):\n    in x: f64[n], q: f64\n    out a, b: f64[n]\n    for k in range(t), i in range(n):\n{}"
STREAMED = kernel_of(FILL.format("        stream a[i] = q + x[i]\n        b[i] = q\n"))


@pytest.mark.parametrize("policy", ["write_allocate", "no_write_allocate"])
@pytest.mark.parametrize(("room", "passes"), [("1 MiB", 1), ("1 KiB", 3)])
def test_the_main_memory_sends_a_stored_element_on_when_it_leaves(policy: str, room: str, passes: int) -> None:
    """For data in a further memory, the main memory is a cache: it gets three stores of each element, and loads nothing
    for them. Without room for all, it sends each of them on.
    """
    given = machine(
        "peak f64 fma 40 GFLOP/s", f"cache L1 512 B, 400 GB/s, line 64 B, {policy}", f"memory DRAM {room}, 10 GB/s",
        "memory FAR 1 GiB, 10 GB/s", "link bus: DRAM <-> FAR 5 GB/s",
    )  # fmt: skip
    found = predict(STREAMED, {"n": 1000, "t": 3}, given, Options(data="FAR"))
    far = found.levels[-1]
    loaded = 2 if policy == "write_allocate" else 1  # x, and b before it is stored
    assert (far.loads_bytes, far.stores_bytes) == (passes * loaded * 8000, passes * 2 * 8000)
    assert found.memory.streamed_bytes == 3 * 8000
    again = predict(STREAMED, {"n": 1000, "t": 3}, given, Options(data="FAR", warm=True)).levels[-1]
    assert again.loads_bytes == (far.loads_bytes if passes == 3 else 0)


def test_stores_may_be_faster_than_the_bandwidth_says() -> None:
    """The bound is one for cores that store faster than they load, too."""
    assert predict(kernel_of(TRIAD), N, cpu(", streamed 5 GB/s")).bound_s == Fraction(24_000_000, 10**10)
    fast = predict(kernel_of(TRIAD), N, cpu(", streamed 20 GB/s"))
    assert fast.bound_s == Fraction(16_000_000, 10**10) + Fraction(8_000_000, 2 * 10**10)
    both = predict(kernel_of(TRIAD), N, cpu(", streamed 20 GB/s, duplex"))
    assert both.bound_s == Fraction(16_000_000, 10**10)
    capped = predict(kernel_of(TRIAD), N, with_ceiling(", streamed 20 GB/s"), Options(ceilings=("half",)))
    assert capped.bound_s == 2 * fast.bound_s


def with_ceiling(options: str) -> Machine:
    lines = ("peak f64 fma 40 GFLOP/s", *CACHES, f"memory DRAM 8 GiB, 10 GB/s{options}")
    return machine(*lines, 'ceiling "half" DRAM 5 GB/s')


def expected_s(options: str) -> Fraction:
    """The expected time of code that does nothing but move data."""
    found = predict(kernel_of(TRIAD), N, cpu(options))
    core = InCore("nothing", (Step("", "", 0.0, 0.0),), None)
    return expected(found.bound_s, found.levels, Fraction(0), core, cpu(options)).expected_s


def test_the_expected_time_has_their_own_rate() -> None:
    loads, past = Fraction(16_000_000, 10**10), Fraction(8_000_000, 10**9)
    assert expected_s("") == loads + past / 10
    assert expected_s(", streamed 5 GB/s") == loads + past / 5
    assert expected_s(", streamed 20 GB/s") == loads + past / 20
    assert expected_s(", stores 4 GB/s") == loads + past / 4, "without one, that of all stores"
    assert expected_s(", stores 4 GB/s, streamed 8 GB/s") == loads + past / 8
    assert expected_s(", duplex, streamed 8 GB/s") == loads + past / 8, "they wait in the buffers that loads need"


def test_what_the_last_cache_keeps_is_lost_to_loads_alone() -> None:
    """b fits into L2 and is there in the bound. If L2 keeps less, its loads add to the stores, which are more."""
    own = cpu(ways=", holds 24 KiB")
    text = "kernel copy(n):\n    in b: f32[n]\n    out a: f64[n]\n    for i in range(n):\n        stream a[i] = b[i]\n"
    levels = predict(kernel_of(text), {"n": 50_000}, own, Options(warm=True)).levels
    assert (levels[-1].loads_bytes, levels[-1].stores_bytes) == (0, 400_000)
    lost = lost_by_sharing(levels, 200_000, own, lambda other: replace(levels[-1], loads_bytes=200_000, bytes=600_000))
    assert lost is not None
    assert lost.levels[-1].streamed_bytes == 400_000
    assert 150_000 < (lost.levels[-1].loads_bytes or 0) < 200_000


def test_lines_of_the_other_arrays_stay_in_the_caches() -> None:
    """u fits into L2 without v, and not with it: a warm launch then loads it again."""
    kernel, sizes = kernel_of(JACOBI), {"n": 176}  # 242 KiB each
    found = predict(kernel, sizes, cpu(), Options(warm=True))
    assert found.memory.loads_bytes == 0
    assert found.memory.stores_bytes == found.memory.streamed_bytes == 8 * 174 * 174
    usual = predict(ordinary(kernel), sizes, cpu(), Options(warm=True))
    assert (usual.memory.loads_bytes or 0) > 8 * 176 * 174


def test_sets_count_them_too() -> None:
    own = cpu(ways=", ways 8")
    plain, in_sets = (predict(kernel_of(TRIAD), {"n": 4096}, own, Options(sets=sets)) for sets in (False, True))
    assert [(v.loads_bytes, v.stores_bytes) for v in plain.levels] == [
        (v.loads_bytes, v.stores_bytes) for v in in_sets.levels
    ]


def test_a_gpu_stores_as_usual() -> None:
    kernel, own = kernel_of(TRIAD), machine(*GPU)
    found, usual = predict(kernel, N, own), predict(ordinary(kernel), N, own)
    assert found.bound_s == usual.bound_s
    assert found.levels == usual.levels
    assert any("made as usual" in note for note in found.assumptions)


def test_the_document_tells_them() -> None:
    (memory,) = [v for v in predict(kernel_of(TRIAD), N, cpu()).to_json()["levels"] if v["name"] == "DRAM"]
    assert memory["streamed_bytes"] == 8_000_000
    assert "streamed_bytes" not in json.dumps(predict(ordinary(kernel_of(TRIAD)), N, cpu()).to_json())


def test_what_does_not_count_them_says_so() -> None:
    with pytest.raises(CommandError, match="does not count stores that bypass the caches, and kernel triad has some"):
        terms_of(kernel_of(TRIAD), machine("peak f64 fma 40 GFLOP/s", "memory DRAM 8 GiB, 10 GB/s"))


def test_launches_before_it_do_not_change_their_rate() -> None:
    """The sum of a program's launches has the time of its parts in either order."""
    own = cpu(", streamed 20 GB/s")
    past, usual = (predict(kernel, N, own) for kernel in (kernel_of(TRIAD), ordinary(kernel_of(TRIAD))))
    for found in (past + usual, usual + past):
        assert found.memory.time_s == past.memory.time_s + usual.memory.time_s == found.bound_s
