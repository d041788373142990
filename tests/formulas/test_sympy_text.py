"""Sympy expressions as the lines of a proof show them."""

from __future__ import annotations

import pytest
from sympy import Eq, Max, Ne, Or, Piecewise, sqrt, symbols

from roofdsl.bounds.bound import bound
from roofdsl.formulas.sympy_text import readable
from roofdsl.tell.bound_argument import argument
from tests.oracle.loading import kernel_of

m, n, S = symbols("m n S", integer=True, positive=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2 * n**3 / sqrt(S), "2*n**3/sqrt(S)"),
        (n + Max(0, n - S), "n + max(0, -S + n)"),
        (Piecewise((n - 2, n >= 3), (0, True)), "(n - 2 if n >= 3, else 0)"),
        (-6 * Piecewise((n - 2, n >= 3), (m, True)), "-6*(n - 2 if n >= 3, else m)"),
        (
            Piecewise((n, n >= 5), (4, (n >= 3) & (n <= 4)), (m, (n >= 2) & (m >= 2)), (0, True)),
            "(n if n >= 5, 4 if 3 <= n <= 4, m if m >= 2 and n >= 2, else 0)",
        ),
        (Piecewise((1, Eq(n, 2)), (m, Ne(m, 3))), "(1 if n = 2, m if m != 3)"),
        (Piecewise((n, Or(n >= 5, Eq(m, 1)) & (m <= 4)), (0, True)), "(n if m <= 4 and (m = 1 or n >= 5), else 0)"),
    ],
)
def test_readable(value: object, text: str) -> None:
    assert readable(value) == text


def test_cases_of_a_proof() -> None:
    """A loop from 2 on reads nothing if n is less than 3."""
    kernel = kernel_of("""
kernel late(n):
    in    x: f64[n]
    inout y: f64[n]
    for i in range(2, n):
        y[i] += x[i]
""")
    assert list(argument(bound(kernel))) == [
        "Compulsory loads",
        "  x: (n - 2 if n >= 3, else 0) elements exist before the kernel runs and are read",
        "  y: (n - 2 if n >= 3, else 0) elements exist before the kernel runs and are read",
    ]
