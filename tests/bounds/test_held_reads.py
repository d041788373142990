"""Products in tiles whose innermost loop uses a `let` of an outer one, as people write them in C."""

from __future__ import annotations

import random

import pytest

from roofdsl.bounds.bound import bound
from roofdsl.bounds.held_reads import without_held_reads, without_tile_loops
from roofdsl.loops.transform import apply
from tests.bounds.belady import loads, random_order, scalars_of, tasks, tiled_order
from tests.oracle.loading import kernel_of

HELD = """
kernel held(n, b):
    assume n % b == 0
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i0 in range(0, n, b), k0 in range(0, n, b), j0 in range(0, n, b):
        for i in range(i0, i0 + b), k in range(k0, k0 + b):
            let a = A[i, k]
            for j in range(j0, j0 + b):
                C[i, j] += a * B[k, j]
"""
PLAIN = HELD.replace("let a = A[i, k]\n            ", "").replace("a *", "A[i, k] *")
CHANGED = HELD.replace("in A, B", "in B").replace("inout C", "inout A, C").replace("C[i, j] +=", "A[i, j] +=")
TWO = HELD.replace("A[i, k]", "A[i, k] + B[i, k]")


def test_a_held_element_hides_no_product() -> None:
    """With the element in a register, only the compulsory loads were a bound: 3 n**2 instead of 2 n**3 / sqrt(S)."""
    found = bound(kernel_of(HELD))
    assert found.untiled and found.partition is not None
    plain = bound(kernel_of(PLAIN))
    assert found.partition.leading == plain.partition.leading  # type: ignore[union-attr]
    assert found.registers == plain.registers + 1
    for size in (16, 100):
        one, another = (b.at({"n": 60, "b": 6}, size)[0] for b in (found, plain))
        assert 0 < another - one < another / 10, "the register is a place more for a value"


@pytest.mark.parametrize(("text", "held"), [(HELD, 1), (PLAIN, 0), (CHANGED, 0), (TWO, 0)])
def test_only_input_elements_are_read_again(text: str, held: int) -> None:
    """An element that is written may have changed, and a sum of two would need two registers."""
    kernel = apply(kernel_of(text))
    plain, names = without_held_reads(kernel)
    assert names == held and (plain is kernel) == (not held)
    assert (without_tile_loops(kernel)[0] is kernel) == (text in (CHANGED, TWO))


@pytest.mark.parametrize(("n", "b"), [(4, 2), (6, 3), (6, 1), (8, 4)])
def test_no_order_of_a_held_product_loads_less(n: int, b: int) -> None:
    """Also orders that keep each `let` in a register from its execution to its last use: one element more."""
    kernel, rng = kernel_of(HELD), random.Random(n * b)
    found = bound(kernel)
    free, room = tasks(kernel, {"n": n, "b": b}, scalars=True), scalars_of(kernel)
    orders = [(tasks(kernel, {"n": n, "b": b}), 0), (tiled_order(free, rng), room), (random_order(free, rng), room)]
    for size in (1, 2, 5, 12, 30):
        value, argument = found.at({"n": n, "b": b}, size)
        for order, more in orders:
            assert value <= loads(order, size + more), (argument, size)
