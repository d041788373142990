"""Counts behind the bound of a kernel with data: cold and warm, against streams written by hand."""

from __future__ import annotations

import pytest

from roofdsl.counts.sector_traffic import Transfers, register_bytes_at, transfers_at, warm_transfers_at
from roofdsl.counts.traffic_at import access_count, footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.sized import sized
from roofdsl.matrices.attach import with_data
from tests.models.shipped import model
from tests.oracle.sparse import csr_arrays, csr_stream, lru_bytes, places

SOURCE = "powerlaw:n=25,m=60,row=5,exponent=1,seed=9"


@pytest.mark.parametrize("cache", [256, 1024, None])
def test_cold_and_warm_traffic(cache: int | None) -> None:
    dense = places(SOURCE)
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={SOURCE}"], {})
    once = lru_bytes(csr_stream(dense), csr_arrays(dense), cache or 1 << 40, 32)
    found = transfers_at(kernel, sizes, Transfers(cache, 32), "write_allocate")
    assert (found.loads_bytes, found.stores_bytes) == (sum(once.values()), once["y"])
    if cache is not None:
        stream = [*csr_stream(dense), *csr_stream(dense)]
        twice = lru_bytes(iter(stream), csr_arrays(dense), cache, 32)
        warm = warm_transfers_at(kernel, sizes, Transfers(cache, 32), "write_allocate")
        assert warm.loads_bytes == sum(twice.values()) - sum(once.values())


def test_counts() -> None:
    dense = places(SOURCE)
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={SOURCE}"], {})
    stream, arrays = list(csr_stream(dense)), csr_arrays(dense)
    assert access_count(sized(kernel, sizes)) == len(stream)
    loaded = sum(arrays[name][1] for name, _, written in stream if not written)
    assert register_bytes_at(kernel, sizes) == (loaded, 8 * len(dense))
    assert footprint_at(kernel, sizes) == sum({(n, k): arrays[n][1] for n, k, _ in stream}.values())
    work = work_at(kernel, sizes)
    assert (work.total, sum(work.fused_pairs.values())) == (2 * dense.sum(), dense.sum())
