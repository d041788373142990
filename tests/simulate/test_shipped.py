"""Every shipped kernel: a simulated fully associative cache has the loads and stores of `derive --cache`."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.kernels import fresh, shipped
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.lines_of_sets import lines_by_sets
from roofdsl.counts.traffic_at import convention_totals, traffic_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel as load
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.sized import Sized
from roofdsl.loops.transform import apply
from roofdsl.sets.library import TooHard
from roofdsl.simulate.cache_levels import CacheLevel, WriteMiss
from roofdsl.simulate.distances import miss_curve
from roofdsl.simulate.hierarchy import simulate
from roofdsl.simulate.lru_traffic import simulate_lru

SHIPPED = shipped()
CONVENTIONS: tuple[tuple[Traffic, WriteMiss], ...] = (("load_store", "claim"), ("write_allocate", "allocate"))
MOST_ACCESSES = 40_000
OPERATIONS = 15_000  # of the integer-set library: a fraction of a second


def small(name: str) -> Kernel:
    """The kernel, its `const` parameters an eighth of what they are."""
    plain = fresh(SHIPPED[name], name)
    return load(SHIPPED[name], name, {n: max(2, v // 8) for n, v in plain.constants})


def random_size(kernel: Kernel, rng: Random) -> dict[str, int]:
    """Sizes that the kernel allows, with few accesses."""
    plain = apply(kernel)
    for attempt in range(400):
        top = max(4, 20 - attempt // 10)
        size = {p.name: rng.randint(1, top) for p in kernel.parameters}
        if "b" in size and "n" in size:
            size["n"] = size["b"] * rng.randint(1, 4)
        try:
            values = numbers(kernel, size)
            if simulate_lru(plain, values, None, max_accesses=MOST_ACCESSES).accesses:
                return values
        except CommandError:  # sizes that the kernel does not allow, or too many accesses
            continue
    raise AssertionError(f"no small size of {kernel.name} found")


@pytest.mark.spread(1, 20)
@pytest.mark.parametrize("name", SHIPPED)
def test_fully_associative_equals_derive(name: str) -> None:
    """At ten random (size, Z, line), to the last byte; Q(Z) by stack distances too, and some by integer sets."""
    kernel = small(name)
    rng = Random(name)
    plain = apply(kernel)
    largest = max(a.type.bytes for a in kernel.arrays if not a.is_scalar)
    one_size = len({a.type.bytes for a in kernel.arrays if not a.is_scalar}) == 1
    for k in range(10):
        size = random_size(kernel, rng)
        line = rng.choice((None, largest, 2 * largest, 4 * largest, 64)) if one_size else largest * rng.choice((1, 4))
        smallest = line or largest
        cache = smallest * rng.choice((1, 2, 5, 16, 50, 200)) + rng.randint(0, smallest - 1)
        curve = miss_curve(plain, size, line)
        for convention, write_miss in CONVENTIONS:
            exact = simulate_lru(plain, size, cache, line)
            want = (exact.loads(convention), exact.stores(convention))
            if (
                k == 0 and convention == "load_store"
            ):  # what `derive --cache` asks; it counts accesses by integer sets too, which takes its time
                asked = traffic_at(kernel, size, cache, line, convention)
                assert (asked.loads_bytes, asked.stores_bytes, asked.accesses) == (*want, exact.accesses)
            got = simulate(plain, size, [CacheLevel("Z", cache, smallest, write_miss=write_miss)])
            assert got.accesses == exact.accesses
            shown = f"{size} Z={cache} line={line} {convention}"
            assert (got.load_bytes(0), got.store_bytes(0)) == want, shown
            assert curve.bytes(cache, convention) == exact.bytes(convention), shown
            if k == 0 and convention == "load_store":
                try:
                    lines = lines_by_sets(Sized(plain, size), cache, line, OPERATIONS)
                except (NoAnswer, TooHard):
                    continue
                assert convention_totals(Sized(plain, {}), lines, convention)[2] == exact.bytes(convention)
