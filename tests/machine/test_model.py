"""Rates and their fallbacks: docs/rules.md, rule 12."""

from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of
from roofdsl.machine.model import Machine
from roofdsl.machine.multiprocessor import Multiprocessor


def machine(lines: str) -> Machine:
    body = "".join(f"    {line.strip()}\n" for line in lines.strip().splitlines())
    memory = "" if "memory" in lines else "    memory HBM 16 GiB, 1 TB/s\n"
    return machine_of(load_file(Source("m.roof", f"machine m:\n{body}{memory}")), None)


def test_stated_rates_are_taken_as_they_stand() -> None:
    m = machine("peak f64 fma 8 TFLOP/s\npeak f64 5 TFLOP/s\npeak f64 min 3 TFLOP/s\npeak f64 div 1 TFLOP/s")
    for cls, rate in (("fma", 8), ("unfused", 5), ("add", 5), ("mul", 5), ("min", 3), ("div", 1)):
        found = m.rate("f64", cls)
        assert found.per_s == rate * 10**12
        assert found.assumptions == ()


def test_what_is_missing_follows_from_the_fused_rate_and_says_so() -> None:
    m = machine("peak f64 fma 8 TFLOP/s")
    for cls, rate in (
        ("unfused", Fraction(4)),
        ("min", Fraction(4)),
        ("div", Fraction(1, 2)),
        ("special", Fraction(1, 2)),
    ):
        found = m.rate("f64", cls)
        assert found.per_s == rate * 10**12
        assert found.assumptions
    assert "1/8" in m.rate("f64", "div").assumptions[-1]
    assert "1/8" not in m.rate("f64", "min").assumptions[-1]


def test_costs_of_machine_and_kernel() -> None:
    m = machine("peak f64 4 TFLOP/s\npeak f64 special 2 TFLOP/s\ncost div 16")
    assert m.rate("f64", "div").per_s == 10**12 // 4
    assert m.rate("f64", "div").assumptions == ()
    assert m.rate("f64", "div", {"div": Fraction(4)}).per_s == 10**12
    assert m.rate("f64", "special").per_s == 2 * 10**12
    assert m.rate("f64", "special", {"special": Fraction(4)}).per_s == 10**12


def test_pairs_without_fused_multiply_add_run_as_two_operations() -> None:
    found = machine("peak f64 4 TFLOP/s").rate("f64", "fma")
    assert found.per_s == 4 * 10**12
    assert "no fused multiply-add" in found.assumptions[0]


def test_a_fused_rate_below_the_unfused_one_is_no_bound() -> None:
    """Code can always run a pair as one add and one mul, and 5 TFLOP/s of these are 5 TFLOP/s of pairs."""
    m = machine("peak f64 fma 2 TFLOP/s\npeak f64 5 TFLOP/s")
    found = m.rate("f64", "fma")
    assert found.per_s == m.peak("f64").per_s == 5 * 10**12
    assert found.assumptions == ("f64: a pair runs as one add and one mul, which are faster than a fused one",)


@pytest.mark.parametrize(
    ("type_name", "cls", "message", "help"),
    [
        ("f32", "fma", "machine m has no peak for f32", "it has f64; add `peak f32 fma RATE` to the machine"),
        ("i32", "fma", "machine m has no peak for i32", "it has f64; add `peak i32 RATE` to the machine"),
        (
            "f16",
            "fma",
            "machine m has a rate of f16 for its matrix units, but none for others",
            "add `peak f16 fma RATE`",
        ),
        ("f64", "tensor", "machine m has no tensor rate for f64", "its tensor units take f16"),
        ("f16", "tensor_sparse", "machine m has no tensor_sparse rate for f16", "leave out `--unit`"),
    ],
)
def test_a_missing_type_names_what_there_is(type_name: str, cls: str, message: str, help: str) -> None:
    m = machine("peak f64 fma 8 TFLOP/s\npeak f16 tensor 100 TFLOP/s")
    with pytest.raises(CommandError) as error:
        m.rate(type_name, cls)
    assert error.value.message == message
    assert help in error.value.help


def test_the_peak_of_a_type() -> None:
    m = machine("peak f64 fma 8 TFLOP/s\npeak f64 5 TFLOP/s\npeak f32 3 TFLOP/s\npeak f64 tensor 60 TFLOP/s")
    assert m.peak("f64").per_s == 8 * 10**12
    assert m.peak("f32").per_s == 3 * 10**12
    assert m.peak("f64", "tensor").per_s == 60 * 10**12


def test_every_kind_of_line_arrives_in_plain_units() -> None:
    m = machine(
        """
        source "a"
        source "b"
        peak i32 fma 2 TOP/s source "p"
        pipes separate add mul
        cache L1 32 KiB, 2 TB/s, line 64 B, sector 32 B, ways 8, copies 4, no_write_allocate source "c"
        memory HBM 16 GB, 900 GB/s, line 64 B, duplex source "h"
        memory DRAM 1 TiB, 100 GB/s
        ceiling "slow" HBM 500 GB/s
        ceiling "lazy" i32 1 TOP/s
        link bus: DRAM -> HBM 50 GB/s
        launch 4.2 us source "l"
        clock 1.5 GHz
        units 80
        cost special 12
        """
    )
    assert m.source == "a; b"
    assert (m.peaks[0].type, m.peaks[0].cls, m.peaks[0].rate_per_s, m.peaks[0].source) == (
        "i32",
        "fma",
        2 * 10**12,
        "p",
    )
    assert m.pipes_separate
    cache = m.last_cache
    assert cache is not None
    assert (cache.size_bytes, cache.bandwidth_bytes_per_s, cache.line_bytes) == (32768, 2 * 10**12, 64)
    assert (cache.sector_bytes, cache.ways, cache.copies, cache.write_allocate) == (32, 8, 4, False)
    assert not cache.duplex and m.main_memory.duplex and m.main_memory.source == "h"
    assert (m.main_memory.name, m.main_memory.size_bytes) == ("HBM", 16 * 10**9)
    assert m.main_memory.bandwidth_bytes_per_s == 900 * 10**9
    assert [c.name for c in m.ceilings] == ["slow", "lazy"]
    assert (m.links[0].start, m.links[0].end, m.links[0].both_ways) == ("DRAM", "HBM", False)
    assert m.launch_s == Fraction(42, 10**7)
    assert (m.clock_hz, m.units, m.costs) == (15 * 10**8, 80, (("special", Fraction(12)),))


def test_a_multiprocessor_and_latencies() -> None:
    path = Path(__file__).parents[1] / "lang" / "good" / "multiprocessor.roof"
    found = machine_of(load_file(path), None)
    assert found.multiprocessor == Multiprocessor(32, 64, 32, 1024, 65536, 96 * 1024, 4, source="guide")
    assert found.latencies == (("HBM", Fraction(4, 10**7)), ("L1", Fraction(2, 10**8)))
