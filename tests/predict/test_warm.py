"""Predictions of a launch right after another: nothing comes from a level that the data never left."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as kernel_in
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options

TEXT = """
kernel triad(n):
    in s: f64, B, C: f64[n]
    out A: f64[n]
    for i in range(n):
        A[i] = B[i] + s * C[i]

machine small:
    peak f64 fma 100 GFLOP/s
    cache L1 32 KiB, 200 GB/s, line 64 B, write_allocate
    cache L2 1 MiB, 50 GB/s, line 64 B, write_allocate
    memory RAM 1 GiB, 10 GB/s
"""
CHECKED = load_file(Source("<test>", TEXT))
TRIAD, SMALL = kernel_in(CHECKED, "triad"), machine_of(CHECKED, "small")


def bytes_by_level(n: int, warm: bool) -> dict[str, int]:
    return {level.name: level.bytes for level in predict(TRIAD, {"n": n}, SMALL, Options(warm=warm)).levels}


def test_data_in_the_first_cache_come_from_no_further() -> None:
    assert bytes_by_level(1024, True) == {"L1": 24 * 1024, "L2": 0, "RAM": 0}
    assert bytes_by_level(1024, False) == {"L1": 24 * 1024, "L2": 32 * 1024, "RAM": 32 * 1024}


def test_data_in_the_second_cache() -> None:
    n = 32 * 1024
    assert bytes_by_level(n, True) == {"L1": 24 * n, "L2": 32 * n, "RAM": 0}
    warm = predict(TRIAD, {"n": n}, SMALL, Options(warm=True))
    assert warm.bound == "L2"
    assert warm.bound_s == Fraction(32 * n, 50 * 10**9)


def test_a_stream_longer_than_every_cache_is_as_cold() -> None:
    n = 1 << 20
    assert bytes_by_level(n, True) == bytes_by_level(n, False) == {"L1": 24 * n, "L2": 32 * n, "RAM": 32 * n}
