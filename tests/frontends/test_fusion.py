"""Loops are fused where no iteration needs what another one stores, and only there."""

from __future__ import annotations

import pytest

from roofdsl.api import derive, from_python
from roofdsl.loops.model import For

CASES = {
    # name: statements on a, b, c of n and A, B of n x n; nests without and with fusion, temporaries with it
    "the same index": ("b[:] = a * 2.0\n    c[:] = b + a", 2, 1, 0),
    "a temporary": ("t = a * 2.0\n    b[:] = t + t", 2, 1, 0),
    "the index before": ("b[:] = a * 2.0\n    c[1:] = b[:-1]", 2, 2, 0),
    "one nest reads ahead": ("b[:-1] = a[1:]\n    a[:-1] = b[:-1]", 2, 2, 0),
    "nothing in common": ("b[:] = 0.0\n    c[:] = 1.0", 2, 2, 0),
    "other bounds": ("b[:] = a\n    c[1:] = a[1:]", 2, 2, 0),
    "a sum is needed": ("t = a * 2.0\n    s = np.sum(t)\n    b[:] = t / s", 3, 2, 1),
    "rows": ("t = A @ a\n    b[:] = t * a", 2, 1, 0),
    "transposed": ("B[:] = A\n    A[:] = B.T", 2, 2, 0),
    "diagonal": ("b[:] = a\n    A[:] = b + a[:, None]", 2, 2, 0),
    "a temporary of all iterations": ("t = a * 2.0\n    b[:] = t[::-1]", 2, 2, 1),
}


@pytest.mark.spread(6)
@pytest.mark.parametrize("name", CASES)
def test_nests(name: str) -> None:
    body, plain, less, temporaries = CASES[name]
    text = f"import numpy as np\ndef f(a, b, c, A, B):\n    {body}\n"
    shapes = {"a": "n", "b": "n", "c": "n", "A": "n,n", "B": "n,n"}
    before, after = (from_python(text, None, shapes, fused=fused) for fused in (False, True))
    assert [sum(isinstance(item, For) for item in k.body) for k in (before, after)] == [plain, less]
    assert sum(a.intent == "temp" and not a.is_scalar for a in after.arrays) == temporaries
    # the same operations: only what is kept in memory changes
    first, second = (derive(k, n=10).work.total.value for k in (before, after))
    assert first == second
