"""Closed forms at a cache with numbers for tile sizes, against a brute-force LRU."""

from __future__ import annotations

from functools import cache

import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.counts.fixed import FixedForms
from roofdsl.formulas.fact_text import facts_text
from roofdsl.loops.transform import apply
from roofdsl.sets.facts import at_least, fixed
from tests.oracle import lru
from tests.oracle.loading import kernel_of

BLOCKED = (
    "kernel blocked(n, b):\n    assume n % b == 0\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for kk in range(0, n, b), ii in range(0, n, b), jj in range(0, n, b):\n"
    "        for k in range(kk, kk + b), i in range(ii, ii + b), j in range(jj, jj + b):\n"
    "            C[i, j] += A[i, k] * B[k, j]\n"
)
SWEEP = (
    "kernel sweep(n, m, b):\n    assume n % b == 0\n    tile i by b\n    in x: f64[n], y: f32[m]\n    temp t: f64[n]\n"
    "    inout z: f64[m]\n    for j in range(m), i in range(n):\n        t[i] = x[i] * y[j]\n        z[j] += t[i]\n"
)
CASES = [
    (SWEEP, {"b": 4}, [{"n": 16, "m": 9}, {"n": 24, "m": 17}], (40, 100, 400)),
    (BLOCKED, {"b": 4}, [{"n": 16}, {"n": 20}], (32, 300, 384, 2000)),
    (BLOCKED, {"b": 5}, [{"n": 20}], (64, 600)),
    (SWEEP, {"b": 6, "m": 8}, [{"n": 24}, {"n": 48}], (120, 700)),
]


@cache
def base(text: str) -> ClosedForms:
    return ClosedForms(kernel_of(text), {})


@pytest.mark.spread(1)
@pytest.mark.parametrize("convention", ["once", "load_store", "write_allocate"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_forms_equal_brute_force(case: int, convention: str) -> None:
    text, numbers, sizes, caches = CASES[case]
    forms = FixedForms(base(text), numbers)
    kernel = apply(kernel_of(text))
    for cache_bytes in caches:
        found = forms.at_cache(cache_bytes, convention)  # type: ignore[arg-type]
        assert {fixed(n, v) for n, v in numbers.items()} <= set(found.total.assumes)
        for some in sizes:
            want = lru.traffic(kernel, {**some, **numbers}, cache_bytes, None, convention)
            assert found.total.evaluate(some) == want.bytes
            if found.loads is not None and found.stores is not None:
                assert (found.loads.evaluate(some), found.stores.evaluate(some)) == (want.loads, want.stores)


def test_numbers_below_those_that_forms_hold_for_are_refused() -> None:
    with pytest.raises(NoClosedForm, match="b >= 4"):
        FixedForms(base(BLOCKED), {"b": 2}).at_cache(100, "once")


def test_a_number_that_bounds_another_size_says_so() -> None:
    forms = FixedForms(base(SWEEP), {"n": 64})
    stated = forms.at_cache(40, "once").total.assumes
    assert facts_text(stated) == "n = 64, m >= 4, b >= 4, 64 >= 4*b"
    assert all(fact.holds({"n": 64, "m": 9, "b": 16}) for fact in stated)
    assert not all(fact.holds({"n": 64, "m": 9, "b": 32}) for fact in stated)
    with pytest.raises(NoClosedForm, match=r"n >= 4\*b"):
        FixedForms(base(SWEEP), {"n": 8, "b": 4}).at_cache(40, "once")


@pytest.mark.thorough
def test_derive_puts_in_tile_sizes_only_and_says_so() -> None:
    d = derive(kernel_of(BLOCKED), {"n": 256, "b": 16}, traffic="once", cache_bytes=32768)
    total = d.at_cache.bytes
    assert str(total.form and total.form.cases[0].value) == "n**3 + 8*n**2"
    assert total.assumes == (fixed("b", 16), at_least("n", 64))
    assert total.value == 256**3 + 8 * 256**2
