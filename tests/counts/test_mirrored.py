"""Kernels that go through an array against their loop, in lines: forms for whole lines, against simulation."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from roofdsl.counts.derive import derive
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.counts.exact import meets
from tests.oracle.loading import kernel_of

MIRROR = """kernel mirror(n):
    in A: f64[n]
    out B: f64[n]
    for i in range(n):
        B[n - 1 - i] = A[i] + A[n - 1 - i]
"""


@pytest.mark.spread(1)
@pytest.mark.parametrize("line", [32, 64])
def test_traffic_of_both_ends(line: int, pytestconfig: pytest.Config) -> None:
    kernel, rng, compared = kernel_of(MIRROR), Random(line), 0
    caches = (4 * line, 1024, 4096) if pytestconfig.option.thorough else (1024,)
    for cache in caches:
        found = derive(kernel, cache_bytes=cache, line_bytes=line, plateaus=False).at_cache.bytes
        assert found.form is not None, found.note
        for _ in range(8):
            n = (2 * line // 8) * rng.randint(1, 3 * cache // (2 * line))
            if meets(found.form.assumes, {"n": n}):
                want = simulate_lru(kernel, {"n": n}, cache, line, skip=False).bytes("load_store")
                assert found.form.evaluate({"n": n}) == want, (n, cache)
                compared += 1
        assert not meets(found.form.assumes, {"n": 10 * line + 1})  # a line is not full
    assert compared > 4 * len(caches)


@pytest.mark.thorough
def test_plateaus_say_what_sizes_they_are_for() -> None:
    rows = derive(kernel_of(MIRROR), line_bytes=64).plateaus
    assert [str(row.where) for row in rows] == ["n % 16 == 0"] * 2
    assert str(rows[-1].from_bytes.expr) == "16*n"


@pytest.mark.thorough
def test_other_remainders_have_values() -> None:
    """The form does not hold there, and the value does not come from it."""
    kernel, at = kernel_of(MIRROR), {"n": 1003}
    d = derive(kernel, at, cache_bytes=1024, line_bytes=64, plateaus=False)
    want = traffic_at(kernel, at, 1024, 64, "load_store").bytes
    assert d.at_cache.bytes.value == want == simulate_lru(kernel, at, 1024, 64, skip=False).bytes("load_store")


def test_plateaus_have_no_values_at_other_remainders() -> None:
    """Only the compulsory traffic is known there: two arrays of 126 lines, the last of them not full."""
    rows = derive(kernel_of(MIRROR), {"n": 1003}, line_bytes=64).plateaus
    assert [row.bytes.value for row in rows] == [None, 2 * 126 * 64]
    assert all(row.from_bytes.value is None and row.all_bytes.value is None for row in rows)
    assert rows[-1].intensity.value == Fraction(1003, 2 * 126 * 64)


TILED = """kernel tiles(n, b):
    assume n % b == 0
    in A: f64[n]
    out B: f64[n]
    for i in range(0, n, b), j in range(b):
        B[i + j] = A[n - 1 - i - j] + A[i + j]
"""


def test_plateaus_state_the_numbers_in_them() -> None:
    found = derive(kernel_of(TILED), {"n": 512, "b": 16}, line_bytes=64)
    assert found.plateaus and found.plateaus_at == {"b": 16}
