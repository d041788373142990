"""Expected times of kernels with index arrays: what a walk through their code knows of rows, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from roofdsl.incore.even_rows import even_rows, placed_at, scaled
from roofdsl.incore.model import InCore, NoInCore, Step
from roofdsl.incore.state import State
from tests.models.shipped import model
from tests.oracle.loading import kernel_of

SIZES = {"n": 10, "m": 10, "nnz": 33}


def test_offsets_rise_evenly_in_memory() -> None:
    kernel = model("spmv_csr")
    rows = even_rows(kernel, SIZES)
    state = State({})
    state.even += placed_at(rows, kernel, {"rowptr": 4096}, SIZES)
    known = [state.load(4096 + 4 * i, 4) for i in range(12)]
    assert known == [*np.arange(11) * 3, None]
    assert state.load(4096, 8) is None  # two of them at once
    assert rows.scale == pytest.approx(33 / 30) and "3 iterations" in rows.assumptions[0]
    walked = InCore("m", (Step("", "", 2.0, 1.0), Step("chain", "", 3.0, 1.5)), None, ("a",))
    found = scaled(walked, rows)
    assert [(s.overlapping_s, s.loads_s) for s in found.steps] == [
        (pytest.approx(2.2), pytest.approx(1.1)), (pytest.approx(3.3), pytest.approx(1.65)),
    ]  # fmt: skip
    assert found.assumptions == ("a", *rows.assumptions)


def test_loops_that_are_known_stay() -> None:
    for name in ("gemv", "spmv_ell", "embedding_lookup"):
        rows = even_rows(model(name), {})
        assert (rows.offsets, rows.scale) == ({}, 1)
        assert scaled(InCore("m", (), None), rows) == InCore("m", (), None)


def test_what_is_not_modeled() -> None:
    for name in ("spmv_coo", "histogram"):
        with pytest.raises(NoInCore, match="stores at places that data choose"):
            even_rows(model(name), {})
    text = """kernel k(n, m):
    in first: i32[n] index(m), x: f64[m]
    inout y: f64[n]
    for i in range(n):
        for k in range(first[i], m):
            y[i] += x[k]
"""
    with pytest.raises(NoInCore, match="depends on the data"):
        even_rows(kernel_of(text), {"n": 3, "m": 3})
