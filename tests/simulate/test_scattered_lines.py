"""Lines in no order, against a plain LRU cache written here."""

from __future__ import annotations

from collections import OrderedDict, deque

import numpy as np
import pytest

from roofdsl.loops.sized import sized
from roofdsl.matrices.attach import with_data
from roofdsl.simulate.scattered_lines import STREAMS, scattered, scattered_lines, scattered_pages
from tests.models.shipped import model
from tests.oracle.sparse import csr_stream, places


def by_hand(
    trace: list[tuple[int, bool]], chosen: set[int], capacity: int, shift: int, warm: bool
) -> tuple[int, int, int]:
    """(misses, begun in no order, stored of them) of a trace of lines."""
    held: OrderedDict[int, tuple[bool, bool]] = OrderedDict()  # by unit: dirty, in no order
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


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("shift", [0, 2])
def test_against_a_plain_cache(warm: bool, shift: int) -> None:
    rng = np.random.default_rng(7)
    for lines, capacity in ((40, 1), (200, 5), (400, 60), (90, 300)):
        walk = np.cumsum(rng.integers(-1, 2, 1500)) % lines  # streams, and jumps between them
        trace = np.where(rng.random(1500) < 0.5, walk, rng.integers(0, lines, 1500))
        write = rng.random(1500) < 0.3
        chosen = rng.random(lines) < 0.6
        accesses = (2 * trace + write).astype(np.int32)
        want = by_hand(
            list(zip(trace.tolist(), write.tolist(), strict=True)), set(np.flatnonzero(chosen).tolist()), capacity,
            shift, warm,
        )  # fmt: skip
        assert scattered(accesses, chosen, capacity, shift=shift, warm=warm) == want


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
    found = scattered_lines(at, ["x"], 64, [3, 12, 1000], most=10**6, warm=False)
    assert found == [by_hand(trace, chosen, lines, 0, False)[1:] for lines in (3, 12, 1000)]
    if source.startswith("banded"):
        assert found[1][0] < 4  # the first line of x, and not many more
    pages = scattered_pages(at, ["x"], 64, 2, page_bytes=256, most=10**6, warm=True)
    assert pages == by_hand(trace, chosen, 2, 2, True)[0]
