"""The upper bound on traffic is never below what a simulation counts, and near it where tiles fit."""

from random import Random

import pytest

from roofdsl.advise.traffic_upper_bound import NoBound, traffic_at_most
from roofdsl.counts.sector_traffic import Transfers
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.transform import apply
from roofdsl.machine.find import shipped, standard_sizes
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

CONVENTIONS: tuple[Traffic, ...] = ("once", "load_store", "write_allocate")

TILED = """kernel m(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    {directive}
    for k in range(n), i in range(n), j in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""


def ratio(k: Kernel, sizes: dict[str, int], cache: int, line: int | None) -> float:
    """The bound over what is simulated, in the convention of the kernel's choice; asserts that it is one in all."""
    plain = apply(k)
    seen = simulate_lru(plain, sizes, cache, line)
    found = 0.0
    for convention in CONVENTIONS:
        most = traffic_at_most(k, sizes, Transfers(cache, line), convention)
        assert most.bytes >= seen.bytes(convention), (convention, cache, line, sizes)
        if most.loads_bytes is not None and most.stores_bytes is not None:
            assert most.loads_bytes >= (seen.loads(convention) or 0)
            assert most.stores_bytes >= (seen.stores(convention) or 0)
        found = most.bytes / max(1, seen.bytes(convention))
    return found


LONG = ("adi",)


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough) if name in LONG else name for name in shipped("polybench")]
)
def test_never_below_polybench(name: str) -> None:
    k = kernel(load_file(shipped("polybench")[name]), name)
    for cache, line in ((512, 64), (4096, 64), (2048, None)):
        ratio(k, standard_sizes()[name]["mini"], cache, line)


@pytest.mark.thorough
def test_never_below_random_kernels() -> None:
    reached = 0
    for seed in range(120):
        made, random = random_kernel(seed), Random(seed)
        k, sizes = kernel_of(made.text), made.sizes[-1]
        widest = max((a.type.bytes for a in k.arrays if not a.is_scalar), default=8)
        try:
            ratio(k, sizes, random.choice((4, 8, 32)) * 4 * widest, random.choice((4 * widest, widest, None)))
        except NoBound:
            continue
        reached += 1
    assert reached > 25


@pytest.mark.parametrize("directive", ["tile k, i, j by 8", "tile i, j by 8", "order i, k, j"])
def test_near_where_tiles_divide(directive: str) -> None:
    k = kernel(load_file(Source("m.roof", TILED.format(directive=directive))), "m")
    assert ratio(k, {"n": 32}, 4096, 64) <= 1.35


@pytest.mark.spread(2)
@pytest.mark.parametrize("directive", ["tile k, i, j by 7, 5, 9", "tile j, k by 6", "order j, k, i"])
def test_never_below_where_they_do_not(directive: str) -> None:
    k = kernel(load_file(Source("m.roof", TILED.format(directive=directive))), "m")
    for n in (17, 24, 31):
        for cache in (512, 1024, 2048, 8192):
            ratio(k, {"n": n}, cache, 64)


def test_sectors_and_what_is_out_of_reach() -> None:
    k = kernel(load_file(Source("m.roof", TILED.format(directive="tile k, i, j by 8"))), "m")
    whole = traffic_at_most(k, {"n": 32}, Transfers(4096, 128), "load_store")
    sectors = traffic_at_most(k, {"n": 32}, Transfers(4096, 128, 32), "load_store")
    assert sectors.bytes < whole.bytes
    with pytest.raises(NoBound):
        traffic_at_most(k, {"n": 32}, Transfers(None, 64), "once")
