"""Predictions and the sets of caches: what is warned of, and the bytes with sets, against `simulate`."""

from __future__ import annotations

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import simulate
from tests.models.shipped import model
from tests.predict.machines import kernel_of, machine

SKYLAKE = "skylake_gold_6148"


def test_warnings_name_array_stride_and_what_helps() -> None:
    k, on = model("transpose"), load_machine(SKYLAKE)
    (warning,) = predict(k, {"n": 128}, on, Options(conflicts=True)).warnings
    assert warning.startswith("L1: loop i reuses 144 lines")
    assert "4 of 64 sets get more than 8" in warning and "lines of B are 1,024 B apart" in warning
    assert "rows of B that are 8 elements longer" in warning and "--sets" in warning
    assert predict(k, {"n": 136}, on, Options(conflicts=True)).warnings == ()
    assert predict(k, {"n": 128}, on).warnings == ()
    memory = Options(levels="memory", conflicts=True)
    assert predict(k, {"n": 128}, on, memory).warnings == ()  # its L3 picks sets by a hash


@pytest.mark.parametrize("n", [128, 100])
def test_bytes_with_sets(n: int) -> None:
    """Each level is a simulation of the cache before it; what fits and has no conflict stays as it was."""
    k, on = model("transpose"), load_machine(SKYLAKE)
    plain, sets = (predict(k, {"n": n}, on, Options(sets=chosen)) for chosen in (False, True))
    cache = on.caches[0]
    run = simulate(k, {"n": n}, [CacheLevel("L1", cache.size_bytes, 64, cache.ways)])
    second = next(level for level in sets.levels if level.name == "L2")
    assert (second.loads_bytes, second.stores_bytes) == (run.load_bytes(0), run.store_bytes(0))
    before = next(level for level in plain.levels if level.name == "L2")
    assert (second.bytes > 5 * before.bytes) if n == 128 else second.bytes == before.bytes
    assert sets.memory.bytes == plain.memory.bytes
    assert any("simulated behind L1 with 64 sets of 8 ways" in a for a in sets.assumptions) and not sets.warnings


@pytest.mark.parametrize(
    ("written", "share"), [("write_allocate 0.5", "allocated"), ("written_loads 50 GB/s", "begun")]
)
def test_what_stores_load_with_sets(written: str, share: str) -> None:
    """The lines of B that a conflict evicts between two stores are begun once for each of these stores."""
    lines = ("cache L1 32 KiB, 200 GB/s, line 64 B, ways 8", f"cache L2 1 MiB, 100 GB/s, line 64 B, ways 16, {written}")
    if share == "allocated":
        lines = (f"{lines[0]}, {written}", lines[1].removesuffix(f", {written}"))
    on = machine("peak f64 fma 10 GFLOP/s", *lines, "memory DRAM 1 GiB, 10 GB/s")
    k = model("transpose")
    plain, sets = (
        next(level for level in predict(k, {"n": 128}, on, Options(sets=chosen)).levels if level.name == "L2")
        for chosen in (False, True)
    )
    claimed, loaded = (
        simulate(k, {"n": 128}, [CacheLevel("L1", 32 << 10, 64, 8, write_miss=miss)]).load_bytes(0)
        for miss in ("claim", "allocate")
    )
    begun = loaded - claimed
    assert sets.loads_bytes == claimed
    if share == "allocated":
        assert sets.allocated_bytes == begun // 2 > 2 * plain.allocated_bytes > 0
    else:
        assert sets.begun_bytes == begun > 2 * plain.begun_bytes > 0


def test_where_sets_have_no_meaning() -> None:
    with pytest.raises(CommandError, match="does not define the sets of its caches: it defines no ways for"):
        predict(model("gemv"), {"n": 64}, load_machine("v100"), Options(sets=True))
    with pytest.raises(CommandError, match="empty caches"):
        predict(model("gemv"), {"n": 64}, load_machine(SKYLAKE), Options(sets=True, warm=True))
    once = predict(model("gemv"), {"n": 64}, load_machine(SKYLAKE), Options(sets=True, traffic="once"))
    assert any("the convention assumes no cache" in w for w in once.warnings)


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ("256 KiB, 40 GB/s, line 64 B", "m defines no ways for L2, so"),
        ("256 KiB, 40 GB/s, ways 8", "m defines no line size for L2, so"),
        (
            "250 kB, 40 GB/s, line 64 B, ways 7",
            "m defines a size that 7 ways of whole 64-byte lines do not fill for L2, so",
        ),
    ],
)
def test_why_a_cache_has_no_sets(lacking: str, words: str) -> None:
    copy = kernel_of("kernel c(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = x[i]\n")
    lines = ("peak f64 fma 10 GFLOP/s", f"cache L2 {lacking}", "memory DRAM 1 GiB, 1 GB/s")
    on = machine(lines[0], "cache L1 32 KiB, 100 GB/s, line 64 B, ways 8", *lines[1:])
    (warning,) = predict(copy, {"n": 100}, on, Options(sets=True)).warnings
    assert warning == f"{words} it counts as fully associative"
    with pytest.raises(CommandError) as refused:
        predict(copy, {"n": 100}, machine(*lines), Options(sets=True))
    assert refused.value.message.endswith(f": it{words.removeprefix('m').removesuffix(', so')}")
