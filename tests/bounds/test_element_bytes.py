"""Bounds of kernels whose arrays have elements of different sizes, against orders simulated byte by byte."""

from __future__ import annotations

import random
from itertools import product
from math import sqrt

import pytest

from roofdsl.bounds.bound import bound
from roofdsl.bounds.bound_at_sizes import Segments
from tests.oracle.loading import kernel_of

PRODUCT = """\
kernel product(m, n, k):
    in A: {a}[m, k]
    in B: {b}[k, n]
    inout C: {c}[m, n]
    for i in range(m):
        for j in range(n):
            for p in range(k):
                C[i, j] += A[i, p] * B[p, j]
"""
BYTES = {"f8": 1, "f16": 2, "f32": 4, "f64": 8}
Place = tuple[str, int, int]


def loaded(order: list[tuple[int, int, int]], sizes: dict[str, int], cache_bytes: int, registers: int) -> int:
    """Bytes of loads of an order of (i, j, p) with a replacement that drops what is used again last.

    Three operands may be in registers besides (`registers` bytes). Elements have different sizes, so this is no optimal
    replacement, but one that exists.
    """
    uses: list[tuple[Place, ...]] = [(("A", i, p), ("B", p, j), ("C", i, j)) for i, j, p in order]
    later: dict[Place, list[int]] = {}
    for k in reversed(range(len(uses))):
        for place in uses[k]:
            later.setdefault(place, []).append(k)
    held: set[Place] = set()
    moved = 0
    for own in uses:
        for place in own:
            later[place].pop()
            if place not in held:
                moved += sizes[place[0]]
                held.add(place)
        while sum(sizes[p[0]] for p in held) > cache_bytes + registers:
            out = [p for p in held if p not in own]
            held.remove(max(out, key=lambda p: later[p][-1] if later[p] else len(uses) + 1))
    return moved


@pytest.mark.spread(2)
@pytest.mark.parametrize("types", [("f16", "f16", "f32"), ("f32", "f32", "f64"), ("f8", "f32", "f16")])
def test_no_order_loads_fewer_bytes(types: tuple[str, str, str]) -> None:
    """As written, by columns, in tiles, and at random: at small sizes and caches of a few dozen bytes."""
    a, b, c = types
    found = bound(kernel_of(PRODUCT.format(a=a, b=b, c=c)))
    sizes = dict(zip("ABC", (BYTES[t] for t in types), strict=True))
    draw = random.Random(str(types))
    for _ in range(6):
        m, n, k = (draw.randint(3, 9) for _ in range(3))
        every = list(product(range(m), range(n), range(k)))
        side = draw.randint(2, 4)
        orders = [
            every, sorted(every, key=lambda t: (t[2], t[0], t[1])),
            sorted(every, key=lambda t: (t[0] // side, t[1] // side, t[2], t[0], t[1])),
            draw.sample(every, len(every)),
        ]  # fmt: skip
        for cache in (8, 24, 64, 200):
            least, _ = found.bytes_at({"m": m, "n": n, "k": k}, cache)
            for order in orders:
                assert least <= loaded(order, sizes, cache, sum(sizes.values())), (m, n, k, cache)


def test_the_leading_term_is_that_of_the_sizes() -> None:
    """2 sqrt(e_A e_B e_C) m n k / sqrt(bytes): with one size e, the 2 m n k / sqrt(S) elements of the papers."""
    n, cache = 1 << 13, 1 << 20
    for a, b, c in (("f16", "f16", "f32"), ("f32", "f32", "f64"), ("f64", "f64", "f64")):
        found = bound(kernel_of(PRODUCT.format(a=a, b=b, c=c)))
        least, argument = found.bytes_at({"m": n, "n": n, "k": n}, cache)
        leading = 2 * sqrt(BYTES[a] * BYTES[b] * BYTES[c]) * n**3 / sqrt(cache)
        assert argument == "partition" and 0.97 * leading < least <= leading


def test_first_loads_count_each_array_in_its_own_size() -> None:
    """One array of bytes beside one of eight bytes: every element of both is loaded."""
    head = "kernel sum(n):\n    in a: f64[n], m: i8[n]\n    out b: f64[n]\n"
    assert bound(kernel_of(f"{head}    for i in range(n):\n        b[i] = a[i] + m[i]\n")).bytes_at(
        {"n": 1000}, 64
    ) == (9000, "compulsory")


@pytest.mark.parametrize(("c", "d"), [("f32", "f64"), ("f64", "f32"), ("f32", "f32")])
def test_what_is_made_counts_with_the_largest_of_its_class(c: str, d: str) -> None:
    """C below the diagonal and D above it are one class of results, each of n (n - 1) / 2 elements that begin on chip;
    loads and their making are T bytes in a segment.
    """
    kernel = kernel_of(f"""\
kernel halves(n):
    in A, B: f16[n, n]
    out C: {c}[n, n]
    out D: {d}[n, n]
    for i in range(n), j in range(i):
        C[i, j] = 0
        for k in range(n):
            C[i, j] += A[i, k] * B[k, j]
    for i in range(n), j in range(i + 1, n):
        D[i, j] = 0
        for k in range(n):
            D[i, j] += A[i, k] * B[k, j]
""")
    numbers = bound(kernel).numbers
    assert numbers is not None
    ((_, segments),) = numbers.in_bytes
    assert isinstance(segments, Segments)
    n, largest = 20, max(BYTES[c], BYTES[d])
    assert segments.more == largest
    assert sum(factor * count.evaluate({"n": n}) for factor, count in segments.made) == largest * n * (n - 1)
