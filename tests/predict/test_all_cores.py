"""Without `--cores`, a kernel is expected to take as long as with the number of all cores."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.program_at_sizes import program_at
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import on_cores, scaling
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_at
from tests.predict.machines import kernel_of

CODE = Options(code=Code("stated"))
TRIANGLE = """
kernel triangle(n):
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(n), j in range(i + 1):
        B[i, j] = 2 * A[i, j]
"""
ROWS = """
kernel rows(k, n):
    in A: f64[k, n]
    out B: f64[k, n]
    for i in range(k), j in range(n):
        B[i, j] = 2 * A[i, j]
"""
COLUMNS = """
kernel columns(n):
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(n), j in range(n):
        B[i, j] = A[j, i]
"""


def slower_alone() -> Machine:
    """One core alone gets less from the memory and from L3 than its share of what 20 get."""
    rates = {"one core, DRAM": 6, "one core, L3": 50}
    machine = load_machine("skylake_gold_6148")
    kept = next(c for c in machine.ceilings if c.name == "one core, DRAM")
    stated = (
        replace(kept, name=name, level=name.split(", ")[1], bandwidth_bytes_per_s=Fraction(gb * 10**9))
        for name, gb in rates.items()
    )
    return replace(machine, ceilings=tuple(stated))


def in_turn() -> Machine:
    return replace(load_machine("skylake_gold_6148"), transfer_overlap=Fraction(0))


@pytest.mark.parametrize("machine", [load_machine("skylake_gold_6148"), slower_alone(), in_turn()])
@pytest.mark.parametrize(("text", "sizes"), [
    (TRIANGLE, {"n": 3000}), (ROWS, {"k": 3, "n": 10**5}), (ROWS, {"k": 4000, "n": 1000}), (COLUMNS, {"n": 1000}),
])  # fmt: skip
def test_all_cores_need_no_option(text: str, sizes: dict[str, int], machine: Machine) -> None:
    kernel, cores = kernel_of(text), machine.units or 0
    found, with_option = predict(kernel, sizes, machine, CODE), on_cores(kernel, sizes, machine, cores, CODE)
    assert found.expected is not None and found.expected == with_option.expected
    assert found.cores is None and with_option.cores is not None
    drawn = scaling(kernel, sizes, machine, [1, cores], CODE)
    assert drawn.times_s[-1] == found.expected.expected_s <= drawn.times_s[0]


def test_three_rows_keep_three_cores_busy_with_what_these_get_from_memory() -> None:
    """24 bytes of each element, since stores load their lines, at three times the 24.85 GB/s of one core."""
    found = predict(kernel_of(ROWS), {"k": 3, "n": 10**6}, load_machine("skylake_gold_6148"), CODE)
    assert found.expected is not None
    assert float(found.expected.expected_s) == pytest.approx(24 * 3e6 / (3 * 24.85e9), rel=1e-3)
    assert found.bound_s < found.expected.expected_s / 1.7  # 128 GB/s of all cores


def test_even_work_takes_what_the_memory_of_all_cores_needs() -> None:
    """Also where a core alone was measured to get 6 GB/s, which is less than a twentieth of 128 GB/s."""
    found = predict(kernel_of(ROWS), {"k": 4000, "n": 5000}, slower_alone(), CODE)
    assert found.expected is not None
    assert float(found.expected.expected_s) == pytest.approx(24 * 2e7 / 128e9, rel=1e-3)


PROGRAM = (
    ROWS
    + """
kernel scale(n):
    inout x: f64[n]
    for i in range(n):
        x[i] = 2 * x[i]

program both(n):
    run rows(3, n)
    run scale(n)
"""
)


def test_a_program_that_is_repeated_has_the_rates_of_the_busy_cores() -> None:
    """Its data stay in L3, since 28 MB fit. Three of 20 cores get 3/20 of its rate."""
    machine = load_machine("skylake_gold_6148")
    at = program_at(load_file(Source("<test>", PROGRAM)), "both", {"n": 500_000})
    rows, _ = predict_at(at, machine, replace(CODE, warm=True)).parts
    assert rows.expected is not None and not rows.levels[-1].bytes
    rate = machine.last_cache.bandwidth_bytes_per_s if machine.last_cache else 0
    assert float(rows.expected.expected_s) == pytest.approx(24 * 1.5e6 / float(rate * Fraction(3, 20)), rel=1e-2)


def test_fewer_lines_than_a_convention_counts_are_a_cause_on_all_cores() -> None:
    """`traffic write_allocate` counts all lines that stores begin, and the hardware loads a quarter of them first."""
    fill = kernel_of(
        "kernel k(n):\n    traffic write_allocate\n    out y: f64[n]\n    for i in range(n):\n        y[i] = 1\n"
    )
    machine = slower_alone()
    quarter = tuple(replace(c, write_allocate=Fraction(1, 4)) for c in machine.caches)
    found = predict(fill, {"n": 10**7}, replace(machine, caches=quarter), CODE)
    assert found.expected is not None and found.expected.expected_s < found.bound_s
    (cause,) = (c for c in found.expected.causes if c.share_s < 0)
    assert cause.cause.startswith("stores load fewer lines first")
