"""What a bound says of arguments that gave nothing."""

from __future__ import annotations

import pytest

import roofdsl.bounds.bound as module
from roofdsl.bounds.bound import bound
from roofdsl.sets.library import LibraryFailure, TooHard
from tests.bounds.test_tiles import GEMM
from tests.oracle.loading import kernel_of


def test_loops_over_tiles_were_removed_even_if_the_flow_has_no_exact_form() -> None:
    text = """kernel sums(n, b):
    in A: f64[n, n]
    inout C: f64[n]
    for ii in range(0, n, 4), j in range(0, n, b), i in range(ii, min(ii + 4, n)):
        C[i] += A[i, j]
"""
    found = bound(kernel_of(text))
    assert found.flow is None and found.untiled
    plain = bound(
        kernel_of(text.replace("ii in range(0, n, 4), ", "").replace("range(ii, min(ii + 4, n))", "range(n)"))
    )
    assert plain.flow is None and not plain.untiled
    assert found.notes == plain.notes == ("the flow of values has no exact form: its executions are not affine in b",)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (TooHard("this", 1), "the partition argument exceeds its limit of integer-set operations"),
        (LibraryFailure("the library failed"), "the partition argument is left out: the library failed"),
    ],
)
def test_a_failure_of_the_library_is_no_limit(error: Exception, note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(module, "partition", fail)
    assert bound(kernel_of(GEMM)).notes == (note,)
