"""Q(Z) with Z a symbol: equal to brute-force LRU at every size and cache tried."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.loops.model import Kernel
from roofdsl.sets.facts import CACHE
from tests.counts.exact import CONVENTIONS, OPERATIONS, meets
from tests.oracle import lru
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

KERNELS = {
    "gemv": "kernel gemv(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
    "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n",
    "matmul": "kernel matmul(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n",
    "flip": "kernel flip(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
    "    for i in range(n), j in range(n):\n        B[j, i] = A[i, j]\n",
    "mixed": "kernel mixed(n, m):\n    in A: f32[n, m], x: f64[m]\n    out y: f16[n]\n"
    "    for i in range(n):\n        y[i] = 0\n        for j in range(m):\n            y[i] += A[i, j] * x[j]\n",
    "jacobi": "kernel jacobi(n):\n    assume n >= 3\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
    "    for i in range(1, n - 1), j in range(1, n - 1):\n"
    "        B[i, j] = A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j]\n",
}


def compare(kernel: Kernel, sizes: list[dict[str, int]], rng: Random, operations: int) -> int:
    """How many comparisons of the closed forms with brute force were made."""
    forms = ClosedForms(kernel, {}, operations=operations)
    found = {}
    for convention in CONVENTIONS:
        try:
            found[convention] = forms.at_any_cache(convention)
        except NoClosedForm:
            continue
    made = 0
    unit = min(a.type.bytes for a in kernel.arrays if not a.is_scalar)
    largest = max(a.type.bytes for a in kernel.arrays if not a.is_scalar)
    for size in sizes:
        touched = sum(lru.footprint(kernel, size).values())
        for cache in [largest, *(rng.randint(largest // unit, touched // unit + 2) * unit for _ in range(4))]:
            for convention, form in found.items():
                if not meets(form.total.assumes, size):
                    continue
                want = lru.cost(kernel, lru.residencies(kernel, size, cache, None), convention)
                env = {**size, CACHE: cache}
                got = tuple(None if c is None else c.evaluate(env) for c in (form.loads, form.stores, form.total))
                assert got == (want.loads, want.stores, want.bytes), (
                    f"{kernel.source.text}{size} Z={cache} {convention}"
                )
                made += 1
    return made


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_known_kernels(name: str) -> None:
    kernel = kernel_of(KERNELS[name])
    names = [p.name for p in kernel.parameters]
    sizes = [{n: k + 3 * i for i, n in enumerate(names)} for k in (10, 11, 13)]
    assert compare(kernel, sizes, Random(7), 20_000_000) == 3 * 5 * len(CONVENTIONS)


WITH_FORM = (18, 46, 63, 87, 101, 117, 133, 155, 167, 177, 206, 223, 254, 264)
"""Seeds of random kernels (without symbolic tiles) whose Q(Z) has a closed form within a low limit."""


@pytest.mark.spread(3)
@pytest.mark.parametrize("seed", WITH_FORM)
def test_random_kernels(seed: int) -> None:
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    form = ClosedForms(kernel, {}, operations=10 * OPERATIONS).at_any_cache("load_store")
    least = next(k for k in range(1, 40) if meets(form.total.assumes, dict.fromkeys(case.sizes[0], k)))
    sizes = [{n: least + (i * j) % 3 for i, n in enumerate(case.sizes[0])} for j in range(2)]
    legal = [s for s in sizes if all(c.holds(s) for c in kernel.assumptions)]
    assert compare(kernel, legal, Random(seed), 10 * OPERATIONS) > 0


def test_a_parameter_named_like_the_cache_is_refused() -> None:
    kernel = kernel_of("kernel k(Z):\n    inout x: f64[Z]\n    for i in range(Z):\n        x[i] += 1\n")
    with pytest.raises(NoClosedForm, match="parameter"):
        ClosedForms(kernel, {}).at_any_cache("once")
