"""Streams and stencils on a Skylake-like hierarchy: bytes an inner iteration as layer conditions give them."""

from __future__ import annotations

import pytest

from benchmarks.layer_conditions import INNER, Printed, exact, printed, simulated

# (bytes loaded, stored) an iteration across L1-L2, L2-L3 and L3-memory. One line is loaded for the write of B, and one
# for every row (2-D: j +- 1 are the centre's) or plane of A whose last use no cache has kept: 2-D rows are kept from
# 32*n B on, in 3-D rows from 48*n B and planes from 32*n**2 B on.
STREAM, ALL_ROWS = ((24, 8),) * 3, ((16, 8),) * 3
TABLE = {
    ("triad", 100_000): STREAM,
    ("jacobi2d", 1000): ALL_ROWS,
    ("jacobi2d", 4000): ((32, 8), (16, 8), (16, 8)),
    ("jacobi2d", 10_000): ((32, 8), (16, 8), (16, 8)),
    ("jacobi3d", 120): ((32, 8), (16, 8), (16, 8)),
    ("jacobi3d", 320): ((32, 8), (32, 8), (16, 8)),
    ("jacobi3d", 900): ((48, 8), (32, 8), (16, 8)),
}
DIMENSIONS = {"triad": 0, "jacobi2d": 1, "jacobi3d": 2}


def check(found: tuple[tuple[float, float], ...], name: str, n: int) -> None:
    # a row holds n elements for n - 2 iterations, and its first and last line may belong to two rows
    most = (n / (n - 2)) ** DIMENSIONS[name] * (1 + 2 / n)
    for (loads, stores), (want_loads, want_stores) in zip(found, TABLE[name, n], strict=True):
        assert want_loads <= loads * 1.000001 <= want_loads * most + 0.01
        assert want_stores <= stores * 1.000001 <= want_stores * most + 0.01


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "n"), TABLE)
def test_simulated(name: str, n: int) -> None:
    check(simulated(name, n), name, n)


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "n"), [("triad", 100_000), ("jacobi2d", 4000)])
def test_fully_associative(name: str, n: int) -> None:
    """What predictions take."""
    check(exact(name, n), name, n)


def test_every_case_of_the_benchmark_is_tested() -> None:
    from benchmarks.layer_conditions import CASES

    assert set(CASES) == set(TABLE)
    assert {name for name, _ in CASES} == set(INNER)


def test_what_kerncraft_prints() -> None:
    table = "L3 = 8.00 cy/CL\n\nData Transfers:\nLevel   | Loads    | Store    |\n"
    table += "  L1-L2 | 256 B/CL |  64 B/CL |\n  L2-L3 | 128 B/CL |  64 B/CL |\n L3-MEM | 128 B/CL |  64 B/CL |\n"
    assert printed(table, "") == Printed(((32, 8), (16, 8), (16, 8)))
    assert printed("", "warning\nValueError: no\n").failure == "ValueError: no"
