"""The plateaus of Q(Z) against simulation: what they say of the middle of each is what a cache of that size sees."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt

import pytest

from benchmarks.kernels import fresh, shipped
from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.derive import derive
from roofdsl.counts.traffic_form_records import PlateauBytes
from roofdsl.loops.model import Traffic
from roofdsl.loops.transform import apply
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.lru_traffic import simulate_lru

CASES = [
    ("gemv", {"n": 64}),
    ("gemv", {"n": 333}),
    ("matmul", {"n": 48}),
    ("matmul", {"n": 97}),
    ("matmul_blocked", {"n": 96, "b": 8}),
    ("matmul_blocked", {"n": 120, "b": 10}),
    ("jacobi2d", {"n": 64}),
    ("jacobi2d", {"n": 301}),
]


@pytest.mark.spread(1, 6)
@pytest.mark.parametrize(
    ("name", "size", "convention"),
    [(*case, "load_store") for case in CASES]
    + [(*case, convention) for case in CASES[::2] for convention in ("once", "write_allocate")],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_plateaus_are_what_a_cache_sees(name: str, size: dict[str, int], convention: Traffic) -> None:
    """Halfway (in powers) between two transitions the simulated traffic is that of the plateau, lower orders and all.

    The numbers given are of the leading terms, from which it differs by terms smaller by an extent or a tile.
    """
    kernel = fresh(shipped()[name], name)
    plateaus = derive(kernel, size, traffic=convention).plateaus
    env = {n: Fraction(v) for n, v in size.items()}
    starts = [int(p.from_bytes.value) for p in plateaus if p.from_bytes.value is not None]
    assert len(starts) == len(plateaus) >= 3
    assert starts == sorted(starts)
    for p, start, end in zip(plateaus, starts, [*starts[1:], 8 * starts[-1]], strict=True):
        middle = isqrt(start * end)
        seen = simulate_lru(apply(kernel), size, middle).bytes(convention)
        assert p.all_bytes.form is not None
        assert seen == p.all_bytes.form.evaluate(env), f"at Z = {middle}, between {start} and {end}"
        assert p.bytes.value is not None
        assert abs(seen - p.bytes.value) <= 4 * p.bytes.value / min(size.values())


@pytest.mark.spread(1, 6)
@pytest.mark.parametrize(("name", "size"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_there_is_no_plateau_more(name: str, size: dict[str, int]) -> None:
    """What Q(Z) is over half an octave and more without a step, is one of the plateaus."""
    kernel = fresh(shipped()[name], name)
    env = {n: Fraction(v) for n, v in size.items()}
    known = set()
    for p in derive(kernel, size, traffic="load_store").plateaus:
        assert p.all_bytes.form is not None
        known.add(p.all_bytes.form.evaluate(env))
    sizes, values = miss_curve(apply(kernel), size).steps("load_store")
    ends = [*sizes[1:], 8 * sizes[-1]]
    wide = {int(v) for s, e, v in zip(sizes, ends, values, strict=True) if e >= 1.5 * s}
    assert wide
    assert wide <= known


@pytest.mark.thorough
@pytest.mark.spread(1, 6)
@pytest.mark.parametrize(
    ("name", "size"),
    [("gemv", {"n": 64}), ("gemv", {"n": 128}), ("matmul", {"n": 48}), ("triad", {"n": 1000}), ("daxpy", {"n": 513}),
     ("batched_gemm", {"n": 32, "batch": 4}), ("gemm_f16", {"m": 32, "n": 64, "k": 96})],
    ids=str,
)  # fmt: skip
def test_plateaus_of_lines_are_what_a_cache_sees(name: str, size: dict[str, int]) -> None:
    """Lines of 64 B, for rows of whole lines: to the byte, halfway between two transitions."""
    kernel = fresh(shipped()[name], name)
    found = ClosedForms(kernel, {}, 64).plateau_forms("load_store")
    env = {n: Fraction(v) for n, v in size.items()}
    starts = [int(p.from_bytes.evaluate(env)) for p in found]
    assert starts == sorted(starts) and len(starts) >= 2
    for p, start, end in zip(found, starts, [*starts[1:], 8 * starts[-1]], strict=True):
        middle = isqrt(start * end)
        seen = simulate_lru(apply(kernel), size, middle, 64).bytes("load_store")
        assert seen == p.all_bytes.evaluate(env), f"at Z = {middle}, between {start} and {end}"


@cache
def stencil_in_lines(convention: Traffic) -> tuple[PlateauBytes, ...]:
    return ClosedForms(fresh(shipped()["jacobi2d"], "jacobi2d"), {}, 64).plateau_forms(convention)


@pytest.mark.thorough
@pytest.mark.parametrize("n", [32, 64, 128])
def test_plateaus_of_a_stencil_in_lines_are_what_a_cache_sees(n: int) -> None:
    """Distances of neighbours on one line come as hulls that overlap; each access is counted once all the same."""
    curve = miss_curve(apply(fresh(shipped()["jacobi2d"], "jacobi2d")), {"n": n}, 64)
    conventions: tuple[Traffic, ...] = ("load_store", "once", "write_allocate")
    for convention in conventions:
        stated = [p for p in stencil_in_lines(convention) if p.all_bytes is not None]
        assert len(stated) >= 3
        for p in stated:
            size = int(p.from_bytes.evaluate({"n": n}) * Fraction(3, 2)) // 64 * 64
            assert p.all_bytes is not None
            assert p.all_bytes.evaluate({"n": n}) == curve.bytes(size, convention)


def test_values_do_not_assume_aligned_rows() -> None:
    """At n = 1003, rows of A begin inside lines: the forms have no values there, and the last row moves what is counted
    directly.
    """
    kernel, size = fresh(shipped()["gemv"], "gemv"), {"n": 1003}
    rows = derive(kernel, size, line_bytes=64).plateaus
    lines = -(-8 * 1003**2 // 64) + 2 * -(-8 * 1003 // 64)
    assert [row.bytes.value for row in rows] == [None, None, 64 * lines]
    assert all(row.from_bytes.value is None and row.all_bytes.value is None for row in rows)
    assert rows[-1].intensity.value == Fraction(2 * 1003**2, 64 * lines)
    aligned = derive(kernel, {"n": 1008}, line_bytes=64).plateaus
    assert [row.bytes.value for row in aligned] == [192 * 1008**2, 16 * 1008**2, 8 * 1008**2 + 16 * 1008]
