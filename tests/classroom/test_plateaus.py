"""Questions to the engine about plateaus, where these differ by the remainders of sizes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from roofdsl.classroom.engine import answer
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.forms_as_formulas import number
from roofdsl.classroom.query import Query, kernel_of
from roofdsl.counts.derive import derive
from roofdsl.lang.diagnostics import CommandError

MIRRORED = """
kernel p(n):
    in A: f64[n]
    out y: f64[n]
    for j in range(0, n, 2):
        y[j] = A[j] + A[n - 1 - j]
"""


def asked(ask: str, k: int, n: int | None, source: str = MIRRORED) -> object:
    return answer(Query(ask, source, number=k, settings=() if n is None else (("n", n),)))


@pytest.mark.spread(1)
@pytest.mark.parametrize("n", [1000, 1001, 1003])
def test_plateaus_are_those_of_the_sizes_that_are_set(n: int) -> None:
    rows = derive(kernel_of(MIRRORED), {"n": n}).plateaus
    for k, row in enumerate(rows, start=1):
        assert row.from_bytes.value is not None
        assert asked("plateau_from", k, n) == number(Fraction(row.from_bytes.value))
    assert asked("plateau_bytes", 1, n) == number(12 * n)
    assert asked("plateau_intensity", 1, n) == number(Fraction(1, 24))
    with pytest.raises(CommandError, match=rf"^there is no plateau {len(rows) + 1}: Q\(Z\) has {len(rows)}"):
        asked("plateau_from", len(rows) + 1, n)


def test_the_last_plateau_is_there_for_odd_sizes_only() -> None:
    assert asked("plateau_from", 2, 1001) == number(8 * 1001)
    assert asked("plateau_bytes", 2, 1001) == number(8 * 1001)
    assert asked("plateau_intensity", 2, 1001) == number(Fraction(1, 16))


@pytest.mark.parametrize("ask", ["plateau_from", "plateau_bytes", "plateau_intensity"])
def test_without_sizes_it_says_why_there_is_no_answer(ask: str) -> None:
    with pytest.raises(CommandError, match="differ by the remainders of its sizes: n % 2 == 0, n % 4 == 1, n % 4 == 3"):
        asked(ask, 1, None)


def test_sizes_make_numbers_of_formulas_too() -> None:
    assert asked("plateau_bytes", 2, 100, "shipped matmul") == number(16 * 100**3)
    with pytest.raises(CommandError, match="has no value in `set`"):
        answer(Query("plateau_bytes", "shipped gemv", number=1, settings=(("x", 3),)))


SHIFTED = """
kernel shifted(n, const s = 2):
    assume n >= 100
    in x: f64[n + s]
    out y: f64[n]
    for i in range(n):
        y[i] = x[i] + x[i + s]
"""


@pytest.mark.parametrize("sizes", [(), (("n", 1000),)])
def test_const_parameters_are_those_that_are_set(sizes: tuple[tuple[str, int], ...]) -> None:
    def found(ask: str, s: int, **more: Any) -> Any:
        return answer(Query(ask, SHIFTED, settings=(*sizes, ("s", s)), **more))

    for s in (2, 4):
        row = derive(kernel_of(SHIFTED, {"s": s}), {"n": 1000}).plateaus[1]
        assert row.from_bytes.value is not None
        assert found("plateau_from", s, number=2) == number(Fraction(row.from_bytes.value))
        assert evaluate(found("array", s, which="x"), {"n": Fraction(1000)}) == 8 * (1000 + s)
        assert evaluate(found("Q", s), {"n": Fraction(1000)}) == 8 * (2000 + s)
        assert evaluate(found("intensity", s), {"n": Fraction(1000)}) == Fraction(1000, 8 * (2000 + s))
        assert evaluate(found("W", s), {"n": Fraction(1000)}) == 1000
    assert found("plateau_from", 2, number=2) != found("plateau_from", 4, number=2)
