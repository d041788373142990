"""The oracle against answers worked out by hand."""

from __future__ import annotations

import pytest

from roofdsl.loops.model import Kernel
from tests.oracle.enumerate import Access, counters, executions, run
from tests.oracle.families import families
from tests.oracle.loading import kernel_of
from tests.oracle.lru import Traffic, footprint, register_bytes, residencies, traffic
from tests.oracle.random_kernels import random_kernel
from tests.oracle.values import final_state, same_result, writes_before_reads

FAMILIES = {f.name: f for f in families()}


def family(name: str) -> Kernel:
    return kernel_of(FAMILIES[name].text)


@pytest.mark.parametrize(
    ("name", "once", "load_store", "write_allocate"),
    [
        ("vector_add", (0, 24, 0), (0, 24, 0), (0, 32, 0)),
        ("gemv", (8, 16, 0), (8, 24, 0), (8, 24, 0)),
        ("matmul_ijk", (24, 0, 0), (32, 0, 0), (32, 0, 0)),
        ("transpose", (16, 0, 0), (16, 0, 0), (24, 0, 0)),
        ("dot", (0, 4, 2), (0, 4, 2), (0, 4, 2)),
    ],
)
def test_the_table_of_conventions(
    name: str, once: tuple[int, ...], load_store: tuple[int, ...], write_allocate: tuple[int, ...]
) -> None:
    """The table under rule 11 (coefficients of n^2, n, 1) and the dot product's 4N + 2."""
    rows = {"once": once, "load_store": load_store, "write_allocate": write_allocate}
    for convention, (square, linear, constant) in rows.items():
        for n in (1, 4, 7):
            got = traffic(family(name), {"n": n}, None, None, convention)
            assert got.bytes == square * n * n + linear * n + constant


def test_loads_and_stores_apart() -> None:
    assert traffic(family("vector_add"), {"n": 5}, None, None, "load_store") == Traffic(80, 40, 120)
    assert traffic(family("vector_add"), {"n": 5}, None, None, "write_allocate") == Traffic(120, 40, 160)
    assert traffic(family("vector_add"), {"n": 5}, None, None, "once") == Traffic(None, None, 120)


def test_matmul_in_a_cache_of_three_elements() -> None:
    """Order i, j, k; Z = 24 B: C[i, j] stays through the k loop, A and B are loaded every time."""
    n = 5
    assert traffic(family("matmul_ijk"), {"n": n}, 24, None, "load_store") == Traffic(
        8 * (2 * n**3 + n**2), 8 * n**2, 8 * (2 * n**3 + 2 * n**2)
    )


def test_matmul_in_a_cache_of_one_line() -> None:
    """A, B and C displace one another; the write of C follows its read and hits."""
    n = 4
    got = traffic(family("matmul_ijk"), {"n": n}, 64, 64, "load_store")
    assert got == Traffic(64 * 3 * n**3, 64 * n**3, 64 * 4 * n**3)


def test_gemv_at_every_size_of_cache() -> None:
    """Between two uses of x[j] come n elements of A, n - 1 others of x, y[i], and for j > 0 also y[i + 1].

    So x stays from 2n + 2 elements on, x[0] alone from 2n + 1 on; y[i] stays from 3 on.
    """
    n = 6
    for elements in range(3, 2 * n + 6):
        missed = n if elements >= 2 * n + 2 else 1 + (n - 1) * n if elements == 2 * n + 1 else n * n
        got = traffic(family("gemv"), {"n": n}, 8 * elements, None, "load_store")
        assert got == Traffic(8 * (n * n + missed + n), 8 * n, 8 * (n * n + missed + 2 * n)), elements


def test_lines_longer_than_an_element_and_true_addresses() -> None:
    """Rows of 5 f64 in lines of 16 B: 25 elements touch 13 lines; down a column every access is another line."""
    kernel = kernel_of(
        "kernel column(n):\n    in A: f64[n, n]\n    inout s: f64\n    for j in range(n), i in range(n):\n"
        "        s += A[i, j]\n"
    )
    assert traffic(kernel, {"n": 5}, None, 16, "once").bytes == 13 * 16 + 8
    assert traffic(kernel, {"n": 5}, None, 16, "load_store") == Traffic(13 * 16 + 8, 8, 13 * 16 + 16)
    assert traffic(kernel, {"n": 5}, 16, 16, "once").bytes == 25 * 16 + 8


def test_column_major_runs_along_the_first_subscript() -> None:
    text = "kernel k(n):\n    in A: f64[n, 2] col\n    out y: f64[n]\n    for i in range(n):\n        y[i] = A[i, 1]\n"
    assert traffic(kernel_of(text), {"n": 8}, 64, 16, "load_store") == Traffic(4 * 16, 4 * 16, 128)
    row_major = kernel_of(text.replace(" col", ""))
    assert traffic(row_major, {"n": 8}, 64, 16, "load_store") == Traffic(8 * 16, 4 * 16, 192)


def test_lines_of_two_sizes_in_one_cache() -> None:
    """Z = 12 B holds an f64 and an f32: x[0] stays while one f64 passes, and goes when the line is 16 B in all."""
    text = (
        "kernel k(n):\n    in A: f64[n], x: f32[1]\n    out y: f32[n]\n    for i in range(n):\n"
        "        y[i] = A[i] + x[0]\n"
    )
    # A (8), x (4) -> 12; y (4) evicts A; the next A (8): 4 + 4 + 8 evicts x first
    assert traffic(kernel_of(text), {"n": 3}, 12, None, "load_store") == Traffic(3 * 12, 12, 48)
    # with 20 B: x, y, A, then x hits before it is the oldest
    assert traffic(kernel_of(text), {"n": 3}, 20, None, "load_store") == Traffic(3 * 8 + 4, 12, 40)


def test_temp_lines_are_dropped_at_the_end_only() -> None:
    text = (
        "kernel k(n):\n    in x: f64[n]\n    temp t: f64[n]\n    out y: f64[n]\n"
        "    for i in range(n):\n        t[i] = x[i]\n    for i in range(n):\n        y[i] = t[i]\n"
    )
    kernel = kernel_of(text)
    assert traffic(kernel, {"n": 4}, None, None, "load_store") == Traffic(32, 32, 64)
    assert traffic(kernel, {"n": 4}, None, None, "once").bytes == 96
    # two lines of room: every t is written back, and read again; at the end only y is dirty
    assert traffic(kernel, {"n": 4}, 16, None, "load_store") == Traffic(32 + 32, 32 + 32, 128)


def test_scalars_cost_what_their_intent_says() -> None:
    text = (
        "kernel k(n):\n    in alpha: f64\n    inout s: f32\n    out r: f64\n    temp t: f64\n    in x: f64[n]\n"
        "    r = alpha\n    t = alpha\n    for i in range(n):\n        s += t * x[i]\n"
    )
    assert traffic(kernel_of(text), {"n": 2}, 8, None, "load_store") == Traffic(16 + 4, 4 + 8, 32)
    assert traffic(kernel_of(text), {"n": 2}, 8, None, "once").bytes == 16 + 4 + 8


def test_order_of_accesses() -> None:
    text = (
        "kernel k(n):\n    in a, b, c: f64[n]\n    inout y: f64[n]\n    for i in range(n):\n"
        "        y[i] += select(a[i] < b[i], c[i], a[i] + c[i])\n        let t = b[i]\n        y[i] = t * t\n"
    )
    (first, let, last) = [e.accesses for e in run(kernel_of(text), {"n": 1})]
    assert "".join(a.array for a in first) == "abcacyy"
    assert [a.is_write for a in first] == [False] * 6 + [True]
    assert let == (Access("b", (0,), False),)
    assert last == (Access("y", (0,), True),)


def test_forbidden_lines_and_caches() -> None:
    with pytest.raises(ValueError, match="not a multiple"):
        traffic(family("gemv"), {"n": 2}, None, 12, "once")
    with pytest.raises(ValueError, match="not a multiple"):
        traffic(family("gemv"), {"n": 2}, None, 4, "once")
    with pytest.raises(ValueError, match="holds no line"):
        traffic(family("gemv"), {"n": 2}, 32, 64, "once")


def test_enumeration_refuses_what_is_out_of_bounds_or_not_assumed() -> None:
    text = "kernel k(n):\n    assume n >= 2\n    out y: f64[n]\n    for i in range(n):\n        y[i + 1] = 0.0\n"
    with pytest.raises(IndexError, match="y"):
        list(run(kernel_of(text), {"n": 3}))
    with pytest.raises(ValueError, match="assumption"):
        list(run(kernel_of(text), {"n": 1}))


def test_counts_footprints_and_counters() -> None:
    kernel = kernel_of(
        "kernel k(n):\n    in A: f32[n, n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = 0.0\n"
        "        for j in range(i):\n            count pairs j + 1\n            if j % 2 == 0:\n"
        "                y[i] = A[i, j]\n            else:\n                count odd 1\n"
    )
    # i = 0..4: pairs (i, j < i) are 10; j even: 1 + 1 + 2 + 2 = 6
    assert executions(kernel, {"n": 5}) == {0: 5, 1: 10, 2: 6, 3: 4}
    assert counters(kernel, {"n": 5}) == {"pairs": 1 + 3 + 6 + 10, "odd": 4}
    assert footprint(kernel, {"n": 5}) == {"A": 24, "y": 40}
    assert register_bytes(kernel, {"n": 5}) == 5 * 8 + 6 * 12


def test_residencies_begin_with_what_missed() -> None:
    stays = residencies(family("vector_add"), {"n": 1}, None, None)
    assert [(s.begins_with_write, s.stored) for s in stays] == [(False, False), (False, False), (True, True)]


def test_values_tell_a_legal_order_from_an_illegal_one() -> None:
    text = "kernel k(n):\n    inout A: f64[n + 1, n + 1]\n    for {}:\n        A[i + 1, j] = A[i, j + 1] + 1.0\n"
    one = kernel_of(text.format("i in range(n), j in range(n)"))
    other = kernel_of(text.format("j in range(n), i in range(n)"))
    assert not same_result(one, other, {"n": 3})
    orders = [kernel_of(f.text) for name, f in FAMILIES.items() if name.startswith("matmul_") and len(name) == 10]
    assert len(orders) == 6
    assert all(same_result(orders[0], k, {"n": 4}) for k in orders)
    blocked = final_state(family("matmul_blocked"), {"n": 4, "b": 2})
    assert blocked == final_state(orders[0], {"n": 4})


@pytest.mark.thorough
def test_families_and_random_kernels_are_what_they_claim() -> None:
    """In bounds and within the assumptions at every size; `out` and `temp` arrays are written before they are read."""
    cases = [(f.text, f.sizes) for f in families()] + [(c.text, c.sizes) for c in map(random_kernel, range(60))]
    accesses = 0
    for text, sizes in cases:
        kernel = kernel_of(text)
        for size in sizes:
            accesses += sum(len(e.accesses) for e in run(kernel, size))
            for a in kernel.arrays:
                if a.intent in ("out", "temp"):
                    assert writes_before_reads(kernel, a, size), text
    assert accesses > 10_000
