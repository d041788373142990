"""Results that a process keeps, and those that it finds anew because a limit cut them short."""

from __future__ import annotations

from typing import Any

import pytest

from roofdsl import reproducibility
from roofdsl.lang.diagnostics import CommandError
from roofdsl.sol import floor, product_tiles
from roofdsl.store.in_process import in_process
from tests.predict.machines import kernel_of

GEMM = (
    "kernel gemm(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n"
)


def test_results_that_a_limit_cut_short_are_found_anew() -> None:
    asked: list[int] = []

    @in_process(2)
    def of(n: int) -> int:
        asked.append(n)
        if asked == [1]:
            reproducibility.decided_by_clock()
        if asked.count(2) == 1 and n == 2:
            reproducibility.decided_by_chance()
        return n

    assert [of(1), of(1), of(1), of(2), of(2), of(2), of(1), of(3), of(1), of(2)] == [1, 1, 1, 2, 2, 2, 1, 3, 1, 2]
    assert asked == [1, 1, 2, 2, 3, 2]  # 2 was used the longest ago when 3 came


@pytest.mark.parametrize("found", [floor.lower_bound, product_tiles._plan])
def test_a_bound_that_ran_out_of_time_does_not_last(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first command has a small budget, the next one of the same process a larger one."""
    kernel = kernel_of(GEMM)

    def too_long(_: Any) -> Any:
        reproducibility.decided_by_clock()
        raise CommandError("the bound takes too long")

    with monkeypatch.context() as small:
        small.setattr("roofdsl.bounds.bound.bound", too_long)
        small.setattr(floor, "recall", lambda what, kernel, options, compute: compute())
        assert found(kernel) is None
    assert found(kernel) is not None
