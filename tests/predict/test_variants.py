"""Predictions of the variant `grouped` count its accesses in the order in which it makes them."""

from __future__ import annotations

import pytest

from roofdsl.counts.sector_traffic import Transfers, transfers_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.variants import in_its_order
from tests.predict.machines import kernel_of, machine

TEXT = (
    "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n{order}"
    "    for i in range(n), j in range(n), p in range(n):\n        C[i, j] += A[i, p] * B[p, j]\n"
)
GROUPED = Code("compiled", variant="grouped")


def test_the_accesses_are_those_of_the_loops_in_another_order() -> None:
    written, ordered = kernel_of(TEXT.format(order="")), kernel_of(TEXT.format(order="    order i, p, j\n"))
    own = in_its_order(written, GROUPED)
    where = Transfers(2048, 64, 64)
    found = [transfers_at(k, {"n": 40}, where, "load_store").bytes for k in (written, own, ordered)]
    assert found[1] == found[2] < found[0]
    assert in_its_order(written, Code()) is written


def test_a_kernel_without_such_sums_has_no_such_prediction() -> None:
    copy = kernel_of("kernel k(n):\n    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i]\n")
    with pytest.raises(CommandError, match="could compute together"):
        in_its_order(copy, GROUPED)


def test_stated_instructions_do_not_tell_its_time() -> None:
    own = machine("peak f64 fma 40 GFLOP/s", "memory DRAM 8 GiB, 10 GB/s", "clock 2 GHz")
    found = predict(kernel_of(TEXT.format(order="")), {"n": 8}, own, Options(code=Code("stated", variant="grouped")))
    assert found.expected is None
    assert found.no_expected
