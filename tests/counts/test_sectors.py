"""Traffic in sectors against a brute-force cache whose lines are filled sector by sector."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from operator import mul
from random import Random

import pytest

from roofdsl.counts.sector_traffic import Transfers, _lines, _simulated, register_bytes_at, transfers_at
from roofdsl.counts.traffic_at import TrafficAt, convention_totals, traffic_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.sized import sized
from tests.oracle.enumerate import run
from tests.oracle.lru import byte_strides, register_bytes

CONVENTIONS: tuple[Traffic, ...] = ("once", "load_store", "write_allocate")


def kernel_of(body: str) -> Kernel:
    return kernel(load_file(Source("k.roof", f"kernel k(n, s):\n{body}")), "k")


STRIDED = kernel_of(
    "    in A: f64[4 * n + 3]\n    out B: f64[4 * n]\n    for t in range(2), i in range(0, 4 * n, s):\n"
    "        B[i] = A[i + 3] + A[i]\n"
)
TRANSPOSE = kernel_of(
    "    in A: f64[n, n + s]\n    out B: f64[n + s, n]\n"
    "    for i in range(n), j in range(n):\n        B[j, i] = A[i, j]\n"
)
STENCIL = kernel_of(
    "    in A: f32[n + 2, n + 2]\n    inout B: f32[n + 2, n + 2]\n    for i in range(1, n + 1), j in range(1, n + 1):\n"
    "        B[i, j] += A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + s\n"
)
SCRATCH = kernel_of(
    "    in A: f64[n, 2 * s]\n    temp T: f64[2 * s]\n    out C: f64[n]\n    for i in range(n):\n"
    "        for j in range(s):\n            T[2 * j] = A[i, j]\n"
    "        for j in range(s):\n            C[i] = T[2 * j] + A[i, 2 * j]\n"
)
MATMUL = kernel_of(
    "    in A, B: f64[n, n]\n    inout C: f64[n, n]\n    for i in range(n), j in range(n), k in range(n):\n"
    "        C[i, j] += A[i, k] * B[k, j] * s\n"
)
KERNELS = {"strided": STRIDED, "transpose": TRANSPOSE, "stencil": STENCIL, "scratch": SCRATCH, "matmul": MATMUL}


def brute(kernel: Kernel, params: Mapping[str, int], where: Transfers, convention: Traffic) -> TrafficAt:
    return brute_of_each(kernel, params, where)[convention]


def brute_of_each(kernel: Kernel, params: Mapping[str, int], where: Transfers) -> dict[Traffic, TrafficAt]:
    """The definition of each convention: an LRU of lines, and in each line held the sectors that it has and those
    written.
    """
    assert where.line_bytes and where.sector_bytes
    arrays = {a.name: a for a in kernel.arrays}
    strides = {name: byte_strides(a, params) for name, a in arrays.items()}
    held: OrderedDict[tuple[str, int], tuple[set[int], set[int]]] = OrderedDict()
    begun = by_read = stored = accesses = 0
    for execution in run(kernel, params):
        for name, index, is_write in execution.accesses:
            accesses += 1
            at = sum(map(mul, index, strides[name]))
            line, sector = (name, at // where.line_bytes), at // where.sector_bytes
            has, written = held.setdefault(line, (set(), set()))
            held.move_to_end(line)
            if sector not in has:
                begun, by_read = begun + 1, by_read + (not is_write)
                has.add(sector)
            if is_write:
                written.add(sector)
            while where.cache_bytes is not None and len(held) * where.line_bytes > where.cache_bytes:
                stored += len(held.popitem(last=False)[1][1])
    stored += sum(len(w) for (name, _), (_, w) in held.items() if arrays[name].intent != "temp")
    size = where.sector_bytes

    def moved(loads: int) -> TrafficAt:
        return TrafficAt(size * loads, size * stored, size * (loads + stored), accesses, "")

    once = TrafficAt(None, None, size * begun, accesses, "")
    return {"once": once, "load_store": moved(by_read), "write_allocate": moved(begun)}


def totals(found: TrafficAt) -> tuple[int | None, int | None, int]:
    return found.loads_bytes, found.stores_bytes, found.bytes


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", KERNELS)
def test_simulation_is_the_definition(name: str) -> None:
    random = Random(name)
    for _ in range(6):
        params = {"n": random.randint(2, 13), "s": random.randint(1, 5)}
        line = random.choice([32, 64, 128])
        sector = random.choice([s for s in (8, 16, 32, 64) if s < line])
        where = Transfers(line * random.randint(1, 12), line, sector)
        for convention, expected in brute_of_each(KERNELS[name], params, where).items():
            assert _simulated(sized(KERNELS[name], params), where, convention, None) == totals(expected)
            found = transfers_at(KERNELS[name], params, where, convention)
            assert (totals(found), found.accesses) == (totals(expected), expected.accesses)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "n", "s", "where"),
    [
        ("strided", 6, 4, Transfers(256, 64, 16)),
        ("strided", 6, 8, Transfers(192, 64, 32)),
        ("transpose", 16, 16, Transfers(1024, 128, 32)),
        ("transpose", 8, 8, Transfers(320, 64, 16)),
        ("stencil", 14, 1, Transfers(256, 64, 32)),
        ("scratch", 6, 8, Transfers(320, 64, 16)),
        ("scratch", 5, 4, Transfers(128, 64, 32)),
        ("matmul", 8, 1, Transfers(448, 64, 32)),
    ],
)
def test_integer_sets_are_the_definition(name: str, n: int, s: int, where: Transfers) -> None:
    params = {"n": n, "s": s}
    at = sized(KERNELS[name], params)
    lines = _lines(at, where, 30_000_000)
    for convention in CONVENTIONS:
        expected = totals(brute(KERNELS[name], params, where, convention))
        assert convention_totals(at, lines, convention) == expected


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", KERNELS)
def test_a_cache_that_holds_all_has_the_compulsory_traffic(name: str) -> None:
    params = {"n": 9, "s": 3}
    for convention in CONVENTIONS:
        everything = transfers_at(KERNELS[name], params, Transfers(1 << 20, 128, 32), convention)
        assert everything.bytes == brute(KERNELS[name], params, Transfers(1 << 20, 128, 32), convention).bytes
        assert everything.bytes == traffic_at(KERNELS[name], params, None, 32, convention).bytes
        assert everything.method == "integer sets"


@pytest.mark.parametrize("name", KERNELS)
def test_without_sectors_it_is_the_traffic_in_lines(name: str) -> None:
    params = {"n": 8, "s": 2}
    for where in (Transfers(256, 64), Transfers(256, 64, 64), Transfers(None, None), Transfers(128, None)):
        expected = traffic_at(KERNELS[name], params, where.cache_bytes, where.line_bytes, "load_store")
        assert transfers_at(KERNELS[name], params, where, "load_store").bytes == expected.bytes


@pytest.mark.parametrize("name", KERNELS)
def test_the_registers_see_every_access(name: str) -> None:
    params = {"n": 7, "s": 3}
    assert sum(register_bytes_at(KERNELS[name], params)) == register_bytes(KERNELS[name], params)


def test_a_sector_is_a_part_of_its_line() -> None:
    with pytest.raises(CommandError, match="not hold a whole number of sectors"):
        transfers_at(STRIDED, {"n": 4, "s": 1}, Transfers(1024, 64, 24), "once")
    with pytest.raises(CommandError, match="not hold a whole number of elements"):
        transfers_at(STRIDED, {"n": 4, "s": 1}, Transfers(1024, 64, 4), "once")
