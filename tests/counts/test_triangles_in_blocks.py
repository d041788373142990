"""Triangles and bands in thread blocks, whose threads have different numbers of iterations: the order of the accesses
against an enumeration, and traffic from sets, in which a triangle is a stack of boxes, against an LRU cache.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from roofdsl.counts.sector_traffic import Transfers, transfers_at
from roofdsl.counts.traffic_at import convention_totals
from roofdsl.counts.working_set_traffic import lines_by_working_sets
from roofdsl.loops.accesses import accesses
from roofdsl.loops.in_step import in_step
from roofdsl.loops.integers import Const, Sym
from roofdsl.loops.model import Assign, For, Kernel, Node
from roofdsl.loops.sized import Sized
from roofdsl.loops.thread_blocks import Launch, block_by_block, in_waves, on_one_copy
from roofdsl.machine.find import load_machine
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.predict.machines import kernel_of

V100 = load_machine("v100")

MATRICES = "    in A, B: f64[n, n]\n    inout C: f64[n, n]\n    parallel for i in range(n), j in range(n):\n"
VECTORS = "    in A: f64[n, n]{}, x: f64[n]\n    inout y: f64[n]\n    parallel for i in range(n):\n"
PRODUCT = "            C[i, j] += A[i, k] * B[k, j]\n"
SUM = "            y[i] += A[i, j] * x[j]\n"
BODIES = {
    "lower": MATRICES + "        for k in range(i + 1):\n" + PRODUCT,
    "upper": MATRICES + "        for k in range(j, n):\n" + PRODUCT,
    "half_of_a_product": "    in A: f64[n, n]\n    inout C: f64[n, n]\n    parallel for i in range(n):\n"
    "        parallel for j in range(i + 1):\n            for k in range(n):\n"
    "                C[i, j] += A[i, k] * A[j, k]\n",
    "rows": VECTORS.format("") + "        for j in range(i + 1):\n" + SUM,
    "columns": VECTORS.format(" col") + "        for j in range(i, n):\n" + SUM,
    "band": VECTORS.format("") + "        for j in range(max(0, i - 20), min(n, i + 21)):\n" + SUM,
    "narrow_band": VECTORS.format("") + "        for j in range(max(0, i - 2), min(n, i + 3)):\n" + SUM,
    "stored_band": "    in A: f64[n, 41], x: f64[n]\n    inout y: f64[n]\n    parallel for i in range(n):\n"
    "        for j in range(max(0, i - 20), min(n, i + 21)):\n            y[i] += A[i, j - i + 20] * x[j]\n",
    "copy": "    in A: f64[n, n]\n    out B: f64[n, n]\n    parallel for i in range(n):\n"
    "        parallel for j in range(i, n):\n            B[i, j] = A[i, j]\n",
}
KERNELS = {name: kernel_of(f"kernel k(n):\n{body}") for name, body in BODIES.items()}


def launch(name: str, n: int) -> Launch:
    found = orders_of(KERNELS[name], {"n": n}, V100).launch
    assert found is not None
    return found


def by_sets(kernel: Kernel, n: int, cache: int, cold: int = 0) -> tuple[int, int]:
    at = Sized(kernel, {"n": n})
    loads, stores, _ = convention_totals(at, lines_by_working_sets(at, cache, 64, 32, cold=cold), "load_store")
    assert loads is not None and stores is not None
    return loads, stores


def walked(kernel: Kernel, n: int, cache: int) -> tuple[int, int]:
    """The sectors that an LRU cache moves, access by access."""
    found = transfers_at(kernel, {"n": n}, Transfers(cache, 64, 32), "load_store")
    assert found.loads_bytes is not None and found.stores_bytes is not None
    return found.loads_bytes, found.stores_bytes


@pytest.mark.spread(3)
@pytest.mark.parametrize("n", [96, 136])
@pytest.mark.parametrize("name", KERNELS)
def test_each_block_cold(name: str, n: int) -> None:
    at = launch(name, n)
    found = by_sets(block_by_block(at), n, 1 << 16, cold=len(at.blocks))
    assert found == pytest.approx(walked(on_one_copy(at, 64), n, 1 << 16), rel=0.03)


@pytest.mark.spread(3)
@pytest.mark.parametrize("cache", [1 << 13, 1 << 15, 1 << 20])
@pytest.mark.parametrize("blocks", [3, 20])
@pytest.mark.parametrize("name", KERNELS)
def test_waves_through_a_shared_cache(name: str, blocks: int, cache: int) -> None:
    """Between what LRU caches of half and of twice the size move: LRU evicts gradually, a set leaves at once."""
    n = 72 if "C" in BODIES[name] else 128
    wave = in_waves(launch(name, n), blocks)
    found = by_sets(wave, n, cache)
    for one, few, many in zip(found, walked(wave, n, 2 * cache), walked(wave, n, cache // 2), strict=True):
        assert 0.9 * few <= one <= 1.06 * many


def test_a_product_with_a_triangle_moves_less_than_the_whole_one() -> None:
    """It is counted by blocks and waves at sizes at which it is too long to be walked."""
    text = "kernel k(n):\n" + MATRICES + "        for k in range({}):\n" + PRODUCT
    half, whole = (predict(kernel_of(text.format(end)), {"n": 1024}, V100, Options()) for end in ("i + 1", "n"))
    assert [level.name for level in half.levels] == [level.name for level in whole.levels] == ["L1", "L2", "HBM"]
    for a, b in zip(half.levels, whole.levels, strict=True):
        assert a.bytes < b.bytes
    # From L2: a block of 32 x 8 threads loads its columns of B once up to its last row, its rows of A up to i, and C.
    blocks = [(32, 8 * (row + 1)) for row in range(128)]
    elements = sum(32 * columns * rows for columns, rows in blocks) + 32 * sum(
        -(-(i + 1) // 4) * 4 for i in range(1024)
    )
    assert half.levels[1].bytes == pytest.approx(8 * (elements + 2 * 1024**2), rel=0.002)


# ---- the order ----


def executed(nodes: Sequence[Node], env: dict[str, int]) -> Iterator[tuple[int, ...]]:
    """The subscripts of all accesses of every statement, in order."""
    for node in nodes:
        if isinstance(node, For):
            start, stop, step = (e.evaluate(env) for e in (node.start, node.stop, node.step))
            for value in range(start, stop, step):
                yield from executed(node.body, {**env, node.var: value})
        elif isinstance(node, Assign):
            yield tuple(s.evaluate(env) for access in accesses(node) for s in access.element.subscripts)


@pytest.mark.parametrize("seed", range(80))
def test_the_same_is_executed_in_step(seed: int) -> None:
    """All threads together, and in each iteration of k, those that have one."""
    rng = random.Random(seed)
    place = rng.choice("tu")

    def bound() -> str:
        other = " + u" if rng.random() < 0.15 else ""
        return f"{rng.choice([1, 1, -1, 0, 2])} * {place}{other} + {rng.randint(0, 9)}"

    column = rng.choice(["k + 9", f"k - {place} + 20", f"k - {place} + 20", "k + t + 9"])
    inner = f"range(max({bound()}, {bound()}), min({bound()}, {bound()}), {rng.choice([1, 1, 3])})"
    first = "t" if rng.random() < 0.3 else "0"
    whole = kernel_of(
        f"kernel k(n):\n    in A: f64[99, 99]\n    inout B: f64[99, 99]\n    parallel for t in range(2, 9, "
        f"{rng.choice([1, 1, 2])}):\n        parallel for u in range({first}, 7):\n            for k in {inner}:\n"
        f"                B[t, u] += A[{place}, {column}]\n"
    )
    t = _first_loop(whole.body)
    u = _first_loop(t.body)
    within = in_step((t, u), u.body)
    assert sorted(executed(within, {})) == sorted(executed(whole.body, {}))
    if _first_loop(within).var == "k" and column == "k + 9":
        columns = [accessed[-1] for accessed in executed(within, {})]
        assert columns == sorted(columns)


def test_a_band_as_it_is_stored_is_counted_from_its_start() -> None:
    band = launch("stored_band", 200)
    (loop,) = (loop for loop in band.body if isinstance(loop, For))
    (moved,) = in_step(band.threads, (loop,))
    assert isinstance(moved, For) and moved.start.evaluate({"i'": 0}) == 0 and Const(41) in moved.stops


def test_threads_that_have_an_iteration() -> None:
    outside = _first_loop(block_by_block(launch("lower", 64)).body)
    while outside.var != "k":
        outside = _first_loop(outside.body)
    rows = _first_loop(outside.body)
    assert rows.var == "i" and Sym("k") in rows.starts


def _first_loop(nodes: Sequence[Node]) -> For:
    found = nodes[0]
    assert isinstance(found, For)
    return found
