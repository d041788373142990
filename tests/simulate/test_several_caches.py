"""Several caches in one pass, against a plain LRU cache written here, and against separate simulations."""

from __future__ import annotations

from collections import OrderedDict, deque

import numpy as np
import pytest

from roofdsl.counts.data_traffic import chosen_arrays
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.index_data import IndexData
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.transform import repeated
from roofdsl.matrices.attach import with_data
from roofdsl.simulate.addresses import short_loops
from roofdsl.simulate.compiled_kernel import compile_kernel
from roofdsl.simulate.lru_traffic import simulate_lru
from roofdsl.simulate.several_caches import BEGUN, MOST_CACHES, STREAMS, Passed, _List, several_caches
from tests.models.shipped import model
from tests.oracle.loading import kernel_of
from tests.oracle.sparse import csr_stream, places


def by_hand(
    trace: list[tuple[int, bool]], chosen: set[int], capacity: int, shift: int, warm: bool
) -> tuple[int, int, int]:
    """(misses, begun at random, stored of them) of a trace of lines."""
    held: OrderedDict[int, tuple[bool, bool]] = OrderedDict()  # by unit: dirty, accessed at random
    recent: deque[int] = deque(maxlen=STREAMS)
    counts = (0, 0, 0)
    for _ in range(2 if warm else 1):
        misses = begun = stored = 0
        for line, write in trace:
            unit = line >> shift
            if unit in held:
                dirty, alone = held.pop(unit)
            else:
                misses += 1
                dirty = False
                alone = line in chosen and not {unit - 1, unit + 1} & set(recent)
                begun += alone
                if line in chosen:
                    recent.append(unit)
                if len(held) == capacity:
                    stored += all(held.popitem(last=False)[1])
            held[unit] = (dirty or write, alone)
        counts = (misses, begun, stored)
    if warm:
        return counts
    return counts[0], counts[1], counts[2] + sum(all(state) for state in held.values())


def run(accesses: list[tuple[int, bool]], chosen: set[int], capacities: list[int], shift: int, warm: bool) -> list:
    """(misses, begun at random, stored of them) of each cache, from one list for all of them."""
    units = max(line for line, _ in accesses) // 2**shift + 1
    apart = np.array([unit in chosen for unit in range(units)])
    lines = _List(capacities, units, shift, np.zeros(units, dtype=np.uint16), apart)
    trace = np.array([2 * line + write for line, write in accesses], dtype=np.int64)
    for _ in range(2 if warm else 1):
        lines.tallies[:], lines.apart[:] = 0, 0
        for piece in np.array_split(trace, 7):
            lines.run(piece, len(piece))
    left = [0 if warm else lines.left_apart(c) for c in range(len(capacities))]
    return [
        (int(lines.tallies[c, 0, BEGUN]), int(lines.apart[c, 0]), int(lines.apart[c, 1]) + left[c])
        for c in range(len(capacities))
    ]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("shift", [0, 2])
def test_against_plain_caches(warm: bool, shift: int) -> None:
    rng = np.random.default_rng(7)
    for lines, capacities in ((40, [1]), (200, [1, 2, 5, 60]), (400, [60, 61, 399, 400, 401]), (90, [3, 300])):
        walk = np.cumsum(rng.integers(-1, 2, 1500)) % lines  # streams, and jumps between them
        place = np.where(rng.random(1500) < 0.5, walk, rng.integers(0, lines, 1500))
        trace = list(zip(place.tolist(), (rng.random(1500) < 0.3).tolist(), strict=True))
        chosen = {unit for unit in range(lines) if rng.random() < 0.6}
        every = {line for line in range(lines) if line >> shift in chosen}
        want = [by_hand(trace, every, capacity, shift, warm) for capacity in capacities]
        assert run(trace, chosen, capacities, shift, warm) == want


@pytest.mark.parametrize("warm", [False, True])
def test_more_caches_than_a_list_has_bits_for(warm: bool) -> None:
    sources = ["place=random:n=600,count=900,seed=1", "from_=random:n=600,count=900,seed=2"]
    kernel, given = with_data(kernel_of(SCATTER), sources, {})
    at = sized(kernel, given)
    capacities = [*range(1, 2 * MOST_CACHES + 2), 100]
    found = passed(at, capacities, ("b", "c"), warm=warm)
    for c, lines in enumerate(capacities):
        alone = passed(at, [lines], ("b", "c"), warm=warm)
        assert (found.counts[:, c] == alone.counts[:, 0]).all()
        assert found.apart[c] == alone.apart[0] and found.apart[c][1] > 0


@pytest.mark.parametrize("source", ["random:n=60,m=300,row=5,seed=1", "banded:n=80,w=3"])
def test_gathers_of_a_matrix(source: str) -> None:
    """`spmv_csr` by hand: arrays one after another, each from the start of a line. A band makes streams."""
    dense = places(source)
    n, m = dense.shape
    sizes = {"rowptr": (n + 1, 4), "col": (int(dense.sum()), 4), "val": (int(dense.sum()), 8), "x": (m, 8), "y": (n, 8)}
    first, end = {}, 0
    for name, (count, size) in sizes.items():
        first[name] = end
        end += -(-count * size // 64)
    trace = [(first[name] + k * sizes[name][1] // 64, write) for name, k, write in csr_stream(dense)]
    chosen = set(range(first["x"], first["y"]))
    kernel, given = with_data(model("spmv_csr"), [f"rowptr,col={source}"], {})
    at = sized(kernel, given)
    found = passed(at, [3, 12, 1000], ("x",), pages=2, page_bytes=256, warm=False)
    assert list(found.apart) == [by_hand(trace, chosen, lines, 0, False)[1:] for lines in (3, 12, 1000)]
    if source.startswith("banded"):
        assert found.apart[1][0] < 4  # the first line of x, and not many more
    assert found.touched == tuple(len({k for name, k, _ in csr_stream(dense) if name == own}) for own in sizes)
    assert found.accesses == len(trace)
    warm = passed(at, [3, 12, 1000], ("x",), pages=2, page_bytes=256, warm=True)
    assert warm.pages == by_hand(trace, chosen, 2, 2, True)[0]


SCATTER = """kernel scatter(n, m):
    in place: i32[n] index(m), from_: i32[n] index(m), a: f64[m]
    inout b: f64[m]
    temp c: f32[m]
    for k in range(0, n, 3):
        c[place[k]] = a[2 * k % 7]
    for k in range(n):
        b[m - 1 - place[k]] += c[from_[n - 1 - k]]
        c[from_[k]] = b[k % 5]
"""


@pytest.mark.parametrize("name", ["spmv_csr", "spmv_coo", "histogram", "spmv_sell", "bfs_push", "scatter"])
def test_several_caches_at_once_are_separate_caches(name: str) -> None:
    """Every count of every array, after one execution and after two in a row."""
    sources = {
        "spmv_csr": ["rowptr,col=powerlaw:n=300,row=8,exponent=1,seed=1"],
        "spmv_coo": ["row,col=random:n=200,row=8,seed=1"],
        "histogram": ["bin=powerlaw:n=300,count=2000,exponent=1,seed=1"],
        "spmv_sell": ["chunk,col=random:n=100,row=8,seed=1+sigma=64"],
        "bfs_push": ["rowptr,neighbor=powerlaw:n=400,row=8,exponent=1,seed=1", "frontier=random:n=400,count=50,seed=2"],
        "scatter": ["place=random:n=90,count=800,seed=1", "from_=random:n=90,count=800,seed=2"],
    }
    written = kernel_of(SCATTER) if name == "scatter" else model(name)
    kernel, given = with_data(written, sources[name], {"C": 32} if name == "spmv_sell" else {})
    at, capacities = sized(kernel, given), [1, 2, 7, 50, 400, 10**6]
    once = simulate_lru(at.kernel, at.values, None, None)
    for warm in (False, True):
        found = passed(at, capacities, chosen_arrays(kernel), warm=warm)
        assert found.touched == tuple(a.residencies for a in once.arrays)
        for times in range(1, 2 + warm):
            for c, lines in enumerate(capacities):
                alone = simulate_lru(repeated(at.kernel, times), at.values, 64 * lines, 64)
                want = [[a.residencies, a.begun_with_write, a.stored] for a in alone.arrays]
                assert found.counts[times - 1, c].tolist() == want, (lines, times)
                assert alone.accesses == times * found.accesses


def test_short_loops_are_written_without_stops() -> None:
    """The loops over entries are; a place that is a remainder is not."""
    kernel, given = with_data(model("spmv_csr"), ["rowptr,col=banded:n=9,w=1"], {})
    group_of, places_of = short_loops(compile_kernel(kernel, given, 64))
    assert (group_of >= 0).sum() == 1 and (places_of[:, 3] > 0).sum() == 1, "x[col[k]]"
    sources = ["place=random:n=90,count=80,seed=1", "from_=random:n=90,count=80,seed=2"]
    kernel, given = with_data(kernel_of(SCATTER), sources, {})
    assert (short_loops(compile_kernel(kernel, given, 64))[0] < 0).all()


def test_what_ends_a_pass() -> None:
    values = np.array([0, 1, 2, 3, 7, 4])
    head = "kernel far(n, m):\n    in at: i32[n] index(m)\n    inout y: f64[m]\n"
    far = kernel_of(f"{head}    for i in range(n):\n        y[at[i]] += 1\n")
    kernel = replace(far, data=IndexData({"at": values}, ()))
    assert passed(sized(kernel, {"n": 6, "m": 8}), [1], ("y",)).accesses == 18
    for m in (7, 4, 3):
        with pytest.raises(CommandError, match="accesses elements outside array y at these sizes"):
            passed(sized(kernel, {"n": 6, "m": m}), [1], ("y",))
    with pytest.raises(CommandError, match=r"needs .* GiB of memory, and .* GiB are available"):
        passed(sized(kernel, {"n": 6, "m": 8}), [1], ("y",), memory_bytes=10)


def passed(  # noqa: PLR0917
    at: Sized, capacities: list[int], names: tuple[str, ...], pages: int = 0, page_bytes: int = 4096,
    warm: bool = False, memory_bytes: int = 1 << 30,
) -> Passed:  # fmt: skip
    program = compile_kernel(at.kernel, at.values, 64)
    return several_caches(program, "k", capacities, names, pages, page_bytes, warm=warm, memory_bytes=memory_bytes)
